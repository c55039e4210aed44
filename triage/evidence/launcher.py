"""Ends of processes, as launchers report them: torchelastic, srun, DeepSpeed, mpirun, msrun and scripts.

Horovod and mpirun report from one host what ended on any: the host before their lines is not that of the process.
Fields of kind `exit`: exitcode, signal, pid, by (`agent`: the launcher itself stopped it).
"""

from __future__ import annotations

import dataclasses
import re
import signal as signals

from triage.base.host_lists import expand_numbers
from triage.base.lazy_re import lazy_re
from triage.base.masked_re import MaskedPatterns, masked_re
from triage.base.signal_texts import SIGNAL_TEXTS
from triage.evidence import python
from triage.evidence.extractor import make_evidence
from triage.evidence.stated_signals import signal_of_status
from triage.model import Block, Evidence, ExceptionDetail, ExitDetail, Origin
from triage.ranks.timestamps import ISO, epoch_seconds, match_time_zone

_TABLE = lazy_re(r"^[\w.]*ChildFailedError\b", re.M)
# torch/multiprocessing/spawn.py
_SPAWNED = lazy_re(
    r"ProcessExitedException: process (?P<index>\d{1,4}) terminated with (?:signal (?P<signal>SIG[A-Z]{2,8})|"
    r"exit code (?P<code>\d{1,3}))"
)
# What `@record` saved belongs to the process, not to the launcher that quotes it.
_QUOTED = lazy_re(r"(  traceback : )Traceback \(most recent call last\):\n.*?(?=^[-=]{20}|^\[\d+\]:|\Z)", re.M | re.S)
_RANK = lazy_re(r"rank\s+: (\d{1,18}) \(local_rank: (\d{1,18})\)")
_EXIT = lazy_re(r"exitcode\s+: (-?\d{1,18}) \(pid: (\d{1,18})\)(?:\s+\((SIG\w+)\))?")
_HOST = lazy_re(r"host\s+: (\S+)")
_ZONE = 1200  # seconds; the table is printed soon after the failures, so more is another time zone
_TIME = lazy_re(rf"time\s+: {ISO}")
_FAILED = masked_re(r"failed \(exitcode: (-?\d{1,18})\) local_rank: (\d{1,18}) \(pid: (\d{1,18})\)")
_STOPPED = masked_re(
    r"Sending process (\d{1,18}) closing signal (SIG\w+)|Terminating process (\d{1,18}) via signal (SIG\w+)"
)
_SRUN = masked_re(
    r"(?:srun: error: (?P<host>[\w.\[\],-]+): )?tasks? (?P<tasks>[\d,-]+): "
    r"(?:Exited with exit code (?P<code>\d{1,18})"
    rf"|(?P<how>{'|'.join(SIGNAL_TEXTS)}|Out Of Memory)(?= \(|$))"
)
_OTHERS = masked_re(
    r"(?:--local_rank=(?P<local>\d{1,18})\b.*|\blaunch\.py:\d+.*)exits? with return code = (?P<code>-?\d{1,18})"
    r"|(?<!\S)(?P<host>\S{1,255}): rank (?P<rank>\d{1,18}) "
    r"(?:exited with code (?P<exit>\d{1,18})|died from signal (?P<signal>\d{1,18}))"
)
_MPI = masked_re(
    r"process rank (?P<rank>\d{1,18}) with PID (?P<pid>\d{1,18}) on node (?P<host>\S+) "
    r"exited on signal (?P<signal>\d{1,18})"
)
_MPI_EXIT = masked_re(
    r"Process name: \[(?:\[\d+,\d+\]|[\w.@-]{1,200}),\s?(?P<rank>\d{1,18})\] Exit code:\s+(?P<code>-?\d{1,18})"
)
# Horovod names processes by rank, in elastic jobs by host and local rank; what ends by SIGTERM, it stopped itself.
_HOROVOD = masked_re(
    r"^(?:Process name: |Process )(?:(?P<rank>\d{1,7})|(?P<host>[\w.-]{1,80})\[(?P<local>\d{1,4})\])"
    r" (?:Exit code: {1,9}|exit with status code )(?P<code>-?\d{1,10})\b"
)
# Open MPI and its runtimes; MPICH, Intel MPI and MVAPICH.
_MPI_ABORT = masked_re(
    r"MPI_ABORT was invoked on rank (?P<rank>\d{1,18}) in communicator MPI[_ ]COMM[_ ]WORLD\b"
    r"(?:.*?\b[Ee]rrorcode:? (?P<code>\d{1,18}))?"
    r"|MPI_Abort\(MPI_COMM_WORLD, (?P<argument>\d{1,18})\) - process (?P<process>\d{1,18})"
)
# MPICH's hydra.
_HYDRA = masked_re(r"= +PID (?P<pid>\d{1,7}) RUNNING AT (?P<host>[\w.-]{1,80}) = +EXIT CODE: (?P<code>\d{1,5})\b")
_INTEL = masked_re(
    r"= +RANK (?P<rank>\d{1,7}) PID (?P<pid>\d{1,7}) RUNNING AT (?P<host>[\w.-]{1,80}) = +"
    r"(?:EXIT STATUS: (?P<code>\d{1,5})\b|KILLED BY SIGNAL: (?P<signal>\d{1,3})\b(?: \([^)]{0,80}\))?)"
)
# For a process that a signal ended, hydra prints the number of the signal as its exit code.
_HYDRA_SIGNALS = frozenset((4, 6, 7, 8, 9, 11, 15))
# Scripts that start processes number them, or name their pids: `process 1 exited with code 137`, msrun's `Worker
# process 412 exit with exception. Error code: -9.`, and nothing else. `worker-2` is the name of a container, which
# docker compose numbers from 1.
_NUMBERED = masked_re(
    r"(?i)(?:^|[\]:] {1,3})(?:(?P<name>(?:[a-z][\w-]{0,60}[_-])?(?:process|worker|task|trainer|proc|child)[_-]\d{1,7})"
    r"|(?:process|worker|task|trainer|proc|child)(?: process| pid)?(?: #?|: )(?P<number>\d{1,7}))"
    r":? (?:has )?(?:exit(?:ed|s)?|ended|finished|terminated|died|returned)(?: with)?"
    r"(?: exception\.)?(?: (?:exit|error|return))?(?: (?:code|status|rc))[ :=]{1,3}(?P<code>-?\d{1,3})\W{0,3}$"
)
_HIGHEST_INDEX = 256  # a process has a higher number as its pid
_NOTICES = ("notice", "abort", "process-name", "termination")


