from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from triage.cli import values
from triage.render import NAMES

Command = Callable[..., tuple[int, str, str]]
DOCUMENT = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
GROUPS = ("catalog", "clusters", "db", "config", "token", "outbox", "post", "bot")
COMMANDS = (
    "",
    "ingest",
    "show",
    "compare",
    "explain",
    "env",
    "split",
    "timeline",
    "core",
    "flight",
    "repro",
    "bundle",
    "delete",
    *(
        f"catalog {name}"
        for name in (
            "list",
            "show",
            "check",
            "new",
            "explain",
            "test",
            "rate",
            "graph",
            "docs",
            "diff",
            "mutate",
            "schema",
        )
    ),
    *("causes", "list", "search", "similar", "stats", "feedback", "retriage"),
    *(
        f"clusters {name}"
        for name in (
            "list",
            "show",
            "name",
            "assign",
            "merge",
            "split",
            "reject",
            "ignore",
            "reopen",
            "promote",
            "log",
            "undo",
            "rekey",
        )
    ),
    *(f"db {name}" for name in ("check", "vacuum", "retention", "export", "import", "copy", "migrate")),
    "stacks",
    "collect",
    "watch",
    "run",
    "fetch",
    *(f"outbox {name}" for name in ("list", "retry", "drop", "send")),
    *(f"post {name}" for name in ("github", "gitlab", "webhook")),
    "bot slack",
    "mcp",
    "serve",
    "config show",
    *(f"token {name}" for name in ("create", "list", "revoke")),
)


def documented(name: str) -> set[str]:
    """Return the options in the table of a command's section."""
    match = re.search(
        rf"^## `triage{' ' + name if name else ''}(?: [^a-z`]*)?`\n(.*?)(?=^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL
    )
    assert match, f"docs/cli.md has no section for `triage {name}`"
    rows = re.findall(r"^\| (`-.*?) \|", match[1], re.MULTILINE)
    return {option for row in rows for option in re.findall(r"`(-[^`]+)`", row)}


def offered(page: str) -> set[str]:
    """Return the options on a help page."""
    rows = re.findall(r"^  (-\w, )?(--[a-z-]+)", page, re.MULTILINE)
    return {part.strip(" ,") for row in rows for part in row if part}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented_and_exists(command: Command, name: str) -> None:
    """The table of each command and its --help name the same options."""
    status, page, _ = command(*name.split(), "--help")
    assert status == 0
    assert offered(page) == documented(name)


def test_every_command_is_documented(command: Command) -> None:
    """The commands of the help pages are those whose sections the test above compares."""
    names_of_pages = set()
    for group in ("", *GROUPS):
        page = command(*group.split(), "--help")[1]
        names = re.findall(r"^  ([a-z]+)  ", page.partition("Commands:")[2], re.MULTILINE)
        names_of_pages |= {f"{group} {name}".strip() for name in names}
    assert names_of_pages - set(GROUPS) == set(COMMANDS) - {""}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches_with_an_example(command: Command, name: str) -> None:
    """Every page has an example and fits 80 columns."""
    page = command(*name.split(), "--help")[1]
    assert re.search(r"^    .*triage ", page, re.MULTILINE)
    assert max(map(len, page.splitlines())) <= 80


def test_formats_of_help_are_those_of_render() -> None:
    """The list in the options is the list of renderers."""
    assert get_args(values.Format) == NAMES


@pytest.mark.parametrize(
    ("text", "count"), [("1", 1), ("64K", 65536), ("1M", 1 << 20), ("2 MiB", 2 << 20), ("1gb", 1 << 30)]
)
def test_byte_counts(text: str, count: int) -> None:
    """Units are powers of 1024 in either case."""
    assert values.parse_size(text) == count
