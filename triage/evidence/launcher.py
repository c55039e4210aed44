"""What launchers say of the processes they started: exit codes and signals, who was stopped by the agent, signals from
outside.

Fields of kind `exit`: exitcode, signal, pid, by (agent: the launcher itself stopped it), first (torchelastic's "first
observed failure").
"""

from __future__ import annotations

import dataclasses
import re
import signal as signals

from triage.base.lazy_re import lazy_re
from triage.evidence import python
from triage.evidence.interface import evidence
from triage.model.evidence import Block, Evidence, Origin
from triage.ranks.stamps import agreed

_TABLE = lazy_re(r"^[\w.]*ChildFailedError\b", re.M)
# What `@record` kept belongs to the process, not to the launcher that quotes it.
_QUOTED = lazy_re(r"(  traceback : )Traceback \(most recent call last\):\n.*?(?=^[-=]{20}|^\[\d+\]:|\Z)", re.M | re.S)
_RANK = lazy_re(r"rank\s+: (\d+) \(local_rank: (\d+)\)")
_EXIT = lazy_re(r"exitcode\s+: (-?\d+) \(pid: (\d+)\)(?:\s+\((SIG\w+)\))?")
_HOST = lazy_re(r"host\s+: (\S+)")
_ZONE = 1200  # seconds; the table is printed soon after the failures
_TIME = lazy_re(r"time\s+: (\d{4})-(\d\d)-(\d\d)_(\d\d):(\d\d):(\d\d)")
_FAILED = lazy_re(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+) \(pid: (\d+)\)")
_STOPPED = lazy_re(r"Sending process (\d+) closing signal (SIG\w+)|Terminating process (\d+) via signal (SIG\w+)")
_SRUN = lazy_re(
    r"(?:srun: error: (?P<host>[\w.\[\],-]+): )?tasks? (?P<tasks>[\d,-]+): (?:Exited with exit code (?P<code>\d+)|(?P<word>Killed|Terminated|Segmentation fault|Aborted|Bus error|Out Of Memory)(?= \(|$))"
)
_OTHERS = lazy_re(
    r"(?:--local_rank=(?P<local>\d+)\b.*)?exits? with return code = (?P<code>-?\d+)|(?P<host>\S+): rank (?P<rank>\d+) (?:exited with code (?P<exit>\d+)|died from signal (?P<signal>\d+))"
)
_MPI = lazy_re(
    r"process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<host>\S+) exited on signal (?P<signal>\d+)"
)
_WORDS = {
    "Killed": "SIGKILL",
    "Terminated": "SIGTERM",
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
}


def read(block: Block) -> list[Evidence]:
    if block.form == "elastic":
        return _elastic(block, "\n".join(block.lines))
    if block.form == "traceback" and "ChildFailedError" in "\n".join(block.lines):
        return _table(block)
    if block.form != "line" and block.form != "c10":
        return []
    text = block.lines[0]
    for pattern, make in _LINES:
        match = pattern.search(text)
        if match is not None:
            return make(block, match)
    return []


def _table(block: Block) -> list[Evidence]:
    """The agent's own traceback ends in a table with one entry a failed process."""
    text = "\n".join(block.lines)
    headline = _TABLE.search(text)  # not the `raise ChildFailedError(` of the last frame
    cut = headline.start() if headline else text.find("ChildFailedError")
    facts = [evidence(block, "message", "torchelastic", _QUOTED.sub(r"\1…\n", text[cut:]))]
    entries = re.split(r"\n\[\d+\]:\n", text[cut:])
    for number, entry in enumerate(entries[1:], 1):
        first = "first observed" in entries[number - 1].rsplit("----------", 1)[-1]
        for fact in _elastic(block, entry):
            facts.append(dataclasses.replace(fact, fields={**fact.fields, "first": "yes"}) if first else fact)
            facts.extend(_recorded(block, entry, fact.origin))
    return facts


def _recorded(block: Block, entry: str, origin: Origin) -> list[Evidence]:
    """The traceback that `@record` kept of the process, quoted in its entry and indented by two."""
    _, header, quoted = entry.partition("  traceback : Traceback (most recent call last):\n")
    if not header:
        return []
    lines = [line.removeprefix("  ") for line in re.split(r"^[-=]{20}", quoted, maxsplit=1, flags=re.M)[0].split("\n")]
    facts = python.read(
        dataclasses.replace(block, lines=("Traceback (most recent call last):", *lines), ambiguous=False)
    )
    return [dataclasses.replace(fact, origin=origin, fields={**fact.fields, "recorded": "yes"}) for fact in facts]


