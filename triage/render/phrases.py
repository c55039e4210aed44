"""Phrases and groups that several formats share: verdict, places, sizes, times, findings by what they are to the root.

Everything here uses no more than the JSON report carries, so that a saved report shows the same as a fresh one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Literal

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.model import INCONCLUSIVE, Diagnosis, Evidence, Finding, Job, Moment, Origin
from triage.model.diagnosis import RemoteCost
from triage.render.sanitize import sanitize

VerdictKind = Literal["ROOT CAUSE", "UNKNOWN FAILURE", "SYMPTOMS ONLY", "INCONCLUSIVE", "CLEAN"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A reason that only names other findings: they have a section of their own.
_NAMES_FINDINGS = lazy_re(
    r"(?i)(?:it )?(?:explains|caused|follows from|(?:a )?consequence of) (?:[a-z0-9_]+\.[a-z0-9_.-]+|u-[0-9a-f]+)"
)
_NEXT_TIME = "next time: "  # before the list of what to collect
_ONLY_SYMPTOMS = "only symptoms"  # a reason that the verdict repeats
_LAST_LINE = lazy_re(r"(?i)(?:its )?last line\b")  # how the timeline names the last line of a silent rank

OR_LATER = "+"
OR_LATER_MEANING = "+: no timestamp of its own; at the previous timestamp or later."
_MOST_TITLES = 3  # of independent failures in one headline
_SHORT_TITLE = 60
STATE_MARKS = {"failed": "F", "killed": "K", "stalled": "S", "silent": "-", "unclear": "?", "ok": "."}


def verdict_kind(diagnosis: Diagnosis) -> VerdictKind:
    """Return the verdict, with an unknown failure kept apart from mere symptoms."""
    root = diagnosis.root_cause
    if diagnosis.verdict == "clean":
        return "CLEAN"
    if diagnosis.verdict == "inconclusive":
        return "INCONCLUSIVE"
    if root is not None and root.signature is not None:
        return "ROOT CAUSE"
    return "UNKNOWN FAILURE" if root is not None and root.role != "symptom" else "SYMPTOMS ONLY"


def headline(diagnosis: Diagnosis) -> str:
    """Return the verdict in one sentence, without the verdict kind."""
    root = diagnosis.root_cause
    kind = verdict_kind(diagnosis)
    if kind == "CLEAN":
        last = format_time(diagnosis.job.last_time, diagnosis)
        return f"no failure found in {format_count(diagnosis.stats.files, 'file')}" + (
            f"; last line at {last}" if last else ""
        )
    if kind == "INCONCLUSIVE":
        return INCONCLUSIVE
    if root is None:
        return "the job failed; no line shows where it began"
    ranks = format_ranks(root.ranks) if root.ranks else ""
    if root.alongside:
        return _headline_of_several(diagnosis)
    if kind == "ROOT CAUSE":
        return root.title
    if kind == "UNKNOWN FAILURE":
        return f"began on {ranks or 'an unknown rank'}: {root.title}"
    return f"suspects: {ranks}" if ranks else "these files show neither the cause nor the rank where it began"


def _headline_of_several(diagnosis: Diagnosis) -> str:
    """Return `2 independent failures: rank 3: …; rank 5: …`; of many the first ones."""
    titles = [f"{format_ranks(one.ranks)}: {_shorten_title(one.title)}" for one in began(diagnosis)]
    more = f"; and {len(titles) - _MOST_TITLES} more" if len(titles) > _MOST_TITLES else ""
    return f"{len(titles)} independent failures: {'; '.join(titles[:_MOST_TITLES])}{more}"


def _shorten_title(title: str) -> str:
    return title if len(title) <= _SHORT_TITLE else title[: _SHORT_TITLE - 1].rstrip() + "…"


def describe_job(job: Job) -> str:
    """Return `llama-7b, 16 ranks on 2 hosts, torch 2.6.0`, as far as known."""
    count = job.world_size or len(job.ranks)
    extent = format_count(count, "rank") if count else ""
    if extent and job.hosts:
        extent += f" on {format_count(len(job.hosts), 'host')}"
    return ", ".join(part for part in [job.name, extent, *(f"{k} {v}" for k, v in job.versions.items())] if part)


def describe_remote(cost: RemoteCost) -> str:
    """Return what reading addresses cost: `12 requests (1 repeated), 3.4 MB received`."""
    repeated = f" ({cost.retries} repeated)" if cost.retries else ""
    return f"{format_count(cost.requests, 'request')}{repeated}, {format_bytes(cost.bytes)} received"


def footer_parts(diagnosis: Diagnosis, with_path: bool = True) -> list[str]:
    """Return job, path, sizes, duration and versions for the last line of a report, as far as known."""
    stats = diagnosis.stats
    parts = [
        describe_job(diagnosis.job),
        diagnosis.job.path if with_path and diagnosis.job.path != diagnosis.job.name else "",
        format_count(stats.files, "file"),
        format_bytes(stats.bytes),
        describe_remote(stats.remote) if stats.remote is not None else "",
        f"{stats.seconds:.1f} s",
        f"catalog {diagnosis.catalog_version}",
        f"triage {diagnosis.tool_version}",
    ]
    return [part for part in parts if part]


def format_confidence(value: float) -> str:
    """Return `high (0.9)`: high from 0.8, medium from 0.5."""
    number = f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{confidence_level(value)} ({number})"


def confidence_level(value: float) -> str:
    """Return `high`, `medium` or `low`."""
    return "high" if value >= 0.8 else "medium" if value >= 0.5 else "low"


def describe_extent(diagnosis: Diagnosis) -> str:
    """Return `3 of 1,024 ranks, first rank 512 on node64 at 10:00:03`, as far as known."""
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
    time = format_time(root.first_time if origin.time is None else origin.time, diagnosis)
    world = diagnosis.job.world_size or len(diagnosis.job.ranks)
    count = len(set(root.ranks))
    share = f"{count:,} of {format_count(world, 'rank')}" if count and world >= count and world > 1 else ""
    rank = f"{'first ' if count > 1 else ''}rank {first}" if first is not None else ""
    place = " ".join(part for part in (rank, f"on {host}" if host else "", f"at {time}" if time else "") if part)
    return ", ".join(part for part in (share, place) if part)


def format_hosts(names: Sequence[str]) -> str:
    """Return up to four host names; of more, three names and how many more."""
    if len(names) <= 4:
        return ", ".join(names)
    return f"{', '.join(names[:3])} and {len(names) - 3} more hosts"


def describe_location(finding: Finding) -> str:
    """Return `rank 1 on node1`, as far as known."""
    origin = finding.evidence[0].origin if finding.evidence else Origin()
    ranks = format_ranks(finding.ranks) if finding.ranks else ""
    if not ranks and origin.rank is None and origin.local_rank is not None:
        ranks = f"local rank {origin.local_rank}"
    hosts = f"on {format_hosts(finding.hosts)}" if finding.hosts else ""
    return f"{ranks} {hosts}".strip()


def describe_line_origin(diagnosis: Diagnosis) -> str:
    """Return whose line is quoted: where the failure began or, of mere symptoms, the rank that wrote the line."""
    root = diagnosis.root_cause
    if root is None or verdict_kind(diagnosis) != "SYMPTOMS ONLY" or not root.evidence:
        return describe_location(root) + _describe_owner(root) if root is not None else ""
    rank = root.evidence[0].origin.rank
    return "first symptom" + (f" on rank {rank}" if rank is not None else "")


def _describe_owner(root: Finding) -> str:
    """Return ` (its worker 5714 was killed)`, where that is how the only rank is known."""
    start = f"Rank {root.ranks[0]}: its " if len(root.ranks) == 1 else ""
    reasons = [reason.removeprefix(start) for reason in root.why if start and reason.startswith(start)]
    return f" (its {reasons[0]})" if reasons else ""


def to_datetime(seconds: float | None) -> datetime | None:
    """Return the time in UTC, rounded to microseconds; None for a time outside of the calendar."""
    if seconds is None:
        return None
    try:
        return _EPOCH + timedelta(microseconds=round(seconds * 1_000_000))
    except (OverflowError, ValueError):
        return None


def format_time(seconds: float | None, diagnosis: Diagnosis) -> str:
    """Return `03:17:26`, with the date if the job crossed midnight or its days are unknown."""
    when = to_datetime(seconds)
    if when is None:
        return ""
    first, last = to_datetime(diagnosis.job.first_time), to_datetime(diagnosis.job.last_time)
    one_day = first is not None and last is not None and first.date() == last.date() == when.date()
    return when.strftime("%H:%M:%S") if one_day else when.isoformat(sep=" ", timespec="seconds")[:19]


def describe_root_time(diagnosis: Diagnosis) -> str:
    """Return the time of the quoted line, or else of the root cause, as `05:51:41`; empty if no time is known.

    `05:51:41+` says that the line has no time of its own: it was written then or later.
    """
    root = diagnosis.root_cause
    if root is None:
        return ""
    own = root.evidence[0].origin.time if root.evidence else None
    time = root.first_time if own is None else own
    is_borrowed = any(
        moment.or_later and moment.time == time and is_root_moment(moment, [root]) for moment in diagnosis.timeline
    )
    return format_time(time, diagnosis) + (OR_LATER if is_borrowed else "")


def format_moment_time(moment: Moment, diagnosis: Diagnosis) -> str:
    """Return `05:51:41`, or `05:51:41+` if the line has no time of its own."""
    time = format_time(moment.time, diagnosis)
    return time + OR_LATER if time and moment.or_later else time


def is_root_moment(moment: Moment, began: Iterable[Finding]) -> bool:
    """Return whether the moment shows one of the failures with which it began; mere symptoms are none."""
    return any(
        moment.signature == finding.signature
        if finding.signature is not None
        else is_failure(finding)
        and moment.signature is None
        and moment.rank in finding.ranks
        and not is_last_line(moment)
        for finding in began
    )


def is_last_line(moment: Moment) -> bool:
    """Return whether the moment is the last line of a silent rank."""
    return moment.signature is None and is_last_line_text(moment.what)


def is_last_line_text(what: str) -> bool:
    """Return whether a moment's text is that of the last line of a silent rank."""
    return _LAST_LINE.match(what) is not None


