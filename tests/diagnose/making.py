"""Facts, signatures and candidates in a few words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from triage.catalog.model import Catalog, Edge, Leaf, Signature
from triage.diagnose import Result, causes, diagnose, rules
from triage.diagnose.candidates import Candidate
from triage.diagnose.confidence import confidence
from triage.diagnose.graph import EMPTY, Case
from triage.diagnose.scene import Scene
from triage.model.diagnosis import Role
from triage.model.evidence import Evidence, Origin
from triage.ranks.identity import JobMap

TELLS = {
    "crash.abort": "ending",
    "crash.segfault": "ending",
    "launch.interrupted": "outside",
    "slurm.cancelled": "outside",
    "data.worker-killed": "own-failure",
}
GLOO = "RuntimeError: [pair.cc:553] Connection closed by peer [10.0.0.1]:4711"
TIMEOUT = "RuntimeError: [unbound_buffer.cc:78] Timed out waiting 30000ms for recv operation to complete"


def fact(
    text: str,
    rank: int | None = None,
    *,
    kind: str = "message",
    component: str = "app",
    source: str = "job.log",
    offset: int = 0,
    time: float | None = None,
    host: str | None = None,
    pid: int | None = None,
    attempt: int = 0,
    count: int = 1,
    **fields: str,
) -> Evidence:
    origin = Origin(rank=rank, host=host, pid=pid, time=time, attempt=attempt)
    return Evidence(kind, component, text, origin, source, offset, offset + len(text), fields, text, count)


def raised(text: str, rank: int | None = None, **fields: object) -> Evidence:
    """An exception that ended its process."""
    kind = text.partition(":")[0].rpartition(".")[2]
    return fact(text, rank, kind="exception", component="Python", **{"chain": "final", "type": kind, **fields})  # type: ignore[arg-type]


def left(rank: int | None, code: int, *, signal: str = "", by: str = "", **place: object) -> Evidence:
    """The end of a process, as a launcher tells it."""
    fields = {name: value for name, value in (("signal", signal), ("by", by)) if value}
    return fact(f"exitcode {code}", rank, kind="exit", component="launcher", exitcode=str(code), **fields, **place)  # type: ignore[arg-type]


def job_of(world_size: int, seen: Sequence[int] | None = None) -> JobMap:
    """A job of which these ranks have left a trace (all, if not said)."""
    job = JobMap()
    job.sizes.add(world_size)
    for rank in range(world_size) if seen is None else seen:
        job.learn("job.log", Origin(rank=rank))
    return job


def solve(
    facts: Sequence[Evidence], catalog: Catalog, world_size: int = 4, seen: Sequence[int] | None = None
) -> Result:
    """The diagnosis of facts alone; those that say nothing of a place lie one after the other."""
    placed = [
        replace(one, offset=one.offset or 100 * n, end=one.end if one.offset else 100 * n + 50)
        for n, one in enumerate(facts)
    ]
    return diagnose(placed, [], job_of(world_size, seen), catalog)


def candidate(
    name: str,
    role: Role = "cause",
    ranks: Sequence[int] = (),
    *,
    time: float | None = None,
    leads_to: Sequence[str] = (),
) -> Candidate:
    """A known failure that these ranks show."""
    signature = Signature(
        name, 1, name, "stable", role, "error", Leaf(text=name), tells=TELLS.get(name), leads_to=tuple(Edge(effect) for effect in leads_to)
    )  # fmt: skip
    return Candidate(signature, None, [fact(name, rank, time=time) for rank in ranks or [None]])  # type: ignore[list-item]


def stranger(
    cluster: str, ranks: Sequence[int] = (), *, time: float | None = None, kind: str = "exception"
) -> Candidate:
    """An unknown failure."""
    return Candidate(None, cluster, [fact(cluster, rank, kind=kind, time=time) for rank in ranks or [None]])  # type: ignore[list-item]


def explain(candidates: Sequence[Candidate], scene: Scene = EMPTY) -> Case:
    """The candidates, after the weighing rules."""
    case = Case(candidates, scene)
    rules.weigh(case)
    return case


def decide(candidates: Sequence[Candidate]) -> causes.Verdict:
    """The choice among candidates that are explained already, with the confidence in it."""
    chosen, others = causes.decide(candidates)
    return causes.Verdict(chosen, others, confidence(chosen, others, candidates) if chosen else 0.0)
