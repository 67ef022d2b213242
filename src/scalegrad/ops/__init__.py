"""The losses on flat rows: `reference` is the equations, the others the same numbers fast, `dispatch` picks."""
