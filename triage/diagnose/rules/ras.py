"""Who is at fault by a report of NCCL's RAS subsystem: processes that are gone, and ranks that launched less or others.

A rank that launched fewer operations than others of its communicator has not come to the next one. One that launched
more than others in some communicator may wait there itself, so it is not where the hang began.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.diagnose.context import RuleContext
from triage.diagnose.phrases import agree
from triage.diagnose.ras_reports import RasReport, read_last_report
from triage.evidence.inference import DIFFERS, make_inferences
from triage.model import Evidence, RasDetail
from triage.model.ras import RasCommunicator, RasPart, RasProcess, RasSplit

_ONE_MOMENT = "one report shows one moment, and ranks of a running job may be some operations apart"
_UNCOUNTED = "RAS does not count sends and receives, and does not show calls that all have launched: it may wait in one"
_MOVED = "the counts moved between two reports, so the job may only be slow"
_SLOW = "RAS got no answer in time; the process may only be slow"
_MOST_SHOWN = 4
_TIMEOUT = lazy_re(r"(?i)\btimed[ -]?out\b")
_GONE = ("FINALIZE", "NOCOMM", "UNKNOWN")


@dataclass(frozen=True, slots=True)
class _Level:
    """Ranks of a communicator with one count of one operation. `is_top`: no rank of it launched more."""

    communicator: RasCommunicator
    split: RasSplit
    part: RasPart
    ranks: frozenset[int]
    is_top: bool


def ras_report(context: RuleContext) -> list[Evidence]:
    """NCCL's RAS names dead processes, and how many operations each rank launched: fewer, more or others than most, or
    that it left the communicator.
    """
    report = context.once(read_last_report)
    if report is None or _is_over(context):
        return []
    return (
        _find_gone(report, report.detail.dead, "")
        or _find_other_operations(context, report)
        or _find_gone(report, report.detail.silent, _SLOW)
        or _find_behind(context, report)
        or _find_left(context, report)
    )


def _is_over(context: RuleContext) -> bool:
    """Whether all ranks with a trace said that they were done: then they leave, and RAS calls them dead."""
    return bool(context.finished) and context.finished >= context.ranks


def describe_differences(context: RuleContext) -> list[Evidence]:
    """Say in what ranks differ by NCCL's RAS, that some report errors or that it got no data: not who is at fault."""
    report = context.once(read_last_report)
    if report is None or not report.detail.shows_trouble or _is_over(context):
        return []
    parts, suspects = [], set[int]()
    for one in report.detail.communicators:
        for split in one.splits:
            parts.append(f"{_describe_split(report, one, split)} in {one.label}")
            few = [part for part in split.parts if 2 * part.size < one.size or split.subject == "error"]
            suspects.update(rank for part in few for rank in report.ranks_of(one, split, part))
        parts += [f"no data of {len(one.missing)} of {one.size} ranks of {one.label}"] if one.missing else []
    more = [f"and {len(parts) - _MOST_SHOWN} more"] if len(parts) > _MOST_SHOWN else []
    text = "; ".join([*parts[:_MOST_SHOWN], *more]) or "RAS got no answer from some processes in time"
    return make_inferences(DIFFERS, suspects, f"NCCL's RAS report: {text}", report.fact, basis="absence")


def _describe_split(report: RasReport, one: RasCommunicator, split: RasSplit) -> str:
    """`rank 5 status ABORT, 7 ranks status RUNNING`."""
    named = []
    for part in split.parts[:_MOST_SHOWN]:
        ranks = report.ranks_of(one, split, part)
        who = format_ranks(ranks) if ranks else f"{part.size} {'rank' if part.size == 1 else 'ranks'}"
        who += _name_processes(part)
        named.append(f"{who} {part.value} {split.subject}" if split.is_count else f"{who} {split.subject} {part.value}")
    return ", ".join(named)


