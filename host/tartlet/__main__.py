"""`python -m tartlet` is the same as `tartlet`."""

from tartlet.cli import main

main()
