"""Load pickles of plain data only, decided by their opcodes before anything of them is loaded.

torch writes dumps with torch/csrc/jit/serialization/pickler.cpp: protocol 2, eighteen opcodes, strings and frames
shared by the memo, one tuple in each entry. `is_canonical` checks such bytes with one regular expression, as fast as
they can be loaded. All other pickles (not written as usual, ending early, or hostile) go to `SafeUnpickler`: it builds
lists, dictionaries, strings and numbers and nothing else, looks up no name and calls nothing. Tuples become lists. Its
errors name what it refuses. A pickle that ends early gives the part before its end.
"""

from __future__ import annotations

import io
import pickle
import re
import struct
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
MAX_DEPTH = 32

# Names for what is refused: https://docs.python.org/3/library/pickletools.html
_NAMES = {
    b"0": "POP",
    b"1": "POP_MARK",
    b"2": "DUP",
    b"F": "FLOAT",
    b"I": "INT",
    b"L": "LONG",
    b"R": "REDUCE",
    b"S": "STRING",
    b"V": "UNICODE",
    b"b": "BUILD",
    b"g": "GET",
    b"o": "OBJ",
    b"p": "PUT",
    b"\x81": "NEWOBJ",
    b"\x8b": "LONG4",
    b"\x8f": "EMPTY_SET",
    b"\x90": "ADDITEMS",
    b"\x91": "FROZENSET",
    b"\x92": "NEWOBJ_EX",
    b"\x96": "BYTEARRAY8",
    b"\x97": "NEXT_BUFFER",
    b"\x98": "READONLY_BUFFER",
}
_NUMBERS = {b"M": "<H", b"J": "<i", b"G": ">d"}
_LENGTHS = {b"\x8c": 1, b"\x8d": 8, b"U": 1, b"T": 4, b"C": 1, b"B": 4}
_CONSTANTS = {b"N": None, b"\x88": True, b"\x89": False}
_EXTENSIONS = {b"\x82": 1, b"\x83": 2, b"\x84": 4}


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


class TruncatedPickle(Exception):
    """The bytes end within the pickle."""


