"""Hostile directories: what is not a file, links, depth, very many files, and names."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from tests.hostile.archives import QUIET
from tests.hostile.model import HostileCase, Job


def write_special_files(job: Job) -> None:
    """A FIFO that nobody writes to, a socket, and a link to a device without an end."""
    os.mkfifo(job.path / "rank1.log")
    with socket.socket(socket.AF_UNIX) as listener, suppress(OSError):  # a long path cannot be bound
        here = os.open(job.path, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{here}/rank2.log")
        os.close(here)
    (job.path / "rank3.log").symlink_to("/dev/zero")


def write_link_loops(job: Job) -> None:
    """Links to themselves, to each other, to the directory above and to nothing."""
    for name, target in (("a", "a"), ("b", "c"), ("c", "b"), ("up", ".."), ("root", "/"), ("gone", "/nonexistent")):
        (job.path / name).symlink_to(target)


def write_deep_directories(job: Job) -> None:
    """Directories within directories, more than a path may be long."""
    here = os.open(job.path, os.O_RDONLY)
    for _ in range(job.size(300, 5_000)):
        os.mkdir("d" * 20, dir_fd=here)
        below = os.open("d" * 20, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("rank9.log", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)


def write_many_files(job: Job) -> None:
    """Very many small files."""
    for number in range(job.size(2_000, 100_000)):
        job.write(f"{number % 100}/rank{number}.log", QUIET)


def write_strange_names(job: Job) -> None:
    """Names with line feeds, escapes, bytes that are no text, options and very long ones."""
    names = (
        b"a\nroot cause: none.log",
        b"\x1b[2J.log",
        b"\xff\xfe.log",
        b"--fail-on=any",
        b"n" * 255,
        b"$(touch x).log",
    )
    for name in (*names, "\u202egol.txt".encode(), b"<script>.log", b"' OR 1=1.log"):
        (Path(os.fsdecode(os.fsencode(job.path) + b"/" + name))).write_bytes(QUIET)


def write_misnamed_files(job: Job) -> None:
    """Names that promise another kind than the content is."""
    for name in ("rank1.log.gz", "rank1.log.zst", "logs.tar", "logs.zip", "core.1", "fr_rank_0", "error.json"):
        job.write(name, QUIET)


def remove_directories(path: Path) -> None:
    """Remove a tree that is deeper than a path may be long: its directories are moved up one by one."""
    here = os.open(path, os.O_RDONLY)
    with suppress(FileNotFoundError, NotADirectoryError):
        while True:
            os.rename("d" * 20, "old", src_dir_fd=here, dst_dir_fd=here)
            old = os.open("old", os.O_RDONLY, dir_fd=here)
            with suppress(FileNotFoundError):
                os.unlink("rank9.log", dir_fd=old)
            with suppress(FileNotFoundError):
                os.rename("d" * 20, "d" * 20, src_dir_fd=old, dst_dir_fd=here)
            os.close(old)
            os.rmdir("old", dir_fd=here)
    os.close(here)


CASES = (
    HostileCase("files: FIFO, socket, device", write_special_files, r"special-file: .*a (FIFO|device)"),
    HostileCase("files: links in rings", write_link_loops, r"link-loop: "),
    HostileCase("files: deep directories", write_deep_directories, r"unreadable|artifact-not-read"),
    HostileCase("files: very many", write_many_files, "", "all are read", seconds=900, memory=1500),
    HostileCase("files: strange names", write_strange_names, "", "all are read, and names are shown escaped"),
    HostileCase("files: names of other kinds", write_misnamed_files, "", "the content decides, never the name"),
)
