"""Dressings that need no collector: encodings, compression, terminals, editors, and archives of all files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence

from triage.base.lazy_re import lazy_re
from triage.testing.composer.model import LogLine, World

Dress = Callable[[str, Sequence[LogLine], World, random.Random], tuple[str, bytes]]
"""Return path and bytes of a log file of these lines."""
Pack = Callable[[Mapping[str, bytes]], dict[str, bytes]]
"""Return the files that replace all files of a job."""

_LEVEL = lazy_re(r"(?<!NCCL )\b(DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\b")
_COLOURS = {"DEBUG": "36", "INFO": "32", "WARNING": "33", "WARN": "33", "ERROR": "31", "CRITICAL": "1;31"}
_LEVEL_COLUMN = 80  # a level that stands later belongs to the message
_PAUSE = 0.1  # seconds between lines of different records; the lines of one traceback come at once
_BAR_WIDTH = 10


def as_written(path: str, lines: Sequence[LogLine], world: World, rng: random.Random) -> tuple[str, bytes]:
    """Write the lines as they are."""
    return path, _join(lines)


def with_crlf(path: str, lines: Sequence[LogLine], world: World, rng: random.Random) -> tuple[str, bytes]:
    """End lines as Windows does."""
    return path, _join(lines).replace(b"\n", b"\r\n")


def as_utf16(path: str, lines: Sequence[LogLine], world: World, rng: random.Random) -> tuple[str, bytes]:
    """Write what `>` of Windows PowerShell writes: UTF-16 with a byte order mark, and CRLF."""
    return path, b"\xff\xfe" + _join(lines).replace(b"\n", b"\r\n").decode().encode("utf-16-le")


def as_gzip(path: str, lines: Sequence[LogLine], world: World, rng: random.Random) -> tuple[str, bytes]:
    """Compress as gzip -n does."""
    return f"{path}.gz", gzip.compress(_join(lines), mtime=0)


def as_xz(path: str, lines: Sequence[LogLine], world: World, rng: random.Random) -> tuple[str, bytes]:
    """Compress as xz does."""
    return f"{path}.xz", lzma.compress(_join(lines))


def as_bzip2(path: str, lines: Sequence[LogLine], world: World, rng: random.Random) -> tuple[str, bytes]:
    """Compress as bzip2 does."""
    return f"{path}.bz2", bz2.compress(_join(lines))


def with_line_numbers(path: str, lines: Sequence[LogLine], world: World, rng: random.Random) -> tuple[str, bytes]:
    """Number the lines as cat -n does."""
    return path, "".join(f"{number:6d}\t{line.text}\n" for number, line in enumerate(lines, 1)).encode()


def with_blank_lines(path: str, lines: Sequence[LogLine], world: World, rng: random.Random) -> tuple[str, bytes]:
    """Put an empty line after each line, as texts have that were pasted through a web page."""
    return path, _join(lines).replace(b"\n", b"\n\n")


def with_colours(path: str, lines: Sequence[LogLine], world: World, rng: random.Random) -> tuple[str, bytes]:
    """Colour the level at the start of each record, as loggers do on a terminal."""
    return path, "".join(f"{_colour(line.text)}\n" for line in lines).encode()


def with_progress_bars(path: str, lines: Sequence[LogLine], world: World, rng: random.Random) -> tuple[str, bytes]:
    """Record a terminal on which a bar is drawn again and again between the lines of the first half of the file.

    tqdm.write removes the bar with blanks, writes its line, and draws the bar below it.
    """
    parts, total, last = [], rng.choice((250, 1000, 4882)), len(lines) // 2
    for index, line in enumerate(lines):
        if 0 < index < last and line.at - lines[index - 1].at > _PAUSE and rng.random() < 0.5:
            bar = draw_bar(index, max(total, len(lines)), line.at)
            parts.append(f"\r{bar}\r{' ' * len(bar)}\r")
        parts.append(f"{line.text}\n")
    return path, "".join(parts).encode()


def draw_bar(number: int, total: int, seconds: float, title: str = "Training") -> str:
    """Return tqdm's bar after `number` of `total` steps in this time."""
    share, rate = number / total, max(number / max(seconds, 0.5), 0.01)
    eighths = int(share * _BAR_WIDTH * 8)
    full, rest = divmod(eighths, 8)
    bar = ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if full < _BAR_WIDTH else "")).ljust(_BAR_WIDTH)
    left = _clock((total - number) / rate)
    return f"{title}: {share:4.0%}|{bar}| {number}/{total} [{_clock(seconds)}<{left}, {rate:5.2f}it/s]"


def pack_tar(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return one logs.tar.gz, with all files below a directory."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path, data in sorted(files.items()):
            member = tarfile.TarInfo(f"logs/{path}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return {"logs.tar.gz": gzip.compress(content.getvalue(), mtime=0)}


def pack_zip(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return one logs.zip."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(path), data, zipfile.ZIP_DEFLATED)
    return {"logs.zip": content.getvalue()}


def _join(lines: Sequence[LogLine]) -> bytes:
    return "".join(f"{line.text}\n" for line in lines).encode()


def _colour(text: str) -> str:
    match = _LEVEL.search(text, 0, _LEVEL_COLUMN)
    if not match:
        return text
    return f"{text[: match.start()]}\x1b[{_COLOURS[match[0]]}m{match[0]}\x1b[0m{text[match.end() :]}"


def _clock(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60:02d}:{rest % 60:02d}"
