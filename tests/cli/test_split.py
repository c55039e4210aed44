"""`triage split` on small logs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from triage.base.errors import OptionError
from triage.cli.options import parse_ranks

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "job.log"
    path.write_text("starting\n" + "".join(f"[default{number % 4}]:step {number}\n" for number in range(40)))
    return path


def test_the_summary_goes_to_standard_error(command: Command, log: Path, tmp_path: Path) -> None:
    """Standard output stays empty, and lines without a writer are counted."""
    status, out, err = command("split", str(log), "-o", str(tmp_path / "out"))
    assert (status, out) == (0, "")
    assert "41 lines" in err
    assert "4 ranks, 40 lines" in err
    assert "nobody.log: 1 line\n" in err
    assert (tmp_path / "out" / "rank_3.log").read_text().startswith("step 3\nstep 7\n")


def test_the_summary_as_json_adds_up(command: Command, log: Path, tmp_path: Path) -> None:
    """The lines read are the lines written plus the lines left out."""
    status, out, err = command("split", str(log), "-o", str(tmp_path / "out"), "--rank", "1-2", "--format", "json")
    assert (status, err) == (0, "")
    summary = json.loads(out)
    assert summary["schema"] == "triage.split/1"
    assert [file["rank"] for file in summary["files"]] == [1, 2]
    assert summary["lines"] == sum(file["lines"] for file in summary["files"]) + summary["left_out"] == 41


def test_quiet_prints_no_summary(command: Command, log: Path, tmp_path: Path) -> None:
    """Both streams stay empty."""
    assert command("split", str(log), "-o", str(tmp_path / "out"), "-q") == (0, "", "")


def test_a_directory_with_files_is_refused(command: Command, log: Path, tmp_path: Path) -> None:
    """The error names --force."""
    status, _, err = command("split", str(log), "-o", str(tmp_path))
    assert status == 2
    assert "not empty" in err
    assert "--force" in err
    assert command("split", str(log), "-o", str(tmp_path), "--force")[0] == 0
    assert log.exists()


def test_programs_are_left_out(command: Command, log: Path, tmp_path: Path) -> None:
    """Like in ingest, a warning names them."""
    (tmp_path / "in").mkdir()
    log.rename(tmp_path / "in" / "job.log")
    (tmp_path / "in" / "train.py").write_text("print('[default0]:step 1')\n")
    _, _, err = command("split", str(tmp_path / "in"), "-o", str(tmp_path / "out"))
    assert "train.py" in err
    assert "41 lines" in err


def test_a_missing_path_is_an_error(command: Command, tmp_path: Path) -> None:
    """No directory is created."""
    assert command("split", str(tmp_path / "no"), "-o", str(tmp_path / "out"))[0] == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "expected"), [("3", {3}), ("3,5-7", {3, 5, 6, 7}), (" 1 - 2 , 9", {1, 2, 9}), (None, None)]
)
def test_ranks_are_numbers_and_ranges(text: str | None, expected: set[int] | None) -> None:
    """They are written like page numbers."""
    assert parse_ranks(text) == expected


@pytest.mark.parametrize("text", ["", "x", "7-5", "-1", "1,,2"])
def test_invalid_ranks_are_refused(text: str) -> None:
    """The hint shows what to write instead."""
    with pytest.raises(OptionError, match="not a list of ranks"):
        parse_ranks(text)
