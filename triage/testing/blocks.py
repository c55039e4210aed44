"""What Slack accepts in a message: the limits of Block Kit as its reference pages give them, for the block types that
bots post.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BLOCKS = 50
TEXT = 40_000
ALL_TEXT = 13_000  # measured by others: somewhat above it Slack answers msg_blocks_too_long
LONG = "msg_blocks_too_long"
BAD = "invalid_blocks"


def problem(given: Mapping[str, Any]) -> str:
    """The error that Slack would answer to a message with these arguments, or nothing."""
    text, blocks, metadata = given.get("text"), given.get("blocks"), given.get("metadata")
    if not text and not blocks:
        return "no_text"
    if isinstance(text, str) and len(text) > TEXT:
        return "msg_too_long"
    if metadata and not (
        isinstance(metadata, dict) and metadata.get("event_type") and isinstance(metadata.get("event_payload"), dict)
    ):
        return "invalid_metadata_format"
    if not blocks:
        return ""
    if not isinstance(blocks, list) or len(blocks) > BLOCKS:
        return BAD
    named = [block.get("block_id") for block in blocks if isinstance(block, dict) and block.get("block_id")]
    if len(set(named)) < len(named) or not all(isinstance(block, dict) and _valid(block) for block in blocks):
        return BAD
    return LONG if sum(map(_texts, blocks)) > ALL_TEXT else ""


def _valid(block: Mapping[str, Any]) -> bool:
    if len(str(block.get("block_id", ""))) > 255:
        return False
    kind = block.get("type")
    if kind == "section":
        fields = block.get("fields", [])
        texts = ([block["text"]] if "text" in block else []) + fields
        return (
            bool(texts)
            and len(fields) <= 10
            and all(_text(item, 3000 if item is block.get("text") else 2000) for item in texts)
        )
    if kind == "header":
        return _text(block.get("text"), 150, plain=True)
    if kind == "context":
        elements = block.get("elements", [])
        return 0 < len(elements) <= 10 and all(_text(item, 3000) for item in elements)
    if kind == "actions":
        elements = block.get("elements", [])
        return (
            0 < len(elements) <= 25
            and all(map(_button, elements))
            and len({item["action_id"] for item in elements}) == len(elements)
        )
    if kind == "markdown":
        return 0 < len(block.get("text", "")) <= 12_000
    return kind == "divider"


def _text(item: Any, most: int, plain: bool = False) -> bool:
    if not isinstance(item, dict) or item.get("type") not in (("plain_text",) if plain else ("plain_text", "mrkdwn")):
        return False
    allowed = {"type", "text", "emoji" if item["type"] == "plain_text" else "verbatim"}
    return set(item) <= allowed and isinstance(item.get("text"), str) and 0 < len(item["text"]) <= most


def _button(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and item.get("type") == "button"
        and _text(item.get("text"), 75, plain=True)
        and 0 < len(item.get("action_id", "")) <= 255
        and len(item.get("value", "")) <= 2000
        and len(item.get("url", "")) <= 3000
        and item.get("style", "primary") in ("primary", "danger")
    )


def _texts(item: Any) -> int:
    if isinstance(item, dict):
        return sum(
            len(value) if key == "text" and isinstance(value, str) else _texts(value) for key, value in item.items()
        )
    return sum(map(_texts, item)) if isinstance(item, list) else 0
