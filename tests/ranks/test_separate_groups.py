"""triage.ranks.separate_groups"""

from __future__ import annotations

import pytest

from triage.ranks.separate_groups import Membership, find_separate_groups

Stated = tuple[str, Membership]


def stated(rank: int, size: int, source: str = "job.log", **parts: object) -> Stated:
    """Return what a line of a source says."""
    return source, Membership(rank, size, **parts)  # type: ignore[arg-type]


def test_each_host_has_all_ranks() -> None:
    """Two hosts with ranks 0 and 1 of 2 are two groups; with ranks 0 to 3 of 4 they are one."""
    apart = [stated(rank, 2, host=host) for host in "ab" for rank in range(2)]
    groups = find_separate_groups(apart, {}, {})
    assert groups is not None
    assert (groups.size, groups.processes, groups.hosts, groups.are_apart) == (2, 4, ("a", "b"), True)
    one = [stated(rank, 4, host="ab"[rank // 2]) for rank in range(4)]
    assert find_separate_groups(one, {}, {}) is None


def test_each_rank_must_be_there_twice() -> None:
    """One rank with two hosts has two names of one host, perhaps."""
    part = [stated(0, 2, host="a"), stated(1, 2, host="a"), stated(0, 2, host="b")]
    assert find_separate_groups(part, {}, {}) is None
    assert find_separate_groups([*part, stated(1, 2, host="b")], {}, {}) is not None


def test_two_names_of_one_host() -> None:
    """Lines in two files with one pid are of one process, if both names are of its host."""
    pair = [stated(0, 1, "a.log", host="a", pid=7), stated(0, 1, "b.log", host="b", pid=7)]
    assert find_separate_groups(pair, {}, {}) is not None
    assert find_separate_groups(pair, {}, {"b": "a"}) is None


def test_a_larger_size_makes_these_parts_of_one_job() -> None:
    """The numbers in tensor-parallel groups repeat, and some line says how many ranks there are."""
    parts = [stated(rank, 2, host=host) for host in "ab" for rank in range(2)]
    assert find_separate_groups([*parts, stated(-1, 4)], {}, {}) is None
    assert find_separate_groups([*parts, stated(-1, 2)], {}, {}) is not None


def test_prefixes_of_the_launcher_tell_processes_apart() -> None:
    """Two tasks of srun on one host both are rank 0 of 1; one task that says so twice is one process."""
    assert find_separate_groups([stated(0, 1, label="0:"), stated(0, 1, label="1:")], {}, {}) is not None
    assert (
        find_separate_groups([stated(0, 1, label="0:", form=1), stated(0, 1, label="1:", form=2)], {}, {}) is not None
    )
    assert find_separate_groups([stated(0, 1, label="0:", form=1), stated(0, 1, label="0:", form=2)], {}, {}) is None


def test_one_process_in_two_files_is_one() -> None:
    """Its pid shows it."""
    assert find_separate_groups([stated(0, 1, "a.log", pid=7), stated(0, 1, "b.log", pid=7)], {}, {}) is None
    assert find_separate_groups([stated(0, 1, "a.log", pid=7), stated(0, 1, "b.log", pid=8)], {}, {}) is not None


def test_a_restart_is_not_a_second_group() -> None:
    """It begins behind a failure, or long after the process before."""
    first, again = stated(0, 1, pid=7, time=0.0), stated(0, 1, pid=8, time=5.0, offset=900)
    assert find_separate_groups([first, again], {}, {}) is not None
    assert find_separate_groups([first, again], {"job.log": [500]}, {}) is None
    for offset in (0, 900, 950):  # the lines themselves, and behind both
        assert find_separate_groups([first, again], {"job.log": [offset], "other.log": [500]}, {}) is not None


@pytest.mark.parametrize(("host", "seconds"), [("a", 30.0), ("b", 300.0)])
def test_processes_of_one_launch_start_together(host: str, seconds: float) -> None:
    """A process that started later is of another attempt, or of another job."""
    first, later = (stated(0, 1, host=name, pid=7 + (name != "a")) for name in ("a", host))
    pair = [
        (first[0], Membership(0, 1, host="a", pid=7, time=100.0)),
        (later[0], Membership(0, 1, host=host, pid=8, time=100.0 + seconds)),
    ]
    assert find_separate_groups(pair, {}, {}) is not None
    pair[1] = (later[0], Membership(0, 1, host=host, pid=8, time=101.0 + seconds))
    assert find_separate_groups(pair, {}, {}) is None


def test_clocks_of_two_hosts_may_be_apart() -> None:
    """In two files a difference of time says nothing; in one file it does."""
    first = stated(0, 1, "a.log", host="a", time=0.0)
    assert find_separate_groups([first, stated(0, 1, "b.log", host="b", time=9000.0)], {}, {}) is not None
    assert find_separate_groups([first, stated(0, 1, "a.log", host="b", time=9000.0)], {}, {}) is None


def test_a_logger_may_write_each_line_twice() -> None:
    """Two equal lines at one moment may be of one process, three or lines apart are not."""

    def copies(*times: float | None) -> bool:
        groups = find_separate_groups([stated(0, 1, time=time) for time in times], {}, {})
        assert groups is not None
        return groups.may_be_copies

    assert copies(1.0, 1.001)
    assert copies(None, None)
    assert copies(0.0, 0.009)
    assert not copies(0.0, 0.01)
    assert not copies(1.0, 1.2)
    assert not copies(1.0, 1.0, 1.0)


def test_processes_that_wrote_lines_are_counted() -> None:
    """A place of one process counts once, one of several at most as often as there are processes."""
    groups = find_separate_groups([stated(0, 1, label="0:"), stated(0, 1, label="1:")], {}, {})
    assert groups is not None
    assert groups.count_processes([("job.", "0:"), ("job.", "0:")]) == 1
    assert groups.count_processes([("job.", "0:"), ("job.", "1:")]) == 2
    assert groups.count_processes([("other.", ""), ("other.", "")]) == 1
    shared = find_separate_groups([stated(0, 1, time=1.0), stated(0, 1, time=2.0)], {}, {})
    assert shared is not None
    assert shared.count_processes([("job.", "")] * 5) == 2
