"""The interface of a renderer: a name and a pure function from a diagnosis to text."""

from __future__ import annotations

from typing import Protocol

from triage.base.errors import TriageError
from triage.model.diagnosis import Diagnosis

SCHEMA = "triage.diagnosis/2"
READABLE = ("triage.diagnosis/1", SCHEMA)
"""The schemas that `triage show` reads. The first has no verdict `inconclusive`."""


class RenderError(TriageError):
    """The diagnosis cannot be written in the requested format."""


class Renderer(Protocol):
    """One format. The module that implements it is the renderer.

    `width` is columns and `color` asks for ANSI colours; a format for which they mean nothing ignores them.
    """

    @property
    def name(self) -> str:
        """The value of `--format`."""

    def render(self, diagnosis: Diagnosis, *, width: int | None = None, color: bool = False) -> str:
        """Return the whole report, ended by a newline."""