def extract(block: Block) -> list[Evidence]:
    """Return the ends of processes that the block reports."""
    if block.form == "elastic":
        return _parse_entry(block, "\n".join(block.lines))
    if block.form == "traceback" and "ChildFailedError" in "\n".join(block.lines):
        return _parse_table(block)
    if block.form == "traceback" and (end := _SPAWNED.search(block.lines[-1])):
        return _parse_spawned(block, end)
    if block.form not in ("line", "c10", *_NOTICES):
        return []
    # Open MPI wraps its notices at 72 columns.
    text = " ".join(filter(None, map(str.strip, block.lines))) if block.form in _NOTICES else block.lines[0]
    first = next(_OF_LINES.search(text), None)
    return _LINES[first[0]][1](block, first[1]) if first is not None else []


def _parse_spawned(block: Block, match: re.Match[str]) -> list[Evidence]:
    """Parse what torch.multiprocessing.spawn raises for the first process that failed without an exception of Python.

    `ProcessExitedException: process 3 terminated with signal SIGSEGV`, or `… with exit code 1`.
    """
    number = signals.Signals.__members__.get(match["signal"] or "")
    code = -number if number else int(match["code"] or 0)
    origin = dataclasses.replace(block.origin, rank=None, local_rank=int(match["index"]))
    return [_make_exit(block, origin, code, text=match.group(), first_observed=True)] if code else []


def _parse_table(block: Block) -> list[Evidence]:
    """Parse torchelastic's table at the end of the agent's own traceback: one entry per failed process."""
    text = "\n".join(block.lines)
    headline = _TABLE.search(text)  # not the `raise ChildFailedError(` of the last frame
    table = text[headline.start() if headline else text.find("ChildFailedError") :]
    facts = [make_evidence(block, "message", "torchelastic", _QUOTED.sub(r"\1…\n", table))]
    entries = re.split(r"\n\[\d+\]:\n", table)
    for number, entry in enumerate(entries[1:], 1):
        is_first = "first observed" in entries[number - 1].rsplit("----------", 1)[-1]
        for fact in _parse_entry(block, entry, is_first=is_first):
            facts.append(fact)
            facts.extend(_quoted_exceptions(block, entry, fact.origin))
    return facts


