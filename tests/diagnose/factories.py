"""Build facts, signatures and candidates in a few words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from triage.catalog.model import Catalog, CausalEdge, Leaf, Signature
from triage.diagnose import ReasoningResult, causes, diagnose, rules
from triage.diagnose.candidates import Candidate
from triage.diagnose.confidence import rate_confidence
from triage.diagnose.context import RuleContext
from triage.diagnose.graph import EMPTY_CONTEXT, CausalGraph
from triage.model.details import Chain, Detail, ExceptionDetail, ExitDetail
from triage.model.diagnosis import Role
from triage.model.evidence import Evidence, Origin
from triage.ranks.identity import JobMap

INDICATES = {
    "crash.abort": "ending",
    "crash.segfault": "ending",
    "launch.interrupted": "outside",
    "slurm.cancelled": "outside",
    "data.worker-killed": "own-failure",
    "torch.heartbeat-timeout": "stalled",
    "torch.collective-timeout": "waiting",
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
    inherits_time: bool = False,
    detail: Detail | None = None,
    **fields: str,
) -> Evidence:
    """Return a fact at this place."""
    origin = Origin(rank=rank, host=host, pid=pid, time=time, attempt=attempt)
    end = offset + len(text)
    return Evidence(
        kind,
        component,
        text,
        origin,
        source,
        offset,
        end,
        fields,
        text,
        count,
        detail=detail,
        inherits_time=inherits_time,
    )


def raised(
    text: str, rank: int | None = None, *, chain: Chain = "final", quoted: bool = False, **parts: Any
) -> Evidence:
    """Return an exception that ended its process; `quoted`: as the launcher's table repeats it."""
    kind = text.partition(":")[0].rpartition(".")[2]
    detail = ExceptionDetail(kind, chain, quoted_by_launcher=quoted, secondary=chain != "final")
    parts = {"chain": chain, "type": kind, **parts}
    return fact(text, rank, kind="exception", component="Python", detail=detail, **parts)


def exited(rank: int | None, code: int, *, signal: str = "", by_agent: bool = False, **place: Any) -> Evidence:
    """Return the end of a process, as a launcher reports it; `by_agent`: the launcher stopped it."""
    fields = {"exitcode": str(code), "signal": signal, "by": "agent" if by_agent else ""}
    detail = ExitDetail(code, signal, by_agent)
    parts = {name: value for name, value in fields.items() if value}
    return fact(f"exitcode {code}", rank, kind="exit", component="launcher", detail=detail, **parts, **place)


def job_of(world_size: int, present: Sequence[int] | None = None) -> JobMap:
    """Return a job in which these ranks have left a trace (all by default)."""
    job = JobMap()
    job.sizes.add(world_size)
    for rank in range(world_size) if present is None else present:
        job.learn("job.log", Origin(rank=rank))
    return job


def solve(
    facts: Sequence[Evidence], catalog: Catalog, world_size: int = 4, present: Sequence[int] | None = None
) -> ReasoningResult:
    """Diagnose facts alone; those without a place stand one after the other."""
    placed = [
        replace(one, offset=one.offset or 100 * n, end=one.end if one.offset else 100 * n + 50)
        for n, one in enumerate(facts)
    ]
    return diagnose(placed, [], job_of(world_size, present), catalog)


def candidate(
    name: str,
    role: Role = "cause",
    ranks: Sequence[int] = (),
    *,
    time: float | None = None,
    leads_to: Sequence[str] = (),
) -> Candidate:
    """Return a known failure that these ranks show."""
    edges = tuple(CausalEdge(effect) for effect in leads_to)
    signature = Signature(
        name, 1, name, "stable", role, "error", Leaf(text=name), indicates=INDICATES.get(name), causal_edges=edges
    )
    return Candidate(signature, None, [fact(name, rank, time=time) for rank in ranks or [None]])  # type: ignore[list-item]


def unknown_failure(
    cluster: str, ranks: Sequence[int] = (), *, time: float | None = None, kind: str = "exception"
) -> Candidate:
    """Return a failure that no signature knows."""
    detail = ExceptionDetail() if kind == "exception" else ExitDetail(1)
    facts = [fact(cluster, rank, kind=kind, time=time, detail=detail) for rank in ranks or [None]]  # type: ignore[list-item]
    return Candidate(None, cluster, facts)


def explain(candidates: Sequence[Candidate], context: RuleContext = EMPTY_CONTEXT) -> CausalGraph:
    """Return the candidates after the weighing rules."""
    graph = CausalGraph(candidates, context)
    rules.weigh(graph)
    return graph


def decide(candidates: Sequence[Candidate]) -> causes.Verdict:
    """Choose among candidates that are explained already, with the confidence in the choice."""
    root, others = causes.choose_root(candidates)
    return causes.Verdict(root, others, rate_confidence(root, others, candidates) if root else 0.0)
