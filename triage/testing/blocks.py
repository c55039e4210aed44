"""Check messages against the limits of Slack's Block Kit, for the block types that bots post."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_BLOCKS = 50
MAX_TEXT = 40_000
MAX_ALL_TEXT = 13_000  # measured by others: slightly above it Slack answers msg_blocks_too_long
TOO_LONG = "msg_blocks_too_long"
INVALID = "invalid_blocks"


def find_problem(arguments: Mapping[str, Any]) -> str:
    """Return the error that Slack would answer to a message with these arguments, or an empty string."""
    text, blocks, metadata = arguments.get("text"), arguments.get("blocks"), arguments.get("metadata")
    if not text and not blocks:
        return "no_text"
    if isinstance(text, str) and len(text) > MAX_TEXT:
        return "msg_too_long"
    if metadata and not (
        isinstance(metadata, dict) and metadata.get("event_type") and isinstance(metadata.get("event_payload"), dict)
    ):
        return "invalid_metadata_format"
    if not blocks:
        return ""
    if not isinstance(blocks, list) or len(blocks) > MAX_BLOCKS:
        return INVALID
    block_ids = [block.get("block_id") for block in blocks if isinstance(block, dict) and block.get("block_id")]
    if len(set(block_ids)) < len(block_ids) or not all(
        isinstance(block, dict) and _is_valid_block(block) for block in blocks
    ):
        return INVALID
    return TOO_LONG if sum(map(_text_length, blocks)) > MAX_ALL_TEXT else ""


def _is_valid_block(block: Mapping[str, Any]) -> bool:
    if len(str(block.get("block_id", ""))) > 255:
        return False
    kind = block.get("type")
    if kind == "section":
        fields = block.get("fields", [])
        texts = ([block["text"]] if "text" in block else []) + fields
        return (
            bool(texts)
            and len(fields) <= 10
            and all(_is_valid_text(item, 3000 if item is block.get("text") else 2000) for item in texts)
        )
    if kind == "header":
        return _is_valid_text(block.get("text"), 150, plain=True)
    if kind == "context":
        elements = block.get("elements", [])
        return 0 < len(elements) <= 10 and all(_is_valid_text(item, 3000) for item in elements)
    if kind == "actions":
        elements = block.get("elements", [])
        return (
            0 < len(elements) <= 25
            and all(map(_is_valid_button, elements))
            and len({item["action_id"] for item in elements}) == len(elements)
        )
    if kind == "markdown":
        return 0 < len(block.get("text", "")) <= 12_000
    return kind == "divider"


def _is_valid_text(item: Any, limit: int, plain: bool = False) -> bool:
    if not isinstance(item, dict) or item.get("type") not in (("plain_text",) if plain else ("plain_text", "mrkdwn")):
        return False
    allowed = {"type", "text", "emoji" if item["type"] == "plain_text" else "verbatim"}
    return set(item) <= allowed and isinstance(item.get("text"), str) and 0 < len(item["text"]) <= limit


def _is_valid_button(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and item.get("type") == "button"
        and _is_valid_text(item.get("text"), 75, plain=True)
        and 0 < len(item.get("action_id", "")) <= 255
        and len(item.get("value", "")) <= 2000
        and len(item.get("url", "")) <= 3000
        and item.get("style", "primary") in ("primary", "danger")
    )


def _text_length(item: Any) -> int:
    if isinstance(item, dict):
        return sum(
            len(value) if key == "text" and isinstance(value, str) else _text_length(value)
            for key, value in item.items()
        )
    return sum(map(_text_length, item)) if isinstance(item, list) else 0
