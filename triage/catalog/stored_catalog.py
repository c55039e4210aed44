"""A compiled catalog as two files of the cache: what a diagnosis needs, and the samples, which are as much again.

Hundreds of signatures have the same effects, so each list of effects is stored once. A process decodes files that did
not change only once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from triage.base.lazy_dataclass import replace
from triage.catalog.cache import name_file, read_cache, write_cache
from triage.catalog.model import Catalog, CausalEdge, Sample

Samples = tuple[tuple[Sample, ...], tuple[Sample, ...]]
# Of a file: device, inode, mode, owner, size, time of the last change in nanoseconds.
_FileIdentity = tuple[int, int, int, int, int, int]
_REMEMBERED = 2  # the catalog with samples and without


class _WithoutSamples(msgspec.Struct):
    """A catalog whose signatures have neither samples nor edges, all lists of edges, and which of them each has."""

    catalog: Catalog
    edges: list[tuple[CausalEdge, ...]]
    edges_of: list[int]


def read_catalog(directory: Path, sources: Sequence[str], key: str, *, with_samples: bool) -> Catalog | None:
    """Return the catalog that was stored for these source directories with this key; None if any of it is missing."""
    paths = [name_file(directory, sources), *([_name_samples(directory, sources)] if with_samples else [])]
    try:
        return read_files(tuple(paths), tuple(map(_identify, paths)), key)
    except OSError:
        return None


@lru_cache(_REMEMBERED)
def read_files(paths: tuple[Path, ...], identities: tuple[_FileIdentity, ...], key: str) -> Catalog | None:
    """Return the catalog in the first file, with the samples in the second one if there is one.

    It is remembered until the files have other `identities`.
    """
    stored = read_cache(paths[0], key, _WithoutSamples)
    if stored is None:
        return None
    signatures = stored.catalog.signatures
    samples: Sequence[Samples] | None = [((), ())] * len(signatures)
    if paths[1:]:
        samples = read_cache(paths[1], key, tuple[Samples, ...])
    if samples is None or not len(samples) == len(signatures) == len(stored.edges_of):
        return None
    if not all(0 <= number < len(stored.edges) for number in stored.edges_of):
        return None
    complete = (
        replace(signature, causal_edges=stored.edges[number], samples_match=matching, samples_no_match=others)
        for signature, number, (matching, others) in zip(signatures, stored.edges_of, samples, strict=True)
    )
    return replace(stored.catalog, signatures=tuple(complete))


def _identify(path: Path) -> _FileIdentity:
    status = os.lstat(path)
    return status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_size, status.st_ctime_ns


def write_catalog(directory: Path, sources: Sequence[str], key: str, catalog: Catalog) -> None:
    """Store a catalog for the next run. Do nothing if that is impossible."""
    bare = (replace(one, causal_edges=(), samples_match=(), samples_no_match=()) for one in catalog.signatures)
    numbers = {one.causal_edges: 0 for one in catalog.signatures}
    numbers = {edges: number for number, edges in enumerate(numbers)}
    edges_of = [numbers[one.causal_edges] for one in catalog.signatures]
    stored = _WithoutSamples(replace(catalog, signatures=tuple(bare)), list(numbers), edges_of)
    write_cache(
        _name_samples(directory, sources),
        key,
        [(one.samples_match, one.samples_no_match) for one in catalog.signatures],
    )
    write_cache(name_file(directory, sources), key, stored)


def _name_samples(directory: Path, sources: Sequence[str]) -> Path:
    path = name_file(directory, sources)
    return path.with_name(path.name.replace("catalog-", "samples-", 1))
