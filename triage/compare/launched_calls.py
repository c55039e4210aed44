"""The calls that NCCL logs when they are enqueued (`NCCL_DEBUG_SUBSYS=COLL`), by process and communicator.

`AllReduce: opCount 1a sendbuff … recvbuff … count … datatype … op … root … comm 0x… [nranks=8] stream …` is written
when a call is enqueued, in equal words from NCCL 2.4 to 2.30. `opCount` (hexadecimal) is that before the call. Until
2.9 and from 2.14 to 2.26 it counts all launches, else only those that need the network, and calls of one ncclGroup
have one number: so lines are counted where all of them were read. A pointer names a communicator within its process;
`commId`, or the parent and the colour of a split, name it among all.

Of a long text only the start and the end are read: a job writes millions of these lines, and the last ones show where
it stands.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from triage.base.lazy_re import lazy_re
from triage.evidence.extracted import ExtractedJob
from triage.evidence.extraction import source_text
from triage.model import Evidence, LaunchedCall, LaunchesDetail, Origin, Source
from triage.records.text import Text
from triage.scan.interface import ScanResult

ReadBytes = Callable[[int, int], bytes]
LAUNCHES = "launches"
"""Kind of evidence."""

_HINT = b": opCount "
_CALL = lazy_re(
    rb"NCCL INFO (?P<op>[A-Z]\w{1,40}): opCount (?P<number>[0-9a-f]{1,16}) sendbuff \S{1,40} recvbuff \S{1,40}"
    rb" count (?P<count>\d{1,20}) datatype (?P<type>\d{1,4}) op \d{1,20} root -?\d{1,10}"
    rb" comm (?P<comm>\w{1,40}) \[nranks=(?P<size>\d{1,7})\]"
)
_INIT = lazy_re(
    rb"comm (?P<comm>\w{1,40}) rank (?P<member>\d{1,7}) nranks (?P<size>\d{1,7}) cudaDev [^\n]{1,120}?"
    rb"(?:commId (?P<id>\w{1,40})"
    rb"|parent (?P<parent>\w{1,40}) splitCount (?P<split>\d{1,9}) color (?P<color>-?\d{1,10}))"
)
_TRANSFERS = (b"Send", b"Recv")
_PREFIX_END = b"NCCL INFO "
_MADE = b" nranks "
# Bytes that are read of all texts together, of one at most, and of the end of a longer one.
_MOST_BYTES, _MOST_PER_TEXT, _LAST_BYTES = 1 << 25, 1 << 20, 1 << 18
_MOST_CALLS = 256  # of one communicator of one process
_LONGEST_LINE = 1 << 10
_Process = tuple[str | None, int | None, int | None]


@dataclass(frozen=True, slots=True)
class _Part:
    """Bytes of a text; `mark` stands in each line of them that is read: at the start of a long text only the new
    communicators.
    """

    offset: int
    data: bytes
    mark: bytes


@dataclass(slots=True)
class _Launches:
    """What one process launched in one communicator."""

    origin: Origin
    size: int
    member: int = -1
    communicator: str = ""
    total: int = 0
    has_transfers: bool = False
    calls: deque[LaunchedCall] = field(default_factory=lambda: deque(maxlen=_MOST_CALLS))
    offset: int = 0
    line: bytes = b""


def extract_launched_calls(
    texts: Sequence[tuple[Source, ScanResult]],
    read_of: Callable[[Source, ScanResult], ReadBytes],
    extracted: ExtractedJob,
) -> list[Evidence]:
    """Return one fact for each process and communicator in each of these texts."""
    facts: list[Evidence] = []
    share = min(_MOST_PER_TEXT, _MOST_BYTES // max(1, len(texts)))
    for source, scan in texts:
        read = read_of(source, scan)
        parts = list(_read_parts(source, scan, read, share))
        facts += _read_text(source, parts, source_text(source, scan, read, extracted))
    return facts


def _read_parts(source: Source, scan: ScanResult, read: ReadBytes, share: int) -> Iterator[_Part]:
    """Yield all of a text, or its start and its end; of a stream what the scan has kept."""
    is_file = source.path is not None
    if scan.size <= len(scan.tail) or (is_file and scan.size <= share):
        yield _Part(0, read(0, scan.size) if is_file else scan.tail, _PREFIX_END)
        return
    last = min(share, _LAST_BYTES)
    yield _Part(0, read(0, share) if is_file else scan.head, _MADE)
    data = read(scan.size - last, last) if is_file else scan.tail
    skipped = data.find(b"\n") + 1
    yield _Part(scan.size - len(data) + skipped, data[skipped:], _PREFIX_END)


def _read_text(source: Source, parts: Sequence[_Part], text: Text) -> Iterator[Evidence]:
    launches: dict[tuple[_Process, bytes], _Launches] = {}
    origins: dict[bytes, Origin] = {}
    for part in parts:
        for start, line in _lines(part):
            prefix = line[: line.find(_PREFIX_END) + len(_PREFIX_END)]
            if prefix not in origins:
                parsed = text.parse_line(prefix, part.offset + start)
                origins[prefix] = parsed[-1].parsed.origin if parsed else Origin()
            _add_line(launches, origins[prefix], part.offset + start, line)
    for one in launches.values():
        if one.total or one.member >= 0:
            yield _make_fact(source, one, is_whole=len(parts) == 1)


def _lines(part: _Part) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of calls and of new communicators with their offsets, in their order."""
    data = part.data
    place = data.find(part.mark)
    while place >= 0:
        start = data.rfind(b"\n", 0, place) + 1
        end = data.find(b"\n", place)
        end = end if end >= 0 else len(data)
        line = data[start : min(end, start + _LONGEST_LINE)]
        if _PREFIX_END in line and (_HINT in line or _MADE in line):
            yield start, line
        place = data.find(part.mark, end)


def _add_line(launches: dict[tuple[_Process, bytes], _Launches], origin: Origin, offset: int, line: bytes) -> None:
    process = (origin.host, origin.pid, origin.rank)
    if (call := _CALL.search(line)) is not None:
        one = launches.setdefault((process, call["comm"]), _Launches(origin, int(call["size"])))
        if call["op"] in _TRANSFERS:
            one.has_transfers = True
            return
        one.total += 1
        number, operation = int(call["number"], 16), call["op"].decode()
        one.calls.append(LaunchedCall(number, operation, int(call["count"]), int(call["type"])))
        one.offset, one.line = offset, line
    elif (made := _INIT.search(line)) is not None:
        one = launches.setdefault((process, made["comm"]), _Launches(origin, int(made["size"])))
        one.member = int(made["member"])
        one.communicator = one.communicator or _name_communicator(launches, process, made)
        one.offset, one.line = (offset, line) if not one.total else (one.offset, one.line)


def _name_communicator(
    launches: dict[tuple[_Process, bytes], _Launches], process: _Process, made: re.Match[bytes]
) -> str:
    """Return the name of a communicator that all its members share; empty if it is not known."""
    if made["id"]:
        return made["id"].decode()
    parent = launches.get((process, made["parent"]))
    if parent is None or not parent.communicator:
        return ""
    return f"{parent.communicator}/{int(made['split'])}/{int(made['color'])}"


def _make_fact(source: Source, one: _Launches, *, is_whole: bool) -> Evidence:
    total = one.total if is_whole else None
    detail = LaunchesDetail(one.communicator, one.size, one.member, total, one.has_transfers, tuple(one.calls))
    text = one.line.partition(_PREFIX_END)[2].decode("utf-8", "replace")
    return Evidence(LAUNCHES, "NCCL", text, one.origin, source.name, one.offset, detail=detail)
