"""The report as Markdown for a comment on a merge request or an issue; nothing in a log can become active in it.

Log text stands in fences and code spans longer than any run of backticks in it. Names and sentences outside of them are
escaped (CommonMark 2.4), and what GitHub and GitLab turn into links or notifications (`@name`, `#12`, `!12`, bare
addresses) is broken by a zero-width space.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.model import Diagnosis, Evidence, Finding
from triage.render import inconclusive, job_warnings, phrases, rank_grid
from triage.render.sanitize import clip, sanitize_line

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
    """Return the report as Markdown that CommonMark, GitHub and GitLab read the same way."""
    root = diagnosis.root_cause
    groups = phrases.group_findings(diagnosis)
    missing = [f"{number}. {inline(step)}" for number, step in enumerate(phrases.next_steps(diagnosis), 1)]
    considered = [_titled(finding) + inline(why) for finding, why in phrases.with_reasons(groups.considered)]
    parts = [
        *_head(diagnosis),
        *_inconclusive(diagnosis),
        *(_action(root) if root is not None else []),
        *(["**Next time**", "\n".join(missing)] if missing else []),
        *_names("It caused", groups.caused, phrases.describe_consequences(diagnosis)),
        *_names("Confirmed by", groups.confirmed),
        *_listing("Why", map(inline, phrases.root_reasons(diagnosis))),
        *_listing(phrases.considered_label(diagnosis), considered),
        *_names("Their consequences", groups.aftermath),
        *_unknown(diagnosis),
        *_listing("In order", _timeline(diagnosis)),
        *_ranks(diagnosis),
        *_names("Ignored", groups.noise),
        *_listing("Warnings", [_warning(*group) for group in job_warnings.merge_warnings(diagnosis)]),
        inline(" · ".join(phrases.footer_parts(diagnosis, with_path=False))),
    ]
    return "\n\n".join(parts) + "\n"


def inline(text: str) -> str:
    """Return text of one line that stays text: no markup, no HTML, no mention, no reference, no link."""
    line = _SIGN.sub(rf"\1{_BREAK}", sanitize_line(text))
    line = _ADDRESS.sub(rf"\1{_BREAK}", line)
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _MARKUP.sub(r"\\\g<0>", line)
    line = _START.sub(lambda start: f"\\{start[1]}" if start[1] else f"{start[2]}\\{start[3]}", line)
    return line.replace(_BREAK, "&#8203;")  # as an entity it survives any encoding, and `sanitize` left no other


def code(text: str) -> str:
    """Return a code span that the text cannot end."""
    line = sanitize_line(text)
    if not line:
        return "(empty)"
    mark = "`" * (_longest(line) + 1)
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{mark}{pad}{line}{pad}{mark}"


def fence(text: str) -> str:
    """Return a fenced block that the text cannot end; many lines and long lines lose their middle."""
    body = "\n".join(clip(line, CHARACTERS) for line in phrases.shorten_lines(text, LINES))
    mark = "`" * max(3, _longest(body) + 1)
    return f"{mark}text\n{body}\n{mark}"


def _longest(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def link(address: str) -> str:
    """Return a link if the address is plainly one, else code."""
    if not _LINK.fullmatch(address):
        return code(address)
    # A plain link to an issue of GitHub leaves a "mentioned in" note there; a link through its redirect host does not.
    return f"[{inline(address)}](<{address.replace('https://github.com/', 'https://redirect.github.com/', 1)}>)"


def _head(diagnosis: Diagnosis) -> list[str]:
    root = diagnosis.root_cause
    kind = phrases.verdict_kind(diagnosis)
    parts = [f"### {kind.capitalize()}: {inline(clip(phrases.headline(diagnosis), TITLE))}"]
    if root is None or kind == "CLEAN":
        return parts
    items = phrases.distinct_evidence(root)
    first, others = next(iter(items), None), items[1:]
    time = phrases.describe_root_time(diagnosis)
    facts = [
        f"{code(root.signature)}, confidence {phrases.format_confidence(root.confidence)}" if root.signature else "",
        inline(phrases.describe_line_origin(diagnosis)),
        f"at {time}" if time else "",
        code(phrases.format_place(first, diagnosis)) if first else "",
    ]
    parts.append(", ".join(fact for fact in facts if fact) or "No rank is known.")
    if first is not None and not (phrases.repeats_title(first, root) and len(first.text) <= TITLE):
        parts.append(fence(first.text))
    places = phrases.shorten_list([_place_and_rank(item, diagnosis) for item in others])
    return [*parts, f"Also {places}."] if places else parts


def _place_and_rank(evidence: Evidence, diagnosis: Diagnosis) -> str:
    rank = phrases.writer_rank(evidence)
    return code(phrases.format_place(evidence, diagnosis)) + (f" (rank {rank})" if rank is not None else "")


def _inconclusive(diagnosis: Diagnosis) -> list[str]:
    """Return what is known of the end of an inconclusive job, and what to add."""
    parts = [
        part
        for title, rows in inconclusive.sections(diagnosis)
        for part in _listing(title, (inline(clip(row, CHARACTERS)) for row in rows))
    ]
    steps = [f"{number}. {inline(step)}" for number, step in enumerate(inconclusive.next_steps(diagnosis), 1)]
    return [*parts, *(["**What to add**", "\n".join(steps)] if steps else [])]


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


def _names(title: str, findings: Sequence[Finding], sentence: str = "") -> list[str]:
    """Return findings by name, as one paragraph after `sentence`."""
    names = phrases.shorten_list(list(map(_name, findings)), LISTED)
    return [f"**{title}**", f"{sentence}{': ' if sentence else ''}{names}"] if findings else []


def _name(finding: Finding) -> str:
    on = f" on {format_ranks(finding.ranks)}" if finding.ranks else ""
    times = f" ({finding.count}×)" if finding.count > 1 else ""
    return f"{code(finding.signature or finding.cluster or 'no name')}{on}{times}"


def _titled(finding: Finding) -> str:
    return f"{_name(finding)}: {inline(clip(finding.title, TITLE))}"


def _unknown(diagnosis: Diagnosis) -> list[str]:
    items = []
    for finding, reasons in phrases.with_reasons(phrases.other_unknowns(diagnosis)):
        place = f", {code(phrases.format_place(finding.evidence[0], diagnosis))}" if finding.evidence else ""
        items.append(_titled(finding) + place + inline(reasons))
    return _listing("Unknown", items)


def _timeline(diagnosis: Diagnosis) -> list[str]:
    return [
        f"{time or 'no time'}{' ' + ranks if ranks else ''}: {inline(clip(what, TITLE))}"
        for time, ranks, what in phrases.merge_moments(diagnosis)
    ]


def _ranks(diagnosis: Diagnosis) -> list[str]:
    if len(diagnosis.ranks) < 2:
        return []
    digits = len(str(max(state.rank for state in diagnosis.ranks)))
    origins = rank_grid.origin_ranks(diagnosis)
    rows, others = rank_grid.select_rows(rank_grid.grid_rows(diagnosis.ranks, 64, origins), origins)
    lines = [
        f"{row.first:>{digits}}-{row.last:<{digits}}  {row.marks}{rank_grid.format_origin_mark(row, origins, 40)}"
        for row in rows
    ]
    lines += [others] if others else []
    legend = rank_grid.state_legend(diagnosis.ranks) + ("   < where it began" if origins else "")
    return ["**Ranks**", "```text\n" + "\n".join([*lines, legend]) + "\n```"]


def _warning(sources: list[str], message: str, marker: str) -> str:
    origin = f"{phrases.shorten_list(list(map(code, sources)))}: " if sources else ""
    return f"{origin}{inline(clip(message, CHARACTERS))} ({code(marker)})"
