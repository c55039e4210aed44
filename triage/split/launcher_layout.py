"""The layout of one source for splitting: which prefixes a launcher wrote, and which the program wrote itself.

A launcher's prefix stands before (nearly) every line; it can be removed, which leaves the output as the program wrote
it. A tag on some lines only, such as the `[rank3]: ` that torch puts before tracebacks, is the program's own text: it
names the writer and stays.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from triage.model.evidence import Origin
from triage.ranks.file_prefixes import SAMPLED_LINES, detect_table
from triage.ranks.grammar import Grammar, Table
from triage.ranks.grammars import BY_START
from triage.ranks.layouts import CUTTING_PREFIXES, LONGEST_CUT_LINE
from triage.ranks.nesting import resolve_labels
from triage.ranks.prefix import parse_prefix

HEAD = 512
_RANK_PARTS = ("rank", "local_rank")
_BY_NAME: dict[int, dict[str, Grammar]] = {}
_TORCH_TAG = "c10d rank"  # torch's excepthook writes it too; as a launcher's it must stand before nearly every line
_OUTERMOST_SHARE, _INNER_SHARE, _SEVERAL_SHARE = 0.5, 0.95, 0.1


class Layer(NamedTuple):
    """One layer of a parsed prefix.

    `parts` are the values of its groups and `spans` their places in the line. `writer` is the text that is the same on
    all lines of the writer.
    """

    grammar: Grammar
    start: int
    end: int
    text: str
    parts: dict[str, str]
    spans: tuple[tuple[int, int], ...]
    writer: str

    @property
    def is_launcher(self) -> bool:
        """Do launchers and containers write this kind of layer, rather than the program?"""
        return not self.grammar.is_record

    @property
    def names_rank(self) -> bool:
        """Does it hold a rank or a local rank?"""
        return any(key in self.parts for key in _RANK_PARTS)


def parse_layers(head: str, table: Table = BY_START) -> list[Layer]:
    """Return the layers of a line's prefix, outermost first. `table` has the grammars of its source."""
    by_name = _BY_NAME.get(id(table))
    if by_name is None:  # tables are made once for each set of file prefixes and live as long as the process
        by_name = _BY_NAME[id(table)] = {grammar.name: grammar for start in table.values() for grammar in start}
    layers = []
    position = 0
    for name in parse_prefix(head, table=table).layers:
        grammar = by_name.get(name)
        match = grammar.pattern.match(head, position) if grammar else None
        if grammar is None or match is None:
            break
        layers.append(_layer(grammar, match))
        position = match.end()
    return layers


def _layer(grammar: Grammar, match: re.Match[str]) -> Layer:
    keys = [key for key in (*grammar.origin_parts, *(("who",) if grammar.has_writer_group else ())) if match[key]]
    parts = {key: match[key] for key in grammar.origin_parts if match[key] and not match[key].startswith("-")}
    writer = (match["who"] if grammar.has_writer_group else match.group()) if grammar.is_writer else ""
    return Layer(
        grammar, match.start(), match.end(), match.group(), parts, tuple(match.span(key) for key in keys), writer
    )


def origin_of_layers(layers: Iterable[Layer]) -> Origin:
    """Combine the parts of the layers; an inner layer overrides an outer one."""
    parts = {key: value for layer in layers for key, value in layer.parts.items()}
    if "task" in parts:
        parts.setdefault("host", f"task{parts['task']}")
    rank, local, pid = (int(parts[key]) if key in parts else None for key in ("rank", "local_rank", "pid"))
    return Origin(rank=rank, local_rank=local, host=parts.get("host"), pid=pid, stream=parts.get("stream"))


@dataclass(frozen=True, slots=True)
class LauncherLayout:
    """The launcher prefixes of one source.

    `launchers` are the names of their layers, outermost first. `blanks` is how many trailing blanks belong to each.
    `mark` is the text that all outermost launcher prefixes begin with. `cuts_lines`: a launcher cuts long lines.
    `has_inner_ranks`: several ranks write behind one launcher prefix, and inner tags tell them apart. `writers` is how
    many launcher prefixes differ.
    """

    launchers: tuple[str, ...] = ()
    blanks: dict[str, int] = field(default_factory=dict)
    has_inner_ranks: bool = True
    writers: int = 0
    mark: str = ""
    cuts_lines: bool = False
    table: Table = field(default_factory=lambda: BY_START)

    @property
    def grammars(self) -> tuple[Grammar, ...]:
        """All grammars that a line of the source may begin with."""
        return tuple(dict.fromkeys(grammar for start in self.table.values() for grammar in start))

    def count_launcher_layers(self, layers: Sequence[Layer]) -> int:
        """Return how many of the layers, counted from the outermost, launchers wrote."""
        matched = 0
        count = 0
        for index, layer in enumerate(layers):
            if matched < len(self.launchers) and layer.grammar.name == self.launchers[matched]:
                matched += 1
                count = index + 1
            elif layer.is_launcher:
                break
        return count

    def end_of(self, layer: Layer) -> int:
        """Return where the layer ends, without the blanks that belong to the text behind it."""
        own = len(layer.text) - len(layer.text.rstrip(" "))
        return layer.end - max(0, own - self.blanks.get(layer.grammar.name, own))


