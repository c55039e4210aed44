"""Dress a job that exists already: the same log lines as another collector or editor would have stored them."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from triage.base.lazy_re import lazy_re
from triage.testing.composer.dressings import DRESSINGS
from triage.testing.composer.model import LogLine, World

_DRESSINGS = {dressing.name: dressing for dressing in DRESSINGS}
_STAMP = lazy_re(r"(20\d\d)-(\d\d)-(\d\d)[T -](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?")
_GLOG = lazy_re(r"\b[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{1,6})")
_LOGS = (".log", ".out", ".err", ".txt")
_START = datetime(2026, 11, 21, 2, 30, tzinfo=UTC).timestamp()
# What a collector of a job's output does not read: the kernel's log, and what somebody asked a tool for.
_OTHER_LOGS = lazy_re(r"(?i)dmesg|kern|syslog|messages|journal|printenv|describe|events|sacct|scontrol|\bsmi\b|-smi")
_HOST = lazy_re(r"(?:node|worker|host|pod)[-_]?\d{1,4}(?![\d_])")
_WORLD = World(("node1",), 1, (1,), _START, 0, "/workspace/train.py", "nccl", "stamped")


def dress_recorded(job: Path, dressing: str, directory: Path) -> Path:
    """Write the files of `job` to `directory` in a dressing, and return it.

    A line was stored when its own timestamp says, else when the line before it was, or the first line with a timestamp
    below it; lines of files without timestamps were stored last. Files that are no text, no logs by their name, or no
    output of the job's processes stay as they are unless the dressing packs or fits all files.
    """
    chosen = _DRESSINGS[dressing]
    files: dict[str, bytes] = {}
    logs: dict[str, list[str]] = {}
    for path in sorted(path for path in job.rglob("*") if path.is_file()):
        name, content = path.relative_to(job).as_posix(), path.read_bytes()
        is_output = chosen.fits_any or not _OTHER_LOGS.search(path.name)
        if path.suffix in _LOGS and b"\0" not in content and is_output:
            logs[name] = content.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")
        else:
            files[name] = content
    files |= dict(_dress(logs, dressing))
    for name, content in (chosen.pack(files) if chosen.pack else files).items():
        target = directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return directory


def _dress(logs: Mapping[str, Sequence[str]], dressing: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and bytes of each log; a file or directory that is named after a host was written there."""
    hosts = {name: host[0] if (host := _HOST.search(name)) else "" for name in logs}
    named = sorted(set(hosts.values()) - {""})
    world = dataclasses.replace(_WORLD, hosts=tuple(named) or _WORLD.hosts)
    own = {name: [_seconds(text) for text in texts] for name, texts in logs.items()}
    end = max((at for times in own.values() for at in times if at is not None), default=0.0)
    for name, texts in logs.items():
        times = _fill(own[name], end)
        lines = tuple(LogLine(at, text, hosts[name]) for at, text in zip(times, texts, strict=True))
        yield _DRESSINGS[dressing].dress(name, lines, world, random.Random(name))


def _fill(times: Sequence[float | None], end: float) -> list[float]:
    """Give each line without a time that of the line before it, or the first below it; `end` where there is none."""
    last = next((at for at in times if at is not None), end)
    filled = []
    for at in times:
        last = last if at is None else at
        filled.append(last)
    return filled


def _seconds(text: str) -> float | None:
    """Return the time that a line states, in seconds after the start."""
    stamp, glog = _STAMP.search(text, 0, 200), _GLOG.search(text, 0, 200)
    numbers = [*stamp.groups("0")] if stamp else ["2026", *glog.groups()] if glog else []
    if not numbers:
        return None
    year, month, day, hour, minute, second = map(int, numbers[:6])
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None
    return moment - _START + (float(f"0.{numbers[6]}") if stamp else 0)
