"""The diagnosis: findings, the state of each rank, the timeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from triage.base.lazy_dataclass import dataclass
from triage.model.evidence import Evidence, Warning

Role = Literal["cause", "symptom", "either", "confirmation", "noise", "guide"]


Severity = Literal["fatal", "error", "warning", "info"]


Verdict = Literal["known", "unknown", "inconclusive", "clean"]
"""`clean` needs a proof that the job ended well; `inconclusive`: neither a failure nor such a proof."""


INCONCLUSIVE = "No failure recognised, and no proof of a good end"
"""The verdict `inconclusive` in words."""


@dataclass(frozen=True, slots=True)
class Remediation:
    """What to do about a failure."""

    summary: str = ""
    steps: tuple[str, ...] = ()
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A matched signature, or (`signature` None) a failure that no signature knows, with its evidence and reasons.

    `similar` are the signatures that an unknown failure looks like a new wording of. `alongside` has, of a root cause,
    the ids (signature or cluster) of independent failures that began on other ranks at the same time.
    """

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
    similar: tuple[str, ...] = ()
    alongside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RankState:
    """How one rank ended, with the step and the time of its last line.

    `ok` ranks finished, or are of a job that did; of `unclear` ranks nothing shows how they ended.
    """

    rank: int
    host: str | None
    state: Literal["failed", "stalled", "killed", "ok", "silent", "unclear"]
    last_step: int | None = None
    last_time: float | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """One entry of the timeline. `or_later`: its time is that of an earlier line, so it happened then or later."""

    time: float | None
    rank: int | None
    what: str
    signature: str | None
    or_later: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """A job: its ranks and hosts, when it ran, and the versions of its programs.

    `facts` are its user, project, partition, image and so on, and the labels that a user gave, each with its values.
    """

    id: str
    name: str
    path: str
    world_size: int | None = None
    ranks: tuple[int, ...] = ()
    hosts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    first_time: float | None = None
    last_time: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def all_facts(self) -> dict[str, tuple[str, ...]]:
        """Return the facts and the versions: what incidents are filtered by."""
        return {**{name: (version,) for name, version in self.versions.items()}, **self.facts}


@dataclass(frozen=True, slots=True)
class RemoteCost:
    """What reading addresses cost: requests, those of them that repeated a failed one, and bytes received."""

    requests: int = 0
    retries: int = 0
    bytes: int = 0

    def since(self, before: RemoteCost) -> RemoteCost:
        """Return the cost since an earlier moment."""
        return RemoteCost(self.requests - before.requests, self.retries - before.retries, self.bytes - before.bytes)


@dataclass(frozen=True, slots=True)
class Stats:
    """What an ingest read and cost. `remote` is None where no address was read."""

    files: int = 0
    bytes: int = 0
    hits: int = 0
    seconds: float = 0.0
    peak_memory_bytes: int = 0
    remote: RemoteCost | None = None


@dataclass(frozen=True, slots=True)
class FinalLine:
    """A line at the end of a rank or, where `rank` is None, of a file. `text` has no prefix."""

    rank: int | None
    source: str
    line: int | None
    time: float | None
    text: str


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """What is known where no failure is recognised and nothing proves a good end. All texts are sentences.

    `why`: what is missing or unreadable. `last_lines`: where the logs end, first what stopped first. `unusual_lines`:
    lines near the end that are unlike all before them. `next_steps`: what to add.
    """

    why: tuple[str, ...]
    last_lines: tuple[FinalLine, ...] = ()
    unusual_lines: tuple[FinalLine, ...] = ()
    looked_for: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The whole answer. `render.json` writes it as "triage.diagnosis/2" (docs/json.md).

    `inconclusive` is set for that verdict only.
    """

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
    inconclusive: Inconclusive | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one signature did or did not decide about a job: what `triage explain` shows.

    `outcome` is one sentence. `clauses` are (text of the clause, does it hold, hits), `near_misses` are (place, text)
    of lines that contain a literal of the signature and do not match it.
    """

    signature: str
    title: str
    matched: bool
    outcome: str
    clauses: tuple[tuple[str, bool, int], ...] = ()
    evidence: tuple[Evidence, ...] = ()
    near_misses: tuple[tuple[str, str], ...] = ()


RAISED_AT = "raised at "
"""What the step of a trail begins with that names the place of an exception."""
PRINTED_BY = "printed by "
"""What the step of a trail begins with that names the program of a line."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What makes two unknown failures the same: an equal `key` of the same `version` of the rules.

    Headlines are compared only under the same `guard`. `headline` is the masked line that the key is made of, `trail`
    lists the steps. A failure without a usable line is not `anchored`: it is never merged automatically.
    """

    version: int
    key: str
    guard: str = ""
    headline: str = ""
    trail: tuple[str, ...] = ()
    anchored: bool = True

    @property
    def places(self) -> tuple[str, ...]:
        """`file:function` of the user's frames that raised it, or the programs that printed it: steps of the trail,
        which is stored.
        """
        return tuple(
            step.removeprefix(start)
            for step in self.trail
            for start in (RAISED_AT, PRINTED_BY)
            if step.startswith(start)
        )


@dataclass(frozen=True, slots=True)
class Event:
    """What `count` lines of these ranks say within one second, or the last line of ranks (`last`).

    `later`: the time is that of an earlier line, so that it happened then or later.
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
    """What happened in a job, in the order that its clocks give; events without a time come last.

    `around` is the time of the failure, around which windows are cut.
    """

    job: Job
    around: float | None
    events: tuple[Event, ...]
    ranks: tuple[RankState, ...]
    left_out: int = 0
    warnings: tuple[Warning, ...] = ()
