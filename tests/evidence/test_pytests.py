"""What pytest really prints when tests fail, as a CI job keeps it: read as failures, each with its exception, test and
place.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import triage
from triage.model.diagnosis import Diagnosis
from triage.model.evidence import Evidence

TESTS = """
import pytest


def disagree(count):
    raise RuntimeError(f"ranks disagree about {count} buckets")


def test_well():
    pass


class TestReduce:
    @pytest.mark.parametrize("count", [3])
    def test_large(self, count):
        try:
            {}["a"]
        except KeyError as error:
            raise ValueError("no such bucket") from error

    def test_sum(self):
        assert 3 == 4, "sums differ"


def test_helper():
    disagree(3)


@pytest.fixture
def broken():
    raise OSError(28, "No space left on device")


def test_setup(broken):
    pass


@pytest.mark.xfail
def test_expected():
    assert False


@pytest.mark.skip
def test_skipped():
    pass
"""


def run(where: Path, text: str, *options: str, stamped: bool = True) -> Path:
    """The log of such a run, as GitHub's runner stamps it."""
    where.mkdir(exist_ok=True)
    (where / "test_it.py").write_text(text, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
        "--rootdir",
        str(where),
        "test_it.py",
        *options,
    ]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    lines = ["##[group]Run pytest", "pytest", "##[endgroup]", *done.stdout.splitlines()]
    lines += [f"##[error]Process completed with exit code {done.returncode}."] if done.returncode else []
    stamps = (
        f"2026-11-20T09:12:{number // 60:02}.{number % 60:02}34567Z " if stamped else "" for number in range(len(lines))
    )
    log = where / "run.log"
    log.write_text("".join(f"{stamp}{line}\n" for stamp, line in zip(stamps, lines, strict=True)), encoding="utf-8")
    return log


def facts(diagnosis: Diagnosis) -> dict[str, Evidence]:
    """Return the evidence of all findings by its text."""
    findings = [*diagnosis.findings, *diagnosis.unknown, *([diagnosis.root_cause] if diagnosis.root_cause else [])]
    return {fact.text.split("\n")[0]: fact for finding in findings for fact in finding.evidence}


@pytest.mark.parametrize("stamped", [True, False])
def test_each_failure_is_found_at_its_line(tmp_path: Path, stamped: bool) -> None:
    """Exceptions, assertions, parameters, classes and fixtures; what was expected or skipped is no failure."""
    log = run(tmp_path / "job", TESTS, stamped=stamped)
    diagnosis = triage.ingest(log)
    exceptions = facts(diagnosis)
    lines = log.read_text(encoding="utf-8").splitlines()
    assert diagnosis.verdict != "clean"
    assert {
        "ValueError: no such bucket",
        "AssertionError: sums differ",
        "RuntimeError: ranks disagree about 3 buckets",
        "OSError: [Errno 28] No space left on device",
    } <= set(exceptions)
    assert not [text for text in exceptions if "expected" in text or "KeyError" in text]
    for text, fact in exceptions.items():
        assert fact.line is not None
        assert text.split(": ", 1)[1] in lines[fact.line - 1]
    assert exceptions["RuntimeError: ranks disagree about 3 buckets"].fields["test"] == "test_it.py::test_helper"
    place = exceptions["RuntimeError: ranks disagree about 3 buckets"].fields
    assert TESTS.splitlines()[int(place["line"]) - 1].strip().startswith("raise RuntimeError")
    assert exceptions["ValueError: no such bucket"].fields["test"] == "test_it.py::TestReduce::test_large[3]"
    assert (exceptions["AssertionError: sums differ"].origin.time is not None) is stamped


def test_files_that_cannot_be_collected(tmp_path: Path) -> None:
    """An import that fails stops the run."""
    diagnosis = triage.ingest(run(tmp_path / "job", "import nothing_of_this_name\n"))
    assert any("nothing_of_this_name" in text for text in facts(diagnosis))


def test_a_run_that_is_well_is_clean(tmp_path: Path) -> None:
    """Also with a summary of what was skipped and expected."""
    well = "\n".join(
        TESTS.replace("disagree(3)", "pass")
        .replace("assert 3 == 4", "assert True")
        .replace('{}["a"]', "pass")
        .splitlines()
    )
    diagnosis = triage.ingest(
        run(tmp_path / "job", well.replace('raise OSError(28, "No space left on device")', "return 1"), "-rA")
    )
    assert diagnosis.verdict == "clean"


def test_a_summary_alone_will_do(tmp_path: Path) -> None:
    """With --tb=no there is nothing but the summary."""
    exceptions = facts(triage.ingest(run(tmp_path / "job", TESTS, "--tb=no")))
    assert any(text.startswith("RuntimeError: ranks disagree") for text in exceptions)
