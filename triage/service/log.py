"""The service's own log: one JSON object a line on standard error, so that no text of a client can forge a line."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from typing import Any


def say(event: str, **fields: Any) -> None:
    """Write one event. Values are escaped by JSON; control characters cannot begin a new line."""
    stamp = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = json.dumps({"time": stamp, "event": event, **fields}, ensure_ascii=True, default=str)
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # nobody listens
