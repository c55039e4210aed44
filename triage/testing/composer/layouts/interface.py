"""The interface of a layout: how one launcher starts the ranks of a job, and where it leaves their output."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from triage.testing.composer.model import Backend, Story, World, Written

Write = Callable[[Story, World, random.Random], Written]
"""Return the log files of a story, with the launcher's own lines; the same arguments give the same files."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One launcher with one way of keeping output.

    `most_nodes` it can have; `backends` it is used with; `scheduler`: `slurm` or `kubernetes` where it implies one.
    `one_per_node`: each node has one rank.
    """

    name: str
    write: Write
    most_nodes: int = 8
    backends: tuple[Backend, ...] = ("nccl", "gloo", "hccl")
    scheduler: str = ""
    one_per_node: bool = False


__all__ = ["Layout", "Write"]
