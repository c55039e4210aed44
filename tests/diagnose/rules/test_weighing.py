"""Weighing rules: edges and moved suspicion."""

from __future__ import annotations

import pytest

from diagnose.factories import candidate, decide, exited, explain, fact, raised, unknown_failure
from triage.catalog.model import CausalEdge
from triage.diagnose.candidates import Candidate, stop_of_job
from triage.diagnose.context import RuleContext
from triage.diagnose.graph import CausalGraph
from triage.diagnose.rules import machines
from triage.model import Evidence
from triage.model.details import InferenceDetail, KernelDetail, SchedulerDetail
from triage.model.diagnosis import Role


def with_facts(one: Candidate, *facts: object, indicates: str = "", **values: tuple[str, ...]) -> Candidate:
    """Return the candidate with these facts and captures."""
    assert one.signature is not None
    if indicates:
        object.__setattr__(one.signature, "indicates", indicates)
    return Candidate(one.signature, None, list(facts) or one.facts, values=values)  # type: ignore[arg-type]


def root(*candidates: Candidate, context: RuleContext | None = None) -> str | None:
    graph = explain(candidates, context) if context else explain(candidates)
    chosen = decide(graph.candidates).root
    return chosen.id if chosen else None


def test_a_scheduler_line_is_about_the_rank_killed_on_its_host() -> None:
    """The scheduler names a host only: its line is about the rank that was killed there, and is the cause."""
    oom = with_facts(
        candidate("slurm.oom-kill", "confirmation"), fact("oom_kill", kind="scheduler", component="slurm", host="b")
    )
    object.__setattr__(oom.signature, "causal_edges", (CausalEdge("host.sigkill", "same-host"),))
    killed = with_facts(
        candidate("host.sigkill", "either"), exited(1, -9, host="a"), exited(5, -9, host="b"), indicates="killed"
    )
    assert root(oom, killed) == "slurm.oom-kill"
    assert oom.ranks == (5,)
    assert any("slurm says why" in reason for reason in oom.why)


def test_the_reason_of_a_kill_without_a_rank_is_a_whole_sentence() -> None:
    """Kubernetes says why a process was killed of which no file shows the rank."""
    probe = with_facts(candidate("kubernetes.probe", "either"), fact("probe", kind="scheduler", component="Kubernetes"))
    object.__setattr__(probe.signature, "causal_edges", (CausalEdge("host.sigkill"),))
    killed = with_facts(candidate("host.sigkill", "either"), exited(None, 137), indicates="killed")
    assert root(probe, killed) == "kubernetes.probe"
    assert "Kubernetes says why the process was killed" in probe.why


def test_a_failed_node_is_where_it_began() -> None:
    """The ranks on the nodes that Slurm lost are the suspects; the node that reports is not one, and without a map no
    rank is, but the node is named.
    """
    for text, hosts, ranks, places, reason in (
        (
            "a[08-10],b",
            {0: ("a07",), 1: ("a10",), 2: ("b",)},
            (1, 2),
            ("a08", "a09", "a10", "b"),
            "ranks 1-2 ran; the other ranks were stopped because of it",
        ),
        ("b", {2: ("b",)}, (2,), ("b",), "no file says where ranks 0-1 ran"),
        ("b", {}, (), ("b",), "Node b was lost; no file says which ranks ran there"),
        ("", {0: ("a07",)}, (), (), "No line names the lost node"),
    ):
        lost = with_facts(
            candidate("slurm.node-failure"),
            fact("ON a07 CANCELLED", 0, kind="scheduler", host="a07", detail=SchedulerDetail(text)),
            indicates="node-lost",
        )
        killed = with_facts(candidate("host.sigkill", "either"), exited(0, -9, host="a07"), indicates="killed")
        object.__setattr__(lost.signature, "causal_edges", (CausalEdge("host.sigkill"),))
        context = RuleContext((), {}, frozenset(range(3)), 3, frozenset(), hosts=hosts)
        assert root(lost, killed, context=context) == "slurm.node-failure"
        assert (lost.ranks, lost.rank_places) == (ranks, places)
        assert any(reason in why for why in lost.why)


