"""What the weighing rules link, suspect and lower."""

from __future__ import annotations

from diagnose.making import candidate, decide, explain, fact, left, stranger
from triage.catalog.model import Edge
from triage.diagnose.candidates import Candidate
from triage.diagnose.scene import Scene


def named(one: Candidate, *facts: object, tells: str = "", **values: tuple[str, ...]) -> Candidate:
    """A candidate with these facts and captures."""
    assert one.signature is not None
    if tells:
        object.__setattr__(one.signature, "tells", tells)
    return Candidate(one.signature, None, list(facts) or one.facts, values=values)  # type: ignore[arg-type]


def root(*candidates: Candidate, scene: Scene | None = None) -> str | None:
    case = explain(candidates, scene) if scene else explain(candidates)
    chosen = decide(case.candidates).root
    return chosen.id if chosen else None


def test_who_was_killed_on_the_host_of_the_witness() -> None:
    """The scheduler names a host only: it speaks of the rank that was killed there, and its word decides the cause."""
    oom = named(
        candidate("slurm.oom-kill", "confirmation"), fact("oom_kill", kind="scheduler", component="slurm", host="b")
    )
    object.__setattr__(oom.signature, "leads_to", (Edge("host.sigkill", "same-host"),))
    killed = named(candidate("host.sigkill", "either"), left(1, -9, host="a"), left(5, -9, host="b"), tells="killed")
    assert root(oom, killed) == "slurm.oom-kill"
    assert oom.ranks == (5,)
    assert any("slurm says why" in reason for reason in oom.why)


def test_a_failed_node_is_where_it_began() -> None:
    """The ranks on the nodes that Slurm lost are the suspects; the node that reports is not one, and without a map
    nobody is.
    """
    for text, hosts, ranks, said in (
        (
            "a[08-10],b",
            {0: ("a07",), 1: ("a10",), 2: ("b",)},
            (1, 2),
            "ranks 1, 2 ran; the others were stopped because of it",
        ),
        ("b", {2: ("b",)}, (2,), "no file says where ranks 0, 1 ran"),
        ("b", {}, (), "b failed; no file says which ranks ran there"),
        ("", {0: ("a07",)}, (), "no line names the node that failed"),
    ):
        lost = named(
            candidate("slurm.node-failure"),
            fact("ON a07 CANCELLED", 0, kind="scheduler", host="a07", node=text),
            tells="node-lost",
        )
        killed = named(candidate("host.sigkill", "either"), left(0, -9, host="a07"), tells="killed")
        object.__setattr__(lost.signature, "leads_to", (Edge("host.sigkill"),))
        scene = Scene((), {}, frozenset(range(3)), 3, frozenset(), hosts=hosts)
        assert root(lost, killed, scene=scene) == "slurm.node-failure"
        assert lost.ranks == ranks
        assert any(said in reason for reason in lost.why)


def test_a_kill_that_nobody_explains_says_so() -> None:
    """It stays what it is, with a hint where to look."""
    killed = named(candidate("host.sigkill", "either"), left(1, -9), tells="killed")
    assert root(killed) == "host.sigkill"
    assert any("nothing in the files says who sent SIGKILL" in reason for reason in killed.why)


def xid(number: int, offset: int, *, bus: str = "0000:9b:00", text: str = "") -> object:
    return fact(
        text or f"NVRM: Xid (PCI:{bus}): {number}",
        kind="kernel",
        source="dmesg",
        offset=offset,
        busid=bus,
        xid=str(number),
    )


def test_the_first_fault_of_a_gpu_explains_the_burst() -> None:
    """Of two that can both begin it, the one that stands first in the kernel's log of that GPU."""
    first, later = named(candidate("gpu.b", "either"), xid(31, 10)), named(candidate("gpu.a", "either"), xid(109, 20))
    assert root(later, first) == "gpu.b"
    assert later.explained_by == ["gpu.b"]
    other = named(candidate("gpu.c", "either"), xid(109, 20, bus="0000:1b:00"))
    explain([first, other])
    assert other.explained_by == []


def test_the_driver_may_say_itself_what_caused_a_fault() -> None:
    """`caused by previous Xid 149` is believed, wherever it stands."""
    effect = named(
        candidate("gpu.a", "either"), xid(45, 5, text="NVRM: Xid (PCI:0000:9b:00): 45, Ch 3 caused by previous Xid 149")
    )
    cause = named(candidate("gpu.b", "cause"), xid(149, 10))
    explain([effect, cause])
    assert effect.explained_by == ["gpu.b"]


def test_nonfatal_stays_a_warning() -> None:
    """Beside anything else it is not the root, alone it is the best there is."""
    mild = named(
        candidate("gpu.nvlink", "either"), xid(145, 5, text="NVRM: Xid (PCI:0000:9b:00): 145, RLW_RXPIPE Nonfatal XC0")
    )
    assert root(mild, candidate("host.sigkill", "either", [2])) == "host.sigkill"
    assert mild.lowered
    assert root(mild) == "gpu.nvlink"


def test_the_first_of_several_ranks_with_a_cuda_error() -> None:
    """Rank 2 reported 30 s before the others: it is the suspect; within two seconds nobody is."""
    facts = [fact("device-side assert", rank, time=100.0 + (0 if rank == 2 else 30)) for rank in range(4)]
    one = named(candidate("cuda.assert"), *facts)
    explain([one])
    assert one.ranks == (2,)
    together = named(candidate("cuda.assert"), *[fact("x", rank, time=100.0 + rank / 4) for rank in range(4)])
    explain([together])
    assert together.ranks == (0, 1, 2, 3)


