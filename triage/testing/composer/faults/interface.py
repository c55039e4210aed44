"""The interface of a fault: a name, what it needs, and a function that tells the story."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from triage.testing.composer.model import Backend, Story, World

Tell = Callable[[World, random.Random], Story]
"""Return the story of this fault in this world; the same arguments give the same story."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One way for a job to fail, or to end well (`verdict` clean in its truth).

    `backends` that can have it; the smallest numbers of nodes and of ranks on a node; `scheduler`: it needs Slurm or
    Kubernetes; `single_host_text`: its text makes sense on one node only. `layouts`: the names of those in which it
    can happen, if not in all: the own lines of other launchers would say what is not so.
    """

    name: str
    tell: Tell
    backends: tuple[Backend, ...] = ("nccl", "gloo")
    least_nodes: int = 1
    most_nodes: int = 8
    least_per_node: int = 1
    scheduler: str = ""
    layouts: frozenset[str] = frozenset()


__all__ = ["Fault", "Tell"]
