"""Tests for triage.diagnose.rules.links: both ends of broken links, and calls that HCCL compares."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.diagnose.factories import fact
from triage.catalog.model import Leaf, Signature
from triage.diagnose.candidates import Candidate
from triage.diagnose.context import RuleContext
from triage.diagnose.graph import CausalGraph
from triage.diagnose.npu_tasks import find_rank_at
from triage.diagnose.rules import links
from triage.model.evidence import Evidence

LOCAL = {("10.0.0.1", device): {device} for device in range(4)}


def completion(rank: int, peer: int) -> Evidence:
    """Return an error completion that a rank got from another one."""
    place = f"server[10.0.0.1],deviceId[{peer}],deviceIp[192.168.1.{peer}]"
    return fact(f"cqe error status[12], localInfo{{server[10.0.0.1],deviceId[{rank}]}}, remoteIP{{{place}}}", rank)


def find_suspects(
    facts: Iterable[Evidence], complaining: Iterable[int] = (), identifier: str = "hccl.roce-cqe"
) -> tuple[int, ...] | None:
    """Return the suspects of a failure of a link with these facts."""
    shown = list(facts)
    signature = Signature(
        identifier,
        1,
        "t",
        "stable",
        "either",
        "error",
        Leaf(text="x"),
        indicates="link" if "cqe" in identifier else None,
    )
    candidate = Candidate(signature, None, shown)
    context = RuleContext(
        tuple(shown), {}, frozenset(range(4)), 4, frozenset(), local=LOCAL, complaining=frozenset(complaining)
    )
    graph = CausalGraph([candidate], context)
    links.heartbeat_location(graph)
    links.compared_calls(graph)
    return candidate.suspects


@pytest.mark.parametrize(
    ("pairs", "complaining", "suspects"),
    [
        ([(0, 3)], (), (3,)),
        ([(0, 3)], (3,), (0, 3)),
        ([(0, 3), (1, 3)], (3,), (3,)),
        ([(0, 1), (0, 2), (0, 3)], (1, 2, 3), (0,)),
        ([(0, 1), (2, 3)], (), None),
    ],
)
def test_both_ends_of_broken_links(
    pairs: list[tuple[int, int]], complaining: tuple[int, ...], suspects: tuple[int, ...] | None
) -> None:
    """The end that all links share, a silent end, or both ends of the only link."""
    assert find_suspects([completion(*pair) for pair in pairs], complaining) == suspects


@pytest.mark.parametrize(("devices", "suspects"), [((2, 2, 1), (2,)), ((2, 1), None)])
def test_the_end_that_most_processes_name_first(devices: tuple[int, ...], suspects: tuple[int, ...] | None) -> None:
    """Heartbeats name several ends: the one that more than half name first is meant."""
    text = "Cluster Exception Location[IP/ID]:[10.0.0.1/{}], ExceptionType:[Heartbeat Lost Occurred]"
    facts = [fact(text.format(device), rank) for rank, device in enumerate(devices)]
    assert find_suspects(facts, identifier="hccl.heartbeat-lost") == suspects


def test_a_parameter_that_differs_names_both_ends() -> None:
    """One check of two ranks names both; a third rank with one of the values makes a majority."""
    text = "CMD information tag check fail. local[{}], remote[{}]"
    link = "createLink para:rank[{0}]-localUserrank[{0}]-localIpAddr[10.0.0.1/{0}], remoteRank[2]-remoteUserrank[2]-"
    link += "remoteIpAddr[10.0.0.1/2]"
    facts = [
        fact(text.format("AllReduce_g", "AllGather_g"), 1, source="1"),
        fact(link.format(1), 1, source="1", offset=99),
    ]
    assert _compare(facts) == (1, 2)
    facts += [
        fact(text.format("AllReduce_g", "AllGather_g"), 0, source="0"),
        fact(link.format(0), 0, source="0", offset=99),
    ]
    assert _compare(facts) == (2,)


def _compare(facts: list[Evidence]) -> tuple[int, ...] | None:
    return find_suspects(facts, identifier="hccl.argument-mismatch")


def test_the_heartbeat_compares_calls() -> None:
    """The heartbeat's check names the node of the other call."""
    text = (
        "[Heartbeat]check opinfo inconsistent. identifier[g] index[7], local(node[10.0.0.1/0] optype[AllReduce] "
        "count[8]); remote(node[10.0.0.1/3] optype[AllGather] count[8])"
    )
    assert find_suspects([fact(text, 0)], identifier="hccl.heartbeat-operator-mismatch") == (0, 3)
    assert find_suspects([fact(text, 0), fact(text, 1)], identifier="hccl.heartbeat-operator-mismatch") == (3,)


