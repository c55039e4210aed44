"""Decide when to report a failure: soon, once, and with at most two revisions.

A failure is reported after `settle` seconds, when its consequences have begun to appear. A failure of one rank alone
is not reported while training steps follow, because programs also log errors that they recover from. If no signature
matches it, it waits `isolated_wait` seconds. A changed diagnosis is reported when no failure line came for some time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from triage.model import Diagnosis, EventKind, Finding, WatchEvent

CauseKey = tuple[str, str, tuple[int, ...]]
"""Identifies a diagnosis for comparison: the verdict, the signature or cluster, the ranks."""

CLEAN: CauseKey = ("clean", "", ())
INCONCLUSIVE: CauseKey = ("inconclusive", "", ())
"""The job stopped writing, and nothing shows how it ended."""
UNCONFIRMED: CauseKey = ("", "", ())
"""Stands for an event that was being reported when the watch was killed: it may not have arrived."""


@dataclass(frozen=True, slots=True)
class NotificationTiming:
    """Waiting times in seconds, and how many revisions are allowed.

    `settle`: before a failure is reported. `isolated_wait`: the same for an unknown failure of one rank.
    `revise_after`: without failure lines before the first revision, `revise_latest`: its longest wait.
    `final_after`: without failure lines before the last revision.
    """

    settle: float = 0.75
    isolated_wait: float = 15.0
    revise_after: float = 5.0
    final_after: float = 20.0
    revise_latest: float = 60.0
    max_revisions: int = 2


@dataclass(frozen=True, slots=True)
class Announcement:
    """The last report about one attempt.

    `revisions` counts its revisions, `first_at` is the time of the first report in seconds since 1970.
    """

    key: CauseKey
    revisions: int = 0
    first_at: float = 0.0


def cause_key(diagnosis: Diagnosis) -> CauseKey:
    """Return what makes two diagnoses the same."""
    root = diagnosis.root_cause
    if root is None:
        return CLEAN
    return diagnosis.verdict, root.signature or root.cluster or "", root.ranks


@dataclass
class Policy:
    """Decides for one job. `announced` holds the last report of each attempt, also those of an earlier run."""

    timing: NotificationTiming = NotificationTiming()
    announced: dict[int, Announcement] = field(default_factory=dict)
    _recovered: set[CauseKey] = field(default_factory=set)  # failures that the job recovered from
    _pending_since: float | None = None

    def restore(self, announced: Mapping[int, Announcement], unconfirmed: Collection[int]) -> None:
        """Continue after a restart. Reports of `unconfirmed` attempts are made again, as the same message."""
        self.announced = {
            attempt: replace(known, key=UNCONFIRMED) if attempt in unconfirmed else known
            for attempt, known in announced.items()
        }

    @property
    def is_pending(self) -> bool:
        """Whether a diagnosis waits to be reported."""
        return self._pending_since is not None

    @property
    def has_failed(self) -> bool:
        """Whether the last report said that the job failed."""
        return bool(self.announced) and self.announced[max(self.announced)].key not in (CLEAN, INCONCLUSIVE)

    def decide(
        self,
        now: float,
        at: float,
        diagnosis: Diagnosis,
        calm: float,
        *,
        since: float | None = None,
        idle: float = 0.0,
        busy: bool = False,
        final: bool = False,
        stopped: bool = False,
    ) -> WatchEvent | None:
        """Return the event to report now, if any.

        `calm`: seconds since the last failure line. `idle`: seconds since any line. `busy`: training steps followed the
        blamed line. `since`: when the failure lines of this diagnosis began. `final`: no more lines will come.
        `stopped`: all files stopped growing, so that an unknown end is reported too, once.
        """
        key = cause_key(diagnosis)
        attempt = _attempt(diagnosis.root_cause) if diagnosis.root_cause else max(self.announced, default=0)
        before = self.announced.get(attempt)
        known_key = before.key if before else CLEAN
        if key == CLEAN and known_key in (CLEAN, UNCONFIRMED) and stopped and diagnosis.verdict == "inconclusive":
            self._announce(attempt, before, "inconclusive", INCONCLUSIVE, at)
            return WatchEvent("inconclusive", at, _sentence(diagnosis), (), attempt, diagnosis)
        if key == known_key or (key, known_key) == (CLEAN, INCONCLUSIVE):
            self._pending_since = None
            return None
        if self._pending_since is None:
            self._pending_since = now if since is None else since
        stood = now - self._pending_since
        if key == CLEAN:
            kind: EventKind = "recovered"
            is_due = calm >= self.timing.revise_after
        elif before is None or before.key in (CLEAN, INCONCLUSIVE, UNCONFIRMED):
            kind = "failure"
            is_due = self._is_failure_due(key, diagnosis, stood, idle, busy)
        elif before.revisions < self.timing.max_revisions:
            kind = "revised"
            is_due = self._is_revision_due(before, stood, calm)
        else:
            return None
        if not (is_due or final):
            return None
        self._announce(attempt, before, kind, key, at)
        ranks = diagnosis.root_cause.ranks if diagnosis.root_cause else ()
        return WatchEvent(kind, at, _sentence(diagnosis), ranks, attempt, diagnosis)

    def _announce(self, attempt: int, before: Announcement | None, kind: EventKind, key: CauseKey, at: float) -> None:
        self._pending_since = None
        revisions = before.revisions + 1 if before is not None and kind == "revised" else 0
        self.announced[attempt] = Announcement(key, revisions, before.first_at if before is not None else at)
        if kind == "recovered" and before is not None:
            self._recovered.add(before.key)

    def _is_failure_due(self, key: CauseKey, diagnosis: Diagnosis, stood: float, idle: float, busy: bool) -> bool:
        timing, isolated = self.timing, is_isolated(diagnosis)
        if isolated and (busy or key in self._recovered) and idle < timing.isolated_wait:
            return False
        return stood >= (timing.isolated_wait if isolated and diagnosis.verdict == "unknown" else timing.settle)

    def _is_revision_due(self, before: Announcement, stood: float, calm: float) -> bool:
        if before.revisions == self.timing.max_revisions - 1:
            return calm >= self.timing.final_after
        return calm >= self.timing.revise_after or stood >= self.timing.revise_latest


def _attempt(root: Finding) -> int:
    return max((fact.origin.attempt for fact in root.evidence), default=0)


def _sentence(diagnosis: Diagnosis) -> str:
    if diagnosis.inconclusive is not None and diagnosis.inconclusive.why:
        return f"all files stopped growing. {diagnosis.inconclusive.why[0]}"
    if diagnosis.root_cause is None:
        return "the job continues; the reported failure no longer applies"
    return diagnosis.root_cause.title


def is_isolated(diagnosis: Diagnosis) -> bool:
    """Return whether one rank alone reports the root cause and nothing else follows from it."""
    root = diagnosis.root_cause
    if root is None or len(root.ranks) > 1:
        return False
    reported = (*diagnosis.findings, *diagnosis.unknown)
    return all(other.role == "noise" or other.evidence == root.evidence for other in reported)