def _elastic(block: Block, text: str) -> list[Evidence]:
    exit_, rank, host, time = _EXIT.search(text), _RANK.search(text), _HOST.search(text), _TIME.search(text)
    if exit_ is None:
        return []
    origin = dataclasses.replace(
        block.origin,
        rank=int(rank[1]) if rank else None,
        local_rank=int(rank[2]) if rank else None,
        host=host[1] if host and host[1] != "localhost" else None,
        pid=int(exit_[2]),
        time=_placed(_seconds(time), block) if time else block.origin.time,
    )
    return [_exit(block, origin, int(exit_[1]), exit_[3] or "", exit_[2])]


def _exit(block: Block, origin: Origin, code: int, signal: str = "", pid: str = "", by: str = "") -> Evidence:
    signal = signal or _signal_name(code)
    text = f"exitcode {code}" + (f" ({signal})" if signal else "")
    fact = evidence(block, "exit", "launcher", text, exitcode=str(code), signal=signal, pid=pid, by=by)
    return dataclasses.replace(fact, origin=origin)


def _signal_name(code: int) -> str:
    number = -code if code < 0 else code - 128 if 128 < code < 160 else 0
    try:
        return signals.Signals(number).name if number else ""
    except ValueError:
        return ""


def _seconds(match: re.Match[str]) -> float:
    import calendar

    return float(calendar.timegm((*(int(part) for part in match.groups()), 0, 0, 0)))


def _placed(local: float, block: Block) -> float:
    """The time in the table is that of the host's zone. A stamp that a collector put before its line tells the zone
    where hours are between them.
    """
    if not block.dated or block.origin.time is None or abs(block.origin.time - local) < _ZONE:
        return local
    return agreed(local, block.origin.time)


def _failed(block: Block, match: re.Match[str]) -> list[Evidence]:
    origin = dataclasses.replace(block.origin, local_rank=int(match[2]), pid=int(match[3]))
    return [_exit(block, origin, int(match[1]), pid=match[3])]


def _stopped(block: Block, match: re.Match[str]) -> list[Evidence]:
    pid, signal = match[1] or match[3], match[2] or match[4]
    origin = dataclasses.replace(block.origin, pid=int(pid), rank=None, local_rank=None)
    fact = evidence(block, "exit", "launcher", match.group(), signal=signal, pid=pid, by="agent")
    return [dataclasses.replace(fact, origin=origin)]


def _srun(block: Block, match: re.Match[str]) -> list[Evidence]:
    text = match.string[match.start() :]
    signal = _WORDS.get(match["word"] or "", "")
    facts = []
    for task in _ranges(match["tasks"]):
        origin = dataclasses.replace(
            block.origin, rank=task, host=match["host"] if match["host"] and "[" not in match["host"] else None
        )
        code = match["code"] or ("137" if match["word"] == "Out Of Memory" else "")
        fact = evidence(block, "exit", "slurm", text, exitcode=code, signal=signal)
        facts.append(dataclasses.replace(fact, origin=origin))
    return facts


def _ranges(text: str, most: int = 4096) -> list[int]:
    numbers: list[int] = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        if low.isdigit():
            numbers.extend(range(int(low), min(int(high) if high.isdigit() else int(low), int(low) + most) + 1))
    return numbers[:most]


def _other(block: Block, match: re.Match[str]) -> list[Evidence]:
    origin = (
        dataclasses.replace(block.origin, rank=int(match["rank"]), host=match["host"])
        if match["rank"]
        else block.origin
    )
    if match["local"]:  # DeepSpeed's launcher shows the command line of the process
        origin = dataclasses.replace(origin, local_rank=int(match["local"]))
    code = int(match["code"] or match["exit"] or (f"-{match['signal']}" if match["signal"] else 0))
    return [dataclasses.replace(_exit(block, origin, code), text=match.string)]


def _mpi(block: Block, match: re.Match[str]) -> list[Evidence]:
    """`mpirun noticed that process rank 3 with PID 412 on node node2 exited on signal 9 (Killed).`; PID 0 is not known."""
    pid = int(match["pid"]) or None
    origin = dataclasses.replace(block.origin, rank=int(match["rank"]), host=match["host"], pid=pid)
    return [dataclasses.replace(_exit(block, origin, -int(match["signal"]), pid=str(pid or "")), text=match.string)]


_LINES = ((_FAILED, _failed), (_STOPPED, _stopped), (_SRUN, _srun), (_OTHERS, _other), (_MPI, _mpi))
