"""Find names of one host that stand together: in two prefixes, in a prefix and its text, or in what kubectl lists."""

from __future__ import annotations

from collections.abc import Iterator

from triage.base.digit_masks import mask_digits
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.ranks.identity import JobMap
from triage.ranks.layouts import LONGEST_PREFIX
from triage.records.described_pods import find_described_pods
from triage.records.introductions import may_introduce, read_introduction
from triage.records.text import Line, Text

_HINTS = (b" NCCL ", b" HCCL ", b"ank", b"  host", b"ostname", b"ode name", b"odename")
_MOST = 64  # lines with a hint at the start, and as many at the end
_LONGEST = 400
_RANK = lazy_re(r"(?i)(?<![a-z_])(?:global[ _]?|world[ _]?)?rank[ :=#]{1,2}(\d{1,6})\b")
# An entry in torchelastic's table; an agent lists the workers of its own node.
_TABLE_ENTRY = lazy_re(r"^  host {2,8}: (?P<host>[A-Za-z][\w.-]{1,80})$")


@dataclass(frozen=True, slots=True)
class HostPair:
    """Two names of one host. `outer` is empty where only the name of the source can give it.

    `rank` is that of the process that states it; -1: not known.
    """

    outer: str
    inner: str
    is_stated: bool = False
    rank: int = -1


def find_host_pairs(text: Text, head: bytes, tail: bytes, tail_offset: int) -> tuple[HostPair, ...]:
    """Return the pairs in the first and last lines of a source, each once."""
    pairs: dict[HostPair, None] = {}
    without_pair: set[bytes] = set()  # how lines begin whose prefix cannot name two hosts
    for data, offset in ((head[: max(0, tail_offset)], 0), (tail, tail_offset)):
        for start, end in _hinted_lines(data):
            physical = data[start:end]
            prefix = mask_digits(physical[:LONGEST_PREFIX])
            if prefix in without_pair and not may_introduce(physical):
                continue
            lines = text.parse_line(physical, offset + start)
            for line in lines:
                pairs.update(dict.fromkeys(_read(line)))
            if text.layout.has_whole_lines and len(lines) == 1 and not _may_name_two(lines[0]):
                without_pair.add(prefix)
        pods = find_described_pods(text, data, offset)
        pairs.update({HostPair(pod.name, pod.node, True): None for pod in pods})
    return tuple(pairs)


def learn_host_pair(job: JobMap, source: str, pair: HostPair) -> None:
    """Add the two names to the map."""
    job.learn_same_host(source, pair.outer, pair.inner, is_stated=pair.is_stated)
    if pair.is_stated and pair.rank >= 0:
        job.learn_host_of_rank(pair.rank, pair.inner)


def _may_name_two(line: Line) -> bool:
    return line.parsed.origin.host is not None and len(line.parsed.layers) > 1


def _read(line: Line) -> Iterator[HostPair]:
    host, outer = line.parsed.origin.host, line.parsed.outer_host
    if host is not None and outer:
        yield HostPair(outer, host)
    text = line.parsed.text[:_LONGEST]
    entry = _TABLE_ENTRY.match(text)
    name = entry["host"] if entry is not None else read_introduction(line.parsed.origin, text).host
    if name and name not in ("localhost", host):
        rank = line.parsed.origin.rank
        stated = _RANK.search(text) if rank is None else None
        yield HostPair(host or "", name, True, rank if rank is not None else int(stated[1]) if stated else -1)


def _hinted_lines(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of the first and the last lines with each hint."""
    starts: dict[int, int] = {}
    for hint in _HINTS:
        for at in (*_first_places(data, hint), *_last_places(data, hint)):
            start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
            starts[start] = end if end >= 0 else len(data)
    yield from sorted(starts.items())


def _first_places(data: bytes, hint: bytes) -> Iterator[int]:
    at = -1
    for _ in range(_MOST):
        at = data.find(hint, at + 1)
        if at < 0:
            return
        yield at
        at = data.find(b"\n", at)
        if at < 0:
            return


def _last_places(data: bytes, hint: bytes) -> Iterator[int]:
    at = len(data)
    for _ in range(_MOST):
        at = data.rfind(hint, 0, at)
        if at < 0:
            return
        yield at
        at = data.rfind(b"\n", 0, at)
        if at < 0:
            return
