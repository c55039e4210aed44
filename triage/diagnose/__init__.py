"""From facts to the diagnosis."""

from __future__ import annotations

from triage.diagnose.reason import ReasoningResult, diagnose

__all__ = ["ReasoningResult", "diagnose"]
