"""Core files of a job → evidence; the pid of a core shows its rank. Compressed cores are held in memory."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import BinaryIO

from triage.artifacts.cores import elf
from triage.artifacts.cores.limited_process import Limits
from triage.artifacts.cores.model import CoreError
from triage.artifacts.cores.needed_parts import PAGE, Range, digest_core, find_module_starts, find_stacks
from triage.artifacts.cores.report import CoreReport, read_core
from triage.artifacts.interface import Artifact, ArtifactError, ReadResult, damaged_warning
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.model import CrashDetail, Evidence, Origin, Source, Warning
from triage.stacks.model import format_frame

CAP = 256 << 20
"""Bytes of memory for one core."""
_HEAD = 64 << 20
_PIECE = 1 << 20
_ZEROS = bytes(PAGE)
SECONDS = 30.0
"""Limit for the debuggers of one core."""
BUDGET = 90.0
"""Limit for the debuggers of all cores of a job; further cores are read without."""
_MAX_FRAMES = 16
# core.COMM.UID.BOOTID.PID.MICROSECONDS, as systemd-coredump names them.
_SYSTEMD = lazy_re(r"core\.(?P<comm>.+)\.(?P<uid>\d+)\.[0-9a-f]{32}\.(?P<pid>\d+)\.(?P<time>\d{15,17})")


class SpooledCore:
    """A core in an anonymous file; `path` can be opened as long as this object lives."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("triage-core", os.MFD_CLOEXEC) if hasattr(os, "memfd_create") else _unlinked()
        self.path = (
            f"/proc/{os.getpid()}/fd/{self.fd}" if os.path.exists(f"/proc/self/fd/{self.fd}") else f"/dev/fd/{self.fd}"
        )
        self.is_partial = False
        self.size = 0

    def __del__(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            os.close(self.fd)


def _unlinked() -> int:
    with tempfile.TemporaryFile(prefix="triage-core-") as file:
        return os.dup(file.fileno())


def spool_core(stream: BinaryIO, cap: int = CAP) -> tuple[SpooledCore, bytes]:
    """Copy the whole stream and return it with its first bytes; a damaged stream gives a core that is cut."""
    core = SpooledCore()
    first = b""
    position = spent = 0
    wanted: list[Range] | None = None
    notes = 0
    while piece := stream.read(_PIECE):
        if not first:
            first, notes = piece[:PAGE], min(_HEAD, elf.notes_end(piece))
        if position >= notes and spent + len(piece) > cap and wanted is None:
            wanted = _wanted(core, position)
            core.is_partial = True
        spent += _write(core.fd, position, piece, wanted)
        position += len(piece)
        if spent > 2 * cap + notes + _PIECE:
            break
    os.ftruncate(core.fd, position)
    core.size = position
    return core, first


def _write(fd: int, position: int, piece: bytes, wanted: list[Range] | None) -> int:
    """Write the wanted pages that are not zero, and return how many bytes they are."""
    spent = start = 0
    if not any(piece[:64]) and piece.count(0) == len(piece):
        return 0  # most of a core with many threads
    view = memoryview(piece)
    while start < len(piece):
        end = min(len(piece), start + PAGE)
        page = view[start:end]
        if page != _ZEROS[: len(page)] and (wanted is None or _is_wanted(wanted, position + start, position + end)):
            os.pwrite(fd, page, position + start)
            spent += len(page)
        start = end
    return spent


def _is_wanted(wanted: list[Range], start: int, end: int) -> bool:
    from bisect import bisect_right

    index = bisect_right(wanted, (end, 0)) - 1
    return index >= 0 and wanted[index][1] > start


class _Head:
    """The bytes copied so far, to be parsed as a core."""

    def __init__(self, fd: int, size: int) -> None:
        self.size = size
        self._fd = fd

    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._fd, max(0, min(length, self.size - offset)), offset) if 0 <= offset < self.size else b""


def _wanted(core: SpooledCore, size: int) -> list[Range]:
    """The ranges of the file that stacks need, ascending; [] when the notes cannot be read."""
    try:
        parsed = elf.parse_core(_Head(core.fd, size))
    except CoreError:
        return []
    return sorted([*find_stacks(parsed), *find_module_starts(parsed)])


@dataclass(frozen=True, slots=True)
class SpooledArtifact(Artifact):
    """A core in memory, which lives as long as this object."""

    core: SpooledCore


