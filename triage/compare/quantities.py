"""Reads quantities.txt, and finds in lines of a log what the ranks print of these quantities."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast, get_args

from triage.base.lazy_re import lazy_re
from triage.compare.rules import RulesError
from triage.model.evidence import Origin, Source
from triage.ranks.last import STEP
from triage.ranks.text import Line, Text

FILE = Path(__file__).with_name("quantities.txt")
Worth = Literal["exact", "must", "maybe", "memory"]
_NAME = lazy_re(r"[a-z][a-z0-9]*(?: [a-z0-9]+)*")
_NUMBER = r"[+-]?(?:\d{1,18}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?|nan|inf)"
_UNIT = r"(?: ?(?P<unit>[KMGT]i?B))"
_LOOK_BACK = 1 << 11
# Then this far back, the last as far as a tail can reach.
_REACHES = (1 << 12, 1 << 13, 1 << 14, 1 << 62)
_NEAR = 8
Complete = Callable[[str, Origin], Origin]


@dataclass(frozen=True, slots=True)
class Value:
    """What one rank printed of one quantity. `number` is None for what is compared as text; memory is in bytes."""

    key: str
    worth: Worth
    rank: int
    attempt: int
    step: int | None
    text: str
    number: float | None
    source: str
    offset: int
    origin: Origin
    line: str


def parse(text: str, path: str) -> dict[str, Worth]:
    """Name to worth. Raises RulesError with file and line."""
    names: dict[str, Worth] = {}
    for number, row in enumerate(text.splitlines(), 1):
        word, _, name = row.strip().partition(" ")
        name = " ".join(name.split())
        if not word or word.startswith("#"):
            continue
        if word not in get_args(Worth) or not _NAME.fullmatch(name):
            hint = "write exact, must, maybe or memory, and a name in small letters"
            raise RulesError(f"{row.strip()!r} is no quantity", hint=hint, path=path, line=number)
        names[name] = cast(Worth, word)
    return names


@cache
def names() -> dict[str, Worth]:
    return parse(FILE.read_text(encoding="utf-8"), FILE.name)


@cache
def _worths() -> dict[str, Worth]:
    return {name.replace(" ", ""): worth for name, worth in names().items()}


def _spelled(name: str) -> str:
    return name.replace(" ", "[ _-]?")


@cache
def _told(memory: bool) -> re.Pattern[str]:
    wanted = sorted(
        (name for name, worth in names().items() if (worth == "memory") == memory), key=lambda name: (-len(name), name)
    )
    spelled = "|".join(_spelled(name) for name in wanted)
    value = (
        f"(?P<value>{_NUMBER}){_UNIT}"
        if memory
        else rf"(?P<value>0x[0-9a-f]{{4,64}}|[0-9a-f]{{8,64}}(?![\w.])|{_NUMBER})"
    )
    label = r"(?:(?<![\w.])(?P<of>[^\W\d]\w*(?:\.\w+)+)[ :.'\"]{1,3})?"
    return re.compile(
        rf"(?i){label}(?<![a-z0-9])(?P<name>{spelled})['\"]?(?: ?\(\w+\))? ?(?:[:=]|is|->)? ?['\"]?{value}(?![\w.]*\w\()"
    )


@cache
def gate(memory: bool) -> Any:
    """Finds lines that may tell a quantity; over bytes, in time linear in them."""
    import re2

    wanted = [name for name, worth in names().items() if memory or worth != "memory"]
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = False
    return re2.compile("|".join(sorted(_spelled(name) for name in wanted)).encode(), options)


def observe(
    text: Text,
    source: Source,
    data: bytes,
    base: int,
    complete: Complete,
    *,
    most: int,
    last: bool,
    memory: bool = False,
) -> list[Value]:
    """The values in `data`, which starts at `base` of the source: of the last (or first) `most` lines that may tell
    one.
    """
    places = _ends(data, memory, most) if last else list(itertools.islice(_places(data, memory), most))
    found: list[Value] = []
    for start, end in places:
        for line in text.whole(data[start:end], base + start):
            found += _of_line(source, line, data, start, complete, memory)
    return found


def _ends(data: bytes, memory: bool, most: int) -> list[tuple[int, int]]:
    """The last `most` lines. They mostly stand near the end, so some are looked at one by one before the whole text is
    searched.
    """
    found: list[tuple[int, int]] = []
    end = len(data)
    for _ in range(_NEAR * most):
        start = data.rfind(b"\n", 0, end) + 1
        if gate(memory).search(data[start:end]):
            found.append((start, end))
        if not start or len(found) == most:
            return found[::-1]
        end = start - 1
    for reach in _REACHES:
        start = data.rfind(b"\n", 0, max(0, len(data) - reach)) + 1
        found = list(_places(data, memory, start))
        if not start or len(found) >= most:
            break
    return found[-most:]


def _places(data: bytes, memory: bool, start: int = 0) -> Iterator[tuple[int, int]]:
    done = -1
    for match in gate(memory).finditer(data, start):
        if match.start() >= done:
            start = data.rfind(b"\n", 0, match.start()) + 1
            end = data.find(b"\n", match.end())
            done = end if end >= 0 else len(data)
            yield start, done


def _of_line(source: Source, line: Line, data: bytes, start: int, complete: Complete, memory: bool) -> Iterator[Value]:
    text = line.parsed.text[:2000]
    matches = [match for wanted in ((False, True) if memory else (False,)) for match in _told(wanted).finditer(text)]
    if not matches:
        return
    origin = complete(source.name, line.parsed.origin)
    if origin.rank is None:
        return
    told = STEP.search(text)
    step = int(told[1]) if told else None
    if (
        step is None and line.parsed.origin.rank is None
    ):  # the file is this rank's own: the step stands some lines above
        above = list(STEP.finditer(data[max(0, start - _LOOK_BACK) : start].decode("utf-8", "replace")))
        step = int(above[-1][1]) if above else None
    for match in matches:
        name = re.sub(r"[ _-]+", "", match["name"].lower())
        worth = _worths()[name]
        key = f"{match['of']} {match['name']}" if match["of"] else match["name"]
        unit = match["unit"] if worth == "memory" else ""
        yield Value(
            key, worth, origin.rank, origin.attempt, step, match["value"] + (f" {unit}" if unit else ""),
            _number(match["value"], worth, unit), source.name, line.offset, origin, line.raw[:300],
        )  # fmt: skip


def _number(text: str, worth: Worth, unit: str) -> float | None:
    if worth == "exact":
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    size = 1024 if "i" in unit else 1000
    return number * size ** (" KMGT".index(unit[0].upper())) if unit else number
