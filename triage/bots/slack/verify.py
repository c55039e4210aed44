"""Is it Slack that calls? The signature of its documents, on bytes: whatever the headers hold, the answer is yes or no
and never an error.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

WINDOW = 300.0


def genuine(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """True for a body that was signed with the secret within the last five minutes. Names of headers are in lower case."""
    stamp, given = headers.get("x-slack-request-timestamp", ""), headers.get("x-slack-signature", "")
    if not secret or not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12) or abs(now - int(stamp)) > WINDOW:
        return False
    wanted = "v0=" + hmac.new(secret.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(wanted.encode(), given.encode("utf-8", "surrogatepass"))


def sight(headers: Mapping[str, str]) -> str:
    """What makes this request one of its kind: a second one with the same signature is a replay, for Slack signs a
    retry anew.
    """
    return f"slack:{headers.get('x-slack-signature', '')}"