def _uncertainty(context: RuleContext, report: RasReport) -> str:
    if report.has_moved:
        return _MOVED
    has_timeout = report.is_frozen or any(
        not isinstance(fact.detail, RasDetail) and fact.kind != "inference" and _TIMEOUT.search(fact.text)
        for fact in context.facts
    )
    return "" if has_timeout else _ONE_MOMENT


def _find_gone(report: RasReport, processes: Sequence[RasProcess], uncertainty: str) -> list[Evidence]:
    """Processes that do not answer: their ranks, where they are known."""
    if not processes:
        return []
    named = sorted(
        {rank for process in processes if (rank := report.rank_of(process)) is not None}
        | _find_missing_ranks(report, processes)
    )
    is_dead = "dead" if not uncertainty else "without an answer"
    shown = ", ".join(map(str, processes[:_MOST_SHOWN]))
    more = f" and {len(processes) - _MOST_SHOWN} more" if len(processes) > _MOST_SHOWN else ""
    who = f"{format_ranks(named)} ({shown}{more})" if named else f"{shown}{more}"
    text = f"NCCL's RAS reports {who} as {is_dead}: the other ranks wait for {agree(processes, 'it', 'them')}"
    return make_inferences("process-unreachable", named, text, report.fact, uncertainty=uncertainty)


def _find_missing_ranks(report: RasReport, processes: Sequence[RasProcess]) -> set[int]:
    """Return the ranks that gave no data in the communicator of all, where only these processes did not answer."""
    for one in report.detail.communicators:
        if report.is_of_all(one) and len(one.missing) == len(processes):
            return {member.rank for member in one.missing if member.rank is not None}
    return set()


def _levels(report: RasReport) -> Iterator[_Level]:
    for one in report.detail.communicators:
        for split in one.splits:
            if split.is_count and split.parts:
                top = max(part.count for part in split.parts)
                for part in split.parts:
                    yield _Level(one, split, part, report.ranks_of(one, split, part), part.count == top)


def _find_other_operations(context: RuleContext, report: RasReport) -> list[Evidence]:
    """A rank that launched one operation less and another one more than most of its communicator called another one."""
    levels = [level for level in _levels(report) if 2 * level.part.size < level.communicator.size]
    for one in report.detail.communicators:
        own = [level for level in levels if level.communicator is one]
        fewer = [level for level in own if level.part.count < _usual(level.split)]
        more = [level for level in own if level.part.count > _usual(level.split)]
        for low in fewer:
            for high in more:
                if odd := low.ranks & high.ranks:
                    text = f"{format_ranks(odd)} launched {_describe(high)} and {_describe(low)} of {one.label};"
                    text += f" most ranks {_usual(high.split)} and {_usual(low.split)}"
                    doubt = _uncertainty(context, report)
                    return make_inferences("divergent-call", odd, text, report.fact, uncertainty=doubt)
    return []


def _usual(split: RasSplit) -> int:
    return max(split.parts, key=lambda part: part.size).count


def _describe(level: _Level) -> str:
    count = level.part.count
    return f"{count or 'no'} {level.split.subject} operation{'' if count == 1 else 's'}"


def _find_behind(context: RuleContext, report: RasReport) -> list[Evidence]:
    """Ranks that launched less than others somewhere, and more nowhere; without one, each waits for another."""
    levels = list(_levels(report))
    behind = {rank for level in levels if not level.is_top for rank in level.ranks}
    ahead = {rank for level in levels if level.is_top for rank in level.ranks}
    uncertainty = _uncertainty(context, report)
    if alone := next((one for one in levels if one.ranks & behind and _is_alone_ahead(one)), None):
        doubt = "the others may have left this call out"
        return make_inferences("extra-collective", alone.ranks, _sentence(alone), report.fact, uncertainty=doubt)
    if behind and not behind - ahead:
        text = "; ".join(map(_sentence, _lowest(levels)[:_MOST_SHOWN]))
        text += ": each of them launched more than the others elsewhere, so they wait for each other"
        doubt = "any of them may use the wrong order or group"
        return make_inferences("group-order", behind, text, report.fact, uncertainty=doubt)
    late = [level for level in _lowest(levels) if level.ranks - ahead]
    few = [level for level in late if 2 * level.part.size <= level.communicator.size]
    if not few:
        return _conclude_extra(report, levels)
    ranks = _without_waiting(frozenset(rank for level in few for rank in level.ranks - ahead), levels)
    shown = [level for level in few if level.ranks & ranks]
    text = "; ".join(map(_sentence, shown[:_MOST_SHOWN]))
    return make_inferences("lagging-rank", ranks, text, report.fact, uncertainty=uncertainty or _UNCOUNTED)


