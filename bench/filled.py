"""A store full of incidents, for benchmarks: `ready(100_000)` gives its file, and makes it where it is not there.

The first BASE are variations of recorded samples, stored by the store's own ways; the others are copies of their rows
with another id, time,
host and job, in the rows and in the report alike. Some thousands a second.
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
from triage.model.diagnosis import Diagnosis, Finding
from triage.model.evidence import Evidence
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


def ready(count: int) -> Path:
    """A store of `count` incidents in bench/data. Copy it before you write into it."""
    DATA.mkdir(exist_ok=True)
    path = DATA / f"store-{count}.db"
    if not path.exists():
        scratch = path.with_suffix(".part")
        for left in DATA.glob(f"{scratch.name}*"):
            left.unlink()
        print(f"writing {path} …", flush=True)
        print(f"  {fill(scratch, count):.0f} incidents/s", flush=True)
        scratch.rename(path)
    return path


def fill(path: Path, count: int) -> float:
    """Make the store at `path`, which must not be there; incidents a second."""
    bases = [triage.ingest(ROOT / "samples" / "jobs" / name / "job") for name in SAMPLES]
    chance, now = random.Random(7), time.time()
    started = time.perf_counter()
    with Store.open(path) as store:
        store.connections.get().execute("PRAGMA synchronous = OFF")
        with store.connections.write():
            for number in range(min(count, BASE)):
                store.incidents.add(varied(bases[number % len(bases)], number, chance, now))
        models = list(_models(store))
        for begin in range(BASE, count, BATCH):
            with store.connections.write() as db:
                for number in range(begin, min(begin + BATCH, count)):
                    _copy(db, models[number % len(models)], number, chance, now)
        store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return count / (time.perf_counter() - started)


def varied(base: Diagnosis, number: int, chance: random.Random, now: float) -> Diagnosis:
    """The diagnosis as another job would have it: its own id, time and host, other numbers in its lines."""
    at = now - chance.random() * YEAR
    host = _host(chance)
    mark = f"{chance.randrange(10**6):06d}"
    word = "".join(chr(ord("a") + int(digit)) for digit in mark[:3])  # numbers change no cluster, words do

    def fact(item: Evidence) -> Evidence:
        text = item.text.replace("1", mark[0]).replace("2", mark[1])
        text = text.replace("has no tokens", f"has no {word} tokens")
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
class _Model:
    """All rows of a stored incident, and what must become another in a copy."""

    number: int
    at: float
    host: str
    incident: dict[str, Any]
    job: dict[str, Any]
    page: dict[str, Any]
    rows: dict[str, list[dict[str, Any]]]
    body: str


def _models(store: Store) -> Iterator[_Model]:
    db = store.connections.get()
    for number in range(BASE):
        found = db.execute("SELECT * FROM incident WHERE id = ?", (f"i-{_digits(number)}",)).fetchone()
        if found is None:
            return
        num = found["num"]
        rows = {
            name: [dict(row) for row in db.execute(f"SELECT * FROM {name} WHERE incident = ?", (num,))]
            for name in _TABLES
        }
        job = dict(db.execute("SELECT * FROM job WHERE id = ?", (found["job"],)).fetchone())
        page = dict(db.execute("SELECT * FROM page WHERE num = ?", (num,)).fetchone())
        packed = db.execute("SELECT body FROM report WHERE num = ?", (num,)).fetchone()["body"]
        host = next(row["name"] for row in rows["host"])
        yield _Model(number, found["at"], host, dict(found), job, page, rows, codec.unpacked(packed))


def _copy(db: Any, model: _Model, number: int, chance: random.Random, now: float) -> None:
    at, host = now - chance.random() * YEAR, _host(chance)
    swaps = (
        (_digits(model.number), _digits(number)),
        (_name(model.number), _name(number)),
        (model.host, host),
        (repr(model.at), repr(at)),
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

    insert("job", model.job)
    num = insert("incident", model.incident, num=None)
    for table, rows in model.rows.items():
        for row in rows:
            insert(table, row, incident=num)
    insert("page", model.page, num=num)
    db.execute("INSERT INTO report VALUES (?, ?)", (num, codec.packed(other(model.body, ""))))
    for key in {row["key"] for row in model.rows["finding"]} - {None}:
        day = "INSERT INTO counter VALUES (?, ?, 1) ON CONFLICT (key, day) DO UPDATE SET incidents = incidents + 1"
        db.execute(day, (key, int(at // DAY)))
        db.execute("UPDATE cluster_key SET jobs = jobs + 1 WHERE key = ?", (key,))
