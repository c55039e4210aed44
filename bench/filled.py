"""A store full of incidents for benchmarks: `prepare_store(100_000)` returns its file, created at the first call.

A store of several 100,000 is one of 100,000 that is repeated within the database, which takes minutes.

The first incidents are variations of recorded samples that are stored normally, two of each cause. The others
are copies of their rows with another id, time, host and job, in the rows and in the report: few causes are frequent
and most are rare. Copies are written without triggers and indexes. Then the sums of causes are computed and the
indexes and the full text are built, as a migration does.
"""

from __future__ import annotations

import dataclasses
import hashlib
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from repeated import repeat_incidents  # noqa: E402

import triage  # noqa: E402
from triage.model.diagnosis import Diagnosis, Finding  # noqa: E402
from triage.model.evidence import Evidence  # noqa: E402
from triage.store import Store, cause_tables, codec, facet_tables  # noqa: E402

DATA = Path(__file__).parent / "data"
JOBS = ROOT / "samples" / "jobs"
SAMPLES = (
    "sigkill_perrank",
    "exception_one_rank_tee",
    "dataloader_worker_killed_tee",
    "checkpoint_size_mismatch_twonode",
    "disk_full_tee",
)
UNKNOWN = "exception_one_rank_tee"
CAUSES = 300
MOST_RANKS = 64  # of a base: rows of larger jobs would fill the disk
BATCH = 2000
BASE = 100_000
YEAR = 365 * 86_400
DAY = 86_400
HOSTS, TEAMS, PROJECTS, USERS = 2000, 12, 40, 200
_TABLES = ("attempt", "finding", "blamed_rank", "host", "fact", "warning", "redacted")
_TIMES = frozenset({"at", "stored_at", "seen_at", "first_time", "last_time"})


