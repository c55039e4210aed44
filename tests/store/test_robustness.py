"""The store under killed writers, many writers, a full disk, a read-only directory and damage."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.store.conftest import Place
from tests.store.factories import known_diagnosis, unknown_diagnosis
from triage.base.errors import StoreError
from triage.store import Store, maintenance, transfer

ROOT = Path(__file__).resolve().parents[2]
WRITER = """
import sys
from tests.store.factories import known_diagnosis, unknown_diagnosis
from triage.base.errors import StoreError
from triage.store import Store
path, first, last, name = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
with Store.open(path) as store:
    for number in range(first, last):
        make = known_diagnosis if number % 2 else unknown_diagnosis
        try:
            stored = store.incidents.add(make(f"{name} {number}"))
        except StoreError as error:
            print("error", error.message, "try", error.hint, flush=True)
            break
        print(number, stored.id, stored.ingests, flush=True)
"""


def writer(path: str, first: int, last: int, name: str = "job", **more: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), str(first), str(last), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, **more)  # type: ignore[call-overload, no-any-return]


def test_killed_at_any_moment(place: Place) -> None:
    """After 200 ingests with kill -9, every reported one is stored completely, and none partially."""
    path, chance = place("triage"), random.Random(11)
    reported: set[int] = set()
    kills = begin = 0
    while len(reported) < 200:
        running = writer(path, begin, begin + 400)
        assert running.stdout is not None
        lines, most = [], chance.randrange(10, 70)
        for line in running.stdout:
            lines.append(line)
            if len(lines) >= most:
                time.sleep(chance.random() * 0.01)
                break
        running.send_signal(signal.SIGKILL)
        lines += [line for line in running.stdout if line.endswith("\n")]
        running.wait()
        running.stdout.close()
        reported |= {int(line.split()[0]) for line in lines}
        kills, begin = kills + 1, max(reported) + 1  # the one that was being written may be there or not
    with Store.open(path) as store:
        assert maintenance.check_store(store.connections) == []
        for number in reported:
            wanted = (known_diagnosis if number % 2 else unknown_diagnosis)(f"job {number}")
            assert store.incidents.get(wanted.job.id).diagnosis == wanted
        assert len(reported) <= store.search.count_incidents() <= len(reported) + kills
    assert kills > 3


def test_eight_writers_at_once(place: Place) -> None:
    """No write is lost, and the same job stored by several is one incident."""
    path = place("triage")
    running = [writer(path, 0, 6, name) for name in ("a", "b", "c", "d")] + [
        writer(path, 0, 6, "same") for _ in range(4)
    ]
    outputs = [process.communicate(timeout=120)[0] for process in running]
    assert ["error" in text for text in outputs] == [False] * 8
    with Store.open(path) as store:
        assert store.search.count_incidents() == 30
        assert {
            store.incidents.get(known_diagnosis("same 1").job.id).incident.ingests,
            store.incidents.get(unknown_diagnosis("same 0").job.id).incident.ingests,
        } == {4}
        assert store.clusters.get("u-7f3a9c").incidents == 15
        assert maintenance.check_store(store.connections) == []


def fill(store: Store) -> tuple[list[str], StoreError]:
    """Add until it fails; return the stored ids and the error."""
    stored: list[str] = []
    for number in range(10_000):
        try:
            stored.append(store.incidents.add(known_diagnosis(f"job {number}")).id)
        except StoreError as error:
            return stored, error
    raise AssertionError("it never ended")


@pytest.mark.sqlite_only
def test_a_store_at_its_size_limit(place: Place) -> None:
    """Stored incidents stay, the error says what to do, and reading still works."""
    with Store.open(place("triage")) as store:
        pages = store.connections.read("PRAGMA page_count")[0][0]
        store.connections.get().execute(f"PRAGMA max_page_count = {pages + 20}")
        stored, error = fill(store)
        assert stored
        assert "full" in error.message
        assert "free some space" in error.hint
        assert {incident.id for incident in store.search.list_incidents(limit=1000)} == set(stored)
        assert maintenance.check_store(store.connections) == []


def run_with_mounts(script: str, argument: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script where it may mount file systems."""
    command = ["unshare", "--map-root-user", "--user", "--mount", "sh", "-c", script, "sh", argument]
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("file systems may not be mounted here")
    return done


@pytest.mark.sqlite_only
def test_a_full_disk(tmp_path: Path, place: Place) -> None:
    """The same on a full file system; with free space again, writing works."""
    disk = tmp_path / "disk"
    disk.mkdir()
    script = (
        f'mount -t tmpfs -o size=700k none "{disk}" || exit 77; '
        f'"{sys.executable}" -c "$1" "{disk}/triage.db" 0 10000 job; df "{disk}" >&2; cp {disk}/* "{tmp_path}"'
    )
    done = run_with_mounts(script, WRITER)
    *lines, last = done.stdout.splitlines()
    assert last.startswith("error the disk is full"), done.stdout[-500:] + done.stderr
    assert "free some space" in last
    with Store.open(place("triage")) as store:
        assert {incident.id for incident in store.search.list_incidents(limit=1000)} == {
            line.split()[1] for line in lines
        }
        assert maintenance.check_store(store.connections) == []
        assert store.incidents.add(known_diagnosis("more")).is_new


def test_a_read_only_directory(tmp_path: Path) -> None:
    """Reading works, the error of an ingest says what to do, and no file is left."""
    place = tmp_path / "place"
    with Store.open(place / "triage.db") as store:
        stored = store.incidents.add(known_diagnosis("a"))
    before = sorted(place.iterdir())
    read = (
        f"from triage.store import Store; s = Store.open({str(place / 'triage.db')!r}); "
        f"print(s.incidents.get({stored.id!r}).incident.id)"
    )
    script = (
        f'mount --bind "{place}" "{place}" && mount -o remount,ro,bind "{place}" || exit 77; '
        f'"{sys.executable}" -c "$1" "{place}/triage.db" 0 3 job'
    )
    done = run_with_mounts(script, f"{read}\n{WRITER}")
    assert done.stdout.splitlines()[0] == stored.id, done.stderr
    assert "error the store is read-only" in done.stdout
    assert "--no-store" in done.stdout
    assert sorted(place.iterdir()) == before


@pytest.mark.sqlite_only
def test_a_damaged_store_is_exported(place: Place) -> None:
    """The check names the damage, and the export has what can be read."""
    path = Path(place("triage"))
    with Store.open(path) as store:
        for number in range(240):  # so many that the middle of the file holds jobs and not the schema
            store.incidents.add(known_diagnosis(f"job {number}"))
        store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    for offset in range(len(data) // 2, len(data) // 2 + 20 * 4096, 4096):
        data[offset : offset + 4096] = random.Random(offset).randbytes(4096)
    path.write_bytes(data)
    command = [sys.executable, "-m", "triage", "db", "check", "--store", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.returncode == 1
    assert "damaged" in done.stdout
    assert "Traceback" not in done.stderr
    with Store.open(path) as store:
        lines = [json.loads(line) for line in transfer.export_lines(store.connections)]
    assert lines[-1]["type"] == "end"
    saved = [line for line in lines if line["type"] == "incident"]
    assert lines[-1]["lost"] or len(saved) == 240
    with Store.open(place("new")) as new:
        transfer.import_lines(new.connections, (json.dumps(line) for line in lines))
        assert new.search.count_incidents() == len(saved)
        assert maintenance.check_store(new.connections) == []
