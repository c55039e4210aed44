"""What `triage watch` reports about a running job."""

from __future__ import annotations

from typing import Literal

from triage.base.lazy_dataclass import dataclass
from triage.model.diagnosis import Diagnosis

EventKind = Literal[
    "failure", "revised", "recovered", "inconclusive", "silent", "back", "slow", "usual", "stalled", "resumed"
]


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a running job: a failure or an unknown end with its diagnosis, or a change of pace.

    `at` is in seconds since 1970. `ranks` lists the ranks concerned; it is empty for all ranks or unknown ranks.
    `hosts` lists the known hosts of these ranks.
    """

    kind: EventKind
    at: float
    text: str
    ranks: tuple[int, ...] = ()
    attempt: int = 0
    diagnosis: Diagnosis | None = None
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Episode:
    """Pace events that belong together: the first one and the newest ones.

    `problems` holds what is still wrong: `slow`, `stalled`, or `silent 37` for a rank. It is empty when the job
    recovered or failed.
    """

    events: tuple[WatchEvent, ...]
    problems: frozenset[str] = frozenset()

    @property
    def began_at(self) -> float:
        """Time of the first event, in seconds since 1970."""
        return self.events[0].at
