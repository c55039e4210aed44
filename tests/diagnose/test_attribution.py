"""Attribution of facts to ranks, and copies of one fact in several files."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from triage.diagnose.attribution import attribute, by_stated_process, merge_copies
from triage.evidence.inference import make_inferences
from triage.model.details import EndingDetail, ExceptionDetail, ExitDetail
from triage.model.evidence import Evidence, Origin
from triage.ranks.identity import JobMap

from .factories import exited, fact, job_of, raised


def settle(evidence: Sequence[Evidence], job: JobMap) -> list[Evidence]:
    """Attribute the facts to ranks, and merge copies."""
    return merge_copies(attribute(evidence, job)[0])


def test_the_same_fact_in_two_files_counts_once() -> None:
    """Console and log of the same rank hold the same exception; in one file twice it was there twice."""
    (one,) = settle(
        [raised("ValueError: x", 1, source="console.log"), raised("ValueError: x", 1, source="rank1.log")], job_of(4)
    )
    (two,) = settle([raised("ValueError: x", 1), raised("ValueError: x", 1, offset=500)], job_of(4))
    assert (one.count, two.count) == (1, 2)


def test_the_same_fact_of_two_ranks_is_two() -> None:
    """The same exception of two ranks is two facts."""
    assert [
        one.origin.rank for one in settle([raised("ValueError: x", 1), raised("ValueError: x", 0, offset=9)], job_of(4))
    ] == [1, 0]


def test_a_fact_keeps_the_time_of_any_copy() -> None:
    """The copy with a timestamp gives its time to the other."""
    (one,) = settle(
        [raised("ValueError: x", 1, source="a"), raised("ValueError: x", 1, source="b", time=7.0)], job_of(4)
    )
    assert one.origin.time == 7.0


def test_what_the_launcher_quotes_is_not_a_second_failure() -> None:
    """The exception in the table is the one that the rank printed: counted once, shown where the rank printed it."""
    (one,) = settle(
        [raised("ValueError: x", 1, offset=10), raised("ValueError: x", 1, offset=900, time=3.0, quoted=True)],
        job_of(4),
    )
    assert (one.count, one.offset) == (1, 10)


def test_a_crash_without_a_prefix_belongs_to_the_only_rank_that_died_by_its_signal() -> None:
    """One SIGABRT in the table places the message of glibc; with two of them it has no rank."""
    message = fact("double free or corruption (!prev)", None, component="glibc")
    placed = settle([message, exited(2, -6, signal="SIGABRT", offset=500)], job_of(4))
    assert placed[0].origin.rank == 2
    assert placed[0].rank_basis == "exit status"
    two = settle(
        [message, exited(2, -6, signal="SIGABRT", offset=500), exited(3, -6, signal="SIGABRT", offset=600)], job_of(4)
    )
    assert two[0].origin.rank is None


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("Memory access fault by GPU node-2 (Agent handle: 0x5581e0) on address 0x7f2c00000000. Reason: Unknown.", 2),
        (":0:rocdevice.cpp:3006: 41: [tid:0x7f] Callback: Queue 0x7f3a aborting with error : HSA_STATUS_ERROR", 2),
        ("python: x.cpp:12: int f(): Assertion `n > 0' failed.", 2),
        ("the queue is full", None),
    ],
)
def test_what_stands_before_an_abort_is_of_the_rank_that_aborted(text: str, rank: int | None) -> None:
    """A runtime prints it and calls abort(): the only rank that died by SIGABRT wrote it; other lines stay without."""
    placed = settle([fact(text), exited(2, -6, signal="SIGABRT", offset=500)], job_of(4))
    assert placed[0].origin.rank == rank


def test_last_lines_around_a_placed_crash_are_of_its_rank() -> None:
    """`what():` below `terminate called` is of the rank that the exit status names; other last lines are not."""
    crash = replace(
        fact("terminate called after throwing an instance of 'E'", None), kind="terminate", offset=10, end=60
    )
    around, apart = (
        replace(
            fact("what():  bad row", None),
            kind="ending",
            offset=offset,
            end=offset + 20,
            detail=EndingDetail("what", "C++", "strong", offset - 30),
        )
        for offset in (40, 300)
    )
    died = exited(2, -6, signal="SIGABRT", offset=500)
    placed = settle([crash, around, apart, died], job_of(4))
    assert {one.offset: one.origin.rank for one in placed if one.kind == "ending"} == {40: 2, 300: None}


def test_as_many_exceptions_as_failed_ranks_are_theirs() -> None:
    """Two bare copies and two exit codes: each rank's once. Three copies and two codes: nobody's."""
    codes = [exited(0, 1, offset=500), exited(3, 1, offset=600)]
    assert {
        (one.origin.rank, one.count)
        for one in settle([raised("ValueError: x", count=2), *codes], job_of(4))
        if one.kind == "exception"
    } == {(0, 1), (3, 1)}
    assert {
        one.origin.rank
        for one in settle([raised("ValueError: x", count=3), *codes], job_of(4))
        if one.kind == "exception"
    } == {None}


def test_a_rank_with_an_exception_of_its_own_gets_no_other() -> None:
    """Rank 1 printed why it ended; the exception without a rank was caught by somebody else."""
    facts = [raised("ValueError: x"), raised("TimeoutError: y", 1, offset=50), exited(1, 1, offset=100)]
    assert {one.text: one.origin.rank for one in settle(facts, job_of(2))}["ValueError: x"] is None
    assert {one.text: one.origin.rank for one in settle([facts[0], facts[2]], job_of(2))}["ValueError: x"] == 1


@pytest.mark.parametrize("is_caught", [True, False])
def test_of_caught_and_uncaught_exceptions_the_uncaught_ended_the_process(is_caught: bool) -> None:
    """One rank ended with an exit code, and two exceptions without a rank: the one that nobody caught is its own."""
    caught = raised("KeyError: x")
    caught = replace(caught, detail=ExceptionDetail("KeyError", caught=is_caught))
    facts = settle([caught, raised("ValueError: y", offset=50, source="b.log"), exited(1, 1, offset=100)], job_of(2))
    ranks = {one.text: one.origin.rank for one in facts if one.kind == "exception"}
    assert ranks == {"KeyError: x": None, "ValueError: y": 1 if is_caught else None}


@pytest.mark.parametrize(("ranks", "host"), [((1,), "node2"), ((1, 2), "node1")])
def test_an_exception_is_of_the_host_that_its_line_states(ranks: tuple[int, ...], host: str) -> None:
    """The launcher's own line may come from another host; an exception of several ranks is of the host of each."""
    ends = [exited(rank, 1, offset=500 + rank, host="node1") for rank in ranks]
    facts = settle([raised("ValueError: x", count=len(ranks), host="node2"), *ends], job_of(4))
    assert {one.origin.host for one in facts if one.kind == "exception"} == {host}


