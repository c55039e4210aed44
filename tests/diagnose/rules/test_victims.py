"""Which ranks a failure of a machine takes: those of the machine that it hit directly, or none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diagnose.factories import GLOO, candidate, exited, explain, fact, raised
from triage.catalog.model import CausalEdge
from triage.diagnose.candidates import Candidate
from triage.diagnose.context import RuleContext
from triage.model.evidence import Evidence

HOSTS = {0: ("n1",), 1: ("n1",), 2: ("n2",), 3: ("n2",)}


def machine_fault(*lines: Evidence, scope: str = "same-host", effect: str = "the.effect") -> Candidate:
    """Return a cause that only a kernel states."""
    cause = candidate("gpu.fault", "cause")
    assert cause.signature is not None
    object.__setattr__(cause.signature, "causal_edges", (CausalEdge(effect, scope),))  # type: ignore[arg-type]
    return Candidate(cause.signature, None, list(lines) or [kernel("NVRM: GPU is gone")])


def kernel(text: str, host: str | None = "n1", **fields: str) -> Evidence:
    """Return a line of the kernel of a host."""
    return replace(fact(text, kind="kernel", component="kernel", source="dmesg", host=host), fields=fields)


def effect_on(*ranks: int, role: str = "either", text: str = "failed", indicates: str = "") -> Candidate:
    """Return a failure of these ranks."""
    one = candidate("the.effect", role)  # type: ignore[arg-type]
    assert one.signature is not None
    object.__setattr__(one.signature, "indicates", indicates or None)
    return Candidate(one.signature, None, [fact(text, rank, source=f"{rank}.log") for rank in ranks])


def ranks_of(cause: Candidate, *effects: Candidate, hosts: object = None, **known: object) -> tuple[int, ...]:
    """Return the ranks that the cause takes."""
    hosts = HOSTS if hosts is None else hosts
    context = RuleContext((), {}, frozenset(range(4)), 4, frozenset(), hosts=hosts, **known)  # type: ignore[arg-type]
    explain([cause, *effects], context)
    return cause.ranks


def test_a_direct_effect_gives_the_ranks_of_that_machine() -> None:
    """Of the ranks with the direct effect those on the machine are taken; without known places only a single one."""
    assert ranks_of(machine_fault(), effect_on(1)) == (1,)
    assert ranks_of(machine_fault(), effect_on(0, 1, 2)) == (0, 1)
    assert ranks_of(machine_fault(), effect_on(2)) == ()
    assert ranks_of(machine_fault(), effect_on(2), hosts={}) == (2,)
    assert ranks_of(machine_fault(), effect_on(1, 2), hosts={}) == ()
    assert ranks_of(machine_fault(scope="any-rank"), effect_on(2), hosts={}) == ()
    assert ranks_of(machine_fault(scope="any-rank"), effect_on(1, 2)) == (1,)


def test_ranks_of_other_machines_only_confirm_a_cause_of_a_machine() -> None:
    """Those that show its direct effect there count, where a signature needs a line of a rank as well."""
    confirming = [fact("lost its peer", rank, source=f"{rank}.log", host=f"n{1 + rank // 2}") for rank in (0, 1, 2)]
    assert ranks_of(machine_fault(kernel("Link DOWN"), *confirming), effect_on(1, 2)) == (1,)
    assert ranks_of(machine_fault(kernel("Link DOWN"), *confirming), effect_on(2)) == (0, 1)
    assert ranks_of(machine_fault(kernel("Link DOWN"), *confirming[2:]), effect_on(2)) == ()
    assert ranks_of(machine_fault(kernel("Link DOWN"), *confirming[:2]), effect_on(1)) == (0, 1)


def test_echoes_hand_nothing_on() -> None:
    """What ranks suffer from a lost peer, and how a launcher ended them, says nothing of where it began."""
    for indicates in ("peer-lost", "stopped-by-launcher", "ending", "waiting"):
        assert ranks_of(machine_fault(), effect_on(0, 1, indicates=indicates)) == ()


def test_the_owner_of_a_killed_process_is_taken() -> None:
    """A rank reports the end of a worker with the pid that the kernel killed; another pid does not count."""
    line = kernel("Out of memory: Killed process 79527 (pt_data_worker)", pid="79527")
    for pid, ranks in ((79527, (0,)), (79528, ())):
        text = f"RuntimeError: DataLoader worker (pid {pid}) is killed by signal: Killed."
        cause = machine_fault(line)
        assert ranks_of(cause, effect_on(0, role="symptom", text=text)) == ranks
        assert ("rank 0: its worker 79527 was killed" in cause.why) == bool(ranks)


def test_the_only_killed_rank_of_the_machine_is_taken() -> None:
    """A process that may be a rank was killed, under a pid that no file knows: with two killed ranks it is neither."""
    for name, killed, ranks in (("python3", (0,), (0,)), ("python3", (0, 1), ()), ("mysqld", (0,), ())):
        cause = machine_fault(kernel(f"Out of memory: Killed process 42 ({name})", pid="42"))
        assert ranks_of(cause, effect_on(*killed, indicates="killed")) == ranks


@pytest.mark.parametrize(("delay", "ranks"), [(120.0, (0,)), (121.0, ())])
def test_a_rank_that_ended_long_after_the_kernel_s_line_was_not_that_process(
    delay: float, ranks: tuple[int, ...]
) -> None:
    """A launcher sees the end of a killed process at most two minutes later."""
    line = kernel("Out of memory: Killed process 42 (python3)", pid="42")
    line = replace(line, origin=replace(line.origin, time=1000.0))
    killed = effect_on(0, indicates="killed")
    killed.facts = [replace(one, origin=replace(one.origin, time=1000.0 + delay)) for one in killed.facts]
    assert ranks_of(machine_fault(line), killed) == ranks


@pytest.mark.parametrize(("losing", "suspects"), [((0, 1, 3), (2,)), ((0, 1), None), ((0, 1, 2, 3), None)])
def test_an_end_without_a_rank_is_that_of_the_only_rank_that_lost_no_peer(
    losing: tuple[int, ...], suspects: tuple[int, ...] | None
) -> None:
    """The launcher reports one end; of two ranks without a complaint it may be either, and of none it names nobody."""
    facts = [raised(GLOO, rank) for rank in losing]
    context = RuleContext(facts, {"peer-lost": range(len(facts))}, frozenset(range(4)), 4, frozenset())
    end = Candidate(None, "u-1", [exited(None, 1)])
    explain([end], context)
    assert end.suspects == suspects
    assert any("all other ranks lost the connection" in reason for reason in end.why) is (suspects is not None)


def test_silent_ranks_of_the_machine_are_taken() -> None:
    """All others waited for the silent ranks, which all ran on that machine."""
    for waiting, ranks in (((2, 3), (0, 1)), ((0, 2, 3), (1,)), ((0, 1), ()), ((0, 1, 2), ()), ((1, 3), ())):
        facts = [fact("timed out", rank) for rank in waiting]
        effect = effect_on(*waiting, role="symptom", indicates="waiting")
        matched = {"waiting": range(len(facts))}
        context = RuleContext(facts, matched, frozenset(range(4)), 4, frozenset(), hosts=HOSTS)
        cause = machine_fault(scope="other-ranks")
        explain([cause, effect], context)
        assert cause.ranks == ranks


def test_the_only_rank_without_a_lost_peer_is_taken() -> None:
    """All others complain of a peer; where two do not, or the one is elsewhere, none is taken."""
    for complaining, ranks in (((1, 2, 3), (0,)), ((2, 3), ()), ((0, 1, 2), ())):
        effect = effect_on(*complaining, role="symptom", indicates="peer-lost")
        assert ranks_of(machine_fault(scope="other-ranks"), effect) == ranks


def test_the_kernel_s_own_name_of_its_machine_is_shown() -> None:
    """Files may place the rank on a pod or a collector as well."""
    cause = machine_fault(kernel("NVRM: GPU is gone", host="n1.example.org"))
    assert ranks_of(cause, effect_on(1), hosts={1: ("n1", "pod-4"), 2: ("n2",)}) == (1,)
    assert cause.rank_places == ("n1.example.org",)


def test_a_kernel_that_writes_the_whole_name_is_on_the_same_host() -> None:
    """The kernel says n1.example.org and the rank n1; n2 is another host."""
    for host, ranks in (("n1", (1,)), ("n2", ())):
        effect = effect_on(1)
        effect.facts = [replace(one, origin=replace(one.origin, host=host)) for one in effect.facts]
        assert ranks_of(machine_fault(kernel("NVRM: GPU is gone", host="n1.example.org")), effect) == ranks
