"""What every format shows of an inconclusive diagnosis: its sections, and the verdict as a finding."""

from __future__ import annotations

from triage.model import Diagnosis, Evidence, FinalLine, Finding, Origin, Remediation
from triage.render import phrases

SIGNATURE = "triage.inconclusive"
"""The id of the finding that stands for the verdict; no signature of the catalog has it."""


def sections(diagnosis: Diagnosis) -> list[tuple[str, list[str]]]:
    """Return (title, sentences) of what is known of the end; empty for every other verdict."""
    known = diagnosis.inconclusive
    if known is None:
        return []
    parts = [
        ("Why", list(known.why)),
        ("Logs end", [_describe(line, diagnosis) for line in known.last_lines]),
        ("Unusual", [_describe(line, diagnosis) for line in known.unusual_lines if line not in known.last_lines]),
        ("Looked for", list(known.looked_for)),
    ]
    return [(title, rows) for title, rows in parts if rows]


def next_steps(diagnosis: Diagnosis) -> list[str]:
    """Return what to add, so that the next report can tell."""
    return list(diagnosis.inconclusive.next_steps) if diagnosis.inconclusive is not None else []


def as_finding(diagnosis: Diagnosis) -> Finding:
    """Return the verdict as a finding: a warning at the last line of what stopped first."""
    known = diagnosis.inconclusive
    why = known.why if known is not None else ()
    lines = (*known.unusual_lines, *known.last_lines) if known is not None else ()
    return Finding(
        signature=SIGNATURE,
        title=phrases.headline(diagnosis),
        domain="triage",
        role="symptom",
        severity="warning",
        confidence=0.0,
        ranks=tuple(sorted({line.rank for line in lines[:1] if line.rank is not None})),
        why=why,
        evidence=tuple(_as_evidence(line) for line in lines[:1]),
        remediation=Remediation("; ".join(why), known.next_steps if known is not None else ()),
    )


def _as_evidence(line: FinalLine) -> Evidence:
    origin = Origin(rank=line.rank, time=line.time)
    return Evidence("last-line", "", line.text, origin, line.source, 0, line=line.line, end_line=line.line)


def _describe(line: FinalLine, diagnosis: Diagnosis) -> str:
    """Return `rank 3 at 10:00:03, rank3.log:299: step 299 …`, as far as known."""
    rank = f"rank {line.rank}" if line.rank is not None else ""
    time = phrases.format_time(line.time, diagnosis)
    head = " at ".join(part for part in (rank, time) if part)
    place = phrases.format_place(_as_evidence(line), diagnosis)
    return f"{', '.join(part for part in (head, place) if part)}: {line.text}"
