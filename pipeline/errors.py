"""The errors that the command line turns into one message and exit status 1 (2 for wrong use)."""

from __future__ import annotations


class CoauditError(Exception):
    """Something is wrong with what was given; the message names the object, the rule and the value."""


class UsageError(CoauditError):
    """The command was called wrongly; the message names the choices."""


class SourceError(CoauditError):
    """A whole source cannot be read."""


class StoreError(CoauditError):
    """The workspace or its database cannot be used as asked."""


class WriteError(StoreError):
    """A disk or a catalog refuses what is to be kept; the same command goes on once it does not."""
