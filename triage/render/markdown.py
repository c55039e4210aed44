"""For a comment on a merge request or an issue: the same content, with nothing in it that a log could make active.

Log text stands in fences and code spans longer than any run of backticks in it. Names and sentences outside of them are
escaped (CommonMark 2.4), and what GitHub and GitLab turn into links or notifications (`@name`, `#12`, `!12`, bare
addresses) is broken by a zero-width space.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from triage.base.lazy_re import lazy_re
from triage.model.diagnosis import Diagnosis, Finding
from triage.model.evidence import Evidence
from triage.render import words
from triage.render.safe import clip, safe, safe_line

__all__ = ["code", "fence", "inline", "link", "name", "render"]

name = "markdown"

LISTED = 10
LINES = 30
CHARACTERS = 600  # of one log line
TITLE = 160
_MARKUP = lazy_re(r"[\\`*_\[\]|~$]")
_START = lazy_re(r"^(?:([#+\-=])|(\d{1,9})([.)]))")
_SIGN = lazy_re(r"([@#!&%$~])(?=[\w\"])")  # what a forge makes a reference of, with something behind it
_ADDRESS = lazy_re(r"(?i)(:/|\bwww|\bmailto|\bxmpp|\bgh)(?=[/.:\-]\S)")
_BREAK = "\u200b"
_LINK = lazy_re(r"https://[A-Za-z0-9][A-Za-z0-9._~/?#=&%+:,-]*")


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False) -> str:
    """The report as Markdown that CommonMark, GitHub and GitLab read the same way."""
    root = diagnosis.root_cause
    groups = words.groups(diagnosis)
    considered = "Before that" if diagnosis.verdict == "clean" else "Also considered"
    parts = [
        *_head(diagnosis),
        *(_action(root) if root is not None else []),
        *_listing("It caused", [_item(finding) for finding in groups.caused]),
        *_listing("Confirmed by", [_item(finding) for finding in groups.confirmed]),
        *_listing("Why", [inline(sentence) for sentence in root.why] if root is not None else []),
        *_listing(considered, [_item(finding, reason=True) for finding in groups.considered]),
        *_unknown(diagnosis),
        *_listing("In order", _timeline(diagnosis)),
        *_ranks(diagnosis),
        *_listing("Set aside", [_item(finding) for finding in groups.noise]),
        *_listing("Warnings", [_warning(*group) for group in words.warnings(diagnosis)]),
        _footer(diagnosis),
    ]
    return "\n\n".join(parts) + "\n"


def inline(text: str) -> str:
    """Text of one line that stays text: no markup, no HTML, no mention, no reference, no link."""
    line = _SIGN.sub(rf"\1{_BREAK}", safe_line(text))
    line = _ADDRESS.sub(rf"\1{_BREAK}", line)
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _MARKUP.sub(r"\\\g<0>", line)
    line = _START.sub(lambda start: f"\\{start[1]}" if start[1] else f"{start[2]}\\{start[3]}", line)
    return line.replace(_BREAK, "&#8203;")  # as an entity it survives any encoding, and `safe` left no other


def code(text: str) -> str:
    """A code span that the text cannot end."""
    line = safe_line(text)
    if not line:
        return "(empty)"
    mark = "`" * (_longest(line) + 1)
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{mark}{pad}{line}{pad}{mark}"


def fence(text: str) -> str:
    """A fenced block that the text cannot end; many lines and long lines give up their middle."""
    lines = safe(text).strip("\n").split("\n")
    if len(lines) > LINES:
        lines = [*lines[:10], f"… {words.plural(len(lines) - LINES, 'more line')} …", *lines[10 - LINES :]]
    body = "\n".join(clip(line, CHARACTERS) for line in lines)
    mark = "`" * max(3, _longest(body) + 1)
    return f"{mark}text\n{body}\n{mark}"


def _longest(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def link(address: str) -> str:
    """A link when the address is plainly one, else code.

    An issue of GitHub is linked through its redirect host: the plain address would leave a "mentioned in" note there.
    """
    if not _LINK.fullmatch(address):
        return code(address)
    return f"[{inline(address)}](<{address.replace('https://github.com/', 'https://redirect.github.com/', 1)}>)"


def _head(diagnosis: Diagnosis) -> list[str]:
    root = diagnosis.root_cause
    kind = words.kind(diagnosis)
    parts = [f"### {kind.capitalize()}: {inline(clip(words.headline(diagnosis), TITLE))}"]
    if root is None or kind == "CLEAN":
        return parts
    named = f"{code(root.signature)}, confidence {words.confidence(root.confidence)}" if root.signature else ""
    first = next(iter(root.evidence), None)
    time = words.clock(root.first_time if first is None or first.origin.time is None else first.origin.time, diagnosis)
    said = [
        named,
        inline(words.seen(diagnosis)),
        f"at {time}" if time else "",
        code(words.place(first, diagnosis)) if first else "",
    ]
    parts.append(", ".join(part for part in said if part) or "No rank is named.")
    if first is not None:
        parts.append(fence(first.text))
        rest = root.evidence[1:]
        more = f" and {len(rest) - 3} more" if len(rest) > 3 else ""
        parts += [f"Also {', '.join(_also(item, diagnosis) for item in rest[:3])}{more}."] if rest else []
    return parts


def _also(evidence: Evidence, diagnosis: Diagnosis) -> str:
    return code(words.place(evidence, diagnosis)) + (
        f" (rank {evidence.origin.rank})" if evidence.origin.rank is not None else ""
    )


def _action(root: Finding) -> list[str]:
    advice = root.remediation
    if not (advice.summary or advice.steps):
        return []
    steps = [f"{number}. {inline(step)}" for number, step in enumerate(advice.steps, 1)]
    return [
        "**What to do**",
        *([inline(advice.summary)] if advice.summary else []),
        *(["\n".join(steps)] if steps else []),
        *(["See " + ", ".join(map(link, advice.references)) + "."] if advice.references else []),
    ]


def _listing(title: str, items: Iterable[str]) -> list[str]:
    lines = [f"- {item}" for item in items]
    if not lines:
        return []
    more = [f"- and {len(lines) - LISTED} more"] if len(lines) > LISTED else []
    return [f"**{title}**", "\n".join(lines[:LISTED] + more)]


def _item(finding: Finding, reason: bool = False) -> str:
    on = f" on {words.ranks(finding.ranks)}" if finding.ranks else ""
    times = f" ({finding.count}×)" if finding.count > 1 else ""
    title = f": {inline(clip(finding.title, TITLE))}"
    lost = f" ({inline('; '.join(finding.why))})" if reason and finding.why else ""
    return f"{code(finding.signature or finding.cluster or 'no name')}{on}{times}{title}{lost}"


def _unknown(diagnosis: Diagnosis) -> list[str]:
    items = []
    for finding in words.others(diagnosis):
        at = f", {code(words.place(finding.evidence[0], diagnosis))}" if finding.evidence else ""
        items.append(_item(finding) + at)
    return _listing("Unknown", items)


def _timeline(diagnosis: Diagnosis) -> list[str]:
    return [
        f"{time or 'no time'}{' ' + ranks if ranks else ''}: {inline(clip(what, TITLE))}"
        for time, ranks, what in words.timeline(diagnosis)
    ]


def _ranks(diagnosis: Diagnosis) -> list[str]:
    if len(diagnosis.ranks) < 2:
        return []
    digits = len(str(max(state.rank for state in diagnosis.ranks)))
    began = words.beginners(diagnosis)
    lines = [
        f"{line.first:>{digits}}-{line.last:<{digits}}  {line.marks}{words.began_here(line, began, 40)}"
        for line in words.rank_grid(diagnosis.ranks, 64, began)
    ]
    legend = words.legend(diagnosis.ranks) + ("   < where it began" if began else "")
    return ["**Ranks**", "```text\n" + "\n".join([*lines, legend]) + "\n```"]


def _warning(sources: list[str], message: str, marker: str) -> str:
    more = f" and {len(sources) - 3} more" if len(sources) > 3 else ""
    of = f"{', '.join(map(code, sources[:3]))}{more}: " if sources else ""
    return f"{of}{inline(clip(message, CHARACTERS))} ({code(marker)})"


def _footer(diagnosis: Diagnosis) -> str:
    stats = diagnosis.stats
    job = words.job(diagnosis.job)
    parts = [
        inline(job) if job else "",
        words.plural(stats.files, "file"),
        words.size(stats.bytes),
        f"{stats.seconds:.1f} s",
        inline(f"catalog {diagnosis.catalog_version}"),
        inline(f"triage {diagnosis.tool_version}"),
    ]
    return " · ".join(part for part in parts if part)