def test_a_node_that_a_line_names_is_where_it_began() -> None:
    """The node in the capture of any signature about a lost node counts as that of the scheduler does."""
    lost = with_facts(candidate("mpi.daemon-lost", "either"), indicates="node-lost", node=("gpu-12.cluster",))
    context = RuleContext((), {}, frozenset(range(3)), 3, frozenset(), hosts={2: ("gpu-12",)})
    assert root(lost, context=context) == "mpi.daemon-lost"
    assert (lost.ranks, lost.rank_places) == ((2,), ("gpu-12",))


def test_an_unexplained_kill_says_where_to_look() -> None:
    """It stays the root, with a hint where to look."""
    killed = with_facts(candidate("host.sigkill", "either"), exited(1, -9), indicates="killed")
    assert root(killed) == "host.sigkill"
    assert any("No file says who sent SIGKILL" in reason for reason in killed.why)


def xid(number: int, offset: int, *, bus: str = "0000:9b:00", text: str = "") -> object:
    return fact(
        text or f"NVRM: Xid (PCI:{bus}): {number}",
        kind="kernel",
        source="dmesg",
        offset=offset,
        detail=KernelDetail(bus, number),
    )


def test_the_first_of_several_ranks_with_a_cuda_error() -> None:
    """Rank 2 reported 30 s before the others: it is the suspect; within two seconds nobody is."""
    facts = [fact("device-side assert", rank, time=100.0 + (0 if rank == 2 else 30)) for rank in range(4)]
    one = with_facts(candidate("cuda.assert"), *facts)
    explain([one])
    assert one.ranks == (2,)
    together = with_facts(candidate("cuda.assert"), *[fact("x", rank, time=100.0 + rank / 4) for rank in range(4)])
    explain([together])
    assert together.ranks == (0, 1, 2, 3)


def test_suspects_of_a_cuda_error_that_are_known_stay() -> None:
    """An earlier rule knows that rank 1 is at fault; that rank 2 reported the error first does not count then."""
    error = candidate("cuda.assert", "cause")
    error.facts = [fact("device-side assert", rank, time=100.0 if rank == 2 else 130.0) for rank in range(4)]
    graph = CausalGraph([error])
    graph.set_suspects(error, [1], "Rank 1 ran on the node that failed")
    machines.first_cuda_error(graph)
    assert error.suspects == (1,)


@pytest.mark.parametrize(
    ("last", "suspects"),
    [
        ((111.0, 111.0, 100.0, 111.0), (2,)),
        ((110.0, 110.0, 100.0, 110.0), None),
        ((108.0, 118.5, 100.0, 118.5), (0, 2)),
        ((108.0, 118.0, 100.0, 118.0), None),
    ],
)
def test_without_times_the_ranks_that_went_silent_first_had_the_cuda_error(
    last: tuple[float, ...], suspects: tuple[int, ...] | None
) -> None:
    """The error has the time of an earlier line: who wrote its last step over 10 s before all others is suspected."""
    error = candidate("cuda.assert", "cause")
    error.facts = [fact("device-side assert", rank, time=99.0, inherits_time=True) for rank in range(4)]
    last_time = {rank: ("", time) for rank, time in enumerate(last)}
    steps = dict.fromkeys(range(4), 40)
    explain([error], RuleContext((), {}, frozenset(range(4)), 4, frozenset(), last_step=steps, last_time=last_time))
    assert error.suspects == suspects


def test_a_link_follows_from_a_peer_that_died_before() -> None:
    """Rank 3 was killed before ranks 0 and 1 gave up their transfers; a rank that was killed much later was not why."""
    link = with_facts(
        candidate("fabric.retry", "either"),
        fact("status=12", 0, time=100.0),
        fact("status=12", 1, time=101.0),
        indicates="link",
    )
    assert root(link, candidate("host.sigkill", "either", [3], time=95.0)) == "host.sigkill"
    link = with_facts(
        candidate("fabric.retry", "either"),
        fact("status=12", 0, time=100.0),
        fact("status=12", 1, time=101.0),
        indicates="link",
    )
    assert root(link, candidate("a.late", "either", [3], time=160.0)) == "fabric.retry"


