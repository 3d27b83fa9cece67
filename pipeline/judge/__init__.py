"""Judges over the store: which units are open, asked in order, answers in the ledger first."""

from .scope import Scope, Summary

__all__ = ["Scope", "Summary"]
