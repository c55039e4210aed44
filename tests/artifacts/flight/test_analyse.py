"""What happened is told from the dumps: kind, ranks, group and sequence number, for jobs whose fault is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.artifacts.flight.making import WORLD, Call, Job, analysis
from triage.artifacts.flight.model import Fault

TRAIN = ("train.py", 20, "step")
EVAL = ("eval.py", 88, "evaluate")


def steps(count: int, **more: object) -> list[Call]:
    return [Call(place=TRAIN, **more) for _ in range(count)]  # type: ignore[arg-type]


def job(
    odd: Callable[[list[Call]], list[Call]],
    ranks: tuple[int, ...] = (2,),
    size: int = 4,
    count: int = 8,
    **more: object,
) -> Job:
    """A training loop in which some ranks do something else."""
    calls = {rank: steps(count) for rank in range(size)}
    for rank in ranks:
        calls[rank] = odd(calls[rank])
    return Job(calls, **more)  # type: ignore[arg-type]


def only(found: tuple[Fault, ...]) -> Fault:
    roots = [fault for fault in found if not fault.explained_by]
    assert len(roots) == 1, [fault.text for fault in roots]
    return roots[0]


@pytest.mark.parametrize("backend", ["nccl", "gloo", "hccl", "nccl2", "ucc"])
def test_healthy_jobs_have_no_fault(backend: str) -> None:
    """Nothing is found where everything is done."""
    assert analysis(job(lambda calls: calls, backend=backend)).faults == ()


@pytest.mark.parametrize("backend", ["nccl", "gloo", "hccl", "nccl2", "ucc"])
@pytest.mark.parametrize("without", [(), (0,), (3,)])
def test_a_rank_that_never_came(backend: str, without: tuple[int, ...]) -> None:
    """The others wait for it; a missing dump of a third rank does not change that."""
    fault = only(analysis(job(lambda calls: calls[:5], backend=backend), without).faults)
    assert (fault.rule, fault.ranks, fault.group, fault.seq, fault.op) == (
        "never-joined",
        (2,),
        "default_pg",
        6,
        "all_reduce",
    )
    assert set(fault.waiting) == {0, 1, 3} - set(without)
    assert fault.sure


def test_a_rank_without_a_dump_is_the_suspect() -> None:
    """When all that have a dump wait, it is said that this is a guess."""
    found = analysis(job(lambda calls: calls[:5]), without=[2])
    fault = only(found.faults)
    assert (fault.rule, fault.ranks, fault.sure) == ("never-joined", (2,), False)
    assert found.no_dump == (2,)


def test_another_call() -> None:
    """A branch on the rank: both places are new to the other side."""
    calls = {rank: [*steps(4), Call(place=("train.py", 30, "step"))] for rank in range(4)}
    calls[1][4] = Call("broadcast", place=("train.py", 28, "step"))
    fault = only(analysis(Job(calls)).faults)
    assert (fault.rule, fault.ranks, fault.seq) == ("divergent-call", (1,), 5)
    assert "rank 1 called broadcast [64] Float at train.py:28 in step" in fault.text
    assert "ranks 0, 2, 3 called all_reduce [64] Float at train.py:30 in step" in fault.text


@pytest.mark.parametrize(
    ("change", "rule"), [({"size": (33, 2)}, "shape-mismatch"), ({"dtype": "Double"}, "dtype-mismatch")]
)
def test_another_size_or_type(change: dict[str, object], rule: str) -> None:
    """The same call with another tensor."""
    fault = only(analysis(job(lambda calls: [*calls[:3], Call(place=TRAIN, **change), *calls[4:]])).faults)  # type: ignore[arg-type]
    assert (fault.rule, fault.ranks, fault.seq) == (rule, (2,), 4)


def test_the_same_count_in_another_shape_is_no_fault() -> None:
    """A library moves elements; [64] and [8, 8] are the same to it."""
    found = analysis(job(lambda calls: [*calls[:3], Call(place=TRAIN, size=(8, 8), works=False), *calls[4:]]))
    assert [fault.rule for fault in found.faults] == ["stuck-in-collective"]


def test_a_collective_that_only_one_rank_calls() -> None:
    """rank 0 alone in eval.py, the others at the place where rank 0 has been before."""
    extra = Call("gather", place=EVAL)
    fault = only(analysis(job(lambda calls: [*calls[:5], extra, *calls[5:]], ranks=(0,))).faults)
    assert (fault.rule, fault.ranks, fault.seq) == ("rank-conditional", (0,), 6)
    assert "only rank 0 called gather #6 of default_pg at eval.py:88 in evaluate" in fault.text
    assert "ranks 1-3 called all_reduce at train.py:20 in step" in fault.text


def test_an_extra_call_that_others_took_for_theirs() -> None:
    """An extra all_reduce of the same size pairs with the others' next; the job hangs at its end, and began to differ
    earlier.
    """
    fault = only(
        analysis(
            job(lambda calls: [*calls[:3], Call(place=("metrics.py", 5, "log")), *calls[3:]], backend="gloo")
        ).faults
    )
    assert (fault.rule, fault.ranks, fault.since, fault.seq) == ("rank-conditional", (2,), 4, 9)


def test_a_call_that_one_rank_skips() -> None:
    """`if rank != 2: all_reduce(…)` once: everything after it is shifted."""
    log = Call(place=("metrics.py", 5, "log"))
    calls = {rank: [*steps(3), log, *steps(4)] for rank in range(4)}
    calls[2] = steps(7)
    fault = only(analysis(Job(calls, backend="gloo")).faults)
    assert (fault.rule, fault.ranks, fault.since) == ("rank-conditional", (2,), 4)


def test_one_iteration_more() -> None:
    """The same place once too often: no condition on the rank, one batch more."""
    fault = only(analysis(job(lambda calls: [*calls, *steps(1)])).faults)
    assert (fault.rule, fault.ranks, fault.seq) == ("extra-collective", (2,), 9)


def test_extra_call_without_stacks_by_what_follows() -> None:
    """Calls that are queued behind the difference show that they are shifted by one."""
    kinds = [
        Call(op, place=None)
        for op in ("all_reduce", "all_gather", "broadcast", "reduce_scatter", "all_reduce", "broadcast")
    ] * 2
    calls = {rank: list(kinds) for rank in range(4)}
    calls[1] = [*kinds[:3], Call("all_gather", place=None), *kinds[3:]]
    fault = only(analysis(Job(calls, window=6)).faults)
    assert (fault.rule, fault.ranks, fault.seq) == ("extra-collective", (1,), 4)
    calls[1] = [*kinds[:3], *kinds[4:]]
    fault = only(analysis(Job(calls, window=6)).faults)
    assert (fault.rule, fault.ranks) == ("divergent-call", (1,))
    assert "skipped one" in fault.text
    calls[1] = [*kinds[:3], kinds[4], kinds[3], *kinds[5:]]
    fault = only(analysis(Job(calls, window=6)).faults)
    assert "the order is swapped" in fault.text


def test_half_and_half_blames_nobody_without_a_reason() -> None:
    """Two halves in different calls: both are named, and that it is open."""
    calls = {rank: [*steps(3), Call("broadcast" if rank < 2 else "all_gather", place=None)] for rank in range(4)}
    fault = only(analysis(Job(calls)).faults)
    assert (fault.rule, fault.ranks, fault.sure) == ("divergent-call", (0, 1, 2, 3), False)


def test_one_of_two_is_told_by_its_place() -> None:
    """Of two ranks the one at a place where the other never was is odd."""
    fault = only(
        analysis(job(lambda calls: [*calls[:4], Call("gather", place=EVAL), *calls[4:]], ranks=(0,), size=2)).faults
    )
    assert (fault.rule, fault.ranks) == ("rank-conditional", (0,))


def test_all_there_and_nothing_moves() -> None:
    """Same call, same size, everybody there: the transfer."""
    calls = {rank: [*steps(4), Call(place=TRAIN, works=False)] for rank in range(4)}
    for backend in ("nccl", "gloo"):
        fault = only(analysis(Job(calls, backend=backend)).faults)
        assert (fault.rule, fault.ranks, fault.seq) == ("stuck-in-collective", (0, 1, 2, 3), 5)


def test_scheduled_here_and_started_there() -> None:
    """A device that never came to the collective holds the others up."""
    stuck = Job({rank: [*steps(4), Call(place=TRAIN, works=False)] for rank in range(4)})
    dumps = stuck.dumps()
    dumps[3]["entries"][4]["state"] = "scheduled"
    fault = only(_analysed(dumps).faults)
    assert (fault.rule, fault.ranks) == ("lagging-rank", (3,))


def test_finished_here_and_not_there() -> None:
    """Part of the ranks got through and wait in the next one: the transfer to the others."""
    dumps = Job({rank: [*steps(4), Call(place=TRAIN, works=False)] for rank in range(4)}).dumps()
    dumps[2]["entries"][3] |= {"state": "started", "retired": False}
    dumps[2]["entries"].pop()
    fault = only(_analysed(dumps).faults)
    assert (fault.rule, fault.ranks, fault.seq) == ("stuck-in-collective", (2,), 4)


def test_an_older_dump_proves_nothing() -> None:
    """Where others have finished later collectives, a rank that seems to stand earlier was dumped earlier."""
    dumps = job(lambda calls: calls, count=9).dumps()
    dumps[1]["entries"] = dumps[1]["entries"][:4]
    dumps[1]["entries"][-1] |= {"state": "started", "retired": False}
    found = _analysed(dumps)
    assert found.faults == ()
    assert [code for code, _, _ in found.notes] == ["older-moment"]


def test_a_cause_in_one_group_explains_the_wait_in_others() -> None:
    """rank 3 misses in tp1, so 2 waits there, so 0 and 1 wait in the world."""
    tp = {rank: Call(group="tp0" if rank < 2 else "tp1", place=("layer.py", 9, "forward")) for rank in range(4)}
    calls = {rank: [tp[rank], Call(place=TRAIN)] * 4 for rank in range(4)}
    calls[3] = calls[3][:4]
    found = analysis(Job(calls, {"tp0": [0, 1], "tp1": [2, 3]})).faults
    fault = only(found)
    assert (fault.rule, fault.ranks, fault.group, fault.seq) == ("never-joined", (3,), "tp1 (2)", 3)
    assert [(other.group, other.ranks, other.explained_by) for other in found[1:]] == [("default_pg", (2, 3), (0,))]


def test_groups_in_another_order() -> None:
    """Each waits for the other; the one against three is odd."""
    both = {"a": [0, 1, 2, 3], "b": [0, 1, 2, 3]}
    a, b = Call(group="a", place=("train.py", 5, "f")), Call(group="b", place=("train.py", 6, "f"))
    calls = {rank: [a, b, a, b] for rank in range(4)}
    calls[2] = [a, b, b, a]
    fault = only(analysis(Job(calls, both)).faults)
    assert (fault.rule, fault.ranks) == ("group-order", (2,))
    assert fault.waiting == (0, 1, 3)


def test_the_wrong_group_at_the_same_line() -> None:
    """One line of the program, another group on one rank."""
    both = {"a": [0, 1, 2, 3], "b": [0, 1, 2, 3]}
    a, b = Call(group="a", place=TRAIN), Call(group="b", place=TRAIN)
    calls = {rank: [a, a, a] for rank in range(4)}
    calls[1] = [a, b, a]
    fault = only(analysis(Job(calls, both)).faults)
    assert (fault.rule, fault.ranks) in (("wrong-group", (1,)), ("never-joined", (1,)))


def test_a_ring_that_has_dropped_the_difference_says_which_size_it_needs() -> None:
    """Healthy ranks run far ahead of the one that stopped, as far as their queue reaches."""
    calls = {rank: steps(40) for rank in range(3)}
    calls[1] = calls[1][:5]
    found = analysis(Job(calls, window=30, ring=10))
    assert [code for code, _, _ in found.notes] == ["ring-too-small"] or found.faults
    note = [text for code, _, text in found.notes if code == "ring-too-small"]
    assert not note or "TORCH_FR_BUFFER_SIZE=" in note[0]


def test_wrapped_rings_of_a_healthy_job_are_no_fault() -> None:
    """Ranks with calls in one more group have dropped more of the common ones."""
    more = {"ab": [0, 1]}
    calls = {
        rank: [call for _ in range(20) for call in ([Call(group="ab"), Call()] if rank < 2 else [Call()])]
        for rank in range(4)
    }
    assert analysis(Job(calls, more, ring=16)).faults == ()


SEND, RECV = ("pipe.py", 4, "forward"), ("pipe.py", 9, "forward")


def pipeline(size: int = 4, rounds: int = 3) -> dict[int, list[Call]]:
    """Each rank receives from the one before and sends to the one behind."""
    calls: dict[int, list[Call]] = {rank: [] for rank in range(size)}
    for _ in range(rounds):
        for rank in range(size):
            if rank:
                calls[rank].append(Call("recv", peer=rank - 1, place=RECV))
            if rank < size - 1:
                calls[rank].append(Call("send", peer=rank + 1, place=SEND))
    return calls


def test_pipelines_without_a_fault() -> None:
    """Every send has its receive."""
    assert analysis(Job(pipeline())).faults == ()


def test_a_send_without_a_receive() -> None:
    """The receiver stopped; the ranks behind it wait because of that."""
    calls = pipeline()
    calls[2] = calls[2][:2]
    found = analysis(Job(calls)).faults
    roots = [fault for fault in found if not fault.explained_by]
    assert {(fault.rule, fault.ranks) for fault in roots} == {("never-joined", (2,))}


def test_a_send_to_the_wrong_rank() -> None:
    """rank 1 sends to 3, and 2 is the one that waits for it."""
    calls = pipeline()
    calls[1][1] = Call("send", peer=3, place=SEND)
    found = [fault for fault in analysis(Job(calls)).faults if not fault.explained_by]
    assert ("p2p-mismatch", (1,)) in {(fault.rule, fault.ranks) for fault in found}
    assert {rank for fault in found for rank in fault.ranks} == {1}


def test_sends_of_another_size() -> None:
    """Both sides are there and do not fit."""
    calls = pipeline()
    calls[1][1] = Call("send", peer=2, place=SEND, size=(32,))
    found = analysis(Job(calls)).faults
    assert (found[0].rule, found[0].ranks) == ("shape-mismatch", (1, 2))


def test_everybody_sends_first() -> None:
    """A ring of sends in which nobody comes to receive."""
    calls = {
        rank: [Call("send", peer=(rank + 1) % 4, place=SEND), Call("recv", peer=(rank - 1) % 4, place=RECV)]
        for rank in range(4)
    }
    fault = only(analysis(Job(calls)).faults)
    assert (fault.rule, fault.ranks) == ("p2p-mismatch", (0, 1, 2, 3))


def test_slow_ranks_are_those_with_the_shortest_time() -> None:
    """Who comes last waits least."""
    calls = {rank: [Call(ms=2.0 if rank == 3 else 90.0) for _ in range(10)] for rank in range(4)}
    (slow,) = analysis(Job(calls)).stragglers
    assert (slow.rank, slow.last) == (3, 10)
    assert slow.waited == pytest.approx(0.88)
    assert analysis(Job({rank: [Call(ms=5.0)] * 9 for rank in range(4)})).stragglers == ()


def test_ten_thousand_ranks() -> None:
    """World and groups of eight; one rank of ten thousand stopped."""
    size, odd = 10_000, 4_711
    groups = {f"dp{first // 8}": list(range(first, first + 8)) for first in range(0, size, 8)}
    loop = {name: [Call(group=name, place=None), Call(place=None)] * 2 for name in groups}
    calls = {rank: list(loop[f"dp{rank // 8}"]) for rank in range(size)}
    calls[odd] = calls[odd][:2]
    found = analysis(Job(calls, groups)).faults
    fault = only(found)
    assert (fault.rule, fault.ranks, fault.seq) == ("never-joined", (odd,), 2)
    assert fault.group.startswith("dp588")


@st.composite
def broken_jobs(draw: st.DrawFn) -> tuple[Job, str, int, int]:
    """A job of one group with one fault: its kind, rank and sequence number."""
    size = draw(st.integers(3, 9))
    ops = draw(
        st.lists(st.sampled_from(["all_reduce", "all_gather", "broadcast", "reduce_scatter"]), min_size=3, max_size=12)
    )
    loop = [Call(op, place=("train.py", 10 + index, "f")) for index, op in enumerate(ops)]
    odd = draw(st.integers(0, size - 1))
    at = draw(st.integers(0, len(ops) - 1))
    kind = draw(
        st.sampled_from(["never-joined", "divergent-call", "shape-mismatch", "dtype-mismatch", "rank-conditional"])
    )
    calls = {rank: list(loop) for rank in range(size)}
    before = loop[at]
    calls[odd] = {
        "never-joined": loop[:at],
        "divergent-call": [*loop[:at], Call("scatter", place=before.place), *loop[at + 1 :]],
        "shape-mismatch": [*loop[:at], Call(before.op, size=(7,), place=before.place), *loop[at + 1 :]],
        "dtype-mismatch": [*loop[:at], Call(before.op, dtype="Half", place=before.place), *loop[at + 1 :]],
        "rank-conditional": [*loop[:at], Call("gather", place=EVAL), *loop[at:]],
    }[kind]
    return (
        Job(calls, window=draw(st.integers(1, 3)), backend=draw(st.sampled_from(["nccl", "gloo"]))),
        kind,
        odd,
        at + 1,
    )


@given(broken_jobs())
@settings(max_examples=150, deadline=None)
def test_any_single_fault_is_found(broken: tuple[Job, str, int, int]) -> None:
    """Whatever the program, the size of the job and the depth of the queue: rank and number are right, and the kind
    fits.
    """
    broken_job, kind, odd, seq = broken
    fault = only(analysis(broken_job).faults)
    assert (fault.ranks, fault.seq, fault.group) == ((odd,), seq, "default_pg")
    if (
        kind == "rank-conditional"
    ):  # a place in a straight program was visited once: then it is only told that the calls differ
        assert fault.rule in ("rank-conditional", "divergent-call", "extra-collective")
    else:
        assert fault.rule == kind


@given(broken_jobs(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_the_order_of_the_dumps_does_not_matter(broken: tuple[Job, str, int, int], random: object) -> None:
    """The answer is the same in whatever order the files come."""
    dumps = broken[0].dumps()
    order = list(dumps)
    random.shuffle(order)  # type: ignore[attr-defined]
    assert _analysed({rank: dumps[rank] for rank in order}) == _analysed(dumps)


def _analysed(dumps: dict[int, dict[str, object]]):  # type: ignore[no-untyped-def]
    from triage.artifacts.flight.analyse import analyse
    from triage.artifacts.flight.load import Loaded
    from triage.artifacts.flight.recording import Builder

    builder = Builder()
    for rank, dump in dumps.items():
        builder.add(rank, f"fr_rank_{rank}", Loaded(dump, True))
    return analyse(builder.build())


assert WORLD
