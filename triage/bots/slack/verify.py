"""Verify that a request comes from Slack, by the signature that Slack documents.

Works on bytes; no content of the headers raises an error.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

WINDOW = 300.0


def is_genuine(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Return whether the secret signed the body within the last five minutes. Header names are in lower case."""
    timestamp = headers.get("x-slack-request-timestamp", "")
    signature = headers.get("x-slack-signature", "")
    if not secret or not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
        return False
    if abs(now - int(timestamp)) > WINDOW:
        return False
    expected = "v0=" + hmac.new(secret.encode(), b"v0:" + timestamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode("utf-8", "surrogatepass"))


def request_id(headers: Mapping[str, str]) -> str:
    """Return what identifies a request: the same signature twice is a replay, because Slack signs a retry anew."""
    return f"slack:{headers.get('x-slack-signature', '')}"
