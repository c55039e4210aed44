"""triage.diagnose.completion: what proves that a job ended well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from triage.diagnose.completion import Completion, find_completion
from triage.model.evidence import Origin
from triage.ranks.identity import JobMap
from triage.records.activity import Activity
from triage.records.completion import Scope


def make_activities(*lines: tuple[str, int | None, int | None, Scope]) -> list[tuple[str, Activity]]:
    """Return lines (source, rank, step, what ended) in the order of their offsets."""
    return [
        (source, Activity(Origin(rank=rank), offset, "", step, scope in ("program", "job"), completion=scope))
        for offset, (source, rank, step, scope) in enumerate(lines)
    ]


def find(lines: Sequence[tuple[str, int | None, int | None, Scope]]) -> bool:
    activities = make_activities(*lines)
    job = JobMap()
    for source, activity in activities:
        job.learn(source, activity.origin)
    return find_completion(activities, job).is_proved


@pytest.mark.parametrize(
    ("lines", "is_proved"),
    [
        ([], False),
        ([("a", None, 9, "")], False),
        ([("a", None, 9, ""), ("a", None, None, "program")], True),
        ([("a", None, None, "word")], True),
        ([("a", 0, 9, ""), ("a", 1, 9, ""), ("a", 0, None, "program")], False),
        ([("a", 0, 9, ""), ("a", 0, None, "program"), ("b", 1, None, "program")], True),
        ([("a", 0, 9, ""), ("a", 1, 9, ""), ("s", None, None, "job")], True),
        ([("a", 0, 9, ""), ("a", 1, 9, ""), ("a", None, None, "process")], True),
        ([("a", 0, 9, ""), ("a", 1, 9, ""), ("a", 0, None, "process")], False),
    ],
)
def test_every_trace_needs_a_proof(lines: list[tuple[str, int | None, int | None, Scope]], is_proved: bool) -> None:
    """Every rank finished, or a launcher or scheduler speaks for all of them."""
    assert find(lines) is is_proved


@pytest.mark.parametrize(("ends", "is_proved"), [(2, True), (1, False)])
def test_ends_without_a_rank_cover_the_ranks_of_their_file(ends: int, is_proved: bool) -> None:
    """In one file each rank names itself at its end; in another one they do not, and as many ends stand there."""
    own = [line for rank in (0, 1) for line in (("a", rank, 9, ""), ("a", rank, None, "program"))]
    others = [("b", 2, 9, ""), ("b", 3, 9, ""), *[("b", None, None, "program")] * ends]
    assert find([*own, *others]) is is_proved  # type: ignore[list-item]


@pytest.mark.parametrize(("scope", "is_proved"), [("program", True), ("word", False)])
def test_the_log_of_the_job_covers_ranks_without_lines(scope: Scope, is_proved: bool) -> None:
    """Ranks that left only dumps need the line of a whole program that names no rank."""
    activities = make_activities(("train.log", None, 9, ""), ("train.log", None, None, scope))
    job = JobMap()
    for rank in range(2):
        job.learn(f"fr_rank_{rank}", Origin(rank=rank))
        job.sources[f"fr_rank_{rank}"] = Origin(rank=rank)
    assert find_completion(activities, job).is_proved is is_proved


@pytest.mark.parametrize(("step", "is_proved"), [(8, True), (9, True), (10, False)])
def test_training_after_the_end_voids_it(step: int, is_proved: bool) -> None:
    """One line with a step that came before is a summary; a step beyond the last goes on."""
    assert find([("a", None, 9, ""), ("a", None, None, "program"), ("a", None, step, "")]) is is_proved


def test_nothing_proves_the_end_of_a_job_without_lines() -> None:
    """Without a word that anything ended."""
    assert not Completion().is_proved


@pytest.mark.parametrize(
    ("scope", "seconds", "is_proved"),
    [
        ("program", -1.0, True),
        ("program", 0.0, False),
        ("program", 1.0, False),
        ("program", None, False),
        ("job", -1.0, False),
    ],
)
def test_older_lines_below_the_end_do_not_void_it(scope: Scope, seconds: float | None, is_proved: bool) -> None:
    """Where logs stand one after another, a line below a program's end may be older, but not below a launcher's."""
    activities = make_activities(("a", None, 8, ""), ("a", None, None, scope), ("a", None, 9, ""))
    (_, first), (_, end), (_, below) = activities
    time = None if seconds is None else 100.0 + seconds
    ordered = [first, replace(end, origin=Origin(time=100.0)), replace(below, origin=Origin(time=time))]
    assert find_completion([("a", each) for each in ordered], JobMap()).is_proved is is_proved


@pytest.mark.parametrize(("writers", "is_valid"), [(("a", "a"), False), (("a", "b"), True), (("a", ""), False)])
def test_only_steps_of_another_writer_leave_an_end_valid(writers: tuple[str, str], *, is_valid: bool) -> None:
    """Where neither line names its rank, their labels tell the writers apart, if both have one."""
    lines = make_activities(("log", None, 9, ""), ("log", None, None, "program"), ("log", None, 10, ""))
    labels = (writers[0], *writers)
    labelled = [(source, replace(one, writer=label)) for (source, one), label in zip(lines, labels, strict=True)]
    assert bool(find_completion(labelled, JobMap()).lines) is is_valid


@pytest.mark.parametrize(("finished", "is_proved"), [(2, True), (3, False)])
def test_an_end_that_half_of_the_writers_say_is_said_for_all(finished: int, *, is_proved: bool) -> None:
    """Of four labelled writers of a source, the others are behind: they need an end of their own if most have one."""
    lines = []
    for number in range(4):
        step = 9 if number < finished else 8
        own = make_activities(("log", None, step, ""), *[("log", None, None, "program")][: number < finished])
        lines += [(source, replace(one, writer=f"w{number}", offset=10 * number + one.offset)) for source, one in own]
    assert find_completion(lines, JobMap()).is_proved is is_proved


def test_a_second_run_below_the_first_voids_its_end() -> None:
    """A run that starts again at step 1 in the same file did not finish."""
    lines: list[tuple[str, int | None, int | None, Scope]] = [("a", None, 9, ""), ("a", None, None, "program")]
    assert not find([*lines, ("a", None, 1, ""), ("a", None, 2, "")])


@pytest.mark.parametrize(("step", "is_proved"), [(9, True), (8, False)])
def test_a_file_of_metrics_needs_the_last_step(step: int, is_proved: bool) -> None:
    """A file without ranks that says nothing is covered if it reached the step of one that finished."""
    assert find([("m", None, step, ""), ("t", None, 9, ""), ("t", None, None, "program")]) is is_proved


@pytest.mark.parametrize(
    ("texts", "is_proved"),
    [
        (["training finished"] * 3, True),
        (["training finished"] * 2, False),
        (["training finished", "done", "all saved"], False),
    ],
)
def test_ends_without_ranks_count_once_for_each_rank(texts: list[str], is_proved: bool) -> None:
    """Ranks that warnings name finished too if as many lines as there are ranks say the same end."""
    activities = make_activities(("a", 0, 9, ""), ("a", 2, 9, ""))
    activities += [
        ("a", Activity(Origin(), 10 + number, "", None, True, completion="program", end_text=text))
        for number, text in enumerate(texts)
    ]
    job = JobMap()
    job.sizes.add(3)
    for rank in (0, 2):
        job.learn("a", Origin(rank=rank))
    assert find_completion(activities, job).is_proved is is_proved


@pytest.mark.parametrize(("repeated", "is_proved"), [(2, True), (1, False)])
def test_an_end_that_ray_prints_for_several_workers_counts_for_each(repeated: int, is_proved: bool) -> None:
    """Of equal lines Ray prints the first, and one for the others with their number."""
    lines = make_activities(*(("a", rank, 9, "") for rank in range(3)), ("a", 0, None, "program"))
    others = replace(lines[-1][1], offset=9, origin=Origin(rank=1), lines=repeated)
    job = JobMap()
    for source, activity in lines:
        job.learn(source, activity.origin)
    job.sizes.add(3)
    assert find_completion([*lines, ("a", others)], job).has_end_of_each is is_proved


@pytest.mark.parametrize(("ranks", "is_proved"), [((1, 2), True), ((1, 1), False)])
def test_ends_of_named_ranks_count_beside_those_without_a_rank(ranks: tuple[int, int], is_proved: bool) -> None:
    """Of four ranks two say the same end with their ranks and two without; one that says it twice is one."""
    activities = make_activities(*[("a", rank, 9, "") for rank in range(4)])  # type: ignore[list-item]
    activities += [
        ("a", Activity(Origin(rank=rank), 10 + number, "", None, True, completion="program", end_text="finished"))
        for number, rank in enumerate((None, None, *ranks))
    ]
    job = JobMap()
    job.sizes.add(4)
    for rank in range(4):
        job.learn("a", Origin(rank=rank))
    assert find_completion(activities, job).is_proved is is_proved


@pytest.mark.parametrize(
    ("earlier", "later", "is_proved"), [(2, 1, True), (1, 1, False), (3, 1, False), (2, 0, False), (0, 3, True)]
)
def test_ends_of_logs_that_stand_one_after_another_count(earlier: int, later: int, is_proved: bool) -> None:
    """Ends before training count too, if another log follows them: not where all ranks had ended, as in another run."""
    end = Activity(Origin(), 0, "", None, True, completion="program", end_text="training finished")
    steps = [Activity(Origin(), 0, "", step, False) for step in (1, 2, 3)]
    ranked = Activity(Origin(rank=0), 0, "", None, False)
    ordered = [ranked, *steps, *[end] * earlier, *steps, *[end] * later]
    job = JobMap()
    job.sizes.add(3)
    activities = [("a", replace(each, offset=offset)) for offset, each in enumerate(ordered)]
    assert find_completion(activities, job).is_proved is is_proved


@pytest.mark.parametrize(
    ("sources", "is_proved"),
    [
        ({"console.log": (None, (0, 1, 2, 3)), "copy.log": (None, (0, 1, 2, 3))}, False),
        ({"console.log": (None, (0, 1, 2, 3)), "copy.log": (None, (0, 1, 2))}, False),
        ({"console.log": ("node1", ()), "copy.log": ("node1", (0, 1, 2, 3))}, False),
        ({"console.log": (None, ()), "copy.log": ("node1", (0, 1, 2, 3))}, False),
        ({"console.log": ("node1", (0, 1, 2, 3)), "copy.log": ("node2", (0, 1, 2, 3))}, False),
        ({"one.log": (None, (0, 1)), "other.log": (None, (2, 3))}, True),
        ({"one.log": ("node1", (0, 1)), "other.log": ("node1", (2, 3))}, True),
        ({"one.log": ("node1", ()), "other.log": ("node2", (0, 1, 2, 3))}, True),
    ],
)
def test_ends_in_copies_of_a_file_count_once(
    sources: dict[str, tuple[str | None, tuple[int, ...]]], is_proved: bool
) -> None:
    """Two of four ranks finished, and a second file says it again; files of other ranks or hosts are no copies."""
    activities = make_activities(*((source, rank, 9, "") for source, (_, ranks) in sources.items() for rank in ranks))
    activities += [
        (source, Activity(Origin(host=host), 90 + number, "", None, True, completion="program", end_text="finished"))
        for source, (host, _) in sources.items()
        for number in range(2)
    ]
    job = JobMap()
    job.sizes.add(4)
    for source, activity in activities:
        job.learn(source, activity.origin)
    assert find_completion(activities, job).is_proved is is_proved


@pytest.mark.parametrize(
    ("times", "finished"), [((None, None), None), ((7.0, None), 7.0), ((7.0, 9.0), 9.0), ((0.5, None), 0.5)]
)
def test_a_rank_finished_at_the_latest_time_of_its_ends(
    times: tuple[float | None, ...], finished: float | None
) -> None:
    """Where no line of its end has a time, the time is not known."""
    lines = make_activities(("a", 0, None, "program"), ("a", 0, None, "program"))
    ends = [
        (source, replace(one, origin=Origin(rank=0, time=time)))
        for (source, one), time in zip(lines, times, strict=True)
    ]
    assert find_completion(ends, JobMap()).finished == {0: finished}
