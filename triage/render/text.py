"""For the engineer at three in the morning: the verdict in the first line, then the line of the log, then what to do."""

from __future__ import annotations

from collections.abc import Iterable

from triage.model.diagnosis import Diagnosis, Finding
from triage.model.evidence import Evidence
from triage.render import words
from triage.render.layout import LABEL, Paint, columns, ends, fold, labelled, wrap
from triage.render.safe import clip, safe, safe_line

__all__ = ["name", "quoted", "render"]

name = "text"

WIDTH = 100  # when the reader is not a terminal
NARROWEST = 40
QUOTED_LINES = 12
QUOTED_ROWS = (
    2.5  # rows of text one log line may take before its middle is cut; breaks at spaces take the rest of three
)
COPIED = 200  # characters of a word in the advice that is not broken
LISTED = 8  # entries of one section before "and n more"
_HEAD_STYLES: dict[words.Kind, tuple[str, ...]] = {
    "ROOT CAUSE": ("bold", "red"),
    "UNKNOWN FAILURE": ("bold", "yellow"),
    "SYMPTOMS ONLY": ("bold", "yellow"),
    "CLEAN": ("bold", "green"),
}


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False) -> str:
    """The report for a terminal of `width` columns; no control character in it comes from a log."""
    page = _Page(diagnosis, max(width or WIDTH, NARROWEST), Paint(color))
    sections = [
        page.head(),
        page.action(),
        page.caused(),
        page.confirmed(),
        page.why(),
        page.considered(),
        page.unknown(),
        page.timeline(),
        page.ranks(),
        page.noise(),
        page.warnings(),
        page.footer(),
    ]
    return "\n\n".join("\n".join(line.rstrip() for line in section) for section in sections if section) + "\n"


def quoted(text: str, width: int, indent: str = "  ") -> list[str]:
    """Log text behind a bar: long lines folded, and cut in the middle after three rows; many lines cut in the middle."""
    bar = f"{indent}| "
    room = width - len(bar)
    lines = safe(text).strip("\n").split("\n")
    if len(lines) > QUOTED_LINES:
        left_out = len(lines) - QUOTED_LINES
        lines = [*lines[:4], f"… {words.plural(left_out, 'more line')} …", *lines[4 + left_out :]]
    return [bar + row for line in lines for row in fold(clip(line, _room(line, room)), room)]


def _room(line: str, room: int) -> int:
    """Characters that fit in the rows one line may take; wide characters make it fewer."""
    return max(int(room * QUOTED_ROWS * len(line) / max(columns(line), 1)), 8)


