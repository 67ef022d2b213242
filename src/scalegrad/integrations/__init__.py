"""The losses in other people's trainers: Hugging Face (`hf`), TRL (`trl`), and what they share."""
