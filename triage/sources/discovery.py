"""Find the files to read below the paths of a user, or explain what to do instead.

Each regular file is read once, whatever links lead to it, and classified by its first bytes. Standard input becomes a
file that this process and its workers can read at any offset.
"""

from __future__ import annotations

import atexit
import errno
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from triage.base.addresses import displayed_address, is_address, scheme_of
from triage.model.evidence import Warning
from triage.sources.bytestream import has_large_hole
from triage.sources.classify import HEAD, SNIFF, classify, classify_padded, needs_more
from triage.sources.expand import ADVICE
from triage.sources.interface import (
    DiscoveredFiles,
    File,
    FileKind,
    Limits,
    SourceError,
    WarningLimiter,
    printable_name,
)

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_SPECIAL = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


class DirectoryWalk:
    """The state of one call of `discover`. Links wait in `links`, so that the files themselves come first."""

    def __init__(self, limits: Limits, warnings: WarningLimiter, changed_since: float = 0.0) -> None:
        self.limits = limits
        self.warnings = warnings
        self.changed_since = changed_since
        self.unchanged: list[str] = []
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
        if status.st_mtime < self.changed_since:
            self.unchanged.append(name)
            return
        identity = (status.st_dev, status.st_ino)
        if identity in self.files_walked:
            self.duplicates.append(name)
            return
        if len(self.files) >= self.limits.max_files:
            self.warn_full()
            return
        try:
            self.files.append(classify_file(path, name, status))
        except OSError as error:
            self.warn_unreadable(name, error)
            return
        self.files_walked.add(identity)

    def add_objects(self, address: str) -> None:
        """Add the objects below an address. Raises AddressError when they cannot be listed."""
        from triage.sources.remote_files import list_files  # few jobs are at an address

        for file, error in list_files(
            address, self.limits.max_files - len(self.files), {one.name for one in self.files}
        ):
            if error is not None:
                self.warn_unreadable(file.name, error)
            else:
                self.files.append(file)
        if len(self.files) >= self.limits.max_files:
            self.warn_full()

    def warn_full(self) -> None:
        """Warn that there are more files than are taken."""
        self.is_full = True
        most = f"{self.limits.max_files:,}"
        self.warnings.add(
            "too-many-files", None, f"only the first {most} files were taken (max_files); give a smaller directory"
        )

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
        self.warnings.add(
            "unreadable", printable_name(name), f"skipped, because it cannot be read: {error.strerror or error}"
        )


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
            kind, encoding = classify_padded(os.pread(fd, SNIFF, max(0, status.st_size - SNIFF)))
        is_sparse = kind == "text" and has_large_hole(fd, status)
    finally:
        os.close(fd)
    return File(printable_name(name), path, kind, status.st_size, status.st_mtime, encoding, is_sparse)


def link_target(path: str) -> str:
    """Return a link's target for display."""
    try:
        return printable_name(os.readlink(path))
    except OSError:
        return "?"


def discover(
    paths: Sequence[str],
    limits: Limits = Limits(),
    *,
    stdin: BinaryIO | None = None,
    allow_addresses: bool = False,
    changed_since: float = 0.0,
) -> DiscoveredFiles:
    """Return the files below `paths`, each classified by its first bytes, sorted by name; `-` is standard input.

    `allow_addresses`: a path may be an address of an object store or a server. Local files that did not change since
    `changed_since` (seconds since the epoch) are left out, with a warning. Raises InputError when a path does not exist
    or may not be read, or when nothing can be read.
    """
    warning_list: list[Warning] = []
    walk = DirectoryWalk(limits, WarningLimiter(warning_list.append), changed_since)
    checked_paths = [_check_path(path, allow_addresses) for path in dict.fromkeys(paths)]
    walk.roots = [os.path.realpath(path) for path in checked_paths if path != "-" and not is_address(path)]
    for path in checked_paths:
        if path == "-":
            walk.files.append(_spool_standard_input(limits, stdin, walk.warnings))
        elif is_address(path):
            walk.add_objects(path)
        else:
            walk.add_path(path, path)
    walk.follow_links()
    if walk.duplicates:
        count = len(walk.duplicates)
        message = f"{count:,} {'path leads' if count == 1 else 'paths lead'} to a file that is read under another name"
        walk.warnings.add("read-once", printable_name(min(walk.duplicates)), message)
    if walk.unchanged:
        count = len(walk.unchanged)
        message = f"{count:,} {'file was' if count == 1 else 'files were'} not read: unchanged since the job started"
        walk.warnings.add("unchanged", printable_name(min(walk.unchanged)), message)
    walk.warnings.close()
    files = tuple(sorted(walk.files, key=lambda file: (file.name.split("/"), file.path)))
    _raise_if_useless(checked_paths, files, walk)
    return DiscoveredFiles(files, tuple(warning_list))