def test_calls_that_timed_out_show_which_end_is_odd() -> None:
    """Two ends differ, and no third one is compared: the end that waits as most members do is not odd."""
    text = (
        "[Heartbeat]check opinfo inconsistent. identifier[g] index[7], local(node[10.0.0.1/0] optype[allreduce] "
        "count[8]); remote(node[10.0.0.1/3] optype[allgather] count[8])"
    )
    task = "Task run failed, base information is tag[{}_g]. group:[g], rankSize[4], rankId[{}], index[7], count[8]"
    tasks = [fact(task.format("AllGather" if rank == 3 else "AllReduce", rank), rank) for rank in range(4)]
    suspects = find_suspects([fact(text, 0), *tasks], identifier="hccl.heartbeat-operator-mismatch")
    assert suspects == (3,)


def _heartbeat(reporter: int, device: int) -> Evidence:
    local, remote = f"node[10.0.0.1/{reporter}] dataType[float32]", f"node[10.0.0.1/{device}] dataType[bfloat16]"
    text = f"check opinfo inconsistent. identifier[g] index[7], local({local}); remote({remote})"
    return fact(f"[Heartbeat]{text}", reporter)


@pytest.mark.parametrize(("other", "suspects"), [(7, ()), (6, (0, 2))])
def test_an_end_without_a_rank_takes_the_blame_if_it_alone_differs(other: int, suspects: tuple[int, ...]) -> None:
    """Two ranks report the call of a device whose rank no file shows: their equal calls are not wrong."""
    facts = [_heartbeat(0, 7), _heartbeat(2, other)]
    assert find_suspects(facts, identifier="hccl.heartbeat-operator-mismatch") == suspects


def test_a_parameter_of_an_unknown_end_takes_the_blame() -> None:
    """Two ranks with the same parameter differ from an end that no link names: neither of them is suspected."""
    text = "CMD information tag check fail. local[AllReduce_g], remote[AllGather_g]"
    assert _compare([fact(text, 0, source="0"), fact(text, 1, source="1")]) == ()


@pytest.mark.parametrize(
    ("local", "ranks", "rank"),
    [
        ({5: 13, 7: 15}, range(16), 14),
        ({5: 13}, range(16), None),
        ({5: 13, 7: 12}, range(16), None),
        ({5: 13, 7: 15}, range(14), None),
    ],
    ids=["in order", "one device", "another order", "no such rank"],
)
def test_a_silent_rank_fits_between_the_others_of_its_host(
    local: dict[int, int], ranks: range, rank: int | None
) -> None:
    """Devices 5 and 7 have ranks 13 and 15: device 6 has rank 14, if no file is from that rank."""
    places = {("10.0.0.2", device): {one} for device, one in local.items()}
    context = RuleContext((), {}, frozenset(local.values()), len(ranks), frozenset(), local=places)
    assert find_rank_at(context, "10.0.0.2", 6) == rank
    present = RuleContext((), {}, frozenset(ranks), len(ranks), frozenset(), local=places)
    assert find_rank_at(present, "10.0.0.2", 6) is None
