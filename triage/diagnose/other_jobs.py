"""Lines about other jobs: the log of a scheduler's daemon, or a table of its accounting, has many."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re
from triage.model import Evidence

_KINDS = frozenset(("message", "scheduler", "ending"))
_STATES = "COMPLETED|FAILED|TIMEOUT|CANCELLED|NODE_FAIL|OUT_OF_MEMORY|PREEMPTED|DEADLINE|BOOT_FAIL|REQUEUED"
# `*** STEP 7.0 ON gpu-a01 CANCELLED`, `Killing JobId=7`, `StepId=7.0`, `Job_id=7`, `Job <7>`, `[job 7]`; rows of sacct.
_JOB = masked_re(
    r"\*\*\* (?:JOB|STEP) (\d+)|\b(?:JobId|JobID|StepId|Job_id)=(\d+)|\bJob <(\d+)>|\[job (\d+)\]"
    rf"|^\s*(\d+)(?:_\d+)?(?:\.\w+)?(?=[ |])(?=[^\n]*[ |](?:{_STATES})\b)"
)
# slurmd's log: `[7.0] error: …`, `[7.batch] done with job`.
_STEP_OF_DAEMON = lazy_re(r"^\[(\d+)\.(?:\d+|batch|extern)\] ")
_OF_OUTPUT = lazy_re(r"^(?:\d+: )?(?:srun|slurmstepd)\b")
# What Slurm itself calls the output; an array's task (`slurm-7_1.out`) has another number than lines of the daemons.
_OF_SLURM = lazy_re(r"^slurm-(\d+)\.(?:out|err)$")
_OF_DAEMON = lazy_re(r"(?<![a-z])slurm(?:ctl)?d(?![a-z])[^/]*$")
# `slurm-7.out`, `train_48213.err`; a short number may also be that of a rank or a node.
_IN_NAME = lazy_re(r"(?i)(?<![a-z])(?:slurm|job)[-_.]?(\d+)|(?<![\d.])(\d{4,})(?!\d)")


def find_own_jobs(facts: Iterable[Evidence], sources: Iterable[str]) -> frozenset[str]:
    """Return the scheduler's numbers of this job; empty if the files do not tell them.

    They stand in names of files (`slurm-7.out`), and in what the scheduler writes into a job's output. A task of an
    array has another number there than in the name of its file, so both count. A name that is not Slurm's own counts
    only where a line has the same number.
    """
    stating = (fact for fact in facts if fact.kind in _KINDS)
    named = [(fact, jobs) for fact in stating if (jobs := _list_jobs(fact.text, fact.source))]
    names = [PurePosixPath(source).name for source in sources]
    numbers = {match[1] or match[2] for name in names for match in _IN_NAME.finditer(name)}
    own = {job for _, jobs in named for job in jobs if job in numbers}
    own |= {match[1] for name in names if (match := _OF_SLURM.search(name)) is not None}
    return frozenset(own.union(*(jobs for fact, jobs in named if _OF_OUTPUT.search(fact.text))))


def name_other_job(fact: Evidence, own: Collection[str]) -> str:
    """Return the number of the other job that a line, or one of several last lines, is about; else ""."""
    if not own or fact.kind not in _KINDS:
        return ""
    for line in fact.text.splitlines() if fact.kind == "ending" else (fact.text,):
        jobs = _list_jobs(line, fact.source)
        if jobs and jobs.isdisjoint(own):
            return min(jobs, key=int)
    return ""


def is_of_daemon(source: str) -> bool:
    """Return whether a file is the log of a scheduler's daemon, which began long before the job."""
    return "slurm" in source and _OF_DAEMON.search(source) is not None


def _list_jobs(text: str, source: str) -> set[str]:
    """Return the jobs of a scheduler that a text names."""
    jobs = {number for match in _JOB.finditer(text) for number in match.groups() if number}
    is_of_node = "slurmd" in source and "slurmd" in PurePosixPath(source).name
    if is_of_node and (step := _STEP_OF_DAEMON.match(text)) is not None:
        jobs.add(step[1])
    return jobs
