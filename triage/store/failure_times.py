"""When a job failed, and when one of its failures began: times of logs where they are plausible."""

from __future__ import annotations

from collections.abc import Iterable

from triage.model.diagnosis import Diagnosis, Finding

DAY = 86_400
EARLIEST = 946_684_800.0  # 2000: an earlier time is from a clock that was never set


def failure_time(diagnosis: Diagnosis, when: float) -> float | None:
    """Return when the job failed: the root cause's first plausible time, else the job's last; None where there is none.

    `when` is the time of the ingest: a failure a day after it is not plausible.
    """
    root = diagnosis.root_cause
    times = (root.first_time if root else None, diagnosis.job.last_time, diagnosis.job.first_time)
    return _first_plausible(times, when)


def finding_time(finding: Finding, diagnosis: Diagnosis, when: float) -> float:
    """Return when a failure of the job began: its own first plausible time, else the job's last, else the ingest's."""
    at = _first_plausible((finding.first_time, diagnosis.job.last_time, diagnosis.job.first_time), when)
    return when if at is None else at


def _first_plausible(times: Iterable[float | None], when: float) -> float | None:
    return next((time for time in times if time is not None and EARLIEST < time < when + DAY), None)
