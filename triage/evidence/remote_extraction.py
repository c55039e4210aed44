"""Extract the facts of sources on other machines, next to where their files lie."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from triage.base.addresses import is_address
from triage.base.executor_work import SharedData
from triage.base.forks import RemoteUnits
from triage.base.shared_types import share_type
from triage.evidence.extracted import pack
from triage.evidence.source_extraction import extract_source, make_context
from triage.model import Source, Warning
from triage.scan.edges import EdgeReader, FileEdges, read_edges
from triage.scan.interface import Hit, ScanResult
from triage.sources.file_reader import FileReader
from triage.sources.opened_file import accept_file, describe_file, open_file


def describe_extraction(
    scanned: Sequence[tuple[Source, ScanResult]],
    literals: Sequence[str],
    year: int,
    root: str,
    *,
    small: bool,
    searched: int,
) -> RemoteUnits:
    """Return how another machine extracts these sources; None for streams, of which only this one has the bytes."""
    units = [_describe_source(source, scan) if source.path is not None else None for source, scan in scanned]
    return RemoteUnits(extract_unit, [literals, year, root, small, searched], units, [scan.size for _, scan in scanned])


def _describe_source(source: Source, scan: ScanResult) -> list[Any]:
    hits = [[hit.start, hit.end, hit.literals, hit.omitted] for hit in scan.hits]
    return [msgspec.to_builtins(source), describe_file(source.path or ""), hits, scan.size, scan.sampled, scan.matched]


def extract_unit(shared: SharedData, unit: Sequence[Any]) -> Any:
    """Extract one source on a worker. Raises OSError if its file is not there as it was scanned."""
    literals, year, root, small, searched = shared.value
    row, described, hits, size, sampled, matched = unit
    path = accept_file(described)
    source = msgspec.convert({**row, "path": path}, share_type(Source))
    with contextlib.closing(open_file(path)) as file:
        if file.size() < size:
            raise OSError(errno.ENODATA, "it is shorter here")
    edges = read_edges(path, size) if is_address(path) else FileEdges(path, size, EdgeReader())
    rows = tuple(Hit(start, end, tuple(numbers), omitted) for start, end, numbers, omitted in hits)
    scan = ScanResult(rows, size, edges, sampled, matched)
    with FileReader(_refuse) as files:
        read = partial(files.read_at, path)
        context = make_context(source.name, scan, year, root)
        return pack(extract_source(source, scan, literals, read, context, small=small, searched=searched))


def _refuse(warning: Warning) -> None:
    raise OSError(errno.EIO, warning.message)
