"""A store full of incidents for benchmarks: `prepare_store(100_000)` returns its file, created at the first call.

The first BASE incidents are variations of recorded samples that are stored normally; the others are copies of their
rows with another id, time, host and job, in the rows and in the report. Some thousands per second.
"""

from __future__ import annotations

import dataclasses
import hashlib
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import triage  # noqa: E402
from triage.model.diagnosis import Diagnosis, Finding  # noqa: E402
from triage.model.evidence import Evidence  # noqa: E402
from triage.store import Store, codec  # noqa: E402

DATA = Path(__file__).parent / "data"
SAMPLES = (
    "sigkill_perrank",
    "exception_one_rank_tee",
    "dataloader_worker_killed_tee",
    "checkpoint_size_mismatch_twonode",
    "disk_full_tee",
)
BASE = 500
BATCH = 500
YEAR = 365 * 86_400
DAY = 86_400
HOSTS = 2000
_TABLES = ("attempt", "finding", "blamed_rank", "host", "warning", "redacted")
_TIMES = frozenset({"at", "stored_at", "seen_at", "first_time", "last_time"})


def prepare_store(count: int) -> Path:
    """Return a store of `count` incidents in bench/data. Copy it before you write to it."""
    DATA.mkdir(exist_ok=True)
    path = DATA / f"store-{count}.db"
    if not path.exists():
        scratch = path.with_suffix(".part")
        for leftover in DATA.glob(f"{scratch.name}*"):
            leftover.unlink()
        print(f"writing {path} …", flush=True)
        print(f"  {fill(scratch, count):.0f} incidents/s", flush=True)
        scratch.rename(path)
    return path


def fill(path: Path, count: int) -> float:
    """Create the store at `path`; return incidents per second."""
    bases = [triage.ingest(ROOT / "samples" / "jobs" / name / "job") for name in SAMPLES]
    chance, now = random.Random(7), time.time()
    started = time.perf_counter()
    with Store.open(path) as store:
        store.connections.get().execute("PRAGMA synchronous = OFF")
        with store.connections.write():
            for number in range(min(count, BASE)):
                store.incidents.add(vary_diagnosis(bases[number % len(bases)], number, chance, now))
        originals = list(_read_rows(store))
        for begin in range(BASE, count, BATCH):
            with store.connections.write() as db:
                for number in range(begin, min(begin + BATCH, count)):
                    _copy(db, originals[number % len(originals)], number, chance, now)
        store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return count / (time.perf_counter() - started)


def vary_diagnosis(base: Diagnosis, number: int, chance: random.Random, now: float) -> Diagnosis:
    """Return the diagnosis of another job: with its own id, time and host, and other numbers in its lines."""
    at = now - chance.random() * YEAR
    host = _host(chance)
    mark = f"{chance.randrange(10**6):06d}"
    letters = "".join(chr(ord("a") + int(digit)) for digit in mark[:3])  # numbers change no cluster, words do

    def fact(item: Evidence) -> Evidence:
        text = item.text.replace("1", mark[0]).replace("2", mark[1])
        text = text.replace("has no tokens", f"has no {letters} tokens")
        return dataclasses.replace(
            item,
            text=text,
            excerpt=item.excerpt.replace("1", mark[0]),
            origin=dataclasses.replace(item.origin, host=host, time=at),
        )

    def finding(item: Finding) -> Finding:
        cluster = f"u-{hashlib.sha256(mark[:3].encode()).hexdigest()[:6]}" if item.cluster else None
        return dataclasses.replace(
            item, hosts=(host,), first_time=at, cluster=cluster, evidence=tuple(map(fact, item.evidence))
        )

    root = None if base.root_cause is None else finding(base.root_cause)
    job = dataclasses.replace(
        base.job,
        id=f"j-{_digits(number)}",
        name=_name(number),
        path=f"/scratch/jobs/{_name(number)}",
        hosts={host: base.job.ranks},
    )
    return dataclasses.replace(
        base,
        job=job,
        root_cause=root,
        findings=tuple(map(finding, base.findings)),
        unknown=tuple(map(finding, base.unknown)),
    )


def _host(chance: random.Random) -> str:
    return f"node{chance.randrange(HOSTS):04d}"


def _digits(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()[:12]


def _name(number: int) -> str:
    return f"run-{number:07d}"


@dataclasses.dataclass(frozen=True)
class _StoredRows:
    """All rows of a stored incident, to be copied with other values."""

    number: int
    at: float
    host: str
    incident: dict[str, Any]
    job: dict[str, Any]
    page: dict[str, Any]
    rows: dict[str, list[dict[str, Any]]]
    body: str


def _read_rows(store: Store) -> Iterator[_StoredRows]:
    db = store.connections.get()
    for number in range(BASE):
        incident_row = db.execute("SELECT * FROM incident WHERE id = ?", (f"i-{_digits(number)}",)).fetchone()
        if incident_row is None:
            return
        num = incident_row["num"]
        rows = {
            name: [dict(row) for row in db.execute(f"SELECT * FROM {name} WHERE incident = ?", (num,))]
            for name in _TABLES
        }
        job = dict(db.execute("SELECT * FROM job WHERE id = ?", (incident_row["job"],)).fetchone())
        page = dict(db.execute("SELECT * FROM page WHERE num = ?", (num,)).fetchone())
        packed = db.execute("SELECT body FROM report WHERE num = ?", (num,)).fetchone()["body"]
        host = next(row["name"] for row in rows["host"])
        yield _StoredRows(
            number, incident_row["at"], host, dict(incident_row), job, page, rows, codec.decompress_text(packed)
        )


def _copy(db: Any, stored: _StoredRows, number: int, chance: random.Random, now: float) -> None:
    at, host = now - chance.random() * YEAR, _host(chance)
    swaps = (
        (_digits(stored.number), _digits(number)),
        (_name(stored.number), _name(number)),
        (stored.host, host),
        (repr(stored.at), repr(at)),
    )

    def other(value: Any, column: str) -> Any:
        if isinstance(value, str):
            for old, new in swaps:
                value = value.replace(old, new)
        return at if column in _TIMES and value is not None else value

    def insert(table: str, row: dict[str, Any], **fixed: Any) -> int:
        values = {column: other(value, column) for column, value in row.items()} | fixed
        columns = [column for column in values if column != "num" or values["num"] is not None]
        marks = ", ".join("?" * len(columns))
        done = db.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", [values[column] for column in columns]
        )
        return int(done.lastrowid or 0)

    insert("job", stored.job)
    num = insert("incident", stored.incident, num=None)
    for table, rows in stored.rows.items():
        for row in rows:
            insert(table, row, incident=num)
    insert("page", stored.page, num=num)
    db.execute("INSERT INTO report VALUES (?, ?)", (num, codec.compress_text(other(stored.body, ""))))
    for key in {row["key"] for row in stored.rows["finding"]} - {None}:
        day = "INSERT INTO counter VALUES (?, ?, 1) ON CONFLICT (key, day) DO UPDATE SET incidents = incidents + 1"
        db.execute(day, (key, int(at // DAY)))
        db.execute("UPDATE cluster_key SET jobs = jobs + 1 WHERE key = ?", (key,))