def test_the_heartbeat_s_address_is_a_rank() -> None:
    """HCCL names host and device of the end that was lost."""
    lost = with_facts(candidate("hccl.heartbeat-lost", "either", [0, 1]), peer=("10.0.0.2",), device=("3",))
    context = RuleContext((), {}, frozenset(range(16)), 16, frozenset(), local={("10.0.0.2", 3): {11}})
    explain([lost], context)
    assert lost.ranks == (11,)


def test_what_fails_after_a_stop_from_outside_fails_because_of_it() -> None:
    """The scheduler stops the job and ten seconds later ranks raise; what failed before is a cause of its own."""
    stop = candidate("slurm.cancelled", "cause", time=100.0)
    after = unknown_failure("u-1", [0], time=110.0)
    assert root(stop, after) == "slurm.cancelled"
    assert root(candidate("slurm.cancelled", "cause", time=100.0), unknown_failure("u-1", [0], time=90.0)) == "u-1"


def test_an_inference_is_explained_by_the_error_of_that_rank() -> None:
    """Rank 2 did not come, and printed an error."""
    silent = with_facts(
        candidate("torch.never", "cause"),
        fact("x", 2, kind="inference", detail=InferenceDetail("never-joined", "absence")),
    )
    assert root(silent, unknown_failure("u-1", [2])) == "u-1"
    assert silent.explained_by == ["u-1"]


def test_an_edge_does_not_run_backwards_in_time() -> None:
    """What surely began before is not explained; windows hold."""
    cause, effect = candidate("a.cause", "either", [0], time=100.0), candidate("b.effect", "either", [0], time=50.0)
    object.__setattr__(cause.signature, "causal_edges", (CausalEdge("b.effect"),))
    explain([cause, effect])
    assert effect.explained_by == []
    later = candidate("b.effect", "either", [0], time=900.0)
    object.__setattr__(cause.signature, "causal_edges", (CausalEdge("b.effect", window=60.0),))
    explain([cause, later])
    assert later.explained_by == []


def test_an_edge_within_a_process_group() -> None:
    """A time-out in one group does not explain one in another."""
    here, there = "[PG ID 1 PG GUID 8(tp) Rank 0] x", "[PG ID 2 PG GUID 9(dp) Rank 0] x"
    for text, explained in ((here, True), (there, False), ("no group is named", True)):
        cause, effect = (
            with_facts(candidate("a.cause", "either"), fact(here, 0)),
            with_facts(candidate("b.effect", "either"), fact(text, 1)),
        )
        object.__setattr__(cause.signature, "causal_edges", (CausalEdge("b.effect", "same-group"),))
        explain([cause, effect])
        assert bool(effect.explained_by) is explained


def test_the_rank_whose_heartbeat_was_lost() -> None:
    """Host and device are joined to a rank; the failure of that rank explains that it was lost."""
    lost = candidate("hccl.heartbeat-lost", "either", [0, 1])
    located = with_facts(lost, *lost.facts, peer=("10.0.0.2",), device=("1",))
    context = RuleContext(
        (), {}, frozenset(range(4)), 4, frozenset(), addresses={"10.0.0.2": {"b"}}, local={("a", 1): {1}, ("b", 1): {3}}
    )
    killed = with_facts(candidate("host.sigkill", "either"), exited(3, -9), indicates="killed")
    assert root(located, killed, context=context) == "host.sigkill"
    assert (located.suspects, located.explained_by) == ((3,), ["host.sigkill"])
    elsewhere = with_facts(lost, *lost.facts, peer=("10.0.0.9",), device=("1",))
    assert root(elsewhere, context=context) == "hccl.heartbeat-lost"
    assert elsewhere.suspects is None


