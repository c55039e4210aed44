"""triage.render.phrases"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from triage.model.diagnosis import Moment, RankState
from triage.model.evidence import Warning
from triage.render import job_warnings, phrases, rank_grid, render

from .factories import CAUSE, CLEAN, ECHO, KNOWN, LOST, NOISE, NOON, SECOND_ECHO, SYMPTOMS, UNKNOWN_ROOT, evidence


@pytest.mark.parametrize(
    ("diagnosis", "kind"),
    [(KNOWN, "ROOT CAUSE"), (UNKNOWN_ROOT, "UNKNOWN FAILURE"), (SYMPTOMS, "SYMPTOMS ONLY"), (CLEAN, "CLEAN")],
)
def test_each_verdict_has_its_kind(diagnosis: object, kind: str) -> None:
    """Symptoms and an unknown failure differ although both have the verdict unknown."""
    assert phrases.verdict_kind(diagnosis) == kind  # type: ignore[arg-type]


def test_findings_are_sorted_under_their_headings() -> None:
    """What the root explains through another finding counts as caused; the root itself is under none."""
    groups = phrases.group_findings(KNOWN)
    assert groups.caused == [ECHO, SECOND_ECHO]
    assert groups.considered == [LOST]
    assert groups.noise == [NOISE]
    assert CAUSE not in groups.caused + groups.considered


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.9, "high (0.9)"),
        (0.8, "high (0.8)"),
        (0.55, "medium (0.55)"),
        (0.3, "low (0.3)"),
        (1.0, "high (1)"),
        (0.0, "low (0)"),
    ],
)
def test_confidence_has_a_level_and_a_number(value: float, text: str) -> None:
    """The level changes at 0.8 and 0.5."""
    assert phrases.format_confidence(value) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (3_100_000, "3.1 MB"), (999_999, "1.0 MB"), (10**15, "1000.0 TB")],
)
def test_sizes(count: int, text: str) -> None:
    """Decimal units with one digit."""
    assert phrases.format_bytes(count) == text


def test_the_grid_joins_equal_lines() -> None:
    """A thousand healthy ranks around one failed rank take three lines."""
    states = [RankState(rank, None, "failed" if rank == 512 else "ok") for rank in range(1024)]
    grid = rank_grid.grid_rows(states, 64)
    assert [(line.first, line.last) for line in grid] == [(0, 511), (512, 575), (576, 1023)]
    assert grid[1].marks == "F" + "." * 63


def test_a_grid_of_far_ranks_is_small() -> None:
    """Two ranks far apart take two lines, whatever lies between."""
    assert len(rank_grid.grid_rows([RankState(0, None, "ok"), RankState(10**9, None, "ok")], 64)) == 2


@given(st.lists(st.integers(0, 500), unique=True))
def test_every_rank_has_its_mark(ranks: list[int]) -> None:
    """The marks of all lines, repeated as often as they stand for, are as many as the ranks."""
    grid = rank_grid.grid_rows([RankState(rank, None, "stalled") for rank in ranks], 64)
    marks = sum(line.marks.count("S") * ((line.last - line.first + 1) // max(len(line.marks), 1)) for line in grid)
    assert marks == len(ranks)


def test_the_time_has_a_date_if_the_job_has_several_days() -> None:
    """The date is left out only when the whole job is on one day."""
    assert phrases.format_time(KNOWN.job.first_time, KNOWN) == "03:00:00"
    assert phrases.format_time(0.0, KNOWN) == "1970-01-01 00:00:00"
    assert phrases.format_time(1e300, KNOWN) == ""


def test_the_row_of_the_root_cause_is_not_merged() -> None:
    """Where all ranks hang, the origin can be found without colour."""
    states = [RankState(rank, None, "stalled") for rank in range(512)]
    grid = rank_grid.grid_rows(states, 64, [170])
    assert [(line.first, line.last) for line in grid] == [(0, 127), (128, 191), (192, 511)]
    assert [rank_grid.format_origin_mark(line, [170], 20) for line in grid] == ["", "  < 170", ""]
    assert rank_grid.format_origin_mark(grid[1], range(128, 190, 2), 20) == "  <"


def alternate_states(count: int) -> Sequence[RankState]:
    """Return states of ranks without any order."""
    chance = random.Random(1)
    return tuple(RankState(rank, None, chance.choice(["ok", "failed", "silent"])) for rank in range(count))


@pytest.mark.parametrize(("rows", "shown"), [(100, 100), (101, 51)])
def test_a_grid_of_very_many_rows_is_cut(rows: int, shown: int) -> None:
    """Up to a hundred rows all are shown; of more the first fifty and the one where it began, and a count."""
    origin = 64 * rows - 5
    grid = rank_grid.grid_rows(alternate_states(64 * rows), 64, [origin])
    selected, others = rank_grid.select_rows(grid, [origin])
    assert len(selected) == shown
    assert selected[-1].first <= origin <= selected[-1].last
    assert others == ("… 50 more rows; JSON has the state of each rank" if shown < rows else "")


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_reports_of_alternating_ranks_are_short(form: str) -> None:
    """The map of 20,000 ranks whose states alternate has no more rows than that of 6,400."""
    text = render(replace(KNOWN, ranks=tuple(alternate_states(20_000))), form)
    rows = re.findall(r"\d+ *- *\d+ +[-.F]{8}", text)
    assert 50 <= len(rows) <= 100
    assert "more rows; JSON" in text


def test_consequences_are_counted_by_rank() -> None:
    """Ranks of the root cause and of other candidates do not count; the verb agrees with the number."""
    assert phrases.describe_consequences(KNOWN) == "1 more rank shows only consequences of this"
    many = replace(KNOWN, findings=(CAUSE, replace(ECHO, ranks=tuple(range(16))), replace(LOST, ranks=(7,))))
    assert phrases.describe_consequences(many) == "13 more ranks show only consequences of this"
    assert phrases.describe_consequences(replace(KNOWN, findings=(CAUSE, SECOND_ECHO))) == ""


def test_consequences_of_considered_findings_are_an_aftermath() -> None:
    """A finding that another considered finding explains is no candidate; two that explain each other both are."""
    echo = replace(ECHO, explained_by=(LOST.signature or "",))
    groups = phrases.group_findings(replace(SYMPTOMS, findings=(LOST, echo)))
    assert (groups.considered, groups.aftermath) == ([LOST], [echo])
    mutual = (replace(LOST, explained_by=(ECHO.signature or "",)), echo)
    assert phrases.group_findings(replace(SYMPTOMS, findings=mutual)).considered == list(mutual)


@pytest.mark.parametrize(
    "reason", ["explains gloo.lost (rank 1)", "Consequence of u-7f3a9c", "follows from a.b: it leads"]
)
def test_reasons_that_only_name_findings_are_left_out(reason: str) -> None:
    """The report has a section for the findings themselves."""
    assert phrases.own_reasons(replace(LOST, why=(reason, "It is late.", "It is late."))) == ["It is late."]


def test_a_reason_is_shown_once() -> None:
    """Of several findings with one reason, the first shows it; a reason that the log line repeats is not shown."""
    second = replace(LOST, signature="host.other")
    assert phrases.with_reasons([LOST, second]) == [(LOST, ". No line shows it."), (second, "")]
    root = replace(CAUSE, why=(CAUSE.evidence[0].text, "It was first."))
    assert phrases.root_reasons(replace(KNOWN, root_cause=root)) == ["It was first."]


def test_moments_of_one_second_share_an_entry() -> None:
    """Each rank that shows the same is in one entry, consequences by name or not."""
    moments = [Moment(NOON, 0, "x", "a.b"), Moment(NOON, 0, "y", ECHO.signature), Moment(NOON, 1, "x", "a.b")]
    moments += [Moment(NOON, 2, "y", SECOND_ECHO.signature), Moment(NOON + 9, 3, "y", ECHO.signature)]
    assert phrases.merge_moments(replace(KNOWN, timeline=tuple(moments))) == [
        ("03:00:00", "ranks 0-1", "a.b"),
        ("03:00:00", "ranks 0, 2-3", "only consequences"),
    ]


def test_warnings_are_merged() -> None:
    """Equal messages share their sources, handled failures their reason; the timeline already shows silent ranks."""
    handled = [Warning("handled", "/jobs/7/a", f"'E{n}' did not end the job: it finished") for n in range(3)]
    silent = Warning("fell-silent", None, "rank 1 was silent")
    moments = (Moment(NOON, 1, "its last line; the others went on for 9 s", None), Moment(NOON, 0, "x", "a.b"))
    merged = job_warnings.merge_warnings(replace(KNOWN, warnings=(*handled, silent), timeline=moments))
    assert merged == [(["a"], "'E0' and 2 more did not end the job: it finished", "handled")]
    assert job_warnings.merge_warnings(replace(KNOWN, warnings=(silent,))) == [([], "rank 1 was silent", "fell-silent")]


def test_one_line_is_one_evidence() -> None:
    """The same line of a source is shown once."""
    first, other = evidence("x"), evidence("x", 2, line=62)
    assert phrases.distinct_evidence(replace(CAUSE, evidence=(first, evidence("x"), other))) == [first, other]


def test_independent_failures_are_all_in_the_headline() -> None:
    """Each has its rank and a short title; of many the first three are named."""
    assert UNKNOWN_ROOT.root_cause is not None
    others = tuple(
        replace(UNKNOWN_ROOT.root_cause, cluster=f"u-{rank}", ranks=(rank,), title="x" * 80) for rank in (5, 6, 7)
    )
    root = replace(UNKNOWN_ROOT.root_cause, ranks=(3,), title="KeyError: 'a'", alongside=("u-5", "u-6", "u-7"))
    text = phrases.headline(replace(UNKNOWN_ROOT, root_cause=root, unknown=others))
    short = "x" * 59 + "…"
    assert text == f"4 independent failures: rank 3: KeyError: 'a'; rank 5: {short}; rank 6: {short}; and 1 more"


def test_the_owner_of_a_killed_process_is_in_the_location() -> None:
    """Where only one rank is known, and by a process of its own; a reason of another kind is left to `why`."""
    assert KNOWN.root_cause is not None
    root = replace(KNOWN.root_cause, ranks=(3,), why=("Rank 3: its worker 5714 was killed",))
    assert phrases.describe_line_origin(replace(KNOWN, root_cause=root)).endswith(" (its worker 5714 was killed)")
    for other in (replace(root, ranks=(3, 4)), replace(root, why=("Rank 3: pid 413 belongs to it",))):
        assert "(" not in phrases.describe_line_origin(replace(KNOWN, root_cause=other))
