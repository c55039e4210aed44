"""The error classes: every error says what happened, where, and what to do next."""

from __future__ import annotations


class TriageError(Exception):
    """Base of all errors a user can meet.

    `hint` is the next step in one sentence; `path` and `line` (1-based) say where, if known.
    """

    def __init__(self, message: str, *, hint: str, path: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.path = path
        self.line = line

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}: " if self.path and self.line else f"{self.path}: " if self.path else ""
        return f"{where}{self.message}"


class InputError(TriageError):
    """None of the paths can be read (exit status 2)."""


class OptionError(TriageError):
    """An option has an invalid value (exit status 2)."""


class NotFoundError(OptionError):
    """An id or name refers to nothing."""


class CatalogError(TriageError):
    """A signature file is invalid or cannot be read."""


class ReportError(TriageError):
    """A saved diagnosis cannot be read."""


class StoreError(TriageError):
    """The store cannot be opened, read or written."""


class ReadOnlyStoreError(StoreError):
    """The store may only be read."""
