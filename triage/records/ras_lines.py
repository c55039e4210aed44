"""The lines of a report of NCCL's RAS subsystem, as `ncclras` prints it: between other lines or in their own file."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from triage.base.lazy_re import lazy_re
from triage.records.text import REACH, Line, Text

FORM = "nccl-ras"
TRIGGERS = (
    "Communicators... (",
    "Communicator ranks have different ",
    "considered dead (unreachable via the RAS network)",
    "Missing communicator data from ",
    "ranks have launched up to operation ",
    "PEER_DEAD: Process ",
    '"communicators_count":',
)
"""What some line of each report holds, also of one of which only a part was pasted."""

_JSON = TRIGGERS[-1]
_START = lazy_re(r"NCCL version \S{1,60} compiled with CUDA |Job summary\s*$|\{\s*$|.{0,40}PEER_DEAD: ")
_TEXT = lazy_re(
    r"\s*$|[ =-]{3,}|[\d\s-]{3,}$|CUDA runtime version \d|NCCL version \S{1,60} compiled|"
    r"Job summary|Communicators\.\.\.|"
    r"\s{0,8}(?:Nodes|Processes|per node|\(total\)|Group +Comms|# +in group)\b|\s{0,8}\(total\)|\s{1,30}per process|"
    r"The outlier node|  Node \S{1,60} running|\s{0,8}\d{1,6}(?: +\d[\d-]{0,12}){5} +[A-Z]{2,12} +[A-Z,]{2,30}\s*$|"
    r"No communicator data|(?:Errors|Warnings|INCOMPLETE|DEAD|TIMEOUT)\s*$|#\d{1,6}-\d{1,6} \([0-9a-f]{1,16}\) [A-Z]|"
    r"\s{0,4}(?:Rank \d|\d{1,7} ranks |\d{1,7} job process|Process \d{1,9} on node|The (?:missing|unknown) rank|"
    r"Missing communicator data|Communicator ranks have|Encountered \d{1,9} communication|"
    r"(?:Initialization|Asynchronous) error|\[could not find information on|\[\.\.\.\])"
)
_JSON_LINE = lazy_re(r"\s*(?:[\[\]{}]|\"\w{1,40}\"\s*:)")
_OWN = lazy_re(
    r"Communicators\.\.\. \(\d|#\d{1,6}-\d{1,6} \([0-9a-f]{1,16}\) (?:MISMATCH|INCOMPLETE|ERROR)|"
    r"\s{0,2}\"communicators_count\":|\[[\d :-]{19}\] PEER_DEAD: Process \d"
)
_HEAD_LINES = 40


def is_of_report(line: str) -> bool:
    """Whether no other text than a report has this line."""
    return _OWN.match(line) is not None


def opens_report(line: Line) -> bool:
    """Whether a line stands in such a report."""
    return any(trigger in line.parsed.text for trigger in TRIGGERS)


def collect_report(text: Text, hit: Line) -> list[Line]:
    """Return the lines of the report around a line, all by its writer."""
    is_json = _JSON in hit.parsed.text
    if "PEER_DEAD: " in hit.parsed.text:
        return [hit]
    shape = _JSON_LINE if is_json else _TEXT
    writer = hit.parsed.writer
    above = (line for line in text.lines_before(hit.offset, REACH >> 6) if line.parsed.writer == writer)
    head: list[Line] = []
    for line in itertools.islice(above, _HEAD_LINES):
        if not shape.match(line.parsed.text):
            break
        head.insert(0, line)
        if _START.match(line.parsed.text) and not line.parsed.text.startswith("Job"):
            break
    return [*head, hit, *_lines_below(text, hit, is_json)]


def _lines_below(text: Text, hit: Line, is_json: bool) -> Iterator[Line]:
    shape = _JSON_LINE if is_json else _TEXT
    for line in _same_writer(text, hit):
        if not shape.match(line.parsed.text) or (not is_json and _START.match(line.parsed.text)):
            return
        yield line
        if is_json and line.parsed.text.rstrip() == "}":
            return


def _same_writer(text: Text, hit: Line) -> Iterable[Line]:
    """Yield the following lines of the writer, however far the report reaches."""
    last = hit
    while True:
        start = last
        for line in text.lines_from(start.end, REACH, hit.start_of(hit.parsed.writer), 4000):
            if line.offset > start.offset and line.parsed.writer == hit.parsed.writer:
                last = line
                yield line
        if last is start:
            return
