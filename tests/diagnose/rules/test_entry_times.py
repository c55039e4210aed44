"""Rules about when each rank asked for its HCCL group."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diagnose.factories import fact
from triage.diagnose.context import RuleContext
from triage.diagnose.rules.entry_times import late_entry
from triage.diagnose.time_order import Clocks
from triage.model import Evidence

BASE = RuleContext([], {}, frozenset({0, 1, 2}), 3, frozenset())
TWO_HOSTS = replace(BASE, clocks=Clocks(frozenset({"a", "b"})))
GAVE_UP = "topo exchange server get socket timeout! timeout[{} s]"


def entry(rank: int, time: float, host: str = "a") -> Evidence:
    return fact(f"Entry-HcclCommInitRootInfo:ranks[3], rank[{rank}], identifier[g]", time=time, host=host)


def late_ranks(context: RuleContext, *facts: Evidence) -> list[int | None]:
    return [one.origin.rank for one in late_entry(replace(context, facts=facts))]


@pytest.mark.parametrize(("time", "late"), [(130.0, []), (130.5, [2])])
def test_a_rank_that_entered_later_than_the_default_timeout(time: float, late: list[int]) -> None:
    """The first rank waits 120 s for the last."""
    assert late_ranks(BASE, entry(0, 10.0), entry(1, 12.0), entry(2, time)) == late


@pytest.mark.parametrize(
    "statement", ["[HCCL_ENV] HCCL_CONNECT_TIMEOUT set by environment to [300]s", GAVE_UP.format(300)]
)
def test_the_timeout_is_what_the_files_say(statement: str) -> None:
    """The environment or the report of the root says how long the first rank waits."""
    assert late_ranks(BASE, fact(statement), entry(0, 10.0), entry(2, 310.0)) == []
    assert late_ranks(BASE, fact(statement), entry(0, 10.0), entry(2, 311.0)) == [2]


def test_the_others_were_without_it_since_the_first_came() -> None:
    """The inference has the place of the late line and the time of the first: it can explain why others failed."""
    late = replace(entry(2, 210.0), offset=77)
    (inference,) = late_entry(replace(BASE, facts=[entry(0, 10.0), late]))
    assert (inference.origin.time, inference.offset) == (10.0, 77)


def test_clocks_of_hosts_count_where_the_root_gave_up() -> None:
    """Clocks that nothing ties may differ: the root must have waited in vain, and for no other rank."""
    entries = entry(0, 10.0), entry(1, 11.0, "b"), entry(2, 210.0, "c")
    assert late_ranks(TWO_HOSTS, *entries) == []
    assert late_ranks(TWO_HOSTS, *entries, fact(GAVE_UP.format(120))) == [2]
    assert late_ranks(TWO_HOSTS, *entries, fact('fault_info["Failed to connect agent[2,]"]')) == [2]
    assert late_ranks(TWO_HOSTS, *entries, fact("connectFailedAgentIdList[1, 2]")) == []
