"""Posts of the outbox as text or JSON."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence

from triage.base.lazy_re import lazy_re
from triage.render import table
from triage.render.json import dump_json
from triage.render.sanitize import sanitize_line
from triage.render.table import day, iso
from triage.render.terminal import Paint
from triage.render.text import NARROWEST, WIDTH
from triage.store.outbox import Post

_HEAD = ("number", "state", "kind", "tries", "due", "about", "receipt")
_DIGEST = lazy_re(r"\bj-([0-9a-f]{12})[0-9a-f]+")  # of a job; twelve digits name it everywhere else


def as_text(posts: Sequence[Post], *, width: int | None = None, color: bool = False) -> str:
    """Return one line for each post, and below them each error with the numbers of its posts."""
    if not posts:
        return "no posts\n"
    width, paint = max(width or WIDTH, NARROWEST), Paint(color)
    rows = [
        (
            f"{post.id}",
            post.state,
            post.kind,
            f"{post.attempts}",
            day(post.next_at),
            _DIGEST.sub(r"j-\1", post.subject),
            post.receipt or "",
        )
        for post in posts
    ]
    lines = table.as_text(_HEAD, rows, width, paint, right=(0, 3))
    errors: dict[str, list[str]] = {}
    for post in posts:
        if post.error:
            errors.setdefault(sanitize_line(post.error), []).append(f"{post.id}")
    for error, numbers in errors.items():
        lines += ["", *textwrap.wrap(f"{', '.join(numbers)}: {error}", width, subsequent_indent="  ")]
    return "\n".join(lines) + "\n"


def as_json(posts: Sequence[Post]) -> str:
    """Return every field of each post."""
    items = [
        {**dataclasses.asdict(post), "payload": dict(post.payload), "at": iso(post.at), "next_at": iso(post.next_at)}
        for post in posts
    ]
    return dump_json({"schema": "triage.outbox/1", "posts": items})
