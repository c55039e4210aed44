"""For GitHub Actions: annotations as workflow commands, the step summary, and the comment on a pull request.

The runner shows ten errors and ten warnings of a step and drops the rest without a word; here the tenth says how many
more there are.
A step summary is refused above 1 MiB, a comment above 65,536 characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from triage.model.diagnosis import Diagnosis, Finding
from triage.model.evidence import Evidence
from triage.render import markdown, words
from triage.render.commands import command
from triage.render.safe import clip, safe, safe_line

__all__ = ["annotated", "comment", "cut", "marker", "name", "render", "summary"]

name = "github"

SUMMARY = 1 << 20  # bytes of a step summary
COMMENT = 65_536
SHOWN = 10  # annotations of one level
MESSAGE = 4000
TITLE = 200
LINES = 20


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False, link: str = "") -> str:
    """The annotations, one command a line. They stand in the log, so they are all that it says."""
    return "".join(f"{line}\n" for line in annotated(diagnosis))


def annotated(diagnosis: Diagnosis) -> list[str]:
    """At most ten errors (what began it), ten warnings (what followed, and what the reader must know), and a notice for
    a clean job.
    """
    root = diagnosis.root_cause
    if diagnosis.verdict == "clean":
        return [
            command("notice", safe(clip(words.headline(diagnosis), MESSAGE)), {"title": "triage: clean"}),
            *_warnings(diagnosis, ()),
        ]
    kind = words.kind(diagnosis).capitalize()
    errors = (
        [_told(root, f"{kind}: {words.headline(diagnosis)}", diagnosis)]
        if root is not None
        else [_bare(f"{kind}: {words.headline(diagnosis)}")]
    )
    errors += [_told(finding, finding.title, diagnosis) for finding in words.others(diagnosis)]
    groups = words.groups(diagnosis)
    return [*_capped("error", errors), *_warnings(diagnosis, [*groups.considered, *groups.caused, *groups.confirmed])]


def summary(diagnosis: Diagnosis, *, link: str = "", limit: int = SUMMARY) -> str:
    """The Markdown report, at most `limit` bytes."""
    return cut(_linked(markdown.render(diagnosis), link), limit)


def comment(diagnosis: Diagnosis, key: str, *, link: str = "", limit: int = COMMENT) -> str:
    """The Markdown report behind the marker by which the comment is found again, at most `limit` characters (and
    bytes).
    """
    first = marker(key) + "\n"
    return first + cut(_linked(markdown.render(diagnosis), link), limit - len(first))


def marker(key: str) -> str:
    """An HTML comment that nobody sees: `<!-- triage:KEY -->`."""
    return f"<!-- triage:{re.sub(r'[^A-Za-z0-9._:/@]+|-{2,}', '-', key).strip('-')[:200] or 'job'} -->"


def cut(text: str, limit: int) -> str:
    """Markdown of at most `limit` bytes: whole lines, a fence that is open is closed, and what is left out is counted."""
    if len(text.encode()) <= limit:
        return text
    lines = text.split("\n")
    room = limit - 120
    kept, used, fence = [], 0, ""
    for line in lines:
        used += len(line.encode()) + 1
        if used + len(fence) > room:
            break
        kept.append(line)
        opened = re.match(r"(`{3,})", line)
        if opened:
            fence = "" if fence == opened[1] else fence or opened[1]
    closing = [fence] if fence else []
    return "\n".join(
        [
            *kept,
            *closing,
            "",
            f"… {words.plural(len(lines) - len(kept), 'more line')} left out: the report is too long for this place.",
            "",
        ]
    )


def _linked(report: str, link: str) -> str:
    return f"{report}\n{markdown.link(link)}\n" if link else report


def _warnings(diagnosis: Diagnosis, findings: Sequence[Finding]) -> list[str]:
    told = [_told(finding, finding.title, diagnosis) for finding in findings]
    told += [
        _bare(f"{message} ({', '.join(sources[:3])})" if sources else message)
        for sources, message, _ in words.warnings(diagnosis)
    ]
    return _capped("warning", told)


def _told(finding: Finding, head: str, diagnosis: Diagnosis) -> tuple[str, dict[str, object]]:
    first = next(iter(finding.evidence), None)
    who = words.radius(diagnosis) if finding is diagnosis.root_cause else words.who(finding)
    parts = [head + (f" ({who})" if who else ""), first.text if first is not None else "", finding.remediation.summary]
    lines = safe("\n".join(part for part in parts if part)).split("\n")
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], f"… {len(lines) - LINES + 1} more lines"]
    title = safe_line(clip(f"triage: {finding.signature or finding.cluster or 'unknown failure'}", TITLE))
    return clip("\n".join(lines), MESSAGE), {**_place(first), "title": title}


def _bare(text: str) -> tuple[str, dict[str, object]]:
    return clip(safe_line(text), MESSAGE), {"title": "triage"}


def _place(item: Evidence | None) -> dict[str, object]:
    """Members of archives and standard input are no files that an annotation could point at."""
    if item is None or item.source == "-" or "!/" in item.source:
        return {}
    return {"file": safe_line(item.source)[:1000], "line": item.line, "endLine": item.end_line}


def _capped(kind: str, told: Sequence[tuple[str, dict[str, object]]]) -> list[str]:
    shown = [
        command(kind, message, properties) for message, properties in told[: SHOWN if len(told) <= SHOWN else SHOWN - 1]
    ]
    rest = len(told) - len(shown)
    return [*shown, *([command(kind, f"+ {rest} more, see the step summary", {"title": "triage"})] if rest else [])]
