"""`triage timeline` on small logs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from triage.base.errors import OptionError
from triage.cli.options import parse_duration

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "jobs"
Command = Callable[..., tuple[int, str, str]]
LOG = "".join(
    f"2026-11-21 03:00:0{second} [rank{rank}] INFO trainer: step {second}\n" for second in range(9) for rank in (0, 1)
) + "".join(
    f"[rank1]: {line}\n"
    for line in (
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in f',
        "    g()",
        "ValueError: \x1b[2Jboom",
    )
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "job.log"
    path.write_text(LOG)
    return path


@pytest.mark.parametrize("width", ["40", "80"])
def test_text_fits_a_narrow_terminal(command: Command, log: Path, width: str) -> None:
    """No line is longer than the width, and there are no control characters."""
    status, out, err = command("timeline", str(log), "--width", width)
    assert (status, err) == (0, "")
    assert max(map(len, out.splitlines())) <= int(width)
    assert "\x1b" not in out
    assert "ValueError" in out
    assert "last line" in out


def test_json_has_the_same_events(command: Command, log: Path) -> None:
    """--rank filters events and ranks."""
    status, out, _ = command("timeline", str(log), "--format", "json", "--rank", "1")
    timeline = json.loads(out)
    assert (status, timeline["schema"]) == (0, "triage.timeline/1")
    assert {rank for event in timeline["events"] for rank in event["ranks"]} == {1}
    assert [state["rank"] for state in timeline["ranks"]] == [1]
    assert any(event["text"].startswith("ValueError") for event in timeline["events"])


def test_an_earliest_time_is_marked(command: Command, log: Path) -> None:
    """A traceback without a timestamp came with or after the line before it."""
    _, out, _ = command("timeline", str(log))
    assert "\n03:00:08+ " in out
    assert "+: no timestamp of its own" in out
    timeline = json.loads(command("timeline", str(log), "--format", "json")[1])
    assert [event["or_later"] for event in timeline["events"] if event["what"] == "failure"] == [True]


def test_a_cause_without_a_known_rank_is_always_shown(command: Command, tmp_path: Path) -> None:
    """It may belong to the selected ranks; the number of ranks of the job stays the same."""
    (tmp_path / "job.log").write_text(LOG.replace("[rank1]: ", ""))
    _, out, _ = command("timeline", str(tmp_path), "--rank", "0")
    assert "no rank" in out
    assert "ValueError" in out
    assert "2 ranks" in out


def test_a_wide_window_leaves_nothing_out(command: Command, log: Path) -> None:
    """The text then mentions no omitted events."""
    assert "left out" not in command("timeline", str(log), "--around", "1h")[1]


@pytest.mark.parametrize(
    ("text", "expected"), [("90", 90.0), ("30s", 30.0), ("5m", 300.0), ("1.5h", 5400.0), (None, None)]
)
def test_durations(text: str | None, expected: float | None) -> None:
    """Without a unit they are seconds."""
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "m", "-5m", "5 weeks"])
def test_invalid_durations_are_refused(text: str) -> None:
    """The hint shows what to write instead."""
    with pytest.raises(OptionError, match="not a duration"):
        parse_duration(text)


def test_hosts_in_other_zones_and_ranks_that_fell_silent(command: Command, tmp_path: Path) -> None:
    """All times are shown by one clock; a note names the time zone and the silent rank."""
    job = SAMPLES / "nccl_rank_missing_two_nodes" / "job"
    (tmp_path / "node1.log").write_text((job / "node1.log").read_text())
    (tmp_path / "node2.log").write_text(
        (job / "node2.log").read_text().replace("-05 00:", "-05 01:").replace("0305 00:", "0305 01:")
    )
    bare, shifted = (command("timeline", str(path), "--width", "200")[1] for path in (job, tmp_path))
    assert shifted.splitlines()[1:-4] == bare.splitlines()[1:-2]
    assert "times are shown by the clock of node1" in shifted
    assert "3600 s" in shifted
    assert (
        shifted.splitlines()[-1]
        == bare.splitlines()[-1]
        == "Rank 6 went silent 600 s before the others (last step 12)."
    )
