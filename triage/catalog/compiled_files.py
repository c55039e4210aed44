"""The signatures of a directory with their literals, compiled file by file: a changed file costs only itself.

The check of one file needs all others; this makes it as fast as the file. The literals are not those of the scan, which
are chosen for the whole catalog at once (`build`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import chain, islice
from pathlib import Path

import msgspec

from triage.catalog import build, cache, literal_selection
from triage.catalog.model import Signature
from triage.catalog.signature_files import Stamp, is_signature_file, list_stamps


class _File(msgspec.Struct):
    size: int
    changed: int
    signatures: tuple[Signature, ...]


def read_compiled_files(base: Path, cache_dir: Path | None = None) -> list[Signature]:
    """The signatures of the files of `base`. Bad files are left out, and so is a second signature of the same id."""
    stamps = list(list_stamps(base))
    general = [stamp for stamp in stamps if not is_signature_file(stamp[0])]
    source = os.path.abspath(base)
    key = cache.compute_key([(source, -1, -1), *general])
    directory = cache.choose_directory(cache_dir)
    path = cache.name_file(directory, [source, "file by file"]) if directory else None
    known = (cache.read_cache(path, key, dict[str, _File]) if path else None) or {}
    files = _update(base, [stamp for stamp in stamps if stamp not in general], known)
    if path and files != known:
        cache.write_cache(path, key, files)
    by_id: dict[str, Signature] = {}
    for file in files.values():
        for signature in file.signatures:
            by_id.setdefault(signature.id, signature)
    return list(by_id.values())


def _update(base: Path, stamps: list[Stamp], known: Mapping[str, _File]) -> dict[str, _File]:
    """The files as they are now, taken from the known ones where these are the same."""
    new = {stamp[0] for stamp in stamps if stamp[0] not in known or _is_changed(known[stamp[0]], stamp)}
    read = {name: list(build.read_directory([name])[0].values()) for name in sorted(new)}
    healthy = build.read_healthy_lines(base) if new else ""
    equipped, _, _ = literal_selection.assign_literals(chain.from_iterable(read.values()), healthy)
    pending = iter(equipped)
    made = {name: tuple(islice(pending, len(signatures))) for name, signatures in read.items()}
    return {name: _File(size, changed, made[name]) if name in new else known[name] for name, size, changed in stamps}


def _is_changed(file: _File, stamp: Stamp) -> bool:
    return (file.size, file.changed) != stamp[1:]
