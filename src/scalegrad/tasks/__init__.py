"""The tasks of the paper: data, training, generation and scores of each."""
