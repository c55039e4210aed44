"""The layouts, in a fixed order: the cell of a job (fault, layout) does not depend on it."""

from __future__ import annotations

from triage.testing.composer.layouts import (
    ascend,
    clouds,
    deepspeed,
    kubernetes,
    mpi,
    ray,
    shells,
    slurm,
    torchrun,
)
from triage.testing.composer.layouts.interface import Layout

LAYOUTS: tuple[Layout, ...] = (
    *torchrun.LAYOUTS,
    *slurm.LAYOUTS,
    *mpi.LAYOUTS,
    *deepspeed.LAYOUTS,
    *kubernetes.LAYOUTS,
    *ray.LAYOUTS,
    *clouds.LAYOUTS,
    *shells.LAYOUTS,
    *ascend.LAYOUTS,
)

__all__ = ["LAYOUTS", "Layout"]
