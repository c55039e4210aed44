"""Formats of a diagnosis, in the order of the help. The module of a format is imported on first use."""

from __future__ import annotations

import importlib
from typing import Any

from triage.model.diagnosis import Diagnosis
from triage.render.interface import Renderer, RenderError

# Modules of this package, each called like its format.
RENDERERS = ("text", "json", "markdown", "html", "github", "gitlab", "codequality", "junit", "sarif", "slack")
LINKED = ("gitlab", "slack")  # formats with a link to the whole report
NAMES = RENDERERS

__all__ = ["NAMES", "RENDERERS", "RenderError", "Renderer", "render"]


def render(diagnosis: Diagnosis, name: str, *, width: int | None = None, color: bool = False, link: str = "") -> str:
    """Return the diagnosis in the format `name`; `link` is the address of the whole report, for `LINKED` formats."""
    if name not in RENDERERS:
        raise RenderError(f"unknown format {name!r}", hint=f"use one of {', '.join(NAMES)}")
    renderer: Any = importlib.import_module(f"triage.render.{name}")
    more = {"link": link} if link and name in LINKED else {}
    return str(renderer.render(diagnosis, width=width, color=color, **more))