def test_an_inner_error_carries_no_cause() -> None:
    """E39999 alone is weaker than any other failure; with a code that means something it is not lowered."""
    inner = Candidate(None, "u-inner", [fact("RuntimeError: E39999: Inner Error!", 0, kind="exception")])
    assert root(inner, candidate("host.sigkill", "either", [2])) == "host.sigkill"
    told = Candidate(None, "u-told", [fact("RuntimeError: E39999: Inner Error! EI0006: timeout", 0, kind="exception")])
    explain([told])
    assert not told.lowered


def test_a_link_follows_from_a_peer_that_died_before() -> None:
    """Rank 3 was killed before ranks 0 and 1 gave up their transfers; a rank that was killed much later was not why."""
    link = named(
        candidate("fabric.retry", "either"),
        fact("status=12", 0, time=100.0),
        fact("status=12", 1, time=101.0),
        tells="link",
    )
    assert root(link, candidate("host.sigkill", "either", [3], time=95.0)) == "host.sigkill"
    link = named(
        candidate("fabric.retry", "either"),
        fact("status=12", 0, time=100.0),
        fact("status=12", 1, time=101.0),
        tells="link",
    )
    assert root(link, candidate("a.late", "either", [3], time=160.0)) == "fabric.retry"


def test_a_link_between_living_ends_names_both_and_the_device() -> None:
    """Nobody failed before: host, peer and device are told."""
    link = named(
        candidate("fabric.retry", "either"),
        fact("x", 0, host="a"),
        tells="link",
        peer=("10.0.0.5<4032>",),
        device=("mlx5_4",),
    )
    explain([link])
    assert any("it is the link, between a and 10.0.0.5<4032>, device mlx5_4" in reason for reason in link.why)


def test_the_heartbeat_s_address_is_a_rank() -> None:
    """HCCL names host and device of the end that was lost."""
    lost = named(candidate("hccl.heartbeat-lost", "either", [0, 1]), peer=("10.0.0.2",), device=("3",))
    scene = Scene((), {}, frozenset(range(16)), 16, frozenset(), local={("10.0.0.2", 3): {11}})
    explain([lost], scene)
    assert lost.ranks == (11,)


def test_the_same_error_on_all_ranks_is_the_program_s() -> None:
    """It is said that all ranks show it; of some ranks only, how many."""
    scene = Scene((), {}, frozenset(range(4)), 4, frozenset())
    everywhere, some = candidate("a.one", "cause", range(4)), candidate("b.two", "cause", [0, 1])
    explain([everywhere, some], scene)
    assert any("all ranks (ranks 0-3) show it" in reason for reason in everywhere.why)
    assert any("ranks 0, 1 show it, of 4" in reason for reason in some.why)


def test_what_fails_after_a_stop_from_outside_fails_because_of_it() -> None:
    """The scheduler stops the job and ten seconds later ranks raise; what failed before is a cause of its own."""
    stop = candidate("slurm.cancelled", "cause", time=100.0)
    after = stranger("u-1", [0], time=110.0)
    assert root(stop, after) == "slurm.cancelled"
    assert root(candidate("slurm.cancelled", "cause", time=100.0), stranger("u-1", [0], time=90.0)) == "u-1"


def test_a_conclusion_is_explained_by_what_that_rank_said() -> None:
    """Rank 2 did not come, and says why itself."""
    silent = named(candidate("torch.never", "cause"), fact("x", 2, kind="inference", ground="silence"))
    assert root(silent, stranger("u-1", [2])) == "u-1"
    assert silent.explained_by == ["u-1"]


def test_an_edge_does_not_run_backwards_in_time() -> None:
    """What surely began before is not explained; windows hold."""
    cause, effect = candidate("a.cause", "either", [0], time=100.0), candidate("b.effect", "either", [0], time=50.0)
    object.__setattr__(cause.signature, "leads_to", (Edge("b.effect"),))
    explain([cause, effect])
    assert effect.explained_by == []
    late = candidate("b.effect", "either", [0], time=900.0)
    object.__setattr__(cause.signature, "leads_to", (Edge("b.effect", window=60.0),))
    explain([cause, late])
    assert late.explained_by == []


def test_an_edge_within_a_process_group() -> None:
    """A time-out in one group does not explain one in another."""
    here, there = "[PG ID 1 PG GUID 8(tp) Rank 0] x", "[PG ID 2 PG GUID 9(dp) Rank 0] x"
    for text, explained in ((here, True), (there, False)):
        cause, effect = (
            named(candidate("a.cause", "either"), fact(here, 0)),
            named(candidate("b.effect", "either"), fact(text, 1)),
        )
        object.__setattr__(cause.signature, "leads_to", (Edge("b.effect", "same-group"),))
        explain([cause, effect])
        assert bool(effect.explained_by) is explained


def test_the_rank_whose_heartbeat_was_lost() -> None:
    """Host and device are joined to a rank; what that rank says of itself explains that it was lost."""
    lost = candidate("hccl.heartbeat-lost", "either", [0, 1])
    given = named(lost, *lost.facts, peer=("10.0.0.2",), device=("1",))
    scene = Scene(
        (), {}, frozenset(range(4)), 4, frozenset(), addresses={"10.0.0.2": {"b"}}, local={("a", 1): {1}, ("b", 1): {3}}
    )
    killed = named(candidate("host.sigkill", "either"), left(3, -9), tells="killed")
    assert root(given, killed, scene=scene) == "host.sigkill"
    assert (given.suspects, given.explained_by) == ((3,), ["host.sigkill"])
    stranger_of_it = named(lost, *lost.facts, peer=("10.0.0.9",), device=("1",))
    assert root(stranger_of_it, scene=scene) == "hccl.heartbeat-lost"
    assert stranger_of_it.suspects is None
