"""Unknown failures: grouped by what they say, with names that last."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from triage import clusters
from triage.diagnose.endings import MatchedFacts
from triage.diagnose.unknown import group_unknown, has_known_reason
from triage.model import CrashDetail, EndingDetail, Evidence, ExceptionDetail, ExitDetail, Origin

from .factories import exited, fact, raised

NOTHING = MatchedFacts()


def name(text: str) -> str:
    return clusters.name_cluster(raised(text, 0))


@given(
    st.integers(0, 10**12),
    st.integers(0, 10**12),
    st.integers(1, 2**48),
    st.integers(1, 2**48),
    st.tuples(*[st.integers(0, 255)] * 4),
    st.integers(1, 65535),
)
def test_names_do_not_depend_on_numbers_addresses_or_places(
    one: int, other: int, first: int, second: int, address: tuple[int, int, int, int], port: int
) -> None:
    """The same failure in another job, on other hosts, in other directories has the same name."""
    text = "ShardError: record {} of /data/{}/shard-{}.tsv at {:#x} from {} is empty"
    ip = ".".join(map(str, address))
    assert name(text.format(one, "run7", one, first, "10.0.0.1:80")) == name(
        text.format(other, "job-b", other, second, f"{ip}:{port}")
    )


def test_different_failures_have_different_names() -> None:
    """What is said decides, and so does the type."""
    assert len({name(text) for text in ("ValueError: no tokens", "ValueError: no labels", "KeyError: no tokens")}) == 3


def test_a_wrapper_is_no_failure_beside_what_it_wraps() -> None:
    """The parent's word that a worker raised opens no group of its own."""
    inner, outer = (
        raised("ValueError: shard is short", 0),
        raised("ValueError: Caught ValueError in DataLoader worker process 0.", 0),
    )
    assert list(group_unknown([inner, replace(outer, end=inner.end)], NOTHING)) == [name("ValueError: shard is short")]


def test_the_same_failure_of_many_ranks_is_one_group() -> None:
    """Ranks that say the same with other numbers are together."""
    groups = group_unknown(
        [raised(f"ValueError: record {rank} is empty", rank, offset=rank) for rank in range(8)], NOTHING
    )
    assert [len(facts) for facts in groups.values()] == [8]


def test_what_a_signature_knows_is_not_unknown() -> None:
    """A fact that is covered is left out, and with it the other exceptions of its chain."""
    facts = [raised("OSError: disk", 0, chain="cause"), raised("RuntimeError: cannot save", 0)]
    assert len(group_unknown(facts, NOTHING)) == 1
    chained = [
        facts[0],
        facts[1].__class__(**{**{f: getattr(facts[1], f) for f in facts[1].__slots__}, "end": facts[0].end}),
    ]
    assert group_unknown(chained, MatchedFacts(known=frozenset({0}))) == {}


def test_how_a_rank_ended_is_no_news_where_a_cause_speaks_of_it() -> None:
    """Exit code 2 beside wrong arguments opens no group; that of another rank does."""
    ends = [exited(1, 2), exited(3, 2)]
    assert [fact.origin.rank for facts in group_unknown(ends, NOTHING).values() for fact in facts] == [1, 3]
    assert [fact.origin.rank for facts in group_unknown(ends, NOTHING, {1, None}).values() for fact in facts] == [3]


@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "ChildFailedError", "ProcessRaisedException", "SystemExit"])
def test_echoes_are_no_failures(kind: str) -> None:
    """Wrappers of another failure, and ends that somebody asked for, open no group."""
    assert group_unknown([raised(f"{kind}: x", 0)], NOTHING) == {}


@pytest.mark.parametrize(("signal", "groups"), [("SIGUSR1", 1), ("SIGXCPU", 1), ("SIGTERM", 0), ("SIGHUP", 0)])
def test_a_signal_that_no_launcher_sends_is_a_failure(signal: str, groups: int) -> None:
    """srun names only the signal; a launcher may have sent those that ask a process to end."""
    ended = Evidence(
        "exit", "slurm", f"task 1: {signal}", Origin(rank=1), "job.log", 0, detail=ExitDetail(None, signal)
    )
    assert len(group_unknown([ended], NOTHING)) == groups


def test_exits_speak_only_for_ranks_that_are_silent() -> None:
    """An exit code beside the exception that led to it says nothing more; alone it is all there is."""
    assert len(group_unknown([exited(1, 1)], NOTHING)) == 1
    assert list(group_unknown([raised("ValueError: x", 1), exited(1, 1, offset=500)], NOTHING)) == [
        name("ValueError: x")
    ]
    assert group_unknown([exited(1, 0), exited(2, -15, by_agent=True), exited(None, 1)], NOTHING) == {}


