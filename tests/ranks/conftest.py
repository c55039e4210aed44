"""Hypothesis without deadlines: what a test takes depends on how busy the machine is."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("steady", deadline=None)
settings.load_profile("steady")
