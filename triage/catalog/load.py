"""Load the catalog of a run: the shipped signatures, overridden by the user's directories.

From the cache this takes a few milliseconds and imports neither YAML, pydantic nor RE2. Otherwise the files are
compiled and the cache is written for the next run.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from triage.base.errors import CatalogError
from triage.catalog import cache, stored_catalog
from triage.catalog.configured_catalogs import list_configured_catalogs
from triage.catalog.model import Catalog
from triage.catalog.problems import SKIPPED
from triage.catalog.signature_files import ABOUT, find_shipped_directory, list_stamps
from triage.model.evidence import Warning as Note


def load(
    directories: Sequence[Path] = (),
    cache_dir: Path | None = None,
    *,
    strict: bool = True,
    shipped: Path | None = None,
    with_samples: bool = True,
) -> Catalog:
    """Load the shipped signatures, then each directory over them: a later signature replaces one with the same id.

    Args:
        directories: directories of YAML files, or single files, loaded after those that are configured (see
            `configured_catalogs`). A directory with a catalog.yaml is a whole catalog and replaces all before it.
        cache_dir: directory of the compiled catalog; see `cache.choose_directory` for the default.
        strict: raise CatalogError, listing everything, when a file cannot be used. Otherwise the file is skipped and
            `Catalog.warnings` says so with the code `catalog-skipped`.
        shipped: used instead of the shipped directory.
        with_samples: without the samples, which no diagnosis needs, the cache is read in half of the time.
    """
    own = directories if shipped else (*list_configured_catalogs(), *directories)
    base = shipped or find_shipped_directory()
    roots = [*([base] if base else []), *map(Path, own)]
    while whole := next((root for root in roots[1:] if (root / ABOUT).is_file()), None):
        base, roots = whole, roots[roots.index(whole) :]
    catalog = _read_or_build(roots, base, cache_dir, with_samples)
    unreadable = (root for root in roots if not os.access(root, os.R_OK))
    missing = [Note(SKIPPED, str(root), "does not exist or cannot be read") for root in unreadable]
    missing += [] if base else [Note(SKIPPED, None, "the shipped signatures are missing; install triage again")]
    return _report_skipped(catalog, tuple(missing), strict)


def _read_or_build(roots: Sequence[Path], base: Path | None, cache_dir: Path | None, with_samples: bool) -> Catalog:
    stamps = [list(list_stamps(root)) for root in roots]
    sources = [os.path.abspath(root) for root in roots]
    key = cache.compute_key([*((source, -1, -1) for source in sources), *chain.from_iterable(stamps)])
    directory = cache.choose_directory(cache_dir)
    catalog = stored_catalog.read_catalog(directory, sources, key, with_samples=with_samples) if directory else None
    if catalog is None:
        from triage.catalog import build

        paths = [[path for path, _, _ in of_root] for of_root in stamps]
        catalog = build.build_catalog(list(zip(roots, paths, strict=True)), base)
        if directory:
            stored_catalog.write_catalog(directory, sources, key, catalog)
    return catalog


def _report_skipped(catalog: Catalog, missing: tuple[Note, ...], strict: bool) -> Catalog:
    skipped = [note for note in (*missing, *catalog.warnings) if note.code == SKIPPED]
    if strict and skipped:
        lines = "\n".join(note.message if note.source is None else f"{note.source}: {note.message}" for note in skipped)
        hint = "fix the reported lines, or run `triage catalog check` for the whole list"
        raise CatalogError(f"{len(skipped)} problem{'s'[: len(skipped) != 1]} in signature files:\n{lines}", hint=hint)
    if not missing:
        return catalog
    return dataclasses.replace(catalog, warnings=(*missing, *catalog.warnings))
