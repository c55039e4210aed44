"""A core file as text or JSON: the answer of `triage core`."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from triage.evidence.redact import redact
from triage.model.evidence import Warning
from triage.render.json import escaped
from triage.render.layout import Paint, labelled
from triage.render.safe import safe_line
from triage.render.text import NARROWEST, WIDTH
from triage.stacks import Frame, Thread
from triage.stacks.write import frame as written

if TYPE_CHECKING:
    from triage.artifacts.cores.report import Report

SCHEMA = "triage.core/1"
SHOWN = 24


def as_json(reports: Sequence[Report], warnings: Sequence[Warning]) -> str:
    """One JSON object with all cores; numbers are numbers, addresses hexadecimal strings."""
    document = {
        "schema": SCHEMA,
        "cores": [_document(report) for report in reports],
        "warnings": [
            {"code": warning.code, "source": warning.source, "message": warning.message} for warning in warnings
        ],
    }
    return escaped(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)) + "\n"


def _document(report: Report) -> dict[str, Any]:
    core, crash, stacks = report.core, report.crash, report.stacks
    return {
        "source": report.name,
        "machine": core.machine,
        "pid": core.pid,
        "command": redact(core.command),
        "program": core.executable.path if core.executable is not None else None,
        "build_id": core.executable.build_id if core.executable is not None else None,
        "signal": stacks.signal or None,
        "si_code": report.code or None,
        "address": _hex(core.address),
        "meaning": {"word": report.meaning.word, "sentence": report.meaning.sentence},
        "message": redact(stacks.message) or None,
        "truncated": core.truncated,
        "engine": report.engine,
        "crash": {
            "kind": crash.kind,
            "signature": crash.key or None,
            "point": crash.point or None,
            "text": crash.text,
            "frames": list(crash.frames),
            "module": crash.module or None,
            "python": crash.python or None,
            "thread": crash.thread.id if crash.thread is not None else None,
            "notes": [
                {"level": note.level, "frame": note.frame, "done": note.done, "why": note.why} for note in crash.notes
            ],
        },
        "threads": [_thread(thread) for thread in stacks.threads],
        "modules": [
            {
                "path": module.path,
                "start": _hex(module.start),
                "end": _hex(module.end),
                "build_id": module.build_id or None,
            }
            for module in core.modules
        ],
        "remarks": [{"code": code, "message": message} for code, message in report.remarks],
    }


def _thread(thread: Thread) -> dict[str, Any]:
    return {
        "id": thread.id or None,
        "tid": thread.tid,
        "name": thread.name or None,
        "crashed": thread.crashed,
        "frames": [_frame(frame) for frame in thread.frames],
    }


def _frame(frame: Frame) -> dict[str, Any]:
    return {
        "function": frame.function or None,
        "module": frame.module or None,
        "offset": _hex(frame.offset),
        "address": _hex(frame.address),
        "file": frame.file or None,
        "line": frame.line,
        "build_id": frame.build_id or None,
        "language": frame.language,
        "trust": frame.trust or None,
    }


def _hex(value: int | None) -> str | None:
    return f"{value:#x}" if value is not None else None


def as_text(
    reports: Sequence[Report],
    warnings: Sequence[Warning],
    *,
    explain: bool = False,
    all_threads: bool = False,
    width: int | None = None,
    color: bool = False,
) -> str:
    """Each core: what happened, where, the frames, what to know about the reading."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    parts = [_report(report, explain, all_threads, columns, paint) for report in reports]
    if warnings:
        lines = [
            f"- {safe_line(f'{warning.source}: ' if warning.source else '')}{safe_line(warning.message)}"
            for warning in warnings
        ]
        parts.append("\n".join(labelled("Note", lines, columns, paint, "bold")) + "\n")
    return "\n".join(parts)


def _report(report: Report, explain: bool, all_threads: bool, columns: int, paint: Paint) -> str:
    core, crash, stacks = report.core, report.crash, report.stacks
    address = f" at {core.address:#x}" if core.address is not None else ""
    signal = (
        f"{stacks.signal}{f' ({report.code})' if report.code else ''}{address}"
        if stacks.signal
        else "no signal: a copy of a process that went on"
    )
    head = [safe_line(signal)] + [safe_line(text) for text in (report.meaning.sentence, redact(stacks.message)) if text]
    sections = [
        labelled(
            "CRASH" if stacks.signal else "CORE", head, columns, paint, "bold", "red" if stacks.signal else "green"
        )
    ]
    if stacks.signal:
        point = [safe_line(crash.text)] + ([f"signature {crash.key}, point {crash.point}"] if crash.key else [])
        point += [f"Python: {safe_line(crash.python)}"] if crash.python else []
        sections.append(labelled("Point", point, columns, paint, "bold"))
    program = core.executable.path if core.executable is not None else core.program or "not known"
    described = [
        safe_line(redact(core.command)),
        safe_line(
            f"{program}, {core.machine}, pid {core.pid}, {len(stacks.threads)} thread{'s' if len(stacks.threads) != 1 else ''}, {len(core.modules)} programs and libraries"
        ),
    ]
    sections.append(labelled("Process", described, columns, paint, "bold"))
    shown = (
        stacks.threads
        if all_threads
        else [thread for thread in (crash.thread or (stacks.threads or (None,))[0],) if thread is not None]
    )
    for thread in shown:
        sections.append(_stack(thread, report, paint))
    if explain:
        notes = [
            f"{'' if note.level is None else f'#{note.level} '}{note.frame}: {note.done}, {note.why}".lstrip(": ")
            for note in crash.notes
        ]
        sections.append(
            labelled("Steps", [safe_line(note) for note in notes] or ["nothing was dropped"], columns, paint, "bold")
        )
    if report.remarks:
        sections.append(
            labelled("Note", [f"- {safe_line(message)}" for _, message in report.remarks], columns, paint, "bold")
        )
    return (
        "\n\n".join("\n".join(line.rstrip() for line in section) for section in sections)
        + f"\n\n{safe_line(report.name)}\n"
    )


def _stack(thread: Thread, report: Report, paint: Paint) -> list[str]:
    name = f' "{thread.name}"' if thread.name else ""
    how = "unwound by gdb" if report.engine == "gdb" else "from the core's notes"
    tid = f" (LWP {thread.tid})" if thread.tid is not None else ""
    lines = [paint(safe_line(f"Thread {thread.id or '?'}{tid}{name}, {how}:"), "bold")]
    told = list(itertools.islice(_frames(thread), SHOWN + 1))
    lines += [safe_line(line) for _, line in told[:SHOWN]]
    return lines + ([f"… {len(thread.frames) - told[SHOWN][0]} more frames"] if len(told) > SHOWN else [])


def _frames(thread: Thread) -> Iterator[tuple[int, str]]:
    """The frames with their levels; of one that comes again and again (a recursion) the first, and how often it
    follows.
    """
    level = 0
    for _, run in itertools.groupby(
        thread.frames, key=lambda frame: (frame.function, frame.module, frame.file, frame.line, frame.offset)
    ):
        same = list(run)
        yield level, f"#{level:<3}{written(same[0])}"
        if len(same) == 2:
            yield level + 1, f"#{level + 1:<3}{written(same[1])}"
        elif len(same) > 2:
            yield level + 1, f"    the same {len(same) - 1} times more, up to #{level + len(same) - 1}"
        level += len(same)
