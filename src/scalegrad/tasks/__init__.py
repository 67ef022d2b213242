"""The paper's tasks, from data to scores: open-ended generation, summarization, captioning. One training for all."""