@pytest.mark.parametrize(("code", "groups"), [(74, 1), (75, 2)])
def test_a_rank_that_ended_like_one_with_last_lines_is_no_news(code: int, groups: int) -> None:
    """srun reports both ranks; another status is another failure."""
    end = replace(fact("ERROR: the budget of the run is used up", 0), kind="ending")
    end = replace(end, detail=EndingDetail("error level", "logger", "weak"))
    assert len(group_unknown([end, exited(0, 74), exited(1, code)], NOTHING)) == groups


@pytest.mark.parametrize(
    ("place", "is_failure"),
    [
        ({"offset": 500}, False),
        ({"offset": 50}, True),
        ({"offset": 500, "source": "rank_3.log"}, True),
        ({"offset": 500, "rank": 3}, True),
        ({"offset": 500, "attempt": 1}, True),
    ],
)
def test_a_cut_traceback_below_the_launchers_report_is_its_own(place: dict[str, Any], *, is_failure: bool) -> None:
    """The launcher raises in its own code, too; the lines that are cut would say which process failed."""
    cut = fact("    return f(*args, **kwargs)", kind="exception", detail=ExceptionDetail("", truncated=True), **place)
    groups = group_unknown([exited(0, 1, offset=100), cut], NOTHING)
    assert any(cut in members for members in groups.values()) is is_failure


@pytest.mark.parametrize("is_known", [True, False])
def test_last_lines_around_an_exit_code_are_shown_where_no_signature_knows_them(*, is_known: bool) -> None:
    """The launcher's table stands among the last lines that begin with the failure."""
    detail = EndingDetail("exception", "Python", "strong")
    end = replace(fact("RuntimeError: invalid device ordinal"), kind="ending", end=500, detail=detail)
    facts = [end, fact("RuntimeError: invalid device ordinal"), exited(2, 1, offset=100)]
    groups = group_unknown(facts, MatchedFacts(known=frozenset({1} if is_known else ())))
    assert any(end in members for members in groups.values()) is not is_known


def test_messages_alone_are_no_failures() -> None:
    """A line of a log that no signature knows is no unknown failure."""
    assert group_unknown([fact("ERROR something odd", 0)], NOTHING) == {}


@pytest.mark.parametrize(
    ("text", "rank", "distance", "is_known"),
    [
        ("RuntimeError: HCCL error in: ProcessGroupHCCL.cpp:64", 3, 0, True),
        ("RuntimeError: HCCL error in: ProcessGroupHCCL.cpp:64", 3, 600, True),
        ("RuntimeError: HCCL error in: ProcessGroupHCCL.cpp:64", 3, 601, False),
        ("RuntimeError: HCCL error in: ProcessGroupHCCL.cpp:64", 3, -1, False),
        ("RuntimeError: HCCL error in: ProcessGroupHCCL.cpp:64", 4, 1, False),
        ("ValueError: shard 7 is empty", 3, 1, False),
    ],
)
def test_the_reason_of_a_library_error_stands_behind_it(text: str, rank: int, distance: int, is_known: bool) -> None:
    """In lines of the same rank or of no known rank; an error of the program is a failure of its own."""
    error = replace(raised(text, rank), offset=1000, end=1100)
    reason = replace(fact("EI0006: Getting socket times out.", 3), offset=1100 + distance)
    assert has_known_reason(error, [reason]) is is_known
    unplaced = replace(reason, origin=replace(reason.origin, rank=None))
    assert has_known_reason(error, [unplaced]) is (is_known or rank == 4)


@pytest.mark.parametrize(
    ("rank", "source", "is_known"),
    [(None, "0.log", True), (None, "1.log", False), (3, "1.log", True), (4, "0.log", False)],
)
def test_an_exception_that_refers_to_another_line(rank: int | None, source: str, is_known: bool) -> None:
    """The reason stands in a line of the same rank, or where the exception has no rank, of the same file."""
    error = replace(raised("RuntimeError: The Inner error is reported as above.", rank), source="0.log")
    reason = replace(fact("EI0006: Getting socket times out.", 3), source=source, offset=900)
    assert has_known_reason(error, [reason]) is is_known


@pytest.mark.parametrize(("text", "groups"), [("slurmstepd: error: pyxis: couldn't start container", 0), ("boom", 1)])
def test_tasks_that_slurmstepd_could_not_start(text: str, groups: int) -> None:
    """Exit code 1 of a task of srun behind the known reason why it did not start opens no group."""
    refusal = fact(text, kind="scheduler", component="slurm", offset=10)
    end = replace(exited(1, 1, offset=90), component="slurm")
    assert len(group_unknown([refusal, end], MatchedFacts(known=frozenset({0})))) == groups
    early = replace(end, offset=0)
    assert len(group_unknown([refusal, early], MatchedFacts(known=frozenset({0})))) == 1


