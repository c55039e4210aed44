"""Draw a flame graph as SVG from collapsed stacks, one `frame;frame;frame COUNT` per line, as py-spy writes them.

Wide frames take long; a frame lies on the one that called it. The picture has no scripts; the name and the share of a
frame are its title. Format: https://github.com/brendangregg/FlameGraph
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape

WIDTH, ROW, FONT = 1200, 17, 11
_LEAST = 0.002  # share of all samples that a frame must have
_LETTER = 6.2  # width in pixels
_COLORS = ("#f7b267", "#f79d65", "#f4845f", "#f27059")


@dataclass
class Frame:
    """A function, how many samples it and what it called have, and what it called."""

    name: str
    samples: int = 0
    callees: dict[str, Frame] = field(default_factory=dict)


def read_stacks(lines: Iterable[str]) -> Frame:
    """Return the root of all stacks; lines of another form are skipped."""
    root = Frame("all")
    for line in lines:
        stack, _, count = line.rstrip().rpartition(" ")
        if not stack or not count.isdecimal():
            continue
        frame = root
        frame.samples += int(count)
        for name in stack.split(";"):
            frame = frame.callees.setdefault(name, Frame(name))
            frame.samples += int(count)
    return root


def draw(root: Frame) -> str:
    """Return the picture."""
    frames = list(_place(root, 0.0, 0, root.samples))
    depth = max((level for _, _, level in frames), default=0) + 1
    height = depth * ROW + 4
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" '
        f'font-size="{FONT}">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fffdf8"/>',
        *(_draw_frame(frame, start, level, root.samples, height) for frame, start, level in frames),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _place(frame: Frame, start: float, level: int, total: int) -> Iterator[tuple[Frame, float, int]]:
    """Yield each frame that is wide enough with its start, in samples, and its level."""
    if not total or frame.samples < total * _LEAST:
        return
    yield frame, start, level
    for callee in sorted(frame.callees.values(), key=lambda callee: callee.name):
        yield from _place(callee, start, level + 1, total)
        start += callee.samples


def _draw_frame(frame: Frame, start: float, level: int, total: int, height: int) -> str:
    x, width = start / total * WIDTH, frame.samples / total * WIDTH
    y = height - (level + 1) * ROW - 2
    color = _COLORS[sum(frame.name.encode()) % len(_COLORS)]
    letters = int((width - 6) / _LETTER)
    name = frame.name if len(frame.name) <= letters else frame.name[: max(0, letters - 1)] + "…"
    text = f'<text x="{x + 3:.1f}" y="{y + 12}">{escape(name)}</text>' if letters > 3 else ""
    title = f"<title>{escape(frame.name)} {frame.samples / total:.1%}</title>"
    return (
        f'<g>{title}<rect x="{x:.1f}" y="{y}" width="{max(0.3, width - 0.5):.1f}" height="{ROW - 1}" '
        f'fill="{color}"/>{text}</g>'
    )
