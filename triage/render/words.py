"""The words that several formats share: which findings go under which heading, ranks, sizes, clocks, confidence.

Only names and groups what the diagnosis already holds. Everything here uses no more than the JSON contract carries, so
that a saved report shows the same as a fresh one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from triage.model.diagnosis import Diagnosis, Finding, Job, RankState
from triage.model.evidence import Evidence, Origin

Kind = Literal["ROOT CAUSE", "UNKNOWN FAILURE", "SYMPTOMS ONLY", "CLEAN"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STATE_MARKS = {"failed": "F", "killed": "K", "stalled": "S", "silent": "-", "ok": "."}


def kind(diagnosis: Diagnosis) -> Kind:
    """The verdict as the reader meets it: an unknown failure and mere symptoms are different news."""
    root = diagnosis.root_cause
    if diagnosis.verdict == "clean":
        return "CLEAN"
    if root is not None and root.signature is not None:
        return "ROOT CAUSE"
    if root is not None and root.role != "symptom":
        return "UNKNOWN FAILURE"
    return "SYMPTOMS ONLY"


def headline(diagnosis: Diagnosis) -> str:
    """The verdict in one sentence, without the word that `kind` gives."""
    root = diagnosis.root_cause
    found = kind(diagnosis)
    if found == "CLEAN":
        last = clock(diagnosis.job.last_time, diagnosis)
        return f"no failure found in {plural(diagnosis.stats.files, 'file')}" + (
            f"; last line at {last}" if last else ""
        )
    if root is None:
        return "the job failed, and no line says where it began"
    if found == "ROOT CAUSE":
        return root.title
    if found == "UNKNOWN FAILURE":
        return f"began on {ranks(root.ranks) or 'a rank that the files do not name'}: {root.title}"
    return f"suspects: {ranks(root.ranks)}" if root.ranks else "the cause is not in these files, nor which rank it was"


def job(described: Job) -> str:
    """`llama-7b, 16 ranks on 2 hosts, torch 2.6.0`, whatever of it is known."""
    count = described.world_size or len(described.ranks)
    size_said = plural(count, "rank") if count else ""
    if size_said and described.hosts:
        size_said += f" on {plural(len(described.hosts), 'host')}"
    return ", ".join(
        part for part in [described.name, size_said, *(f"{k} {v}" for k, v in described.versions.items())] if part
    )


def confidence(value: float) -> str:
    """`high (0.9)`; the words' bounds are 0.8 and 0.5."""
    word = "high" if value >= 0.8 else "medium" if value >= 0.5 else "low"
    number = f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{word} ({number})"


def certainty(value: float) -> str:
    """`high`, where a number says more than is known."""
    return confidence(value).partition(" ")[0]


def radius(diagnosis: Diagnosis) -> str:
    """`3 of 1,024 ranks, first rank 512 on node64 at 10:00:03`, whatever of it is known."""
    root = diagnosis.root_cause
    if root is None:
        return ""
    origin = root.evidence[0].origin if root.evidence else Origin()
    first = (
        origin.rank
        if origin.rank is not None and (origin.rank in root.ranks or not root.ranks)
        else next(iter(root.ranks), None)
    )
    host = origin.host or next(iter(root.hosts), None)
    time = clock(root.first_time if origin.time is None else origin.time, diagnosis)
    world = diagnosis.job.world_size or len(diagnosis.job.ranks)
    count = len(set(root.ranks))
    share = f"{count:,} of {plural(world, 'rank')}" if count and world >= count and world > 1 else ""
    only = f"rank {first}" if first is not None else ""
    named = f"first {only}" if only and count > 1 else only
    place = " ".join(part for part in (named, f"on {host}" if host else "", f"at {time}" if time else "") if part)
    return ", ".join(part for part in (share, place) if part)


def rank_list(ranks: Iterable[int]) -> str:
    """Ranks as ranges: `0-3, 7`."""
    spans: list[tuple[int, int]] = []
    for rank in sorted(set(ranks)):
        if spans and spans[-1][1] == rank - 1:
            spans[-1] = (spans[-1][0], rank)
        else:
            spans.append((rank, rank))
    shown = [str(low) if low == high else f"{low}-{high}" for low, high in spans[:12]]
    return ", ".join(shown) + (f" and {len(spans) - 12} more ranges" if len(spans) > 12 else "")


