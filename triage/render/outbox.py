"""Posts of the outbox as text or JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from triage.render import table
from triage.render.json import dump_json
from triage.render.table import day, iso
from triage.render.terminal import Paint
from triage.render.text import NARROWEST, WIDTH
from triage.store.outbox import Post

_HEAD = ("number", "state", "kind", "tries", "due", "about", "receipt or reason")


def as_text(posts: Sequence[Post], *, width: int | None = None, color: bool = False) -> str:
    """Return one line for each post."""
    if not posts:
        return "no posts\n"
    rows = [
        (
            f"{post.id}",
            post.state,
            post.kind,
            f"{post.attempts}",
            day(post.next_at),
            post.subject,
            post.error or post.receipt or "",
        )
        for post in posts
    ]
    return "\n".join(table.as_text(_HEAD, rows, max(width or WIDTH, NARROWEST), Paint(color), right=(0, 3))) + "\n"


def as_json(posts: Sequence[Post]) -> str:
    """Return every field of each post."""
    items = [
        {**dataclasses.asdict(post), "payload": dict(post.payload), "at": iso(post.at), "next_at": iso(post.next_at)}
        for post in posts
    ]
    return dump_json({"schema": "triage.outbox/1", "posts": items})
