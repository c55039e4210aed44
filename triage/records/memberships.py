"""Read which rank of how many a process says that it is: `rank 3 of 8 on node1, pid 412`, `RANK=1 WORLD_SIZE=4`."""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Iterator
from typing import Any

from triage.base.digit_masks import ask_lines, ask_masked
from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin
from triage.ranks.separate_groups import Membership
from triage.records.identity_lines import RANK_OF_WORLD, WORLD_SIZE
from triage.records.introductions import read_introduction
from triage.records.text import Text

# How much of the start of a source is searched. Every process introduces itself there.
START_BYTES = 1 << 16
_HINT_PATTERN = rb"(?i)world[_ ]?size|world[=:]|nranks|rank[ :=#]{0,2}\d{1,6} ?(?:/|of |out of )"
_HINT = lazy_re(_HINT_PATTERN)
_MOST = 1 << 11  # lines of a source
_LONGEST = 400
# A number of a part of the job, or of a node, is no global rank.
_RANK = lazy_re(
    r"(?i)(?<![a-z_-])(?<!local )(?<!node )(?<!group )(?<!machine )(?<!parallel )"
    r"(?:(?:global|world)[_ -])?rank['\"]?[ :=#]{1,3}(\d{1,6})\b(?!\.\d)"
)
_PID = lazy_re(r"(?i)\bpid['\"]?[ :=]{1,3}(\d{1,7})\b")
# Such a line compares the size with another, or is about another process.
_COMPARES = lazy_re(r"(?i)\w(?:Error|Exception)\b|\bexpect|\bassert|\bshould\b|\bmust\b|!=|\bfail|\bwarn")
# The writer of a line without what the process itself adds: the tag of torch, and the stream.
_OWN_TAG = lazy_re(r"\[rank ?\d+\]:?|<std(?:out|err|diag)>:?|\bstd(?:out|err)\b")


def find_memberships(text: Text, start: bytes, tail: bytes, tail_offset: int) -> tuple[Membership, ...]:
    """Return what the lines at the start and the end of a source say of the group of their process."""
    memberships: list[Membership] = []
    first = start[: max(0, tail_offset)]
    for data, offset, hinted in ((first, 0, _find_hinted_lines(first)), (tail, tail_offset, _hinted_lines(tail))):
        for begin, end in hinted:
            for line in text.parse_line(data[begin:end], offset + begin):
                parsed = line.parsed
                label = remove_own_tags(parsed.writer)
                membership = read_membership(parsed.origin, parsed.text, label, offset + begin)
                memberships += [membership] if membership is not None else []
    return tuple(memberships[:_MOST])


def read_membership(origin: Origin, text: str, label: str = "", offset: int = 0) -> Membership | None:
    """Return what a line says of the group of its process; without a rank where it states only a size."""
    text = text[:_LONGEST]
    if _COMPARES.search(text):
        return None
    pairs = {(int(match[1]), int(match[2])) for match in RANK_OF_WORLD.finditer(text)}
    sizes = {int(next(filter(None, match.groups()))) for match in WORLD_SIZE.finditer(text)}
    if not pairs:
        ranks = {int(match[1]) for match in _RANK.finditer(text)}
        is_communicator = "nranks" in text  # it numbers its own members
        pairs = {(rank, size) for rank in ranks for size in sizes} if not is_communicator else set()
    if len(pairs) != 1:
        return Membership(-1, max(sizes), offset=offset) if sizes else None
    rank, size = pairs.pop()
    if rank >= size:
        return None
    pids = {int(match[1]) for match in _PID.finditer(text)}
    host = read_introduction(origin, text).host or origin.host or ""
    pid = pids.pop() if len(pids) == 1 else -1
    form = zlib.crc32(text.encode()) if pid < 0 else 0
    return Membership(rank, size, label, host, pid, origin.time, offset, form)


def remove_own_tags(writer: str) -> str:
    """Return the prefixes of a line without those that the process itself writes: what its launcher calls it."""
    return _OWN_TAG.sub("", writer).strip()


def _find_hinted_lines(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the same in the start of a source, which nothing else reads line by line."""
    end = -1
    places = (match.start() for match in _hint_in_bytes().finditer(data))
    for _ in range(_MOST):
        at = next((place for place in places if place > end), None)
        if at is None:
            return
        end = data.find(b"\n", at)
        end = end if end >= 0 else len(data)
        yield data.rfind(b"\n", 0, at) + 1, end


@functools.cache
def _hint_in_bytes() -> Any:
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(_HINT_PATTERN, options)


def _hinted_lines(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of each line that may say it."""
    hinted = itertools.islice(ask_lines(_may_say_it, data), _MOST)
    return ((start, end) for start, end, _ in hinted)


@ask_masked
def _may_say_it(line: bytes) -> bool:
    return _HINT.search(line) is not None
