"""Refinements: whom the text itself names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triage.catalog.model import Leaf, Signature
from triage.diagnose.candidates import READING, Candidate, receiver
from triage.diagnose.time_order import Clocks
from triage.evidence.inference import make_inferences
from triage.model import ExceptionDetail

from .factories import fact, raised


def refined(
    *texts: tuple[str, int | None], blames: str | None = None, indicates: str | None = None, **values: tuple[str, ...]
) -> Candidate:
    signature = Signature("x.y", 1, "x", "stable", "cause", "error", Leaf(text="x"), blames=blames, indicates=indicates)
    candidate = Candidate(signature, None, [raised(text, rank) for text, rank in texts], values=values)
    for refine in READING:
        refine(candidate)
    return candidate


def running(rank: int, op: str, number: int = 7) -> str:
    return (
        f"RuntimeError: Detected mismatch between collectives on ranks. Rank {rank} is running collective: "
        f"CollectiveFingerPrint(SequenceNumber={number}, OpType={op}, TensorShape=[8]), but Rank 9 is running "
        f"collective: "
        f"CollectiveFingerPrint(SequenceNumber={number}, OpType=ALLREDUCE, TensorShape=[8]).Collectives differ in "
        f"the following aspects: \t Op type"
    )


def test_the_text_names_the_rank_at_fault() -> None:
    """What the signature's `blames` captured is the suspect, not who said it; ranges of values are all taken."""
    one = refined(("x", 0), blames="rank", rank=("2", "1"))
    assert (one.ranks, one.observed_ranks) == ((1, 2), (0,))
    assert one.why == ["The message names ranks 1-2"]


def test_a_capture_without_a_number_blames_nobody() -> None:
    """Then the ranks that show it stay."""
    assert refined(("x", 0), blames="rank", rank=("unknown",)).ranks == (0,)


@pytest.mark.parametrize(("ranks", "blamed"), [((), ()), (("2",), (2,))])
def test_who_waits_for_ranks_that_it_does_not_name_is_not_at_fault(
    ranks: tuple[str, ...], blamed: tuple[int, ...]
) -> None:
    """A line about missing ranks is no reason to suspect its writer."""
    assert refined(("x", 0), blames="ranks", indicates="awaited", ranks=ranks).ranks == blamed


def test_the_odd_collective_is_the_minority_s() -> None:
    """Fingerprints of many ranks: the one that ran something else is the suspect, whoever complains."""
    one = refined((running(0, "ALLREDUCE"), 0), (running(1, "ALLREDUCE"), 1), (running(2, "BROADCAST"), 2))
    assert one.suspects == (2,)
    assert one.why == ["3 of 4 ranks ran the same collective; rank 2 did not"]


def test_what_a_rank_runs_is_what_it_says_itself() -> None:
    """Torch decodes the fingerprint of another call wrongly: only of ranks that wrote nothing it counts."""
    wrong = running(0, "BARRIER").replace("Rank 9", "Rank 1").replace("ALLREDUCE", "GATHER")
    own = running(1, "ALLREDUCE").replace("Rank 9", "Rank 0").replace("OpType=ALLREDUCE, TensorShape=[8]).", "REDUCE).")
    others = (running(2, "BARRIER").replace("Rank 9", "Rank 1"), 2)
    assert refined((own, 1), (wrong, 0), others).suspects == (1,)
    assert refined((wrong, 0), (own, 1), others).suspects == (1,)
    assert refined((wrong, 0)).suspects == (0, 1)
    assert refined((wrong, 0), others).suspects == (1,)


def test_fingerprints_number_the_ranks_of_a_group() -> None:
    """In a smaller group, rank 1 of the message is no rank of the job: each writer's own collective counts."""
    own = [(running(number, op), number + 4) for number, op in enumerate(("ALLREDUCE", "ALLREDUCE", "BROADCAST"))]
    assert refined(*own).suspects == (6,)
    assert refined((running(0, "BROADCAST"), 0), (running(1, "ALLREDUCE"), 2)).suspects == (0, 2)
    assert refined((running(0, "BROADCAST"), None)).suspects == (0, 9)  # whose line it is, is not known


@pytest.mark.parametrize(("writer", "suspects"), [(0, (1,)), (None, (1,)), (2, ())])
def test_a_barrier_of_a_group_names_no_rank_of_the_job(writer: int | None, suspects: tuple[int, ...]) -> None:
    """Rank 2 of the job, which calls itself rank 0, waits for number 1 of its own group."""
    text = "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 5000 ms"
    assert refined((text, writer), blames="ranks", ranks=("1",)).suspects == suspects


def test_where_other_ranks_are_blamed_the_host_of_the_writer_is_not() -> None:
    """Rank 2 waits on node1 for a rank that its message does not show."""
    text = "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 5000 ms"
    one = refined((text, 2), blames="ranks", ranks=("1",))
    one.facts = [fact(text, 2, host="node1")]
    assert one.rank_places == ()
    one.suspects = None
    assert one.rank_places == ("node1",)


@pytest.mark.parametrize(("writer", "places"), [(2, ()), (1, ("node1",)), (None, ("node1",))])
def test_the_host_of_another_writer_is_not_that_of_a_blamed_rank(writer: int | None, places: tuple[str, ...]) -> None:
    """Rank 1 has left no line: where it would run, the lines of rank 2 do not show."""
    missing = make_inferences("rank-absent", [1], "no file is from rank 1", fact("x"))
    one = Candidate(None, "u-1", [fact("2 of 3 joined", writer, host="node1"), *missing], suspects=(1,))
    assert one.rank_places == places
    one.rank_hosts = {1: ["node7"]}
    assert one.rank_places == ("node7",)


