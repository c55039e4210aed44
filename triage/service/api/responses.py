"""Responses of the API, written once without validating them again; tests compare them with the schemas."""

from __future__ import annotations

import json
import re
from typing import Any

from starlette.responses import Response

from triage.render.table import iso
from triage.store.cause_work import Comment
from triage.store.tasks import Task


class JsonResponse(Response):
    """A JSON object in UTF-8."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the content as compact JSON."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def attachment(text: str, filename: str) -> Response:
    """Return text that a browser saves and never shows, under a safe file name."""
    safe_name = re.sub(r"[^A-Za-z0-9._-]+", "-", filename).strip("-.")[:100] or "triage.txt"
    headers = {
        "Content-Disposition": f'attachment; filename="{safe_name}"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return Response(text.encode("utf-8", "replace"), media_type="text/plain; charset=utf-8", headers=headers)


def comment_as_dict(comment: Comment) -> dict[str, str | None]:
    """Return a comment on a cause as the API does."""
    return {"at": iso(comment.at), "actor": comment.actor, "text": comment.text}


def task_as_dict(task: Task) -> dict[str, Any]:
    """Return a task as the API does."""
    names = ("id", "kind", "state", "attempts", "actor", "cancel", "progress", "result", "error")
    times = {name: iso(getattr(task, name)) for name in ("created_at", "started_at", "ended_at")}
    return {**{name: getattr(task, name) for name in names}, **times, "name": task.payload.get("name")}
