"""Models of the paper's directed tasks as Hugging Face models; each file loads transformers when it is imported."""
