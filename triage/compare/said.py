"""The settings that logs state: looked for at the start of every text, where programs print them, so that the cost does not grow with the logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from triage.evidence.settings import of_line
from triage.model import Evidence, Origin, Source
from triage.ranks.text import split_line
from triage.scan.interface import Scanned

Read = Callable[[int, int], bytes]

# Bytes looked at of all texts together, and of one at most; the head that the scan keeps is looked at in any case.
TOTAL = 1 << 25
MOST = 1 << 20
LINES = 4096  # of one text
_SAID = (
    rb"(?: set by environment to |NCCL_[A-Z0-9_]+ set to |[ot]rch[_-]?(?:npu)?(?:\.__version__)? ?(?:version)? ?[:=] ?\d|NCCL version 2|Driver Version: \d"
    rb"|CANN[ _-]?[Vv]?e?r?s?i?o?n? ?[:=] ?\d|CUDA used to build|environ\(?\{"
    rb"|(?:^|[ \t\"'])(?:NCCL|HCCL|LCCL|TORCH|PYTORCH|CUDA|CUBLAS|ATB|ASCEND|GLOO|NVTE|FLASH|MASTER|WORLD|TASK|CLOSE)_[A-Z0-9_]+=)"
)


def said(texts: Sequence[tuple[Source, Scanned]], read_of: Callable[[Source, Scanned], Read], year: int) -> list[Evidence]:
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
    for start, end in _places(data):
        for line in split_line(data[start:end], start, year):
            pairs = of_line(line.parsed.text)
            if pairs:
                origin = line.parsed.origin
                key = Origin(origin.rank, origin.local_rank, origin.host, origin.pid)
                told = writers.setdefault(key, {})
                for name, value in pairs:
                    told.setdefault(name, (value, line.offset))
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
