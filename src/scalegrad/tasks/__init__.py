"""The paper's tasks, each from data to training, generation and scores, in one shape."""
