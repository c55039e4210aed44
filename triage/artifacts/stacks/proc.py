"""What /proc says of live threads: state, wait channel, system call, and the kernel's stack.

Read are the `status.txt` of `triage collect`, files of /proc shown one after the other (`head -n 99
/proc/PID/task/*/stack`, `grep -r ""`), a
kernel stack alone, and `ps -eLo pid,tid,stat,wchan:30,comm`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace

from triage.base.lazy_re import lazy_re
from triage.stacks.live.model import Call, Process, Thread

_TASK = lazy_re(
    r"tid (?P<tid>\d{1,9}) comm (?P<comm>.*?) state (?P<run>\S)(?: \([^)]*\))? wchan (?P<wchan>\S+) syscall (?P<syscall>.*?)"
    r"(?: call (?P<name>\w+)(?: (?P<fd>\d{1,7}) (?P<path>.*)| owner (?P<owner>\d{1,9}))?)?$"
)
_OF = lazy_re(r"Tgid:\s*(\d{1,9})")
_BEGAN = lazy_re(r"began (\d{1,9}) s before this was taken$")  # of `triage collect`, about the one process of its file
_HEAD = lazy_re(
    r"==> /proc/(?P<pid>\d{1,9})/(?:task/(?P<tid>\d{1,9})/)?(?P<what>stack|wchan|stat|status|comm|syscall) <=="
)
_FOUND = lazy_re(r"/proc/(?P<pid>\d{1,9})/(?:task/(?P<tid>\d{1,9})/)?(?P<what>stack|wchan|comm|status):(?P<text>.*)")
_STACK = lazy_re(r"\s*\[<[0-9a-f]+>\] (?P<function>[\w.]+)(?:\+0x[0-9a-f]+/0x[0-9a-f]+)?(?: \[\w+\])?\s*$")
_CHANNEL = lazy_re(r"[A-Za-z_]\w*$")
_PS = lazy_re(r"\s*(?:[A-Z%]+\s+)*(?=.*\bPID\b)(?=.*\bWCHAN\b)")
_JOB = lazy_re(r"python|pt_|torchrun|train")
_MOST = 1 << 16


@dataclass
class _Task:
    """A thread as it is being read."""

    comm: str = ""
    call: Call = field(default_factory=Call)
    owner: int | None = None


def of_text(text: str, source: str) -> list[Process]:
    """The processes in the text, each with its threads; [] where it is none of these forms."""
    tasks: dict[int | None, dict[int | None, _Task]] = defaultdict(lambda: defaultdict(_Task))
    pid: int | None = None
    task: _Task | None = None
    what = ""
    columns: list[str] = []
    age: int | None = None
    for line in text.splitlines()[:_MOST]:
        if found := _TASK.match(line):
            task, what = tasks[pid][int(found["tid"])], "stack"
            _told(task, found)
        elif head := _HEAD.match(line):
            pid, what = int(head["pid"]), head["what"]
            task = tasks[pid][int(head["tid"] or head["pid"])]
        elif found := _FOUND.match(line):
            place = tasks[int(found["pid"])][int(found["tid"] or found["pid"])]
            _line(place, found["what"], found["text"])
        elif stack := _STACK.match(line):
            task = task or tasks[pid][pid]
            task.call = replace(task.call, wait=(*task.call.wait, stack["function"]))
        elif began := _BEGAN.match(line):
            age = int(began[1])
        elif owner := _OF.match(line):
            if None in tasks:
                tasks[int(owner[1])].update(tasks.pop(None))
            task = None
        elif not columns and _PS.match(line) and "WCHAN" in line.split():
            columns = line.split()
        elif columns:
            _row(tasks, columns, line)
        elif task is not None and what and line.strip():
            _line(task, what, line)
    return [
        _process(source, pid, found, age)
        for pid, found in sorted(tasks.items(), key=lambda item: item[0] or 0)
        if found
    ]


def _told(task: _Task, found: re.Match[str]) -> None:
    task.comm = found["comm"]
    task.owner = int(found["owner"]) if found["owner"] else None
    run = found["run"]
    path = (found["path"] or "").strip()
    channel = found["wchan"] if found["wchan"] not in ("0", "?", "-") else ""
    task.call = Call(
        found["name"] or "",
        int(found["fd"]) if found["fd"] else None,
        "" if path == "?" else path,
        (channel,) if channel else (),
        run,
    )


def _line(task: _Task, what: str, text: str) -> None:
    text = text.strip()
    if what == "stack" and (stack := _STACK.match(text)):
        task.call = replace(task.call, wait=(*task.call.wait, stack["function"]))
    elif what == "wchan" and _CHANNEL.match(text):
        task.call = replace(task.call, wait=(text, *(each for each in task.call.wait if each != text)))
    elif what == "comm":
        task.comm = text
    elif what == "status" and (state := re.match(r"State:\s*(\w)", text)):
        task.call = replace(task.call, run=state[1])


def _row(tasks: dict[int | None, dict[int | None, _Task]], columns: list[str], line: str) -> None:
    """A row of ps; only of processes that may be the job's."""
    cells = dict(zip(columns, line.split(None, len(columns) - 1), strict=False))
    pid, tid = cells.get("PID", ""), cells.get("TID") or cells.get("LWP") or cells.get("SPID") or cells.get("PID", "")
    command = cells.get("COMMAND") or cells.get("COMM") or cells.get("CMD") or ""
    if (
        not pid.isdecimal()
        or not tid.isdecimal()
        or len(pid) > 9
        or len(tid) > 9
        or (command and not _JOB.search(command))
    ):
        return
    channel, run = cells.get("WCHAN", "-"), (cells.get("STAT") or cells.get("S") or " ")[0].strip()
    wait = (channel,) if _CHANNEL.match(channel) else ()
    tasks[int(pid)][int(tid)] = _Task(command, Call(wait=wait, run=run))


def _process(source: str, pid: int | None, tasks: dict[int | None, _Task], age: int | None) -> Process:
    main = pid if pid in tasks else min(tasks, key=lambda tid: tid or 0)
    threads = tuple(
        Thread(
            "MainThread" if tid == main else task.comm,
            tid,
            call=task.call,
            lock=0 if task.owner else None,
            owner=task.owner,
        )
        for tid, task in sorted(tasks.items(), key=lambda item: (item[0] != main, item[0] or 0))
    )
    return Process(source, "proc", pid if pid is not None else main, threads, tasks[main].comm, age=age)