def is_failure(finding: Finding) -> bool:
    """Return whether the finding is a failure; a root cause may also be mere symptoms."""
    return finding.signature is not None or finding.role != "symptom"


def writer_rank(evidence: Evidence) -> int | None:
    """Return the rank that wrote the line; None for an inference, which may rest on a line of another rank."""
    return None if evidence.kind == "inference" else evidence.origin.rank


def began(diagnosis: Diagnosis) -> list[Finding]:
    """Return the root cause and the independent failures beside it; nothing for no root cause."""
    root = diagnosis.root_cause
    if root is None:
        return []
    named = {finding.signature or finding.cluster: finding for finding in (*diagnosis.findings, *diagnosis.unknown)}
    return [root, *(named[name] for name in root.alongside if name in named)]


def began_ranks(diagnosis: Diagnosis) -> tuple[int, ...]:
    """Return the ranks where the failure began, those of independent failures among them."""
    return tuple(sorted({rank for finding in began(diagnosis) for rank in finding.ranks}))


def relative_source(source: str, diagnosis: Diagnosis) -> str:
    """Return the source relative to the job's path, which the end of the report shows once."""
    path = diagnosis.job.path
    root = path if path.endswith("/") else path + "/"
    below = source.removeprefix(root) if path else source
    return below or source


