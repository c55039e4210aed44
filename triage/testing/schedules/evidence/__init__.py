"""The forms of evidence that can be drawn, in a fixed order."""

from __future__ import annotations

from triage.testing.schedules.evidence import combined, flight, nccl_calls, plogs, ras, stacks, watchdog
from triage.testing.schedules.evidence.interface import Form

FORMS: tuple[Form, ...] = (
    *flight.FORMS,
    *watchdog.FORMS,
    *stacks.FORMS,
    *combined.FORMS,
    *plogs.FORMS,
    *ras.FORMS,
    *nccl_calls.FORMS,
)

__all__ = ["FORMS", "Form"]