def ranks(numbers: Sequence[int]) -> str:
    """`rank 3`, `ranks 0-3, 7`, or nothing."""
    return f"{'rank' if len(set(numbers)) == 1 else 'ranks'} {rank_list(numbers)}" if numbers else ""


def hosts(names: Sequence[str]) -> str:
    """The first hosts by name, the rest by number."""
    if len(names) <= 4:
        return ", ".join(names)
    return f"{', '.join(names[:3])} and {len(names) - 3} more hosts"


def who(finding: Finding) -> str:
    """`rank 1 on node1`, whatever of it is known."""
    first = next(iter(finding.evidence), None)
    said = ranks(finding.ranks)
    if not said and first is not None and first.origin.rank is None and first.origin.local_rank is not None:
        said = f"local rank {first.origin.local_rank}"
    where = f"on {hosts(finding.hosts)}" if finding.hosts else ""
    return f"{said} {where}".strip()


def seen(diagnosis: Diagnosis) -> str:
    """Who stands before the line that is shown: the rank that began it; of mere symptoms, the rank that wrote the line."""
    root = diagnosis.root_cause
    if root is None or kind(diagnosis) != "SYMPTOMS ONLY" or not root.evidence:
        return who(root) if root is not None else ""
    rank = root.evidence[0].origin.rank
    return "first seen" + (f" on rank {rank}" if rank is not None else "")


def moment(seconds: float | None) -> datetime | None:
    """The time in UTC at microsecond steps, None for what no calendar holds."""
    if seconds is None:
        return None
    try:
        return _EPOCH + timedelta(microseconds=round(seconds * 1_000_000))
    except (OverflowError, ValueError):
        return None


def clock(seconds: float | None, diagnosis: Diagnosis) -> str:
    """`03:17:26`, with the date when the job crossed midnight or its days are not known."""
    when = moment(seconds)
    if when is None:
        return ""
    first, last = moment(diagnosis.job.first_time), moment(diagnosis.job.last_time)
    one_day = first is not None and last is not None and first.date() == last.date() == when.date()
    return when.strftime("%H:%M:%S") if one_day else when.isoformat(sep=" ", timespec="seconds")[:19]


def short(source: str, diagnosis: Diagnosis) -> str:
    """The source below the job's path; the path itself stands once, at the end of the report."""
    path = diagnosis.job.path
    root = path if path.endswith("/") else path + "/"
    below = source.removeprefix(root) if path else source
    return below or source


def place(evidence: Evidence, diagnosis: Diagnosis) -> str:
    """`logs/rank3.log:61`, below the job's path."""
    source = short(evidence.source, diagnosis)
    return f"{source}:{evidence.line}" if evidence.line is not None else source


def size(count: int) -> str:
    """Bytes in decimal units, one digit after the point."""
    value = float(count)
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if value < 999.95 or unit == "TB":
            return f"{count} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


