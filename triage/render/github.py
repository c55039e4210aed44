"""The report for GitHub Actions: annotations as workflow commands, the step summary, the comment on a pull request.

The runner shows ten errors and ten warnings of a step and silently drops the rest; here the tenth shows how many more
there are. GitHub refuses a step summary above 1 MiB and a comment above 65,536 characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from triage.model import Diagnosis, Evidence, Finding
from triage.render import inconclusive, job_warnings, markdown, phrases
from triage.render.sanitize import clip, sanitize, sanitize_line
from triage.render.workflow_commands import command

__all__ = ["annotated", "comment", "cut", "marker", "name", "render", "summary"]

name = "github"

SUMMARY = 1 << 20  # bytes of a step summary
COMMENT = 65_536
SHOWN = 10  # annotations of one level
MESSAGE = 4000
TITLE = 200
LINES = 20


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False, link: str = "") -> str:
    """Return the annotations, one workflow command a line."""
    return "".join(f"{line}\n" for line in annotated(diagnosis))


def annotated(diagnosis: Diagnosis) -> list[str]:
    """Return at most ten errors (root cause, unknown failures) and ten warnings; a notice for a clean job."""
    root = diagnosis.root_cause
    if diagnosis.verdict == "clean":
        return [
            command("notice", sanitize(clip(phrases.headline(diagnosis), MESSAGE)), {"title": "triage: clean"}),
            *_warnings(diagnosis, ()),
        ]
    if diagnosis.verdict == "inconclusive":
        finding = inconclusive.as_finding(diagnosis)
        head = f"Inconclusive: {finding.title}"
        return [*_capped("warning", [_annotation(finding, head, diagnosis)]), *_warnings(diagnosis, ())]
    head = f"{phrases.verdict_kind(diagnosis).capitalize()}: {phrases.headline(diagnosis)}"
    errors = [_annotation(root, head, diagnosis) if root is not None else _plain_annotation(head)]
    errors += [_annotation(finding, finding.title, diagnosis) for finding in phrases.other_unknowns(diagnosis)]
    return [*_capped("error", errors), *_warnings(diagnosis, phrases.group_findings(diagnosis).considered)]


def summary(diagnosis: Diagnosis, *, link: str = "", limit: int = SUMMARY) -> str:
    """Return the Markdown report, at most `limit` bytes."""
    return cut(_linked(markdown.render(diagnosis), link), limit)


def comment(diagnosis: Diagnosis, key: str, *, link: str = "", limit: int = COMMENT) -> str:
    """Return the Markdown report after the marker that identifies the comment, at most `limit` bytes."""
    first = marker(key) + "\n"
    return first + cut(_linked(markdown.render(diagnosis), link), limit - len(first))


def marker(key: str) -> str:
    """Return an invisible HTML comment: `<!-- triage:KEY -->`."""
    return f"<!-- triage:{re.sub(r'[^A-Za-z0-9._:/@]+|-{2,}', '-', key).strip('-')[:200] or 'job'} -->"


def cut(text: str, limit: int) -> str:
    """Return at most `limit` bytes of Markdown: whole lines, open fences closed, and how many lines are left out."""
    if len(text.encode()) <= limit:
        return text
    lines = text.split("\n")
    room = limit - 120
    head, used, fence = [], 0, ""
    for line in lines:
        used += len(line.encode()) + 1
        if used + len(fence) > room:
            break
        head.append(line)
        opened = re.match(r"(`{3,})", line)
        if opened:
            fence = "" if fence == opened[1] else fence or opened[1]
    left_out = phrases.format_count(len(lines) - len(head), "more line")
    note = f"… {left_out} left out: the report is too long for this place."
    return "\n".join([*head, *([fence] if fence else []), "", note, ""])


def _linked(report: str, link: str) -> str:
    return f"{report}\n{markdown.link(link)}\n" if link else report


def _warnings(diagnosis: Diagnosis, findings: Sequence[Finding]) -> list[str]:
    annotations = [_annotation(finding, finding.title, diagnosis) for finding in findings]
    consequences = _consequences(diagnosis)
    annotations += [_plain_annotation(consequences)] if consequences else []
    annotations += [
        _plain_annotation(f"{message} ({', '.join(sources[:3])})" if sources else message)
        for sources, message, _ in job_warnings.merge_warnings(diagnosis)
    ]
    return _capped("warning", annotations)


def _consequences(diagnosis: Diagnosis) -> str:
    """Return all findings that only follow from others as one line."""
    groups = phrases.group_findings(diagnosis)
    names = ", ".join(map(phrases.format_finding, [*groups.caused, *groups.confirmed, *groups.aftermath]))
    return f"{phrases.describe_consequences(diagnosis) or 'Consequences'}: {names}" if names else ""


def _annotation(finding: Finding, head: str, diagnosis: Diagnosis) -> tuple[str, dict[str, object]]:
    first = next(iter(finding.evidence), None)
    extent = (
        phrases.describe_extent(diagnosis) if finding is diagnosis.root_cause else phrases.describe_location(finding)
    )
    text = first.text if first is not None and not phrases.repeats_title(first, finding) else ""
    parts = [head + (f" ({extent})" if extent else ""), text, finding.remediation.summary]
    lines = sanitize("\n".join(part for part in parts if part)).split("\n")
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], f"… {phrases.format_count(len(lines) - LINES + 1, 'more line')}"]
    title = sanitize_line(clip(f"triage: {finding.signature or finding.cluster or 'unknown failure'}", TITLE))
    return clip("\n".join(lines), MESSAGE), {**_place(first), "title": title}


def _plain_annotation(text: str) -> tuple[str, dict[str, object]]:
    return clip(sanitize_line(text), MESSAGE), {"title": "triage"}


def _place(item: Evidence | None) -> dict[str, object]:
    """Return where the annotation points; members of archives and standard input have no file."""
    if item is None or item.source == "-" or "!/" in item.source:
        return {}
    return {"file": sanitize_line(item.source)[:1000], "line": item.line, "endLine": item.end_line}


def _capped(kind: str, annotations: Sequence[tuple[str, dict[str, object]]]) -> list[str]:
    most = SHOWN if len(annotations) <= SHOWN else SHOWN - 1
    commands = [command(kind, message, properties) for message, properties in annotations[:most]]
    left_out = len(annotations) - len(commands)
    note = command(kind, f"+ {left_out} more, see the step summary", {"title": "triage"})
    return [*commands, *([note] if left_out else [])]
