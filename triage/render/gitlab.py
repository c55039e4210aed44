"""For GitLab: links in the job's sidebar (`artifacts:reports:annotations`), and the note on a merge request.

The report is an object of lists of `external_link` with a label and an address, as GitLab's documents on annotations
have it. A note may
have 1,000,000 characters.
"""

from __future__ import annotations

import json

from triage.model.diagnosis import Diagnosis
from triage.render import github, words
from triage.render.safe import clip, safe_line
from triage.render.slack import address

__all__ = ["name", "note", "render"]

name = "gitlab"

NOTE = 1_000_000
LABEL = 200


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False, link: str = "") -> str:
    """What was found, linked to the report (`link`), and below it what the advice refers to. Without any address the
    list is empty.
    """
    root = diagnosis.root_cause
    links = [(f"{words.kind(diagnosis).capitalize()}: {words.headline(diagnosis)}", link)]
    links += (
        [(f"About {root.signature or 'this'}", reference) for reference in root.remediation.references]
        if root is not None
        else []
    )
    shown = [
        {"external_link": {"label": clip(safe_line(label), LABEL), "url": url}} for label, url in links if address(url)
    ]
    return json.dumps({"triage": shown}, ensure_ascii=False, indent=2) + "\n"


def note(diagnosis: Diagnosis, key: str, *, link: str = "") -> str:
    """The note on a merge request, with the marker by which it is found again."""
    return github.comment(diagnosis, key, link=link, limit=NOTE)
