"""Diagnoses for the tests of the store."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from triage.model.diagnosis import Diagnosis, FinalLine, Finding, Inconclusive, Job, RankState, Remediation, Stats
from triage.model.evidence import Evidence, Origin
from triage.store import Store, copying

NOW = 1_763_700_000.0  # 2025-11-21 04:40:00 UTC
DAY = 86_400.0


def make_job(name: str, **more: object) -> Job:
    """Return a job of two ranks; its id comes from its name."""
    values: dict[str, object] = {"world_size": 2, "ranks": (0, 1), "hosts": {"node1": (0, 1)}, "last_time": NOW, **more}
    return Job("j-" + hashlib.sha256(name.encode()).hexdigest()[:12], name, f"/jobs/{name}", **values)  # type: ignore[arg-type]


def make_fact(text: str, rank: int | None = 1, host: str | None = "node1", **more: object) -> Evidence:
    """Return an exception of one rank."""
    values: dict[str, object] = {
        "source": "job.log",
        "offset": 10,
        "end": 40,
        "line": 3,
        "end_line": 4,
        "excerpt": f"Traceback\n{text}",
        **more,
    }
    return Evidence("exception", "app", text, Origin(rank=rank, host=host, time=NOW, pid=7, attempt=0), **values)  # type: ignore[arg-type]


def known_diagnosis(
    name: str,
    signature: str = "cuda.out-of-memory",
    *,
    host: str = "node1",
    rank: int = 1,
    at: float = NOW,
    **more: object,
) -> Diagnosis:
    """Return the diagnosis of a known failure."""
    root = Finding(
        signature=signature,
        title=f"What {signature} says",
        domain=signature.partition(".")[0],
        role="cause",
        severity="fatal",
        confidence=0.9,
        ranks=(rank,),
        hosts=(host,),
        first_time=at,
        revision=1,
        fingerprint="f1",
        why=("it is first",),
        captures={"requested": "2.00 GiB"},
        evidence=(make_fact("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", rank, host),),
        remediation=Remediation("Use a smaller batch.", ("Look at it",), ("https://example.org/a",)),
    )
    states = (RankState(0, host, "ok"), RankState(1, host, "failed", 12, at))
    described = make_job(name, hosts={host: (0, 1)}, last_time=at)
    return replace(
        Diagnosis("0.1.0", "2026.11.1", described, "known", root, (root,), ranks=states, stats=Stats(1, 100)),
        **more,  # type: ignore[arg-type]
    )


def unknown_diagnosis(
    name: str, text: str = "ValueError: shard 7 is bad", cluster: str = "u-7f3a9c", *, at: float = NOW, rank: int = 1
) -> Diagnosis:
    """Return the diagnosis of an unknown failure."""
    root = Finding(
        None,
        text,
        "unknown",
        "cause",
        "fatal",
        0.8,
        ranks=(rank,),
        hosts=("node1",),
        first_time=at,
        cluster=cluster,
        evidence=(make_fact(text, rank),),
    )
    return Diagnosis(
        "0.1.0", "2026.11.1", make_job(name, last_time=at), "unknown", root, (), (root,), stats=Stats(1, 100)
    )


def clean_diagnosis(name: str) -> Diagnosis:
    """Return the diagnosis of a job that ended well."""
    return Diagnosis("0.1.0", "2026.11.1", make_job(name), "clean", None, stats=Stats(1, 100))


def inconclusive_diagnosis(name: str) -> Diagnosis:
    """Return the diagnosis of a job without a failure and without a proof of a good end."""
    known = Inconclusive(
        why=("No line says that the job finished",),
        last_lines=(FinalLine(1, "rank1.log", 300, NOW, "step 300 loss 2.1"),),
        looked_for=("12 signatures of the catalog",),
        next_steps=("Add the output of the launcher",),
    )
    return replace(clean_diagnosis(name), verdict="inconclusive", inconclusive=known)


def with_job_id(diagnosis: Diagnosis, identifier: str) -> Diagnosis:
    """Return the diagnosis of a job with this id."""
    return replace(diagnosis, job=replace(diagnosis.job, id=identifier))


def dump_tables(store: Store) -> str:
    """Return the rows of all tables that a store has in any database, as text."""
    rows = [
        f"{table} {[row[name] for name in row.keys() if name != 'lexemes']}"  # noqa: SIM118 - iteration gives values
        for table in copying.TABLES
        for row in store.connections.read(f"SELECT * FROM {table}")
    ]
    return "\n".join(sorted(rows))


def separated_pairs(store: Store) -> set[tuple[str, str]]:
    """Return the pairs of keys that a person separated, the smaller key first."""
    return {(row["one"], row["other"]) for row in store.connections.read("SELECT one, other FROM apart")}
