"""triage.cli.timeline"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from triage.base.errors import OptionError
from triage.cli.options import seconds

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
    """No line is longer than asked for, and nothing in it steers the terminal."""
    status, out, err = command("timeline", str(log), "--width", width)
    assert (status, err) == (0, "")
    assert max(map(len, out.splitlines())) <= int(width)
    assert "\x1b" not in out
    assert "ValueError" in out
    assert "last line" in out


def test_json_says_the_same(command: Command, log: Path) -> None:
    """Times in UTC, ranks as lists."""
    status, out, _ = command("timeline", str(log), "--format", "json", "--rank", "1")
    told = json.loads(out)
    assert (status, told["schema"]) == (0, "triage.timeline/1")
    assert {rank for event in told["events"] for rank in event["ranks"]} == {1}
    assert [state["rank"] for state in told["ranks"]] == [1]
    assert any(event["text"].startswith("ValueError") for event in told["events"])


def test_a_time_that_is_only_the_earliest_is_marked(command: Command, log: Path) -> None:
    """The traceback has no stamp: it came with or after the line before it. Whole seconds are not shown as more."""
    _, out, _ = command("timeline", str(log))
    assert "\n03:00:08+ " in out
    assert "+: without a stamp" in out
    told = json.loads(command("timeline", str(log), "--format", "json")[1])
    assert [event["or_later"] for event in told["events"] if event["what"] == "failure"] == [True]


def test_a_cause_of_which_no_rank_is_known_stays(command: Command, tmp_path: Path) -> None:
    """It may be that of the ranks asked for; how many ranks the job has does not depend on those."""
    (tmp_path / "job.log").write_text(LOG.replace("[rank1]: ", ""))
    _, out, _ = command("timeline", str(tmp_path), "--rank", "0")
    assert "nobody named" in out
    assert "ValueError" in out
    assert "2 ranks" in out


def test_a_window_leaves_out_what_is_far(command: Command, log: Path) -> None:
    """And says how much."""
    assert "left out" not in command("timeline", str(log), "--around", "1h")[1]


@pytest.mark.parametrize(
    ("text", "expected"), [("90", 90.0), ("30s", 30.0), ("5m", 300.0), ("1.5h", 5400.0), (None, None)]
)
def test_times(text: str | None, expected: float | None) -> None:
    """Seconds without a unit."""
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "m", "-5m", "5 weeks"])
def test_other_times_are_refused(text: str) -> None:
    """With what to write instead."""
    with pytest.raises(OptionError, match="no time"):
        seconds(text)


def test_hosts_in_other_zones_and_ranks_that_fell_silent(command: Command, tmp_path: Path) -> None:
    """Times are told by one clock, last lines too, and what the reader must know of it is said."""
    job = SAMPLES / "nccl_rank_missing_two_nodes" / "job"
    (tmp_path / "node1.log").write_text((job / "node1.log").read_text())
    (tmp_path / "node2.log").write_text(
        (job / "node2.log").read_text().replace("-05 00:", "-05 01:").replace("0305 00:", "0305 01:")
    )
    bare, shifted = (command("timeline", str(path), "--width", "200")[1] for path in (job, tmp_path))
    assert shifted.splitlines()[1:-4] == bare.splitlines()[1:-2]
    assert "stamps of node2 are 3600 s ahead of those of node1 (another time zone)" in shifted
    assert (
        shifted.splitlines()[-1]
        == bare.splitlines()[-1]
        == "Wrote nothing any more before the others' last lines: rank 6 600 s (step 12)."
    )
