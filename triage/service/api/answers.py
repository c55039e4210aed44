"""Answers that are written once, without a second check of what was just made; tests hold them to the documented
schemas.
"""

from __future__ import annotations

import json
import re
from typing import Any

from starlette.responses import Response

from triage.render.table import iso
from triage.store.tasks import Task


class Json(Response):
    """A JSON object in UTF-8."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )


def attachment(text: str, name: str) -> Response:
    """Text of logs or of a file: never shown by a browser, always saved."""
    clean = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:100] or "triage.txt"
    headers = {
        "Content-Disposition": f'attachment; filename="{clean}"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return Response(text.encode("utf-8", "replace"), media_type="text/plain; charset=utf-8", headers=headers)


def task(item: Task) -> dict[str, Any]:
    """A task as the API gives it."""
    times = {name: iso(getattr(item, name)) for name in ("created_at", "started_at", "ended_at")}
    plain = {
        name: getattr(item, name)
        for name in ("id", "kind", "state", "attempts", "actor", "cancel", "progress", "result", "error")
    }
    return {**plain, **times, "name": item.payload.get("name")}
