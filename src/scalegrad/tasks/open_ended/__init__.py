"""Open-ended generation: language modelling and auto-completion."""