def detect_layout(heads: Sequence[str], longest: int = 0) -> tuple[LauncherLayout, list[list[Layer]]]:
    """Return the layout and each line's layers by sampled line starts; the longest line has `longest` bytes."""
    lines = [head for head in heads if head.strip()]
    table = resolve_labels(
        detect_table(lines[:: max(1, len(lines) // SAMPLED_LINES)][:SAMPLED_LINES]),
        "\n".join(lines).encode("utf-8", "replace"),
    )
    layers = [parse_layers(head, table) for head in lines]
    stacks = [[layer for layer in of_line if layer.is_launcher] for of_line in layers]
    launchers = _detect_launchers([[layer.grammar.name for layer in stack] for stack in stacks])
    layout = LauncherLayout(launchers, _count_blanks(lines, stacks, launchers), table=table)
    inner_ranks = _inner_ranks(layout, layers)
    outermost = {of_line[0].text for of_line in layers if layout.count_launcher_layers(of_line)}
    return LauncherLayout(
        launchers,
        layout.blanks,
        _has_inner_ranks(layout, inner_ranks.values()),
        len(inner_ranks),
        _common_start(outermost).rstrip("0123456789"),
        longest <= LONGEST_CUT_LINE and not CUTTING_PREFIXES.isdisjoint(launchers),
        table,
    ), layers


_RankCounts = Counter[tuple[int | None, int | None]]


def _inner_ranks(layout: LauncherLayout, layers: Iterable[list[Layer]]) -> dict[Origin, _RankCounts]:
    """Count, for each writer that launcher prefixes name, the ranks that the inner layers name."""
    counts: dict[Origin, _RankCounts] = defaultdict(Counter)
    for of_line in layers:
        count = layout.count_launcher_layers(of_line)
        origin = origin_of_layers(of_line[:count])
        key = Origin(origin.rank, origin.local_rank, origin.host, origin.pid)
        counts[key][(None, None)] += 0
        inside = [layer for layer in of_line[count:] if layer.names_rank]
        if inside:
            inner = origin_of_layers(inside)
            counts[key][(inner.rank, inner.local_rank)] += 1
    return counts


def _has_inner_ranks(layout: LauncherLayout, counts: Iterable[_RankCounts]) -> bool:
    writers = {grammar.name for grammar in layout.grammars if grammar.is_writer}
    launchers = [grammar for grammar in layout.grammars if grammar.name in layout.launchers]
    parts = {key for grammar in launchers for key in grammar.origin_parts}
    labels_nodes = "task" in parts and parts.isdisjoint(_RANK_PARTS)  # several ranks are behind each label
    return writers.isdisjoint(layout.launchers) or labels_nodes or any(_has_several(ranks) for ranks in counts)


def _has_several(counts: _RankCounts) -> bool:
    common = counts.most_common(2)
    return len(common) > 1 and common[1][1] >= max(1, _SEVERAL_SHARE * counts.total())


def _detect_launchers(stacks: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the layers that stand before (nearly) every line, outermost first."""
    names: tuple[str, ...] = ()
    rest = list(stacks)
    while rest:
        counts = Counter(stack[len(names)] for stack in rest if len(stack) > len(names))
        if not counts:
            break
        name, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
        if count < len(rest) * (_INNER_SHARE if names or name == _TORCH_TAG else _OUTERMOST_SHARE):
            break
        names += (name,)
        rest = [stack for stack in rest if len(stack) >= len(names) and stack[len(names) - 1] == name]
    return names


def _count_blanks(heads: Sequence[str], stacks: Sequence[Sequence[Layer]], launchers: Sequence[str]) -> dict[str, int]:
    """Return the least number of blanks behind each launcher layer: more than that belong to the text.

    Open MPI before 5 writes none.
    """
    least: dict[str, int] = {}
    for head, stack in zip(heads, stacks, strict=True):
        for layer in stack:
            if layer.grammar.name in launchers and head[layer.end :].strip():
                own = len(layer.text) - len(layer.text.rstrip(" "))
                least[layer.grammar.name] = min(own, least.get(layer.grammar.name, own))
    return least


def _common_start(texts: Iterable[str]) -> str:
    """Return what all texts begin with."""
    least, most = min(texts, default=""), max(texts, default="")
    return next((least[:index] for index, char in enumerate(least) if char != most[index]), least)
