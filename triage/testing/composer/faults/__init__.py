"""The faults, in a fixed order: the cell of a job (fault, layout) does not depend on it."""

from __future__ import annotations

from triage.testing.composer.faults import (
    barriers,
    checkpoints,
    collectives,
    crashes,
    data,
    device_errors,
    gpus,
    hangs,
    healthy,
    late_ranks,
    machines,
    mismatches,
    model_errors,
    network,
    npus,
    orders,
    outside_stops,
    python,
    rendezvous,
    several_errors,
    shared_places,
    silences,
    split_worlds,
    stops,
    values,
)
from triage.testing.composer.faults.interface import Fault

FAULTS: tuple[Fault, ...] = (
    *python.FAULTS,
    *model_errors.FAULTS,
    *several_errors.FAULTS,
    *data.FAULTS,
    *checkpoints.FAULTS,
    *device_errors.FAULTS,
    *crashes.FAULTS,
    *gpus.FAULTS,
    *machines.FAULTS,
    *network.FAULTS,
    *npus.FAULTS,
    *stops.FAULTS,
    *collectives.FAULTS,
    *barriers.FAULTS,
    *mismatches.FAULTS,
    *rendezvous.FAULTS,
    *values.FAULTS,
    *split_worlds.FAULTS,
    *shared_places.FAULTS,
    *late_ranks.FAULTS,
    *orders.FAULTS,
    *silences.FAULTS,
    *hangs.FAULTS,
    *outside_stops.FAULTS,
    *healthy.FAULTS,
)

__all__ = ["FAULTS", "Fault"]
