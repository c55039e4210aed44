"""A small machine for the opcodes of plain data, for pickles that torch did not write as usual, that end early, or that
mean harm.

It builds lists, dictionaries, strings and numbers and knows nothing else: no name is looked up, nothing is called.
Tuples become lists.
What is refused is named. A pickle that ends early gives what was complete until then.
"""

from __future__ import annotations

import struct
from typing import Any

from triage.artifacts.flight.opcodes import MAX_CONTAINERS, refuse

MAX_DEPTH = 32

# https://docs.python.org/3/library/pickletools.html; only to name what is refused.
_NAMES = {
    b"0": "POP", b"1": "POP_MARK", b"2": "DUP", b"F": "FLOAT", b"I": "INT", b"L": "LONG", b"R": "REDUCE", b"S": "STRING", b"V": "UNICODE",
    b"b": "BUILD", b"g": "GET", b"o": "OBJ", b"p": "PUT", b"\x81": "NEWOBJ", b"\x8b": "LONG4", b"\x8f": "EMPTY_SET", b"\x90": "ADDITEMS",
    b"\x91": "FROZENSET", b"\x92": "NEWOBJ_EX", b"\x96": "BYTEARRAY8", b"\x97": "NEXT_BUFFER", b"\x98": "READONLY_BUFFER",
}  # fmt: skip
_NUMBERS = {b"M": "<H", b"J": "<i", b"G": ">d"}
_LENGTHS = {b"\x8c": 1, b"\x8d": 8, b"U": 1, b"T": 4, b"C": 1, b"B": 4}
_CONSTANTS = {b"N": None, b"\x88": True, b"\x89": False}
_EXTENSIONS = {b"\x82": 1, b"\x83": 2, b"\x84": 4}


class EarlyEnd(Exception):
    """The bytes end in the middle."""


class Machine:
    """One pickle being read. `value` and `whole` are the result."""

    def __init__(self, data: bytes, memo: dict[int, Any] | None = None) -> None:
        self._data = data
        self._at = 0
        self._items: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {} if memo is None else memo
        self._depth: dict[int, int] = {}
        self._containers = 0
        self.whole = True

    def run(self) -> Any:
        """The value; of a pickle that ends early, with the containers closed that were open."""
        try:
            while not self._step():
                pass
            if self._marks:
                raise EarlyEnd
        except EarlyEnd:
            self.whole = False
            while self._marks:
                done, self._items = self._items, self._marks.pop()
                self._close(done)
        except (IndexError, KeyError, TypeError, ValueError, struct.error) as error:
            refuse(f"broken opcodes ({type(error).__name__})", self._at)
        return self._items[0] if self._items else None

    def _take(self, count: int) -> bytes:
        start, self._at = self._at, self._at + count
        if self._at > len(self._data):
            self._at = start
            raise EarlyEnd
        return self._data[start : self._at]

    def _step(self) -> bool:
        """One opcode; True at the end."""
        start = self._at
        code = self._take(1)
        if code == b"h":  # four of five opcodes are the first three
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
            self._rarer(code, start)
        return False

    def _text(self, width: int, start: int) -> str:
        length = int.from_bytes(self._take(width), "little")
        if length > len(self._data):
            refuse(f"a memory bomb, a string of {length:,} bytes in a file of {len(self._data):,}", start)
        return self._take(length).decode("utf-8", "replace")

    def _rarer(self, code: bytes, start: int) -> None:
        if code in _NUMBERS:
            form = _NUMBERS[code]
            self._items.append(struct.unpack(form, self._take(struct.calcsize(form)))[0])
        elif code in _LENGTHS:
            self._items.append(self._text(_LENGTHS[code], start))
        elif code == b"\x8a":
            self._items.append(int.from_bytes(self._take(self._take(1)[0]), "little", signed=True))
        elif code in b"]})":
            self._items.append(self._new({} if code == b"}" else []))
        elif code == b"(":
            self._marks.append(self._items)
            self._items = []
            if len(self._marks) > MAX_DEPTH:
                refuse(f"deep nesting, more than {MAX_DEPTH} levels", start)
        elif code in b"eutld":
            done, self._items = self._items, self._marks.pop()
            if code in b"tld":
                self._items.append(self._new({} if code == b"d" else []))
            self._close(done)
        elif code in b"as":
            keep = 1 if code == b"a" else 2
            done, self._items[-keep:] = self._items[-keep:], []
            self._close(done)
        elif code in b"\x85\x86\x87":
            count = code[0] - 0x84
            done = self._items[-count:]
            self._items[-count:] = [self._new([])]
            self._close(done)
        elif code in b"r\x94":
            self._memo[len(self._memo) if code == b"\x94" else int.from_bytes(self._take(4), "little")] = self._items[
                -1
            ]
        elif code == b"j":
            self._items.append(self._memo[int.from_bytes(self._take(4), "little")])
        elif code in b"\x80\x95":
            self._take(1 if code == b"\x80" else 8)
        else:
            self._refuse(code, start)

    def _new(self, container: Any) -> Any:
        self._containers += 1
        if self._containers > MAX_CONTAINERS:
            refuse(f"a memory bomb, more than {MAX_CONTAINERS:,} containers", self._at)
        return container

    def _close(self, items: list[Any]) -> None:
        """Put items into the container before them."""
        target = self._items[-1] if self._items else None
        if isinstance(target, list):
            target.extend(items)
        elif isinstance(target, dict):
            for key, value in zip(items[::2], items[1::2], strict=False):
                if not isinstance(key, (str, int)):
                    refuse("a key that is neither text nor number", self._at)
                target[key] = value
        elif self.whole:
            refuse("items without a container", self._at)
        below = max((self._depth.get(id(item), 1) for item in items if isinstance(item, (list, dict))), default=0)
        if below:
            self._depth[id(target)] = max(self._depth.get(id(target), 1), below + 1)
            if below >= MAX_DEPTH:
                refuse(f"deep nesting, more than {MAX_DEPTH} levels", self._at)

    def _refuse(self, code: bytes, start: int) -> None:
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
