"""Divergence: quantities that all ranks print and that must agree. The first step at which one does not, the odd rank,
by how much.

Cost: the scan is not asked. The head and the tail of every text, which are in memory anyway, tell whether the ranks
print such a
quantity and whether they agree at the start and at the end; only when they do not, the first step is looked for, in a
few of the files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from triage.base.lazy_re import lazy_re
from triage.compare import table
from triage.compare.finder import Finder
from triage.compare.quantities import Value, gate, observe
from triage.compare.table import Judged, Row
from triage.compare.words import say_ranks
from triage.evidence.collect import Harvest, text_of
from triage.evidence.inference import inferred
from triage.model.evidence import Evidence, Source
from triage.scan.interface import Scanned

Read = Callable[[int, int], bytes]
Texts = Sequence[tuple[Source, Scanned]]

_PROBED = 256  # texts whose tails are searched before anything is parsed
# lines at the ends of all texts that are parsed, half as many at their starts, if that leaves a few steps for each rank
_BUDGET = 240
_LAST, _FIRST = 3, 2
_STEPS = 6  # common steps that are judged at either end
_LOOKED_AT = 6  # files in which the first step is looked for
_ALL = 64  # files that are all read at the step that was found
_SOME = 8  # texts whose starts show whether all others are worth reading
_LISTS = lazy_re(r"(?P<quantity>\S*\w)[^\s\w]* (?:(?:is|are|was|were) )?inconsistent: \[(?P<values>[^\]\n]*)")


class Values:
    """What the ranks of a job print: near the ends of their texts at once, near the starts when somebody asks."""

    def __init__(
        self, texts: Texts, read_of: Callable[[Source, Scanned], Read], gathered: Harvest, *, memory: bool
    ) -> None:
        found = texts if _probe(texts, memory) else ()
        job = gathered.job
        reads = [(source, scan, read_of(source, scan)) for source, scan in found]
        self.finders = {
            source.name: Finder(source, scan, read, text_of(source, scan, read, gathered), job.complete)
            for source, scan, read in reads
        }
        self._share = _BUDGET // max(1, len(self.finders))
        self._writers = {name: max(1, len(job.by_source.get(name, ()))) for name in self.finders}
        self._memory = memory
        self.ends = [value for finder in self.finders.values() for value in self._end(finder)]
        self._starts: dict[str, list[Value]] = {}

    def starts(self, most: int) -> list[Value]:
        """The values in the first lines of so many texts."""
        names = list(self.finders)[:most]
        for name in names:
            if name not in self._starts:
                self._starts[name] = self._start(self.finders[name])
        return [value for name in names for value in self._starts[name]]

    def _end(self, finder: Finder) -> list[Value]:
        source, scan = finder.source, finder.scan
        most = max(self._share, _LAST * self._writers[source.name])
        base = scan.size - len(scan.tail)
        return observe(finder.text, source, scan.tail, base, finder.complete, most=most, last=True, memory=self._memory)

    def _start(self, finder: Finder) -> list[Value]:
        source = finder.source
        most = max(self._share // 2, _FIRST * self._writers[source.name])
        return observe(finder.text, source, finder.scan.head, 0, finder.complete, most=most, last=False)


def of_worth(values: Iterable[Value], *worth: str) -> dict[str, list[Value]]:
    """The values of some worth by quantity, of those that more than one rank tells."""
    found: dict[str, list[Value]] = defaultdict(list)
    for value in values:
        if value.worth in worth:
            found[value.key].append(value)
    return {key: told for key, told in sorted(found.items()) if len({value.rank for value in told}) > 1}


def diverged(values: Values, facts: Sequence[Evidence]) -> list[Evidence]:
    """An inference for each quantity that diverged, one for each odd rank."""
    found: list[Evidence] = []
    for key, ends in of_worth(values.ends, "exact", "must", "maybe").items():
        _, last = _judged(ends)
        if all(item.how == "equal" for item in last.values()) or (
            ends[0].worth == "maybe" and _own_from_the_start(key, last, values)
        ):
            continue
        told = list(
            dict.fromkeys((*(value for value in values.starts(len(values.finders)) if value.key == key), *ends))
        )
        rows, judged = _judged(told)
        wrong = any(item.how != "equal" for item in judged.values())
        if wrong and table.comparable(told[0].worth, judged, {step: rows[step] for step in judged}):
            found += _told(key, *_first(key, rows, judged, values))
    return found + _listed(facts)


def _judged(told: Sequence[Value]) -> tuple[Mapping[int | None, Row], dict[int | None, Judged]]:
    """The table of one quantity, and how the ranks stand at some steps of either end that they have in common."""
    rows = table.rows(told)
    steps = table.common(rows)
    steps = [*steps[:_STEPS], *steps[max(_STEPS, len(steps) - _STEPS) :]]
    return rows, {step: table.judge(rows[step]) for step in steps}


def _own_from_the_start(key: str, last: Mapping[int | None, Judged], values: Values) -> bool:
    """Does every rank print a value of its own in the end, and did the first few do so from the start? Then there is
    nothing to compare.
    """
    if any(item.how != "mixed" for item in last.values()):
        return False
    told = [value for value in values.starts(_SOME) if value.key == key]
    first = _judged(told)[1]
    return bool(first) and all(item.how == "mixed" for item in first.values())


def _first(
    key: str, rows: Mapping[int | None, Row], judged: Mapping[int | None, Judged], values: Values
) -> tuple[int | None, int | None, Judged]:
    """(last step at which all agreed, first at which they do not, how they stand there), as near as the files allow."""
    wrong = next(step for step, found in judged.items() if found.how != "equal")
    right = max(
        (
            step
            for step, found in judged.items()
            if step is not None and found.how == "equal" and wrong is not None and step < wrong
        ),
        default=None,
    )
    best = judged[wrong]
    if wrong is None or right is None:
        return right, wrong, best
    last, chosen = wrong, _chosen(rows[wrong], best)
    while wrong - right > 1:
        row = _row(key, (right + wrong) // 2, right, wrong, chosen, values)
        if row is None:
            break
        step, met = row
        found = table.judge(met)
        if found.how == "equal":
            right = step
        else:
            wrong, best = step, _narrowed(best, found, met)
    everyone = list(rows[last].values())
    if (
        wrong != last
        and len({value.source for value in everyone}) <= _ALL
        and (row := _row(key, wrong, wrong - 1, wrong + 1, everyone, values))
    ):
        best = table.judge(row[1])
    return right, wrong, best


def _narrowed(known: Judged, found: Judged, met: Row) -> Judged:
    """How the few chosen ranks stand at an earlier step; that a rank is the odd one is known from all of them."""
    if not known.odd or found.odd:
        return found
    return Judged("odd", known.odd, found.usual, met.get(known.odd[0], found.other), known.ranks)


def _chosen(row: Row, judged: Judged) -> list[Value]:
    """Values of the odd ranks and of some others, whose files are read; those of one file need it only once."""
    others = [value for rank, value in sorted(row.items()) if rank not in judged.odd]
    odd = [row[rank] for rank in judged.odd]
    return [*odd[: _LOOKED_AT // 2], *others[: _LOOKED_AT - min(len(odd), _LOOKED_AT // 2)]]


def _row(
    key: str, step: int, right: int, wrong: int, chosen: Sequence[Value], values: Values
) -> tuple[int, Row] | None:
    """The values of the chosen ranks at `step`, or at a step near it if that one is not printed."""
    near = values.finders[chosen[0].source].nearest(key, step, right, wrong)
    if near is None:
        return None
    met: dict[int, Value] = {}
    for name in dict.fromkeys(value.source for value in chosen):
        met.update({value.rank: value for value in values.finders[name].at(key, near)})
    return (near, met) if {value.rank for value in chosen} <= set(met) else None


def _told(key: str, right: int | None, wrong: int | None, found: Judged) -> list[Evidence]:
    usual, other = found.usual, found.other
    if usual is None or other is None:
        return []
    at = f" at step {wrong}" if wrong is not None else ""
    sides = f"{say_ranks(found.odd or (other.rank,))} {'have' if len(found.odd) > 1 else 'has'} {other.text}"
    sides += (
        f", {'the others' if found.odd else say_ranks((usual.rank,))} {usual.text}{table.by_how_much(usual, other)}"
    )
    before = f"; equal at step {right}" if right is not None else ""
    text = f"{key} differs between ranks that must agree{at}: {sides}{before}"
    return inferred(
        "value-diverged",
        found.odd or found.ranks,
        text,
        _basis(other),
        quantity=key,
        step=str(wrong if wrong is not None else ""),
    )


def _basis(value: Value) -> Evidence:
    return Evidence(
        "value", value.worth, value.line, value.origin, value.source, value.offset, value.offset, {}, value.line
    )


def _listed(facts: Sequence[Evidence]) -> list[Evidence]:
    """`WARNING: w inconsistent: [1.0, 1.0, 1.5, 1.0]`: one rank prints the values of all, in the order of the ranks."""
    found: list[Evidence] = []
    told: set[str] = set()
    for fact in facts:
        match = _LISTS.search(fact.text) if "inconsistent: [" in fact.text else None
        if match is None or match["values"] in told:
            continue
        told.add(match["values"])
        texts = [text.strip() for text in match["values"].split(",")]
        usual = max(sorted(set(texts)), key=texts.count)
        odd = [rank for rank, text in enumerate(texts) if text != usual]
        if odd and len(texts) - len(odd) >= table.SHARE * len(texts) and len(texts) >= table.FEWEST:
            text = f"{match['quantity']} differs between ranks that must agree: {say_ranks(odd)} {texts[odd[0]]}, the others {usual}"
            found += inferred("value-diverged", odd, text, fact, quantity=match["quantity"])
    return found


def _probe(texts: Texts, memory: bool) -> bool:
    """Does any of some texts, spread over all, tell a quantity near its end or start?"""
    pattern = gate(memory)
    every = max(1, len(texts) // _PROBED)
    return any(pattern.search(scan.tail) or pattern.search(scan.head) for _, scan in texts[::every])
