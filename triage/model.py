"""The frozen dataclasses that cross rooms.

Times are seconds since the epoch (float); a stamp without a zone is read as UTC, so that order inside
one host is right and order between hosts is only as good as their clocks. Offsets are bytes in the
decompressed text, lines are 1-based. Ranks are global ranks; what is not known is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["cause", "symptom", "either", "confirmation", "noise", "guide"]
Severity = Literal["fatal", "error", "warning", "info"]
Verdict = Literal["known", "unknown", "clean"]
SourceKind = Literal[
    "text", "core", "flight-recorder", "py-spy", "live-stacks", "error-file", "environment", "binary", "empty"
]


@dataclass(frozen=True, slots=True)
class Source:
    """One stream of bytes a job left behind.

    `name` is what the user would open: `logs/rank3.log`, `archive.tar.gz!/inner/path`, `-` for standard input.
    `path` is set only when the bytes lie uncompressed in a regular file and can be read at any offset.
    """

    name: str
    kind: SourceKind
    size: int | None = None
    path: str | None = None
    mtime: float | None = None


@dataclass(frozen=True, slots=True)
class Warning:  # noqa: A001 - the report calls it so
    """Something the reader must know: skipped, truncated, sampled, doubtful. "Skipped, because …" is a result."""

    code: str
    source: str | None
    message: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote a line, as far as the line, its file name and the job's maps tell."""

    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    pid: int | None = None
    stream: str | None = None
    time: float | None = None
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of one origin that belong together: a traceback, a NCCL WARN with its chain, a single line.

    `lines` have their prefixes removed; `offset` is where the first of them starts, `headline` the offset of the line
    that says what happened (the last line of a traceback). `form` is the shape: line, traceback, terminate, elastic …
    `ambiguous`: lines of several writers that nothing tells apart; `goes_on`: its writer made progress afterwards;
    `aside`: an exception that does not end its process (ignored, thread). `writers`: as many printed this same
    traceback, their lines
    mixed with those of others and nothing says who; 0: one writer's own lines. `dated`: its time stands in its own
    lines; else it is that of a line
    before, and it happened then or later.
    """

    source: str
    offset: int
    end: int
    headline: int
    form: str
    lines: tuple[str, ...]
    origin: Origin
    ambiguous: bool = False
    goes_on: bool = False
    aside: str = ""
    writers: int = 0
    dated: bool = True


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact. `kind` and `component` say who spoke, `text` what, `fields` the parts by name.

    `line` and `end_line` are filled in only for what is reported. `count` is how often the same fact was seen
    for this origin; `inferred` facts come from reasoning across ranks and carry their sentence in `text`.
    """

    kind: str
    component: str
    text: str
    origin: Origin
    source: str
    offset: int
    end: int = 0
    fields: Mapping[str, str] = field(default_factory=dict)
    excerpt: str = ""
    count: int = 1
    line: int | None = None
    end_line: int | None = None


@dataclass(frozen=True, slots=True)
class Remediation:
    summary: str = ""
    steps: tuple[str, ...] = ()
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A matched signature, or (signature None) a failure that no signature knows, with its evidence and reasons."""

    signature: str | None
    title: str
    domain: str
    role: Role
    severity: Severity
    confidence: float
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    count: int = 1
    first_time: float | None = None
    revision: int | None = None
    fingerprint: str | None = None
    cluster: str | None = None
    explained_by: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    captures: Mapping[str, str] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    remediation: Remediation = Remediation()


@dataclass(frozen=True, slots=True)
class RankState:
    rank: int
    host: str | None
    state: Literal["failed", "stalled", "killed", "ok", "silent"]
    last_step: int | None = None
    last_time: float | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """One entry of the timeline."""

    time: float | None
    rank: int | None
    what: str
    signature: str | None


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    name: str
    path: str
    world_size: int | None = None
    ranks: tuple[int, ...] = ()
    hosts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    first_time: float | None = None
    last_time: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stats:
    files: int = 0
    bytes: int = 0
    hits: int = 0
    seconds: float = 0.0
    peak_memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The whole answer. `render.json` writes it in the shape of DESIGN.md ("triage.diagnosis/1")."""

    tool_version: str
    catalog_version: str
    job: Job
    verdict: Verdict
    root_cause: Finding | None
    findings: tuple[Finding, ...] = ()
    unknown: tuple[Finding, ...] = ()
    timeline: tuple[Moment, ...] = ()
    ranks: tuple[RankState, ...] = ()
    warnings: tuple[Warning, ...] = ()
    stats: Stats = Stats()


NewsKind = Literal["failure", "revised", "recovered", "silent", "back", "slow", "usual", "stalled", "resumed"]


@dataclass(frozen=True, slots=True)
class News:
    """Something that `triage watch` says of a job that runs: about a failure (with its diagnosis), or about its pace.

    `ranks` are those it is about, none when that is all of them or not known; `hosts` theirs, as far as known.
    """

    kind: NewsKind
    at: float
    text: str
    ranks: tuple[int, ...] = ()
    attempt: int = 0
    diagnosis: Diagnosis | None = None
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Episode:
    """What a watch said of the pace of a job since it fell out of step, the first news and the newest.

    `wrong` is what still is: `slow`, `stalled`, `silent 37` for a rank. None of it: the job is in step again, or it
    failed.
    """

    news: tuple[News, ...]
    wrong: frozenset[str] = frozenset()

    @property
    def began(self) -> float:
        """When it was first said, in seconds since 1970."""
        return self.news[0].at


