"""Read quantities.txt, and extract the values of these quantities from log lines."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

import msgspec

from triage.base.digit_masks import mask_digits, mask_text
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import compile_cached, lazy_re
from triage.base.masked_re import widen_digits
from triage.base.shared_types import share_type
from triage.compare.log_steps import read_last_step, read_step
from triage.compare.setting_rules import RulesError
from triage.model.evidence import Origin, Source
from triage.records.text import Line, Text

FILE = Path(__file__).with_name("quantities.txt")
Agreement = Literal["exact", "must", "maybe", "fixed", "memory"]
Writer = tuple[int, str]
"""Rank (-1: unknown) and run; without a rank, also what else names the writer. Sorts by rank."""
_NAME = lazy_re(r"[a-z][a-z0-9]*(?: [a-z0-9]+)*")
_LONGEST_KEPT = 1 << 11  # bytes of a line whose mask is remembered
_NUMBER = r"[+-]?(?:\d{1,18}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?|nan|inf)"
_GROUPED = r"\d{1,3}(?:,\d{3}){1,5}(?![\w.])"
_SHAPE = r"(?:torch\.Size\()?[\[(]\d{1,12}(?:, ?\d{1,12}){0,7},?[\])]\)?"
_RANK = r"(?:rank|worker|replica)[ _]?[(\[]?\d{1,6}[)\]]?"
_UNIT = r"(?: ?(?P<unit>[KMGT]i?B))"
# A number of one part of a model that is spread over ranks: it differs by design.
_OF_MODEL_PART = lazy_re(r"(?i)model[_ -]parallel|pipeline|\bstage\b|\b[tpe]p[_ ]?rank\b|\bshard")
_LOOK_BACK = 1 << 11  # bytes above a line that are searched for its step
_SINGLE_LINES = 8  # lines for each wanted one that are searched one by one from the end
# Bytes from the end that are searched next, the last as far as a tail can reach.
_REACHES = (1 << 12, 1 << 13, 1 << 14, 1 << 62)
CompleteOrigin = Callable[[str, Origin], Origin]


@dataclass(frozen=True, slots=True)
class RankValue:
    """The value of one quantity that one rank printed, or a process without a known rank.

    `number` is None for values that are compared as text; memory is in bytes. `run` names the run, where the files are
    of several.
    """

    key: str
    agreement: Agreement
    rank: int | None
    attempt: int
    step: int | None
    text: str
    number: float | None
    source: str
    offset: int
    origin: Origin
    line: str
    run: str = ""

    @property
    def writer(self) -> Writer:
        """Who printed it."""
        if self.rank is not None:
            return self.rank, self.run
        place = self.origin.host or self.source
        return -1, f"{self.run} {place} {'' if self.origin.local_rank is None else self.origin.local_rank}"


def parse_quantities(text: str, path: str) -> dict[str, Agreement]:
    """Parse lines such as `must grad norm`: name to agreement. RulesError with file and line for any other line."""
    agreements: dict[str, Agreement] = {}
    for number, row in enumerate(text.splitlines(), 1):
        agreement, _, name = row.strip().partition(" ")
        name = " ".join(name.split())
        if not agreement or agreement.startswith("#"):
            continue
        if agreement not in get_args(Agreement) or not _NAME.fullmatch(name):
            hint = "write exact, must, maybe, fixed or memory, and a name in small letters"
            raise RulesError(f"{row.strip()!r} is not a quantity", hint=hint, path=path, line=number)
        agreements[name] = cast(Agreement, agreement)
    return agreements


@cache
def load_quantities() -> dict[str, Agreement]:
    """The shipped quantities: name to agreement."""
    return parse_quantities(FILE.read_text(encoding="utf-8"), FILE.name)


@cache
def _agreements() -> dict[str, Agreement]:
    return {name.replace(" ", ""): agreement for name, agreement in load_quantities().items()}


def _spelling_pattern(name: str) -> str:
    return name.replace(" ", "[ _-]?")


@cache
def _value_pattern(memory: bool) -> re.Pattern[str]:
    names = [name for name, agreement in load_quantities().items() if (agreement == "memory") == memory]
    spelled = "|".join(map(_spelling_pattern, sorted(names, key=lambda name: (-len(name), name))))
    value = (
        f"(?P<value>{_NUMBER}){_UNIT}"
        if memory
        else rf"(?P<value>0x[0-9a-f]{{4,64}}|[0-9a-f]{{8,64}}(?![\w.])|{_SHAPE}|{_GROUPED}|{_NUMBER})"
    )
    label = r"(?:(?<![\w.])(?P<of>[^\W\d]\w*(?:\.\w+)+)[ :.'\"]{1,3})?"
    return compile_cached(
        rf"(?i){label}(?<![a-z0-9])(?P<name>(?:[a-z0-9]{{1,16}}_){{0,3}}(?P<quantity>{spelled}))['\"]?"
        rf"(?: ?[(\[][a-z][\w -]{{0,24}}[)\]]| on {_RANK})? ?(?:[:=]|is|->)? ?(?:tensor\()?['\"]?{value}(?![\w.]*\w\()"
    )


class _ValuePlace(NamedTuple):
    """Where the parts of a value stand in a text."""

    agreement: Agreement
    of: slice
    name: slice
    value: slice
    unit: slice


def _find_values(text: str, memory: bool) -> Sequence[_ValuePlace]:
    """Return the places of the values in a text.

    Where no digit of a pattern can be meant, they stand at the same places in all texts with these digits or others.
    """
    places = _find_in_mask(mask_text(text), memory)
    return _find_in_text(text, memory) if places is None else places


@lru_cache(1 << 12)
def _find_in_mask(mask: str, memory: bool) -> Sequence[_ValuePlace] | None:
    return None if _digit_pattern().search(mask) else _find_in_text(mask, memory)


def _find_in_text(text: str, memory: bool) -> Sequence[_ValuePlace]:
    matches = list(_value_pattern(False).finditer(text))
    matches += _value_pattern(True).finditer(text) if memory else []
    places = []
    for match in matches:
        agreement = _agreements()[re.sub(r"[ _-]+", "", match["quantity"].lower())]
        parts = [slice(*match.span(part)) if match[part] else slice(0) for part in ("of", "name", "value")]
        unit = slice(*match.span("unit")) if agreement == "memory" else slice(0)
        places.append(_ValuePlace(agreement, parts[0], parts[1], parts[2], unit))
    return tuple(places)


def _may_have_quantity(line: bytes, memory: bool) -> bool:
    """Whether the pattern of quantities is found in a line."""
    answer = _may_mask_have_quantity(mask_digits(line), memory) if len(line) <= _LONGEST_KEPT else None
    return quantity_pattern(memory).search(line) is not None if answer is None else answer


@lru_cache(1 << 12)
def _may_mask_have_quantity(mask: bytes, memory: bool) -> bool | None:
    """The same of all lines with a mask; None where a digit of a name may be meant."""
    if _digit_pattern().search(mask.decode("latin-1")):
        return None
    return quantity_pattern(memory).search(mask) is not None


@cache
def _digit_pattern() -> re.Pattern[str]:
    """A pattern of masks in whose texts a digit of a value's pattern may be meant: `sha256`, `params l2`, `0x`."""
    names = [name for name in load_quantities() if any(map(str.isdigit, name))]
    return compile_cached("(?i)" + "|".join(map(widen_digits, ["0x", *map(_spelling_pattern, names)])))


