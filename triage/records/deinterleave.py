"""Separate what several writers wrote at once without prefixes.

- Mixed lines: tracebacks of several writers, mixed line by line. Nothing says who wrote a line, so a traceback is
  rebuilt only where every way to share the lines out agrees. That is counting: if frames do not repeat within a
  traceback and calls do not go both ways, a frame that stands as often as there are tracebacks it can belong to is in
  each of them. What can be shared out in several ways is left out, and the traceback is ambiguous.
- Mixed characters: one text by several writers who write into each other's words, as in
  `RuntimeErrorRuntimeError: : NCCLNCCL error error`. It is separated where exactly one text fits.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re

FRAME = lazy_re(r'\s*File "[^"]+", line \d+')
_CARETS = lazy_re(r"[\s~^]*$")
_END = 1 << 62
_MOST_WRITERS = 8
_SHORTEST, _LONGEST, _FEWEST_LETTERS, _FEWEST_DIFFERENT = 12, 1200, 6, 4
_MOST_STATES = 1 << 15
_COMMON_LETTERS = "etaoinsr"
_COMMON_BYTES, _PRIMES = (b"e", b"t", b"a", b"o", b"r", b"n", b"i", b"s"), (2, 3, 5, 7)
_REPEATED_NAME = masked_re(r"(?:^|[\s.:])([\w.]{0,80}(?:Error|Exception|Traceback))\1")

_Places = dict[str, list[int]]
"""The indices of the lines with the same text."""


@dataclass(frozen=True, slots=True)
class SharedTraceback:
    """A traceback that `count` writers printed.

    `lines` are the indices of one occurrence of each of its lines, `headline` that of its exception. Unless
    `is_complete`, it holds only the frames that all writers have in common.
    """

    lines: tuple[int, ...]
    headline: int
    count: int
    is_complete: bool


def deinterleave_tracebacks(
    texts: Sequence[str], is_header: Callable[[str], bool], is_exception: Callable[[str], bool], chains: Sequence[str]
) -> list[SharedTraceback]:
    """Return the tracebacks in the mixed lines of several writers, in order of their first exception line."""
    headers = [index for index, text in enumerate(texts) if is_header(text)]
    joints = [index for index, text in enumerate(texts) if text.strip() in chains]
    ends: _Places = defaultdict(list)
    body: _Places = defaultdict(list)
    for index, text in enumerate(texts):
        if is_header(text) or text.strip() in chains or _CARETS.match(text):
            continue
        (ends if not FRAME.match(text) and is_exception(text) else body)[text.strip()].append(index)
    if not ends:
        return []
    if joints:
        chained = _chained_traceback(texts, headers, joints, ends, body)
        if chained is not None:
            return [chained]
    finished = sum(map(len, ends.values()))
    counts = {name: len(places) for name, places in ends.items()}
    last = {name: places[-1] for name, places in ends.items()}
    counts[""], last[""] = max(0, len(headers) - finished), _END  # tracebacks that break off
    owners = {key: {name for name in counts if counts[name] and last[name] > places[0]} for key, places in body.items()}
    certain = {key for key, names in owners.items() if sum(counts[name] for name in names) == len(body[key])}
    tracebacks = []
    for name, places in ends.items():
        own = [key for key in body if name in owners[key]]
        order, lost_frame = _in_order([key for key in own if key in certain], body, owners)
        is_open = lost_frame or any(key not in certain and FRAME.match(key) for key in own) or bool(joints)
        lines = (*headers[:1], *(body[key][0] for key in order), places[0])
        is_complete = not is_open and len(headers) in (0, finished)
        tracebacks.append(SharedTraceback(lines, places[0], len(places), is_complete))
    return sorted(tracebacks, key=lambda traceback: traceback.headline)


def _in_order(keys: Sequence[str], body: _Places, owners: dict[str, set[str]]) -> tuple[list[str], bool]:
    """Return the lines in their only possible order, and whether a frame with several possible places was left out."""
    order: list[str] = []
    lost_frame = False
    for key in sorted(keys, key=lambda key: (body[key][0], body[key][-1])):
        if order and not _is_always_before(order[-1], key, body, owners):
            if FRAME.match(key):
                lost_frame = True
            continue
        order.append(key)
    # A line of code without its frame directly before it belongs to another frame.
    return [key for at, key in enumerate(order) if FRAME.match(key) or (at and FRAME.match(order[at - 1]))], lost_frame


def _is_always_before(one: str, other: str, body: _Places, owners: dict[str, set[str]]) -> bool:
    """Does `one` stand before `other` in every traceback with both, however the lines are shared out?"""
    if body[one][-1] < body[other][0]:
        return True
    if not (owners[one] <= owners[other] or owners[other] <= owners[one]):
        return False
    return _can_precede(body[one], body[other]) and not _can_precede(body[other], body[one])


def _can_precede(first: Sequence[int], second: Sequence[int]) -> bool:
    """Can each place of the rarer one be paired with a place of the other, so that the first precedes the second?"""
    if len(first) >= len(second):
        return all(bisect.bisect(first, place) > index for index, place in enumerate(second))
    left = len(second)
    return all(left - bisect.bisect(second, place) >= len(first) - index for index, place in enumerate(first))


def _chained_traceback(
    texts: Sequence[str], headers: Sequence[int], joints: Sequence[int], ends: _Places, body: _Places
) -> SharedTraceback | None:
    """Return the one chained traceback that all writers printed, if each has one joint.

    Then every line stands as often as the joint, and the headers twice as often.
    """
    count = len(joints)
    links = {texts[index].strip() for index in joints}
    frames = {key: places for key, places in {**body, **ends}.items() if FRAME.match(key) or key in ends}
    if (
        len(links) != 1
        or len(ends) != 2
        or len(headers) != 2 * count
        or any(len(places) != count for places in frames.values())
    ):
        return None
    link = next(iter(links))
    every = {key: places for key, places in {**body, **ends, link: list(joints)}.items() if len(places) == count}
    order = sorted(every, key=lambda key: every[key][-1])
    if not all(_can_precede(every[one], every[other]) for one, other in itertools.pairwise(order)):
        return None
    at = order.index(link)
    first, second = (key for key in order if key in ends)
    if not (order.index(first) == at - 1 and order[-1] == second):
        return None
    lines = (
        headers[0],
        *(every[key][0] for key in order[: at + 1]),
        headers[-1],
        *(every[key][-1] for key in order[at + 1 :]),
    )
    return SharedTraceback(lines, every[second][-1], count, True)


def may_be_interleaved(line: bytes) -> bool:
    """Quick check: do some common letters stand in the line as often as several writers need?"""
    if not 2 * _SHORTEST <= len(line) <= 4 * _LONGEST:
        return False
    common = 0
    for letter in _COMMON_BYTES:
        common = math.gcd(common, line.count(letter))
        if common == 1:
            return False
    return any(common % writers == 0 for writers in _PRIMES)


@functools.lru_cache(1 << 12)
def deinterleave_text(text: str) -> tuple[str, int]:
    """Return the text that several writers wrote as `text`, and their number; ("", 0) unless exactly one text fits."""
    if not 2 * _SHORTEST <= len(text) <= _LONGEST:
        return "", 0
    for writers in range(_MOST_WRITERS, 1, -1):
        if len(text) % writers or any(text.count(letter) % writers for letter in _COMMON_LETTERS):
            continue
        counts = Counter(text)
        if any(count % writers for count in counts.values()):
            continue
        size = len(text) // writers
        if text == text[:size] * writers:
            return (text[:size], writers) if _is_specific(text[:size]) else ("", 0)
        possible = _possible_texts(text, writers, {letter: count // writers for letter, count in counts.items()})
        if len(possible) == 1 and _is_specific(possible[0]):
            return possible[0], writers
    return "", 0


def find_interleaved_lines(data: bytes) -> Iterator[tuple[int, int, str, Sequence[str]]]:
    """Yield the lines of several writers in a whole source: start, end, the text of each writer, and the line."""
    at = 0
    for line in data.split(b"\n"):
        if may_be_interleaved(line) and (text := deinterleave_text(shown := line.decode("utf-8", "replace"))[0]):
            yield at, at + len(line), text, [shown]
        at += len(line) + 1


def has_repeated_exception_name(text: str) -> bool:
    """Does an exception's name stand twice without a blank, as where two writers cannot be separated?"""
    return _REPEATED_NAME.search(text) is not None


def _is_specific(text: str) -> bool:
    letters = [letter for letter in text if letter.isalpha()]
    return len(text) >= _SHORTEST and len(letters) >= _FEWEST_LETTERS and len(set(letters)) >= _FEWEST_DIFFERENT


def _possible_texts(text: str, writers: int, per_writer: dict[str, int]) -> list[str]:
    """Return the texts that every writer can have written; none where there are too many ways to try.

    `per_writer` has each letter's count per writer. A state is what the writer in front has written, and how far in it
    each of the others is.
    """
    states: set[tuple[str, tuple[int, ...]]] = {("", (0,) * (writers - 1))}
    left = _MOST_STATES
    for letter in text:
        following = set()
        for written, behind in states:
            if written.count(letter) < per_writer[letter]:
                following.add((written + letter, behind))
            for index, at in enumerate(behind):
                if at < len(written) and written[at] == letter and (not index or behind[index - 1] > at):
                    following.add((written, (*behind[:index], at + 1, *behind[index + 1 :])))
        left -= len(following)
        if left < 0:
            return []
        states = following
    return sorted({written for written, behind in states if all(at == len(written) for at in behind)})
