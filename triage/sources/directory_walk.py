"""Walk directories: each regular file once, whatever links lead to it, classified by its first bytes."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from triage.sources.classify import HEAD, SNIFF, classify, is_binary, needs_more
from triage.sources.display_names import printable_name
from triage.sources.interface import File, FileKind, Limits
from triage.sources.warning_limiter import WarningLimiter

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_SPECIAL = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


class DirectoryWalk:
    """The state of one call of `discover`. Links wait in `links`, so that the files themselves come first."""

    def __init__(self, limits: Limits, warnings: WarningLimiter) -> None:
        self.limits = limits
        self.warnings = warnings
        self.files: list[File] = []
        self.links: list[tuple[str, str]] = []
        self.directories: set[tuple[int, int]] = set()
        self.files_walked: set[tuple[int, int]] = set()
        self.roots: list[str] = []
        self.duplicates: list[str] = []
        self.permission_errors = 0
        self.is_full = False

    def add_path(self, path: str, name: str) -> None:
        """Add a path of the user (if it is a link: its target) and everything below it."""
        try:
            self.add_resolved(path, name, os.stat(path))
        except OSError as error:
            self.warn_unreadable(name, error)

    def add_resolved(self, path: str, name: str, status: os.stat_result) -> None:
        """Add a path that is not a link, or a followed link: `status` is that of the target."""
        if stat.S_ISDIR(status.st_mode):
            self.walk_tree(path, name, status)
        elif not stat.S_ISREG(status.st_mode):
            kind = _SPECIAL.get(stat.S_IFMT(status.st_mode), "of an unknown type")
            self.warnings.add("special-file", printable_name(name), f"skipped, because it is {kind}, not a file")
        else:
            self.add_file(path, name, status)

    def walk_tree(self, path: str, name: str, status: os.stat_result) -> None:
        """Walk a directory without recursion: a deep tree must not exhaust the stack."""
        stack = [(path, name, status)]
        while stack and not self.is_full:
            path, name, status = stack.pop()
            if (status.st_dev, status.st_ino) in self.directories:
                self.duplicates.append(name)
                continue
            self.directories.add((status.st_dev, status.st_ino))
            for entry in self._list_entries(path, name):
                self._add_child(entry, name, stack)

    def _add_child(self, entry: os.DirEntry[str], name: str, stack: list[tuple[str, str, os.stat_result]]) -> None:
        child_name = os.path.join(name, entry.name) if name != "." else entry.name
        try:
            if entry.is_symlink():
                self.links.append((entry.path, child_name))
            elif entry.is_dir(follow_symlinks=False):
                stack.append((entry.path, child_name, entry.stat(follow_symlinks=False)))
            else:
                self.add_resolved(entry.path, child_name, entry.stat(follow_symlinks=False))
        except OSError as error:
            self.warn_unreadable(child_name, error)

    def _list_entries(self, path: str, name: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(path) as entries:
                yield from sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.warn_unreadable(name, error)

    def add_file(self, path: str, name: str, status: os.stat_result) -> None:
        """Add a regular file, if it is a new one."""
        if self.is_full:
            return
        identity = (status.st_dev, status.st_ino)
        if identity in self.files_walked:
            self.duplicates.append(name)
            return
        if len(self.files) >= self.limits.max_files:
            self.is_full = True
            most = f"{self.limits.max_files:,}"
            self.warnings.add(
                "too-many-files", None, f"only the first {most} files were taken (max_files); give a smaller directory"
            )
            return
        try:
            self.files.append(classify_file(path, name, status))
        except OSError as error:
            self.warn_unreadable(name, error)
            return
        self.files_walked.add(identity)

    def follow_links(self) -> None:
        """Follow the links found so far, and those found on the way."""
        while self.links:
            pending, self.links = sorted(self.links, key=lambda link: link[1]), []
            for path, name in pending:
                self._follow_link(path, name)

    def _follow_link(self, path: str, name: str) -> None:
        try:
            status = os.stat(path)
        except OSError as error:
            if error.errno == errno.ELOOP:
                self.warnings.add("link-loop", printable_name(name), "skipped, because the link leads back to itself")
            elif error.errno == errno.ENOENT:
                self.warnings.add(
                    "broken-link",
                    printable_name(name),
                    f"skipped, because the link's target is missing: {link_target(path)}",
                )
            else:
                self.warn_unreadable(name, error)
            return
        if stat.S_ISDIR(status.st_mode) and self._links_to_parent(path):
            self.warnings.add(
                "link-loop", printable_name(name), "skipped, because the link leads to a directory above it"
            )
            return
        self.add_resolved(path, name, status)

    def _links_to_parent(self, path: str) -> bool:
        """Whether a link leads to a path of the user or above it: following it might walk the whole machine."""
        target = os.path.join(os.path.realpath(path), "")
        return any(os.path.join(root, "").startswith(target) for root in self.roots)

    def warn_unreadable(self, name: str, error: OSError) -> None:
        """Warn about a path that cannot be read."""
        self.permission_errors += error.errno in (errno.EACCES, errno.EPERM)
        self.warnings.add("unreadable", printable_name(name), f"skipped, because it cannot be read: {error.strerror}")


def classify_file(path: str, name: str, status: os.stat_result) -> File:
    """Return the file, opened just long enough to read its first bytes."""
    if not status.st_size and status.st_blocks == 0 and not path.startswith("/proc/"):
        return File(printable_name(name), path, "empty", 0, status.st_mtime)
    fd = os.open(path, _FLAGS)
    try:
        head = os.pread(fd, SNIFF, 0)
        if len(head) == SNIFF and needs_more(head):
            head = os.pread(fd, HEAD, 0)
        kind, encoding = classify(head)
        if kind == "binary" and not head.strip(b"\0"):
            kind, encoding = _classify_tail(fd, status.st_size)
    finally:
        os.close(fd)
    return File(printable_name(name), path, kind, status.st_size, status.st_mtime, encoding)


def _classify_tail(fd: int, size: int) -> tuple[FileKind, str | None]:
    """Classify by its end a log that begins with NULs: it was truncated while its writer went on (copytruncate)."""
    tail = os.pread(fd, SNIFF, max(0, size - SNIFF))
    text = tail.strip(b"\0")
    return ("text", "utf-8") if b"\n" in text and not is_binary(text) else ("binary", None)


def link_target(path: str) -> str:
    """Return a link's target for display."""
    try:
        return printable_name(os.readlink(path))
    except OSError:
        return "?"
