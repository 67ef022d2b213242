"""The paper's directed models as Hugging Face models, and the small base that ships with the package."""
