"""Find names of one host that stand together: in two prefixes, in a prefix and its text, or in what kubectl lists."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from triage.base.digit_masks import ask_lines, ask_masked, list_masks, split_lines
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re
from triage.ranks.grammar import Table
from triage.ranks.identity import JobMap
from triage.records.described_pods import find_described_pods
from triage.records.introductions import may_introduce_in_text, read_introduction
from triage.records.text import Line, Text, is_one_line

_HINTS = (b" NCCL ", b" HCCL ", b"ank", b"  host", b"ostname", b"ode name", b"odename")
_MOST = 64  # lines with a hint at the start, and as many at the end
_LONGEST, _LONGEST_GLANCE = 400, 1 << 11
_RANK = masked_re(r"(?i)(?<![a-z_])(?:global[ _]?|world[ _]?)?rank[ :=#]{1,2}(\d{1,6})\b")
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
    for data, offset in ((head[: max(0, tail_offset)], 0), (tail, tail_offset)):
        has_masks, table = text.layout.has_whole_lines, text.layout.table
        may_have_pairs = not has_masks or any(
            len(mask) > _LONGEST_GLANCE or _may_be_chosen(mask, table) for mask in list_masks(data)
        )
        masks = {start: mask for mask, start in split_lines(data)} if has_masks and may_have_pairs else {}
        for start, end in _hinted_lines(data) if may_have_pairs else ():
            mask = masks.get(start, b"")
            if 0 < len(mask) <= _LONGEST_GLANCE and not _may_give_pair(mask, table):
                continue
            for line in text.parse_line(data[start:end], offset + start):
                pairs.update(dict.fromkeys(_read(line)))
        pods = find_described_pods(text, data, offset)
        pairs.update({HostPair(pod.name, pod.node, True): None for pod in pods})
    return tuple(pairs)


@functools.lru_cache(maxsize=1 << 12)
def _may_be_chosen(mask: bytes, table: Table) -> bool:
    """Whether a line with this mask has a hint and may give a pair."""
    return bool(_hints_in.of_mask(mask)) and _may_give_pair(mask, table)


@functools.lru_cache(maxsize=1 << 12)
def _may_give_pair(masked: bytes, table: Table) -> bool:
    """Whether a line may name two hosts: it introduces its writer, its prefix names two, or several writers wrote it.

    No digit decides that.
    """
    if not is_one_line(masked):
        return True
    parsed = Line(0, masked, 1970, table).parsed
    has_two = parsed.origin.host is not None and len(parsed.layers) > 1
    text = parsed.text[:_LONGEST]
    return has_two or _TABLE_ENTRY.match(text) is not None or may_introduce_in_text(text)


def learn_host_pair(job: JobMap, source: str, pair: HostPair) -> None:
    """Add the two names to the map."""
    job.learn_same_host(source, pair.outer, pair.inner, is_stated=pair.is_stated)
    if pair.is_stated and pair.rank >= 0:
        job.learn_host_of_rank(pair.rank, pair.inner)


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


def _hinted_lines(data: bytes) -> list[tuple[int, int]]:
    """Return start and end of the first and the last lines with each hint."""
    lines: dict[bytes, list[tuple[int, int]]] = {hint: [] for hint in _HINTS}
    for start, end, hints in ask_lines(_hints_in, data):
        for hint in hints:
            lines[hint].append((start, end))
    return sorted({place for places in lines.values() for place in (*places[:_MOST], *places[-_MOST:])})


@ask_masked
def _hints_in(line: bytes) -> tuple[bytes, ...]:
    return tuple(hint for hint in _HINTS if hint in line)
