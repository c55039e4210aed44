"""The steps of docs/contributing-signatures.md work as written: its log, its files, its commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from triage.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "contributing-signatures.md").read_text(encoding="utf-8")
SIGNATURE = Path("signatures/data/shard-unfinished.yaml")


def section(number: int) -> str:
    """Return the text of one step."""
    match = re.search(rf"^## {number}\. .*?(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert match
    return match[0]


def blocks(number: int, language: str) -> list[str]:
    """Return the fenced blocks of a language in one step."""
    return re.findall(rf"^```{language}\n(.*?)^```", section(number), re.MULTILINE | re.DOTALL)


def commands(number: int) -> list[list[str]]:
    """Return the command lines of one step, without `$ triage`."""
    lines = [line for block in blocks(number, "console") for line in block.splitlines()]
    assert all(line.startswith("$ triage ") for line in lines), lines
    return [shlex.split(line)[2:] for line in lines]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the log of step 1 and a directory of other jobs, one of them healthy; return the log."""
    monkeypatch.chdir(tmp_path)
    path = Path("job.log")
    path.write_text("step 1 loss 2.1\n" + blocks(1, "text")[0], encoding="utf-8")
    Path("jobs").mkdir()
    Path("jobs/healthy.log").write_text("step 1 loss 2.1\ntraining finished\n", encoding="utf-8")
    Path("jobs/new.log").write_bytes(path.read_bytes())
    return path


def test_the_steps_work_as_written(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command gives the result the page shows: unknown, written, refused for this reason, checked, known."""

    def run(arguments: list[str]) -> tuple[int, str]:
        capsys.readouterr()
        status = main(arguments)
        return status, capsys.readouterr().out

    (ingest,) = commands(1)
    assert run(ingest)[1].startswith("UNKNOWN FAILURE")
    (new,) = commands(2)
    assert run(new)[0] == 0
    assert SIGNATURE.is_file()
    assert run(["catalog", "check", str(SIGNATURE)])[0] == 1
    (filled,) = blocks(3, "yaml")
    SIGNATURE.write_text(filled, encoding="utf-8")

    first, explained, *rest = commands(4)
    status, out = run(first)
    assert status == 1
    assert "samples.no_match.0  matches, and must not" in run(explained)[1]
    assert blocks(4, "text")[0].strip() in out
    (pattern,) = re.findall(r"So narrow the pattern: `('.*?')`", section(4))
    SIGNATURE.write_text(re.sub(r"text: 'shard .*'", lambda _: f"text: {pattern}", filled, count=1), encoding="utf-8")
    checked, tried = [run(arguments) for arguments in rest]
    assert checked == (0, "no problems found\n")
    assert tried[0] == 0
    assert "shard = 7" in tried[1]

    known, rated, drawn = [run(arguments) for arguments in commands(5)]
    assert known[1].startswith("ROOT CAUSE")
    assert "1 known, 0 unknown, 0 inconclusive, 1 clean" in rated[1]
    assert drawn[0] == 0
    assert "data.shard-unfinished" in Path("shard.svg").read_text(encoding="utf-8")


def test_every_step_is_tested() -> None:
    """Every step with a console block is run by the test above."""
    steps = [int(number) for number in re.findall(r"^## (\d+)\.", PAGE, re.MULTILINE)]
    assert steps == list(range(1, 7))
    assert [number for number in steps if blocks(number, "console")] == [1, 2, 4, 5]


@pytest.mark.skipif(not (ROOT / ".github").is_dir(), reason="the workflow lies in the repository only")
def test_the_workflow_runs_commands_that_exist() -> None:
    """.github/workflows/catalog.yml uses existing commands and options of `triage`, and names no registry."""
    text = (ROOT / ".github" / "workflows" / "catalog.yml").read_text(encoding="utf-8")
    lines = re.findall(r"^\s*(?:- )?(?:run: )?triage (catalog [a-z]+)(.*)$", text, re.MULTILINE)
    assert {command for command, _ in lines} == {
        "catalog check",
        "catalog docs",
        "catalog rate",
        "catalog graph",
        "catalog mutate",
    }
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for command, rest in lines:
        (table,) = re.findall(rf"^## `triage {command}.*?`\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
        assert [option for option in re.findall(r"(?<= )--?[a-z-]+", rest) if f"`{option}`" not in table] == []
    assert "index-url" not in text


@pytest.mark.skipif(not (ROOT / ".github").is_dir(), reason="the template lies in the repository only")
def test_the_pull_request_template_names_the_required_checks() -> None:
    """The template names the commands of step 6 and links to the page."""
    text = (ROOT / ".github" / "pull_request_template.md").read_text(encoding="utf-8")
    assert {"make docs", "make test", "triage catalog check"} <= set(re.findall(r"`([a-z ]+)`", text))
    assert "docs/contributing-signatures.md" in text
