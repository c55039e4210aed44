"""The faults that can be drawn, in a fixed order."""

from __future__ import annotations

from triage.testing.schedules.faults import divergent, outside, pairs
from triage.testing.schedules.faults.edits import Fault, InjectedFault

FAULTS: tuple[Fault, ...] = (*outside.FAULTS, *divergent.FAULTS, *pairs.FAULTS)

__all__ = ["FAULTS", "Fault", "InjectedFault"]
