"""triage.ranks.host_orders"""

from __future__ import annotations

import pytest

from triage.model.evidence import Origin
from triage.ranks.host_orders import HostOrder, place_ranks
from triage.ranks.identity import JobMap

PAIR = HostOrder((("n1", 2), ("n2", 2)))
UNEVEN = HostOrder((("n1", 1), ("n2", 3)))
PLACES = {0: ("n1", 0), 1: ("n1", 1), 2: ("n2", 0), 3: ("n2", 1)}


@pytest.mark.parametrize(
    ("order", "sizes", "hosts", "places"),
    [
        (PAIR, {4}, {}, PLACES),
        (PAIR, {2, 4}, {}, PLACES),
        (PAIR, {3}, {}, {}),  # one slot stays free, which one nobody knows
        (PAIR, {5}, {}, {}),
        (PAIR, set(), {}, {}),
        (HostOrder(PAIR.hosts, 4), set(), {}, PLACES),
        (HostOrder(PAIR.hosts, 3), set(), {}, {}),
        (HostOrder(PAIR.hosts, 3), {4}, {}, {}),
        (HostOrder((("n1", 0), ("n2", 0))), {4}, {}, PLACES),
        (HostOrder((("n1", 0), ("n2", 0))), {5}, {}, {}),
        (HostOrder((("n1", 0), ("n2", 2))), {4}, {}, {}),
        (PAIR, {4}, {3: {"n2"}}, PLACES),
        (PAIR, {4}, {4: {"n2"}}, {}),  # a rank without a slot
        (PAIR, {4}, {3: {"n1"}}, {}),
        (PAIR, {4}, {3: {"pod-1"}}, {}),
        (PAIR, {4}, {3: set()}, PLACES),
        (UNEVEN, {4}, {}, {0: ("n1", 0), 1: ("n2", 0), 2: ("n2", 1), 3: ("n2", 2)}),
    ],
)
def test_an_order_counts_where_its_sizes_fit(
    order: HostOrder, sizes: set[int], hosts: dict[int, set[str]], places: dict[int, tuple[str, int]]
) -> None:
    """As many slots as ranks, and no rank on another host."""
    assert place_ranks({order}, sizes, hosts) == places


def test_orders_that_disagree_place_nothing() -> None:
    """An order that does not fit does not count."""
    assert not place_ranks({PAIR, UNEVEN}, {4}, {})
    assert place_ranks({PAIR, HostOrder((("n1", 8), ("n2", 8)))}, {4}, {}) == PLACES


def test_an_order_joins_hosts_and_local_ranks_with_ranks() -> None:
    """But it does not say that these ranks ever began."""
    job = JobMap(sizes={4})
    job.orders.add(PAIR)
    job.learn("job.log", Origin(rank=3))
    job.learn("n2.log", Origin(host="n2", local_rank=0))
    job.resolve()
    assert job.complete("job.log", Origin(rank=3)).host == "n2"
    assert job.complete("n2.log", Origin(host="n2", local_rank=0)).rank == 2
    assert 0 not in job.ranks
