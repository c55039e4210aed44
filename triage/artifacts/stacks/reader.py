"""Dumps of live processes → one fact a process: kind `stack`, what its main thread did in `fields`. `conclude` compares them."""

from __future__ import annotations

from collections.abc import Sequence

from triage.artifacts.interface import Artifact, ArtifactError, Facts, damaged
from triage.artifacts.stacks import pyspy
from triage.artifacts.stacks.board import phrase
from triage.artifacts.stacks.model import Process
from triage.artifacts.stacks.states import HELPERS, key_of, main_thread, state_of
from triage.evidence.redact import redact
from triage.model import Evidence, Origin, SourceKind, Warning
from triage.ranks.files import origin_of

MOST_BYTES = 1 << 24
_SHOWN = 12


class Stacks:
    kind: SourceKind = "py-spy"
    max_bytes = MOST_BYTES

    def read(self, artifacts: Sequence[Artifact]) -> Facts:
        found = Facts([], [])
        for artifact in artifacts:
            try:
                dumped = processes(artifact.data, artifact.source.name)
            except ArtifactError as error:
                found.warnings.append(damaged(artifact.source, error))
                continue
            if len(artifact.data) >= MOST_BYTES:
                message = f"only the first {MOST_BYTES >> 20} MiB of this dump were read"
                found.warnings.append(Warning("truncated-artifact", artifact.source.name, message))
            found.evidence.extend(fact(process, len(artifact.data)) for process in dumped)
        return found


def processes(data: bytes, source: str) -> list[Process]:
    """Every process in one dump, with the rank that the file's name tells. Raises ArtifactError where there is none."""
    text = data.decode("utf-8", "replace")
    found = pyspy.of_json(text, source) if text.lstrip()[:1] == "[" else pyspy.of_text(text, source)
    if not any(process.threads for process in found):
        raise ArtifactError("a dump without a single thread", hint="take it again with `py-spy dump --pid PID`, as root if it complains")
    return [placed(process) for process in found] if len(found) == 1 else found


def placed(process: Process) -> Process:
    """The process with rank and host as far as the file's name says; data loaders' workers and agents are no ranks."""
    from dataclasses import replace

    named = origin_of(process.source)
    rank = None if state_of(process).kind in HELPERS else named.rank
    return replace(process, rank=rank, host=process.host or named.host)


def fact(process: Process, size: int = 0) -> Evidence:
    """What one process was doing."""
    state, main = state_of(process), main_thread(process)
    shown = [f"{frame.function} ({frame.place})" for frame in (main.frames if main else ())[:_SHOWN]]
    return Evidence(
        kind="stack",
        component=process.tool,
        text=redact(phrase(state)),
        origin=Origin(rank=process.rank, host=process.host, pid=process.pid),
        source=process.source,
        offset=0,
        end=size,
        fields={
            "state": state.kind,
            "words": state.words,
            "op": state.op,
            "place": state.place,
            "detail": state.detail,
            "stack": "\n".join(key_of(process)),
            "pid": str(process.pid) if process.pid is not None else "",
        },
        excerpt=redact("\n".join(shown)),
    )
