"""Hypothesis without deadlines: compiling an automaton takes as long as the machine is busy."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("steady", deadline=None)
settings.load_profile("steady")
