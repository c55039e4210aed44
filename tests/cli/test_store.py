from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store.making import DAY, NOW, clean, known, unknown
from triage.base.errors import OptionError
from triage.cli import options
from triage.store import Store, migrations

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A store with five incidents; one title is a formula."""
    path = tmp_path / "triage.db"
    with Store.open(path) as store:
        for diagnosis in (
            known("llama", host="node1", rank=3, at=NOW - 2 * DAY),
            known("bert", "host.sigkill", host="node17", at=NOW - DAY),
            known("bert-2", "host.sigkill", host="node17", at=NOW),
            unknown("=gpt", '=HYPERLINK("http://x") \x1b[31m'),
            clean("ok"),
        ):
            store.incidents.add(diagnosis, now=NOW)
    return path


def shown(command: Command, place: Path, *arguments: object) -> dict[str, object]:
    status, out, err = command(*arguments, "--format", "json", "--store", place)
    assert (status, err) == (0, "")
    document: dict[str, object] = json.loads(out)
    return document


def test_list(command: Command, place: Path) -> None:
    """A line an incident, the latest first, with filters; JSON has all of it."""
    status, out, err = command("list", "--store", place, "--width", 120)
    assert (status, err) == (0, "")
    assert len(out.splitlines()) == 6
    assert "\x1b" not in out
    document = shown(command, place, "list", "--host", "node17", "-n", 1)
    assert (document["total"], len(document["incidents"])) == (2, 1)  # type: ignore[arg-type]
    rest = shown(command, place, "list", "--host", "node17", "--after", document["next"])
    assert [item["job_name"] for item in rest["incidents"]] == ["bert"]  # type: ignore[attr-defined]
    assert "no incidents" in command("list", "zebra", "--store", place)[1]


def test_csv_holds_no_formula(command: Command, place: Path) -> None:
    """No cell begins like one, and the table is RFC 4180."""
    out = command("list", "--format", "csv", "--store", place)[1]
    rows = list(csv.reader(io.StringIO(out, newline="")))
    assert len({len(row) for row in rows}) == 1
    assert [cell for row in rows for cell in row if cell[:1] in ("=", "+", "-", "@")] == []
    assert any(cell == '\'=HYPERLINK("http://x")' for row in rows for cell in row)


def test_show_takes_an_incident(command: Command, place: Path) -> None:
    """By id in every format, with what people said below; what is not there is told."""
    identifier = str(shown(command, place, "list", "--host", "node1", "--verdict", "known")["incidents"][0]["id"])  # type: ignore[index]
    command("feedback", identifier, "wrong", "--because", "it was the quota", "--by", "ann", "--store", place)
    status, out, _ = command("show", identifier, "--store", place)
    assert status == 0
    assert out.startswith("ROOT CAUSE")
    assert "it was the quota" in out
    document = shown(command, place, "show", identifier)
    assert document["schema"] == "triage.diagnosis/1"
    assert document["incident"]["feedback"][0]["because"] == "it was the quota"  # type: ignore[index]
    assert command("show", "i-ffffffffffff", "--store", place)[0] == 2


def test_search_names_signatures_and_incidents(command: Command, place: Path) -> None:
    """The catalog's own texts, guides too, and what is stored."""
    document = shown(command, place, "search", "sharding strategy memory")
    assert "fsdp.sharding-strategy" in [item["id"] for item in document["catalog"]]  # type: ignore[attr-defined]
    out = command("search", "allocate", "GiB", "--store", place)[1]
    assert "«allocate»" in out
    assert "nothing has" in command("search", "qqqqzzzz", "--store", place)[1]


def test_similar_and_stats(command: Command, place: Path) -> None:
    """What was done then, and who comes back, in text with bars."""
    one, other = shown(command, place, "list", "--host", "node17")["incidents"]  # type: ignore[misc]
    command("feedback", other["id"], "agree", "-b", "disk replaced", "--store", place)  # type: ignore[index]
    assert "disk replaced" in command("similar", one["id"], "--store", place)[1]  # type: ignore[index]
    out = command("stats", "--store", place)[1]
    assert "Hosts that come back" in out
    assert "█" in out
    assert "node17" in [item["name"] for item in shown(command, place, "stats")["hosts"]]  # type: ignore[attr-defined]
    assert command("stats", "-f", "csv", "--store", place)[1].startswith("by,name,count")


