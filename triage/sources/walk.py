"""Walking: every regular file below a path once, whatever links lead to it, each classified by how it begins."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from triage.sources import names
from triage.sources.classify import HEAD, SNIFF, classify, is_binary, needs_more
from triage.sources.interface import File, FileKind, Limits
from triage.sources.notes import Notes

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_SPECIAL = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


class Walk:
    """What one call of `discover` has seen. Links wait in `links` until all real files are known, so that these win."""

    def __init__(self, limits: Limits, notes: Notes) -> None:
        self.limits = limits
        self.notes = notes
        self.files: list[File] = []
        self.links: list[tuple[str, str]] = []
        self.directories: set[tuple[int, int]] = set()
        self.seen: set[tuple[int, int]] = set()
        self.roots: list[str] = []
        self.twice: list[str] = []
        self.denied = 0
        self.full = False

    def entry(self, path: str, name: str) -> None:
        """Take in a path the user gave (if it is a link: where it leads), and what is below it."""
        try:
            self.real(path, name, os.stat(path))
        except OSError as error:
            self.failed(name, error)

    def real(self, path: str, name: str, status: os.stat_result) -> None:
        """Take in a path that is not a link, or whose link was followed: `status` is that of the target."""
        if stat.S_ISDIR(status.st_mode):
            self.tree(path, name, status)
        elif not stat.S_ISREG(status.st_mode):
            kind = _SPECIAL.get(stat.S_IFMT(status.st_mode), "of an unknown type")
            self.notes.add("special-file", names.printable(name), f"skipped, because it is {kind}, not a file")
        else:
            self.file(path, name, status)

    def tree(self, path: str, name: str, status: os.stat_result) -> None:
        """Walk a directory, without recursion: a deep tree must not exhaust the stack."""
        stack = [(path, name, status)]
        while stack and not self.full:
            path, name, status = stack.pop()
            if (status.st_dev, status.st_ino) in self.directories:
                self.twice.append(name)
                continue
            self.directories.add((status.st_dev, status.st_ino))
            for entry in self._entries(path, name):
                self._child(entry, name, stack)

    def _child(self, entry: os.DirEntry[str], name: str, stack: list[tuple[str, str, os.stat_result]]) -> None:
        below = os.path.join(name, entry.name) if name != "." else entry.name
        try:
            if entry.is_symlink():
                self.links.append((entry.path, below))
            elif entry.is_dir(follow_symlinks=False):
                stack.append((entry.path, below, entry.stat(follow_symlinks=False)))
            else:
                self.real(entry.path, below, entry.stat(follow_symlinks=False))
        except OSError as error:
            self.failed(below, error)

    def _entries(self, path: str, name: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(path) as entries:
                yield from sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.failed(name, error)

    def file(self, path: str, name: str, status: os.stat_result) -> None:
        """Take in a regular file, if it is a new one."""
        if self.full:
            return
        identity = (status.st_dev, status.st_ino)
        if identity in self.seen:
            self.twice.append(name)
            return
        if len(self.files) >= self.limits.max_files:
            self.full = True
            most = f"{self.limits.max_files:,}"
            self.notes.add(
                "too-many-files", None, f"only the first {most} files were taken (max_files); give a smaller directory"
            )
            return
        try:
            self.files.append(classified(path, name, status))
        except OSError as error:
            self.failed(name, error)
            return
        self.seen.add(identity)

    def follow(self) -> None:
        """Follow the links met so far, and those met on the way."""
        while self.links:
            pending, self.links = sorted(self.links, key=lambda link: link[1]), []
            for path, name in pending:
                self._link(path, name)

    def _link(self, path: str, name: str) -> None:
        try:
            status = os.stat(path)
        except OSError as error:
            if error.errno == errno.ELOOP:
                self.notes.add("link-loop", names.printable(name), "skipped, because the link leads back to itself")
            elif error.errno == errno.ENOENT:
                self.notes.add(
                    "broken-link",
                    names.printable(name),
                    f"skipped, because the link's target is missing: {target(path)}",
                )
            else:
                self.failed(name, error)
            return
        if stat.S_ISDIR(status.st_mode) and self._leads_up(path):
            self.notes.add(
                "link-loop", names.printable(name), "skipped, because the link leads to a directory above it"
            )
            return
        self.real(path, name, status)

    def _leads_up(self, path: str) -> bool:
        """Whether a link leads to what the user gave or to an ancestor of it: following it might walk the whole
        machine.
        """
        target = os.path.join(os.path.realpath(path), "")
        return any(os.path.join(root, "").startswith(target) for root in self.roots)

    def failed(self, name: str, error: OSError) -> None:
        """Note a path that cannot be read."""
        self.denied += error.errno in (errno.EACCES, errno.EPERM)
        self.notes.add("unreadable", names.printable(name), f"skipped, because it cannot be read: {error.strerror}")


def classified(path: str, name: str, status: os.stat_result) -> File:
    """The file, opened just long enough to read how it begins."""
    if not status.st_size and status.st_blocks == 0 and not path.startswith("/proc/"):
        return File(names.printable(name), path, "empty", 0, status.st_mtime)
    fd = os.open(path, _FLAGS)
    try:
        head = os.pread(fd, SNIFF, 0)
        if len(head) == SNIFF and needs_more(head):
            head = os.pread(fd, HEAD, 0)
        kind, encoding = classify(head)
        if kind == "binary" and not head.strip(b"\0"):
            kind, encoding = _behind_a_hole(fd, status.st_size)
    finally:
        os.close(fd)
    return File(names.printable(name), path, kind, status.st_size, status.st_mtime, encoding)


def _behind_a_hole(fd: int, size: int) -> tuple[FileKind, str | None]:
    """A log that was truncated while its writer went on begins with NULs (copytruncate): then its end is text."""
    tail = os.pread(fd, SNIFF, max(0, size - SNIFF))
    text = tail.strip(b"\0")
    return ("text", "utf-8") if b"\n" in text and not is_binary(text) else ("binary", None)


def target(path: str) -> str:
    try:
        return names.printable(os.readlink(path))
    except OSError:
        return "?"
