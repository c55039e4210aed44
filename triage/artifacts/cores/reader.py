"""Core files of a job as evidence: each is read within limits, and belongs to the rank whose pid it has."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from triage.artifacts.cores.report import Report, read
from triage.artifacts.interface import Artifact, ArtifactError, Facts, damaged
from triage.base.lazy_re import lazy_re
from triage.model.evidence import Evidence, Origin, Source, SourceKind, Warning
from triage.stacks.write import frame as written_frame

SECONDS = 30.0
"""For one core."""
BUDGET = 90.0
"""For the debuggers of all cores of a job; the rest is read without."""
_SHOWN = 16
# core.COMM.UID.BOOTID.PID.MICROSECONDS, as systemd-coredump names them.
_SYSTEMD = lazy_re(r"core\.(?P<comm>.+)\.(?P<uid>\d+)\.[0-9a-f]{32}\.(?P<pid>\d+)\.(?P<time>\d{15,17})")


@dataclass(frozen=True, slots=True)
class KeptCore(Artifact):
    """A core that is held in memory as long as this lives."""

    hold: object = None


class Cores:
    kind: SourceKind = "core"
    max_bytes = 1 << 12

    def keep(self, source: Source, stream: BinaryIO) -> Artifact:
        """A core that lies compressed or in an archive."""
        from dataclasses import replace

        from triage.artifacts.cores import spool

        kept, first = spool.keep(stream)
        return KeptCore(replace(source, path=kept.path, size=kept.size), first, kept)

    def read(self, artifacts: Sequence[Artifact]) -> Facts:
        found = Facts([], [])
        spent = 0.0
        for artifact in artifacts:
            started = time.monotonic()
            within = spent < BUDGET
            answer(found, artifact, use_debuggers=within)
            spent += time.monotonic() - started
        return found


def answer(found: Facts, artifact: Artifact, use_debuggers: bool = False) -> None:
    """Add what one core says to `found`; a core that cannot be read is a warning."""
    try:
        found.evidence.append(one(artifact, found.warnings, use_debuggers))
    except ArtifactError as error:
        found.warnings.append(damaged(artifact.source, error))
    except OSError as error:
        message = f"the core file cannot be read: {error.strerror or error}"
        found.warnings.append(Warning("unreadable", artifact.source.name, message))


def one(artifact: Artifact, warnings: list[Warning], use_debuggers: bool = True) -> Evidence:
    """The evidence of one core file. Raises CoreError or OSError."""
    from triage.artifacts.cores.engine import Limits

    source = artifact.source
    report = read(
        source.path or "", source.name, use_gdb=use_debuggers, use_python=use_debuggers, limits=Limits(seconds=SECONDS)
    )
    warnings.extend(Warning(code, source.name, sentence) for code, sentence in report.remarks)
    if not use_debuggers:
        warnings.append(
            Warning(
                "core-budget",
                source.name,
                f"read without gdb: the cores before it took {BUDGET:g} s; `triage core` reads it whole",
            )
        )
    if isinstance(artifact, KeptCore) and getattr(artifact.hold, "thinned", False):
        warnings.append(
            Warning(
                "core-thinned", source.name, "only its stacks were kept in memory, for it is large and lies compressed"
            )
        )
    return evidence(report, source)


def evidence(report: Report, source: Source) -> Evidence:
    """What a core says, in the words that gdb would use."""
    from triage.evidence.redact import redact

    core, crash, stacks = report.core, report.crash, report.stacks
    named = _SYSTEMD.search(source.name.rsplit("/", 1)[-1])
    text = redact("\n".join(lines(report)))
    fields = {
        "signal": stacks.signal,
        "si_code": report.code,
        "address": f"{core.address:#x}" if core.address is not None else "",
        "meaning": report.meaning.word,
        "message": stacks.message,
        "program": core.program or core.command.split(" ")[0],
        "thread": crash.thread.id if crash.thread is not None else "",
        "tid": str(crash.thread.tid or "") if crash.thread is not None else "",
        "threads": str(len(stacks.threads)),
        "frame": crash.frames[0] if crash.frames else "",
        "module": crash.module,
        "python": crash.python,
        "crash_kind": crash.kind if stacks.signal else "",
        "crash_signature": crash.key if stacks.signal else "",
        "crash_point": crash.point if stacks.signal else "",
        "engine": report.engine,
    }
    return Evidence(
        kind="core",
        component="core",
        text=text,
        origin=Origin(pid=core.pid, time=int(named["time"][:16]) / 1e6 if named else None),
        source=source.name,
        offset=0,
        fields={name: redact(value) for name, value in fields.items() if value},
        excerpt=text,
    )


def lines(report: Report) -> list[str]:
    """The crash in a few lines: signal and meaning, what was said, the crash point, the first frames."""
    core, crash, stacks = report.core, report.crash, report.stacks
    if not stacks.signal:
        return [f"A core of a process that went on (pid {core.pid}): {core.command}"]
    address = f" at {core.address:#x}" if core.address is not None else ""
    head = f"Program terminated with signal {stacks.signal}{f' ({report.code})' if report.code else ''}{address}"
    out = [head + (f": {report.meaning.sentence}" if report.meaning.sentence else "")]
    out += [line for line in stacks.message.split("\n") if line.strip()]
    out.append(f"crash point: {crash.text}")
    out.append(f"program: {core.command} (pid {core.pid}, {len(stacks.threads)} threads, frames by {report.engine})")
    if crash.thread is not None:
        out += [
            f"#{level}  {written}" for level, written in enumerate(map(written_frame, crash.thread.frames[:_SHOWN]))
        ]
        more = len(crash.thread.frames) - _SHOWN
        out += [f"… {more} more frames"] if more > 0 else []
    return out


__all__ = ["BUDGET", "SECONDS", "Cores", "answer", "evidence", "lines", "one"]
