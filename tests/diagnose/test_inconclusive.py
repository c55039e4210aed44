"""triage.diagnose.inconclusive"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tests.diagnose.factories import fact
from triage.diagnose.causes import Verdict
from triage.diagnose.completion import Completion, Writer
from triage.diagnose.inconclusive import MOST_LINES, ReadInput, explain_inconclusive
from triage.diagnose.outcome import Outcome
from triage.diagnose.reason import ReasoningResult
from triage.model import EndingDetail, Evidence, Inconclusive, Origin, Warning
from triage.records.activity import Activity

LINE = ("job.log", Activity(Origin(), 0, "", None, finished=True))
READ = ReadInput(text_bytes=100, signatures=1200)


def explained(
    lines: Sequence[Evidence] = (),
    read: ReadInput = READ,
    *,
    completion: Completion | None = None,
    warnings: Sequence[Warning] = (),
    facts: Sequence[Evidence] = (),
    steps: Mapping[int, int] | None = None,
) -> Inconclusive:
    """Return what is said of the end of a job."""
    outcome = Outcome({}, {}, 0, steps or {}, {}, frozenset(), completion=completion or Completion())
    result = ReasoningResult(tuple(facts), (), Verdict(None, [], 0.0), outcome, {})
    return explain_inconclusive(result, lines, read, lambda them: them, warnings)


def last_lines(*times: float | None) -> list[Evidence]:
    """Return the last lines of ranks, at these times."""
    return [fact("step 3", rank, time=time) for rank, time in enumerate(times)]


@pytest.mark.parametrize(
    ("completion", "why"),
    [
        (Completion(), ["No line says that the job finished"]),
        (
            Completion((LINE,), open_ranks=(1,), finished={0: None, 2: None}),
            ["Ranks 0, 2 finished; rank 1 does not say so"],
        ),
        (
            Completion((LINE,), open_ranks=(1, 2), finished={0: None}),
            ["Rank 0 finished; ranks 1-2 do not say so"],
        ),
        (Completion((LINE,), open_ranks=(1,)), ["A line says that something finished, but not rank 1"]),
        (Completion((LINE,), finished={0: None}), []),
        (
            Completion((LINE,), open_writers=(Writer("a/all.log", "[worker-5]:"),)),
            ["worker-5 in all.log stops without saying that it finished"],
        ),
        (
            Completion((LINE,), open_writers=(Writer("a.log", ""), Writer("b.log", ""))),
            ["a.log and b.log stop without saying that they finished"],
        ),
    ],
)
def test_who_did_not_say_that_it_finished(completion: Completion, why: list[str]) -> None:
    """Ranks, or writers that name no rank."""
    assert list(explained(completion=completion).why) == why


@pytest.mark.parametrize(
    ("times", "why"),
    [
        ((100.0, 102.0, 102.0), "Rank 0 stopped first, at 00:01:40, 2 s before the others"),
        ((100.0, 101.5, 101.9), "The logs of all 3 ranks end within 2 s"),
        ((100.0, 100.0), "The logs of all 2 ranks end within 1 s"),
        ((100.0, 100.0, 110.0), "Ranks 0-1 stopped first, at 00:01:40, 10 s before the others"),
        ((100.0, 100.0, 100.0, 110.0), ""),
        ((100.0, None), ""),
        ((100.0,), ""),
    ],
)
def test_who_stopped_first_by_time(times: tuple[float | None, ...], why: str) -> None:
    """Two seconds before the next one, and not most of all ranks; every rank must have a time."""
    assert list(explained(last_lines(*times)).why[1:]) == ([why] if why else [])


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ({0: 3, 1: 5}, "Rank 0 stopped at step 3 or later, the others at step 5"),
        ({0: 3, 1: 4, 2: 5, 3: 5}, "Ranks 0-1 stopped at step 3 or later, the others at step 5"),
        ({0: 3, 1: 3, 2: 5}, ""),
        ({0: 5, 1: 5}, ""),
        ({0: 3, 9: 5}, ""),
        ({}, ""),
    ],
)
def test_who_stopped_first_by_step(steps: dict[int, int], why: str) -> None:
    """Where no times show it: at most half of the ranks, of those with a last line."""
    assert list(explained(last_lines(None, None, None, None), steps=steps).why[1:]) == ([why] if why else [])


def test_a_line_that_is_cut_off_is_named() -> None:
    """And how many more there are."""
    torn = tuple(f"logs/rank{rank}.log" for rank in range(5))
    assert explained(read=replace(READ, torn=torn[:1])).why[0] == (
        "rank0.log ends in the middle of a line: what came after it is missing"
    )
    assert (
        explained(read=replace(READ, torn=torn))
        .why[0]
        .startswith("rank0.log, rank1.log, rank2.log and 2 more end in the middle")
    )
    assert explained(read=replace(READ, torn=torn[:3])).why[0].startswith("rank0.log, rank1.log and rank2.log end")


def test_files_without_text_are_named_with_the_reason() -> None:
    """A warning says it better than the kind."""
    read = ReadInput(unread=(("a/core.1", "core"), ("b.bin", "binary"), ("x", "empty")))
    warnings = [Warning("corrupt", "b.bin", ""), Warning("missing-ranks", "y", ""), Warning("encrypted", None, "")]
    assert explained(read=read, warnings=warnings).why == (
        "Nothing could be read: core.1 is core, b.bin is damaged and x is empty",
    )
    assert explained(read=ReadInput()).why == ("Nothing could be read: no file holds text",)
    assert explained(read=ReadInput()).next_steps[0].startswith("Give the files")
    assert not explained().next_steps[0].startswith("Give the files")


@pytest.mark.parametrize(("code", "is_named"), [("truncated", True), ("storm", True), ("clock-skew", False)])
def test_files_that_were_not_read_to_the_end_are_named(code: str, is_named: bool) -> None:
    """Each once."""
    warnings = [Warning(code, "a/job.gz", ""), Warning(code, "a/job.gz", ""), Warning(code, None, "")]
    assert ("Not read to the end: job.gz" in explained(warnings=warnings).why) is is_named


def test_last_lines_begin_with_what_stopped_first() -> None:
    """At most twelve; lines without a time are behind the others, those without a rank behind those with one."""
    lines = [fact("c"), *last_lines(9.0, 3.0, None), fact("d", time=3.0)]
    shown = [(line.time, line.rank) for line in explained(lines).last_lines]
    assert shown == [(3.0, 1), (3.0, None), (9.0, 0), (None, 2), (None, None)]
    assert len(explained(last_lines(*[1.0] * (MOST_LINES + 1))).last_lines) == MOST_LINES


def test_five_unusual_lines_are_shown() -> None:
    """Those unlike all lines before them; other endings are failures."""
    unlike, weak = (EndingDetail("shape", "any", strength) for strength in ("unlike", "weak"))  # type: ignore[arg-type]
    facts = [fact(f"line {number}", kind="ending", detail=unlike, offset=number) for number in range(6)]
    shown = explained(facts=[fact("x", kind="ending", detail=weak), *facts]).unusual_lines
    assert [line.text for line in shown] == [f"line {number}" for number in range(5)]


@pytest.mark.parametrize(
    ("text", "source", "step"),
    [
        ("slurmstepd: error", "a.log", "sacct -j JOB --format=JobID,State,ExitCode,End"),
        ("step 3", "kubernetes/pod.log", "kubectl logs --previous"),
        ("step 3", "slurm-7.out", "> sacct.txt"),
        ("step 3", "a.log", "docker inspect"),
        ("x" * 200 + " srun ", "a.log", "docker inspect"),
    ],
)
def test_what_to_add_depends_on_the_platform(text: str, source: str, step: str) -> None:
    """Of which the last lines and the names of their files speak."""
    assert step in explained([fact(text, source=source)]).next_steps[0]


@pytest.mark.parametrize(
    ("completion", "is_asked"),
    [(Completion(), True), (Completion((LINE,), open_ranks=(1,)), True), (Completion((LINE,)), False)],
)
def test_the_kernel_log_is_asked_for_where_ranks_are_open(completion: Completion, is_asked: bool) -> None:
    """A killed process writes nothing."""
    assert any("dmesg" in step for step in explained(completion=completion).next_steps) is is_asked


def test_what_was_looked_for_is_said() -> None:
    """With the number of signatures."""
    assert explained().looked_for[0] == "1,200 signatures of the catalog"