def test_a_process_that_the_agent_stopped_did_not_fail_by_itself() -> None:
    """The exit of a pid that the agent stopped, by another line, is marked as the agent's doing."""
    stop = exited(None, -15, signal="SIGTERM", by_agent=True, pid=12)
    end = exited(1, -15, signal="SIGTERM", offset=500, pid=12)
    other = exited(2, -15, signal="SIGTERM", offset=600, pid=13)
    facts = settle([stop, end, other], job_of(4))
    assert [one.fields.get("by") for one in facts] == ["agent", "agent", None]
    assert [isinstance(one.detail, ExitDetail) and one.detail.stopped_by_agent for one in facts] == [True, True, False]


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("ray.exceptions.ActorDiedError: the actor died\n\tpid: 512\n\tip: 10.0.0.1", 2),
        ("worker (pid 512) is gone", 2),
        ("worker (pid 512) is gone, its parent (pid 99) is not", 2),
        ("worker (pid 513) is gone", None),
        ("workers are gone: pid 512, pid 511", None),
        ("512 workers are gone", None),
    ],
)
def test_a_report_of_another_process_is_about_the_pid_that_it_names(text: str, rank: int | None) -> None:
    """One pid of the job gives the rank; several ranks, other pids and bare numbers give none."""
    job = job_of(4)
    for known, pid in ((1, 511), (2, 512)):
        job.learn("job.log", Origin(rank=known, pid=pid))
    (one,) = settle([raised(text)], job)
    assert one.origin.rank == rank


def test_no_rank_is_invented() -> None:
    """Without any map a fact without a rank stays without one."""
    assert settle([raised("ValueError: x")], JobMap())[0].origin.rank is None


FACTS = st.lists(
    st.builds(
        lambda text, rank, source, offset, time: raised(text, rank, source=source, offset=offset, time=time),
        st.sampled_from(["ValueError: x", "KeyError: y"]),
        st.none() | st.integers(0, 3),
        st.sampled_from("abc"),
        st.integers(0, 9),
        st.none() | st.integers(0, 9),
    )
    | st.builds(lambda rank, code: exited(rank, code), st.integers(0, 3), st.sampled_from([0, 1, -6])),
    max_size=10,
    unique_by=lambda one: (one.source, one.offset, one.kind),
)


@given(FACTS, st.randoms(use_true_random=False))
def test_the_order_in_which_files_are_read_changes_nothing(facts: list[object], shuffle: random.Random) -> None:
    """The facts are the same for any order of the evidence."""
    shuffled = list(facts)
    shuffle.shuffle(shuffled)
    assert settle(shuffled, job_of(4)) == settle(facts, job_of(4))  # type: ignore[arg-type]


