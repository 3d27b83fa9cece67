"""Where a process begins.

To import the command line takes half a second. Until then Ctrl-C ends the process without a word, which no
`except` would do as well: modules in C make another error of it.
"""

from __future__ import annotations

import signal


def main() -> None:
    """Import the command line and run it."""
    is_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_python:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .main import main as run

    if is_python:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()
