"""The analysis of simulated jobs with a known fault: rule, ranks, group and sequence number."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

import triage
from tests.artifacts.flight.factories import Call, Job, analyse_dumps, analysis
from triage.artifacts.flight.model import Fault
from triage.testing.schedules import draw_job

TRAIN = ("train.py", 20, "step")
EVAL = ("eval.py", 88, "evaluate")


def steps(count: int, **more: object) -> list[Call]:
    """Return calls of a training loop."""
    return [Call(place=TRAIN, **more) for _ in range(count)]  # type: ignore[arg-type]


def job(
    odd: Callable[[list[Call]], list[Call]],
    ranks: tuple[int, ...] = (2,),
    size: int = 4,
    count: int = 8,
    **more: object,
) -> Job:
    """Return a training loop in which some ranks do something else."""
    calls = {rank: steps(count) for rank in range(size)}
    for rank in ranks:
        calls[rank] = odd(calls[rank])
    return Job(calls, **more)  # type: ignore[arg-type]


def only_root(faults: tuple[Fault, ...]) -> Fault:
    """Return the one root among the faults."""
    roots = [fault for fault in faults if not fault.explained_by]
    assert len(roots) == 1, [fault.text for fault in roots]
    return roots[0]


@pytest.mark.parametrize("backend", ["nccl", "gloo", "hccl", "nccl2", "ucc"])
def test_healthy_jobs_have_no_fault(backend: str) -> None:
    """Dumps of a finished job give no fault."""
    assert analysis(job(lambda calls: calls, backend=backend)).faults == ()


@pytest.mark.parametrize("backend", ["nccl", "gloo", "hccl", "nccl2", "ucc"])
@pytest.mark.parametrize("without", [(), (0,), (3,)])
def test_rank_never_joined(backend: str, without: tuple[int, ...]) -> None:
    """The rank for which the others wait is at fault, even without the dump of a third rank."""
    fault = only_root(analysis(job(lambda calls: calls[:5], backend=backend), without).faults)
    assert (fault.rule, fault.ranks, fault.group, fault.seq, fault.op) == (
        "never-joined",
        (2,),
        "default_pg",
        6,
        "all_reduce",
    )
    assert set(fault.waiting) == {0, 1, 3} - set(without)
    assert fault.is_certain


def test_rank_without_a_dump_is_suspected() -> None:
    """If all ranks with a dump wait, the rank without one is at fault, but uncertain."""
    outcome = analysis(job(lambda calls: calls[:5]), without=[2])
    fault = only_root(outcome.faults)
    assert (fault.rule, fault.ranks, fault.is_certain) == ("never-joined", (2,), False)
    assert fault.uncertainty == "its dump may be missing because nobody collected it"
    assert outcome.no_dump == (2,)


def test_divergent_call() -> None:
    """A rank that makes another call is at fault, and the text shows both calls."""
    calls = {rank: [*steps(4), Call(place=("train.py", 30, "step"))] for rank in range(4)}
    calls[1][4] = Call("broadcast", place=("train.py", 28, "step"))
    fault = only_root(analysis(Job(calls)).faults)
    assert (fault.rule, fault.ranks, fault.seq) == ("divergent-call", (1,), 5)
    assert "rank 1 called broadcast [64] Float at train.py:28 in step" in fault.text
    assert "ranks 0, 2-3 called all_reduce [64] Float at train.py:30 in step" in fault.text


@pytest.mark.parametrize(
    ("change", "rule"), [({"size": (33, 2)}, "shape-mismatch"), ({"dtype": "Double"}, "dtype-mismatch")]
)
def test_different_size_or_type(change: dict[str, object], rule: str) -> None:
    """A rank whose tensor has another size or type is at fault."""
    fault = only_root(analysis(job(lambda calls: [*calls[:3], Call(place=TRAIN, **change), *calls[4:]])).faults)  # type: ignore[arg-type]
    assert (fault.rule, fault.ranks, fault.seq) == (rule, (2,), 4)


def test_shapes_with_equal_counts_are_equal() -> None:
    """[64] and [8, 8] are not a mismatch: a collective moves elements."""
    outcome = analysis(job(lambda calls: [*calls[:3], Call(place=TRAIN, size=(8, 8), works=False), *calls[4:]]))
    assert [fault.rule for fault in outcome.faults] == ["stuck-in-collective"]


def test_collective_of_one_rank() -> None:
    """A rank alone at a place of the program made a rank-conditional call."""
    extra = Call("gather", place=EVAL)
    fault = only_root(analysis(job(lambda calls: [*calls[:5], extra, *calls[5:]], ranks=(0,))).faults)
    assert (fault.rule, fault.ranks, fault.seq) == ("rank-conditional", (0,), 6)
    assert "only rank 0 called gather #6 of default_pg at eval.py:88 in evaluate" in fault.text
    assert "ranks 1-3 called all_reduce at train.py:20 in step" in fault.text


def test_extra_call_paired_with_the_next_one() -> None:
    """An extra call that pairs with the next one of the others is found where the ranks first differ."""
    fault = only_root(
        analysis(
            job(lambda calls: [*calls[:3], Call(place=("metrics.py", 5, "log")), *calls[3:]], backend="gloo")
        ).faults
    )
    assert (fault.rule, fault.ranks, fault.since, fault.seq) == ("rank-conditional", (2,), 4, 9)


def test_skipped_call() -> None:
    """A call that one rank skips is found where the ranks first differ."""
    log = Call(place=("metrics.py", 5, "log"))
    calls = {rank: [*steps(3), log, *steps(4)] for rank in range(4)}
    calls[2] = steps(7)
    fault = only_root(analysis(Job(calls, backend="gloo")).faults)
    assert (fault.rule, fault.ranks, fault.since) == ("rank-conditional", (2,), 4)


def test_extra_iteration() -> None:
    """An extra call at a usual place is an extra collective, not a rank-conditional one."""
    fault = only_root(analysis(job(lambda calls: [*calls, *steps(1)])).faults)
    assert (fault.rule, fault.ranks, fault.seq) == ("extra-collective", (2,), 9)


def test_shift_is_found_by_queued_calls() -> None:
    """Without stacks, the calls queued after the difference show extra, skipped and swapped calls."""
    kinds = [
        Call(op, place=None)
        for op in ("all_reduce", "all_gather", "broadcast", "reduce_scatter", "all_reduce", "broadcast")
    ] * 2
    calls = {rank: list(kinds) for rank in range(4)}
    calls[1] = [*kinds[:3], Call("all_gather", place=None), *kinds[3:]]
    fault = only_root(analysis(Job(calls, window=6)).faults)
    assert (fault.rule, fault.ranks, fault.seq) == ("extra-collective", (1,), 4)
    calls[1] = [*kinds[:3], *kinds[4:]]
    fault = only_root(analysis(Job(calls, window=6)).faults)
    assert (fault.rule, fault.ranks) == ("divergent-call", (1,))
    assert "skipped one" in fault.text
    calls[1] = [*kinds[:3], kinds[4], kinds[3], *kinds[5:]]
    fault = only_root(analysis(Job(calls, window=6)).faults)
    assert "order is swapped" in fault.text


def test_two_halves_are_uncertain() -> None:
    """Of two halves in different calls none is certainly at fault."""
    calls = {rank: [*steps(3), Call("broadcast" if rank < 2 else "all_gather", place=None)] for rank in range(4)}
    fault = only_root(analysis(Job(calls)).faults)
    assert (fault.rule, fault.ranks, fault.is_certain) == ("divergent-call", (0, 1, 2, 3), False)


def test_one_of_two_ranks_is_found_by_its_place() -> None:
    """Of two ranks the one at a place that the other never visits is at fault."""
    fault = only_root(
        analysis(job(lambda calls: [*calls[:4], Call("gather", place=EVAL), *calls[4:]], ranks=(0,), size=2)).faults
    )
    assert (fault.rule, fault.ranks) == ("rank-conditional", (0,))


def test_stuck_in_collective() -> None:
    """If all ranks made the same call, the transfer is at fault."""
    calls = {rank: [*steps(4), Call(place=TRAIN, works=False)] for rank in range(4)}
    for backend in ("nccl", "gloo"):
        fault = only_root(analysis(Job(calls, backend=backend)).faults)
        assert (fault.rule, fault.ranks, fault.seq) == ("stuck-in-collective", (0, 1, 2, 3), 5)


def test_collective_not_started_on_one_rank() -> None:
    """The rank whose device has not started the collective is at fault."""
    stuck = Job({rank: [*steps(4), Call(place=TRAIN, works=False)] for rank in range(4)})
    dumps = stuck.dumps()
    dumps[3]["entries"][4]["state"] = "scheduled"
    fault = only_root(analyse_dumps(dumps).faults)
    assert (fault.rule, fault.ranks) == ("lagging-rank", (3,))


def test_collective_not_finished_on_one_rank() -> None:
    """A collective that only some ranks finished is stuck on the others."""
    dumps = Job({rank: [*steps(4), Call(place=TRAIN, works=False)] for rank in range(4)}).dumps()
    dumps[2]["entries"][3] |= {"state": "started", "retired": False}
    dumps[2]["entries"].pop()
    fault = only_root(analyse_dumps(dumps).faults)
    assert (fault.rule, fault.ranks, fault.seq) == ("stuck-in-collective", (2,), 4)


def test_older_dump_is_no_fault() -> None:
    """A rank that lacks calls which need all ranks was only dumped earlier."""
    dumps = job(lambda calls: calls, count=9).dumps()
    dumps[1]["entries"] = dumps[1]["entries"][:4]
    dumps[1]["entries"][-1] |= {"state": "started", "retired": False}
    outcome = analyse_dumps(dumps)
    assert outcome.faults == ()
    assert [code for code, _, _ in outcome.notes] == ["older-moment"]


def test_fault_in_one_group_explains_others() -> None:
    """A rank that never joins one group is the root of the waits in other groups."""
    tp = {rank: Call(group="tp0" if rank < 2 else "tp1", place=("layer.py", 9, "forward")) for rank in range(4)}
    calls = {rank: [tp[rank], Call(place=TRAIN)] * 4 for rank in range(4)}
    calls[3] = calls[3][:4]
    faults = analysis(Job(calls, {"tp0": [0, 1], "tp1": [2, 3]})).faults
    fault = only_root(faults)
    assert (fault.rule, fault.ranks, fault.group, fault.seq) == ("never-joined", (3,), "tp1 (2)", 3)
    assert [(other.group, other.ranks, other.explained_by) for other in faults[1:]] == [("default_pg", (3,), (0,))]


def test_group_order() -> None:
    """A rank that uses the groups in another order is at fault."""
    both = {"a": [0, 1, 2, 3], "b": [0, 1, 2, 3]}
    a, b = Call(group="a", place=("train.py", 5, "f")), Call(group="b", place=("train.py", 6, "f"))
    calls = {rank: [a, b, a, b] for rank in range(4)}
    calls[2] = [a, b, b, a]
    fault = only_root(analysis(Job(calls, both)).faults)
    assert (fault.rule, fault.ranks) == ("group-order", (2,))
    assert fault.waiting == (0, 1, 3)


def test_wrong_group() -> None:
    """A rank that uses another group at the same line is at fault."""
    both = {"a": [0, 1, 2, 3], "b": [0, 1, 2, 3]}
    a, b = Call(group="a", place=TRAIN), Call(group="b", place=TRAIN)
    calls = {rank: [a, a, a] for rank in range(4)}
    calls[1] = [a, b, a]
    fault = only_root(analysis(Job(calls, both)).faults)
    assert (fault.rule, fault.ranks) in (("wrong-group", (1,)), ("never-joined", (1,)))


@pytest.mark.parametrize(("end", "rule", "ranks"), [([Call()], "extra-collective", (0,)), ([], "never-joined", (1,))])
def test_of_two_ranks_the_one_that_finished_a_later_call_is_past(
    end: list[Call], rule: str, ranks: tuple[int, ...]
) -> None:
    """A rank waits for another that has finished what the first enqueued later: the call of the first is extra."""
    pair = Call(group="pair", place=("train.py", 30, "backward"))
    calls = {0: [pair, pair, *end], 1: [pair, *end]}
    fault = only_root(analysis(Job(calls, {"pair": [0, 1]}, window=4)).faults)
    assert (fault.rule, fault.ranks, fault.seq) == (rule, ranks, 2)


def test_ranks_that_wait_for_each_other_in_one_group_used_no_wrong_group(tmp_path: Path) -> None:
    """Where rings wrapped, an extra call shows as ranks in two numbers of one group, at one line of the program."""
    job = draw_job("extra-call", "dump-wrapped", 50008, None)
    root = triage.ingest(job.write(tmp_path / "job")).root_cause
    assert root is not None
    assert (root.signature, root.ranks) == ("torch.collective-order-mismatch", (4,))


def test_small_ring_buffer_names_the_needed_size() -> None:
    """A note names the buffer size where the ring buffer has dropped the difference."""
    calls = {rank: steps(40) for rank in range(3)}
    calls[1] = calls[1][:5]
    outcome = analysis(Job(calls, window=30, ring=10))
    assert [code for code, _, _ in outcome.notes] == ["ring-too-small"] or outcome.faults
    note = [text for code, _, text in outcome.notes if code == "ring-too-small"]
    assert not note or "TORCH_FR_BUFFER_SIZE=" in note[0]


def test_wrapped_ring_buffers_are_no_fault() -> None:
    """Healthy ranks whose ring buffers have dropped different calls have no fault."""
    more = {"ab": [0, 1]}
    calls = {
        rank: [call for _ in range(20) for call in ([Call(group="ab"), Call()] if rank < 2 else [Call()])]
        for rank in range(4)
    }
    assert analysis(Job(calls, more, ring=16)).faults == ()


SEND, RECV = ("pipe.py", 4, "forward"), ("pipe.py", 9, "forward")


def pipeline(size: int = 4, rounds: int = 3) -> dict[int, list[Call]]:
    """Return a pipeline: each rank receives from the one before it and sends to the next."""
    calls: dict[int, list[Call]] = {rank: [] for rank in range(size)}
    for _ in range(rounds):
        for rank in range(size):
            if rank:
                calls[rank].append(Call("recv", peer=rank - 1, place=RECV))
            if rank < size - 1:
                calls[rank].append(Call("send", peer=rank + 1, place=SEND))
    return calls


def test_healthy_pipeline() -> None:
    """A pipeline whose sends all have a receive has no fault."""
    assert analysis(Job(pipeline())).faults == ()


def test_send_without_a_receive() -> None:
    """A rank that stops receiving is the only root."""
    calls = pipeline()
    calls[2] = calls[2][:2]
    faults = analysis(Job(calls)).faults
    roots = [fault for fault in faults if not fault.explained_by]
    assert {(fault.rule, fault.ranks) for fault in roots} == {("never-joined", (2,))}


def test_send_to_the_wrong_rank() -> None:
    """A rank that sends to another rank than the one that waits is at fault."""
    calls = pipeline()
    calls[1][1] = Call("send", peer=3, place=SEND)
    faults = [fault for fault in analysis(Job(calls)).faults if not fault.explained_by]
    assert ("p2p-mismatch", (1,)) in {(fault.rule, fault.ranks) for fault in faults}
    assert {rank for fault in faults for rank in fault.ranks} == {1}


def test_send_of_another_size() -> None:
    """A send and a receive of different sizes are a shape mismatch."""
    calls = pipeline()
    calls[1][1] = Call("send", peer=2, place=SEND, size=(32,))
    faults = analysis(Job(calls)).faults
    assert (faults[0].rule, faults[0].ranks) == ("shape-mismatch", (1, 2))


def test_ring_of_sends() -> None:
    """Ranks that all send before they receive are in one fault."""
    calls = {
        rank: [Call("send", peer=(rank + 1) % 4, place=SEND), Call("recv", peer=(rank - 1) % 4, place=RECV)]
        for rank in range(4)
    }
    fault = only_root(analysis(Job(calls)).faults)
    assert (fault.rule, fault.ranks) == ("p2p-mismatch", (0, 1, 2, 3))


def test_straggler_has_the_shortest_time() -> None:
    """The rank with the shortest times entered last; equal times give no straggler."""
    calls = {rank: [Call(ms=2.0 if rank == 3 else 90.0) for _ in range(10)] for rank in range(4)}
    (slow,) = analysis(Job(calls)).stragglers
    assert (slow.rank, slow.times_last) == (3, 10)
    assert slow.waited_seconds == pytest.approx(0.88)
    assert analysis(Job({rank: [Call(ms=5.0)] * 9 for rank in range(4)})).stragglers == ()


def test_ten_thousand_ranks() -> None:
    """One rank of ten thousand that stopped is found."""
    size, odd = 10_000, 4_711
    groups = {f"dp{first // 8}": list(range(first, first + 8)) for first in range(0, size, 8)}
    loop = {name: [Call(group=name, place=None), Call(place=None)] * 2 for name in groups}
    calls = {rank: list(loop[f"dp{rank // 8}"]) for rank in range(size)}
    calls[odd] = calls[odd][:2]
    faults = analysis(Job(calls, groups)).faults
    fault = only_root(faults)
    assert (fault.rule, fault.ranks, fault.seq) == ("never-joined", (odd,), 2)
    assert fault.group.startswith("dp588")


@st.composite
def broken_jobs(draw: st.DrawFn) -> tuple[Job, str, int, int]:
    """Draw a job with one group and one fault, with rule, rank and sequence number of the fault."""
    size = draw(st.integers(3, 9))
    ops = draw(
        st.lists(st.sampled_from(["all_reduce", "all_gather", "broadcast", "reduce_scatter"]), min_size=3, max_size=12)
    )
    loop = [Call(op, place=("train.py", 10 + line, "f")) for line, op in enumerate(ops)]
    odd = draw(st.integers(0, size - 1))
    index = draw(st.integers(0, len(ops) - 1))
    kind = draw(
        st.sampled_from(["never-joined", "divergent-call", "shape-mismatch", "dtype-mismatch", "rank-conditional"])
    )
    calls = {rank: list(loop) for rank in range(size)}
    before = loop[index]
    calls[odd] = {
        "never-joined": loop[:index],
        "divergent-call": [*loop[:index], Call("scatter", place=before.place), *loop[index + 1 :]],
        "shape-mismatch": [*loop[:index], Call(before.op, size=(7,), place=before.place), *loop[index + 1 :]],
        "dtype-mismatch": [*loop[:index], Call(before.op, dtype="Half", place=before.place), *loop[index + 1 :]],
        "rank-conditional": [*loop[:index], Call("gather", place=EVAL), *loop[index:]],
    }[kind]
    return (
        Job(calls, window=draw(st.integers(1, 3)), backend=draw(st.sampled_from(["nccl", "gloo"]))),
        kind,
        odd,
        index + 1,
    )


@given(broken_jobs())
@settings(max_examples=150, deadline=None)
def test_any_single_fault_is_found(broken: tuple[Job, str, int, int]) -> None:
    """The fault of any drawn job is found, with rank, number and rule."""
    broken_job, kind, odd, seq = broken
    fault = only_root(analysis(broken_job).faults)
    assert (fault.ranks, fault.seq, fault.group) == ((odd,), seq, "default_pg")
    # A program without a loop visits each place once, so only the difference of the calls shows.
    if kind == "rank-conditional":
        assert fault.rule in ("rank-conditional", "divergent-call", "extra-collective")
    else:
        assert fault.rule == kind


@given(broken_jobs(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_order_of_dumps_does_not_matter(broken: tuple[Job, str, int, int], random: object) -> None:
    """The analysis is the same for any order of the dumps."""
    dumps = broken[0].dumps()
    order = list(dumps)
    random.shuffle(order)  # type: ignore[attr-defined]
    assert analyse_dumps({rank: dumps[rank] for rank in order}) == analyse_dumps(dumps)


@pytest.mark.parametrize(("ring", "size"), [(10, 1000), (600, 2000)])
def test_needed_size_of_the_ring_buffer(ring: int, size: int) -> None:
    """Where ring buffers no longer hold the call in which a rank is stuck, a note names twice their size."""
    calls = {rank: [Call("broadcast", place=TRAIN)] * (ring + 20) for rank in range(3)}
    dumps = Job(calls, ring=ring).dumps()
    stuck = Job(dict.fromkeys(range(3), calls[0][:4])).dumps()[2]
    stuck["entries"][3].update(state="started", retired=True)
    stuck["pg_status"]["0"]["last_completed_collective"] = 3
    outcome = analyse_dumps({**dumps, 2: stuck})
    fault = only_root(outcome.faults)
    assert (fault.rule, fault.ranks, fault.seq) == ("stuck-in-collective", (2,), 4)
    ((code, source, text),) = outcome.notes
    assert (code, source) == ("ring-too-small", "fr_rank_0")
    assert text.startswith("the ring buffer of ranks 0-1 no longer holds the collective where the ranks differ")
    assert f"set TORCH_FR_BUFFER_SIZE={size} " in text


def test_wait_for_a_rank_that_the_dumps_do_not_explain() -> None:
    """A wait for a rank that itself waits for one with a lost call is uncertain: nothing shows what holds them."""
    groups = {"a": [0, 1], "b": [0, 2], "c": [1, 3], "d": [1]}
    calls = {0: [Call(group="a", place=TRAIN)], 2: [Call(group="b", place=EVAL)], 3: []}
    calls[1] = [Call(group="c"), Call(group="d")]
    dumps = Job(calls, groups, window=2).dumps()
    for number, entry in enumerate(dumps[1]["entries"]):
        entry.update(record_id=number + 40, collective_seq_id=number + 9)
    dumps[1]["entries"][1].update(state="completed", retired=True)
    none = {f"last_{state}_collective": -1 for state in ("enqueued", "started", "completed")}
    dumps[1]["pg_status"] = {"1": none}
    (fault,) = analyse_dumps(dumps).faults
    assert (fault.rule, fault.ranks, fault.waiting) == ("never-joined", (0,), (2,))
    assert fault.uncertainty == "the dumps do not show what holds them"


FORWARD, BACKWARD = Call(place=("train.py", 20, "forward")), Call(place=("train.py", 30, "backward"))


def test_extra_call_at_a_usual_place() -> None:
    """A call that one rank makes twice is found where its places are first those of the others, one call later."""
    calls = {rank: [FORWARD, BACKWARD] * 4 for rank in range(4)}
    calls[2] = [FORWARD, *calls[2]]
    fault = only_root(analysis(Job(calls)).faults)
    assert (fault.rule, fault.ranks, fault.since, fault.seq) == ("extra-collective", (2,), 2, 9)
    assert fault.text.startswith("rank 2 made one extra call, all_reduce #2 of default_pg at train.py:20 in forward")


def test_places_that_no_shift_explains() -> None:
    """Where the places of a rank are not those of the others at any shift, only the missing call is certain."""
    calls = {rank: [FORWARD, BACKWARD] * 4 for rank in range(4)}
    calls[2] = [FORWARD, FORWARD, FORWARD, BACKWARD, BACKWARD]
    fault = only_root(analysis(Job(calls)).faults)
    assert (fault.rule, fault.ranks, fault.since, fault.seq) == ("never-joined", (2,), None, 6)


def test_call_that_the_others_have_already_made() -> None:
    """A rank at a place that others visited in another group made a call that they have left behind."""
    log = Call(group="log", place=EVAL)
    calls = {0: steps(1), 1: [log, *steps(1)], 2: [Call("broadcast", place=EVAL)], 3: [log, *steps(1)]}
    fault = only_root(analysis(Job(calls, {"log": [1, 3]})).faults)
    assert (fault.rule, fault.ranks, fault.seq) == ("extra-collective", (2,), 1)
    assert fault.text.endswith("; the others made that call earlier and have moved on")


@pytest.mark.parametrize("has_others", [True, False])
def test_unusual_one_of_two_ranks(has_others: bool) -> None:
    """Of two ranks, the one whose call nobody makes there is at fault, surely only where other ranks show the usual."""
    pair = [Call(group="tp0", place=None), Call("all_gather", group="tp0", place=None)] * 2
    calls = {0: pair, 1: [*pair[:3], Call("broadcast", group="tp0", place=None)]}
    groups = {"tp0": [0, 1]}
    if has_others:
        groups["tp1"] = [2, 3]
        calls |= {rank: [Call(call.op, group="tp1", place=None) for call in pair] for rank in (2, 3)}
    fault = only_root(analysis(Job(calls, groups)).faults)
    assert (fault.rule, fault.ranks) == ("divergent-call", (1,))
    assert fault.text.endswith("no other rank ever makes the call of rank 1 there")
    assert fault.uncertainty == ("" if has_others else "the other side may be wrong")


def test_three_different_calls() -> None:
    """Of three ranks in three different calls none is certainly at fault."""
    calls = {rank: [*steps(2), Call(op, place=None)] for rank, op in enumerate(("broadcast", "all_gather", "gather"))}
    fault = only_root(analysis(Job(calls)).faults)
    assert (fault.rule, fault.ranks) == ("divergent-call", (0, 1, 2))
    assert fault.uncertainty == "either side may be wrong"


def test_single_rank_in_the_first_call_of_an_unlisted_group() -> None:
    """Where the dumps list no members, one rank alone in a group's first call names none of the many idle ranks."""
    calls = {rank: steps(2) for rank in range(4)}
    calls[0] = [*steps(2), Call(group="eval", place=EVAL)]
    groups = {"eval": [0, 1]}
    assert analysis(Job(calls, groups, backend="gloo")).faults == ()
    for rank in (2, 3):
        calls[rank] = calls[0]
    (fault,) = analysis(Job(calls, {"eval": [0, 1, 2, 3]}, backend="gloo")).faults
    assert (fault.rule, fault.ranks, fault.is_certain) == ("never-joined", (1,), False)


