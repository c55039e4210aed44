"""From the paths a user gives to the files to read, or to an error that says what to do instead."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import BinaryIO

from triage.model import evidence as evidence_model
from triage.sources import names
from triage.sources.interface import File, FileKind, Found, Limits, SourceError
from triage.sources.notes import Notes
from triage.sources.spool import spooled
from triage.sources.unsupported import ADVICE
from triage.sources.walk import Walk, classified, target


def discover(paths: Sequence[str], limits: Limits = Limits(), *, stdin: BinaryIO | None = None) -> Found:
    """The files below `paths`, each classified by its first bytes, sorted by name; `-` is standard input.

    Raises SourceError (an InputError) when a path does not exist, is a URL, or when nothing of it all can be read.
    """
    warnings: list[evidence_model.Warning] = []
    walk = Walk(limits, Notes(warnings.append))
    given = [_checked(path) for path in dict.fromkeys(paths)]
    walk.roots = [os.path.realpath(path) for path in given if path != "-"]
    for path in given:
        if path == "-":
            walk.files.append(_standard_input(limits, stdin, walk.notes))
        else:
            walk.entry(path, path)
    walk.follow()
    if walk.twice:
        message = f"{len(walk.twice):,} names lead to what is read under another name already; read once"
        walk.notes.add("read-once", names.printable(min(walk.twice)), message)
    walk.notes.close()
    files = tuple(sorted(walk.files, key=lambda file: (file.name.split("/"), file.path)))
    _refuse_if_useless(given, files, walk)
    return Found(files, tuple(warnings))


def _checked(path: str) -> str:
    """`path`, when it is one that exists."""
    scheme, mark, _ = path.partition("://")
    if mark and scheme.isascii() and scheme.isalnum():
        hint = "Copy it here first (for example with `aws s3 cp --recursive`, `gcloud storage cp -r` or `curl -O`) and give the local path."
        raise SourceError(f"{scheme}:// addresses cannot be read directly yet", hint=hint, path=names.printable(path))
    if path == "-":
        return path
    try:
        os.stat(path)
    except (OSError, ValueError) as error:
        shown = names.printable(path)
        if isinstance(error, PermissionError):
            hint = "Make the directories above it readable (chmod +x), or run as a user who may."
            raise SourceError("permission denied", hint=hint, path=shown) from error
        if isinstance(error, OSError) and os.path.islink(path):
            hint = "Give a path that exists; the link may belong to another machine."
            raise SourceError(f"the link's target cannot be reached: {target(path)}", hint=hint, path=shown) from error
        raise SourceError("no such file or directory", hint=_near(path), path=shown) from error
    return path


def _near(path: str) -> str:
    """What may have been meant by a path that does not exist."""
    parent, last = os.path.split(path.rstrip("/"))
    try:
        from difflib import get_close_matches

        close = get_close_matches(last, sorted(os.listdir(parent or "."))[:10_000], n=1)
    except (OSError, ValueError):
        return f"Check the path: {names.printable(parent)} is not a directory that can be read."
    if close:
        return f"Did you mean {names.printable(os.path.join(parent, close[0]))}?"
    return "Check the path; give a log file, a directory of logs, an archive of them, or - for standard input."


def _standard_input(limits: Limits, stdin: BinaryIO | None, notes: Notes) -> File:
    path = spooled(stdin, limits, notes)
    file = classified(path, "-", os.stat(path))
    return File("-", path, file.kind, file.size, None, file.encoding)


_USELESS: frozenset[FileKind] = frozenset({"binary", "elf", "empty", *ADVICE})


def _refuse_if_useless(given: Sequence[str], files: Sequence[File], walk: Walk) -> None:
    """Raise when nothing can come of the files found."""
    kinds = {file.kind for file in files}
    if not kinds - _USELESS:
        message, hint = _why_useless(given, kinds, walk)
        raise SourceError(message, hint=hint, path=", ".join(names.printable(path) for path in given[:3]) or None)


def _why_useless(given: Sequence[str], kinds: set[FileKind], walk: Walk) -> tuple[str, str]:
    """Which of the possible reasons it is, and what to do."""
    if not given:
        return "no path given", "Give a log file, a directory of logs, an archive of them, or - for standard input."
    if walk.denied and not kinds - {"empty"}:
        return "permission denied", "Make the files readable (chmod -R a+rX), or run as the user who owns them."
    if kinds & set(ADVICE):
        return f"nothing that can be read: {ADVICE[min(kinds & set(ADVICE))]}", "Then give the result instead."
    if kinds & {"binary", "elf"}:
        return "only binary files, no logs", "Give the directory that the job's stdout and stderr were written to."
    if kinds:
        return "only empty files", "Nothing was written there; look for the launcher's or the scheduler's output."
    return (
        "no files there",
        "The directory is empty (or holds no regular file); give the one that holds the job's output.",
    )