class _Page:
    """One report; every method gives the lines of one section, none where there is nothing to say."""

    def __init__(self, diagnosis: Diagnosis, width: int, paint: Paint) -> None:
        self.diagnosis = diagnosis
        self.width = width
        self.paint = paint
        self.groups = words.groups(diagnosis)
        self.root = diagnosis.root_cause

    def section(self, label: str, paragraphs: Iterable[str], *styles: str, longest: int = 0) -> list[str]:
        kept = [line for line in map(safe_line, paragraphs) if line]
        return labelled(label, kept, self.width, self.paint, *(styles or ("bold",)), longest=longest) if kept else []

    def head(self) -> list[str]:
        kind = words.kind(self.diagnosis)
        sentence = clip(safe_line(words.headline(self.diagnosis)), self.width * 3 // 2)
        meta = ""
        if self.root is not None and kind != "CLEAN":
            name = safe_line(self.root.signature or self.root.cluster or "")
            meta = f"{name} · confidence {words.confidence(self.root.confidence)}" if name else ""
        joined = ends(f"{kind}  {sentence}", meta, self.width)
        if meta and len(joined) == 1:
            lines = [self._painted(kind, joined[0])]
        else:
            lines = [*self._titled(kind, sentence), *wrap(meta, self.width)]
        if self.root is None or kind == "CLEAN":
            return lines
        return lines + self._where(self.root)

    def _titled(self, kind: words.Kind, sentence: str) -> list[str]:
        first, *rest = labelled(kind, [sentence], self.width, Paint(False), margin=len(kind) + 2)
        return [self._painted(kind, first), *rest]

    def _painted(self, kind: words.Kind, line: str) -> str:
        return self.paint(kind, *_HEAD_STYLES[kind]) + line.removeprefix(kind)

    def _where(self, root: Finding) -> list[str]:
        if not root.evidence:
            return wrap(safe_line(words.who(root)), self.width)
        first, *rest = root.evidence
        time = words.clock(first.origin.time if first.origin.time is not None else root.first_time, self.diagnosis)
        said = [words.seen(self.diagnosis), f"at {time}" if time else "", _line(first, self.diagnosis)]
        lines = fold(safe_line(", ".join(part for part in said if part)), self.width)
        lines += quoted(first.text, self.width)
        if rest:
            others = ", ".join(_also(item, self.diagnosis) for item in rest[:3]) + (
                f" and {len(rest) - 3} more" if len(rest) > 3 else ""
            )
            lines += [
                self.paint(line.rstrip(), "dim")
                for line in fold(clip(safe_line(f"also {others}"), self.width * 2), self.width)
            ]
        return lines

    def action(self) -> list[str]:
        if self.root is None:
            return []
        advice = self.root.remediation
        steps = [f"{number}. {step}" for number, step in enumerate(advice.steps, 1)]
        # Addresses and commands are there to be copied: a narrow terminal wraps them itself and they stay whole.
        paragraphs = [advice.summary, *steps, *(f"- {link}" for link in advice.references)]
        return self.section("What to do", paragraphs, "bold", "green", longest=COPIED)

    def caused(self) -> list[str]:
        return self.section("It caused", self._listed(self.groups.caused))

    def confirmed(self) -> list[str]:
        return self.section("Confirmed by", self._listed(self.groups.confirmed))

    def _listed(self, findings: list[Finding], reasons: bool = False) -> list[str]:
        shown = []
        for finding in findings[:LISTED]:
            lost = _reasons(finding) if reasons else ""
            shown.append(f"{words.summary(finding)}: {clip(safe_line(finding.title), self.width)}{lost}")
        return shown + _more(len(findings))

    def why(self) -> list[str]:
        return self.section("Why", self.root.why) if self.root is not None else []

    def considered(self) -> list[str]:
        label = "Before that" if self.diagnosis.verdict == "clean" else "Considered"
        return self.section(label, self._listed(self.groups.considered, reasons=True))

    def unknown(self) -> list[str]:
        lines = []
        others = words.others(self.diagnosis)
        for finding in others[:LISTED]:
            first = next(iter(finding.evidence), None)
            at = f", {words.place(first, self.diagnosis)}" if first is not None else ""
            lines.append(
                f"{words.summary(finding)}{at}: {clip(safe_line(finding.title), self.width)}{_reasons(finding)}"
            )
        return self.section("Unknown", lines + _more(len(others)), "bold", "yellow")

    def timeline(self) -> list[str]:
        moments = words.timeline(self.diagnosis)
        lines = []
        for time, ranks, what in moments[:LISTED]:
            start = " ".join(part for part in (time or "--:--:--", ranks) if part) + ": "
            lines.append(start + clip(safe_line(what), max(self.width - LABEL - len(start), 40)))
        return self.section("In order", lines + _more(len(moments)))

    def ranks(self) -> list[str]:
        states = self.diagnosis.ranks
        if len(states) < 2:
            return []
        digits = len(str(max(state.rank for state in states)))
        room = self.width - LABEL - 2 * digits - 3
        cells = next(size for size in (64, 32, 16, 8) if size <= max(room, 8))
        lines = []
        began = words.beginners(self.diagnosis)
        for line in words.rank_grid(states, cells, began):
            here = words.began_here(line, began, room - len(line.marks))
            lines.append(f"{line.first:>{digits}}-{line.last:<{digits}}  {self._marks(line)}{here}")
        head, *rest = lines
        margin = " " * LABEL
        return [
            self.paint("Ranks", "bold") + " " * (LABEL - 5) + head,
            *(margin + line for line in rest),
            *(
                margin + line
                for line in fold(words.legend(states) + ("   < where it began" if began else ""), self.width - LABEL)
            ),
        ]

    def _marks(self, line: words.GridLine) -> str:
        blamed = set(self.root.ranks) if self.root is not None else set()
        if not self.paint.on:
            return line.marks
        out = []
        for offset, mark in enumerate(line.marks):
            styles = ("bold", "red") if line.first + offset in blamed else () if mark == "." else ("yellow",)
            out.append(self.paint(mark, *styles))
        return "".join(out)

    def noise(self) -> list[str]:
        noise = self.groups.noise
        listed = ", ".join(words.summary(finding) for finding in noise[:LISTED])
        return self.section("Set aside", [listed, *_more(len(noise))], "dim")

    def warnings(self) -> list[str]:
        lines = []
        found = words.warnings(self.diagnosis)
        for sources, message, code in found[:LISTED]:
            more = f" and {len(sources) - 3} more" if len(sources) > 3 else ""
            of = f"{', '.join(sources[:3])}{more}: " if sources else ""
            lines.append(f"- {clip(safe_line(of + message), self.width * 2)} ({code})")
        return self.section("Warnings", lines + _more(len(found)), "bold", "yellow")

    def footer(self) -> list[str]:
        stats = self.diagnosis.stats
        parts = [
            words.job(self.diagnosis.job),
            self.diagnosis.job.path,
            words.plural(stats.files, "file"),
            words.size(stats.bytes),
            f"{stats.seconds:.1f} s",
            f"catalog {self.diagnosis.catalog_version}",
            f"triage {self.diagnosis.tool_version}",
        ]
        lines = fold(safe_line(" · ".join(part for part in parts if part)), self.width)
        return [self.paint(line.rstrip(), "dim") for line in lines]


def _line(evidence: Evidence, diagnosis: Diagnosis) -> str:
    return ("line " if evidence.line is not None else "") + words.place(evidence, diagnosis)


def _also(evidence: Evidence, diagnosis: Diagnosis) -> str:
    rank = f" (rank {evidence.origin.rank})" if evidence.origin.rank is not None else ""
    return words.place(evidence, diagnosis) + rank


def _reasons(finding: Finding) -> str:
    return f" ({safe_line('; '.join(finding.why))})" if finding.why else ""


def _more(count: int) -> list[str]:
    return [f"and {count - LISTED} more"] if count > LISTED else []
