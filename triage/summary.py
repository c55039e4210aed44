"""The parts of a Diagnosis that describe the job and the run rather than the failure."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from triage.diagnose import Result
from triage.evidence.collect import Harvest
from triage.model.diagnosis import Job
from triage.model.evidence import Evidence


def job(paths: Sequence[str], gathered: Harvest, result: Result, identity: Sequence[str]) -> Job:
    """What is known of the job. `identity` is what makes it the same job wherever its files lie; the id is made of that
    alone.
    """
    path = os.path.commonpath([os.path.abspath(path) for path in paths]) if "-" not in paths else "-"
    times = [fact.origin.time for fact in result.facts if fact.origin.time is not None]
    times += [word.origin.time for _, word in gathered.words if word.origin.time is not None]
    return Job(
        id="j-" + hashlib.sha256("\n".join(identity).encode()).hexdigest()[:12],
        name=os.path.basename(path.rstrip("/")) or path,
        path=path if len(paths) > 1 else paths[0],
        world_size=gathered.job.world_size(),
        ranks=tuple(sorted(gathered.job.ranks)),
        hosts=gathered.job.host_ranks(),
        first_time=min(times, default=None),
        last_time=max(times, default=None),
        versions=dict(sorted(gathered.versions.items())),
    )


def failed(result: Result, settings: Sequence[Evidence]) -> bool:
    """Is anything wrong with the job besides the settings that deviate?"""
    about = {(fact.text, fact.source, fact.offset) for fact in settings}
    return any(
        (fact.text, fact.source, fact.offset) not in about
        for candidate in result.candidates
        if candidate.role not in ("noise", "confirmation")
        for fact in candidate.facts
    )


def peak_memory() -> int:
    """The most memory that this process has held, in bytes. Linux says it of this process alone, getrusage also of the
    one that started it.
    """
    try:
        with open("/proc/self/status", "rb") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith(b"VmHWM:"))
    except (OSError, StopIteration):
        import resource
        import sys

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
