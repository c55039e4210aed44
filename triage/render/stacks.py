"""The stacks of all ranks: text for a terminal, JSON ("triage.stacks/1"), and (of render.stack_tree) a merge tree as
SVG.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from triage.artifacts.stacks.model import Board, Group, Member
from triage.model.evidence import Warning
from triage.render import words
from triage.render.json import escaped
from triage.render.layout import Paint, labelled, wrap
from triage.render.safe import clip, safe_line
from triage.render.stack_tree import as_svg, shared, who
from triage.stacks.live.model import phrase

__all__ = ["SCHEMA", "as_json", "as_svg", "as_text"]

SCHEMA = "triage.stacks/1"
WIDTH, NARROWEST, FRAMES = 100, 40, 12


def as_json(board: Board, warnings: Sequence[Warning] = ()) -> str:
    """One JSON object, ended by a newline."""
    document = {
        "schema": SCHEMA,
        "groups": [
            {**_group(group), "members": [_member(member) for member in group.members]} for group in board.groups
        ],
        "helpers": [_member(member) for member in board.helpers],
        "conclusions": [
            {"rule": found.rule, "ranks": list(found.ranks), "text": found.text} for found in board.conclusions
        ],
        "notes": list(board.notes),
        "warnings": [{"code": w.code, "source": w.source, "message": w.message} for w in warnings],
    }
    return escaped(json.dumps(document, ensure_ascii=False, indent=2)) + "\n"


def _group(group: Group) -> dict[str, object]:
    return {"usual": group.usual, "state": group.state.kind, "text": phrase(group.state), "stack": list(group.key)}


def _member(member: Member) -> dict[str, object]:
    dump, state = member.process, member.state
    known = {"label": member.label, "rank": member.rank, "pid": dump.pid, "host": dump.host, "source": dump.source}
    return {
        **known,
        "state": state.kind,
        "text": phrase(state),
        "op": state.op,
        "place": state.place,
        "moved": member.moved,
    }


def as_text(board: Board, warnings: Sequence[Warning] = (), *, width: int | None = None, color: bool = False) -> str:
    """The answer first, then every group with its stack; no control character in it comes from a file."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    count = sum(len(group.members) for group in board.groups)
    blocks = [wrap(f"{words.plural(count, 'stack')} at {words.plural(len(board.groups), 'place')}", columns)]
    found = [safe_line(conclusion.text) for conclusion in board.conclusions[:8]]
    if found:
        blocks.append(labelled("Found", found, columns, paint, "bold", "red"))
    other = "Elsewhere" if any(group.usual for group in board.groups) else "Stands"
    blocks += [_shown(group, other, columns, paint) for group in board.groups]
    if board.helpers:
        told = [f"{member.label}: {phrase(member.state)}" for member in board.helpers]
        blocks.append(
            labelled("No ranks", [safe_line(clip(line, columns)) for line in told[:8]], columns, paint, "bold")
        )
    notes = [*board.notes, *(f"{w.source + ': ' if w.source else ''}{w.message}" for w in warnings)]
    if notes:
        blocks.append(
            labelled(
                "Warnings",
                [f"- {safe_line(clip(note, 2 * columns))}" for note in notes[:8]],
                columns,
                paint,
                "bold",
                "yellow",
            )
        )
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks) + "\n"


def _shown(group: Group, other: str, columns: int, paint: Paint) -> list[str]:
    label = "Most" if group.usual else other
    lines = labelled(
        label,
        [safe_line(f"{who(group)}: {phrase(shared(group))}")],
        columns,
        paint,
        "bold",
        *(() if group.usual else ("yellow",)),
    )
    stack = [clip(safe_line(frame), columns - 15) for frame in group.key[:FRAMES]]
    more = [f"… {len(group.key) - FRAMES} more frames"] if len(group.key) > FRAMES else []
    return [*lines, *(f"             | {frame}" for frame in [*stack, *more])]
