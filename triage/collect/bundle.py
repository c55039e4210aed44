"""The bundle: pieces in the order of their worth, within a time and a size, and a list of what could not be had."""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from triage.base.errors import OptionError
from triage.collect import logs, steps
from triage.collect.processes import Target, targets
from triage.collect.steps import Missing

PIECE_S = 15.0
GDB_S = 40.0
"""gdb reads the symbols of all libraries first, and those of a deep-learning framework are many."""
Take = Callable[[Target, float], str]
# In this order over all processes: the stacks of every rank before anything else of one, and what takes longest after
# all that is cheap.
_PIECES: tuple[tuple[str, Take], ...] = (
    ("py-spy.txt", steps.py_spy),
    ("environ.txt", steps.environ),
    ("status.txt", steps.status),
    ("files.txt", steps.files),
)
_LAST = (("gdb.txt", steps.gdb),)


@dataclass
class Collected:
    """What got into the bundle, and what did not and why. `report` is told each piece when it is begun."""

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
    most: int = 64 << 20,
    report: Callable[[str], None] = lambda _: None,
) -> Collected:
    """Write the bundle. `most` bounds its content before compression in bytes, `seconds` the time until the last tool
    is started.

    Raises InputError when no process is found, OptionError when `output` cannot be written.
    """
    chosen = targets(pids, match)
    done = Collected(report=report)
    deadline = time.monotonic() + seconds
    beside = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            _write(file, _pieces(chosen, done, deadline), done, most)
        os.replace(beside, output)
    except OSError as error:
        raise OptionError(
            f"{output} cannot be written: {error.strerror}", hint="give -o a place where you may write"
        ) from error
    finally:
        beside.unlink(missing_ok=True)
    return done


def _write(file: io.BufferedIOBase | object, pieces: Iterator[tuple[str, str]], done: Collected, most: int) -> None:
    import zstandard

    with (
        zstandard.ZstdCompressor(level=6).stream_writer(file, closefd=False) as stream,
        tarfile.open(fileobj=stream, mode="w|") as archive,
    ):  # type: ignore[arg-type]
        for name, text in pieces:
            data = text.encode()
            if done.size + len(data) > most:
                done.missing.append((name, f"the bundle would be larger than {most >> 20} MiB"))
                continue
            _add(archive, name, data)
            done.names.append(name)
            done.size += len(data)
        _add(archive, "COLLECTED.md", _listing(done).encode())


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(data), 0o600, int(time.time())
    archive.addfile(member, io.BytesIO(data))


def _pieces(chosen: Sequence[Target], done: Collected, deadline: float) -> Iterator[tuple[str, str]]:
    """Names and texts, as they become known."""
    where = os.uname().nodename.partition(".")[0]
    yield from _of_processes(_PIECES, chosen, where, done, deadline)
    left = min(PIECE_S, deadline - time.monotonic())
    yield from _tried(f"{where}/dmesg.txt", lambda: steps.kernel(chosen, left), done)
    for name, command in steps.NODE.items():
        left = min(PIECE_S, deadline - time.monotonic())
        yield from _tried(
            f"{where}/{name}", lambda command=command, left=left: steps.run(command, left)[-steps.TAIL :], done
        )  # type: ignore[misc]
    yield from _logs(chosen, where, done)
    yield from _of_processes(_LAST, chosen, where, done, deadline)


def _of_processes(
    pieces: Sequence[tuple[str, Take]], chosen: Sequence[Target], where: str, done: Collected, deadline: float
) -> Iterator[tuple[str, str]]:
    for piece, take in pieces:
        for target in chosen:
            name = f"{where}/{target.folder}/{piece}"
            left = min(GDB_S if take is steps.gdb else PIECE_S, deadline - time.monotonic())
            yield from _tried(name, lambda take=take, target=target, left=left: take(target, left), done)  # type: ignore[misc]


def _logs(chosen: Sequence[Target], where: str, done: Collected) -> Iterator[tuple[str, str]]:
    """The tail of each log once; two containers may have different ones of the same name."""
    seen: set[tuple[int, int]] = set()
    names: set[str] = set()
    for target in chosen:
        for log in logs.of(target):
            if not isinstance(log, logs.Log):
                done.missing.append((f"{where}/{target.folder}/{log[0]}", log[1]))
                continue
            try:
                status = log.place.stat()
            except OSError:
                continue
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            name = f"{where}/logs/" + os.path.normpath(log.name).lstrip("/")
            if name in names:
                name = name.replace("/logs/", f"/logs/{target.folder}/", 1)
            names.add(name)
            yield from _tried(name, lambda log=log: steps.tail(log), done)  # type: ignore[misc]


def _tried(name: str, take: Callable[[], str], done: Collected) -> Iterator[tuple[str, str]]:
    done.report(name)
    try:
        text = take()
    except Missing as reason:
        done.missing.append((name, str(reason)))
    else:
        yield name, text


def _listing(done: Collected) -> str:
    lines = [
        "# What `triage collect` gathered",
        "",
        *(f"- {name}" for name in done.names),
        "",
        "# What it could not get",
        "",
    ]
    return "\n".join([*lines, *(f"- {name}: {why}" for name, why in done.missing)]) + "\n"
