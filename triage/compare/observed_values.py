"""The values that the ranks of a job print, at the ends of their texts and on demand elsewhere.

Cost: the scan is not needed. The head and the tail of every text are in memory anyway.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial

import msgspec

from triage.base.forks import LocalProcesses, SharedWork, WorkSharer
from triage.base.lazy_dataclass import replace
from triage.base.lazy_re import lazy_re
from triage.compare.quantities import RankValue, extract_values, fixed_pattern, quantity_pattern, unpack_values
from triage.compare.runs import find_runs
from triage.compare.step_finder import StepFinder
from triage.evidence.extracted import ExtractedJob
from triage.evidence.extraction import source_text
from triage.model.evidence import Source
from triage.scan.interface import ScanResult

ReadBytes = Callable[[int, int], bytes]
ScannedTexts = Sequence[tuple[Source, ScanResult]]

_MAX_PROBED = 256  # texts whose tails are searched before anything is parsed
_LINE_BUDGET = 240  # lines that are parsed at the ends of all texts together, and half as many at their starts
_WORTH_FORKING = 500  # texts whose values several processes read faster than one
_MIN_LAST_LINES, _MIN_FIRST_LINES = 3, 2  # lines per rank that are parsed in any case
_START_OF_WRITER, _MOST_OF_START = 1 << 12, 1 << 20  # bytes of a start for each writer, and for all of them
_FIRST_HEADS, _SEARCHED_HEAD = 8, 1 << 15  # texts and bytes that are searched for the ways of parallelism
_MODEL_PARTS = lazy_re(
    rb"(?i)(?:pipeline|tensor|expert|context)[ _-](?:model[ _-])?parallel(?:[ _-]?\w{0,8})?[^\w\n]{1,24}(?:[2-9]|\d\d)"
    rb"|\b[tpec]p(?:[ _-](?:size|degree|world_size))?['\"]?[ :=]{1,3}(?:[2-9]|\d\d)"
    rb"|\bstage[ _=:#]{1,2}[0-9]|\b[tpe]p[ _]?rank\b"
)


class ObservedValues:
    """The values that the ranks of a job print: at the ends of their texts, and on demand at the starts."""

    def __init__(
        self,
        texts: ScannedTexts,
        read_of: Callable[[Source, ScanResult], ReadBytes],
        extracted: ExtractedJob,
        *,
        memory: bool,
        sharer: WorkSharer = LocalProcesses(),
    ) -> None:
        job = extracted.job
        self.finders: dict[str, StepFinder] = {}
        for source, scan in texts if _has_quantity(texts, memory) else ():
            read = read_of(source, scan)
            self.finders[source.name] = StepFinder(
                source, scan, read, source_text(source, scan, read, extracted), job.complete
            )
        self._texts = texts
        self.may_have_fixed = any(fixed_pattern().search(scan.head) for _, scan in texts[:_FIRST_HEADS])
        self._share = _LINE_BUDGET // max(1, len(self.finders))
        self._writer_counts = {name: max(1, len(job.by_source.get(name, ()))) for name in self.finders}
        self._memory = memory
        self._sharer = sharer
        ends = [value for values in self._read_each(self._read_end, list(self.finders.values())) for value in values]
        self.run_of = find_runs(ends, job)
        self._ranks_are_local = not self.run_of and _has_local_ranks(ends)
        self.ends = self._place(ends)
        self._starts: dict[str, list[RankValue]] = {}

    @cached_property
    def has_model_parts(self) -> bool:
        """Whether ranks hold different parts of the model, so that their values may differ by design."""
        return _states_model_parts(self._texts)

    def read_starts(self, count: int) -> list[RankValue]:
        """The values in the first lines of the first `count` texts."""
        names = list(self.finders)[:count]
        new = [name for name in names if name not in self._starts]
        for name, values in zip(
            new, self._read_each(self._read_start, [self.finders[name] for name in new]), strict=True
        ):
            self._starts[name] = self._place(values)
        return [value for name in names for value in self._starts[name]]

    def read_step(self, source: str, key: str, step: int) -> list[RankValue]:
        """The values of `key` that a text has at a step; none where steps do not ascend."""
        return self._place(self.finders[source].read_step(key, step))

    def _place(self, values: list[RankValue]) -> list[RankValue]:
        """Add the runs, and take ranks for local ranks where they are."""
        if self._ranks_are_local:
            return [replace(value, rank=None, origin=replace(value.origin, local_rank=value.rank)) for value in values]
        if not self.run_of:
            return values
        return [replace(value, run=self.run_of.get(value.source, "")) for value in values]

    def _read_each(
        self, read: Callable[[StepFinder], list[RankValue]], finders: Sequence[StepFinder]
    ) -> Iterator[list[RankValue]]:
        """Yield what `read` returns for each text, in their order; several processes read many texts."""
        is_shared = len(finders) >= _WORTH_FORKING and not self._sharer.is_remote
        unpack = partial(unpack_values, shared={})
        work = SharedWork(lambda number: read(finders[number]), len(finders), msgspec.to_builtins, unpack)
        return (self._sharer if is_shared else LocalProcesses()).map(work)

    def _read_end(self, finder: StepFinder) -> list[RankValue]:
        source, scan = finder.source, finder.scan
        most = max(self._share, _MIN_LAST_LINES * self._writer_counts[source.name])
        base = scan.size - len(scan.tail)
        return extract_values(
            finder.text, source, scan.tail, base, finder.complete_origin, most=most, last=True, memory=self._memory
        )

    def _read_start(self, finder: StepFinder) -> list[RankValue]:
        source, writers = finder.source, self._writer_counts[finder.source.name]
        most = max(self._share // 2, _MIN_FIRST_LINES * writers)
        head, size = finder.scan.head, min(writers * _START_OF_WRITER, _MOST_OF_START)
        if source.path is not None and len(head) < size:
            head = finder.read(0, size).rpartition(b"\n")[0]
        return extract_values(finder.text, source, head, 0, finder.complete_origin, most=most, last=False)


def group_by_quantity(values: Iterable[RankValue], *agreements: str) -> dict[str, list[RankValue]]:
    """The values of one run with one of these agreements by quantity, for quantities that several processes print.

    Processes without a known rank count where no rank is known, and hosts are.
    """
    by_key: dict[str, list[RankValue]] = defaultdict(list)
    for value in values:
        if value.agreement in agreements:
            by_key[value.key].append(value)
    grouped = {key: _comparable(by_key[key]) for key in sorted(by_key)}
    return {key: same for key, same in grouped.items() if len({value.writer for value in same}) > 1}


def _comparable(values: Sequence[RankValue]) -> list[RankValue]:
    """The values of known ranks, or else those of known hosts."""
    ranked = [value for value in values if value.rank is not None]
    return ranked or [value for value in values if value.origin.host is not None]


def _has_local_ranks(values: Iterable[RankValue]) -> bool:
    """Whether every stated rank is one of several hosts, so that it is a local rank."""
    hosts: dict[int, set[str]] = defaultdict(set)
    for value in values:
        if value.rank is not None:
            hosts[value.rank].update(filter(None, [value.origin.host]))
    return bool(hosts) and all(len(names) > 1 for names in hosts.values())


def _has_quantity(texts: ScannedTexts, memory: bool) -> bool:
    """Whether any of some texts, spread over all, contains a quantity near its end or start."""
    pattern = quantity_pattern(memory)
    every = max(1, len(texts) // _MAX_PROBED)
    return any(pattern.search(scan.tail) or pattern.search(scan.head) for _, scan in texts[::every])


def _states_model_parts(texts: ScannedTexts) -> bool:
    """Whether the starts of the first texts say that the ranks hold different parts of the model."""
    return any(_MODEL_PARTS.search(scan.head[:_SEARCHED_HEAD]) for _, scan in texts[:_FIRST_HEADS])