def test_the_last_exception_of_one_file_is_that_of_the_rank_that_failed() -> None:
    """One rank ended with an exit code: an earlier exception without a prefix was handled. After a signal nothing can
    be told.
    """
    early, later = raised("ValueError: a", offset=10), raised("ValueError: b", offset=90)
    assert [
        one.origin.rank for one in settle([early, later, exited(2, 1, offset=99)], job_of(4)) if one.kind == "exception"
    ] == [None, 2]
    stopped = [early, later, exited(2, 1, offset=99), exited(1, -15, signal="SIGTERM", offset=120)]
    assert [one.origin.rank for one in settle(stopped, job_of(4)) if one.kind == "exception"] == [None, None]


def test_the_first_of_two_copies_keeps_its_kind_of_stamp() -> None:
    """Whether a time is that of a line before is said of the copy that has the earliest time."""
    own, before = (
        raised("ValueError: x", 1, source="a", time=9.0),
        raised("ValueError: x", 1, source="b", time=7.0, inherits_time=True),
    )
    (one,) = settle([own, before], job_of(4))
    assert (one.origin.time, one.inherits_time) == (7.0, True)
    (two,) = settle([own, replace(before, origin=replace(before.origin, time=11.0))], job_of(4))
    assert (two.origin.time, two.inherits_time) == (9.0, False)


def test_a_kill_for_memory_is_of_the_only_rank_of_its_host() -> None:
    """No exit is told: the one rank of the host is meant, if the process may be a rank, and not where two ran; nor one
    that ended at another time, in whatever time zone.
    """
    job = job_of(3)
    for rank, host in enumerate(("a", "b", "b")):
        job.learn("job.log", Origin(rank=rank, host=host))
    for host, name, rank in (
        ("a", "python3", 0),
        ("a", "mysqld", None),
        ("b", "python3", None),
        (None, "python3", None),
    ):
        line = fact(f"Out of memory: Killed process 42 ({name})", kind="kernel", component="kernel", host=host, pid=42)
        assert settle([line], job)[0].origin.rank == rank
    for seconds, rank in ((20.0, 1), (-60.0, None), (900.0, None), (7 * 3600.0 + 20.0, 1), (28 * 3600.0, None)):
        line = fact(
            "Out of memory: Killed process 42 (python3)",
            kind="kernel",
            component="kernel",
            host="b",
            pid=42,
            time=1000.0,
        )
        placed = settle([line, exited(1, -9, host="b", time=1000.0 + seconds)], job)
        assert [one.origin.rank for one in placed if one.kind == "kernel"] == [rank]
    job.learn("job.log", Origin(rank=0, host="a", pid=7))
    line = fact("Out of memory: Killed process 42 (python3)", kind="kernel", component="kernel", host="a", pid=42)
    assert settle([line], job)[0].origin.rank is None


@pytest.mark.parametrize(
    ("host", "signals", "rank"),
    [
        ("gpu17", {1: "SIGSEGV", 2: "SIGTERM"}, 1),
        ("gpu18", {1: "SIGSEGV", 2: "SIGTERM"}, None),  # the kernel of another machine
        ("gpu17", {1: "SIGSEGV", 2: "SIGSEGV"}, None),  # two ranks died so
        ("gpu17", {1: "SIGABRT", 2: "SIGTERM"}, None),
    ],
)
def test_a_segfault_with_an_unknown_pid_is_of_the_rank_that_died_so(
    host: str, signals: dict[int, str], rank: int | None
) -> None:
    """The kernel counts processes otherwise than a container."""
    text = "pt_autograd_0[451473]: segfault at 0 ip 00007f32 sp 00007f33 error 6 in libnccl.so.2[7f32+14]"
    ends = [replace(exited(one, -11, signal=signal), source="console") for one, signal in signals.items()]
    ends = [replace(end, origin=replace(end.origin, host="gpu17")) for end in ends]
    kernel = replace(fact(text, kind="kernel"), origin=Origin(host=host), source="dmesg")
    (placed,) = [one for one in settle([*ends, kernel], job_of(4)) if one.kind == "kernel"]
    assert placed.origin.rank == rank


def test_a_stated_address_tells_equal_pids_apart() -> None:
    """Each node counts its own processes."""
    job = JobMap()
    for rank in (0, 1):
        job.learn("driver.log", Origin(rank=rank, host=f"10.0.0.{rank}", pid=81))
    job.resolve()
    text = "A worker died. Worker IP address: 10.0.0.1 Worker port: 10002 Worker PID: 81"
    (placed,) = settle([fact(text)], job)
    assert placed.origin.rank == 1


