"""`python -m coaudit.pipeline` is the command line."""

from .cli.start import main

main()