def _quoted_exceptions(block: Block, entry: str, origin: Origin) -> list[Evidence]:
    """Return the exceptions of the traceback that `@record` saved, which the entry quotes, indented by two."""
    _, header, quoted = entry.partition("  traceback : Traceback (most recent call last):\n")
    if not header:
        return []
    lines = [line.removeprefix("  ") for line in re.split(r"^[-=]{20}", quoted, maxsplit=1, flags=re.M)[0].split("\n")]
    facts = python.extract(
        dataclasses.replace(block, lines=("Traceback (most recent call last):", *lines), ambiguous=False)
    )
    return [
        dataclasses.replace(fact, origin=origin, detail=dataclasses.replace(fact.detail, quoted_by_launcher=True))
        for fact in facts
        if isinstance(fact.detail, ExceptionDetail)
    ]


def _parse_entry(block: Block, text: str, *, is_first: bool = False) -> list[Evidence]:
    exit_, rank, host = _EXIT.search(text), _RANK.search(text), _HOST.search(text)
    if exit_ is None:
        return []
    origin = dataclasses.replace(
        block.origin,
        rank=int(rank[1]) if rank else None,
        local_rank=int(rank[2]) if rank else None,
        host=host[1] if host and host[1] != "localhost" else None,
        pid=int(exit_[2]),
        time=_read_time(text, block),
    )
    return [_make_exit(block, origin, int(exit_[1]), exit_[3] or "", pid=origin.pid, first_observed=is_first)]


def _make_exit(
    block: Block, origin: Origin, code: int, signal: str = "", *, pid: int | None = None, text: str = "", **flags: bool
) -> Evidence:
    signal = signal or signal_of_status(code)
    text = text or f"exitcode {code}" + (f" ({signal})" if signal else "")
    detail = ExitDetail(code, signal, **flags)
    parts = {"exitcode": str(code), "signal": signal, "pid": str(pid or "")}
    return dataclasses.replace(make_evidence(block, "exit", "launcher", text, detail, **parts), origin=origin)


def _read_time(entry: str, block: Block) -> float | None:
    """Return the time of an entry, which is in the host's zone, in the zone of the time before its line, if any."""
    match = _TIME.search(entry)
    local = epoch_seconds(match, 1970) if match else None
    if local is None:
        return block.origin.time
    if not block.has_own_time or block.origin.time is None or abs(block.origin.time - local) < _ZONE:
        return local
    return match_time_zone(local, block.origin.time)


def _parse_failed(block: Block, match: re.Match[str]) -> list[Evidence]:
    origin = dataclasses.replace(block.origin, local_rank=int(match[2]), pid=int(match[3]))
    return [_make_exit(block, origin, int(match[1]), pid=origin.pid)]


def _parse_stopped(block: Block, match: re.Match[str]) -> list[Evidence]:
    pid, signal = match[1] or match[3], match[2] or match[4]
    origin = dataclasses.replace(block.origin, pid=int(pid), rank=None, local_rank=None)
    detail = ExitDetail(signal=signal, stopped_by_agent=True)
    fact = make_evidence(block, "exit", "launcher", match.group(), detail, signal=signal, pid=pid, by="agent")
    return [dataclasses.replace(fact, origin=origin)]


def _parse_srun(block: Block, match: re.Match[str]) -> list[Evidence]:
    signal = SIGNAL_TEXTS.get(match["how"] or "", "")
    code = match["code"] or ("137" if match["how"] == "Out Of Memory" else "")
    host = match["host"] if match["host"] and "[" not in match["host"] else None
    detail = ExitDetail(int(code) if code else None, signal)
    fact = make_evidence(block, "exit", "slurm", match.string[match.start() :], detail, exitcode=code, signal=signal)
    return [
        dataclasses.replace(fact, origin=dataclasses.replace(block.origin, rank=task, host=host))
        for task in expand_numbers(match["tasks"])
    ]


def _parse_other(block: Block, match: re.Match[str]) -> list[Evidence]:
    origin = (
        dataclasses.replace(block.origin, rank=int(match["rank"]), host=match["host"])
        if match["rank"]
        else block.origin
    )
    if match["local"]:  # the command that DeepSpeed's launcher started last, whichever process failed
        origin = dataclasses.replace(origin, local_rank=0 if int(match["local"]) == 0 else None)
    code = int(match["code"] or match["exit"] or (f"-{match['signal']}" if match["signal"] else 0))
    return [_make_exit(block, origin, code, text=match.string)]


