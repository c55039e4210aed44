"""When to speak of a failure: soon, once, and of a better answer at most twice more.

A failure is said when it has stood for `settle` seconds: its storm has begun then. One that nothing else speaks of is
not said while steps
follow it, for programs report what they then get over; if no signature knows it, it waits `alone` seconds. A different
answer is said when no
line of failure came for a while, the last one when the storm is over.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from triage.model.diagnosis import Diagnosis, Finding
from triage.model.watch import News, NewsKind

Key = tuple[str, str, tuple[int, ...]]
"""What makes two answers the same: the verdict, the signature or cluster, the ranks."""

CLEAN: Key = ("clean", "", ())
UNSURE: Key = ("", "", ())
"""Of something that was about to be said when the watch was killed: nobody knows whether it was."""


@dataclass(frozen=True, slots=True)
class Manners:
    """Seconds. `calm`: without a line of failure before a first revision, `over`: before the last; `patience`: a first
    one waits no longer.
    """

    settle: float = 0.75
    alone: float = 15.0
    calm: float = 5.0
    over: float = 20.0
    patience: float = 60.0
    revisions: int = 2


@dataclass(frozen=True, slots=True)
class Said:
    """What was said last of an attempt, how often it was revised, and when something was said of it first, in seconds
    since 1970.
    """

    key: Key
    revisions: int = 0
    first: float = 0.0


def key_of(diagnosis: Diagnosis) -> Key:
    """What is compared of a diagnosis."""
    root = diagnosis.root_cause
    if root is None:
        return CLEAN
    return diagnosis.verdict, root.signature or root.cluster or "", root.ranks


@dataclass
class Policy:
    """Decides for one job. `said` holds what was said of each attempt, and may come from an earlier run."""

    manners: Manners = Manners()
    said: dict[int, Said] = field(default_factory=dict)
    _forgiven: set[Key] = field(default_factory=set)  # failures that the job got over
    _since: float | None = None  # since when something stands that was not said

    def recall(self, said: Mapping[int, Said], unsure: Collection[int]) -> None:
        """Go on after a restart. What may not have been told is judged anew, as the same message."""
        self.said = {
            attempt: replace(known, key=UNSURE) if attempt in unsure else known for attempt, known in said.items()
        }

    @property
    def pending(self) -> bool:
        """Does something stand that may have to be said?"""
        return self._since is not None

    @property
    def failed(self) -> bool:
        """Is the last thing said of the job that it failed?"""
        return bool(self.said) and self.said[max(self.said)].key != CLEAN

    def judge(
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
    ) -> News | None:
        """The news to tell now. `calm`: seconds since the last line of failure, `idle`: since any; `busy`: steps
        followed what is blamed.

        `since`: when the lines of failure began that the diagnosis is the first to know; `final`: nothing more will
        come.
        """
        key = key_of(diagnosis)
        attempt = _attempt(diagnosis.root_cause) if diagnosis.root_cause else max(self.said, default=0)
        before = self.said.get(attempt)
        if key == (before.key if before else CLEAN):
            self._since = None
            return None
        self._since = (now if since is None else since) if self._since is None else self._since
        stood = now - self._since
        if key == CLEAN:
            kind: NewsKind = "recovered"
            ready = calm >= self.manners.calm
        elif before is None or before.key in (CLEAN, UNSURE):
            kind = "failure"
            ready = self._is_due(key, diagnosis, stood, idle, busy)
        else:
            if before.revisions >= self.manners.revisions:
                return None
            kind = "revised"
            last = before.revisions == self.manners.revisions - 1
            ready = calm >= self.manners.over if last else calm >= self.manners.calm or stood >= self.manners.patience
        if not (ready or final):
            return None
        self._since = None
        revisions = before.revisions + 1 if before is not None and kind == "revised" else 0
        self.said[attempt] = Said(key, revisions, before.first if before is not None else at)
        if kind == "recovered" and before is not None:
            self._forgiven.add(before.key)
        return News(
            kind,
            at,
            _sentence(diagnosis),
            diagnosis.root_cause.ranks if diagnosis.root_cause else (),
            attempt,
            diagnosis,
        )

    def _is_due(self, key: Key, diagnosis: Diagnosis, stood: float, idle: float, busy: bool) -> bool:
        lone = alone(diagnosis)
        if lone and (busy or key in self._forgiven) and idle < self.manners.alone:
            return False
        return stood >= (self.manners.alone if lone and diagnosis.verdict == "unknown" else self.manners.settle)


def _attempt(root: Finding) -> int:
    return max((fact.origin.attempt for fact in root.evidence), default=0)


def _sentence(diagnosis: Diagnosis) -> str:
    if diagnosis.root_cause is None:
        return "the job goes on; what was said of a failure no longer holds"
    return diagnosis.root_cause.title


def alone(diagnosis: Diagnosis) -> bool:
    """Is it something that one rank says, and nobody else suffers from?"""
    root = diagnosis.root_cause
    if root is None or len(root.ranks) > 1:
        return False
    return all(
        other.role == "noise" or other.evidence == root.evidence for other in (*diagnosis.findings, *diagnosis.unknown)
    )
