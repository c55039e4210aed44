"""Pods and the nodes on which they run, from what kubectl prints: `describe pod`, and `get pods -o wide`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.records.text import Text

# How far above a line of a description its pod's name and node can stand; how long a table can be.
REACH = 1 << 14
_TABLE_BYTES = 1 << 16
_MOST = 64
_NODE_HINT, _TABLE_HINT = b"Node:", b" NODE"
_NAME = lazy_re(r"^Name: +(?P<pod>[a-z0-9][a-z0-9.-]{0,252})$")
_NODE = lazy_re(r"^Node: +(?P<node>[a-z0-9][a-z0-9.-]{0,252})(?:/[\da-f.:]{2,45})?$")
# Behind the head of a description, other objects have such keys too: `    Name:`, in a volume say.
_KEY = lazy_re(r"^(?:[A-Z][A-Za-z ]{1,40}:| {2,}\S|$)")
_COLUMNS = lazy_re(r" {2,}")
_LISTED_NAME = lazy_re(r"^[a-z0-9][a-z0-9.-]{0,252}$")


@dataclass(frozen=True, slots=True)
class DescribedPod:
    """A pod and its node. The name is empty where only the node is known."""

    name: str
    node: str


def read_description(lines: Iterable[str]) -> DescribedPod | None:
    """Return the pod whose description these lines begin, by the last `Node:`; None if other text follows that."""
    name, described = "", None
    for line in lines:
        if (named := _NAME.match(line)) is not None:
            name, described = named["pod"], None
        elif (placed := _NODE.match(line)) is not None:
            described = DescribedPod(name, placed["node"])
        elif not _KEY.match(line):
            name, described = "", None
    return described


def read_table(lines: Sequence[str]) -> Iterator[DescribedPod]:
    """Yield the pods of a table with the columns NAME and NODE, whose first line has the headings."""
    headings = _COLUMNS.split(lines[0].strip()) if lines else []
    if "NAME" not in headings or "NODE" not in headings:
        return
    name, node = headings.index("NAME"), headings.index("NODE")
    for line in lines[1:]:
        cells = _COLUMNS.split(line.strip())
        if len(cells) <= node:
            return
        if _LISTED_NAME.match(cells[name]) and _LISTED_NAME.match(cells[node]):
            yield DescribedPod(cells[name], cells[node])


def find_described_pods(text: Text, data: bytes, offset: int) -> Iterator[DescribedPod]:
    """Yield the pods with names and nodes in a part of a source, which begins at `offset`."""
    for start, end in _places_of(_NODE_HINT, data):
        above = max(0, start - REACH)
        pod = read_description(texts_of(text, data[above:end], offset + above))
        if pod is not None and pod.name:
            yield pod
    for start, _ in _places_of(_TABLE_HINT, data):
        yield from read_table(list(texts_of(text, data[start : start + _TABLE_BYTES], offset + start)))


def texts_of(text: Text, data: bytes, offset: int) -> Iterator[str]:
    """Yield the texts of lines behind their prefixes. The first line may be cut off at its start."""
    for raw in data.split(b"\n"):
        for line in text.parse_line(raw, offset):
            yield line.parsed.text
        offset += len(raw) + 1


def _places_of(hint: bytes, data: bytes) -> list[tuple[int, int]]:
    """Return start and end of the first lines with the hint."""
    places = []
    for match in re.finditer(re.escape(hint), data):
        start, end = data.rfind(b"\n", 0, match.start()) + 1, data.find(b"\n", match.end())
        places.append((start, end if end >= 0 else len(data)))
        if len(places) == _MOST:
            break
    return places
