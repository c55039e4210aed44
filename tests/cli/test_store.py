from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store.factories import DAY, NOW, clean_diagnosis, known_diagnosis, unknown_diagnosis
from triage.base.errors import OptionError
from triage.cli import options
from triage.clusters.rules import load_rules
from triage.store import Store, migrations

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def store_file(tmp_path: Path) -> Path:
    """A store with five incidents; one title is a formula."""
    path = tmp_path / "triage.db"
    with Store.open(path) as store:
        for diagnosis in (
            known_diagnosis("llama", host="node1", rank=3, at=NOW - 2 * DAY),
            known_diagnosis("bert", "host.sigkill", host="node17", at=NOW - DAY),
            known_diagnosis("bert-2", "host.sigkill", host="node17", at=NOW),
            unknown_diagnosis("=gpt", '=HYPERLINK("http://x") \x1b[31m'),
            clean_diagnosis("ok"),
        ):
            store.incidents.add(diagnosis, now=NOW)
    return path


def load_json(command: Command, store_file: Path, *arguments: object) -> dict[str, object]:
    status, out, err = command(*arguments, "--format", "json", "--store", store_file)
    assert (status, err) == (0, "")
    document: dict[str, object] = json.loads(out)
    return document


def test_list(command: Command, store_file: Path) -> None:
    """One line per incident, the latest first; filters and pages work in JSON too."""
    status, out, err = command("list", "--store", store_file, "--width", 120)
    assert (status, err) == (0, "")
    assert len(out.splitlines()) == 6
    assert "\x1b" not in out
    document = load_json(command, store_file, "list", "--host", "node17", "-n", 1)
    assert (document["total"], len(document["incidents"])) == (2, 1)  # type: ignore[arg-type]
    rest = load_json(command, store_file, "list", "--host", "node17", "--after", document["next"])
    assert [item["job_name"] for item in rest["incidents"]] == ["bert"]  # type: ignore[attr-defined]
    assert "no incidents" in command("list", "zebra", "--store", store_file)[1]


def test_causes(command: Command, store_file: Path) -> None:
    """One line per cause with its counts and status; filters work in JSON, and no cell of CSV begins like a formula."""
    status, out, err = command("causes", "--order", "count", "--store", store_file, "--width", 120)
    assert (status, err) == (0, "")
    assert out.splitlines()[1].split()[:5] == ["host.sigkill", "open", "0", "2", "2"]
    assert "\x1b" not in out
    document = load_json(command, store_file, "causes", "--host", "node17", "--status", "waiting")
    assert [item["id"] for item in document["causes"]] == ["host.sigkill"]  # type: ignore[attr-defined]
    assert "no causes" in command("causes", "zebra", "--store", store_file)[1]
    assert "no causes" in command("causes", "--new", "1d", "--store", store_file)[1]
    assert "1 of 3 causes" in command("causes", "-n", 1, "--store", store_file)[1]
    rows = list(csv.reader(io.StringIO(command("causes", "--format", "csv", "--store", store_file)[1], newline="")))
    assert len({len(row) for row in rows}) == 1
    assert not [cell for row in rows for cell in row if cell.startswith("=")]


def test_csv_holds_no_formula(command: Command, store_file: Path) -> None:
    """No cell begins like a formula, and the table follows RFC 4180."""
    out = command("list", "--format", "csv", "--store", store_file)[1]
    rows = list(csv.reader(io.StringIO(out, newline="")))
    assert len({len(row) for row in rows}) == 1
    assert [cell for row in rows for cell in row if cell[:1] in ("=", "+", "-", "@")] == []
    assert any(cell == '\'=HYPERLINK("http://x")' for row in rows for cell in row)


def test_show_accepts_an_incident(command: Command, store_file: Path) -> None:
    """Text and JSON include the feedback; an unknown id is an error."""
    identifier = str(
        load_json(command, store_file, "list", "--host", "node1", "--verdict", "known")["incidents"][0]["id"]
    )  # type: ignore[index]
    command("feedback", identifier, "wrong", "--because", "it was the quota", "--by", "ann", "--store", store_file)
    status, out, _ = command("show", identifier, "--store", store_file)
    assert status == 0
    assert out.startswith("ROOT CAUSE")
    assert "it was the quota" in out
    document = load_json(command, store_file, "show", identifier)
    assert document["schema"] == "triage.diagnosis/2"
    assert document["incident"]["feedback"][0]["because"] == "it was the quota"  # type: ignore[index]
    assert command("show", "i-ffffffffffff", "--store", store_file)[0] == 2


def test_search_names_signatures_and_incidents(command: Command, store_file: Path) -> None:
    """The texts of signatures and guides are searched, and the stored incidents."""
    document = load_json(command, store_file, "search", "sharding strategy memory")
    assert "fsdp.sharding-strategy" in [item["id"] for item in document["catalog"]]  # type: ignore[attr-defined]
    out = command("search", "allocate", "GiB", "--store", store_file)[1]
    assert "«allocate»" in out
    assert "nothing contains" in command("search", "qqqqzzzz", "--store", store_file)[1]


def test_similar_and_stats(command: Command, store_file: Path) -> None:
    """Similar incidents show their feedback; statistics list hosts that fail repeatedly."""
    one, other = load_json(command, store_file, "list", "--host", "node17")["incidents"]  # type: ignore[misc]
    command("feedback", other["id"], "agree", "-b", "disk replaced", "--store", store_file)  # type: ignore[index]
    assert "disk replaced" in command("similar", one["id"], "--store", store_file)[1]  # type: ignore[index]
    out = command("stats", "--store", store_file)[1]
    assert "Hosts that come back" in out
    assert "█" in out
    assert "node17" in [item["name"] for item in load_json(command, store_file, "stats")["hosts"]]  # type: ignore[attr-defined]
    assert command("stats", "-f", "csv", "--store", store_file)[1].startswith("by,name,count")


