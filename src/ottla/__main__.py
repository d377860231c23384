"""`python -m ottla` is the command `ottla`."""

from ottla.cli.entry import main

main()