def plural(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


@dataclass(frozen=True)
class Groups:
    """The findings beside the root cause, by what they are to it."""

    caused: list[Finding] = field(default_factory=list)
    confirmed: list[Finding] = field(default_factory=list)
    considered: list[Finding] = field(default_factory=list)
    noise: list[Finding] = field(default_factory=list)


def groups(diagnosis: Diagnosis) -> Groups:
    """Sort the findings under their headings; what the root explains through others counts as caused by it."""
    out = Groups()
    root = diagnosis.root_cause
    reach = _explained(diagnosis)
    for finding in diagnosis.findings:
        if finding == root:
            continue
        if finding.role == "noise":
            out.noise.append(finding)
        elif finding.signature in reach:
            (out.confirmed if finding.role == "confirmation" else out.caused).append(finding)
        else:
            out.considered.append(finding)
    return out


def _explained(diagnosis: Diagnosis) -> set[str]:
    root = diagnosis.root_cause
    if root is None:
        return set()
    reach = {name for name in (root.signature, root.cluster) if name}
    begun = set(reach)
    grown = True
    while grown:
        more = {f.signature for f in diagnosis.findings if f.signature and reach.intersection(f.explained_by)} - reach
        grown = bool(more)
        reach |= more
    return reach - begun


def timeline(diagnosis: Diagnosis) -> list[tuple[str, str, str]]:
    """(clock, ranks, what) of each moment; neighbours in which ranks say the same are one. Nothing when all say one
    thing.
    """
    groups: list[tuple[str, list[int], str]] = []
    for item in diagnosis.timeline:
        what = item.signature or item.what
        if not groups or groups[-1][2] != what:
            groups.append((clock(item.time, diagnosis), [], what))
        groups[-1][1].extend([] if item.rank is None else [item.rank])
    return [(time, ranks(numbers), what) for time, numbers, what in groups] if len(groups) > 1 else []


def warnings(diagnosis: Diagnosis) -> list[tuple[list[str], str, str]]:
    """(sources, message, code) of the warnings; those that say the same of several sources are one."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for item in diagnosis.warnings:
        sources = grouped.setdefault((item.message, item.code), [])
        if item.source is not None:
            sources.append(short(item.source, diagnosis))
    return [(sources, message, code) for (message, code), sources in grouped.items()]


def others(diagnosis: Diagnosis) -> list[Finding]:
    """The unknown failures beside the root cause."""
    root = diagnosis.root_cause
    return [item for item in diagnosis.unknown if root is None or item.cluster is None or item.cluster != root.cluster]


def summary(finding: Finding) -> str:
    """One finding in a line, without its reasons: `gloo.x on rank 0 (3×)`."""
    name = finding.signature or finding.cluster or finding.title
    on = f" on {ranks(finding.ranks)}" if finding.ranks else ""
    return f"{name}{on}" + (f" ({finding.count}×)" if finding.count > 1 else "")


@dataclass(frozen=True)
class GridLine:
    """Ranks `first` to `last`, one mark each; `repeats` lines more are the same and end at `last`."""

    first: int
    last: int
    marks: str


def rank_grid(states: Sequence[RankState], cells: int, began: Iterable[int] = ()) -> list[GridLine]:
    """One character a rank, `cells` to a line, each line starting at a multiple of `cells`; equal lines are one, but
    for those of ranks in `began`.

    A rank of which nothing is said is a space inside a line; a line without any rank is left out.
    """
    rows: dict[int, list[str]] = {}
    for state in states:
        row = rows.setdefault(state.rank // cells, [" "] * cells)
        row[state.rank % cells] = STATE_MARKS[state.state]
    out: list[GridLine] = []
    here = {rank // cells for rank in began}
    for number in sorted(rows):
        marks = "".join(rows[number]).rstrip()
        first, last = number * cells, number * cells + len(marks) - 1
        alone = not here.isdisjoint((number, number - 1))
        if not alone and out and out[-1].marks == marks and len(marks) == cells and out[-1].last == first - 1:
            out[-1] = GridLine(out[-1].first, last, marks)
        else:
            out.append(GridLine(first, last, marks))
    return out


def beginners(diagnosis: Diagnosis) -> tuple[int, ...]:
    """The ranks where it began, unless that is (nearly) all of them."""
    blamed = diagnosis.root_cause.ranks if diagnosis.root_cause is not None else ()
    return blamed if 2 * len(blamed) <= len(diagnosis.ranks) else ()


def began_here(line: GridLine, began: Iterable[int], room: int) -> str:
    """What stands behind a line of marks: `  < 170`; empty where it began elsewhere, or where there is no room."""
    here = [rank for rank in began if line.first <= rank <= line.last]
    told = f"  < {rank_list(here)}" if here else ""
    return told if len(told) <= room else "  <" if room > 2 else ""


def legend(states: Sequence[RankState]) -> str:
    """The marks that occur, with their words and numbers: `F 1 failed  . 7 ok`."""
    counts = {state: sum(1 for item in states if item.state == state) for state in STATE_MARKS}
    return "   ".join(f"{STATE_MARKS[state]} {state} ({count})" for state, count in counts.items() if count)