def test_incomplete_feedback_is_refused(command: Command, store_file: Path) -> None:
    """An incident needs a verdict, and a wrong one needs a reason."""
    for arguments in (["i-00"], ["i-00", "wrong"], ["i-00", "agree"]):
        status, _, err = command("feedback", *arguments, "--store", store_file)
        assert status == 2
        assert "  try: " in err
    assert command("feedback", "--store", store_file)[1] == "no feedback\n"


def test_rate_counts_feedback(command: Command, store_file: Path) -> None:
    """Authors see which signatures were marked as wrong."""
    one, other = load_json(command, store_file, "list", "--host", "node17")["incidents"]  # type: ignore[misc]
    command("feedback", one["id"], "wrong", "-b", "it was preempted", "--store", store_file)  # type: ignore[index]
    command("feedback", other["id"], "agree", "--store", store_file)  # type: ignore[index]
    sample = Path(__file__).parents[2] / "samples" / "jobs" / "segfault_plain"
    document = load_json(command, store_file, "catalog", "rate", sample)
    assert document["feedback"] == [{"said": "host.sigkill", "agree": 1, "wrong": 1}]
    assert "host.sigkill: 1 wrong, 1 right" in command("catalog", "rate", sample, "--store", store_file)[1]


def test_curation_from_the_command_line(command: Command, store_file: Path) -> None:
    """Name, ignore, reopen, show and undo a cluster; each decision names its undo command."""
    (cluster,) = load_json(command, store_file, "clusters", "list")["clusters"]  # type: ignore[misc]
    name = cluster["id"]  # type: ignore[index]
    status, out, _ = command("clusters", "name", name, "A torn link", "--by", "ann", "--store", store_file)
    assert status == 0
    assert "triage clusters undo 1" in out
    assert "A torn link" in command("clusters", "list", "--store", store_file)[1]
    assert command("clusters", "ignore", "A torn link", "--store", store_file)[0] == 0
    assert command("clusters", "list", "--store", store_file)[1] == "no clusters\n"
    assert command("clusters", "reopen", name, "--store", store_file)[0] == 0
    page = command("clusters", "show", name, "--store", store_file)[1]
    assert "A torn link" in page
    assert "ignore" in page
    assert command("clusters", "undo", 3, "--store", store_file)[0] == 0
    assert load_json(command, store_file, "clusters", "log")["entries"][0]["action"] == "undo"  # type: ignore[index]
    assert command("clusters", "merge", name, "--store", store_file)[0] == 2


def test_a_cluster_shows_the_draft_of_a_new_wording(command: Command, tmp_path: Path) -> None:
    """Lines like a signature's lead to the change of its file, as text and as JSON; other lines do not."""
    path = tmp_path / "triage.db"
    near = "RuntimeError: cuda out-of-memory: tried to allocate 2.00 GiB"
    with Store.open(path) as store:
        store.incidents.add(unknown_diagnosis("near", near, "u-000001"), now=NOW)
        store.incidents.add(unknown_diagnosis("far", "ValueError: shard 7 is bad", "u-000002"), now=NOW)
    names = [one["id"] for one in load_json(command, path, "clusters", "list")["clusters"]]  # type: ignore[attr-defined]
    pages = {name: load_json(command, path, "clusters", "show", name) for name in names}
    drafts = {str(page["title"])[:7]: page["wordings"] for page in pages.values()}
    assert drafts["ValueEr"] == []
    (draft,) = drafts["Runtime"]  # type: ignore[misc]
    assert draft["signature"] == "cuda.out-of-memory"
    assert near in draft["yaml"]
    name = next(name for name, page in pages.items() if page["wordings"])
    text = command("clusters", "show", name, "--store", path)[1]
    assert "Looks like a new wording of cuda.out-of-memory" in text
    assert "change cuda/out-of-memory.yaml:" in text


def test_maintenance_from_the_command_line(command: Command, store_file: Path, tmp_path: Path) -> None:
    """Check, export, import, vacuum and migrate a store."""
    assert command("db", "check", "--store", store_file)[1].startswith(f"sound (version {migrations.VERSION},")
    out = tmp_path / "all.jsonl"
    assert command("db", "export", "-o", out, "--store", store_file)[0] == 0
    other = tmp_path / "other.db"
    assert "5 incidents" in command("db", "import", out, "--store", other)[1]
    assert command("db", "import", out, "--store", other)[1] == "nothing new\n"
    assert load_json(command, other, "list")["total"] == 5
    command("db", "vacuum", "--max-size", "1", "--store", other)
    assert load_json(command, other, "list")["total"] == 0
    assert command("db", "migrate", "--store", other)[1].startswith(
        f"version {migrations.VERSION}\nrules of version {load_rules().version}"
    )
    assert command("db", "vacuum", "--older-than", "soon", "--store", other)[0] == 2
    other.write_bytes(b"x" * 5000)
    status, text, _ = command("db", "check", "--store", other)
    assert status == 1
    assert "not a store" in text


def test_commands_that_read_create_no_store(command: Command, tmp_path: Path) -> None:
    """The error says how to create one."""
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
        assert "does not exist" in err
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
    """Ages and dates are accepted; without a zone they are UTC."""
    assert options.parse_time(text, NOW) == seconds


@pytest.mark.parametrize("text", ["", "yesterday", "7", "99999999999d", "2025-13-01"])
def test_invalid_times_are_refused(text: str) -> None:
    """The hint shows examples."""
    with pytest.raises(OptionError):
        options.parse_time(text, NOW)
