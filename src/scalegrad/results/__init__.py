"""What people look at: figures, tables and texts, built from the numbers the rest of the library computes."""
