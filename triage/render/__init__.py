"""Formats of a diagnosis, in the order in which help names them. A format's module is imported when it is asked for."""

from __future__ import annotations

import importlib
from typing import Any

from triage.model import Diagnosis
from triage.render.interface import Renderer, RenderError

RENDERERS = ("text", "json", "markdown", "html")  # modules of this package, each called like its format
NAMES = RENDERERS

__all__ = ["NAMES", "RENDERERS", "RenderError", "Renderer", "render"]


def render(diagnosis: Diagnosis, name: str, *, width: int | None = None, color: bool = False) -> str:
    """Write the diagnosis in the format called `name`."""
    if name not in RENDERERS:
        raise RenderError(f"there is no format {name!r}", hint=f"use one of {', '.join(NAMES)}")
    renderer: Any = importlib.import_module(f"triage.render.{name}")
    written: str = renderer.render(diagnosis, width=width, color=color)
    return written
