"""The parts of a Diagnosis that describe the job and the run rather than the failure."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ParamSpec, TypeVar

from triage.base.addresses import common_path, is_address
from triage.base.forks import WorkSharer
from triage.diagnose import ReasoningResult
from triage.evidence.extracted import ExtractedJob
from triage.model import Job
from triage.model.diagnosis import RemoteCost, Stats
from triage.sources.opened_file import cost_so_far

P = ParamSpec("P")
T = TypeVar("T")
_COLLECTORS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def traced(name: str, work: Callable[P, T]) -> Callable[P, T]:
    """Return the work, in a span of OpenTelemetry where the program exports traces or a variable names a collector."""
    if not (any(map(os.environ.get, _COLLECTORS)) or _exports_traces()):
        return work
    try:
        from triage.pipeline.traces import in_span
    except ImportError:  # the extra otel is not installed
        return work
    return in_span(name, work)


def _exports_traces() -> bool:
    """Whether the program has set a provider of traces; other packages may only have imported the SDK."""
    trace = sys.modules.get("opentelemetry.trace")
    return trace is not None and not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def summarise_job(
    paths: Sequence[str],
    extracted: ExtractedJob,
    result: ReasoningResult,
    identity: str,
    facts: Mapping[str, tuple[str, ...]],
) -> Job:
    """Return what is known of the job. Its id is `identity`, the digest of its content; its path gives the name."""
    path = (
        common_path([path if is_address(path) else os.path.abspath(path) for path in paths])
        if "-" not in paths
        else "-"
    )
    times = [fact.origin.time for fact in result.facts if fact.origin.time is not None]
    times += [activity.origin.time for _, activity in extracted.activity if activity.origin.time is not None]
    return Job(
        id=f"j-{identity}",
        name=os.path.basename(path.rstrip("/")) or path,
        path=path if len(paths) > 1 else paths[0],
        world_size=extracted.job.world_size(),
        ranks=tuple(sorted(extracted.job.ranks)),
        hosts=extracted.job.ranks_by_host(),
        first_time=min(times, default=None),
        last_time=max(times, default=None),
        versions=dict(sorted(extracted.versions.items())),
        facts=facts,
    )


class RunMeter:
    """Measures one run: its duration, its memory, and what it and its workers read of the addresses among `paths`."""

    def __init__(self, paths: Sequence[str] = (), workers: WorkSharer | None = None) -> None:
        self._started = time.monotonic()
        self._paths = paths
        self._workers = workers
        self._cost = self._cost_so_far()

    def _cost_so_far(self) -> RemoteCost | None:
        own = cost_so_far(self._paths)
        if own is None:
            return None
        workers = getattr(self._workers, "cost", None)
        if workers is None:
            return own
        return RemoteCost(own.requests + workers.requests, own.retries + workers.retries, own.bytes + workers.bytes)

    def complete(self, stats: Stats) -> Stats:
        """Return the stats with what was measured."""
        cost, before = self._cost_so_far(), self._cost
        return replace(
            stats,
            seconds=round(time.monotonic() - self._started, 3),
            peak_memory_bytes=peak_memory(),
            remote=cost.since(before) if cost is not None and before is not None else None,
        )


def peak_memory() -> int:
    """Return the most memory that this process has held, in bytes. (getrusage may include the parent's before exec.)"""
    try:
        with open("/proc/self/status", "rb") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith(b"VmHWM:"))
    except (OSError, StopIteration):
        import resource
        import sys

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
