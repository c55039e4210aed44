"""triage.store.salvage: stores that are really damaged. What comes out equals what was in, and nothing is invented."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.factories import known_diagnosis, unknown_diagnosis
from triage.base.errors import StoreError
from triage.store import Store, maintenance, transfer
from triage.store.salvage import SalvageReport, salvage_lines

pytestmark = pytest.mark.sqlite_only
ROOT = Path(__file__).resolve().parents[2]
PAGE = 4096
INCIDENTS = 160
OLD_STORES = sorted((Path(__file__).parent / "old").glob("*.db"))


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with incidents, clusters, feedback and an audit log, so large that its tables have inner pages."""
    path = tmp_path_factory.mktemp("healthy") / "triage.db"
    with Store.open(path) as store:
        for number in range(INCIDENTS):
            make = known_diagnosis if number % 3 else unknown_diagnosis
            stored = store.incidents.add(make(f"job {number}", rank=number % 2))
            if number % 10 == 0:
                store.feedback.add(stored.id, "agree", actor="anna", because="I looked")
        store.cluster_actions.name("u-7f3a9c", "bad shard", actor="anna")
        store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture(scope="module")
def export(healthy: Path) -> list[str]:
    """The lines of an export of the healthy store."""
    with Store.open(healthy) as store:
        return list(transfer.export_lines(store.connections))


def salvage(path: Path) -> tuple[list[str], SalvageReport]:
    """Return the lines of a salvage without the last, and the report."""
    report = SalvageReport()
    *lines, end = salvage_lines(path, report)
    assert json.loads(end) == {"type": "end", "lost": report.lost}
    return lines, report


def write_damaged(path: Path, data: bytes) -> Path:
    """Write a damaged store, without the log of the healthy one."""
    path.write_bytes(data)
    return path


def incident_ids(lines: list[str]) -> set[str]:
    """Return the ids of the exported incidents."""
    return {item["id"] for item in map(json.loads, lines) if item["type"] == "incident"}


