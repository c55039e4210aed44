"""Dumps of live processes → one fact a process: kind `stack`, what its main thread did in `fields`. `conclude` compares
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from triage.artifacts.interface import Artifact, ArtifactError, Facts, damaged
from triage.artifacts.stacks import proc, pyspy, strace
from triage.evidence import backtraces, live
from triage.evidence.redact import redact
from triage.model.evidence import Block, Evidence, Origin, SourceKind, Warning
from triage.ranks.files import origin_of
from triage.stacks import parse
from triage.stacks.live.model import KERNEL_TOOLS, Process, phrase, place
from triage.stacks.live.native import process as native
from triage.stacks.live.states import HELPERS, main_thread, state_of

MOST_BYTES = 1 << 24
_SHOWN = 12


class Stacks:
    """Reads one of the two kinds: `py-spy`, or `live-stacks` for everything else that shows live processes."""

    max_bytes = MOST_BYTES

    def __init__(self, kind: SourceKind) -> None:
        self.kind: SourceKind = kind

    def read(self, artifacts: Sequence[Artifact]) -> Facts:
        found = Facts([], [])
        for artifact in artifacts:
            name = artifact.source.name
            try:
                crashes = crashed(artifact.data, name) if self.kind == "live-stacks" else []
                dumped = [] if crashes else processes(artifact.data, name)
            except ArtifactError as error:
                found.warnings.append(damaged(artifact.source, error))
                continue
            if len(artifact.data) >= MOST_BYTES:
                message = f"only the first {MOST_BYTES >> 20} MiB of this dump were read"
                found.warnings.append(Warning("truncated-artifact", name, message))
            found.evidence.extend(crashes or [fact(process, len(artifact.data)) for process in dumped])
        return found


def _spied(text: str, source: str) -> list[Process]:
    is_json = re.match(r"\s*\[\s*[{\]]", text) is not None  # gdb begins with [New LWP 12], a kernel stack with [<0>]
    return pyspy.of_json(text, source) if is_json else pyspy.of_text(text, source)


def _printed(text: str, source: str) -> list[Process]:
    return [native(stacks, source, text) for stacks in parse(text)[:1]]


# In this order: the first that finds a process in the text is believed.
FORMS: tuple[Callable[[str, str], list[Process]], ...] = (_spied, proc.of_text, strace.of_text, _printed)


def processes(data: bytes, source: str) -> list[Process]:
    """Every process in one dump, with the rank that the file's name tells. Raises ArtifactError where there is none."""
    text = data.decode("utf-8", "replace")
    found = next((each for form in FORMS if (each := form(text, source))), [])
    if not any(process.threads for process in found):
        raise ArtifactError(
            "a dump without a single thread", hint="take it again with `py-spy dump --pid PID`, as root if it complains"
        )
    return [placed(process) for process in found] if len(found) == 1 else found


def placed(process: Process) -> Process:
    """The process with rank, host and pid as far as the file's name says; data loaders' workers and agents are no
    ranks.
    """
    named = origin_of(process.source)
    rank = None if state_of(process).kind in HELPERS else named.rank
    return replace(
        process, rank=rank, host=process.host or named.host, pid=named.pid if process.pid is None else process.pid
    )


def crashed(data: bytes, source: str) -> list[Evidence]:
    """The crash in a dump that gdb made of a process which a signal had stopped; [] for one that lives."""
    text = data.decode("utf-8", "replace")
    if "#0 " not in text:
        return []
    named = origin_of(source)
    origin = Origin(rank=named.rank, host=named.host, pid=named.pid)
    facts = backtraces.read(Block(source, 0, len(data), 0, "backtrace", tuple(text.splitlines()), origin))
    return [each for each in facts if each.kind == "crash"]


def fact(process: Process, size: int = 0) -> Evidence:
    """What one process was doing."""
    state, main = state_of(process), main_thread(process)
    shown = [f"{frame.function} ({place(frame)})" for frame in (main.frames if main else ())[:_SHOWN]]
    if process.tool in KERNEL_TOOLS and main is not None and main.call is not None:
        shown = [f"{main.call.name or '?'} {main.call.path}".strip(), *main.call.wait[:_SHOWN]]
    return Evidence(
        kind="stack",
        component=process.tool,
        text=redact(phrase(state)),
        origin=Origin(rank=process.rank, host=process.host, pid=process.pid),
        source=process.source,
        offset=0,
        end=size,
        fields={name: redact(value) for name, value in live.fields(process).items()},
        excerpt=redact("\n".join(shown)),
    )
