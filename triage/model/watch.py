"""What `triage watch` reports about a running job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from triage.model.diagnosis import Diagnosis

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