@cache
def quantity_pattern(memory: bool) -> Any:
    """A pattern of lines that may contain a quantity; over bytes, in time linear in them."""
    return _compile_names(name for name, agreement in load_quantities().items() if memory or agreement != "memory")


@cache
def fixed_pattern() -> Any:
    """A pattern of lines that may contain a quantity that is printed once."""
    return _compile_names(name for name, agreement in load_quantities().items() if agreement == "fixed")


def _compile_names(names: Iterable[str]) -> Any:
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = False
    return re2.compile("|".join(sorted(map(_spelling_pattern, names))).encode(), options)


def unpack_values(packed: list[dict[str, Any]], shared: dict[str, str]) -> list[RankValue]:
    """Return the values that another process packed as `msgspec.to_builtins` does.

    `shared` has the names of earlier values; those of these are added, so that equal ones are one object.
    """
    for row in packed:
        for name in ("key", "agreement", "source"):
            row[name] = shared.setdefault(row[name], row[name])
    return msgspec.convert(packed, share_type(list[RankValue]))


def extract_values(
    text: Text,
    source: Source,
    data: bytes,
    base: int,
    complete: CompleteOrigin,
    *,
    most: int,
    last: bool,
    memory: bool = False,
) -> list[RankValue]:
    """The values in the last (or first) `most` lines of `data` that may contain one.

    `data` starts at offset `base` of the source. `complete` fills in what is known of a line's origin.
    """
    lines = _last_lines(data, memory, most) if last else itertools.islice(_candidate_lines(data, memory), most)
    return [
        value
        for start, end in lines
        for line in text.parse_line(data[start:end], base + start)
        for value in _line_values(source, line, data, start, complete, memory)
    ]


