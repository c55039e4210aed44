"""Where the texts of a job end: the last line of each rank, and of each source that names no rank."""

from __future__ import annotations

from triage.diagnose.inconclusive import MOST_LINES, ReadInput, explain_inconclusive
from triage.model import Evidence, Inconclusive, Origin, Source
from triage.pipeline.results import AnalysedJob
from triage.scan.interface import ScanResult

_LONGEST = 1 << 10  # bytes of a last line


def explain_end(analysed: AnalysedJob) -> Inconclusive:
    """Return what is known of the end of an inconclusive job."""
    texts = analysed.texts
    scanned = [(source, scan) for source, scan in texts.scanned if scan.size]
    read = ReadInput(
        text_bytes=sum(scan.size for _, scan in scanned),
        torn=tuple(source.name for source, scan in scanned if is_torn(scan)),
        unread=analysed.unread,
        signatures=len(analysed.catalog.signatures),
    )
    warnings = analysed.all_warnings()
    return explain_inconclusive(analysed.result, _last_lines(analysed), read, texts.number_final_lines, warnings)


def is_torn(scan: ScanResult) -> bool:
    """Return whether the last line has no line end; a progress bar, which carriage returns redraw, never has one."""
    last = scan.tail.rsplit(b"\n", 1)[-1]
    return bool(last.strip(b"\r\0 ")) and b"\r" not in last


def _last_lines(analysed: AnalysedJob) -> list[Evidence]:
    """Return the last lines of ranks, and of the texts whose lines name no rank."""
    ranked = [
        Evidence("last-line", "", one.text, Origin(rank=one.rank, time=one.time), one.source, one.offset)
        for one in analysed.texts.last_lines(analysed.extracted)
    ]
    job = analysed.extracted.job
    activity = analysed.extracted.activity
    with_rank = {source for source, one in activity if job.complete(source, one.origin).rank is not None}
    texts = [(source, scan) for source, scan in analysed.texts.scanned if scan.size and source.name not in with_rank]
    return [*ranked, *(_last_line(source, scan) for source, scan in texts[:MOST_LINES])]


def _last_line(source: Source, scan: ScanResult) -> Evidence:
    """Return the last line of a text that is not blank."""
    content = scan.tail.rstrip(b"\r\n\t \0")
    start = max(content.rfind(b"\n"), content.rfind(b"\r")) + 1
    text = content[start : start + _LONGEST].decode("utf-8", "replace")
    return Evidence("last-line", "", text, Origin(), source.name, scan.size - len(scan.tail) + start)
