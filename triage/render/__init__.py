"""Formats of a diagnosis, in the order in which help names them."""

from __future__ import annotations

from triage.model import Diagnosis
from triage.render import json, markdown, text
from triage.render.interface import Renderer, RenderError

RENDERERS: tuple[Renderer, ...] = (text, json, markdown)
NAMES = tuple(renderer.name for renderer in RENDERERS)

__all__ = ["NAMES", "RENDERERS", "RenderError", "Renderer", "render"]


def render(diagnosis: Diagnosis, name: str, *, width: int | None = None, color: bool = False) -> str:
    """Write the diagnosis in the format called `name`."""
    for renderer in RENDERERS:
        if renderer.name == name:
            return renderer.render(diagnosis, width=width, color=color)
    raise RenderError(f"there is no format {name!r}", hint=f"use one of {', '.join(NAMES)}")