def test_an_error_that_a_launcher_raises_again_stands_nowhere() -> None:
    """torch.multiprocessing.spawn prints it when all have ended: neither its place nor its time orders it."""
    own = raised("ValueError: x", 1, time=5.0)
    assert isinstance(own.detail, ExceptionDetail)
    again = replace(own, detail=replace(own.detail, spawn_index=1))
    for one, offsets, clocks in ((own, {"job.log": 0}, 1), (again, {}, 0)):
        candidate = Candidate(None, "u-1", [one])
        candidate.set_clocks(Clocks())
        assert ({name: line.offset for name, line in candidate.first_lines.items()}, len(candidate.start.first)) == (
            offsets,
            clocks,
        )


def test_a_tie_of_two_names_both() -> None:
    """Of two different collectives neither is the odd one, whoever prints the message."""
    text = running(0, "BROADCAST").replace("Rank 9", "Rank 1")
    assert refined((text, 0)).suspects == (0, 1)


def test_without_a_majority_the_line_that_raised_may_name_the_odd_rank() -> None:
    """Of two different collectives, that of the rank which the quoted line treats in another way is the odd one."""
    text = running(0, "BROADCAST").replace("Rank 9", "Rank 1")
    signature = Signature("x.y", 1, "x", "stable", "cause", "error", Leaf(text="x"))
    for code, suspects in (
        ("t = ones(4, dtype=f64 if RANK==1 else f32)", (1,)),
        ("if dist.get_rank() == 0: dist.broadcast(t)", (0,)),
        ("x if rank == 0 else y if rank == 1 else z", (0, 1)),
        ("if rank == 7: dist.broadcast(t)", (0, 1)),
        ("if local_rank == 0: dist.broadcast(t)", (0, 1)),
        ("if node_rank == 1 or group.rank() == 1: dist.broadcast(t)", (0, 1)),
    ):
        candidate = Candidate(signature, None, [raised(text, 0, code=code)])
        for refine in READING:
            refine(candidate)
        assert candidate.suspects == suspects


@pytest.mark.parametrize(
    "form",
    [
        "check fail. local[{}], remote[{}]",
        "inconsistent between ranks, parameter count, local end {}, remote end {}.",
        "size mismatch: local size {} remote size {}",
    ],
)
def test_a_rank_s_own_value_is_compared(form: str) -> None:
    """Each rank prints its own value and that of a neighbour: the rank with another value than most is the suspect."""
    texts = [(form.format(512, 64), 1), (form.format(64, 512), 2), (form.format(512, 64), 3)]
    assert refined(*texts).suspects == (2,)
    assert refined(*texts[:2]).suspects == (1, 2)
    assert refined(texts[0]).suspects is None


def test_the_odd_value_is_the_minority_s() -> None:
    """Each rank names one other with another value: the rank that differs from most is the suspect, else all are."""
    form = (
        "DDP expects same model across all ranks, but Rank {} has {} params, while rank {} has inconsistent {} params."
    )
    texts = [(form.format(2, 6, 0, 4), 2), (form.format(0, 4, 2, 6), 0), (form.format(1, 4, 2, 6), 1)]
    one = refined(*texts)
    assert (one.suspects, one.why) == ((2,), ["2 of 3 ranks have the same value, 4; rank 2 did not"])
    assert refined(texts[0]).suspects == (0, 2)
    assert refined(("rank 3 uses dtype bf16, but rank 0 uses dtype fp32", 3)).suspects == (0, 3)


def test_equal_values_accuse_nobody() -> None:
    """Ranks that report one value do not differ."""
    assert refined(("rank 0 has 4 params, rank 1 has 4 params", 0)).suspects is None


def test_sequence_numbers_do_not_make_a_collective_another() -> None:
    """The number counts calls, it is no difference in what is called."""
    assert refined((running(0, "ALLREDUCE", 7), 0), (running(1, "ALLREDUCE", 8), 1)).suspects is None


def test_the_receiver_of_a_wrong_size_is_not_the_odd_one() -> None:
    """Gloo aborts on the rank that receives; a rank beside it that shows the mismatch stays a suspect, but nobody is
    named among several.
    """
    text = "op.preamble.length <= op.nbytes. Received data size doesn't match expected size. Is there a size mismatch?"
    assert refined((text, 0)).suspects == ()
    assert refined(("op.preamble.length <= op.nbytes. 256000 vs 128000", 0)).suspects == ()
    assert refined((text, 0), ("other", 1)).suspects == (1,)
    assert refined((text, 0), ("other", 1), ("other", 2)).suspects == ()


def test_of_several_senders_the_one_with_a_measured_size_sent_the_wrong_tensor() -> None:
    """What was measured of a rank comes before who else shows the mismatch."""
    text = "op.preamble.length <= op.nbytes. Received data size doesn't match expected size. Is there a size mismatch?"
    one = refined((text, 0), ("other", 1), ("other", 2))
    one.facts += make_inferences("shape-mismatch", [2], "rank 2 sends 128 bytes, the others 256", fact("x"))
    receiver(one)
    assert one.suspects == (2,)


def test_ranks_and_hosts_come_from_the_facts() -> None:
    """A candidate shows on the ranks of its facts, each once, and on no other."""
    one = Candidate(
        None,
        "u-1",
        [fact("x", 2, host="n2"), fact("x", 2, host="n2"), fact("x", None), fact("x", 0, host="n1", time=4.0, count=3)],
    )
    assert (one.ranks, one.hosts, one.first_time, one.count) == ((0, 2), ("n1", "n2"), 4.0, 6)