def _last_lines(data: bytes, memory: bool, most: int) -> list[tuple[int, int]]:
    """The last `most` candidate lines. Most are near the end, so single lines are searched before larger parts."""
    lines: list[tuple[int, int]] = []
    end = len(data)
    for _ in range(_SINGLE_LINES * most):
        start = data.rfind(b"\n", 0, end) + 1
        if _may_have_quantity(data[start:end], memory):
            lines.append((start, end))
        if not start or len(lines) == most:
            return lines[::-1]
        end = start - 1
    for reach in _REACHES:
        start = data.rfind(b"\n", 0, max(0, len(data) - reach)) + 1
        lines = list(_candidate_lines(data, memory, start))
        if not start or len(lines) >= most:
            break
    return lines[-most:]


def _candidate_lines(data: bytes, memory: bool, start: int = 0) -> Iterator[tuple[int, int]]:
    """(start, end) of the lines that may contain a quantity, each once."""
    line_end = -1
    for match in quantity_pattern(memory).finditer(data, start):
        if match.start() >= line_end:
            start = data.rfind(b"\n", 0, match.start()) + 1
            end = data.find(b"\n", match.end())
            line_end = end if end >= 0 else len(data)
            yield start, line_end


def _line_values(
    source: Source, line: Line, data: bytes, start: int, complete: CompleteOrigin, memory: bool
) -> Iterator[RankValue]:
    text = line.parsed.text[:2000]
    places = _find_values(text, memory)
    if not places:
        return
    origin = complete(source.name, line.parsed.origin)
    step = read_step(text)
    if step is None and line.parsed.origin.rank is None:  # the file is this rank's own: the step is some lines above
        step = read_last_step(data[max(0, start - _LOOK_BACK) : start].decode("utf-8", "replace"))
    shown = line.raw[:300]
    for agreement, of, name, value, unit in places:
        if agreement == "fixed" and _OF_MODEL_PART.search(text):
            continue
        yield RankValue(
            key=f"{text[of]} {text[name]}" if text[of] else text[name],
            agreement=agreement,
            rank=origin.rank,
            attempt=origin.attempt,
            step=None if agreement == "fixed" else step,
            text=text[value] + (f" {text[unit]}" if text[unit] else ""),
            number=_parse_number(text[value], agreement, text[unit]),
            source=source.name,
            offset=line.offset,
            origin=origin,
            line=shown,
        )


def _parse_number(text: str, agreement: Agreement, unit: str) -> float | None:
    if agreement in ("exact", "fixed"):
        return None
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        return None
    size = 1024 if "i" in unit else 1000
    return number * size ** (" KMGT".index(unit[0].upper())) if unit else number