@pytest.mark.parametrize(("reporting", "suspects"), [((0, 1, 3), (2,)), ((0, 1), None), ((0, 1, 2, 3), None)])
def test_the_only_rank_that_lost_no_heartbeat(reporting: tuple[int, ...], suspects: tuple[int, ...] | None) -> None:
    """Where no line places the device that the messages name, the one rank that does not report it is the lost one."""
    lost = with_facts(candidate("hccl.heartbeat-lost", "either", reporting), peer=("10.0.0.2",), device=("1",))
    explain([lost], RuleContext((), {}, frozenset(range(4)), 4, frozenset()))
    assert lost.suspects == suspects


def test_one_report_of_two_is_enough_for_nobody() -> None:
    """Of two ranks one reports: a report says which device is lost, but one alone may be wrong about who is."""
    lost = with_facts(candidate("hccl.heartbeat-lost", "either", [0]), peer=("10.0.0.2",), device=("1",))
    explain([lost], RuleContext((), {}, frozenset(range(2)), 2, frozenset()))
    assert lost.suspects is None


def _measured_difference(rank: int, time: float | None = None) -> Candidate:
    difference = fact("loss differs", rank, kind="inference", time=time, detail=InferenceDetail("value-diverged"))
    return with_facts(candidate("numeric.rank-divergence"), difference)


def _stated_failure(text: str, time: float | None = None) -> Candidate:
    failure = unknown_failure("u-1", [0, 1, 2], time=time)
    failure.facts = [fact(text, one.origin.rank, kind="exception", time=time) for one in failure.facts]
    return failure


def test_a_check_of_values_fails_because_they_differ() -> None:
    """An exception that says that values are not the same follows from the difference that the values show."""
    for text in (
        "AssertionError: weights of replicas are not identical",
        "RuntimeError: consistency check failed: loss",
        "ValueError: gradients went out of sync",
        "RuntimeError: hash mismatch: 0x12 != 0x13",
    ):
        assert root(_measured_difference(1), _stated_failure(text)) == "numeric.rank-divergence", text


def test_another_exception_does_not_follow_from_differing_values() -> None:
    """An exception about something else, or one before the values differ, keeps its own weight."""
    assert root(_measured_difference(1), _stated_failure("RuntimeError: size mismatch for head.weight")) == "u-1"
    assert root(_measured_difference(1), _stated_failure("KeyError: 'tokens'")) == "u-1"
    early = _stated_failure("RuntimeError: hash mismatch: 0x12 != 0x13", 10.0)
    assert root(_measured_difference(1, 100.0), early) == "u-1"


def _groups_shown_by(error: Evidence) -> Candidate:
    """Return separate groups that an error shows."""
    text, detail = "each of 2 processes is rank 0 of 1", InferenceDetail("split-rendezvous")
    shown = fact(text, kind="inference", offset=error.offset, detail=detail, shown_by="error")
    return with_facts(candidate("launch.split-rendezvous"), shown)


def test_an_error_that_shows_a_cause_follows_from_it() -> None:
    """The same text on other ranks and exits follow too; another error does not."""
    error = raised("ValueError: 4 GPUs are configured, world size is 2", 0, offset=70)
    again = Candidate(None, "u-1", [raised(error.text, 1, offset=900)])
    ended = Candidate(None, "u-2", [exited(3, 1)])
    other = Candidate(None, "u-3", [raised("KeyError: 'tokens'", 1, offset=400)])
    context = RuleContext([error, *again.facts, *ended.facts, *other.facts], {}, frozenset({0, 1}), 2, frozenset())
    explain([_groups_shown_by(error), again, ended, other], context)
    assert [one.explained_by for one in (again, ended, other)] == [["launch.split-rendezvous"]] * 2 + [[]]


