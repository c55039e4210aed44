"""How one process sends results to another: as msgpack, and as JSON where msgpack cannot hold them."""

from __future__ import annotations

import json
from typing import Any

import msgspec

_MSGPACK, _JSON = b"M", b"J"


def pack_result(result: Any) -> bytes:
    """Return lists, dictionaries, texts and numbers as bytes."""
    try:
        return _MSGPACK + msgspec.msgpack.encode(result)
    except (OverflowError, UnicodeEncodeError):  # an integer of more than 64 bits, a lone surrogate
        return _JSON + json.dumps(result).encode()


def unpack_result(data: bytes) -> Any:
    """Return what `pack_result` packed."""
    return msgspec.msgpack.decode(data[1:]) if data[:1] == _MSGPACK else json.loads(data[1:])