def prepare_store(count: int) -> Path:
    """Return a store of `count` incidents in bench/data. Copy it before you write to it."""
    DATA.mkdir(exist_ok=True)
    path = DATA / f"store-{count}-{CAUSES}.db"
    if not path.exists():
        scratch = path.with_suffix(".part")
        for leftover in DATA.glob(f"{scratch.name}*"):
            leftover.unlink()
        print(f"writing {path} …", flush=True)
        if count > BASE and count % BASE == 0:
            shutil.copy(prepare_store(BASE), scratch)
            with Store.open(scratch) as store:
                repeat_incidents(store, count // BASE)
        else:
            print(f"  {fill(scratch, count):.0f} incidents/s", flush=True)
        scratch.rename(path)
    return path


def fill(path: Path, count: int, causes: int = CAUSES) -> float:
    """Create the store at `path`; return incidents per second."""
    bases = list(make_bases(causes))
    chance, now = random.Random(7), time.time()
    started = time.perf_counter()
    with Store.open(path) as store:
        store.connections.get().execute("PRAGMA synchronous = OFF")
        originals = min(count, 2 * len(bases))
        with store.connections.write():
            for number in range(originals):
                store.incidents.add(vary_diagnosis(bases[number % len(bases)], number, chance, now))
        if count > originals:
            _write_copies(store, list(_read_rows(store, originals)), range(originals, count), chance, now)
        store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return count / (time.perf_counter() - started)


def make_bases(causes: int) -> Iterator[Diagnosis]:
    """Yield a diagnosis for each cause: those of the samples, then unknown failures in different words."""
    names = dict.fromkeys((*SAMPLES, *sorted(path.name for path in JOBS.iterdir() if (path / "job").exists())))
    signatures: set[str | None] = {None}
    for name in list(names)[: max(len(SAMPLES), causes)]:
        diagnosis = triage.ingest(JOBS / name / "job")
        signature = diagnosis.root_cause.signature if diagnosis.root_cause else None
        if signature not in signatures and (diagnosis.job.world_size or 1) <= MOST_RANKS and len(signatures) <= causes:
            signatures.add(signature)
            yield diagnosis
    unknown = triage.ingest(JOBS / UNKNOWN / "job")
    for number in range(causes - len(signatures) + 1):
        letters = "".join(chr(ord("a") + int(digit)) for digit in f"{number:03d}")
        yield _with_words(unknown, "has no tokens", f"has no {letters} tokens")


def _with_words(diagnosis: Diagnosis, old: str, new: str) -> Diagnosis:
    """Return a diagnosis with other words in its failures: numbers change no cluster, words do."""

    def finding(item: Finding) -> Finding:
        facts = tuple(dataclasses.replace(fact, text=fact.text.replace(old, new)) for fact in item.evidence)
        return dataclasses.replace(item, title=item.title.replace(old, new), evidence=facts)

    root = diagnosis.root_cause
    return dataclasses.replace(
        diagnosis,
        root_cause=None if root is None else finding(root),
        findings=tuple(map(finding, diagnosis.findings)),
        unknown=tuple(map(finding, diagnosis.unknown)),
    )


def vary_diagnosis(base: Diagnosis, number: int, chance: random.Random, now: float) -> Diagnosis:
    """Return the diagnosis of another job: with its own id, time, host and facts, and other numbers in its lines."""
    at = now - chance.random() * YEAR
    host = _host(chance)
    mark = f"{chance.randrange(10**6):06d}"

    def fact(item: Evidence) -> Evidence:
        return dataclasses.replace(
            item,
            text=item.text.replace("1", mark[0]).replace("2", mark[1]),
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
        facts={
            "team": (f"team-{chance.randrange(TEAMS)}",),
            "project": (f"project-{chance.randrange(PROJECTS)}",),
            "user": (f"user-{chance.randrange(USERS)}",),
        },
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
    rows: dict[str, list[dict[str, Any]]]
    body: str


def _read_rows(store: Store, count: int) -> Iterator[_StoredRows]:
    db = store.connections.get()
    for number in range(count):
        (incident,) = db.execute("SELECT * FROM incident WHERE id = ?", (f"i-{_digits(number)}",)).fetchall()
        num = incident["num"]
        rows = {"job": [dict(db.execute("SELECT * FROM job WHERE id = ?", (incident["job"],)).fetchone())]}
        rows["incident"] = [dict(incident)]
        for name in _TABLES:
            rows[name] = [dict(row) for row in db.execute(f"SELECT * FROM {name} WHERE incident = ?", (num,))]
        rows["page"] = [dict(db.execute("SELECT * FROM page WHERE num = ?", (num,)).fetchone())]
        body = codec.decompress_text(db.execute("SELECT body FROM report WHERE num = ?", (num,)).fetchone()["body"])
        yield _StoredRows(number, incident["at"], next(row["name"] for row in rows["host"]), rows, body)


def _write_copies(
    store: Store, originals: list[_StoredRows], numbers: range, chance: random.Random, now: float
) -> None:
    """Write copies of rows, few causes often and most rarely; then what triggers and indexes would have written."""
    causes = len(originals) // 2
    weights = [1 / (1 + place % causes) ** 0.8 for place in range(len(originals))]
    keys: Counter[tuple[str, int]] = Counter()
    db = store.connections.get()
    schema = "SELECT type, name, sql FROM sqlite_master WHERE type IN ('trigger', 'index') AND sql IS NOT NULL"
    parts = [tuple(row) for row in db.execute(schema)]
    for kind, name, _ in parts:
        db.execute(f'DROP {kind} "{name}"')
    (num,) = db.execute("SELECT max(num) FROM incident").fetchone()
    for begin in range(numbers.start, numbers.stop, BATCH):
        batch = range(begin, min(begin + BATCH, numbers.stop))
        chosen = chance.choices(originals, weights, k=len(batch))
        rows: dict[str, list[list[Any]]] = {}
        for number, stored in zip(batch, chosen, strict=True):
            num += 1
            at = now - chance.random() * YEAR
            _copy(rows, stored, number, num, at, _host(chance))
            keys.update((row["key"], int(at // DAY)) for row in stored.rows["finding"] if row["key"])
        with store.connections.write() as transaction:
            for table, values in rows.items():
                transaction.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values[0]))})", values)
    with store.connections.write() as transaction:
        _add_to_clusters(transaction, keys)
        cause_tables.SUMS.fill(transaction)
        facet_tables.SUMS.fill(transaction)
        transaction.execute("INSERT INTO page_fts (page_fts) VALUES ('rebuild')")
    for _, _, sql in parts:
        db.execute(sql)


def _copy(rows: dict[str, list[list[Any]]], stored: _StoredRows, number: int, num: int, at: float, host: str) -> None:
    """Add the rows of a copy to those of each table."""
    swaps = (
        (_digits(stored.number), _digits(number)),
        (_name(stored.number), _name(number)),
        (stored.host, host),
        (repr(stored.at), repr(at)),
    )

    def other(value: Any, column: str) -> Any:
        if column in ("num", "incident"):
            return num
        if isinstance(value, str):
            for old, new in swaps:
                value = value.replace(old, new)
        return at if column in _TIMES and value is not None else value

    for table, originals in stored.rows.items():
        for row in originals:
            rows.setdefault(table, []).append([other(value, column) for column, value in row.items()])
    rows.setdefault("report", []).append([num, codec.compress_text(other(stored.body, ""))])


def _add_to_clusters(db: Any, keys: Counter[tuple[str, int]]) -> None:
    """Count the copies in their clusters."""
    day = "INSERT INTO counter VALUES (?, ?, ?) ON CONFLICT (key, day) DO UPDATE SET incidents = incidents + ?"
    db.executemany(day, [(key, day, count, count) for (key, day), count in keys.items()])
    jobs: Counter[str] = Counter()
    for (key, _), count in keys.items():
        jobs[key] += count
    db.executemany("UPDATE cluster_key SET jobs = jobs + ? WHERE key = ?", [(n, key) for key, n in jobs.items()])
