"""Quote any text as a YAML scalar."""

from __future__ import annotations


def double_quote(text: str) -> str:
    """A YAML double-quoted scalar, with escapes for unprintable characters."""
    return '"' + "".join(map(_escape_character, text.encode("utf-8", "replace").decode())) + '"'


def single_quote(text: str) -> str:
    """A YAML single-quoted scalar, in which backslashes stay as they are."""
    return "'" + text.replace("'", "''") + "'" if text.isprintable() else double_quote(text)


def _escape_character(character: str) -> str:
    if character in ('"', "\\"):
        return "\\" + character
    if character == "\n":
        return "\\n"
    if character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"