def untouched_incidents(data: bytes, damaged: set[int], healthy: Path) -> set[str]:
    """Return incidents whose id is on no damaged page and whose report begins on none: all of them must come out."""
    with Store.open(healthy) as store:
        rows = store.connections.read("SELECT id, body FROM incident JOIN report USING (num)")
    whole = set()
    for row in rows:
        needle, places, at = row["id"].encode(), [data.find(row["body"][:200])], -1
        while (at := data.find(needle, at + 1)) >= 0:
            places.append(at)
        if not damaged & {place // PAGE for place in places}:
            whole.add(row["id"])
    return whole


def test_a_healthy_store_is_exported_unchanged(healthy: Path, export: list[str]) -> None:
    """The salvage of a store without damage is its export, line by line."""
    lines, report = salvage(healthy)
    assert lines == export[:-1]
    assert report.lost == []
    assert report.rows["incident"] == INCIDENTS


@pytest.mark.parametrize("seed", range(12))
def test_overwritten_bytes(tmp_path: Path, healthy: Path, export: list[str], seed: int) -> None:
    """Random bytes at random places: every line equals the original, and all incidents on whole pages come out."""
    chance, data = random.Random(seed), bytearray(healthy.read_bytes())
    damaged = set()
    for _ in range(5):
        size = chance.choice((32, 100, 1000, PAGE))
        place = chance.randrange(len(data) - size)
        data[place : place + size] = chance.randbytes(size)
        damaged |= set(range(place // PAGE, (place + size - 1) // PAGE + 1))
    lines, report = salvage(write_damaged(tmp_path / "bad.db", bytes(data)))
    assert set(lines) <= set(export)
    assert incident_ids(lines) >= untouched_incidents(healthy.read_bytes(), damaged, healthy)
    assert len(incident_ids(lines)) == INCIDENTS or report.lost
    assert_imports(tmp_path / "new.db", lines)


def assert_imports(path: Path, lines: list[str]) -> None:
    """What was salvaged makes a sound store; only findings of lost clusters may miss theirs."""
    with Store.open(path) as new:
        transfer.import_lines(new.connections, lines)
        assert new.search.count_incidents() == len(incident_ids(lines))
        problems = maintenance.check_store(new.connections)
        assert [text for text in problems if "its cluster is missing" not in text] == []


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_truncated_files(tmp_path: Path, healthy: Path, export: list[str], share: float) -> None:
    """A file that ends within a page gives back what is before, and says what is lost."""
    data = healthy.read_bytes()
    end = int(len(data) * share) // PAGE * PAGE + 777
    lines, report = salvage(write_damaged(tmp_path / "bad.db", data[:end]))
    assert set(lines) <= set(export)
    assert incident_ids(lines) >= untouched_incidents(data, set(range(end // PAGE, len(data) // PAGE + 1)), healthy)
    assert report.lost


@pytest.mark.parametrize("size", [16, 100, PAGE])
def test_a_damaged_beginning(tmp_path: Path, healthy: Path, export: list[str], size: int) -> None:
    """Without the magic, the header or the whole first page, every incident comes out."""
    data = random.Random(size).randbytes(size) + healthy.read_bytes()[size:]
    lines, report = salvage(write_damaged(tmp_path / "bad.db", data))
    assert incident_ids(lines) == incident_ids(export)
    assert set(lines) <= set(export)
    assert "header" in report.lost[0]


def test_a_damaged_inner_page_hides_nothing(tmp_path: Path, healthy: Path, export: list[str]) -> None:
    """The rows below a damaged root are found on their own pages, which SQLite does not reach any more."""
    data = bytearray(healthy.read_bytes())
    with Store.open(healthy) as store:
        roots = [
            row["rootpage"]
            for row in store.connections.read(
                "SELECT rootpage FROM sqlite_master WHERE name IN ('incident', 'report', 'finding', 'incident_at')"
            )
        ]
    for root in roots:
        data[(root - 1) * PAGE : root * PAGE] = random.Random(root).randbytes(PAGE)
    bad = write_damaged(tmp_path / "bad.db", bytes(data))
    with Store.open(bad) as store:
        assert not any('"incident"' in line[:30] for line in transfer.export_lines(store.connections))
    lines, _ = salvage(bad)
    assert lines == export[:-1]


def test_a_changed_column_is_corrected(tmp_path: Path, healthy: Path, export: list[str]) -> None:
    """A single changed byte in an incident is set right from its report, which has a checksum."""
    data = healthy.read_bytes()
    changed = data.replace(b"What cuda.out-of-memory sayscuda", b"What cuda.out-of-memory s\x41yscuda", 1)
    assert changed != data
    lines, report = salvage(write_damaged(tmp_path / "bad.db", changed))
    assert lines == export[:-1]
    assert any("title differed from its report" in text for text in report.lost)


def test_the_log_belongs_to_the_store(tmp_path: Path) -> None:
    """Committed pages in the write-ahead log count, and cut or stale ones do not."""
    path, copy = tmp_path / "triage.db", tmp_path / "copy.db"
    with Store.open(path) as store:
        for number in range(20):
            store.incidents.add(known_diagnosis(f"job {number}"))
        expected = list(transfer.export_lines(store.connections))
        shutil.copy(path, copy)
        shutil.copy(f"{path}-wal", f"{copy}-wal")
    log = Path(f"{copy}-wal")
    assert log.stat().st_size > 100_000
    lines, _ = salvage(copy)
    assert lines == expected[:-1]
    log.write_bytes(log.read_bytes()[:-100])  # the last transaction is not complete
    lines, _ = salvage(copy)
    assert set(lines) < set(expected)
    assert len(incident_ids(lines)) == 19


def test_deleted_rows_stay_deleted(tmp_path: Path, healthy: Path) -> None:
    """Rows on pages that are not used any more do not come back."""
    path = tmp_path / "triage.db"
    shutil.copy(healthy, path)
    with Store.open(path) as store:
        store.connections.execute("DELETE FROM feedback")
        store.incidents.remove(list(range(1, 100)))
        store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert store.connections.read("PRAGMA freelist_count")[0][0] > 10
        expected = list(transfer.export_lines(store.connections))
    lines, report = salvage(path)
    assert (lines, report.lost) == (expected[:-1], [])


def test_tokens_and_secrets_are_never_salvaged(tmp_path: Path, healthy: Path) -> None:
    """Tables that an export leaves out are left out, also where no page says to which table a row belongs."""
    path = tmp_path / "triage.db"
    shutil.copy(healthy, path)
    with Store.open(path) as store:
        secret = store.service_data.get_secret("cookies").hex()
        store.tokens.create("anna", ["read"], actor="a")
        store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = random.Random(1).randbytes(PAGE) + path.read_bytes()[PAGE:]
    lines, _ = salvage(write_damaged(path, data))
    assert secret not in "".join(lines)
    assert not any(json.loads(line)["type"] in ("token", "secret") for line in lines)


@pytest.mark.parametrize("old", OLD_STORES, ids=lambda path: path.stem)
def test_stores_of_older_versions(tmp_path: Path, old: Path) -> None:
    """A store of an older version is salvaged as what it is after its migration."""
    lines, report = salvage(Path(shutil.copy(old, tmp_path / "old.db")))
    with Store.open(Path(shutil.copy(old, tmp_path / "migrated.db"))) as store:
        expected = list(transfer.export_lines(store.connections))
    assert (lines, report.lost) == (expected[:-1], [])


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    """Of any other file nothing is invented, and a missing one is an error that says what to do."""
    lines, report = salvage(write_damaged(tmp_path / "noise.db", random.Random(0).randbytes(50 * PAGE)))
    assert [json.loads(line)["type"] for line in lines] == ["head"]
    assert report.lost
    assert salvage(write_damaged(tmp_path / "empty.db", b""))[0] == lines
    with pytest.raises(StoreError) as caught:
        salvage(tmp_path / "missing.db")
    assert "--store" in caught.value.hint


def run_triage(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "triage", *arguments], capture_output=True, text=True, cwd=ROOT, timeout=60
    )


def test_the_way_out_of_damage_works(tmp_path: Path, healthy: Path) -> None:
    """The hint of a damaged store names a command that works, and what it writes makes a new store."""
    data = bytearray(healthy.read_bytes())
    data[PAGE * 3 : PAGE * 6] = random.Random(5).randbytes(PAGE * 3)
    bad = write_damaged(tmp_path / "bad.db", bytes(data))
    done = run_triage("list", "--store", str(bad))
    assert done.returncode == 2
    assert "triage db export --salvage -o saved.jsonl" in done.stderr
    saved = tmp_path / "saved.jsonl"
    done = run_triage("db", "export", "--salvage", "-o", str(saved), "--store", str(bad))
    assert done.returncode == 0, done.stderr
    assert f"saved: {INCIDENTS} incidents" in done.stderr
    assert "lost: " in done.stderr
    done = run_triage("db", "import", str(saved), "--store", str(tmp_path / "new.db"))
    assert done.returncode == 0, done.stderr
    assert f"{INCIDENTS} incidents" in done.stdout