@pytest.mark.parametrize(("role", "follows"), [("either", True), ("cause", False)])
def test_a_known_error_that_may_follow_follows_from_what_it_shows(role: Role, follows: bool) -> None:
    """A signature that states a cause for sure is no consequence of an inference from its line."""
    error = raised("FileExistsError: [Errno 17] File exists: '/ckpt/900'", 0, offset=70)
    known = with_facts(candidate("checkpoint.path-exists", role), error)
    explain([_groups_shown_by(error), known], RuleContext([error], {}, frozenset({0, 1}), 2, frozenset()))
    assert bool(known.explained_by) is follows


def stop(*facts: Evidence, name: str = "launch.interrupted") -> Candidate:
    """Return a stop from outside that these facts show."""
    one = with_facts(candidate(name), *facts, indicates="outside")
    stop_of_job(one)
    return one


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("BrokenPipeError: [Errno 32] Broken pipe", ["launch.interrupted"]),
        ("ConnectionAbortedError: [Errno 103] Software caused connection abort", ["launch.interrupted"]),
        ("redis.exceptions.ConnectionError: Connection closed by server.", ["launch.interrupted"]),
        ("aiohttp.client_exceptions.ServerDisconnectedError: Server disconnected", ["launch.interrupted"]),
        ("ssl.SSLEOFError: EOF occurred in violation of protocol (_ssl.c:2427)", ["launch.interrupted"]),
        ("EOFError", ["launch.interrupted"]),
        ("EOFError: Ran out of input", []),
        ("ValueError: the pipe size is 3, not 4", []),
    ],
)
def test_a_lost_end_follows_from_a_stop(text: str, by: list[str]) -> None:
    """Without times, a process that only says that its other end was gone follows from Ctrl-C; others do not."""
    failure = Candidate(None, "u-1", [raised(text, 1)])
    explain([stop(raised("KeyboardInterrupt", 0)), failure])
    assert failure.explained_by == by


@pytest.mark.parametrize(("ranks", "by"), [((0, 1), ["launch.interrupted"]), ((0,), [])])
def test_sigterm_explains_lost_ends_where_it_came(ranks: tuple[int, ...], by: list[str]) -> None:
    """A launcher sends SIGTERM to the others after one has failed: only the ranks that got it may follow from it."""
    failure = Candidate(None, "u-1", [raised("BrokenPipeError: [Errno 32] Broken pipe", 1)])
    explain([stop(*(fact("Received SIGTERM", rank) for rank in ranks)), failure])
    assert failure.explained_by == by


@pytest.mark.parametrize(("time", "is_explained"), [(5.0, False), (40.0, True), (129.0, True), (131.0, False)])
def test_times_decide_where_they_are_known(time: float, is_explained: bool) -> None:
    """A lost end before the stop, or more than two minutes later, does not follow from it."""
    failure = Candidate(None, "u-1", [raised("BrokenPipeError: [Errno 32] Broken pipe", 1, time=time)])
    explain([stop(raised("KeyboardInterrupt", 0, time=10.0)), failure])
    assert bool(failure.explained_by) == is_explained


@pytest.mark.parametrize(("offset", "is_explained"), [(50, False), (500, True)])
def test_zones_of_one_file_do_not_contradict_its_order(offset: int, is_explained: bool) -> None:
    """An hour apart in one file: the line below the stop is in another zone, the line above it came first."""
    failure = Candidate(None, "u-1", [raised("BrokenPipeError: [Errno 32] Broken pipe", 1, time=3611.0, offset=offset)])
    explain([stop(fact("Received SIGTERM", 1, time=7201.0, offset=100)), failure])
    assert bool(failure.explained_by) == is_explained


@pytest.mark.parametrize(("offset", "expected"), [(50, None), (500, "slurm.cancelled")])
def test_a_symptom_below_a_stop_does_not_lead_to_it(offset: int, expected: str | None) -> None:
    """A lost peer that stands below the line of Slurm in the same file follows from it; above it, it comes first."""
    cancelled = stop(fact("CANCELLED AT", kind="scheduler", offset=100), name="slurm.cancelled")
    lost = with_facts(
        candidate("nccl.remote-error", "symptom", leads_to=("slurm.cancelled",)), raised("lost", 1, offset=offset)
    )
    assert root(cancelled, lost) == expected


