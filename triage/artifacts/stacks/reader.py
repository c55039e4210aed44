"""Dumps of live processes → one piece of evidence for each process (kind `stack`), which `inference` compares."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from triage.artifacts.interface import Artifact, ArtifactError, ReadResult, damaged_warning
from triage.artifacts.stacks import proc, pyspy, recordings, strace
from triage.evidence import backtraces
from triage.evidence.redact import redact
from triage.model.evidence import Block, Evidence, Origin, Warning
from triage.ranks.file_names import parse_file_name
from triage.stacks.live.boundaries import split_dumps
from triage.stacks.live.model import KERNEL_TOOLS, Process, format_location, format_state
from triage.stacks.live.native import to_process
from triage.stacks.live.states import HELPERS, main_thread, state_of
from triage.stacks.parser import parse_stacks

Parser = Callable[[str, str], list[Process]]
"""Text and the name of its source to the processes in it."""
MAX_BYTES = 1 << 24
_MAX_FRAMES = 12


class LiveStacks:
    """Reads two kinds: `py-spy`, and `live-stacks` for all other dumps of live processes."""

    max_bytes = MAX_BYTES

    def read(self, artifacts: Sequence[Artifact]) -> ReadResult:
        """Return a stack for each process, or a crash for each that a signal had stopped."""
        result = ReadResult([], [])
        for artifact in artifacts:
            name = artifact.source.name
            try:
                crashes = extract_crashes(artifact.data, name) if artifact.source.kind == "live-stacks" else []
                processes = [] if crashes else parse_processes(artifact.data, name)
            except ArtifactError as error:
                result.warnings.append(damaged_warning(artifact.source, error))
                continue
            if len(artifact.data) >= MAX_BYTES:
                result.warnings.append(
                    Warning("truncated-artifact", name, f"only the first {MAX_BYTES >> 20} MiB of this dump were read")
                )
            result.evidence.extend(crashes or [to_evidence(process, len(artifact.data)) for process in processes])
        return result


def _parse_pyspy(text: str, source: str) -> list[Process]:
    is_json = re.match(r"\s*\[\s*[{\]]", text) is not None  # gdb begins with [New LWP 12], a kernel stack with [<0>]
    return pyspy.parse_json(text, source) if is_json else _parse_each(text, source, pyspy.parse_text)


def _parse_stacks(text: str, source: str) -> list[Process]:
    return _parse_each(
        text, source, lambda one, name: [to_process(stacks, name, one) for stacks in parse_stacks(one)[:1]]
    )


def _parse_each(text: str, source: str, parse: Parser) -> list[Process]:
    """Parse each dump of a text by itself, with what the headings above it say."""
    return [
        replace(process, rank=section.rank, host=section.host, pid=process.pid or section.pid)
        for section in split_dumps(text)
        for process in parse(section.text, source)
    ]


# In this order: the first parser that finds a process wins.
PARSERS: tuple[Parser, ...] = (
    recordings.parse_text,
    _parse_pyspy,
    proc.parse_text,
    strace.parse_text,
    _parse_stacks,
)


def parse_processes(data: bytes, source: str) -> list[Process]:
    """Return every process in one dump, with the rank in the file's name. Raises ArtifactError where there is none."""
    text = data.decode("utf-8", "replace")
    processes = next((each for parser in PARSERS if (each := parser(text, source))), [])
    if not any(process.threads for process in processes):
        raise ArtifactError(
            "the dump contains no thread",
            hint="take it again with `py-spy dump --pid PID`, as root if permission is denied",
        )
    is_one = all(process == processes[0] for process in processes)
    return [_with_file_name(process) for process in processes] if is_one else processes


def _with_file_name(process: Process) -> Process:
    """The process with rank, host and pid from the file's name; data loader workers and agents are no ranks."""
    named = parse_file_name(process.source)
    rank = process.rank if process.rank is not None else named.rank
    return replace(
        process,
        rank=None if state_of(process).kind in HELPERS else rank,
        host=process.host or named.host,
        pid=named.pid if process.pid is None else process.pid,
    )


def extract_crashes(data: bytes, source: str) -> list[Evidence]:
    """Return the crash in a gdb dump of a process that a signal had stopped, [] for a live process."""
    text = data.decode("utf-8", "replace")
    if "#0 " not in text:
        return []
    named = parse_file_name(source)
    origin = Origin(rank=named.rank, host=named.host, pid=named.pid)
    block = Block(source, 0, len(data), 0, "backtrace", tuple(text.splitlines()), origin)
    return [fact for fact in backtraces.extract(block) if fact.kind == "crash"]


def to_evidence(process: Process, size: int = 0) -> Evidence:
    """Return what one process was doing; `size` is that of the dump."""
    state, main = state_of(process), main_thread(process)
    lines = [f"{frame.function} ({format_location(frame)})" for frame in (main.frames if main else ())[:_MAX_FRAMES]]
    if process.tool in KERNEL_TOOLS and main is not None and main.call is not None:
        lines = [f"{main.call.name or '?'} {main.call.path}".strip(), *main.call.wait[:_MAX_FRAMES]]
    return Evidence(
        kind="stack",
        component=process.tool,
        text=redact(format_state(state)),
        origin=Origin(rank=process.rank, host=process.host, pid=process.pid),
        source=process.source,
        offset=0,
        end=size,
        excerpt=redact("\n".join(lines)),
        detail=backtraces.detail_of(process),
    )
