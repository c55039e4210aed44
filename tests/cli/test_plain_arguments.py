"""triage.cli.plain_arguments"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from triage.base.errors import TriageError
from triage.cli import app, ingest_job
from triage.cli.plain_arguments import parse_ingest

TOKENS = (
    *("-q", "--quiet", "--no-store", "-f", "--format", "--fail-on", "--color", "-o", "--output", "--store", "--notify"),
    *("json", "text", "any", "never", "job/", "a.log", "-", "--", "", "--format=json", "-qf", "-fjson", "--help", "-x"),
    *("--workers", "3", "--no-stor", "ingest", "=", "-o-"),
)


def parse_with_typer(arguments: list[str]) -> dict[str, Any] | None:
    """Return what typer gives to `ingest_job`, or None if it reports an error or shows help."""
    calls: list[dict[str, Any]] = []

    def record(paths: list[str], **named: Any) -> int:
        calls.append({"paths": paths, **named})
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest_job, "ingest_job", record)
        try:
            app.run(arguments)
        except (TriageError, SystemExit):
            return None
        except Exception as error:
            if not hasattr(error, "format_message"):  # a usage error of typer; its class moved between releases
                raise
            return None
    return calls[0] if calls else None


def with_defaults(parsed: dict[str, Any]) -> dict[str, Any]:
    defaults = ingest_job.ingest_job.__kwdefaults__ or {}
    return {**defaults, **parsed}


@given(st.lists(st.sampled_from(TOKENS), max_size=6))
def test_typer_reads_the_same(tokens: list[str]) -> None:
    """Whatever is read without typer, typer reads alike: values, types, defaults and the order of paths."""
    parsed = parse_ingest(["ingest", *tokens])
    if parsed is not None:
        assert with_defaults(parsed) == parse_with_typer(["ingest", *tokens])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ingest a -q b", {"paths": ["a", "b"], "quiet": True}),
        ("ingest - --no-store", {"paths": ["-"], "no_store": True}),
        ("ingest a -f json -o out", {"paths": ["a"], "format": "json", "output": Path("out")}),
        ("ingest a -o - --fail-on any", {"paths": ["a"], "output": Path("-"), "fail_on": "any"}),
        ("ingest a --store s --color never", {"paths": ["a"], "store": "s", "color": "never"}),
        ("ingest a -f json --format text", {"paths": ["a"], "format": "text"}),
    ],
)
def test_plain_lines_need_no_typer(line: str, expected: dict[str, Any]) -> None:
    """Paths, switches, files and choices are read."""
    assert parse_ingest(line.split()) == expected


@pytest.mark.parametrize(
    "line",
    [
        *("", "ingest", "show a", "ingest -q", "ingest --help", "ingest a --help", "ingest a -f", "ingest a -f xml"),
        *("ingest a -x", "ingest a --format=json", "ingest a -qo x", "ingest -- -q", "ingest a --workers 2"),
        *("ingest a --fail-on clean", "ingest a -o -q", "ingest a -o", "--version"),
    ],
)
def test_everything_else_is_left_to_typer(line: str) -> None:
    """Help, errors, and what is written in another way are not read here."""
    assert parse_ingest(line.split()) is None


def test_an_empty_value_is_left_to_typer() -> None:
    """An empty path or value is no plain argument."""
    assert parse_ingest(["ingest", ""]) is None
    assert parse_ingest(["ingest", "a", "-o", ""]) is None


def test_completion_is_left_to_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a shell completes a line, nothing is diagnosed."""
    monkeypatch.setenv("_TRIAGE_COMPLETE", "complete_bash")
    assert parse_ingest(["ingest", "a"]) is None
