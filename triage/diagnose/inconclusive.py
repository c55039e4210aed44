"""Why a job is neither failed nor clean: where its logs end, what is missing, and what to add."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.diagnose.completion import Writer
from triage.diagnose.phrases import agree, join_names
from triage.diagnose.reason import ReasoningResult
from triage.model import EndingDetail, Evidence, FinalLine, Inconclusive, Warning

MOST_LINES = 12
_MOST_UNUSUAL = 5
_MOST_NAMED = 3
# Seconds by which a rank must end before the next one to have stopped first: lines of one moment differ by less.
FIRST_BY = 2.0
_DAMAGED = ("corrupt", "truncated", "truncated-archive", "too-large", "bomb", "unreadable", "storm")
_WHY_UNREAD = {
    "corrupt": "damaged",
    "truncated": "cut off",
    "truncated-archive": "cut off",
    "encrypted": "encrypted",
    "special-member": "not a file",
    "unreadable": "not readable",
}
_SLURM = lazy_re(r"(?i)\bslurm|\bsrun\b|\bsbatch\b")
_KUBERNETES = lazy_re(r"(?i)\bkube|\bpods?\b")


@dataclass(frozen=True, slots=True)
class ReadInput:
    """What was read of a job's files.

    `text_bytes` of logs were read, `torn` sources end within a line, `unread` are (name, kind) of files without text,
    `signatures` were looked for.
    """

    text_bytes: int = 0
    torn: tuple[str, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    signatures: int = 0


def explain_inconclusive(
    result: ReasoningResult,
    last_lines: Iterable[Evidence],
    read: ReadInput,
    number: Callable[[tuple[Evidence, ...]], tuple[Evidence, ...]],
    warnings: Sequence[Warning] = (),
) -> Inconclusive:
    """Return what is known of the end of a job without a failure and without a proof of a good end.

    `last_lines` are those of each rank, and of each file that names none; `number` looks up the numbers of lines.
    """
    lines = sorted(last_lines, key=_stopped)
    ends = [*_explain_end(result, read), *_explain_first(result, lines)]
    why = ends if read.text_bytes else _explain_unread(read, warnings)
    damaged = sorted({_short(warning.source) for warning in warnings if warning.source and warning.code in _DAMAGED})
    if damaged and read.text_bytes:
        why.append(f"Not read to the end: {_name_some(damaged)}")
    return Inconclusive(
        why=tuple(why),
        last_lines=tuple(map(_final_line, number(tuple(lines[:MOST_LINES])))),
        unusual_lines=tuple(map(_final_line, number(tuple(_unusual_lines(result.facts))))),
        looked_for=_looked_for(read),
        next_steps=tuple(_next_steps(result, lines, read)),
    )


def _stopped(line: Evidence) -> tuple[object, ...]:
    origin = line.origin
    return (origin.time is None, origin.time or 0.0, origin.rank is None, origin.rank or 0, line.source, line.offset)


def _final_line(line: Evidence) -> FinalLine:
    return FinalLine(line.origin.rank, line.source, line.line, line.origin.time, line.text)


def _explain_unread(read: ReadInput, warnings: Sequence[Warning]) -> list[str]:
    reasons = {warning.source: _WHY_UNREAD[warning.code] for warning in warnings if warning.code in _WHY_UNREAD}
    by_name = {**dict(read.unread), **{name: reason for name, reason in reasons.items() if name}}
    kinds = [f"{_short(name)} is {_WHY_UNREAD.get(kind, kind)}" for name, kind in sorted(by_name.items())]
    return [f"Nothing could be read: {_name_some(kinds)}" if kinds else "Nothing could be read: no file holds text"]


def _explain_end(result: ReasoningResult, read: ReadInput) -> Iterator[str]:
    if read.torn:
        torn = [_short(name) for name in read.torn]
        ends = agree(torn, "ends", "end")
        yield f"{_name_some(torn)} {ends} in the middle of a line: what came after it is missing"
    completion = result.outcome.completion
    if not completion.lines:
        yield "No line says that the job finished"
        return
    finished = completion.finished
    if finished and completion.open_ranks:
        say = agree(completion.open_ranks, "does", "do")
        yield f"{_of_ranks(finished)} finished; {format_ranks(completion.open_ranks)} {say} not say so"
    elif completion.open_ranks:
        yield f"A line says that something finished, but not {format_ranks(completion.open_ranks)}"
    if completion.open_writers:
        ends = agree(completion.open_writers, "stops", "stop")
        names = _name_some([_name_writer(writer) for writer in completion.open_writers])
        yield f"{names} {ends} without saying that {agree(completion.open_writers, 'it', 'they')} finished"


def _name_writer(writer: Writer) -> str:
    """Return `worker-5 in all.log`, or the source alone for lines without a label."""
    label = writer.label.strip(" []:|()")
    return f"{label} in {_short(writer.source)}" if label else _short(writer.source)


def _explain_first(result: ReasoningResult, lines: Sequence[Evidence]) -> Iterator[str]:
    """Yield who stopped first, where clocks or steps show it."""
    times = {line.origin.rank: line.origin.time for line in lines if line.origin.rank is not None}
    known = {rank: time for rank, time in times.items() if time is not None}
    if len(times) > 1 and len(known) == len(times):
        yield from _explain_first_by_time(known)
        return
    steps = {rank: step for rank, step in result.outcome.last_step.items() if rank in times}
    behind = [rank for rank, step in steps.items() if step < max(steps.values())]
    if behind and len(behind) * 2 <= len(steps):
        least = min(steps.values())
        yield f"{_of_ranks(behind)} stopped at step {least} or later, the others at step {max(steps.values())}"


def _explain_first_by_time(times: Mapping[int, float]) -> Iterator[str]:
    """Yield which ranks stopped before the others: those before the first gap, if they are not most of all."""
    order = sorted(times, key=lambda rank: (times[rank], rank))
    gaps = ((number, times[order[number]] - times[order[number - 1]]) for number in range(1, len(order)))
    number, gap = next(((number, gap) for number, gap in gaps if gap >= FIRST_BY), (0, 0.0))
    if 0 < number <= (len(order) + 1) // 2:
        last = datetime.fromtimestamp(times[order[number - 1]], UTC)
        yield f"{_of_ranks(order[:number])} stopped first, at {last:%H:%M:%S}, {gap:.0f} s before the others"
    elif not number:
        yield f"The logs of all {len(order)} ranks end within {max(1, round(times[order[-1]] - times[order[0]]))} s"


def _unusual_lines(facts: Iterable[Evidence]) -> list[Evidence]:
    """Return the lines that are unlike all before them, which are no failure by themselves."""
    unlike = [fact for fact in facts if isinstance(fact.detail, EndingDetail) and fact.detail.strength == "unlike"]
    return sorted(unlike, key=_stopped)[:_MOST_UNUSUAL]


def _looked_for(read: ReadInput) -> tuple[str, ...]:
    return (
        f"{read.signatures:,} signatures of the catalog",
        "Exceptions, crashes, exit statuses, and last lines with the form of an error or unlike all before them",
        "A launcher, scheduler or container platform that reports success",
        "A last line of every rank that says that it finished",
    )


def _next_steps(result: ReasoningResult, lines: Sequence[Evidence], read: ReadInput) -> Iterator[str]:
    """Yield what to add, the scheduler's record first."""
    if not read.text_bytes:
        yield "Give the files that hold the job's standard output and standard error, as text"
    texts = " ".join([line.source + " " + line.text[:200] for line in lines])
    if _KUBERNETES.search(texts):
        yield "Add the state of the pods: `kubectl get pods -o yaml`, and `kubectl logs --previous`"
    elif _SLURM.search(texts):
        yield "Add the job's record: `sacct -j JOB --format=JobID,State,ExitCode,End > sacct.txt`"
    else:
        yield (
            "Add what the scheduler or the container platform says of the job: `sacct -j JOB --format=JobID,State,"
            "ExitCode`, `kubectl get pods -o yaml` or `docker inspect`"
        )
    yield "Add the output of the launcher (torchrun, srun, mpirun) and the standard error of every rank"
    if result.outcome.completion.open_ranks or not result.outcome.completion.lines:
        yield "Add `dmesg -T` of the nodes: a process that the kernel killed writes nothing itself"
    yield "If the job still runs, use `triage watch`; if it hangs, `triage collect`"


def _of_ranks(ranks: Iterable[int]) -> str:
    text = format_ranks(ranks)
    return text[:1].upper() + text[1:]


def _short(source: str | None) -> str:
    return (source or "").rstrip("/").rsplit("/", 1)[-1]


def _name_some(names: Sequence[str]) -> str:
    more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    return join_names([*names[:_MOST_NAMED], *more])
