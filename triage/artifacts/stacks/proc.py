"""Live threads as /proc shows them: state, wait channel, system call, and the kernel's stack.

Supported forms: the `status.txt` of `triage collect`, files of /proc printed one after the other (`head -n 99
/proc/PID/task/*/stack`, `grep -r ""`), a kernel stack alone, and `ps -eLo pid,tid,stat,wchan:30,comm`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace

from triage.base.lazy_re import lazy_re
from triage.stacks.live.model import Call, Process, Thread

_TASK = lazy_re(
    r"tid (?P<tid>\d{1,9}) comm (?P<comm>.*?) state (?P<run>\S)(?: \([^)]*\))? "
    r"wchan (?P<wchan>\S+) syscall (?P<syscall>.*?)"
    r"(?: call (?P<name>\w+)(?: (?P<fd>\d{1,7}) (?P<path>.*)| owner (?P<owner>\d{1,9}))?)?$"
)
_OWNER = lazy_re(r"Tgid:\s*(\d{1,9})")
# Written by `triage collect` for the process of its file.
_AGE = lazy_re(r"began (\d{1,9}) s before this was taken$")
_HEAD = lazy_re(
    r"==> /proc/(?P<pid>\d{1,9})/(?:task/(?P<tid>\d{1,9})/)?(?P<what>stack|wchan|stat|status|comm|syscall) <=="
)
_GREP = lazy_re(r"/proc/(?P<pid>\d{1,9})/(?:task/(?P<tid>\d{1,9})/)?(?P<what>stack|wchan|comm|status):(?P<text>.*)")
_STACK = lazy_re(r"\s*\[<[0-9a-f]+>\] (?P<function>[\w.]+)(?:\+0x[0-9a-f]+/0x[0-9a-f]+)?(?: \[\w+\])?\s*$")
_CHANNEL = lazy_re(r"[A-Za-z_]\w*$")
_PS = lazy_re(r"\s*(?:[A-Z%]+\s+)*(?=.*\bPID\b)(?=.*\bWCHAN\b)")
_JOB = lazy_re(r"python|pt_|torchrun|train")
_MAX_LINES = 1 << 16


@dataclass
class _Task:
    """A thread while it is read."""

    comm: str = ""
    call: Call = field(default_factory=Call)
    owner: int | None = None


def parse_text(text: str, source: str) -> list[Process]:
    """Return the processes in the text, each with its threads; [] for other forms."""
    parser = _Parser()
    for line in text.splitlines()[:_MAX_LINES]:
        parser.read(line)
    by_pid = sorted(parser.tasks.items(), key=lambda item: item[0] or 0)
    return [_process(source, pid, tasks, parser.age) for pid, tasks in by_pid if tasks]


class _Parser:
    """Reads lines of all forms; `task` and `content` say what a line without a name belongs to."""

    def __init__(self) -> None:
        self.tasks: dict[int | None, dict[int | None, _Task]] = defaultdict(lambda: defaultdict(_Task))
        self.age: int | None = None
        self._pid: int | None = None
        self._task: _Task | None = None
        self._content = ""
        self._columns: list[str] = []

    def read(self, line: str) -> None:
        """Read one line."""
        if match := _TASK.match(line):
            self._task, self._content = self.tasks[self._pid][int(match["tid"])], "stack"
            _fill(self._task, match)
        elif head := _HEAD.match(line):
            self._pid, self._content = int(head["pid"]), head["what"]
            self._task = self.tasks[self._pid][int(head["tid"] or head["pid"])]
        elif match := _GREP.match(line):
            _line(self.tasks[int(match["pid"])][int(match["tid"] or match["pid"])], match["what"], match["text"])
        elif stack := _STACK.match(line):
            self._task = self._task or self.tasks[self._pid][self._pid]
            self._task.call = replace(self._task.call, wait=(*self._task.call.wait, stack["function"]))
        elif age := _AGE.match(line):
            self.age = int(age[1])
        elif owner := _OWNER.match(line):
            if None in self.tasks:
                self.tasks[int(owner[1])].update(self.tasks.pop(None))
            self._task = None
        elif not self._columns and _PS.match(line) and "WCHAN" in line.split():
            self._columns = line.split()
        elif self._columns:
            _row(self.tasks, self._columns, line)
        elif self._task is not None and self._content and line.strip():
            _line(self._task, self._content, line)


def _fill(task: _Task, match: re.Match[str]) -> None:
    """Take the line of a thread in `triage collect`'s form."""
    task.comm = match["comm"]
    task.owner = int(match["owner"]) if match["owner"] else None
    path = (match["path"] or "").strip()
    task.call = Call(
        match["name"] or "",
        int(match["fd"]) if match["fd"] else None,
        "" if path == "?" else path,
        (match["wchan"],) if match["wchan"] not in ("0", "?", "-", "") else (),
        match["run"],
    )


def _line(task: _Task, content: str, text: str) -> None:
    """Take a line of a file of /proc."""
    text = text.strip()
    if content == "stack" and (stack := _STACK.match(text)):
        if task.call.wait != (stack["function"],):  # its innermost function is the wait channel, read before it
            task.call = replace(task.call, wait=(*task.call.wait, stack["function"]))
    elif content == "wchan" and _CHANNEL.match(text):
        task.call = replace(task.call, wait=(text, *(each for each in task.call.wait if each != text)))
    elif content == "comm":
        task.comm = text
    elif content == "status" and (state := re.match(r"State:\s*(\w)", text)):
        task.call = replace(task.call, run=state[1])


def _row(tasks: dict[int | None, dict[int | None, _Task]], columns: list[str], line: str) -> None:
    """Take a row of ps, if it may be a process of the job."""
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
    tasks[int(pid)][int(tid)] = _Task(command, Call(wait=(channel,) if _CHANNEL.match(channel) else (), run=run))


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
