"""The report for a terminal: the verdict in the first line, then the log line, then what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from triage.base.rank_ranges import format_ranks
from triage.model import Diagnosis, Evidence, Finding
from triage.render import inconclusive, job_warnings, phrases, rank_grid
from triage.render.sanitize import clip, sanitize_line
from triage.render.terminal import LABEL, Paint, columns, ends, fold, join_sections, labelled, wrap

if TYPE_CHECKING:
    from triage.model.store import Recurrence

__all__ = ["name", "quoted", "render"]

name = "text"

WIDTH = 100  # when the reader is not a terminal
NARROWEST = 40
QUOTED_LINES = 12
SHORT_QUOTED_LINES, SHORT_QUOTED_ROWS = 6, 9  # without details, so that the advice stands on the first screen
QUOTED_ROWS = (
    2.5  # rows of text one log line may take before its middle is cut; breaks at spaces take the rest of three
)
OTHER_PLACES = 3  # of the lines that state the same
SEEN_ROWS = 3  # of what people wrote about earlier failures
COPIED = 200  # characters of a word in the advice that is not broken
RIVAL = 0.15  # so much less sure than the root a finding may be that is shown without details
LISTED = 8  # entries of one section before "and n more"
_HEAD_STYLES: dict[phrases.VerdictKind, tuple[str, ...]] = {
    "ROOT CAUSE": ("bold", "red"),
    "UNKNOWN FAILURE": ("bold", "yellow"),
    "SYMPTOMS ONLY": ("bold", "yellow"),
    "INCONCLUSIVE": ("bold", "yellow"),
    "CLEAN": ("bold", "green"),
}


def render(
    diagnosis: Diagnosis,
    *,
    width: int | None = None,
    color: bool = False,
    verbose: bool = True,
    recurrence: Recurrence | None = None,
) -> str:
    """Return the report for a terminal of `width` columns, without control characters of the log.

    Without `verbose` it has no details: what else was considered, but for what may have begun the failure as well, the
    order of events, references.
    """
    page = _Report(diagnosis, max(width or WIDTH, NARROWEST), Paint(color), verbose)
    details = [
        page.considered(page.groups.considered),
        page.timeline(),
        page.section("Ignored", [_joined(page.groups.noise)], "dim"),
    ]
    considered, timeline, ignored = details if verbose else (page.considered(page.rivals()), [], [])
    sections = [
        page.head(),
        *([] if page.root else page.inconclusive()),
        page.recurrence(recurrence),
        page.action(),
        *(page.inconclusive() if page.root else []),
        page.caused(),
        page.section("Confirmed by", [_joined(page.groups.confirmed)]),
        page.section("Why", phrases.root_reasons(diagnosis)),
        considered,
        page.unknown(),
        timeline,
        page.ranks(),
        ignored,
        page.warnings(),
        page.footer(has_more=not verbose and (any(details) or page.has_references)),
    ]
    return join_sections(sections)


def quoted(text: str, width: int, indent: str = "  ", most: int = QUOTED_LINES) -> list[str]:
    """Return log text behind a bar: a long line in at most three rows, of more than `most` lines not the middle."""
    bar = f"{indent}| "
    room = width - len(bar)
    lines = phrases.shorten_lines(text, most)
    return [bar + row for line in lines for row in fold(clip(line, _room(line, room)), room)]


def _room(line: str, room: int) -> int:
    """Return how many characters fit in the rows that one line may take; wide characters make it fewer."""
    return max(int(room * QUOTED_ROWS * len(line) / max(columns(line), 1)), 8)


class _Report:
    """One report; each method returns the lines of one section, none if there is nothing to show."""

    def __init__(self, diagnosis: Diagnosis, width: int, paint: Paint, verbose: bool) -> None:
        self.diagnosis = diagnosis
        self.verbose = verbose
        self.width = width
        self.paint = paint
        self.groups = phrases.group_findings(diagnosis)
        self.root = diagnosis.root_cause

    def section(self, label: str, paragraphs: Iterable[str], *styles: str, longest: int = 0) -> list[str]:
        """Return the paragraphs beside their label."""
        lines = [line for line in map(sanitize_line, paragraphs) if line]
        return labelled(label, lines, self.width, self.paint, *(styles or ("bold",)), longest=longest) if lines else []

    def head(self) -> list[str]:
        """Return the verdict, and where the failure began with its log line."""
        kind = phrases.verdict_kind(self.diagnosis)
        sentence = clip(sanitize_line(phrases.headline(self.diagnosis)), self.width * 3 // 2)
        meta = ""
        if self.root is not None and kind != "CLEAN":
            name = sanitize_line(self.root.signature or self.root.cluster or "")
            meta = f"{name} · confidence {phrases.format_confidence(self.root.confidence)}" if name else ""
        joined = ends(f"{kind}  {sentence}", meta, self.width)
        if meta and len(joined) == 1:
            lines = joined
        else:
            lines = labelled(kind, [sentence], self.width, Paint(False), margin=len(kind) + 2) + wrap(meta, self.width)
        lines[0] = self.paint(kind, *_HEAD_STYLES[kind]) + lines[0].removeprefix(kind)
        return lines if self.root is None or kind == "CLEAN" else lines + self._evidence(self.root)

    def _evidence(self, root: Finding) -> list[str]:
        if not root.evidence:
            return wrap(sanitize_line(phrases.describe_location(root)), self.width)
        first, *others = phrases.distinct_evidence(root)
        time = phrases.describe_root_time(self.diagnosis)
        origin = ", ".join(filter(None, (phrases.describe_line_origin(self.diagnosis), f"at {time}" if time else "")))
        label = phrases.place_label(first)
        place = sanitize_line(phrases.format_place(first, self.diagnosis))
        lines = self._end_with_place(sanitize_line(f"{origin}, {label}" if origin else label), place)
        if not phrases.repeats_title(first, root):
            lines += quoted(first.text, self.width) if self.verbose else self._short_quote(first.text)
        if others:
            rows = wrap(self._other_places(others), self.width)
            lines += [self.paint(row, "dim") for row in rows]
        return lines

    def _end_with_place(self, text: str, place: str) -> list[str]:
        """Return the text with the place behind it; a place that does not fit has its own line, whole, to be copied."""
        *full, last = wrap(text, self.width) or [""]
        joined = f"{last} {place}" if last else place
        if columns(joined) <= self.width:
            return [*full, joined]
        places = [place] if columns(place) <= COPIED and " " not in place else fold(place, self.width)
        return [*full, *([last] if last else []), *places]

    def _other_places(self, others: Sequence[Evidence]) -> str:
        """Return the places that fit whole in two rows, and how many more there are."""
        places = [sanitize_line(_place_and_rank(item, self.diagnosis)) for item in others[:OTHER_PLACES]]
        for count in range(len(places), 0, -1):
            more = len(others) - count
            text = f"also {', '.join(places[:count])}" + (f" and {more} more" if more else "")
            if columns(text) <= self.width * 2 and max(map(columns, places[:count])) <= self.width:
                return text
        ranks = {rank for item in others if (rank := phrases.writer_rank(item)) is not None}
        whose = f" ({format_ranks(ranks)})" if ranks else ""
        return f"also in {phrases.format_count(len(others), 'other place')}{whose}"

    def _short_quote(self, text: str) -> list[str]:
        """Return so many lines of a quote that it leaves room on the first screen, however often they are broken."""
        quotes = (quoted(text, self.width, most=most) for most in range(SHORT_QUOTED_LINES, 0, -1))
        return next((rows for rows in quotes if len(rows) <= SHORT_QUOTED_ROWS), quoted(text, self.width, most=1))

    def inconclusive(self) -> list[list[str]]:
        """Return the sections of an inconclusive report: what is known of the end, and what to add."""
        steps = [f"{number}. {step}" for number, step in enumerate(inconclusive.next_steps(self.diagnosis), 1)]
        return [
            self.section(title, [clip(sanitize_line(row), self.width * 2) for row in _listed(rows)])
            for title, rows in inconclusive.sections(self.diagnosis)
        ] + [self.section("What to add", steps, "bold", "green", longest=COPIED)]

    def recurrence(self, recurrence: Recurrence | None) -> list[str]:
        """Return how often the cause ended jobs before."""
        if recurrence is None:
            return []
        from triage.render.recurrence import describe_recurrence

        sentence = clip(sanitize_line(describe_recurrence(recurrence)), SEEN_ROWS * (self.width - LABEL))
        return self.section("Seen before", [sentence], "bold", "yellow")

    def action(self) -> list[str]:
        """Return what to do, or what to collect next time."""
        if self.root is None:
            return []
        advice = self.root.remediation
        steps = [f"{number}. {step}" for number, step in enumerate(advice.steps, 1)]
        # Addresses and commands are there to be copied: a narrow terminal wraps them itself and they stay whole.
        links = [f"- {link}" for link in advice.references] if self.verbose else []
        paragraphs = [advice.summary, *steps, *links]
        missing = [f"{number}. {step}" for number, step in enumerate(phrases.next_steps(self.diagnosis), 1)]
        return self.section("What to do", paragraphs, "bold", "green", longest=COPIED) + self.section(
            "Next time", missing, "bold", "green", longest=COPIED
        )

    def caused(self) -> list[str]:
        """Return the consequences of the root cause as one paragraph."""
        sentence = phrases.describe_consequences(self.diagnosis)
        names = _joined(self.groups.caused)
        return self.section("It caused", [f"{sentence}: {names}" if sentence else names])

    def rivals(self) -> list[Finding]:
        """Return the findings that may have begun the failure as well: unexplained, and about as sure as the root."""
        if self.root is None or self.root.signature is None:
            return []
        least = self.root.confidence - RIVAL
        return [
            finding
            for finding in self.groups.considered
            if finding.role in ("cause", "either") and not finding.explained_by and finding.confidence >= least
        ]

    def considered(self, findings: Sequence[Finding]) -> list[str]:
        """Return findings that are not the root cause, each reason once, and their consequences in one line."""
        lines = [f"{self._titled(finding)}{reasons}" for finding, reasons in phrases.with_reasons(findings[:LISTED])]
        lines += _more(len(findings))
        if self.verbose and self.groups.aftermath:
            lines.append(f"Their consequences: {_joined(self.groups.aftermath)}")
        return self.section(phrases.considered_label(self.diagnosis), lines)

    def _titled(self, finding: Finding, place: str = "") -> str:
        return f"{phrases.format_finding(finding)}{place}: {clip(sanitize_line(finding.title), self.width)}"

    def unknown(self) -> list[str]:
        """Return the unknown failures that are not the root cause."""
        lines = []
        others = phrases.other_unknowns(self.diagnosis)
        for finding, reasons in phrases.with_reasons(others[:LISTED]):
            places = [f", {phrases.format_place(item, self.diagnosis)}" for item in finding.evidence[:1]]
            lines.append(f"{self._titled(finding, ''.join(places))}{reasons}")
        return self.section("Unknown", lines + _more(len(others)), "bold", "yellow")

    def timeline(self) -> list[str]:
        """Return what happened in time order."""
        moments = phrases.merge_moments(self.diagnosis)
        lines = []
        for time, ranks, what in moments[:LISTED]:
            start = " ".join(part for part in (time or "--:--:--", ranks) if part) + ": "
            lines.append(start + clip(sanitize_line(what), max(self.width - LABEL - len(start), 40)))
        return self.section("In order", lines + _more(len(moments)))

    def ranks(self) -> list[str]:
        """Return the grid of rank states with its legend."""
        states = self.diagnosis.ranks
        if len(states) < 2:
            return []
        digits = len(str(max(state.rank for state in states)))
        room = self.width - LABEL - 2 * digits - 3
        cells = next(size for size in (64, 32, 16, 8) if size <= max(room, 8))
        origins = rank_grid.origin_ranks(self.diagnosis)
        rows, others = rank_grid.select_rows(rank_grid.grid_rows(states, cells, origins), origins)
        lines = []
        for row in rows:
            mark = rank_grid.format_origin_mark(row, origins, room - len(row.marks))
            lines.append(f"{row.first:>{digits}}-{row.last:<{digits}}  {self._painted_marks(row)}{mark}")
        legend = rank_grid.state_legend(states) + ("   < where it began" if origins else "")
        lines += fold(others, self.width - LABEL) if others else []
        head, *rest = [*lines, *fold(legend, self.width - LABEL)]
        return [self.paint("Ranks", "bold") + " " * (LABEL - 5) + head, *(" " * LABEL + line for line in rest)]

    def _painted_marks(self, row: rank_grid.GridRow) -> str:
        if not self.paint.on:
            return row.marks
        blamed = set(self.root.ranks) if self.root is not None else set()
        out = []
        for offset, mark in enumerate(row.marks):
            styles = ("bold", "red") if row.first + offset in blamed else () if mark == "." else ("yellow",)
            out.append(self.paint(mark, *styles))
        return "".join(out)

    def warnings(self) -> list[str]:
        """Return the warnings, each with its sources and its code."""
        lines = []
        warnings = job_warnings.merge_warnings(self.diagnosis)
        for sources, message, code in warnings[:LISTED]:
            origin = f"{phrases.shorten_list(sources)}: " if sources else ""
            lines.append(f"- {clip(sanitize_line(origin + message), self.width * 2)} ({code})")
        return self.section("Warnings", lines + _more(len(warnings)), "bold", "yellow")

    @property
    def has_references(self) -> bool:
        """Does the advice for the root cause name pages to read?"""
        return self.root is not None and bool(self.root.remediation.references)

    def footer(self, *, has_more: bool = False) -> list[str]:
        """Return the job, its size and the versions. `has_more`: -v shows details."""
        parts = [*phrases.footer_parts(self.diagnosis), *(["-v for details"] if has_more else [])]
        lines = wrap(sanitize_line(" · ".join(parts)), self.width, longest=COPIED)
        moments = phrases.merge_moments(self.diagnosis) if self.verbose else []
        times = [phrases.describe_root_time(self.diagnosis), *(time for time, *_ in moments)]
        if any(time.endswith(phrases.OR_LATER) for time in times):
            lines = [*wrap(phrases.OR_LATER_MEANING, self.width), *lines]
        return [self.paint(line.rstrip(), "dim") for line in lines]


def _place_and_rank(evidence: Evidence, diagnosis: Diagnosis) -> str:
    rank = phrases.writer_rank(evidence)
    return phrases.format_place(evidence, diagnosis) + (f" (rank {rank})" if rank is not None else "")


def _joined(findings: Sequence[Finding]) -> str:
    """Return the names of the findings as one list."""
    return ", ".join([*map(phrases.format_finding, findings[:LISTED]), *_more(len(findings))])


def _listed(rows: Sequence[str]) -> list[str]:
    return [*rows[:LISTED], *_more(len(rows))]


def _more(count: int) -> list[str]:
    return [f"and {count - LISTED} more"] if count > LISTED else []