def _check_path(path: str, allow_addresses: bool = False) -> str:
    """Return `path`; raise SourceError if it does not exist, or is an address that is not read here."""
    if scheme := scheme_of(path):
        if allow_addresses and is_address(path):
            return path
        hint = (
            "Copy it here first (for example with `aws s3 cp --recursive`, `gcloud storage cp -r` or `curl -O`) "
            "and give the local path."
        )
        where = "here" if is_address(path) else "by triage"
        raise SourceError(
            f"{scheme}:// addresses cannot be read {where}", hint=hint, path=printable_name(displayed_address(path))
        )
    if path == "-":
        return path
    try:
        os.stat(path)
    except (OSError, ValueError) as error:
        shown = printable_name(path)
        if isinstance(error, PermissionError):
            hint = "Make the directories above it readable (chmod +x), or run as a user who may."
            raise SourceError("permission denied", hint=hint, path=shown) from error
        if isinstance(error, OSError) and os.path.islink(path):
            hint = "Give a path that exists; the link may belong to another machine."
            raise SourceError(
                f"the link's target cannot be reached: {link_target(path)}", hint=hint, path=shown
            ) from error
        raise SourceError("no such file or directory", hint=_suggest_path(path), path=shown) from error
    return path


def _suggest_path(path: str) -> str:
    """Return a hint for a path that does not exist."""
    parent, last = os.path.split(path.rstrip("/"))
    try:
        from difflib import get_close_matches

        close = get_close_matches(last, sorted(os.listdir(parent or "."))[:10_000], n=1)
    except (OSError, ValueError):
        return f"Check the path: {printable_name(parent)} is not a directory that can be read."
    if close:
        return f"Did you mean {printable_name(os.path.join(parent, close[0]))}?"
    return "Check the path; give a log file, a directory of logs, an archive of them, or - for standard input."


def _spool_standard_input(limits: Limits, stdin: BinaryIO | None, warnings: WarningLimiter) -> File:
    path = spool_stdin(stdin, limits, warnings)
    file = classify_file(path, "-", os.stat(path))
    return File("-", path, file.kind, file.size, None, file.encoding, file.is_sparse)


_UNSUPPORTED: frozenset[FileKind] = frozenset(ADVICE)


def _raise_if_useless(checked_paths: Sequence[str], files: Sequence[File], walk: DirectoryWalk) -> None:
    """Raise SourceError when there is no file, or only archives that cannot be opened.

    Files without a text are a job of which nothing is known, not a mistake of the user.
    """
    kinds = {file.kind for file in files}
    if not kinds - _UNSUPPORTED and not walk.permission_errors:
        message, hint = _explain_useless(checked_paths, kinds, walk)
        raise SourceError(
            message,
            hint=hint,
            path=", ".join(printable_name(displayed_address(path)) for path in checked_paths[:3]) or None,
        )


def _explain_useless(checked_paths: Sequence[str], kinds: set[FileKind], walk: DirectoryWalk) -> tuple[str, str]:
    """Return why nothing can be read, and what to do."""
    if not checked_paths:
        return "no path given", "Give a log file, a directory of logs, an archive of them, or - for standard input."
    if kinds & set(ADVICE):
        return f"nothing can be read: {ADVICE[min(kinds & set(ADVICE))]}", "Then give the result."
    return (
        "no files there",
        "The directory is empty (or holds no regular file); give the one that holds the job's output.",
    )


def spool_stdin(stdin: BinaryIO | None, limits: Limits, warnings: WarningLimiter) -> str:
    """Return a path from which standard input can be read from its beginning while this process lives.

    A file redirected to standard input is used where it is; a pipe is copied to a temporary file without a name.
    """
    source = stdin if stdin is not None else sys.stdin.buffer
    return _redirected_file(source) or _copy_to_temporary_file(source, limits, warnings)


def _redirected_file(source: BinaryIO) -> str | None:
    try:
        fd = source.fileno()
        if not stat.S_ISREG(os.fstat(fd).st_mode) or os.lseek(fd, 0, os.SEEK_CUR) != 0:
            return None
        path = _descriptor_path(fd)
        os.close(os.open(path, os.O_RDONLY))
    except (OSError, ValueError, AttributeError):
        return None
    return path


def _copy_to_temporary_file(source: BinaryIO, limits: Limits, warnings: WarningLimiter) -> str:
    import tempfile  # not needed by most runs, and slow to import

    spool: BinaryIO = tempfile.TemporaryFile(prefix="triage-", buffering=0)  # noqa: SIM115
    atexit.register(spool.close)  # a file without a name exists as long as it is open
    remaining = limits.max_member_bytes
    try:
        while remaining > 0 and (piece := source.read(min(1 << 20, remaining))):
            spool.write(piece)
            remaining -= len(piece)
    except OSError as error:
        where = tempfile.gettempdir()
        hint = f"Free some space in {where}, set TMPDIR to a larger directory, or save the log to a file and give that."
        raise SourceError(f"standard input cannot be stored: {error.strerror}", hint=hint, path="-") from error
    if remaining <= 0:
        warnings.add("too-large", "-", f"only the first {limits.max_member_bytes:,} bytes were read (max_member_bytes)")
    return _descriptor_path(spool.fileno())


def _descriptor_path(fd: int) -> str:
    """Return a path by which other processes of this user can open the descriptor, where the system has one."""
    own = f"/proc/{os.getpid()}/fd/{fd}"
    return own if os.path.exists(own) else f"/dev/fd/{fd}"
