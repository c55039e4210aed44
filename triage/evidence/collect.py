"""From scanned sources to the facts of a job: blocks around every hit, the map of ranks, the last words of each source."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from triage import evidence
from triage.model import Evidence, Origin, Source, Warning
from triage.ranks.blocks import build
from triage.ranks.identity import JobMap
from triage.ranks.last import Word, words
from triage.ranks.layouts import Layout, layout_of
from triage.ranks.text import Text
from triage.scan.interface import Hit, Scanned

Read = Callable[[int, int], bytes]

_YEAR = re.compile(rb"\b(20\d\d)-\d\d-\d\d")
_INIT = re.compile(r"comm 0x\w+ rank (\d+) nranks (\d+) cudaDev (\d+).*busId ([0-9a-fA-F]+)")
_WORLD = re.compile(r"(?i)\bworld[_ ]?size[ =:]+(\d{1,7})\b|\bnranks[ =](\d{1,7})\b|\b\d+/(\d+) clients joined")
_VERSIONS = (
    ("nccl", re.compile(r"NCCL version (\d+(?:\.\d+)+)")),
    ("torch", re.compile(r"(?i)\b(?:py)?torch(?: version)?[ =:]+v?(\d+\.\d+\.\d+[\w.+]*)")),
    ("cuda", re.compile(r"\+cuda(\d+\.\d+)|(?i:cuda version[ =:]+)(\d+\.\d+)")),
    (
        "driver",
        re.compile(r"Driver Version: (\d{3}\.\d+(?:\.\d+)?)|NVIDIA UNIX \S+ (?:Open )?Kernel Module[^\n]{0,20}?  (\d{3}\.\d+(?:\.\d+)?)"),
    ),
    ("cann", re.compile(r"(?i)\bcann(?:[-_ ]toolkit)?(?:[-_ ]version)?[ =:_]+v?(\d+\.\d+(?:\.\w+)?)")),
    ("slurm", re.compile(r"\b(?:slurm(?:-wlm|d|stepd)?|SLURM)(?: version)?[ =:]+v?(2\d\.\d\d\.\d+)")),
)
_READ_HEAD_LINES = 60


@dataclass
class Harvest:
    """Everything read from the texts of a job, before any reasoning."""

    facts: list[Evidence] = field(default_factory=list)
    job: JobMap = field(default_factory=JobMap)
    words: list[tuple[str, Word]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)  # the first that any text states
    stated: dict[str, set[str]] = field(default_factory=dict)  # all of them
    warnings: list[Warning] = field(default_factory=list)
    year: int = 1970  # for stamps without one


def harvest(scanned: Sequence[tuple[Source, Scanned]], literals: Sequence[str], read_of: Callable[[Source, Scanned], Read]) -> Harvest:
    """Read the blocks of every source, in the order given (sorted by name)."""
    year = _year(scanned)
    result = Harvest(year=year)
    for source, scan in scanned:
        result.job.learn(source.name, Origin())
        layout = _layout(scan)
        _learn_edges(result, source, scan, year, layout)
        text = Text(source.name, read_of(source, scan), scan.size, year, layout)
        for block, more in build(text, _named(scan.hits, literals)):
            facts = evidence.read(block)
            if facts and more:
                facts[-1:] = [evidence.seen_again(facts[-1], more)]
            for fact in facts:
                _learn(result, fact)
            result.facts.extend(fact for fact in facts if not _is_map(fact))
        result.warnings.extend(_limits(source, scan))
    return result


def _named(hits: Sequence[Hit], literals: Sequence[str]) -> list[tuple[int, int, tuple[str, ...], int]]:
    return [(hit.start, hit.end, tuple(literals[index] for index in hit.literals), hit.more) for hit in hits]


def _learn_edges(result: Harvest, source: Source, scan: Scanned, year: int, layout: Layout) -> None:
    """The first and last lines of a source place its ranks, and the last say how far each came."""
    # Of a small source the tail is the whole.
    head = words(scan.head, 0, year, layout)[:_READ_HEAD_LINES] if len(scan.tail) < scan.size else []
    tail = words(scan.tail, scan.size - len(scan.tail), year, layout)
    for word in (*head, *tail):
        result.job.learn(source.name, word.origin)
    result.words.extend((source.name, word) for word in tail)
    _learn_text(result, scan.head.decode("utf-8", "replace"))


def _layout(scan: Scanned) -> Layout:
    """Told from the first and last lines; of a small source the tail is the whole."""
    head = scan.head[: max(0, scan.size - len(scan.tail))]
    return layout_of(head, scan.tail) if head else layout_of(scan.tail)


def _learn(result: Harvest, fact: Evidence) -> None:
    result.job.learn(fact.source, fact.origin)
    init = _INIT.search(fact.text)
    if init is not None:
        rank = int(init[1])
        result.job.sizes.add(int(init[2]))
        result.job.learn(fact.source, Origin(rank=rank, host=fact.origin.host, pid=fact.origin.pid))
        if fact.origin.host is not None:
            result.job.learn_bus(fact.origin.host, init[4], rank)
    elif "version" in fact.text or "clients joined" in fact.text or "orld" in fact.text:
        _learn_text(result, fact.text)


def _learn_text(result: Harvest, text: str) -> None:
    for match in _WORLD.finditer(text):
        result.job.sizes.add(int(match[1] or match[2] or match[3]))
    for name, pattern in _VERSIONS:
        found = pattern.search(text)
        if found is not None:
            version = next(group for group in found.groups() if group)
            result.versions.setdefault(name, version)
            result.stated.setdefault(name, set()).add(version)


def _is_map(fact: Evidence) -> bool:
    return fact.kind == "message" and any(trigger in fact.text for trigger in evidence.MAP_TRIGGERS)


def _limits(source: Source, scan: Scanned) -> list[Warning]:
    warnings = []
    if scan.sampled:
        warnings.append(
            Warning(
                "storm",
                source.name,
                f"{scan.sampled / 1e6:.0f} MB are so full of failure lines that they were sampled: counts are at least, not exactly, what is said",
            )
        )
    if scan.dropped_windows:
        warnings.append(
            Warning(
                "context-limit",
                source.name,
                f"{scan.dropped_windows} regions around failures were not kept; unpack the file and ingest it again to see them",
            )
        )
    return warnings


def _year(scanned: Sequence[tuple[Source, Scanned]]) -> int:
    """For stamps without a year: the first year that any source states, else that of the newest file."""
    for _, scan in scanned:
        found = _YEAR.search(scan.head) or _YEAR.search(scan.tail)
        if found is not None:
            return int(found[1])
    newest = max((source.mtime for source, _ in scanned if source.mtime), default=0.0)
    return time.gmtime(newest).tm_year
