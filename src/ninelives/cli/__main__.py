"""`python -m ninelives.cli`."""

from ninelives.cli import main

main()
