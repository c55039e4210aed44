"""The order of hosts that a launcher was given: `-H node1:4,node2:4`, or a hostfile with `node1 slots=4`.

The launchers of MPI, Horovod and DeepSpeed fill the slots of each host before those of the next one. An order counts
only if its slots are as many as the ranks of the world, and no known host of a rank is another.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from triage.base.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class HostOrder:
    """Hosts with their slots, 0 where not stated. `processes`: how many the command starts; -1: not stated."""

    hosts: tuple[tuple[str, int], ...]
    processes: int = -1


def place_ranks(
    orders: Collection[HostOrder], sizes: Collection[int], hosts: Mapping[int, Collection[str]]
) -> dict[int, tuple[str, int]]:
    """Return host and local rank of each rank, where all orders that fit agree; `hosts` has what is known of ranks."""
    world = max(sizes, default=0)
    fitting = {
        places for order in orders if (places := _places_of(order, world)) and not _is_contradicted(places, hosts)
    }
    return dict(enumerate(fitting.pop())) if len(fitting) == 1 else {}


def _places_of(order: HostOrder, world: int) -> tuple[tuple[str, int], ...]:
    """Return the place of each rank; nothing where the slots are not as many as the ranks."""
    size = world or order.processes
    count = len(order.hosts)
    stated = [slots for _, slots in order.hosts]
    if not any(stated) and size > 0 and size % count == 0:
        stated = [size // count] * count
    if not all(stated) or sum(stated) != size or order.processes not in (-1, size):
        return ()
    return tuple((host, local) for (host, _), slots in zip(order.hosts, stated, strict=True) for local in range(slots))


def _is_contradicted(places: tuple[tuple[str, int], ...], hosts: Mapping[int, Collection[str]]) -> bool:
    return any(names and (rank >= len(places) or places[rank][0] not in names) for rank, names in hosts.items())
