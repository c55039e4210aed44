"""What a log line says, behind the head of its logger and without its fields."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.clusters import fingerprint
from triage.clusters.log_record import read_statement
from triage.model.evidence import Evidence, Origin

_ONE_LOSS = (
    '2026-01-02T03:04:05.1Z\tERROR\tdispatch/lease.go:84\tlease lost\t{"lease": "r3", "err": "held by another owner"}',
    'time="2026-01-02T03:04:05Z" level=fatal msg="lease lost: held by another owner" lease=rank-3 owner=n7',
    'time="2026-01-02T03:04:05Z" level=fatal msg="lease lost" error="held by another owner" owner=n7',
    "2026-01-02T03:04:05Z FATAL dispatch::lease: lease lost: held by another owner owner=n7",
    "[dispatch] 2026-01-02T03:04:05Z host=n7 rank=3 FATAL: lease lost: held by another owner",
    "dispatch: fatal: lease lost: held by another owner",
)


@pytest.mark.parametrize("line", _ONE_LOSS)
def test_loggers_write_one_sentence_in_many_layouts(line: str) -> None:
    """Times, levels, places, names and fields are left out; the reason in a field stands behind a colon."""
    assert read_statement(line) == "lease lost: held by another owner"


@pytest.mark.parametrize(
    "line",
    [
        "KeyError: 'layers.61.w2'",
        "CUDA error: invalid argument",
        "/app/launch.sh: line 36: DATA_ROOT: unbound variable",
        "job: /src/pager.cc:61: void Pager::Evict(Page*): Assertion `pins == 0' failed.",
        "srun: error: n7: task 3: Exited with exit code 75",
        "Error: no",
        "rc=74 stage=feeder elapsed=4411s",
    ],
)
def test_what_no_logger_wrote_stays(line: str) -> None:
    """Exceptions, assertions, the shell, launchers and lines without a sentence are as they were."""
    assert read_statement(line) == line


def test_a_field_without_a_sentence_is_no_reason() -> None:
    """`error=7` is a value; `error="bad seal"` says why."""
    assert read_statement("FATAL cannot open volume error=7 volume=v3") == "cannot open volume"
    assert read_statement('FATAL cannot open volume error="bad seal" volume=v3') == "cannot open volume: bad seal"


def test_layouts_of_last_lines_are_one_failure() -> None:
    """All layouts have one key, and another reason has another."""
    keys = {fingerprint(_ending(line)).key for line in _ONE_LOSS}
    assert len(keys) == 1
    assert fingerprint(_ending(_ONE_LOSS[2].replace("held by another owner", "its term is over"))).key not in keys


@given(st.text(max_size=200))
def test_any_line_has_a_statement(line: str) -> None:
    """No line is refused, and none becomes empty."""
    assert bool(read_statement(line)) == bool(line)


def _ending(line: str) -> Evidence:
    return Evidence("ending", "any", line, Origin(), "x.log", 0)
