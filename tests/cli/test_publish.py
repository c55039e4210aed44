from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from triage.cli.publish import FormatOption
from triage.render.graph import WRITERS

Command = Callable[..., tuple[int, str, str]]


def test_graph_is_svg_or_dot(command: Command, tmp_path: Path) -> None:
    """Standard output and a file get the same graph."""
    status, out, err = command("catalog", "graph")
    assert (status, err) == (0, "")
    assert ElementTree.fromstring(out).tag.endswith("svg")
    command("catalog", "graph", "-o", tmp_path / "g.svg")
    assert (tmp_path / "g.svg").read_text(encoding="utf-8") == out
    assert command("catalog", "graph", "--format", "dot")[1].startswith("digraph triage {\n")


def test_graph_of_one_signature_is_smaller(command: Command) -> None:
    """It has only the neighbours; `--all` also has implied edges."""
    one = command("catalog", "graph", "-f", "dot", "-s", "host.oom-killer")[1]
    whole, everything = (
        command("catalog", "graph", "-f", "dot")[1],
        command("catalog", "graph", "-f", "dot", "--all")[1],
    )
    assert 3 < len(one.splitlines()) < len(whole.splitlines()) < len(everything.splitlines())
    assert all("host.oom-killer" in line for line in one.splitlines() if "->" in line)


def test_graph_of_an_unknown_signature_is_refused(command: Command) -> None:
    """The error suggests a similar id."""
    status, _, err = command("catalog", "graph", "-s", "host.oom-kiler")
    assert status == 2
    assert "host.oom-killer" in err


def test_every_graph_format_has_a_writer() -> None:
    """The values of the option are the names of the writers."""
    assert set(get_args(get_args(FormatOption)[0])) == set(WRITERS)


def test_docs_are_written_and_checked(command: Command, tmp_path: Path) -> None:
    """--check gives 1 before and 0 after the pages are written, and writes nothing."""
    status, out, _ = command("catalog", "docs", "-o", tmp_path / "d", "--check")
    assert status == 1
    assert "cuda.out-of-memory.md is out of date" in out
    assert not (tmp_path / "d").exists()
    assert command("catalog", "docs", "-o", tmp_path / "d")[0] == 0
    assert (tmp_path / "d" / "cuda.out-of-memory.md").is_file()
    assert command("catalog", "docs", "-o", tmp_path / "d", "--check")[0] == 0


def test_docs_refuse_a_file_as_directory(command: Command, tmp_path: Path) -> None:
    """The exit status is 2, with a hint."""
    (tmp_path / "d").write_text("", encoding="utf-8")
    status, _, err = command("catalog", "docs", "-o", tmp_path / "d")
    assert status == 2
    assert "try: " in err