def _parse_mpirun(block: Block, match: re.Match[str]) -> list[Evidence]:
    """Parse `mpirun noticed that process rank 3 with PID 412 on node node2 exited on signal 9 (Killed).`"""
    pid = int(match["pid"]) or None  # mpirun writes 0 for an unknown pid
    origin = dataclasses.replace(block.origin, rank=int(match["rank"]), host=match["host"], pid=pid)
    return [_make_exit(block, origin, -int(match["signal"]), pid=pid, text=match.string)]


def _parse_mpi_exit(block: Block, match: re.Match[str]) -> list[Evidence]:
    """Parse `Process name: [[43011,1],3]` and `Exit code: 7`, Open MPI's notice of the first failed process."""
    code = int(match["code"])
    origin = dataclasses.replace(block.origin, rank=int(match["rank"]), host=None)
    return [_make_exit(block, origin, code, first_observed=True)] if code else []


def _parse_horovod(block: Block, match: re.Match[str]) -> list[Evidence]:
    """Parse Horovod's `Process 3 exit with status code -9.`, or `Process name: 3` and `Exit code:    -9`."""
    code, is_first = int(match["code"]), "Exit code" in match.group()
    rank, local = (int(match[name]) if match[name] else None for name in ("rank", "local"))
    origin = dataclasses.replace(block.origin, rank=rank, local_rank=local, host=match["host"])
    if not code:
        return []
    is_stopped = signal_of_status(code) == "SIGTERM" and not is_first
    fact = _make_exit(block, origin, code, text=match.group(), first_observed=is_first, stopped_by_agent=is_stopped)
    return [dataclasses.replace(fact, fields={**fact.fields, "by": "agent"}) if is_stopped else fact]


def _parse_mpi_abort(block: Block, match: re.Match[str]) -> list[Evidence]:
    """Parse `MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD`: the rank that ended the job."""
    code = int(match["code"] or match["argument"] or 1)
    origin = dataclasses.replace(block.origin, rank=int(match["rank"] or match["process"]), host=None)
    return [_make_exit(block, origin, code, text=match.group(), first_observed=True)] if code else []


def _parse_hydra(block: Block, match: re.Match[str]) -> list[Evidence]:
    """Parse hydra's `PID 329 RUNNING AT node2` with `EXIT CODE: 9`: the first process that failed."""
    code, pid = int(match["code"]), int(match["pid"])
    code = -code if code in _HYDRA_SIGNALS else code
    origin = dataclasses.replace(block.origin, host=match["host"], pid=pid)
    return [_make_exit(block, origin, code, pid=pid, text=match.group(), first_observed=True)] if code else []


def _parse_intel(block: Block, match: re.Match[str]) -> list[Evidence]:
    """Parse Intel MPI's `RANK 3 PID 412 RUNNING AT node2`, which stands there once for each process that ended.

    Those that mpiexec killed look like one that somebody else killed, so SIGKILL says nothing of a rank.
    """
    code = -int(match["signal"]) if match["signal"] else int(match["code"])
    origin = dataclasses.replace(block.origin, rank=int(match["rank"]), host=match["host"], pid=int(match["pid"]))
    if not code:
        return []
    is_stopped = code == -signals.SIGKILL
    fact = _make_exit(block, origin, code, pid=origin.pid, text=match.group(), stopped_by_agent=is_stopped)
    return [dataclasses.replace(fact, fields={**fact.fields, "by": "agent"}) if is_stopped else fact]


def _parse_numbered(block: Block, match: re.Match[str]) -> list[Evidence]:
    code, number = int(match["code"]), int(match["number"] or 0)
    is_pid = number > _HIGHEST_INDEX
    origin = dataclasses.replace(
        block.origin,
        rank=None,
        host=match["name"] or block.origin.host,
        local_rank=None if match["name"] or is_pid else number,
        pid=number if is_pid else None,
    )
    return [_make_exit(block, origin, code, pid=origin.pid, text=match.string)] if code else []


_LINES = (
    (_FAILED, _parse_failed),
    (_STOPPED, _parse_stopped),
    (_SRUN, _parse_srun),
    (_OTHERS, _parse_other),
    (_MPI, _parse_mpirun),
    (_MPI_EXIT, _parse_mpi_exit),
    (_HOROVOD, _parse_horovod),
    (_MPI_ABORT, _parse_mpi_abort),
    (_HYDRA, _parse_hydra),
    (_INTEL, _parse_intel),
    (_NUMBERED, _parse_numbered),
)
_OF_LINES = MaskedPatterns([pattern for pattern, _ in _LINES])
