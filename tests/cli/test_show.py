from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from triage.render import NAMES, json, render

from .factories import diagnosis

Command = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_report_in_every_format(command: Command, report: Path, name: str) -> None:
    """The output equals that of rendering the diagnosis directly."""
    assert command("show", report, "--format", name) == (0, render(diagnosis(), name), "")


def test_standard_input(command: Command, report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads the report from a pipe."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(report.read_bytes())))
    assert command("show", "-")[1].startswith("ROOT CAUSE")


def test_a_broken_report_names_the_file_and_the_line(command: Command, tmp_path: Path) -> None:
    """The exit status is 2, and a hint says what to give."""
    path = tmp_path / "r.json"
    path.write_text('{\n"schema": oops}')
    status, out, err = command("show", path)
    assert (status, out) == (2, "")
    assert err.startswith(f"triage: {path}:2: not JSON")
    assert "  try: " in err


@pytest.mark.parametrize(("content", "expected"), [(None, "No such file"), (b"\xff\xfe", "not UTF-8")])
def test_an_unreadable_report(command: Command, tmp_path: Path, content: bytes | None, expected: str) -> None:
    """A missing file and a binary file give one sentence each."""
    path = tmp_path / "r.json"
    if content is not None:
        path.write_bytes(content)
    status, _, err = command("show", path)
    assert status == 2
    assert expected in err


def test_width_and_colour(command: Command, report: Path) -> None:
    """--width and --color apply to any standard output."""
    _, out, _ = command("show", report, "--width", 60, "--color", "always")
    assert "\x1b[1;31mROOT CAUSE\x1b[0m" in out
    assert out != command("show", report, "--color", "always")[1]


@pytest.mark.parametrize(
    ("environment", "colour"),
    [
        ({}, False),
        ({"CLICOLOR_FORCE": "1"}, True),
        ({"CLICOLOR_FORCE": "0"}, False),
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False),
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": ""}, True),
    ],
)
def test_colour_of_the_environment(
    command: Command, report: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], colour: bool
) -> None:
    """NO_COLOR wins over CLICOLOR_FORCE; a pipe has no colour unless forced."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in command("show", report)[1]) is colour


@pytest.mark.parametrize(
    ("environment", "colour"),
    [({}, True), ({"CLICOLOR": "0"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1"}, False)],
)
def test_colour_of_a_terminal(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], colour: bool) -> None:
    """A terminal has colour unless the environment forbids it."""
    from triage.cli import streams

    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(streams, "is_terminal", lambda stream: True)
    assert streams.use_color("auto", None) is colour
    assert streams.use_color("auto", Path("file")) is False


def test_the_report_reads_back(command: Command, report: Path) -> None:
    """The output of `show --format json` is a report again."""
    assert json.read(command("show", report, "--format", "json")[1]) == diagnosis()
