"""`py-spy dump` as text (see `stacks.forms.pyspy`) and as JSON (`--json`)."""

from __future__ import annotations

import json
from typing import Any

from triage.artifacts.interface import ArtifactError
from triage.stacks.forms.pyspy import MAX_FRAMES, MAX_THREADS, PySpy, frame_of_file
from triage.stacks.live.model import Process, Thread
from triage.stacks.live.native import to_process
from triage.stacks.model import Frame


def parse_text(text: str, source: str) -> list[Process]:
    """Return the process that is dumped in the text; [] for other texts."""
    stacks = PySpy().read(text.splitlines())
    return [to_process(stacks, source)] if stacks is not None else []


def parse_json(text: str, source: str) -> list[Process]:
    """Return the processes of `py-spy dump --json`, also of several below each other. Raises ArtifactError for other
    JSON.
    """
    try:
        dumped = _read_arrays(text)
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


def _read_arrays(text: str) -> list[Any]:
    """Return the items of all arrays in the text."""
    decoder, items, position = json.JSONDecoder(), list[Any](), 0
    while rest := text[position:].lstrip():
        array, length = decoder.raw_decode(rest)
        items.extend(array)
        position = len(text) - len(rest) + length
    return items


def _json_thread(thread: dict[str, Any]) -> Thread:
    frames = tuple(
        frame_of_file(
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
