"""`python -m coaudit.pipeline` is the command line."""

from coaudit.pipeline.cli import main

main()
