"""The settings that logs state: looked for at the start of every text, where programs print them, so that the cost does
not grow with the logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from triage.evidence.settings import of_line
from triage.model.evidence import Evidence, Origin, Source
from triage.ranks.text import split_line
from triage.scan.interface import Scanned

Read = Callable[[int, int], bytes]

# Bytes looked at of all texts together, and of one at most; the head that the scan keeps is looked at in any case.
TOTAL = 1 << 25
MOST = 1 << 20
LINES = 4096  # of one text
_BY_NCCL = b" set by environment to "
_SAID = (
    rb"(?:NCCL_[A-Z0-9_]+ set to |[ot]rch[_-]?(?:npu)?(?:\.__version__)? ?(?:version)? ?[:=] ?\d|NCCL version 2|Driver Version: \d"
    rb"|CANN[ _-]?[Vv]?e?r?s?i?o?n? ?[:=] ?\d|CUDA used to build|environ\(?\{"
    rb"|(?:^|[ \t\"'])(?:NCCL|HCCL|LCCL|TORCH|PYTORCH|CUDA|CUBLAS|ATB|ASCEND|GLOO|NVTE|FLASH|MASTER|WORLD|TASK|CLOSE)_[A-Z0-9_]+=)"
)


def said(
    texts: Sequence[tuple[Source, Scanned]], read_of: Callable[[Source, Scanned], Read], year: int
) -> list[Evidence]:
    """One fact of kind `environment` for each writer of each text that states settings."""
    share = min(MOST, TOTAL // max(1, len(texts)))
    found: list[Evidence] = []
    for source, scan in texts:
        data = scan.head
        if source.path is not None and len(data) < min(share, scan.size):
            data = read_of(source, scan)(0, share)
        found += _by_writer(source, data, year)
    return found


def _by_writer(source: Source, data: bytes, year: int) -> Iterator[Evidence]:
    writers: dict[Origin, dict[str, tuple[str, int]]] = {}
    for origin, offset, pairs in (*_by_nccl(data, year), *_others(data, year)):
        told = writers.setdefault(Origin(origin.rank, origin.local_rank, origin.host, origin.pid), {})
        for name, value in pairs:
            told.setdefault(name, (value, offset))
    for origin, told in writers.items():
        yield Evidence(
            kind="environment",
            component="log",
            text=f"{len(told)} settings",
            origin=origin,
            source=source.name,
            offset=min(offset for _, offset in told.values()),
            fields={name: value for name, (value, _) in told.items()},
            excerpt="\n".join(f"{name} {offset} 0" for name, (_, offset) in told.items()),
        )


Told = tuple[Origin, int, Sequence[tuple[str, str]]]


def _by_nccl(data: bytes, year: int) -> Iterator[Told]:
    """NCCL's own lines. There are dozens a rank, so what stands before them is parsed once for each writer."""
    origins: dict[bytes, Origin] = {}
    place = data.find(_BY_NCCL)
    for _ in range(LINES):
        if place < 0:
            break
        start = data.rfind(b"\n", 0, place) + 1
        end = data.find(b"\n", place)
        line = data[start : end if end >= 0 else len(data)]
        before, speaks, _ = line.partition(b"NCCL INFO ")
        origin = origins.get(before)
        if origin is None:
            origin = origins[before] = split_line(before + speaks, start, year)[-1].parsed.origin
        pairs = of_line(line[len(before) :].decode("utf-8", "replace"))
        if pairs:
            yield origin, start, pairs
        place = data.find(_BY_NCCL, place + 1)


def _others(data: bytes, year: int) -> Iterator[Told]:
    for start, end in _places(data):
        for line in split_line(data[start:end], start, year):
            pairs = of_line(line.parsed.text)
            if pairs:
                yield line.parsed.origin, line.offset, pairs


def _places(data: bytes) -> Iterator[tuple[int, int]]:
    """The lines that may state something, each once."""
    done = -1
    count = 0
    for match in _pattern().finditer(data):
        if match.start() >= done and count < LINES:
            count += 1
            start = data.rfind(b"\n", 0, match.end()) + 1
            end = data.find(b"\n", match.end() - 1)
            done = end if end >= 0 else len(data)
            yield start, done


@cache
def _pattern() -> Any:
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(b"(?m)" + _SAID, options)
