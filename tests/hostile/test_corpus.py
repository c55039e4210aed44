"""The corpus at a reduced size; `make hostile` diagnoses it at its full size."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.hostile.build import CASES, build_job, good_log
from tests.hostile.catalogs import CASES as CATALOGS
from tests.hostile.model import HostileCase
from tests.hostile.requests import CASES as REQUESTS
from tests.hostile.runner import Result, Runner


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as process:
        yield process


@pytest.fixture(scope="module")
def good() -> bytes:
    return good_log()


@pytest.fixture(scope="module")
def expected(runner: Runner, good: bytes, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The diagnosis of the good log alone."""
    job = tmp_path_factory.mktemp("good")
    (job / "console.log").write_bytes(good)
    return runner.diagnose(job, 60)


def test_the_good_log_has_a_diagnosis(expected: Result) -> None:
    """What must come out of every case is not nothing."""
    assert (expected.answer["signature"], expected.answer["ranks"]) == ("cuda.out-of-memory", [1])
    assert expected.warnings == ()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nothing_is_lost(case: HostileCase, runner: Runner, good: bytes, expected: Result) -> None:
    """The good log gives the same diagnosis, in bounds of time and memory, and a warning names what is not read."""
    with build_job(case, good) as job:
        result = runner.diagnose(job, case.seconds)
    assert (result.outcome, result.error) == ("done", "")
    assert result.answer == expected.answer
    assert result.memory <= case.memory
    assert not case.warning or any(re.search(case.warning, warning) for warning in result.warnings), result.warnings


def test_there_are_enough_classes() -> None:
    """At least sixty classes, each with a name of its own."""
    names = [case.name for case in (*CASES, *CATALOGS, *REQUESTS)]
    assert len(set(names)) == len(names)
    assert len(CASES) >= 60
