"""Is a pickle made of plain data only? Told from its opcodes, before anything of it is loaded.

torch writes dumps with torch/csrc/jit/serialization/pickler.cpp: protocol 2, eighteen opcodes, strings and frames
shared by the memo, one
tuple an entry. `canonical` goes over such bytes with one regular expression, as fast as they can be loaded. Whatever it
does not know
goes to `careful`, which names what it refuses.
"""

from __future__ import annotations

import io
import pickle
import re
from typing import Any, NoReturn

from triage.artifacts.interface import ArtifactError
from triage.base.lazy_re import lazy_re

MAX_CONTAINERS = 4_000_000
"""Lists and dictionaries in one dump; a buffer of 20,000 entries holds about 200,000."""

# Tuples are what could be hashed and be deep. Only two strings make one; what comes from the memo may not be put there
# again, and where
# a tuple is put there is remembered. So a tuple holds tuples of strings at most. A reference before a new string, and a
# tuple that is
# put into the memo, are not in the run: they are looked at one by one. (No groups: CPython's possessive repeats lose
# them.)
_RUN = lazy_re(
    rb"(?:[}\](euN\x88\x89]++|h.(?:h.\x86(?![qr])|(?![qrX\x86]|h.\x86|j....\x86))|[Kq].|M..|J...."
    rb"|j..[\x00-\x3f]\x00(?![qrX\x86]|h.\x86|j....\x86)|r..[\x00-\x3f]\x00|\x8a\x08.{8}|G.{8})++",
    re.S,
)
_REF = lazy_re(rb"(?:h.|j..[\x00-\x3f]\x00)(?![qr])", re.S)
_PUT = lazy_re(rb"q.|r..[\x00-\x3f]\x00", re.S)
_DEEP = b"](" * 8  # a dump of torch opens at most four containers one in another


def refuse(what: str, offset: int) -> NoReturn:
    """Raise the error that names what a dump must not hold."""
    raise ArtifactError(
        f"refused at byte {offset}: {what}; a dump of torch holds only plain data, so this file was not loaded",
        hint="find out who wrote this file before any other program opens it",
    )


def check_size(data: bytes) -> None:
    """Refuse what would unfold into far more objects than a dump can hold."""
    containers = data.count(b"}") + data.count(b"]")  # bytes inside numbers count too; that only makes it strict
    if containers > MAX_CONTAINERS:
        refuse(f"a memory bomb, more than {MAX_CONTAINERS:,} containers", 0)


def canonical(data: bytes) -> bool:
    """Does the pickle hold only opcodes that torch writes, complete up to its end?"""
    if _DEEP in data:
        return False
    position, end = 2, len(data)
    texts = 0  # how many strings lie on top of each other
    tuples: set[int] = set()  # where in the memo they are
    while position < end:
        run = _RUN.match(data, position)
        if run:
            position, texts = run.end(), 0
        code = data[position : position + 1]
        if code == b"X":
            start = position + 5
            position = start + int.from_bytes(data[position + 1 : start], "little")
            put = _PUT.match(data, position)
            position, texts = put.end() if put else position, texts + 1
        elif reference := _REF.match(data, position):
            position = reference.end()
            texts = texts + 1 if _index(reference[0]) not in tuples else 0
        elif code == b"\x86" and texts >= 2:
            position, texts = position + 1, 0
            if put := _PUT.match(data, position):
                tuples.add(_index(put[0]))
                position = put.end()
        else:
            return code == b"." and position == end - 1
    return False


def _index(reference: bytes) -> int:
    return int.from_bytes(reference[1:], "little")


class _Plain(pickle.Unpickler):
    """The second fence: even if `canonical` were wrong, no name is ever looked up."""

    def find_class(self, module: str, name: str) -> Any:
        refuse(f"global {module}.{name}", 0)

    def persistent_load(self, pid: Any) -> Any:
        refuse("a persistent id", 0)


def load_canonical(data: bytes) -> Any:
    """The value of a pickle that `canonical` has passed."""
    return _Plain(io.BufferedReader(io.BytesIO(data), 1 << 17)).load()
