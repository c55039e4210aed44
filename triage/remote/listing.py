"""List the objects below an address, page by page or directory by directory."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from triage.base.addresses import displayed_address
from triage.remote.filesystems import FileSystemPlace
from triage.remote.interface import AddressError, RemoteObject
from triage.remote.transfer import Transfer

_PAGE = 1000
_VERSION_KEYS = ("ETag", "etag", "generation", "content_settings.etag")
_TIME_KEYS = ("LastModified", "last_modified", "updated", "mtime", "modificationTime", "Last-Modified")


class Entry(NamedTuple):
    """One entry of a listing: its name in the file system, and what the service says of it."""

    name: str
    facts: Mapping[str, Any]

    @property
    def is_directory(self) -> bool:
        """Whether other entries are below it."""
        return self.facts.get("type") == "directory"


def list_objects(root: str, place: FileSystemPlace, transfer: Transfer) -> Iterator[RemoteObject]:
    """Yield the objects below the address `root`, or the one object that it names.

    Raises AddressError when nothing is there or the listing fails.
    """
    try:
        yield from (_object(root, place, entry) for entry in _entries(root, place, transfer))
    except OSError as error:
        raise _listing_error(root, error) from error


def list_children(root: str, place: FileSystemPlace, transfer: Transfer) -> list[str]:
    """Return the addresses of the directories and objects directly below `root`, sorted. Raises AddressError."""
    base = place.name.rstrip("/")
    try:
        rows = transfer.call(lambda: place.fs.ls(base, detail=True))
    except OSError as error:
        raise _listing_error(root, error) from error
    names = {str(row["name"]).rstrip("/") + ("/" if row.get("type") == "directory" else "") for row in rows}
    return sorted(_address(root, base, name) for name in names if name.rstrip("/") != base)


def _entries(root: str, place: FileSystemPlace, transfer: Transfer) -> Iterator[Entry]:
    fs, name = place
    entry = _single_object(root, place, transfer)
    if entry is not None:
        yield entry
        return
    base = name.rstrip("/")
    listed = _pages(fs, base, transfer) if hasattr(fs, "call_s3") else _walk(fs, base, transfer)
    is_empty = True
    for entry in listed:
        is_empty = False
        yield entry
    if is_empty:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _single_object(root: str, place: FileSystemPlace, transfer: Transfer) -> Entry | None:
    """Return the object that has this very name; None if it names what is above objects."""
    if root.endswith("/"):
        return None
    if not hasattr(place.fs, "call_s3"):
        facts = transfer.call(lambda: place.fs.info(place.name))
        return None if facts.get("type") == "directory" else Entry(place.name, facts)
    bucket, _, key = place.name.partition("/")
    try:
        head = transfer.call(lambda: place.fs.call_s3("head_object", Bucket=bucket, Key=key)) if key else None
    except FileNotFoundError:  # a prefix is only what names begin with
        return None
    return Entry(place.name, {**head, "size": head["ContentLength"]}) if head is not None else None


def _pages(fs: Any, base: str, transfer: Transfer) -> Iterator[Entry]:
    """Yield all objects below a prefix of S3, whatever directories they are in, a thousand for each request."""
    bucket, _, prefix = base.partition("/")
    options: dict[str, Any] = {"Bucket": bucket, "Prefix": f"{prefix}/" if prefix else "", "MaxKeys": _PAGE}
    while True:
        page = transfer.call(lambda: fs.call_s3("list_objects_v2", **options))
        for facts in page.get("Contents", ()):
            if not facts["Key"].endswith("/"):  # what consoles create as a folder
                yield Entry(f"{bucket}/{facts['Key']}", {**facts, "size": facts["Size"]})
        if not page.get("IsTruncated"):
            return
        options["ContinuationToken"] = page["NextContinuationToken"]


def _walk(fs: Any, base: str, transfer: Transfer) -> Iterator[Entry]:
    """Yield all files below a directory, one directory for each request."""
    pending, listed = [base], set[str]()
    while pending:
        directory = pending.pop()
        listed.add(directory)
        rows = transfer.call(lambda: fs.ls(directory, detail=True))  # noqa: B023 - called at once
        for row in sorted(rows, key=lambda row: str(row["name"])):
            entry = Entry(str(row["name"]), row)
            below = entry.name.rstrip("/")
            if not below.startswith(base + "/") or below == directory:
                continue
            if entry.is_directory or entry.name.endswith("/"):
                pending.extend({below} - listed)
            elif row.get("size") is None:
                yield Entry(entry.name, transfer.call(lambda: fs.info(entry.name)))  # noqa: B023
            else:
                yield entry


def _object(root: str, place: FileSystemPlace, entry: Entry) -> RemoteObject:
    facts, size = entry.facts, entry.facts.get("size")
    mtime = _seconds(next((facts[key] for key in _TIME_KEYS if facts.get(key)), None))
    tag = next((str(facts[key]) for key in _VERSION_KEYS if facts.get(key)), "")
    return RemoteObject(
        address=_address(root, place.name.rstrip("/"), entry.name),
        root=root,
        place=entry.name,
        size=int(size) if size is not None else -1,
        version=f"{size} {tag or mtime}",
        mtime=mtime,
        has_ranges=size is not None and facts.get("partial", True) is not False,
    )


def _address(root: str, base: str, name: str) -> str:
    if name == base:
        return root
    if name.startswith(base + "/"):
        return root.rstrip("/") + name[len(base) :]
    return root.rstrip("/") + "/" + name.lstrip("/")


def _seconds(value: Any) -> float | None:
    """Return a time that a service states in any of its forms, as seconds since 1970."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value) if value[:4].isdigit() else parsedate_to_datetime(value)
        return value.timestamp() if isinstance(value, datetime) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


_HINTS = {
    errno.ENOENT: "Check the address, and the region and endpoint of the service.",
    errno.EACCES: "Give triage credentials that may list and read there; docs/remote.md names the places.",
}


def _listing_error(root: str, error: OSError) -> AddressError:
    hint = _HINTS.get(
        error.errno or 0, "Try again; if it fails again, look at the network and the state of the service."
    )
    return AddressError(
        f"the address cannot be listed: {error.strerror or error}", hint=hint, path=displayed_address(root)
    )