@dataclass(frozen=True, slots=True)
class Deviation:
    """Something about settings or versions that may harm: what `triage env` lists.

    `rule` is env-mismatch, determinism-incomplete, dangerous-setting or device-unhealthy; `names` the variables or
    programs it is about; `text` the sentence;
    `why` what may come of it. `values` pairs what stands there with those who have it; `ranks`, `hosts` are the odd
    ones.
    """

    rule: str
    severity: Severity
    names: tuple[str, ...]
    text: str
    why: str = ""
    values: tuple[tuple[str, str], ...] = ()
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Audit:
    """The environment of a job: who told of it, the settings and versions on which all agree, and what deviates,
    gravest first.
    """

    speakers: tuple[str, ...] = ()
    agreed: Mapping[str, str] = field(default_factory=dict)
    deviations: tuple[Deviation, ...] = ()
    warnings: tuple[Warning, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one signature did or did not decide about a job: what `triage explain` shows.

    `outcome` is one sentence. `clauses` are (text of the clause, held, hits), `near_misses` are (place, text) of lines
    that contain a literal of the signature and yet do not match it.
    """

    signature: str
    title: str
    matched: bool
    outcome: str
    clauses: tuple[tuple[str, bool, int], ...] = ()
    evidence: tuple[Evidence, ...] = ()
    near_misses: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What makes two unknown failures the same: `key`, made by version `version` of the normaliser and different in
    each.

    Keys are compared in words only under the same `guard`. `headline` is the masked line that the key was made of,
    `trail` says how.
    A failure without a usable line is not `anchored`: it is never put together with another by itself.
    """

    version: int
    key: str
    guard: str = ""
    headline: str = ""
    trail: tuple[str, ...] = ()
    anchored: bool = True


@dataclass(frozen=True, slots=True)
class Incident:
    """A diagnosis that the store remembers, in one line. `at` is when it failed, as far as is known; `seen` counts
    ingests of the same files.

    `ranks` and `hosts` are those of the root cause. `agree` and `wrong` count the feedback. `name` is the cluster's, if
    a person gave it one.
    """

    id: str
    job: str
    job_name: str
    path: str
    verdict: Verdict
    title: str
    signature: str | None = None
    cluster: str | None = None
    name: str | None = None
    domain: str = ""
    severity: str = ""
    confidence: float = 0.0
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    at: float = 0.0
    stored_at: float = 0.0
    seen_at: float = 0.0
    seen: int = 1
    catalog_version: str = ""
    agree: int = 0
    wrong: int = 0


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a person said about a diagnosis. `said` is what the diagnosis had as its root then, `signature` what it
    should have been.
    """

    id: int
    incident: str
    at: float
    actor: str
    verdict: Literal["agree", "wrong"]
    because: str
    signature: str | None
    said: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """What an incident was held for before and after; `old` and `new` are a signature, a cluster, or the verdict where
    there is neither.
    """

    incident: str
    at: float
    reason: str
    old: str
    new: str
    old_catalog: str
    new_catalog: str


@dataclass(frozen=True, slots=True)
class Remembered:
    """All that the store has about one incident."""

    incident: Incident
    diagnosis: Diagnosis
    feedback: tuple[Feedback, ...] = ()
    history: tuple[Change, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Unknown failures that are one. `keys` are its fingerprints; `recent` and `before` count incidents of the last and
    the last but one week.
    """

    id: str
    state: str
    title: str
    name: str | None = None
    note: str = ""
    keys: tuple[Fingerprint, ...] = ()
    incidents: int = 0
    jobs: int = 0
    ranks: int = 0
    first_seen: float | None = None
    last_seen: float | None = None
    recent: int = 0
    before: int = 0
    signature: str | None = None
    redirect: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the audit log: who did what to which thing, and the entry that took it back, if one did."""

    id: int
    at: float
    actor: str
    action: str
    subject: str
    details: Mapping[str, object] = field(default_factory=dict)
    undone_by: int | None = None


@dataclass(frozen=True, slots=True)
class LastLine:
    """The last line that a rank wrote, wherever it stands, without its prefix."""

    rank: int
    time: float | None
    step: int | None
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Event:
    """What `count` lines of these ranks say within one second, or the last line of ranks (`last`).

    `later`: the time is that of a line before, so that it happened then or later.
    """

    time: float | None
    ranks: tuple[int, ...]
    text: str
    signature: str | None = None
    count: int = 1
    last: bool = False
    root: bool = False
    later: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happened in a job, in the order that its clocks give; what has no time comes last. `around`: the moment that
    windows are cut about.
    """

    job: Job
    around: float | None
    events: tuple[Event, ...]
    ranks: tuple[RankState, ...]
    left_out: int = 0
    warnings: tuple[Warning, ...] = ()