def format_place(evidence: Evidence, diagnosis: Diagnosis) -> str:
    """Return `logs/rank3.log:61`, relative to the job's path."""
    source = relative_source(evidence.source, diagnosis)
    return f"{source}:{evidence.line}" if evidence.line is not None else source


def place_label(evidence: Evidence) -> str:
    """Return what stands before a place: `line `, or `inferred from ` if no line states what is shown."""
    if evidence.kind == "inference":
        return "inferred from "
    return "line " if evidence.line is not None else ""


def format_bytes(count: int) -> str:
    """Return bytes in decimal units: `3.1 MB`."""
    value = float(count)
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if value < 999.95 or unit == "TB":
            return f"{count} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


def format_count(count: int, noun: str) -> str:
    """Return `1 file`, `2 files`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def shorten_list(items: Sequence[str], most: int = 3) -> str:
    """Return the first items with commas, and how many more there are: `a, b, c and 2 more`."""
    return ", ".join(items[:most]) + (f" and {len(items) - most} more" if len(items) > most else "")


def shorten_lines(text: str, most: int, first: int = 0) -> list[str]:
    """Return the lines of a log text without control characters; of more than `most`, `first` and the last ones.

    Without `first`, a third comes from the beginning.
    """
    lines = sanitize(text).strip("\n").split("\n")
    if len(lines) <= most:
        return lines
    first = first or most // 3
    return [*lines[:first], f"… {format_count(len(lines) - most, 'more line')} …", *lines[first - most :]]


@dataclass(frozen=True)
class FindingGroups:
    """The findings other than the root cause, by what they are to it.

    `aftermath`: consequences of findings in `considered`.
    """

    caused: list[Finding] = field(default_factory=list)
    confirmed: list[Finding] = field(default_factory=list)
    considered: list[Finding] = field(default_factory=list)
    aftermath: list[Finding] = field(default_factory=list)
    noise: list[Finding] = field(default_factory=list)


def group_findings(diagnosis: Diagnosis) -> FindingGroups:
    """Group the findings; a consequence of a consequence counts as caused by the root."""
    groups = FindingGroups()
    root = diagnosis.root_cause
    consequences = _consequences(diagnosis)
    for finding in diagnosis.findings:
        if finding == root:
            continue
        if finding.role == "noise":
            groups.noise.append(finding)
        elif finding.signature in consequences:
            (groups.confirmed if finding.role == "confirmation" else groups.caused).append(finding)
        else:
            groups.considered.append(finding)
    names = {finding.signature for finding in groups.considered}
    independent = [finding for finding in groups.considered if names.isdisjoint(finding.explained_by)]
    if independent:
        groups.aftermath.extend(finding for finding in groups.considered if finding not in independent)
        groups.considered[:] = independent
    return groups


def _consequences(diagnosis: Diagnosis) -> set[str]:
    """Return the signatures that the root cause explains, directly or through others."""
    root = diagnosis.root_cause
    if root is None:
        return set()
    roots = {name for name in (root.signature, root.cluster) if name}
    explained = set(roots)
    while (
        more := {f.signature for f in diagnosis.findings if f.signature and explained & {*f.explained_by}} - explained
    ):
        explained |= more
    return explained - roots


def describe_consequences(diagnosis: Diagnosis) -> str:
    """Return `14 more ranks show only consequences of this`; empty if the root cause explains no further rank."""
    groups = group_findings(diagnosis)
    if diagnosis.root_cause is None or not groups.caused:
        return ""
    others = [diagnosis.root_cause, *groups.considered, *groups.aftermath, *other_unknowns(diagnosis)]
    count = len(_ranks_of([*groups.caused, *groups.confirmed]) - _ranks_of(others))
    verb = "shows" if count == 1 else "show"
    return f"{format_count(count, 'more rank')} {verb} only consequences of this" if count else ""


def _ranks_of(findings: Iterable[Finding]) -> set[int]:
    return {rank for finding in findings for rank in finding.ranks}


def considered_label(diagnosis: Diagnosis) -> str:
    """Return the heading of the findings that are not the root cause."""
    kind = verdict_kind(diagnosis)
    return "Earlier" if kind == "CLEAN" else "Symptoms" if kind == "SYMPTOMS ONLY" else "Considered"


def root_reasons(diagnosis: Diagnosis) -> list[str]:
    """Return the reasons for the root cause that no other part of the report shows."""
    root = diagnosis.root_cause
    if root is None:
        return []
    shown = {item.text.casefold() for item in root.evidence}
    has_steps = verdict_kind(diagnosis) == "SYMPTOMS ONLY"
    return [
        reason
        for reason in own_reasons(root)
        if reason.casefold() not in shown and not (has_steps and (_NEXT_TIME in reason or _ONLY_SYMPTOMS in reason))
    ]


def own_reasons(finding: Finding) -> list[str]:
    """Return each reason of the finding once, without those that only name other findings."""
    return [reason for reason in dict.fromkeys(finding.why) if not _NAMES_FINDINGS.match(reason)]


def with_reasons(findings: Iterable[Finding]) -> list[tuple[Finding, str]]:
    """Return each finding with its reasons as `. Reason. Reason.`; a reason that several give is shown once."""
    rows = []
    shown: set[str] = set()
    for finding in findings:
        reasons = [reason for reason in own_reasons(finding) if reason not in shown]
        shown.update(reasons)
        rows.append((finding, "".join(f". {reason.rstrip('.')}" for reason in reasons) + ("." if reasons else "")))
    return rows


def next_steps(diagnosis: Diagnosis) -> list[str]:
    """Return what to collect next time; for a report that shows only symptoms."""
    root = diagnosis.root_cause
    if root is None or verdict_kind(diagnosis) != "SYMPTOMS ONLY":
        return []
    lists = [reason.partition(_NEXT_TIME)[2] for reason in root.why if _NEXT_TIME in reason]
    return [step[:1].upper() + step[1:] for steps in lists for step in steps.split("; ") if step]


def distinct_evidence(finding: Finding) -> list[Evidence]:
    """Return the evidence of the finding, one for each line of a source."""
    return list(
        {
            (item.source, item.line, item.text if item.line is None else ""): item for item in finding.evidence[::-1]
        }.values()
    )[::-1]


def repeats_title(item: Evidence, finding: Finding) -> bool:
    """Return whether the log line is the title of the finding, so that quoting it would print it twice."""
    return finding.signature is None and item.text.strip() == finding.title.strip()


def merge_moments(diagnosis: Diagnosis) -> list[tuple[str, str, str]]:
    """Return (time, ranks, what) in time order, empty if there is only one entry.

    Ranks that show the same in one second or in successive moments share an entry, and so do all consequences.
    """
    groups = group_findings(diagnosis)
    effects = {finding.signature for finding in (*groups.caused, *groups.confirmed, *groups.aftermath)}
    root = diagnosis.root_cause
    entries: list[tuple[str, str, list[int]]] = []
    for moment in diagnosis.timeline:
        time = format_moment_time(moment, diagnosis)
        what = moment.signature or moment.what
        if root is not None and what == root.title:
            what = root.signature or root.cluster or what
        if moment.signature in effects:
            what = "only consequences"
        same = next(
            (entry for entry in entries[::-1] if entry[1] == what and (entry[0] == time or entry is entries[-1])), None
        )
        if same is None:
            same = (time, what, [])
            entries.append(same)
        same[2].extend([] if moment.rank is None else [moment.rank])
    return (
        [(time, format_ranks(ranks) if ranks else "", what) for time, what, ranks in entries]
        if len(entries) > 1
        else []
    )


def other_unknowns(diagnosis: Diagnosis) -> list[Finding]:
    """Return the unknown failures other than the root cause."""
    root = diagnosis.root_cause
    return [item for item in diagnosis.unknown if root is None or item.cluster is None or item.cluster != root.cluster]


def format_finding(finding: Finding) -> str:
    """Return `gloo.connection-closed-by-peer on rank 0 (3×)`."""
    name = finding.signature or finding.cluster or finding.title
    on = f" on {format_ranks(finding.ranks)}" if finding.ranks else ""
    return f"{name}{on}" + (f" ({finding.count}×)" if finding.count > 1 else "")
