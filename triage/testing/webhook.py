"""A local receiver of signed webhooks, that checks them as docs/ci.md tells receivers to: signature, age, and no
delivery twice.

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
    """`accepted` holds what was taken in, each delivery once."""

    def __init__(self, secret: str, *, window: float = 300.0) -> None:
        super().__init__()
        self.secret = secret
        self.window = window
        self.accepted: list[Any] = []
        self._seen: set[str] = set()

    def answer(self, request: Request) -> Reply:
        stamp, given = request.headers.get("x-triage-timestamp", ""), request.headers.get("x-triage-signature", "")
        if not stamp.isdecimal() or abs(time.time() - int(stamp)) > self.window:
            return Reply(401, {"error": "stale"})
        expected = (
            "sha256=" + hmac.new(self.secret.encode(), f"{stamp}.".encode() + request.body, hashlib.sha256).hexdigest()
        )
        if not hmac.compare_digest(expected.encode(), given.encode()):
            return Reply(401, {"error": "bad signature"})
        delivery = request.headers.get("x-triage-delivery", "")
        if delivery not in self._seen:
            self._seen.add(delivery)
            self.accepted.append(request.json())
        return Reply(200, {"ok": True})