def test_call_that_a_rank_may_still_finish() -> None:
    """A rank that has not finished what the others have was dumped a moment earlier, unless its watchdog gave it up."""
    dumps = Job({rank: [Call("broadcast", place=TRAIN)] * 4 for rank in range(3)}).dumps()
    dumps[2]["entries"][3].update(state="started", retired=False)
    dumps[2]["pg_status"]["0"]["last_completed_collective"] = 3
    assert analyse_dumps(dumps).faults == ()
    dumps[2]["entries"][3].update(retired=True)
    assert [(fault.rule, fault.ranks) for fault in analyse_dumps(dumps).faults] == [("stuck-in-collective", (2,))]


def test_ranks_left_in_a_broadcast_may_name_different_roots() -> None:
    """Two ranks that did not finish it may wait for each other; a single one, or an all-reduce, has no such doubt."""
    for op, ranks, has_doubt in (
        ("broadcast", (1, 2), True),
        ("broadcast", (2,), False),
        ("all_reduce", (1, 2), False),
    ):
        dumps = Job({rank: [Call(op, place=TRAIN)] * 4 for rank in range(5)}).dumps()
        for rank in ranks:
            dumps[rank]["entries"][3].update(state="started", retired=True)
            dumps[rank]["pg_status"]["0"]["last_completed_collective"] = 3
        (fault,) = analyse_dumps(dumps).faults
        assert (fault.rule, fault.ranks, "different roots" in fault.text) == ("stuck-in-collective", ranks, has_doubt)
        assert ("root" in fault.uncertainty) == has_doubt


def test_types_that_are_not_recorded() -> None:
    """Where all ranks wait in a call and the dumps record no types, the types may differ."""
    dumps = Job({rank: [*steps(3), Call(place=TRAIN, works=False)] for rank in range(2)}).dumps()
    for dump in dumps.values():
        for entry in dump["entries"]:
            entry.update(input_dtypes=[], output_dtypes=[])
    fault = only_root(analyse_dumps(dumps).faults)
    assert (fault.rule, fault.ranks) == ("stuck-in-collective", (0, 1))
    assert fault.uncertainty == "the types may differ, which these dumps do not record"
