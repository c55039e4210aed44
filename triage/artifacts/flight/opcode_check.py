"""Whether a pickle holds plain data only, decided by its opcodes before anything of it is loaded.

torch writes dumps with torch/csrc/jit/serialization/pickler.cpp: protocol 2, eighteen opcodes, strings and frames
shared by the memo, one tuple in each entry. `is_canonical` checks such bytes with one regular expression, as fast as
they can be loaded. All other pickles go to `safe_unpickler`, which names what it refuses.
"""

from __future__ import annotations

import io
import pickle
import re
from typing import Any, NoReturn

from triage.artifacts.interface import ArtifactError
from triage.base.lazy_re import lazy_re

MAX_CONTAINERS = 4_000_000
"""Lists and dictionaries in one dump; a ring buffer of 20,000 entries holds about 200,000."""

# Only tuples can be hashed and be deep. Here a tuple is made of two strings; a value from the memo may not be put there
# again, and `is_canonical` remembers where a tuple is put, so a tuple holds at most tuples of strings. The run does not
# contain a reference before a new string, nor a tuple that is put into the memo: these are checked one by one.
# (No groups: CPython's possessive repeats lose them.)
_RUN = lazy_re(
    rb"(?:[}\](euN\x88\x89]++|h.(?:h.\x86(?![qr])|(?![qrX\x86]|h.\x86|j....\x86))|[Kq].|M..|J...."
    rb"|j..[\x00-\x3f]\x00(?![qrX\x86]|h.\x86|j....\x86)|r..[\x00-\x3f]\x00|\x8a\x08.{8}|G.{8})++",
    re.S,
)
_REF = lazy_re(rb"(?:h.|j..[\x00-\x3f]\x00)(?![qr])", re.S)
_PUT = lazy_re(rb"q.|r..[\x00-\x3f]\x00", re.S)
_DEEP = b"](" * 8  # a dump of torch nests at most four containers


def refuse(what: str, offset: int) -> NoReturn:
    """Raise an ArtifactError that names what a dump must not hold."""
    raise ArtifactError(
        f"refused at byte {offset}: {what}; a dump of torch holds plain data only, so this file was not loaded",
        hint="find out who wrote this file before another program opens it",
    )


def check_size(data: bytes) -> None:
    """Refuse data that would unpickle to far more objects than a dump can hold."""
    containers = data.count(b"}") + data.count(b"]")  # bytes inside numbers count too; that only makes it strict
    if containers > MAX_CONTAINERS:
        refuse(f"a memory bomb, more than {MAX_CONTAINERS:,} containers", 0)


def is_canonical(data: bytes) -> bool:
    """Return whether the pickle holds only opcodes that torch writes, and is complete."""
    if _DEEP in data:
        return False
    position, end = 2, len(data)
    texts = 0  # strings on top of the stack
    tuples: set[int] = set()  # places in the memo that hold a tuple
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


class _PlainUnpickler(pickle.Unpickler):
    """A second barrier: even if `is_canonical` were wrong, no name is ever looked up."""

    def find_class(self, module: str, name: str) -> Any:
        refuse(f"global {module}.{name}", 0)

    def persistent_load(self, pid: Any) -> Any:
        refuse("a persistent id", 0)


def load_canonical(data: bytes) -> Any:
    """Load a pickle that `is_canonical` accepts."""
    return _PlainUnpickler(io.BufferedReader(io.BytesIO(data), 1 << 17)).load()
