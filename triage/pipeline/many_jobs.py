"""Diagnose many jobs, each in a process of its own, or as one task of a cluster.

What one of them does to its process does not reach the others.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import select
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import Any

import triage
from triage.base import forks
from triage.base.collection_pause import paused_collection
from triage.base.errors import InputError, TriageError
from triage.base.executor_work import ExecutorWorkers, check_version
from triage.base.options import Options
from triage.model import Diagnosis
from triage.pipeline.job_listing import JobListing, JobPath, fingerprint, list_jobs

_DIED = "the process that read it ended without an answer"
_DIED_HINT = "Diagnose this job alone to see why; perhaps it needs more memory than there is."


@dataclasses.dataclass(frozen=True, slots=True)
class JobResult:
    """What became of one job: a diagnosis, an error with its hint, or neither if it is as it was before.

    `settings` are those of the job, as `triage env --format json` writes them.
    """

    job: JobPath
    fingerprint: str = ""
    diagnosis: Diagnosis | None = None
    error: str = ""
    hint: str = ""
    settings: dict[str, Any] | None = None

    @property
    def is_unchanged(self) -> bool:
        """Whether the job was not read because nothing in it changed."""
        return self.diagnosis is None and not self.error


_WARM_UP = Path(triage.__file__).with_name("service") / "work" / "warm_up.log"


def warm_up(options: Options) -> None:
    """Load what every job needs, once, before the processes of jobs are forked."""
    from triage import pipeline

    pipeline.ingest([str(_WARM_UP)], dataclasses.replace(options, workers=1, fork=False))


def list_jobs_apart(root: str) -> JobListing:
    """List the jobs below a directory or prefix in a process of its own, so that this one has no other threads.

    Raises InputError.
    """
    with forks.forked([lambda pipe: _send(pipe, lambda: list_jobs(root))]) as pipes:
        answer = _decode(pipes[0].read())
    if "error" in answer:
        raise InputError(answer["error"], hint=answer["hint"], path=answer.get("path"))
    jobs, others = answer["result"]
    return JobListing([JobPath(*job) for job in jobs], others)


def diagnose_jobs(
    jobs: Sequence[JobPath], options: Options, known: Mapping[str, str], processes: int
) -> Iterator[JobResult]:
    """Yield the result of each job, in their order, several being read at a time.

    `known` has the fingerprints, by name, of jobs whose answer is known: one that still has it is not read again.
    """
    own = dataclasses.replace(options, fork=False)
    warm_up(own)
    ahead = 4 * processes
    with ExitStack() as everything:
        running: dict[int, tuple[BufferedReader, ExitStack, list[bytes]]] = {}
        results: dict[int, JobResult] = {}
        started = 0
        for number in range(len(jobs)):
            while number not in results:
                while started < len(jobs) and len(running) < processes and started < number + ahead:
                    running[started] = _start(everything, jobs[started], own, known.get(jobs[started].name, ""))
                    started += 1
                for ended in _wait(running):
                    _, stack, parts = running.pop(ended)
                    stack.close()
                    results[ended] = _result(jobs[ended], b"".join(parts))
            yield results.pop(number)


def diagnose_jobs_remotely(
    jobs: Sequence[JobPath], options: Options, known: Mapping[str, str], workers: ExecutorWorkers
) -> Iterator[JobResult]:
    """Yield the result of each job, in their order; each is one task of a cluster, whose workers open the same paths.

    A job whose workers were lost again and again is an error; this process does not read it. `known` is that of
    `diagnose_jobs`.
    """
    own = [options.chunk_bytes, options.addresses, options.reuse, dict(options.labels)]
    wanted = json.dumps([list(map(str, options.catalogs)), *own])
    calls = (
        functools.partial(_diagnose_on_worker, triage.__version__, wanted, job.name, job.path, known.get(job.name, ""))
        for job in jobs
    )
    for job, answer in zip(jobs, workers.call_in_order(calls), strict=True):
        yield _result(job, b"" if isinstance(answer, BaseException) else answer)


def _diagnose_on_worker(version: str, options: str, name: str, path: str, known: str) -> bytes:
    check_version(version)
    catalogs, chunk_bytes, addresses, reuse, labels = json.loads(options)
    labels = {name: tuple(values) for name, values in labels.items()}
    own = Options(tuple(map(Path, catalogs)), 1, chunk_bytes, addresses=addresses, reuse=reuse, labels=labels)
    return _answer(lambda: _diagnose(JobPath(name, path), own, known))


def _start(
    everything: ExitStack, job: JobPath, options: Options, known: str
) -> tuple[BufferedReader, ExitStack, list[bytes]]:
    stack = everything.enter_context(ExitStack())
    pipes = stack.enter_context(forks.forked([lambda pipe: _send(pipe, lambda: _diagnose(job, options, known))]))
    return pipes[0], stack, []


def _wait(running: Mapping[int, tuple[BufferedReader, ExitStack, list[bytes]]]) -> list[int]:
    """Read from all processes until some have ended; return their numbers."""
    by_pipe = {pipe.fileno(): number for number, (pipe, _, _) in running.items()}
    poll = select.poll()
    for descriptor in by_pipe:
        poll.register(descriptor, select.POLLIN)
    ended: list[int] = []
    while not ended:
        for descriptor, _ in poll.poll():
            pipe, _, parts = running[by_pipe[descriptor]]
            data = pipe.read1(1 << 16)
            if data:
                parts.append(data)
            else:
                ended.append(by_pipe[descriptor])
    return sorted(ended)


def _diagnose(job: JobPath, options: Options, known: str) -> tuple[str, Any, Any]:
    """Return the fingerprint of a job, its report and its settings; the first alone if the fingerprint is known."""
    from triage import pipeline
    from triage.render import environment
    from triage.render.json import document

    now = fingerprint(job.path)
    if now == known:
        return now, None, None
    with paused_collection():
        diagnosis, audit = pipeline.ingest_with_audit([job.path], options)
    return now, document(diagnosis), environment.as_document(audit)


def _send(pipe: BufferedWriter, work: Callable[[], Any]) -> None:
    """Write the result of the work, or why there is none."""
    pipe.write(_answer(work))


def _answer(work: Callable[[], Any]) -> bytes:
    """Return the result of the work, or why there is none, as a line of JSON."""
    try:
        answer: dict[str, Any] = {"result": work()}
    except TriageError as error:
        answer = {"error": str(error) if not error.path else error.message, "hint": error.hint, "path": error.path}
    except MemoryError:
        answer = {"error": "not enough memory", "hint": _DIED_HINT}
    except Exception as error:  # one damaged job must not stop the others
        answer = {"error": f"unexpected {type(error).__name__}", "hint": "This is a bug: report it with the file."}
    return json.dumps(answer).encode() + b"\n"


def _decode(data: bytes) -> dict[str, Any]:
    if not data.endswith(b"\n"):
        return {"error": _DIED, "hint": _DIED_HINT}
    answer: dict[str, Any] = json.loads(data)
    return answer


def _result(job: JobPath, data: bytes) -> JobResult:
    from triage.render import json as report

    answer = _decode(data)
    if "error" in answer:
        return JobResult(job, error=answer["error"], hint=answer["hint"])
    now, document, settings = answer["result"]
    diagnosis = report.read(json.dumps(document)) if document is not None else None
    return JobResult(job, now, diagnosis, settings=settings)
