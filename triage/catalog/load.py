"""The catalog of this run: the shipped signatures, with the user's directories laid over them.

From the cache that takes a few milliseconds and imports neither YAML, pydantic nor RE2; otherwise the files are
compiled
and the cache is written for the next time.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

from triage.base.errors import CatalogError
from triage.catalog import cache
from triage.catalog.files import ABOUT, shipped_directory, stamps
from triage.catalog.model import Catalog
from triage.catalog.problems import SKIPPED
from triage.catalog.setting import configured
from triage.model.evidence import Warning as Note


def load(
    directories: Sequence[Path] = (), cache_dir: Path | None = None, *, strict: bool = True, shipped: Path | None = None
) -> Catalog:
    """The shipped signatures, then each directory over them: a signature with the same id takes the place of the
    earlier one.

    Directories of the configuration file and of TRIAGE_CATALOG come before those given, see `setting`.

    Args:
        directories: of YAML files, searched downwards; a path may also be a single file. One with a catalog.yaml, such
        as the signatures
            of another version, is a whole catalog and takes the place of all before it.
        cache_dir: where the compiled catalog is kept; see `cache.directory` for the default.
        strict: raise CatalogError, listing everything, when a file cannot be used. Otherwise the file is skipped and
            `Catalog.warnings` says so with the code `catalog-skipped`.
        shipped: stands in for the shipped directory.
    """
    base = shipped or shipped_directory()
    roots = [*([base] if base else []), *map(Path, directories if shipped else (*configured(), *directories))]
    while whole := next((root for root in roots[1:] if (root / ABOUT).is_file()), None):
        base, roots = whole, roots[roots.index(whole) :]
    found = [list(stamps(root)) for root in roots]
    sources = [os.path.abspath(root) for root in roots]
    key = cache.key([(source, -1, -1) for source in sources] + [stamp for stamps in found for stamp in stamps])
    where = cache.directory(cache_dir)
    kept = cache.file(where, sources) if where else None
    catalog = cache.read(kept, key) if kept else None
    if catalog is None:
        from triage.catalog import build

        catalog = build.build(
            [(root, [path for path, _, _ in stamps]) for root, stamps in zip(roots, found, strict=True)], base
        )
        if kept:
            cache.write(kept, key, catalog)
    missing = [
        Note(SKIPPED, str(root), "cannot be read, or is not there") for root in roots if not os.access(root, os.R_OK)
    ]
    missing += [] if base else [Note(SKIPPED, None, "the shipped signatures are not there; install triage again")]
    return _judged(catalog, tuple(missing), strict)


def _judged(catalog: Catalog, missing: tuple[Note, ...], strict: bool) -> Catalog:
    skipped = [note for note in (*missing, *catalog.warnings) if note.code == SKIPPED]
    if strict and skipped:
        lines = "\n".join(note.message if note.source is None else f"{note.source}: {note.message}" for note in skipped)
        hint = "mend these places, or run `triage catalog check` for the whole list"
        raise CatalogError(f"{len(skipped)} problem(s) in signature files:\n{lines}", hint=hint)
    if not missing:
        return catalog
    return dataclasses.replace(catalog, warnings=(*missing, *catalog.warnings))