class SafeUnpickler:
    """Reads one pickle; `is_complete` is False afterwards where it ended early."""

    def __init__(self, data: bytes, memo: dict[int, Any] | None = None) -> None:
        self._data = data
        self._position = 0
        self._items: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {} if memo is None else memo
        self._depth: dict[int, int] = {}
        self._containers = 0
        self.is_complete = True

    def run(self) -> Any:
        """Return the value; open containers of a pickle that ends early are closed."""
        try:
            while not self._step():
                pass
            if self._marks:
                raise TruncatedPickle
        except TruncatedPickle:
            self.is_complete = False
            while self._marks:
                items, self._items = self._items, self._marks.pop()
                self._close(items)
        except (IndexError, KeyError, TypeError, ValueError, struct.error) as error:
            refuse(f"broken opcodes ({type(error).__name__})", self._position)
        return self._items[0] if self._items else None

    def _take(self, count: int) -> bytes:
        start, self._position = self._position, self._position + count
        if self._position > len(self._data):
            self._position = start
            raise TruncatedPickle
        return self._data[start : self._position]

    def _step(self) -> bool:
        """Execute one opcode; True at the end."""
        start = self._position
        code = self._take(1)
        if code == b"h":  # most opcodes are one of the first three
            self._items.append(self._memo[self._take(1)[0]])
        elif code == b"K":
            self._items.append(self._take(1)[0])
        elif code == b"q":
            self._memo[self._take(1)[0]] = self._items[-1]
        elif code == b"X":
            self._items.append(self._text(4, start))
        elif code == b".":
            return True
        elif code in _CONSTANTS:
            self._items.append(_CONSTANTS[code])
        else:
            self._rare_step(code, start)
        return False

    def _text(self, width: int, start: int) -> str:
        length = int.from_bytes(self._take(width), "little")
        if length > len(self._data):
            refuse(f"a memory bomb, a string of {length:,} bytes in a file of {len(self._data):,}", start)
        return self._take(length).decode("utf-8", "replace")

    def _rare_step(self, code: bytes, start: int) -> None:
        """Execute an opcode that torch writes rarely or never."""
        if code in _NUMBERS:
            form = _NUMBERS[code]
            self._items.append(struct.unpack(form, self._take(struct.calcsize(form)))[0])
        elif code in _LENGTHS:
            self._items.append(self._text(_LENGTHS[code], start))
        elif code == b"\x8a":
            self._items.append(int.from_bytes(self._take(self._take(1)[0]), "little", signed=True))
        elif code in b"]})(eutldas\x85\x86\x87":
            self._container_step(code, start)
        elif code in b"r\x94":
            place = len(self._memo) if code == b"\x94" else int.from_bytes(self._take(4), "little")
            self._memo[place] = self._items[-1]
        elif code == b"j":
            self._items.append(self._memo[int.from_bytes(self._take(4), "little")])
        elif code in b"\x80\x95":
            self._take(1 if code == b"\x80" else 8)
        else:
            self._refuse(code, start)

    def _container_step(self, code: bytes, start: int) -> None:
        """Execute an opcode that opens, fills or closes a container."""
        if code in b"]})":
            self._items.append(self._new({} if code == b"}" else []))
        elif code == b"(":
            self._marks.append(self._items)
            self._items = []
            if len(self._marks) > MAX_DEPTH:
                refuse(f"deep nesting, more than {MAX_DEPTH} levels", start)
        elif code in b"eutld":
            items, self._items = self._items, self._marks.pop()
            if code in b"tld":
                self._items.append(self._new({} if code == b"d" else []))
            self._close(items)
        elif code in b"as":
            count = 1 if code == b"a" else 2
            items, self._items[-count:] = self._items[-count:], []
            self._close(items)
        else:  # TUPLE1, TUPLE2 or TUPLE3
            count = code[0] - 0x84
            items = self._items[-count:]
            self._items[-count:] = [self._new([])]
            self._close(items)

    def _new(self, container: Any) -> Any:
        """Count the container, and refuse more than a dump can hold."""
        self._containers += 1
        if self._containers > MAX_CONTAINERS:
            refuse(f"a memory bomb, more than {MAX_CONTAINERS:,} containers", self._position)
        return container

    def _close(self, items: list[Any]) -> None:
        """Put items into the container below them on the stack."""
        target = self._items[-1] if self._items else None
        if isinstance(target, list):
            target.extend(items)
        elif isinstance(target, dict):
            for key, value in zip(items[::2], items[1::2], strict=False):
                if not isinstance(key, (str, int)):
                    refuse("a key that is neither text nor number", self._position)
                target[key] = value
        elif self.is_complete:
            refuse("items without a container", self._position)
        below = max((self._depth.get(id(item), 1) for item in items if isinstance(item, (list, dict))), default=0)
        if below:
            self._depth[id(target)] = max(self._depth.get(id(target), 1), below + 1)
            if below >= MAX_DEPTH:
                refuse(f"deep nesting, more than {MAX_DEPTH} levels", self._position)

    def _refuse(self, code: bytes, start: int) -> None:
        """Raise the error that names an opcode which could execute something."""
        if code in b"ci":
            lines = self._data[start + 1 : start + 400].split(b"\n")[:2]
            refuse("global " + ".".join(line.decode("utf-8", "replace")[:100] for line in lines), start)
        if code == b"\x93":
            refuse("global " + ".".join(str(item)[:100] for item in self._items[-2:]), start)
        if code in b"PQ":
            refuse("a persistent id", start)
        if code in _EXTENSIONS:
            refuse(f"extension registry code {int.from_bytes(self._take(_EXTENSIONS[code]), 'little')}", start)
        refuse(f"opcode {_NAMES.get(code, repr(code))}", start)
