"""A core file as text or JSON, for `triage core`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from triage.evidence.redact import redact
from triage.model.evidence import Warning
from triage.render.json import dump_json
from triage.render.phrases import format_count
from triage.render.sanitize import sanitize_line
from triage.render.terminal import Paint, join_sections, labelled
from triage.render.text import NARROWEST, WIDTH
from triage.stacks.model import Frame, Thread, format_frame

if TYPE_CHECKING:
    from triage.artifacts.cores.report import CoreReport

SCHEMA = "triage.core/1"
SHOWN = 24


def as_json(reports: Sequence[CoreReport], warnings: Sequence[Warning]) -> str:
    """Return one JSON object with all cores; addresses are hexadecimal strings."""
    document = {
        "schema": SCHEMA,
        "cores": [_document(report) for report in reports],
        "warnings": [
            {"code": warning.code, "source": warning.source, "message": warning.message} for warning in warnings
        ],
    }
    return dump_json(document)


def _document(report: CoreReport) -> dict[str, Any]:
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
        "meaning": {"word": report.meaning.code, "sentence": report.meaning.sentence},
        "message": redact(stacks.message) or None,
        "truncated": core.is_truncated,
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
                {"level": note.level, "frame": note.frame, "done": note.action, "why": note.why} for note in crash.notes
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
    reports: Sequence[CoreReport],
    warnings: Sequence[Warning],
    *,
    explain: bool = False,
    all_threads: bool = False,
    width: int | None = None,
    color: bool = False,
) -> str:
    """Return for each core what happened, where, the frames, and what to know about how it was read."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    parts = [_report(report, explain, all_threads, columns, paint) for report in reports]
    if warnings:
        lines = [
            f"- {sanitize_line(f'{warning.source}: ' if warning.source else '')}{sanitize_line(warning.message)}"
            for warning in warnings
        ]
        parts.append("\n".join(labelled("Note", lines, columns, paint, "bold")) + "\n")
    return "\n".join(parts)


def _report(report: CoreReport, explain: bool, all_threads: bool, columns: int, paint: Paint) -> str:
    stacks = report.stacks
    first = report.crash.thread or next(iter(stacks.threads), None)
    threads = stacks.threads if all_threads else [first] if first is not None else []
    notes = [
        f"{'' if note.level is None else f'#{note.level} '}{note.frame}: {note.action}, {note.why}".lstrip(": ")
        for note in report.crash.notes
    ]
    kind, style = ("CRASH", "red") if stacks.signal else ("CORE", "green")
    texts = [
        (kind, _signal(report), style),
        ("Point", _crash_point(report) if stacks.signal else [], ""),
        ("Process", _process(report), ""),
    ]
    more = [
        ("Steps", (notes or ["nothing was dropped"]) if explain else [], ""),
        ("Note", [f"- {message}" for _, message in report.remarks], ""),
    ]

    def sections(rows: Sequence[tuple[str, list[str], str]]) -> list[list[str]]:
        return [
            labelled(label, map(sanitize_line, lines), columns, paint, "bold", *filter(None, [style]))
            for label, lines, style in rows
            if lines
        ]

    stacks_of_threads = [_stack(thread, report, paint) for thread in threads]
    blocks = [*sections(texts), *stacks_of_threads, *sections(more), [sanitize_line(report.name)]]
    return join_sections(blocks)


def _signal(report: CoreReport) -> list[str]:
    """Return the signal with its address, what it means, and the message of the program."""
    core, stacks = report.core, report.stacks
    address = f" at {core.address:#x}" if core.address is not None else ""
    code = f" ({report.code})" if report.code else ""
    signal = f"{stacks.signal}{code}{address}" if stacks.signal else "no signal: the process was copied and went on"
    return [text for text in (signal, report.meaning.sentence, redact(stacks.message)) if text]


def _crash_point(report: CoreReport) -> list[str]:
    crash = report.crash
    signature = [f"signature {crash.key}, point {crash.point}"] if crash.key else []
    return [crash.text, *signature, *([f"Python: {crash.python}"] if crash.python else [])]


def _process(report: CoreReport) -> list[str]:
    core = report.core
    program = core.executable.path if core.executable is not None else core.program or "unknown program"
    sizes = f"{format_count(len(report.stacks.threads), 'thread')}, {format_count(len(core.modules), 'module')}"
    return [redact(core.command), f"{program}, {core.machine}, pid {core.pid}, {sizes}"]


def _stack(thread: Thread, report: CoreReport, paint: Paint) -> list[str]:
    name = f' "{thread.name}"' if thread.name else ""
    method = "unwound by gdb" if report.engine == "gdb" else "from the core's notes"
    tid = f" (LWP {thread.tid})" if thread.tid is not None else ""
    lines = [paint(sanitize_line(f"Thread {thread.id or 'without id'}{tid}{name}, {method}:"), "bold")]
    rows = list(itertools.islice(_frames(thread), SHOWN + 1))
    lines += [sanitize_line(line) for _, line in rows[:SHOWN]]
    return lines + (
        [f"… {format_count(len(thread.frames) - rows[SHOWN][0], 'more frame')}"] if len(rows) > SHOWN else []
    )


def _frames(thread: Thread) -> Iterator[tuple[int, str]]:
    """Yield (level, frame); of a recursion the first frame and how often it repeats."""
    level = 0
    for _, run in itertools.groupby(
        thread.frames, key=lambda frame: (frame.function, frame.module, frame.file, frame.line, frame.offset)
    ):
        same = list(run)
        yield level, f"#{level:<3}{format_frame(same[0])}"
        if len(same) == 2:
            yield level + 1, f"#{level + 1:<3}{format_frame(same[1])}"
        elif len(same) > 2:
            yield level + 1, f"    the same {len(same) - 1} times more, up to #{level + len(same) - 1}"
        level += len(same)
