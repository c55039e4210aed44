"""GitHub's workflow commands: lines of output that become annotations. Used by `github` and by `catalog check`.

Escaping follows the runner's toolkit: `%`, CR and LF in a message, also `:` and `,` in a property.
"""

from __future__ import annotations

from collections.abc import Mapping


def command(kind: str, message: str, properties: Mapping[str, object] = {}) -> str:
    """Return `::error file=…,line=…::message`; properties that are None are left out."""
    where = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items() if value is not None)
    return f"::{kind}{' ' if where else ''}{where}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
