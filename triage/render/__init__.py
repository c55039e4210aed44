"""Formats of a diagnosis, in the order of the help. The module of a format is imported on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from triage.model.diagnosis import Diagnosis
from triage.render.interface import Renderer, RenderError

if TYPE_CHECKING:
    from triage.model.store import Recurrence

# Modules of this package, each called like its format.
RENDERERS = ("text", "json", "markdown", "html", "github", "gitlab", "codequality", "junit", "sarif", "slack")
LINKED = ("gitlab", "slack")  # formats with a link to the whole report
NAMES = RENDERERS

__all__ = ["NAMES", "RENDERERS", "RenderError", "Renderer", "render"]


def render(
    diagnosis: Diagnosis,
    name: str,
    *,
    width: int | None = None,
    color: bool = False,
    link: str = "",
    verbose: bool = True,
    recurrence: Recurrence | None = None,
) -> str:
    """Return the diagnosis in the format `name`; `link` is the address of the whole report, for `LINKED` formats.

    Only text leaves out details without `verbose`, and tells of the `recurrence`.
    """
    if name not in RENDERERS:
        raise RenderError(f"unknown format {name!r}", hint=f"use one of {', '.join(NAMES)}")
    renderer: Any = importlib.import_module(f"triage.render.{name}")
    more: dict[str, Any] = {"link": link} if link and name in LINKED else {}
    more |= {"verbose": verbose, "recurrence": recurrence} if name == "text" else {}
    return str(renderer.render(diagnosis, width=width, color=color, **more))
