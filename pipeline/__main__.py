"""`python -m coaudit.pipeline` is the command line."""

from .cli.main import main

main()
