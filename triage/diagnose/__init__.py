"""From facts to the diagnosis."""

from __future__ import annotations

from triage.diagnose.reason import Result, diagnose

__all__ = ["Result", "diagnose"]
