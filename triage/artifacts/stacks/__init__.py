"""Stacks of processes that still live: what every rank was doing, and which rank is somewhere else than the others."""

from triage.artifacts.stacks.conclude import conclude
from triage.artifacts.stacks.reader import Stacks

__all__ = ["Stacks", "conclude"]
