"""The causes and consequences of one incident as a drawing: boxes from the root cause to its last consequences.

Pure functions: a diagnosis in, SVG out. The drawing has no style of its own: the page's style sheet colours `.chain`.
Boxes are links, so that the keyboard reaches them. A folded drawing has its boxes below each other, so it fits a phone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from triage.model.diagnosis import Diagnosis, Finding
from triage.render import phrases
from triage.render.sanitize import clip, sanitize_line, truncate
from triage.render.svg import svg_start

BOX, HEIGHT, GAP, ROOM, MARGIN = 264, 62, 44, 14, 6  # pixels
LETTERS = 36  # of one line in a box
MOST = 12  # boxes of one column
FIT = 4  # columns that fit a desktop; of more the drawing is folded
INDENT, DEEPEST = 14, 5  # of a folded drawing: pixels for each column, and columns that are indented


Places = dict[str, tuple[int, int]]
"""The upper left corner of each box, by the name of its finding."""


@dataclass(frozen=True, slots=True)
class Box:
    """A finding in the drawing; `column` 0 holds the root cause."""

    finding: Finding
    kind: str
    column: int
    causes: tuple[str, ...]


Columns = Mapping[int, Sequence[Box]]


def draw(diagnosis: Diagnosis, links: Mapping[str, str] = {}, *, folded: bool = False) -> str:
    """Return the drawing, empty without consequences; `links` maps the name of a finding to its address.

    It is folded if that is asked for, or if it has more columns than fit a desktop.
    """
    boxes = build_boxes(diagnosis)
    if len(boxes) < 2:
        return ""
    columns: dict[int, list[Box]] = {}
    for box in boxes:
        columns.setdefault(box.column, []).append(box)
    left_out = sum(max(0, len(column) - MOST) for column in columns.values())
    shown = {number: column[:MOST] for number, column in columns.items()}
    folded = folded or len(shown) > FIT
    places, across, down = _places_in_rows(shown) if folded else _places_in_columns(shown)
    name = "chain-folded" if folded else "chain"
    parts = [
        svg_start(across, down, "chain", role="group", aria_labelledby=f"{name}-title {name}-text"),
        f'<title id="{name}-title">Causes and consequences</title>',
        f'<desc id="{name}-text">{escape(describe_chain(boxes))}</desc>',
        *(_elbows if folded else _arrows)(shown, places),
        *(_box(box, places[finding_name(box.finding)], links) for column in shown.values() for box in column),
        "</svg>",
    ]
    if left_out:
        parts.append(f"<p>and {phrases.format_count(left_out, 'more finding')}</p>")
    return "\n".join(parts)


def is_folded(diagnosis: Diagnosis) -> bool:
    """Return whether the drawing has more columns than fit a desktop."""
    return len({box.column for box in build_boxes(diagnosis)}) > FIT


def _places_in_columns(shown: Columns) -> tuple[Places, int, int]:
    """Return the places of the boxes beside each other, and the width and height of the drawing."""
    tall = max(len(column) for column in shown.values())
    across = 2 * MARGIN + len(shown) * BOX + (len(shown) - 1) * GAP
    down = 2 * MARGIN + tall * HEIGHT + (tall - 1) * ROOM
    places = {}
    for number, column in shown.items():
        top = (down - len(column) * HEIGHT - (len(column) - 1) * ROOM) // 2
        for place, box in enumerate(column):
            places[finding_name(box.finding)] = MARGIN + number * (BOX + GAP), top + place * (HEIGHT + ROOM)
    return places, across, down


def _places_in_rows(shown: Columns) -> tuple[Places, int, int]:
    """Return the places of the boxes below each other, and the width and height of the drawing."""
    boxes = [(min(number, DEEPEST), box) for number, column in shown.items() for box in column]
    places = {
        finding_name(box.finding): (MARGIN + depth * INDENT, MARGIN + row * (HEIGHT + ROOM))
        for row, (depth, box) in enumerate(boxes)
    }
    across = 2 * MARGIN + BOX + max(depth for depth, _ in boxes) * INDENT
    return places, across, 2 * MARGIN + len(boxes) * (HEIGHT + ROOM) - ROOM


def build_boxes(diagnosis: Diagnosis) -> list[Box]:
    """Return the root cause and its consequences, each in the column after the last of its causes."""
    root = diagnosis.root_cause
    if root is None:
        return []
    groups = phrases.group_findings(diagnosis)
    kinds = {finding_name(finding): "echo" for finding in groups.caused} | {
        finding_name(finding): "confirmed" for finding in groups.confirmed
    }
    members = {finding_name(finding): finding for finding in (*groups.caused, *groups.confirmed)}
    members.pop(finding_name(root), None)
    names = {*members, finding_name(root)}
    causes = {
        name: [cause for cause in finding.explained_by if cause in names and cause != name]
        for name, finding in members.items()
    }
    level = {finding_name(root): 0}
    for _ in members:  # as far right as the longest way says; a circle stops growing with the number of members
        for name, before in causes.items():
            level[name] = min(max([*[level[cause] for cause in before if cause in level], 0]) + 1, len(members))
    direct = {name: _direct(name, causes, level) for name in members}
    first = Box(root, "symptoms" if phrases.verdict_kind(diagnosis) == "SYMPTOMS ONLY" else "cause", 0, ())
    ordered = sorted(members, key=lambda name: (level[name], members[name].first_time or float("inf"), name))
    ranks = {number: place for place, number in enumerate(sorted(set(level.values())))}
    return [first, *(Box(members[name], kinds[name], ranks[level[name]], direct[name]) for name in ordered)]


def _direct(name: str, causes: Mapping[str, Sequence[str]], level: Mapping[str, int]) -> tuple[str, ...]:
    """Return the causes of a finding without those that cause another of them."""
    own = causes[name]
    return tuple(
        one
        for one in own
        if not any(one in causes.get(other, ()) for other in own if other != one and level[other] > level[one])
    )


def finding_name(finding: Finding) -> str:
    """Return the name by which other findings refer to this one."""
    return finding.signature or finding.cluster or finding.title


def describe_chain(boxes: Sequence[Box]) -> str:
    """Return the chain as sentences."""
    sentences = [f"It began with {_sentence(boxes[0].finding)}."]
    titles = {finding_name(box.finding): box.finding.title for box in boxes}
    for box in boxes[1:]:
        because = " and ".join(titles[cause] for cause in box.causes if cause in titles)
        verb = "confirms it" if box.kind == "confirmed" else f"is a consequence of {because or 'it'}"
        sentences.append(f"{_sentence(box.finding)} {verb}.")
    return sanitize_line(clip(" ".join(sentences), 2000))


def _sentence(finding: Finding) -> str:
    location = phrases.describe_location(finding)
    return f"{finding.title}{f' ({location})' if location else ''}"


def _elbows(shown: Columns, places: Places) -> list[str]:
    """Return the arrows of a folded drawing: down along the left side of the cause, behind the boxes between."""
    parts = []
    for box in (box for column in shown.values() for box in column):
        x, y = places[finding_name(box.finding)]
        for cause in box.causes:
            if cause in places:
                left, top = places[cause]
                start = min(left + INDENT // 2, x - INDENT // 2)
                parts.append(
                    f'<path class="arrow" d="M{start} {top + HEIGHT}V{y + HEIGHT // 2}H{x - 5}"/>'
                    f'<path class="tip" d="M{x} {y + HEIGHT // 2}l-7 -4v8z"/>'
                )
    return parts


def _arrows(shown: Columns, places: Places) -> list[str]:
    parts = []
    for column in shown.values():
        for box in column:
            x, y = places[finding_name(box.finding)]
            for cause in box.causes:
                if cause not in places:
                    continue
                start, top = places[cause]
                a, b, c, d = start + BOX, top + HEIGHT // 2, x, y + HEIGHT // 2
                half = (a + c) // 2
                parts.append(
                    f'<path class="arrow" d="M{a} {b}C{half} {b} {half} {d} {c - 7} {d}"/>'
                    f'<path class="tip" d="M{c} {d}l-8 -4v8z"/>'
                )
    return parts


def _box(box: Box, place: tuple[int, int], links: Mapping[str, str]) -> str:
    x, y = place
    name = finding_name(box.finding)
    count = f" ×{box.finding.count}" if box.finding.count > 1 else ""
    location = _short_location(box.finding, LETTERS - len(count))
    first, second = _lines(sanitize_line(box.finding.title))
    texts = [f'<text x="{x + 10}" y="{y + 19}">{escape(first)}</text>']
    texts += [f'<text x="{x + 10}" y="{y + 34}">{escape(second)}</text>'] if second else []
    texts.append(f'<text class="dim" x="{x + 10}" y="{y + 52}">{escape(location + count)}</text>')
    drawing = f'<rect x="{x}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="6"/>{"".join(texts)}'
    label = sanitize_line(f"{box.kind}: {box.finding.title} {phrases.describe_location(box.finding)}").strip()
    content = f"<title>{escape(sanitize_line(name))}</title>{drawing}"
    if name in links:
        return f'<a class="{box.kind}" href={quoteattr(links[name])} aria-label={quoteattr(label)}>{content}</a>'
    return f'<g class="{box.kind}">{content}</g>'


def _short_location(finding: Finding, room: int) -> str:
    """Return `rank 1 on node1`; numbers of ranks and hosts where their names are too long."""
    full = sanitize_line(phrases.describe_location(finding))
    ranks = phrases.format_count(len(finding.ranks), "rank") if finding.ranks else ""
    hosts = f"on {phrases.format_count(len(finding.hosts), 'host')}" if finding.hosts else ""
    return full if len(full) <= room else truncate(f"{ranks} {hosts}".strip() or full, room)


def _lines(title: str) -> tuple[str, str]:
    """Return a title on at most two lines."""
    if len(title) <= LETTERS:
        return title, ""
    cut = title.rfind(" ", 0, LETTERS + 1)
    cut = cut if cut > LETTERS // 2 else LETTERS
    rest = title[cut:].strip()
    return title[:cut].strip(), truncate(rest, LETTERS)
