"""Answers that are written once, without a second check of what was just made; tests hold them to the documented schemas."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response


class Json(Response):
    """A JSON object in UTF-8."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