def _without_waiting(ranks: frozenset[int], levels: Sequence[_Level]) -> frozenset[int]:
    """Return the ranks without those that may wait for others of them, in communicators whose ranks are not listed."""
    if all(level.ranks for level in levels if level.is_top):
        return ranks
    behind = {
        rank: len({level.communicator.name for level in levels if not level.is_top and rank in level.ranks})
        for rank in ranks
    }
    return frozenset(rank for rank in ranks if behind[rank] == max(behind.values()))


def _lowest(levels: Iterable[_Level]) -> list[_Level]:
    """Return of each communicator and operation the ranks that launched least."""
    lowest: dict[tuple[str, str], _Level] = {}
    for level in levels:
        key = level.communicator.name, level.split.subject
        if not level.is_top and (key not in lowest or level.part.count < lowest[key].part.count):
            lowest[key] = level
    return list(lowest.values())


def _is_alone_ahead(level: _Level) -> bool:
    """Whether fewer than half launched more than the others of their communicator."""
    return level.is_top and 2 * level.part.size < level.communicator.size


def _conclude_extra(report: RasReport, levels: Sequence[_Level]) -> list[Evidence]:
    """Most ranks launched less than a few: these made a call too many, or the others all stand outside of calls."""
    top = next((one for one in levels if one.ranks and _is_alone_ahead(one)), None)
    if top is None:
        return []
    doubt = "the others may all hang outside of collectives"
    return make_inferences("extra-collective", top.ranks, _sentence(top), report.fact, uncertainty=doubt)


def _sentence(level: _Level) -> str:
    """`rank 5 launched 9 AllReduce operations of communicator #0-0 (9699…), 7 ranks 13`."""
    who = format_ranks(level.ranks) if level.ranks else f"{level.part.size} ranks"
    others = sorted((part for part in level.split.parts if part is not level.part), key=lambda part: -part.size)
    rest = ", ".join(
        f"{part.size} {'rank' if part.size == 1 else 'ranks'} {part.value}" for part in others[:_MOST_SHOWN]
    )
    who += _name_processes(level.part)
    return f"{who} launched {_describe(level)} of {level.communicator.label}, {rest}"


def _name_processes(part: RasPart) -> str:
    processes = ", ".join(str(member) for member in part.members if member.pid is not None)
    return f" ({processes})" if processes and part.size <= _MOST_SHOWN else ""


def _find_left(context: RuleContext, report: RasReport) -> list[Evidence]:
    """A few ranks have left a communicator in which most run, or run in one that most have left."""
    for one in report.detail.communicators:
        split = next((each for each in one.splits if each.subject == "status"), None)
        for part in split.parts if split is not None else ():
            ranks = report.ranks_of(one, split, part) if split is not None else frozenset[int]()
            if not ranks or 2 * part.size >= one.size or part.value not in (*_GONE, "RUNNING"):
                continue
            rule = "left-early" if part.value in _GONE else "lagging-rank"
            verb = agree(ranks, "has", "have")
            text = f"{format_ranks(ranks)} {verb} the status {part.value} in {one.label}, others do not"
            return make_inferences(rule, ranks, text, report.fact, uncertainty=_uncertainty(context, report))
    return []
