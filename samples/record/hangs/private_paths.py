"""Write recorded files without the paths and the host name of the machine that recorded them."""

from __future__ import annotations

import re
import socket
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def store(path: Path, data: bytes, work: Path) -> None:
    """Write the data without the paths of this machine; a string of a pickle is X, its length and its text."""
    for old, new in ((work, "/home/user/job"), (HERE, "/opt/train"), (sys.prefix, "/opt/train/venv")):
        data = replace_path(data, str(old).encode(), new.encode())
    data = replace_path(data, sys.base_prefix.encode(), b"/opt/python")
    for name in {socket.gethostname(), socket.getfqdn()} - {"localhost"}:
        data = re.sub(rb"(?<![\w./-])" + re.escape(name.encode()) + rb"(?![\w/-])", b"node1", data)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def replace_path(data: bytes, old: bytes, new: bytes) -> bytes:
    """Replace a path in text and in pickles."""

    def string(match: re.Match[bytes]) -> bytes:
        length = int.from_bytes(match[1], "little") - len(old) + len(new)
        return b"X" + length.to_bytes(4, "little") + new

    data = re.sub(rb"X(..\0\0)" + re.escape(old), string, data, flags=re.S)
    return data.replace(old, new)
