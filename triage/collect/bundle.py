"""Write the bundle: the most useful files first, limited in time and size, and a list of what is missing."""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from triage.base.errors import OptionError
from triage.collect import logs, probes
from triage.collect.probes import Unavailable
from triage.collect.processes import Target, find_targets
from triage.evidence.redact import redact

PROBE_SECONDS = 15.0
GDB_SECONDS = 40.0  # gdb first reads the symbols of all libraries, and a deep-learning framework has many
Probe = Callable[[Target, float], str]
# Each probe runs on all processes before the next one: the stacks of every rank come first, slow probes last.
_FIRST: tuple[tuple[str, Probe], ...] = (
    ("py-spy.txt", probes.py_spy),
    ("environ.txt", probes.environ),
    ("status.txt", probes.status),
    ("files.txt", probes.files),
)
_LAST = (("gdb.txt", probes.gdb),)


@dataclass
class CollectedBundle:
    """The files in the bundle, and the missing ones with the reasons. `report` is called before each file."""

    names: list[str] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)
    size: int = 0
    report: Callable[[str], None] = field(default=lambda _: None, repr=False)


def collect(
    output: Path,
    pids: Sequence[int] = (),
    match: str | None = None,
    *,
    seconds: float = 60.0,
    max_bytes: int = 64 << 20,
    report: Callable[[str], None] = lambda _: None,
) -> CollectedBundle:
    """Write the bundle. `max_bytes` limits its content before compression, `seconds` the start of the last tool.

    Raises InputError if no process is found, OptionError if `output` cannot be written.
    """
    targets = find_targets(pids, match)
    bundle = CollectedBundle(report=report)
    deadline = time.monotonic() + seconds
    temporary = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            _write(file, _collect_files(targets, bundle, deadline), bundle, max_bytes)
        os.replace(temporary, output)
    except OSError as error:
        raise OptionError(
            f"{output} cannot be written: {error.strerror}", hint="give a writable place with -o"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
    return bundle


def _write(file: IO[bytes], files: Iterator[tuple[str, str]], bundle: CollectedBundle, max_bytes: int) -> None:
    import zstandard

    with (
        zstandard.ZstdCompressor(level=6).stream_writer(file, closefd=False) as stream,
        tarfile.open(fileobj=stream, mode="w|") as archive,
    ):
        for name, text in files:
            data = text.encode()
            if bundle.size + len(data) > max_bytes:
                bundle.missing.append((name, f"the bundle would be larger than {max_bytes >> 20} MiB"))
                continue
            _add(archive, name, data)
            bundle.names.append(name)
            bundle.size += len(data)
        _add(archive, "COLLECTED.md", _format_contents(bundle).encode())


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(data), 0o600, int(time.time())
    archive.addfile(member, io.BytesIO(data))


def _collect_files(targets: Sequence[Target], bundle: CollectedBundle, deadline: float) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each file, as it is collected."""
    host = redact(os.uname().nodename.partition(".")[0])
    yield from _probe_processes(_FIRST, targets, host, bundle, deadline)
    yield from _try(f"{host}/dmesg.txt", partial(probes.kernel, targets, _time_left(deadline, PROBE_SECONDS)), bundle)
    for name, command in probes.NODE.items():
        yield from _try(f"{host}/{name}", partial(probes.node, command, _time_left(deadline, PROBE_SECONDS)), bundle)
    yield from _collect_logs(targets, host, bundle)
    yield from _probe_processes(_LAST, targets, host, bundle, deadline)


def _probe_processes(
    named_probes: Sequence[tuple[str, Probe]],
    targets: Sequence[Target],
    host: str,
    bundle: CollectedBundle,
    deadline: float,
) -> Iterator[tuple[str, str]]:
    for name, probe in named_probes:
        limit = GDB_SECONDS if probe is probes.gdb else PROBE_SECONDS
        for target in targets:
            file = f"{host}/{target.folder}/{name}"
            yield from _try(file, partial(probe, target, _time_left(deadline, limit)), bundle)


def _time_left(deadline: float, limit: float) -> float:
    return min(limit, deadline - time.monotonic())


def _collect_logs(targets: Sequence[Target], host: str, bundle: CollectedBundle) -> Iterator[tuple[str, str]]:
    """Yield the tail of each log once; two containers may have different logs of the same name."""
    inodes: set[tuple[int, int]] = set()
    names: set[str] = set()
    for target in targets:
        for log in logs.find_logs(target):
            if not isinstance(log, logs.Log):
                bundle.missing.append((redact(f"{host}/{target.folder}/{log[0]}"), log[1]))
                continue
            try:
                status = log.path.stat()
            except OSError:
                continue
            if (status.st_dev, status.st_ino) in inodes:
                continue
            inodes.add((status.st_dev, status.st_ino))
            name = f"{host}/logs/" + redact(os.path.normpath(log.name).lstrip("/"))
            if name in names:
                name = name.replace("/logs/", f"/logs/{target.folder}/", 1)
            names.add(name)
            yield from _try(name, partial(probes.tail, log), bundle)


def _try(name: str, probe: Callable[[], str], bundle: CollectedBundle) -> Iterator[tuple[str, str]]:
    bundle.report(name)
    try:
        text = probe()
    except Unavailable as reason:
        bundle.missing.append((name, str(reason)))
    else:
        yield name, text


def _format_contents(bundle: CollectedBundle) -> str:
    """Return COLLECTED.md; `triage.pipeline.intake` reads its second list."""
    lines = [
        "# What `triage collect` gathered",
        "",
        *(f"- {name}" for name in bundle.names),
        "",
        "# What it could not get",
        "",
        *(f"- {name}: {reason}" for name, reason in bundle.missing),
    ]
    return "\n".join(lines) + "\n"
