from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .test_catalog import SIGNATURE

Command = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).resolve().parents[2]
LOG = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/user/train.py", line 3, in <module>
[rank1]:     run()
[rank1]: RuntimeError: the number 13 is cursed
[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB
"""


@pytest.fixture
def signature_file(tmp_path: Path) -> Path:
    """A signature file, and a log that it matches."""
    path = tmp_path / "my" / "cursed.yaml"
    path.parent.mkdir()
    path.write_text(SIGNATURE, encoding="utf-8")
    (tmp_path / "job.log").write_text(LOG, encoding="utf-8")
    return path


def test_new_writes_where_it_says(command: Command, tmp_path: Path) -> None:
    """The first line of the output is the path of the new file."""
    status, out, _ = command(
        "catalog", "new", "my.mode", "--title", "It broke", "--role", "symptom", "-d", tmp_path / "s"
    )
    assert status == 0
    path = Path(out.splitlines()[0])
    assert path == tmp_path / "s" / "my" / "mode.yaml"
    text = path.read_text(encoding="utf-8")
    assert "title: It broke" in text
    assert "role: symptom" in text


@pytest.mark.parametrize("identifier", ["cuda.out-of-memory", "No.no", "nodomain"])
def test_new_refuses_with_a_hint(command: Command, tmp_path: Path, identifier: str) -> None:
    """Existing and invalid ids give status 2 and a hint."""
    status, _, err = command("catalog", "new", identifier, "-d", tmp_path)
    assert status == 2
    assert "try: " in err
    assert list(tmp_path.iterdir()) == []


def test_explain_shows_the_result_of_each_sample(command: Command, signature_file: Path) -> None:
    """It shows the scanned literals, the parsed samples, and the matching clause with its captures."""
    status, out, err = command("catalog", "explain", signature_file)
    assert (status, err) == (0, "")
    text = " ".join(out.split())
    assert "the scan stops at 'the number '" in text or "the scan stops at ' is cursed'" in text
    assert "samples.match.0 matches, as it must message of app: the number 7 is cursed holds, 1×" in text
    assert "number = 7" in text
    assert "samples.no_match.0 does not match, as it must" in text


def test_explain_shows_what_fails(command: Command, signature_file: Path) -> None:
    """A sample with an unexpected result shows all clauses and gives status 1."""
    signature_file.write_text(
        SIGNATURE.replace('text: "the number 7 is cursed"', 'text: "the number 7 is blessed"'), encoding="utf-8"
    )
    status, out, _ = command("catalog", "explain", signature_file)
    assert status == 1
    assert "samples.match.0  does not match, and must" in out
    assert "fails, 0×: text /the number" in out


def test_explain_of_a_row_as_json(command: Command) -> None:
    """A row of a table is found by its id, with its edges."""
    status, out, _ = command("catalog", "explain", "gpu.xid-79", "--format", "json")
    document = json.loads(out)
    assert (status, document["signature"], document["path"].endswith("xid.yaml")) == (0, "gpu.xid-79", True)
    assert document["looks_for"][0]["literals"]
    assert all(sample["must_match"] == sample["matches"] for sample in document["samples"])
    assert {"signature": "nccl.remote-error", "scope": "any-rank", "window_s": None} in document["explains"]
    assert command("catalog", "explain", document["path"])[0] == 2  # the whole table is too much: a row must be named


def test_new_refuses_an_id_that_another_file_has(command: Command, signature_file: Path) -> None:
    """The file may lie anywhere in the directory."""
    signature_file.rename(signature_file.with_name("elsewhere.yaml"))
    status, _, err = command("catalog", "new", "my.cursed", "-d", signature_file.parents[1])
    assert (status, "already used" in err) == (2, True)


def test_test_shows_lines_and_captures(command: Command, signature_file: Path) -> None:
    """The output has file and line of the evidence, the captures, and other matches."""
    log = signature_file.parents[1] / "job.log"
    status, out, _ = command("catalog", "test", log, "--signature", signature_file, "--width", 1000)
    assert status == 0
    assert out.startswith("MATCH ")
    for part in (
        "job.log:4 (rank 1), exception of Python",
        "number = 13",
        "cuda.out-of-memory (cause, 1×)",
        "job.log:5",
    ):
        assert part in out


def test_test_as_json(command: Command, signature_file: Path) -> None:
    """JSON has the hits and the other matches."""
    out = command("catalog", "test", signature_file.parents[1] / "job.log", "-s", signature_file, "--format", "json")[1]
    document = json.loads(out)
    assert document["schema"] == "triage.trial/1"
    assert (document["matched"], document["signature"]) == (True, "my.cursed")
    (hit,) = document["hits"]
    assert (hit["line"], hit["rank"], hit["component"], hit["captures"]) == (4, 1, "Python", {"number": "13"})
    assert [played["signature"] for played in document["also_matched"]] == ["cuda.out-of-memory"]


def test_test_exits_with_1_when_the_named_one_does_not_match(command: Command, signature_file: Path) -> None:
    """The output has the failed condition."""
    log = signature_file.parents[1] / "job.log"
    signature_file.write_text(SIGNATURE.replace("'the number ", "'the number x "), encoding="utf-8")
    status, out, _ = command("catalog", "test", log, "-s", signature_file)
    assert status == 1
    assert out.startswith("NO MATCH ")
    assert "fails, 0×" in out
    assert json.loads(command("catalog", "test", log, "-s", signature_file, "-f", "json")[1])["matched"] is False


def test_test_shows_near_misses(command: Command, signature_file: Path) -> None:
    """A line with the literal that does not match is shown."""
    log = signature_file.parents[1] / "near.log"
    log.write_text(LOG.replace("the number 13", "the number thirteen"), encoding="utf-8")
    status, out, _ = command("catalog", "test", log, "-s", signature_file)
    assert status == 1
    assert "Near misses" in out
    assert "thirteen" in out


def test_test_by_id_and_of_all(command: Command, signature_file: Path) -> None:
    """A shipped signature is found by its id; without one, all matches are shown with status 0."""
    log = signature_file.parents[1] / "job.log"
    assert command("catalog", "test", log, "-s", "cuda.out-of-memory")[0] == 0
    assert command("catalog", "test", log, "-s", "host.sigkill")[0] == 1
    status, out, _ = command("catalog", "test", log, "--catalog", signature_file.parents[1])
    assert status == 0
    assert "2 signatures matched" in out
    log.write_text("all is well\n", encoding="utf-8")
    assert command("catalog", "test", log)[:2] == (0, "RESULT       no signature matches this log\n")


@pytest.mark.parametrize("name", ["cuda.out-of-memori", "missing.yaml", "broken.yaml"])
def test_test_refuses_an_invalid_signature(
    command: Command, signature_file: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """An unknown id, a missing file and a file with errors give status 2 and the reason."""
    monkeypatch.chdir(signature_file.parents[1])
    Path("broken.yaml").write_text("id: [\n", encoding="utf-8")
    status, out, err = command("catalog", "test", "job.log", "-s", name)
    assert (status, out) == (2, "")
    assert name in err or "did you mean" in err


def test_test_refuses_standard_input(command: Command) -> None:
    """It can be read only once; the hint says what to do instead."""
    status, _, err = command("catalog", "test", "-", "-s", "cuda.out-of-memory")
    assert status == 2
    assert "write it to a file" in err


def test_log_text_is_shown_without_control_characters(command: Command, signature_file: Path) -> None:
    """Escape sequences of a log and of its name are removed."""
    log = signature_file.parents[1] / "x\x1b[2J.log"
    log.write_text(LOG.replace("the number 13 is cursed", "the number 13 is cursed\x1b]0;title\x07"), encoding="utf-8")
    for arguments in (("test", log, "-s", signature_file), ("rate", signature_file.parents[1])):
        assert "\x1b" not in command("catalog", *arguments)[1]


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """Two jobs: a known one that agrees with its truth, and an unknown one."""
    directory = tmp_path / "jobs"
    (directory / "known" / "job").mkdir(parents=True)
    (directory / "known" / "job" / "a.log").write_text(LOG.splitlines(keepends=True)[-1], encoding="utf-8")
    (directory / "known" / "TRUTH.yaml").write_text(
        "verdict: known\nroot: [cuda.out-of-memory]\nroot_ranks: [2]\n", encoding="utf-8"
    )
    (directory / "new.log").write_text("".join(LOG.splitlines(keepends=True)[:4]), encoding="utf-8")
    return directory


def test_rate_counts_and_names(command: Command, jobs: Path) -> None:
    """It shows totals, agreement, the matched signature, and the unknown job with its line."""
    status, out, _ = command("catalog", "rate", jobs)
    assert status == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "Jobs 2: 1 known, 1 unknown, 0 inconclusive, 0 clean" in lines
    assert "Truth 1 of 1 agree" in lines
    assert "cuda.out-of-memory 1 1" in lines
    assert any(
        line.startswith("new.log u-") and line.endswith("RuntimeError: the number 13 is cursed") for line in lines
    )


def test_rate_as_json(command: Command, jobs: Path) -> None:
    """JSON has the same totals and results."""
    document = json.loads(command("catalog", "rate", jobs, "-f", "json")[1])
    assert (document["schema"], document["jobs"]) == ("triage.rating/1", 2)
    assert document["verdicts"] == {"known": 1, "unknown": 1, "inconclusive": 0, "clean": 0, "unreadable": 0}
    assert document["truth"] == {"judged": 1, "agree": 1, "disagree": 0}
    assert [(job["job"], job["agrees"]) for job in document["results"]] == [("known", True), ("new.log", None)]


def test_rate_uses_the_given_catalog(command: Command, jobs: Path, signature_file: Path) -> None:
    """With the user's signature the unknown job is known."""
    out = command("catalog", "rate", jobs, "--catalog", signature_file, "-f", "json")[1]
    assert json.loads(out)["verdicts"]["known"] == 2


def test_rate_strict_fails_on_a_disagreement(command: Command, jobs: Path) -> None:
    """The text names the expected and the actual root."""
    assert command("catalog", "rate", jobs, "--strict")[0] == 0
    (jobs / "known" / "TRUTH.yaml").write_text("verdict: known\nroot: [host.sigkill]\n", encoding="utf-8")
    assert command("catalog", "rate", jobs)[0] == 0
    status, out, _ = command("catalog", "rate", jobs, "--strict")
    assert status == 1
    assert "the root is cuda.out-of-memory, not host.sigkill" in " ".join(out.split())


def test_rate_without_jobs_is_refused(command: Command, tmp_path: Path) -> None:
    """An empty or missing directory gives status 2."""
    assert command("catalog", "rate", tmp_path)[0] == 2
    assert command("catalog", "rate", tmp_path / "missing")[0] == 2


def test_other_commands_do_not_load_these_modules() -> None:
    """`triage ingest --help` imports neither the modules of these commands nor what they need."""
    prefixes = ("triage.cli.contribute", "triage.cli.publish", "triage.render")
    code = (
        "import contextlib, io, sys, triage.cli\n"
        "with contextlib.redirect_stdout(io.StringIO()): triage.cli.main(['ingest', '--help'])\n"
        f"print(*(name for name in sys.modules if name.startswith({prefixes})))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout.split() == []
