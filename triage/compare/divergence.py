"""Find quantities that ranks print, that must agree, and that diverge: the first step, the odd rank, the difference.

Cost: the scan is not needed. The head and the tail of every text, which are in memory anyway, show whether the ranks
print such a quantity and whether they agree at the start and at the end. Only when they do not, the first differing
step is searched, in a few of the files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.compare import step_comparison
from triage.compare.quantities import CompleteOrigin, RankValue, extract_values, quantity_pattern
from triage.compare.step_comparison import Row, StepComparison
from triage.evidence.extraction import ExtractedJob, source_text
from triage.evidence.inference import make_inferences
from triage.model.evidence import Evidence, Source
from triage.records.activity import STEP
from triage.records.text import Text
from triage.scan.interface import ScanResult

WINDOW = 1 << 13
AROUND = 1 << 16
_MAX_ROWS = 256
ReadBytes = Callable[[int, int], bytes]
ScannedTexts = Sequence[tuple[Source, ScanResult]]

_MAX_PROBED = 256  # texts whose tails are searched before anything is parsed
_LINE_BUDGET = 240  # lines that are parsed at the ends of all texts together, and half as many at their starts
_MIN_LAST_LINES, _MIN_FIRST_LINES = 3, 2  # lines per rank that are parsed in any case
_MAX_END_STEPS = 6  # common steps that are compared at either end
_MAX_SEARCHED_FILES = 6  # files in which the first differing step is searched
_MAX_CONFIRMING_FILES = 64  # files that are read at that step to compare all ranks
_FIRST_TEXTS = 8  # texts whose starts show whether the others need to be read
_VALUE_LIST = lazy_re(r"(?P<quantity>\S*\w)[^\s\w]* (?:(?:is|are|was|were) )?inconsistent: \[(?P<values>[^\]\n]*)")


@dataclass(frozen=True, slots=True)
class StepFinder:
    """Reads steps in one text. Only plain files can be read at any offset; other texts give nothing."""

    source: Source
    scan: ScanResult
    read: Callable[[int, int], bytes]
    text: Text
    complete_origin: CompleteOrigin

    def read_step(self, key: str, step: int) -> list[RankValue]:
        """The values of `key` that ranks print at a step; none where steps do not ascend."""
        base, data = self._read_around(key, step)
        rows = [(start, end) for start, end, number in _find_steps(data, key) if number == step]
        values = (value for start, end in rows[:_MAX_ROWS] for value in self._extract(data[start:end], base + start))
        return [value for value in values if value.step == step and value.key == key]

    def find_nearest_step(self, key: str, step: int, low: int, high: int) -> int | None:
        """The logged step between `low` and `high` that is nearest to `step`: not every step is logged."""
        _, data = self._read_around(key, step)
        steps = {number for _, _, number in _find_steps(data, key) if low < number < high}
        return min(steps, key=lambda number: (abs(number - step), number), default=None)

    def _extract(self, data: bytes, base: int) -> list[RankValue]:
        return extract_values(self.text, self.source, data, base, self.complete_origin, most=1, last=False)

    def _read_around(self, key: str, step: int) -> tuple[int, bytes]:
        """(offset, bytes) around the expected place of a step, from the start of a line."""
        if self.source.path is None:
            return 0, b""
        low, high = 0, self.scan.size
        while high - low > WINDOW:
            middle = (low + high) // 2
            line = next(_find_steps(self.read(middle, WINDOW), key), None)
            if line is None or line[2] >= step:
                high = middle
            else:
                low = middle
        start = max(0, low - AROUND // 2)
        data = self.read(start, AROUND)
        cut = data.find(b"\n") + 1 if start else 0
        return start + cut, data[cut:]


def _find_steps(data: bytes, key: str) -> Iterator[tuple[int, int, int]]:
    """(start, end, step) of the lines that contain the quantity and a step."""
    name = key.encode()
    place = data.find(name)
    while place >= 0:
        start = data.rfind(b"\n", 0, place) + 1
        end = data.find(b"\n", place)
        end = end if end >= 0 else len(data)
        match = STEP.search(data[start:end].decode("utf-8", "replace"))
        if match is not None:
            yield start, end, int(match[1])
        place = data.find(name, end)


class ObservedValues:
    """The values that the ranks of a job print: at the ends of their texts, and on demand at the starts."""

    def __init__(
        self,
        texts: ScannedTexts,
        read_of: Callable[[Source, ScanResult], ReadBytes],
        extracted: ExtractedJob,
        *,
        memory: bool,
    ) -> None:
        job = extracted.job
        self.finders: dict[str, StepFinder] = {}
        for source, scan in texts if _has_quantity(texts, memory) else ():
            read = read_of(source, scan)
            self.finders[source.name] = StepFinder(
                source, scan, read, source_text(source, scan, read, extracted), job.complete
            )
        self._share = _LINE_BUDGET // max(1, len(self.finders))
        self._writer_counts = {name: max(1, len(job.by_source.get(name, ()))) for name in self.finders}
        self._memory = memory
        self.ends = [value for finder in self.finders.values() for value in self._read_end(finder)]
        self._starts: dict[str, list[RankValue]] = {}

    def read_starts(self, count: int) -> list[RankValue]:
        """The values in the first lines of the first `count` texts."""
        names = list(self.finders)[:count]
        for name in names:
            if name not in self._starts:
                self._starts[name] = self._read_start(self.finders[name])
        return [value for name in names for value in self._starts[name]]

    def _read_end(self, finder: StepFinder) -> list[RankValue]:
        source, scan = finder.source, finder.scan
        most = max(self._share, _MIN_LAST_LINES * self._writer_counts[source.name])
        base = scan.size - len(scan.tail)
        return extract_values(
            finder.text, source, scan.tail, base, finder.complete_origin, most=most, last=True, memory=self._memory
        )

    def _read_start(self, finder: StepFinder) -> list[RankValue]:
        source = finder.source
        most = max(self._share // 2, _MIN_FIRST_LINES * self._writer_counts[source.name])
        return extract_values(finder.text, source, finder.scan.head, 0, finder.complete_origin, most=most, last=False)


def group_by_quantity(values: Iterable[RankValue], *agreements: str) -> dict[str, list[RankValue]]:
    """The values with one of these agreements by quantity, for quantities that more than one rank prints."""
    by_key: dict[str, list[RankValue]] = defaultdict(list)
    for value in values:
        if value.agreement in agreements:
            by_key[value.key].append(value)
    return {key: same for key, same in sorted(by_key.items()) if len({value.rank for value in same}) > 1}


def value_evidence(value: RankValue) -> Evidence:
    """The line of a value as evidence, for an inference that rests on it."""
    return Evidence(
        "value", value.agreement, value.line, value.origin, value.source, value.offset, value.offset, {}, value.line
    )


def infer_divergence(values: ObservedValues, facts: Sequence[Evidence]) -> list[Evidence]:
    """One inference for each odd rank of each quantity that diverged."""
    inferences: list[Evidence] = []
    for key, ends in group_by_quantity(values.ends, "exact", "must", "maybe").items():
        _, last = _compare_end_steps(ends)
        if all(item.outcome == "equal" for item in last.values()):
            continue
        if ends[0].agreement == "maybe" and _differs_from_the_start(key, last, values):
            continue
        starts = (value for value in values.read_starts(len(values.finders)) if value.key == key)
        rows, compared = _compare_end_steps(list(dict.fromkeys((*starts, *ends))))
        differs = any(item.outcome != "equal" for item in compared.values())
        if differs and step_comparison.are_comparable(ends[0].agreement, {step: rows[step] for step in compared}):
            inferences += _infer_value_diverged(key, *_find_first_difference(key, rows, compared, values))
    return inferences + _infer_from_value_lists(facts)


def _compare_end_steps(
    values: Sequence[RankValue],
) -> tuple[Mapping[int | None, Row], dict[int | None, StepComparison]]:
    """The values of one quantity by step, and the comparison of the first and the last common steps."""
    rows = step_comparison.group_by_step(values)
    steps = step_comparison.list_common_steps(rows)
    steps = [*steps[:_MAX_END_STEPS], *steps[max(_MAX_END_STEPS, len(steps) - _MAX_END_STEPS) :]]
    return rows, {step: step_comparison.compare_step(rows[step]) for step in steps}


def _differs_from_the_start(key: str, last: Mapping[int | None, StepComparison], values: ObservedValues) -> bool:
    """Whether ranks have different values by design: at all last steps, and in the first texts at all first steps."""
    if any(item.outcome != "mixed" for item in last.values()):
        return False
    starts = [value for value in values.read_starts(_FIRST_TEXTS) if value.key == key]
    first = _compare_end_steps(starts)[1]
    return bool(first) and all(item.outcome == "mixed" for item in first.values())


def _find_first_difference(
    key: str, rows: Mapping[int | None, Row], compared: Mapping[int | None, StepComparison], values: ObservedValues
) -> tuple[int | None, int | None, StepComparison]:
    """(last equal step, first differing step, comparison of the latter), as exactly as the files allow."""
    differing = next(step for step, item in compared.items() if item.outcome != "equal")
    steps = [step for step, item in compared.items() if step is not None and item.outcome == "equal"]
    equal = max((step for step in steps if differing is not None and step < differing), default=None)
    if differing is None or equal is None:
        return equal, differing, compared[differing]
    everyone = list(rows[differing].values())
    equal, first, comparison = _bisect(
        key, equal, differing, compared[differing], _select_values(rows[differing], compared[differing]), values
    )
    if first != differing and len({value.source for value in everyone}) <= _MAX_CONFIRMING_FILES:
        row = _read_row_near(key, first, first - 1, first + 1, everyone, values)
        comparison = step_comparison.compare_step(row[1]) if row else comparison
    return equal, first, comparison


def _bisect(
    key: str,
    equal: int,
    differing: int,
    comparison: StepComparison,
    selected: Sequence[RankValue],
    values: ObservedValues,
) -> tuple[int, int, StepComparison]:
    """Narrow the steps between an equal and a differing one, by reading the selected ranks only."""
    while differing - equal > 1:
        step_and_row = _read_row_near(key, (equal + differing) // 2, equal, differing, selected, values)
        if step_and_row is None:
            break
        step, row = step_and_row
        earlier = step_comparison.compare_step(row)
        if earlier.outcome == "equal":
            equal = step
        else:
            differing, comparison = step, _refine_comparison(comparison, earlier, row)
    return equal, differing, comparison


def _refine_comparison(known: StepComparison, earlier: StepComparison, row: Row) -> StepComparison:
    """The comparison of a few ranks at an earlier step; which rank is odd is known from the comparison of all ranks."""
    if not known.odd or earlier.odd:
        return earlier
    return StepComparison("odd", known.odd, earlier.usual, row.get(known.odd[0], earlier.other), known.ranks)


def _select_values(row: Row, comparison: StepComparison) -> list[RankValue]:
    """Values of some odd ranks and some others, whose files are read."""
    others = [value for rank, value in sorted(row.items()) if rank not in comparison.odd]
    odd = [row[rank] for rank in comparison.odd[: _MAX_SEARCHED_FILES // 2]]
    return [*odd, *others[: _MAX_SEARCHED_FILES - len(odd)]]


def _read_row_near(
    key: str, step: int, low: int, high: int, selected: Sequence[RankValue], values: ObservedValues
) -> tuple[int, Row] | None:
    """(step, values of the selected ranks) at the logged step between `low` and `high` that is nearest to `step`."""
    near = values.finders[selected[0].source].find_nearest_step(key, step, low, high)
    if near is None:
        return None
    sources = dict.fromkeys(value.source for value in selected)
    row = {value.rank: value for source in sources for value in values.finders[source].read_step(key, near)}
    return (near, row) if {value.rank for value in selected} <= set(row) else None


def _infer_value_diverged(
    key: str, equal: int | None, differing: int | None, comparison: StepComparison
) -> list[Evidence]:
    usual, other, odd = comparison.usual, comparison.other, comparison.odd
    if usual is None or other is None:
        return []
    at = f" at step {differing}" if differing is not None else ""
    difference = step_comparison.format_difference(usual, other)
    sides = f"{format_ranks(odd or (other.rank,))} {'have' if len(odd) > 1 else 'has'} {other.text}"
    sides += f", {'the others' if odd else format_ranks((usual.rank,))} {usual.text}{difference}"
    before = f"; equal at step {equal}" if equal is not None else ""
    return make_inferences(
        "value-diverged",
        odd or comparison.ranks,
        f"{key} differs between ranks that must agree{at}: {sides}{before}",
        value_evidence(other),
        quantity=key,
        step=str(differing if differing is not None else ""),
    )


def _infer_from_value_lists(facts: Sequence[Evidence]) -> list[Evidence]:
    """`WARNING: w inconsistent: [1.0, 1.0, 1.5, 1.0]`: one rank prints the values of all, in the order of the ranks."""
    inferences: list[Evidence] = []
    known: set[str] = set()
    for fact in facts:
        match = _VALUE_LIST.search(fact.text) if "inconsistent: [" in fact.text else None
        if match is None or match["values"] in known:
            continue
        known.add(match["values"])
        texts = [text.strip() for text in match["values"].split(",")]
        usual = max(sorted(set(texts)), key=texts.count)
        odd = [rank for rank, text in enumerate(texts) if text != usual]
        is_clear = len(texts) - len(odd) >= step_comparison.MAJORITY * len(texts)
        if odd and is_clear and len(texts) >= step_comparison.MIN_RANKS:
            sides = f"{format_ranks(odd)} {'have' if len(odd) > 1 else 'has'} {texts[odd[0]]}, the others {usual}"
            text = f"{match['quantity']} differs between ranks that must agree: {sides}"
            inferences += make_inferences("value-diverged", odd, text, fact, quantity=match["quantity"])
    return inferences


def _has_quantity(texts: ScannedTexts, memory: bool) -> bool:
    """Whether any of some texts, spread over all, contains a quantity near its end or start."""
    pattern = quantity_pattern(memory)
    every = max(1, len(texts) // _MAX_PROBED)
    return any(pattern.search(scan.tail) or pattern.search(scan.head) for _, scan in texts[::every])
