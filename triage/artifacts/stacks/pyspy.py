"""`py-spy dump` as text (also with --native and --locals) and as JSON.

Text: `Process PID: COMMAND`, `Python vX (…)`, then for each thread `Thread TID (idle|active[+gil]): "name"` (older:
`Thread 0x7f… (idle)`) and its frames, innermost first, indented by four spaces: `function (file:line)`, native ones
`function (library.so)`. Values of locals are not read.
"""

from __future__ import annotations

import json
from typing import Any

from triage.artifacts.interface import ArtifactError
from triage.base.lazy_re import lazy_re
from triage.stacks.live.model import Process, Thread
from triage.stacks.model import Frame

_PROCESS = lazy_re(r"Process (\d+)(?:: (.*))?$")
_THREAD = lazy_re(r"Thread (0x[0-9a-fA-F]+|\d+) \(([a-z+ ]+)\)(?:: \"(.*)\")?")
_FRAME = lazy_re(r" {4}(?! )(.+) \(([^()]*|.*?\.so[\w.]*)\)\s*$")
_LINE = lazy_re(r"(.*):(\d+)$")
MAX_THREADS, MAX_FRAMES = 4096, 1024


def parse_text(text: str, source: str) -> list[Process]:
    """Return every process dumped in `text`, which may hold the dumps of several ranks one after the other."""
    processes: list[Process] = []
    threads: list[tuple[str, int | None, str, list[Frame]]] = []
    head: tuple[int, str] | None = None

    def close() -> None:
        if head is not None:
            parsed = tuple(
                Thread(name, tid, tuple(frames), status.partition("+")[0], "gil" in status)
                for name, tid, status, frames in threads
            )
            processes.append(Process(source, "py-spy", head[0], parsed, head[1]))
        threads.clear()

    for line in text.splitlines():
        if process := _PROCESS.match(line):
            close()
            head = (int(process[1]), process[2] or "")
        elif head is not None and (thread := _THREAD.match(line)) and len(threads) < MAX_THREADS:
            threads.append((thread[3] or "", _tid(thread[1]), thread[2], []))
        elif threads and (frame := _FRAME.match(line)) and len(threads[-1][3]) < MAX_FRAMES:
            threads[-1][3].append(_frame(frame[1], frame[2]))
    close()
    return processes


def _tid(text: str) -> int | None:
    return None if text.startswith("0x") else int(text)  # a hexadecimal number is a pthread_t, not a thread id


def _frame(function: str, where: str) -> Frame:
    line = _LINE.match(where)
    if line is None:
        return Frame(function, module=where)
    return _frame_of_file(function, line[1], int(line[2][:9]))


def _frame_of_file(function: str, file: str, line: int | None) -> Frame:
    """A frame with a source file: py-spy also names those of native frames where it has debug information."""
    python = file.endswith((".py", ">")) or file.startswith("<")
    return Frame(function, file=file, line=line, language="python" if python else "native")


def parse_json(text: str, source: str) -> list[Process]:
    """Return the processes of a `py-spy dump --json`. Raises ArtifactError for other JSON."""
    try:
        dumped: Any = json.loads(text)
        threads = [_json_thread(thread) for thread in dumped[:MAX_THREADS]]
        pids = [int(thread["pid"]) for thread in dumped[:MAX_THREADS]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ArtifactError(
            f"not a readable py-spy dump ({type(error).__name__})", hint="take it again with `py-spy dump --json`"
        ) from error
    return [
        Process(
            source, "py-spy", pid, tuple(thread for thread, owner in zip(threads, pids, strict=True) if owner == pid)
        )
        for pid in sorted(set(pids))
    ]


def _json_thread(thread: dict[str, Any]) -> Thread:
    frames = tuple(
        _frame_of_file(
            str(frame["name"]),
            str(frame.get("short_filename") or frame.get("filename") or ""),
            _int(frame.get("line")) or None,
        )
        if not frame.get("module")
        else Frame(str(frame["name"]), module=str(frame["module"]).rsplit("/", 1)[-1])
        for frame in thread["frames"][:MAX_FRAMES]
    )
    name, tid = thread.get("thread_name"), _int(thread.get("os_thread_id"))
    return Thread(
        str(name or ""), tid, frames, "active" if thread.get("active") else "idle", bool(thread.get("owns_gil"))
    )


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 48 else None
