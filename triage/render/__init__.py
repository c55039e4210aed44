"""Formats of a diagnosis, in the order in which help names them. A format's module is imported when it is asked for."""

from __future__ import annotations

import importlib
from typing import Any

from triage.model.diagnosis import Diagnosis
from triage.render.interface import Renderer, RenderError

# Modules of this package, each called like its format.
RENDERERS = ("text", "json", "markdown", "html", "github", "gitlab", "codequality", "junit", "sarif", "slack")
LINKED = ("gitlab", "slack")  # those that can say where the whole report is to be read
NAMES = RENDERERS

__all__ = ["NAMES", "RENDERERS", "RenderError", "Renderer", "render"]


def render(diagnosis: Diagnosis, name: str, *, width: int | None = None, color: bool = False, link: str = "") -> str:
    """Write the diagnosis in the format called `name`; `link` is where the whole report is to be read, for those that
    can say it.
    """
    if name not in RENDERERS:
        raise RenderError(f"there is no format {name!r}", hint=f"use one of {', '.join(NAMES)}")
    renderer: Any = importlib.import_module(f"triage.render.{name}")
    more = {"link": link} if link and name in LINKED else {}
    written: str = renderer.render(diagnosis, width=width, color=color, **more)
    return written
