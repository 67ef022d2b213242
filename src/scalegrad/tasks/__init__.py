"""The paper's tasks: data, training, generation and scores, one shape for all."""