def test_feedback_needs_its_parts(command: Command, place: Path) -> None:
    """A verdict for an incident, and a reason for a wrong one."""
    for arguments in (["i-00"], ["i-00", "wrong"], ["i-00", "agree"]):
        status, _, err = command("feedback", *arguments, "--store", place)
        assert status == 2
        assert "  try: " in err
    assert command("feedback", "--store", place)[1] == "no feedback\n"


def test_rate_counts_what_people_said(command: Command, place: Path) -> None:
    """Catalog authors see which signatures were said to be wrong."""
    one, other = shown(command, place, "list", "--host", "node17")["incidents"]  # type: ignore[misc]
    command("feedback", one["id"], "wrong", "-b", "it was preempted", "--store", place)  # type: ignore[index]
    command("feedback", other["id"], "agree", "--store", place)  # type: ignore[index]
    sample = Path(__file__).parents[2] / "samples" / "jobs" / "segfault_plain"
    document = shown(command, place, "catalog", "rate", sample)
    assert document["feedback"] == [{"said": "host.sigkill", "agree": 1, "wrong": 1}]
    assert "host.sigkill: 1 wrong, 1 right" in command("catalog", "rate", sample, "--store", place)[1]


def test_curation_from_the_command_line(command: Command, place: Path) -> None:
    """Name, ignore, reopen, look, take back; each says how to take it back."""
    (cluster,) = shown(command, place, "clusters", "list")["clusters"]  # type: ignore[misc]
    name = cluster["id"]  # type: ignore[index]
    status, out, _ = command("clusters", "name", name, "A torn link", "--by", "ann", "--store", place)
    assert status == 0
    assert "triage clusters undo 1" in out
    assert "A torn link" in command("clusters", "list", "--store", place)[1]
    assert command("clusters", "ignore", "A torn link", "--store", place)[0] == 0
    assert command("clusters", "list", "--store", place)[1] == "no clusters\n"
    assert command("clusters", "reopen", name, "--store", place)[0] == 0
    page = command("clusters", "show", name, "--store", place)[1]
    assert "A torn link" in page
    assert "ignore" in page
    assert command("clusters", "undo", 3, "--store", place)[0] == 0
    assert shown(command, place, "clusters", "log")["entries"][0]["action"] == "undo"  # type: ignore[index]
    assert command("clusters", "merge", name, "--store", place)[0] == 2


def test_care_from_the_command_line(command: Command, place: Path, tmp_path: Path) -> None:
    """Check, export, import, vacuum, migrate."""
    assert command("db", "check", "--store", place)[1].startswith(f"sound (version {migrations.VERSION},")
    out = tmp_path / "all.jsonl"
    assert command("db", "export", "-o", out, "--store", place)[0] == 0
    other = tmp_path / "other.db"
    assert "5 incidents" in command("db", "import", out, "--store", other)[1]
    assert command("db", "import", out, "--store", other)[1] == "nothing new\n"
    assert shown(command, other, "list")["total"] == 5
    command("db", "vacuum", "--max-size", "1", "--store", other)
    assert shown(command, other, "list")["total"] == 0
    assert command("db", "migrate", "--store", other)[1].startswith(f"version {migrations.VERSION}\nrules of version 1")
    assert command("db", "vacuum", "--older-than", "soon", "--store", other)[0] == 2
    other.write_bytes(b"x" * 5000)
    status, said, _ = command("db", "check", "--store", other)
    assert status == 1
    assert "no store" in said


def test_commands_that_read_make_no_store(command: Command, tmp_path: Path) -> None:
    """They say that there is none and how one comes to be."""
    for arguments in (
        ["list"],
        ["search", "x"],
        ["stats"],
        ["clusters", "list"],
        ["retriage"],
        ["db", "check"],
        ["show", "i-abc"],
    ):
        status, _, err = command(*arguments, "--store", tmp_path / "none.db")
        assert status == 2
        assert "no store yet" in err
        assert "triage ingest" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7d", NOW - 7 * DAY),
        ("12h", NOW - 43_200),
        ("2w", NOW - 14 * DAY),
        ("2025-11-21", 1_763_683_200.0),
        ("2025-11-21T01:00+01:00", 1_763_683_200.0),
    ],
)
def test_times(text: str, seconds: float) -> None:
    """Ages and dates; without a zone it is UTC."""
    assert options.moment(text, NOW) == seconds


@pytest.mark.parametrize("text", ["", "yesterday", "7", "99999999999d", "2025-13-01"])
def test_what_is_no_time(text: str) -> None:
    """An error with examples."""
    with pytest.raises(OptionError):
        options.moment(text, NOW)
