"""Find the files to read below the paths of a user, or explain what to do instead."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import BinaryIO

from triage.model.evidence import Warning
from triage.sources.directory_walk import DirectoryWalk, classify_file, link_target
from triage.sources.display_names import printable_name
from triage.sources.interface import DiscoveredFiles, File, FileKind, Limits, SourceError
from triage.sources.spool import spool_stdin
from triage.sources.unsupported import ADVICE
from triage.sources.warning_limiter import WarningLimiter


def discover(paths: Sequence[str], limits: Limits = Limits(), *, stdin: BinaryIO | None = None) -> DiscoveredFiles:
    """Return the files below `paths`, each classified by its first bytes, sorted by name; `-` is standard input.

    Raises SourceError (an InputError) when a path does not exist or is a URL, or when nothing can be read.
    """
    warning_list: list[Warning] = []
    walk = DirectoryWalk(limits, WarningLimiter(warning_list.append))
    checked_paths = [_check_path(path) for path in dict.fromkeys(paths)]
    walk.roots = [os.path.realpath(path) for path in checked_paths if path != "-"]
    for path in checked_paths:
        if path == "-":
            walk.files.append(_spool_standard_input(limits, stdin, walk.warnings))
        else:
            walk.add_path(path, path)
    walk.follow_links()
    if walk.duplicates:
        count = len(walk.duplicates)
        message = f"{count:,} {'path leads' if count == 1 else 'paths lead'} to a file that is read under another name"
        walk.warnings.add("read-once", printable_name(min(walk.duplicates)), message)
    walk.warnings.close()
    files = tuple(sorted(walk.files, key=lambda file: (file.name.split("/"), file.path)))
    _raise_if_useless(checked_paths, files, walk)
    return DiscoveredFiles(files, tuple(warning_list))


def _check_path(path: str) -> str:
    """Return `path`; raise SourceError if it does not exist."""
    scheme, separator, _ = path.partition("://")
    if separator and scheme.isascii() and scheme.isalnum():
        hint = (
            "Copy it here first (for example with `aws s3 cp --recursive`, `gcloud storage cp -r` or `curl -O`) "
            "and give the local path."
        )
        raise SourceError(f"{scheme}:// addresses cannot be read directly yet", hint=hint, path=printable_name(path))
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
            message = f"the link's target cannot be reached: {link_target(path)}"
            raise SourceError(message, hint=hint, path=shown) from error
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
    return File("-", path, file.kind, file.size, None, file.encoding)


_USELESS: frozenset[FileKind] = frozenset({"binary", "elf", "empty", *ADVICE})


def _raise_if_useless(checked_paths: Sequence[str], files: Sequence[File], walk: DirectoryWalk) -> None:
    """Raise SourceError when none of the files can be diagnosed."""
    kinds = {file.kind for file in files}
    if not kinds - _USELESS:
        message, hint = _explain_useless(checked_paths, kinds, walk)
        names = ", ".join(printable_name(path) for path in checked_paths[:3])
        raise SourceError(message, hint=hint, path=names or None)


def _explain_useless(checked_paths: Sequence[str], kinds: set[FileKind], walk: DirectoryWalk) -> tuple[str, str]:
    """Return why nothing can be read, and what to do."""
    if not checked_paths:
        return "no path given", "Give a log file, a directory of logs, an archive of them, or - for standard input."
    if walk.permission_errors and not kinds - {"empty"}:
        return "permission denied", "Make the files readable (chmod -R a+rX), or run as the user who owns them."
    if kinds & set(ADVICE):
        return f"nothing can be read: {ADVICE[min(kinds & set(ADVICE))]}", "Then give the result."
    if kinds & {"binary", "elf"}:
        return "only binary files, no logs", "Give the directory that the job's stdout and stderr were written to."
    if kinds:
        return "only empty files", "Nothing was written there; look for the launcher's or the scheduler's output."
    return (
        "no files there",
        "The directory is empty (or holds no regular file); give the one that holds the job's output.",
    )
