"""What befalls a store in earnest: killed writers, many writers, a full disk, a place that may not be written, damage."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.store.making import known, unknown
from triage.base.errors import StoreError
from triage.store import Store, care, transfer

ROOT = Path(__file__).resolve().parents[2]
WRITER = """
import sys
from tests.store.making import known, unknown
from triage.base.errors import StoreError
from triage.store import Store
path, first, last, name = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
with Store.open(path) as store:
    for number in range(first, last):
        make = known if number % 2 else unknown
        try:
            stored = store.incidents.add(make(f"{name} {number}"))
        except StoreError as error:
            print("error", error.message, "try", error.hint, flush=True)
            break
        print(number, stored.id, stored.seen, flush=True)
"""


def writer(path: Path, first: int, last: int, name: str = "job", **more: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), str(first), str(last), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, **more)  # type: ignore[call-overload, no-any-return]


def test_killed_at_any_moment(tmp_path: Path) -> None:
    """Over 200 ingests with kill -9 in between, all that was reported is there, whole, and nothing is there by half."""
    path, chance = tmp_path / "triage.db", random.Random(11)
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
        assert care.check(store.connections) == []
        for number in reported:
            wanted = (known if number % 2 else unknown)(f"job {number}")
            assert store.incidents.get(wanted.job.id).diagnosis == wanted
        assert len(reported) <= store.search.count() <= len(reported) + kills
    assert kills > 3


def test_eight_writers_at_once(tmp_path: Path) -> None:
    """Nobody loses anything to another; what several store is one incident, seen by all of them."""
    path = tmp_path / "triage.db"
    running = [writer(path, 0, 6, name) for name in ("a", "b", "c", "d")] + [
        writer(path, 0, 6, "same") for _ in range(4)
    ]
    told = [process.communicate(timeout=120)[0] for process in running]
    assert ["error" in text for text in told] == [False] * 8
    with Store.open(path) as store:
        assert store.search.count() == 30
        assert {
            store.incidents.get(known("same 1").job.id).incident.seen,
            store.incidents.get(unknown("same 0").job.id).incident.seen,
        } == {4}
        assert store.clusters.get("u-7f3a9c").incidents == 15
        assert care.check(store.connections) == []


def fill(store: Store) -> tuple[list[str], StoreError]:
    """Add until it is refused: the ids that were stored, and the error."""
    stored: list[str] = []
    for number in range(10_000):
        try:
            stored.append(store.incidents.add(known(f"job {number}")).id)
        except StoreError as error:
            return stored, error
    raise AssertionError("it never ended")


def test_a_store_that_may_grow_no_more(tmp_path: Path) -> None:
    """What was stored stays, the rest is refused with the next step, and reading goes on."""
    with Store.open(tmp_path / "triage.db") as store:
        pages = store.connections.read("PRAGMA page_count")[0][0]
        store.connections.get().execute(f"PRAGMA max_page_count = {pages + 20}")
        stored, error = fill(store)
        assert stored
        assert "full" in error.message
        assert "make room" in error.hint
        assert {incident.id for incident in store.search.listed(limit=1000)} == set(stored)
        assert care.check(store.connections) == []


def alone(script: str, argument: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script where it may mount file systems that nobody else sees."""
    command = ["unshare", "--map-root-user", "--user", "--mount", "sh", "-c", script, "sh", argument]
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("file systems may not be mounted here")
    return done


def test_a_full_disk(tmp_path: Path) -> None:
    """On a file system without room the same holds, and with room again it goes on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    script = f'mount -t tmpfs -o size=700k none "{disk}" || exit 77; "{sys.executable}" -c "$1" "{disk}/triage.db" 0 10000 job; df "{disk}" >&2; cp {disk}/* "{tmp_path}"'
    done = alone(script, WRITER)
    *lines, last = done.stdout.splitlines()
    assert last.startswith("error the disk is full"), done.stdout[-500:] + done.stderr
    assert "make room" in last
    with Store.open(tmp_path / "triage.db") as store:
        assert {incident.id for incident in store.search.listed(limit=1000)} == {line.split()[1] for line in lines}
        assert care.check(store.connections) == []
        assert store.incidents.add(known("more")).new


def test_a_place_that_may_not_be_written(tmp_path: Path) -> None:
    """It is read; an ingest into it is refused with the next step, and no file is left behind."""
    place = tmp_path / "place"
    with Store.open(place / "triage.db") as store:
        stored = store.incidents.add(known("a"))
    before = sorted(place.iterdir())
    read = f"from triage.store import Store; s = Store.open({str(place / 'triage.db')!r}); print(s.incidents.get({stored.id!r}).incident.id)"
    script = f'mount --bind "{place}" "{place}" && mount -o remount,ro,bind "{place}" || exit 77; "{sys.executable}" -c "$1" "{place}/triage.db" 0 3 job'
    done = alone(script, f"{read}\n{WRITER}")
    assert done.stdout.splitlines()[0] == stored.id, done.stderr
    assert "error the store may not be written" in done.stdout
    assert "--no-store" in done.stdout
    assert sorted(place.iterdir()) == before


def test_damage_is_found_and_the_rest_is_saved(tmp_path: Path) -> None:
    """With noise in the middle of the file the check names it, and the export holds what can still be read."""
    path = tmp_path / "triage.db"
    with Store.open(path) as store:
        for number in range(240):  # so many that the middle of the file holds jobs and not the schema
            store.incidents.add(known(f"job {number}"))
        store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    for place in range(len(data) // 2, len(data) // 2 + 20 * 4096, 4096):
        data[place : place + 4096] = random.Random(place).randbytes(4096)
    path.write_bytes(data)
    command = [sys.executable, "-m", "triage", "db", "check", "--store", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.returncode == 1
    assert "damaged" in done.stdout
    assert "Traceback" not in done.stderr
    with Store.open(path) as store:
        lines = [json.loads(line) for line in transfer.export(store.connections)]
    assert lines[-1]["type"] == "end"
    saved = [line for line in lines if line["type"] == "incident"]
    assert lines[-1]["lost"] or len(saved) == 240
    with Store.open(tmp_path / "new.db") as new:
        transfer.load(new.connections, (json.dumps(line) for line in lines))
        assert new.search.count() == len(saved)
        assert care.check(new.connections) == []