@pytest.mark.parametrize(("offset", "is_explained"), [(50, False), (500, True)])
def test_a_wait_below_a_stop_follows_from_it(offset: int, is_explained: bool) -> None:
    """What is inferred from a timeout above the stop is why somebody stopped the job; one below it follows from it."""
    detail = InferenceDetail("never-joined", "absence", "message")
    absent = fact("rank 0 did not join", 0, kind="inference", offset=offset, detail=detail)
    never = with_facts(candidate("torch.rank-never-joined"), absent)
    explain([stop(fact("Received SIGTERM", 1, offset=100)), never])
    assert bool(never.explained_by) == is_explained


def test_a_stop_of_the_job_blames_nobody() -> None:
    """Ctrl-C and a scheduler stop all ranks; SIGTERM may reach one node, unless lines of more ranks were left out."""
    assert stop(raised("KeyboardInterrupt", 0, host="a")).rank_places == ()
    assert stop(raised("KeyboardInterrupt", 0)).ranks == ()
    assert stop(fact("CANCELLED AT", kind="scheduler", host="a"), name="slurm.cancelled").rank_places == ()
    limit = with_facts(
        candidate("slurm.time-limit"), fact("CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT", kind="scheduler")
    )
    stop_of_job(limit)
    assert limit.is_stop_of_job
    assert stop(fact("Received SIGTERM", 0), fact("Received SIGTERM", 1)).ranks == (0, 1)
    assert stop(fact("Received SIGTERM", 0, count=2), fact("Received SIGTERM", 1)).ranks == ()
    assert stop(raised("KeyboardInterrupt", 0), fact("Received SIGTERM", 1)).ranks == (0, 1)


def fault_of_gpu(name: str, rank: int, *, text: str = "Xid 31") -> Candidate:
    """Return a fault of the GPU of this rank."""
    detail = KernelDetail("0000:1b:00", 31)
    return with_facts(candidate(name, "either"), fact(text, rank, kind="kernel", host="a", detail=detail))


@pytest.mark.parametrize(
    ("name", "ranks", "text", "suspects"),
    [
        ("gpu.xid-31", (1,), "Xid 31", (1,)),
        ("gpu.xid-31", (0, 1), "Xid 31", None),
        ("gpu.xid-31", (5,), "Xid 31", None),
        ("gpu.xid-145", (1,), "Xid 145, RLW Nonfatal", None),
        ("gpu.xid-99", (1,), "Xid 99", None),
    ],
)
def test_the_driver_knows_where_a_cuda_error_began(
    name: str, ranks: tuple[int, ...], text: str, suspects: tuple[int, ...] | None
) -> None:
    """Not where it logs a fault for all ranks or for another one, a warning, or a fault that does not go with it."""
    edges = ("gpu.xid-31", "gpu.xid-145")
    error = candidate("cuda.illegal-memory-access", "either", [0, 1], leads_to=edges)
    faults = [fault_of_gpu(name, rank, text=text) for rank in ranks]
    fault = with_facts(faults[0], *(one.facts[0] for one in faults))
    explain([error, fault])
    assert error.suspects == suspects


def test_a_failure_explains_what_only_follows_from_one() -> None:
    """Symptoms of others, how its rank ended, and a later stop from outside; not a stop before it."""
    cause = candidate("data.bad", "cause", [1], time=100.0)
    symptom = candidate("gloo.lost", "symptom", [0], time=101.0)
    ending = with_facts(candidate("crash.abort", "either", [1], time=101.0), indicates="ending")
    stops = [
        with_facts(candidate(f"a.stop{time:.0f}", "cause", [0], time=time), indicates="outside")
        for time in (50.0, 130.0)
    ]
    explain([cause, symptom, ending, *stops])
    assert [cause.id in one.explained_by for one in (symptom, ending, *stops)] == [True, True, False, True]
