"""A local receiver of signed webhooks that checks signature, age and duplicates, as docs/ci.md asks receivers to.

with WebhookServer("secret") as hook:
    …post to f"{hook.url}/hook"…
    assert hook.accepted[0]["verdict"] == "known"
"""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import Any

from triage.testing.local import LocalServer, Reply, Request


class WebhookServer(LocalServer):
    """Receives webhooks; `accepted` holds the bodies of the accepted deliveries, each once."""

    def __init__(self, secret: str, *, window: float = 300.0) -> None:
        super().__init__()
        self.secret = secret
        self.window = window
        self.accepted: list[Any] = []
        self._deliveries: set[str] = set()

    def handle(self, request: Request) -> Reply:
        """Check and accept a delivery."""
        timestamp, signature = (
            request.headers.get("x-triage-timestamp", ""),
            request.headers.get("x-triage-signature", ""),
        )
        if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > self.window:
            return Reply(401, {"error": "too old"})
        message = f"{timestamp}.".encode() + request.body
        expected = "sha256=" + hmac.new(self.secret.encode(), message, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected.encode(), signature.encode()):
            return Reply(401, {"error": "bad signature"})
        delivery = request.headers.get("x-triage-delivery", "")
        if delivery not in self._deliveries:
            self._deliveries.add(delivery)
            self.accepted.append(request.json())
        return Reply(200, {"ok": True})
