"""`python -m scalegrad.cli` is the `scalegrad` command."""

from scalegrad.cli import main

main()