@pytest.mark.parametrize(
    ("refusing", "ended", "groups"), [("n1", "n1", 0), ("n1", "n2", 1), ("n1", None, 0), (None, "n2", 0)]
)
def test_a_task_on_another_host_than_the_one_that_could_not_start(
    refusing: str | None, ended: str | None, groups: int
) -> None:
    """Its end is a failure of its own, unless one of the two lines does not name its host."""
    text = "slurmstepd: error: pyxis: couldn't start container"
    refusal = fact(text, kind="scheduler", component="slurm", offset=10, host=refusing)
    end = replace(exited(1, 1, offset=90, host=ended), component="slurm")
    assert len(group_unknown([refusal, end], MatchedFacts(known=frozenset({0})))) == groups


@pytest.mark.parametrize(
    ("reason", "code", "groups"),
    [
        ("No such file or directory", 2, 0),
        ("Permission denied", 13, 0),
        ("No such file or directory", 13, 1),
        ("No such file or directory", 1, 1),
    ],
)
def test_the_exit_code_of_a_program_that_was_not_executed(reason: str, code: int, groups: int) -> None:
    """It is the number of slurmstepd's error; then the two lines may stand in any order."""
    refusal = fact(f"slurmstepd: error: execve(): python: {reason}", kind="scheduler", component="slurm", offset=90)
    end = replace(exited(1, code, offset=10), component="slurm")
    assert len(group_unknown([end, refusal], MatchedFacts(known=frozenset({1})))) == groups


def test_a_wrapper_is_a_failure_only_where_no_other_says_why() -> None:
    """`rank 4 failed` of the job's own framework joins no causes; alone it is all that is known."""
    wrapper, inner = raised("job.TaskFailed: rank 4 failed", 0), raised("ValueError: bad row", 4)
    wrapper = replace(wrapper, fields={**wrapper.fields, "message": "rank 4 failed"})
    assert list(group_unknown([wrapper, inner], NOTHING).values()) == [[inner]]
    assert list(group_unknown([wrapper], NOTHING).values()) == [[wrapper]]
    assert list(group_unknown([wrapper, exited(0, 1)], NOTHING).values()) == [[wrapper]]
    last = fact("lease lost", 4, kind="ending", detail=EndingDetail("x", "any", "weak", 0))
    assert list(group_unknown([wrapper, last], NOTHING).values()) == [[last]]
    known = replace(inner, source="other.log")
    assert group_unknown([wrapper, known], MatchedFacts(frozenset({1}), frozenset({1}))) == {}


def test_the_last_line_of_an_exception_is_no_message_of_an_exit() -> None:
    """The ending repeats the exception of rank 0; how rank 1 ended stays a bare status."""
    ended = exited(1, 1)
    detail = EndingDetail("exception", "Python", "strong", ended.offset)
    ending = fact("ValueError: bad row", kind="ending", offset=ended.offset, detail=detail)
    groups = group_unknown([raised("ValueError: bad row", 0), ended, ending], NOTHING)
    assert [ended] in groups.values()
    groups = group_unknown([raised("KeyError: 'x'", 0), ended, ending], NOTHING)
    assert [ended, ending] in groups.values()


def test_a_traceback_without_its_exception_gives_way_to_a_known_line() -> None:
    """A cut traceback says less than any known line; alone, or with its exception, it is a failure."""
    cut = replace(raised("", 1), detail=ExceptionDetail("", "final", truncated=True))
    facts = [cut, fact("The engine did not answer", 0, offset=500)]
    known = MatchedFacts(frozenset({1}))
    assert group_unknown(facts, known) == {}
    assert len(group_unknown(facts, NOTHING)) == 1
    assert len(group_unknown([raised("ValueError: x", 1), facts[1]], known)) == 1


@pytest.mark.parametrize(("distance", "is_unknown"), [(2000, False), (2001, True), (-1, True)])
def test_the_stack_below_a_known_fatal_message_is_no_failure_of_its_own(distance: int, is_unknown: bool) -> None:
    """A failed check prints its message, then its stack; an equal stack of another file goes with it."""
    text = "*** Check failure stack trace: ***\n    @ 0x7f45 Agent::SetError()"
    reason = replace(fact("Terminating: another task died", None), offset=100, end=200)
    checks = [
        replace(fact(text, None), kind="crash", offset=200 + distance, detail=CrashDetail("", "check")),
        replace(fact(text, None), kind="crash", source="other.log", offset=9, detail=CrashDetail("", "check")),
    ]
    groups = group_unknown([reason, *checks], MatchedFacts(frozenset({0}), frozenset({0}), frozenset()))
    assert bool(groups) is is_unknown
