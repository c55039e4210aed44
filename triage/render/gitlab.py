"""The report for GitLab: links in the job's sidebar (`artifacts:reports:annotations`), the note on a merge request.

The report is an object of lists of `external_link` with a label and an address, as GitLab's documents on annotations
define it. A note has at most 1,000,000 characters.
"""

from __future__ import annotations

import json

from triage.model.diagnosis import Diagnosis
from triage.render import github, phrases
from triage.render.sanitize import clip, sanitize_line
from triage.render.slack import address

__all__ = ["name", "note", "render"]

name = "gitlab"

NOTE = 1_000_000
LABEL = 200


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False, link: str = "") -> str:
    """Return links: the verdict with `link`, then the references of the advice; empty without any address."""
    root = diagnosis.root_cause
    links = [(f"{phrases.verdict_kind(diagnosis).capitalize()}: {phrases.headline(diagnosis)}", link)]
    links += (
        [(f"About {root.signature or 'this'}", reference) for reference in root.remediation.references]
        if root is not None
        else []
    )
    items = [
        {"external_link": {"label": clip(sanitize_line(label), LABEL), "url": url}}
        for label, url in links
        if address(url)
    ]
    return json.dumps({"triage": items}, ensure_ascii=False, indent=2) + "\n"


def note(diagnosis: Diagnosis, key: str, *, link: str = "") -> str:
    """Return the note on a merge request, after the marker that identifies it."""
    return github.comment(diagnosis, key, link=link, limit=NOTE)