@pytest.mark.parametrize(("host", "stopped"), [("node1", True), (None, True), ("node2", False)])
def test_a_pid_stopped_on_one_host_is_no_process_of_another(host: str | None, *, stopped: bool) -> None:
    """Pids of containers are the same on many hosts: an agent's signal is for a process of its own host."""
    signal = exited(None, 0, signal="SIGTERM", by_agent=True, host="node1", pid=84)
    end = exited(None, -9, signal="SIGKILL", host=host, pid=84, offset=500)
    facts = attribute([signal, end], job_of(4))[0]
    assert [isinstance(one.detail, ExitDetail) and one.detail.stopped_by_agent for one in facts] == [True, stopped]


@pytest.mark.parametrize(("text", "rank"), [("Process 412 has 57.35 GiB memory in use", None), ("process 412 died", 3)])
def test_the_user_of_a_gpu_did_not_write_who_lists_it(text: str, rank: int | None) -> None:
    """A text about the end of a process is about it; a list of the users of a GPU is about the rank without memory."""
    job = JobMap()
    job.learn("a", Origin(rank=3, pid=412))
    (placed,) = by_stated_process([fact(text, kind="exception")], job)
    assert placed.origin.rank == rank


def test_the_failure_of_a_chain_is_of_the_rank_of_its_last_exception() -> None:
    """Where only the last exception could be placed; what is no failure stays where it is."""
    inner = raised("ValueError: bad row", chain="cause", message="bad row")
    assert isinstance(inner.detail, ExceptionDetail)
    other, inner = inner, replace(inner, detail=replace(inner.detail, secondary=False))
    last = replace(raised("job.TaskFailed: a task failed"), end=inner.end)
    placed = attribute([inner, last, exited(3, 1)], JobMap())[0]
    assert {fact.text: fact.origin.rank for fact in placed if fact.kind == "exception"} == {inner.text: 3, last.text: 3}
    placed = attribute([other, last, exited(3, 1)], JobMap())[0]
    assert {fact.text: fact.origin.rank for fact in placed if fact.kind == "exception"} == {
        inner.text: None,
        last.text: 3,
    }


@pytest.mark.parametrize(("own_host", "host"), [(None, "node2"), ("node1", "node1")])
def test_a_stated_rank_is_on_its_own_host(own_host: str | None, host: str) -> None:
    """Not on that of the file in which another rank's line stands; a host that the line names stays."""
    job = JobMap()
    job.sizes.add(4)
    job.sources["node1.log"] = Origin(host="node1")
    for name, rank in (("node1", 0), ("node2", 2)):
        job.learn(f"{name}.log", Origin(rank=rank, host=name))
    stated = replace(fact("loss is NaN", 2, source="node1.log", host=own_host), rank_basis="stated")
    (one,) = settle([stated], job)
    assert (one.origin.rank, one.origin.host) == (2, host)


def test_the_same_line_of_two_hosts_is_two() -> None:
    """Facts without a rank are copies only where they are of one host."""
    lines = [fact("bus error", host=host, source=f"{host}.log") for host in ("node1", "node2", "node1")]
    merged = settle([*lines[:2], replace(lines[2], source="copy.log")], JobMap())
    assert sorted(one.origin.host or "" for one in merged) == ["node1", "node2"]


@pytest.mark.parametrize(
    ("text", "without", "rank", "fired"),
    [
        ("worker (pid 512) is gone", frozenset[str](), 2, {"by-stated-process"}),
        ("worker (pid 512) is gone", frozenset(("by-stated-process",)), None, set()),
        ("worker (pid 513) is gone", frozenset[str](), None, set()),
    ],
)
def test_a_rule_is_named_where_it_changes_something(
    text: str, without: frozenset[str], rank: int | None, fired: set[str]
) -> None:
    """One that is switched off changes nothing, and one that gives no rank is not named."""
    job = job_of(4)
    job.learn("job.log", Origin(rank=2, pid=512))
    (placed,), fired_rules = attribute([raised(text)], job, without)
    assert (placed.origin.rank, set(fired_rules)) == (rank, fired)


def test_a_conclusion_without_a_rank_does_not_get_that_of_its_file() -> None:
    """What stacks or lines say of all ranks together rests on a line of one of them; a fact there is of this rank."""
    job = job_of(4)
    job.sources["rank1.txt"] = Origin(rank=1)
    line = fact("in all_reduce at train.py:20", None, source="rank1.txt")
    (conclusion,) = make_inferences("divergent-call", (), "all ranks wait, but not in the same call", line)
    assert [one.origin.rank for one in settle([line], job)] == [1]
    assert [one.origin.rank for one in settle([conclusion], job)] == [None]
