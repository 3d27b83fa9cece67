"""The errors that the command line turns into one message and an exit status."""

from __future__ import annotations

INTERRUPTED = 130
"""The exit status of what Ctrl-C has ended, as shells have it."""


class CoauditError(Exception):
    """Something is wrong with what was given; the message names the object, the rule and the value."""

    status = 1
    """The exit status of the command."""


class UsageError(CoauditError):
    """The command was called wrongly; the message names the choices."""

    status = 2


class SourceError(CoauditError):
    """A whole source cannot be read."""


class StoreError(CoauditError):
    """The workspace or its database cannot be used as asked."""


class Busy(StoreError):
    """Another process writes into the store for longer than one waits."""


class WriteError(StoreError):
    """A disk or a catalog refuses what is to be kept; the same command goes on once it does not."""
