"""The stacks of all ranks: as text, as JSON ("triage.stacks/1") and, from `stack_tree`, as SVG."""

from __future__ import annotations

from collections.abc import Sequence

from triage.artifacts.stacks.comparison import StackComparison
from triage.artifacts.stacks.members import ComparedProcess, Group
from triage.model.evidence import Warning
from triage.render import phrases
from triage.render.json import dump_json
from triage.render.sanitize import clip, sanitize_line
from triage.render.stack_tree import as_svg, format_members, shared_state
from triage.render.terminal import Paint, join_sections, labelled, wrap
from triage.stacks.live.model import format_state

__all__ = ["SCHEMA", "as_json", "as_svg", "as_text"]

SCHEMA = "triage.stacks/1"
WIDTH, NARROWEST, FRAMES = 100, 40, 12


def as_json(board: StackComparison, warnings: Sequence[Warning] = ()) -> str:
    """Return one JSON object, ended by a newline."""
    document = {
        "schema": SCHEMA,
        "groups": [
            {
                "usual": group.is_usual,
                "state": group.state.kind,
                "text": format_state(group.state),
                "stack": list(group.key),
                "members": [_member(member) for member in group.members],
            }
            for group in board.groups
        ],
        "helpers": [_member(member) for member in board.helpers],
        "conclusions": [{"rule": item.rule, "ranks": list(item.ranks), "text": item.text} for item in board.inferences],
        "notes": list(board.notes),
        "warnings": [{"code": w.code, "source": w.source, "message": w.message} for w in warnings],
    }
    return dump_json(document)


def _member(member: ComparedProcess) -> dict[str, object]:
    dump, state = member.process, member.state
    return {
        "label": member.label,
        "rank": member.rank,
        "pid": dump.pid,
        "host": dump.host,
        "source": dump.source,
        "state": state.kind,
        "text": format_state(state),
        "op": state.op,
        "place": state.place,
        "moved": member.has_moved,
    }


def as_text(
    board: StackComparison, warnings: Sequence[Warning] = (), *, width: int | None = None, color: bool = False
) -> str:
    """Return the conclusions, then every group with its stack, without control characters of the files."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    count = sum(len(group.members) for group in board.groups)
    blocks = [
        wrap(f"{phrases.format_count(count, 'stack')} at {phrases.format_count(len(board.groups), 'place')}", columns)
    ]
    conclusions = [sanitize_line(item.text) for item in board.inferences[:8]]
    blocks.append(labelled("Found", conclusions, columns, paint, "bold", "red"))
    fallback_label = "Others" if any(group.is_usual for group in board.groups) else "Ranks"
    blocks += [_format_group(group, fallback_label, columns, paint) for group in board.groups]
    helpers = [f"{member.label}: {format_state(member.state)}" for member in board.helpers[:8]]
    notes = [*board.notes, *(f"{w.source + ': ' if w.source else ''}{w.message}" for w in warnings)][:8]
    helper_lines = [sanitize_line(clip(line, columns)) for line in helpers]
    note_lines = [f"- {sanitize_line(clip(note, 2 * columns))}" for note in notes]
    blocks += [
        labelled("No ranks", helper_lines, columns, paint, "bold"),
        labelled("Warnings", note_lines, columns, paint, "bold", "yellow"),
    ]
    return join_sections(blocks)


def _format_group(group: Group, fallback_label: str, columns: int, paint: Paint) -> list[str]:
    lines = labelled(
        "Most" if group.is_usual else fallback_label,
        [sanitize_line(f"{format_members(group)}: {format_state(shared_state(group))}")],
        columns,
        paint,
        "bold",
        *(() if group.is_usual else ("yellow",)),
    )
    stack = [clip(sanitize_line(frame), columns - 15) for frame in group.key[:FRAMES]]
    more = [f"… {len(group.key) - FRAMES} more frames"] if len(group.key) > FRAMES else []
    return [*lines, *(f"             | {frame}" for frame in [*stack, *more])]