class CoreReader:
    """Reads core files, each within limits."""

    max_bytes = 1 << 12

    def read_stream(self, source: Source, stream: BinaryIO) -> Artifact:
        """Return a core that is compressed or in an archive, copied into memory."""
        core, first = spool_core(stream)
        return SpooledArtifact(replace(source, path=core.path, size=core.size), first, core=core)

    def read(self, artifacts: Sequence[Artifact]) -> ReadResult:
        """Return evidence for each core, and warnings for those that cannot be read."""
        digests: list[str] = []
        result = ReadResult([], [], digests)
        start = time.monotonic()
        for artifact in artifacts:
            use_debuggers = time.monotonic() - start < BUDGET
            try:
                digests.append(digest_core(artifact.source.path or ""))
                result.evidence.append(read_one(artifact, result.warnings, use_debuggers))
            except ArtifactError as error:
                result.warnings.append(damaged_warning(artifact.source, error))
            except OSError as error:
                message = f"the core file cannot be read: {error.strerror or error}"
                result.warnings.append(Warning("unreadable", artifact.source.name, message))
        return result


def read_one(artifact: Artifact, warnings: list[Warning], use_debuggers: bool = True) -> Evidence:
    """Return the evidence of one core file. Raises CoreError or OSError."""
    source = artifact.source
    report = read_core(
        source.path or "", source.name, use_gdb=use_debuggers, use_python=use_debuggers, limits=Limits(seconds=SECONDS)
    )
    warnings.extend(Warning(code, source.name, sentence) for code, sentence in report.remarks)
    if not use_debuggers:
        message = f"read without gdb, because the cores before it took {BUDGET:g} s; `triage core` reads it completely"
        warnings.append(Warning("core-budget", source.name, message))
    if isinstance(artifact, SpooledArtifact) and artifact.core.is_partial:
        message = "only its stacks were read, because it is large and compressed; decompress it to read it completely"
        warnings.append(Warning("core-thinned", source.name, message))
    return to_evidence(report, source)


def to_evidence(report: CoreReport, source: Source) -> Evidence:
    """Return what a core shows, in the format of gdb."""
    from triage.evidence.redact import redact

    core = report.core
    name = _SYSTEMD.search(source.name.rsplit("/", 1)[-1])
    text = redact("\n".join(format_lines(report)))
    return Evidence(
        kind="core",
        component="core",
        text=text,
        origin=Origin(pid=core.pid, time=int(name["time"][:16]) / 1e6 if name else None),
        source=source.name,
        offset=0,
        fields={name: redact(value) for name, value in _fields(report).items() if value},
        excerpt=text,
        detail=CrashDetail(report.stacks.signal, report.crash.kind if report.stacks.signal else ""),
    )


def _fields(report: CoreReport) -> dict[str, str]:
    """The parts of the evidence that signatures match."""
    core, crash, stacks = report.core, report.crash, report.stacks
    return {
        "signal": stacks.signal,
        "si_code": report.code,
        "address": f"{core.address:#x}" if core.address is not None else "",
        "meaning": report.meaning.code,
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


def format_lines(report: CoreReport) -> list[str]:
    """Return the crash in a few lines: signal and meaning, message, crash point, first frames."""
    core, crash, stacks = report.core, report.crash, report.stacks
    if not stacks.signal:
        return [f"The core of a process that did not crash (pid {core.pid}): {core.command}"]
    address = f" at {core.address:#x}" if core.address is not None else ""
    head = f"Program terminated with signal {stacks.signal}{f' ({report.code})' if report.code else ''}{address}"
    out = [head + (f": {report.meaning.sentence}" if report.meaning.sentence else "")]
    out += [
        *(line for line in stacks.message.split("\n") if line.strip()),
        f"crash point: {crash.text}",
        f"program: {core.command} (pid {core.pid}, {len(stacks.threads)} threads, frames by {report.engine})",
    ]
    if crash.thread is not None:
        out += [f"#{level}  {format_frame(frame)}" for level, frame in enumerate(crash.thread.frames[:_MAX_FRAMES])]
        more = len(crash.thread.frames) - _MAX_FRAMES
        out += [f"… {more} more {'frame' if more == 1 else 'frames'}"] if more > 0 else []
    return out
