"""What the lines of one source begin with: which layers a launcher put there, and which the program wrote itself.

A launcher's layer stands before (nearly) every line, so that it can be taken off and leaves each program's own output
as it wrote it. A tag
on some lines only, such as the `[rank3]: ` that torch puts before tracebacks, is the program's own text: it says who
wrote the line and stays.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from triage.model.evidence import Origin
from triage.ranks import cuts
from triage.ranks.grammars import BY_START, Grammar, Table
from triage.ranks.habits import SAMPLED, table_of
from triage.ranks.nesting import nested
from triage.ranks.prefix import parse

HEAD = 512
_TELLS = ("rank", "local_rank")
_NAMED: dict[int, dict[str, Grammar]] = {}
_OWN = "c10d rank"  # torch's own excepthook writes it; as a launcher's it must stand before nearly every line
_OUTER, _INNER, _SECOND = 0.5, 0.95, 0.1


class Layer(NamedTuple):
    """One layer of a prefix: where it lies, what it says, where in the line that stands, and what is the same on all
    lines of its writer.
    """

    grammar: Grammar
    start: int
    end: int
    text: str
    said: dict[str, str]
    spans: tuple[tuple[int, int], ...]
    who: str

    @property
    def launched(self) -> bool:
        """Does this kind of layer come from launchers and containers rather than from the program?"""
        return not self.grammar.record

    @property
    def tells(self) -> bool:
        return any(key in self.said for key in _TELLS)


def layers(head: str, table: Table = BY_START) -> list[Layer]:
    """The layers of a line, outermost first. `table` are the grammars that its source may have."""
    named = _NAMED.get(id(table))
    if named is None:  # tables are made once for each set of habits and never go away
        named = _NAMED[id(table)] = {grammar.name: grammar for start in table.values() for grammar in start}
    found = []
    position = 0
    for name in parse(head, table=table).layers:
        grammar = named.get(name)
        match = grammar.pattern.match(head, position) if grammar else None
        if grammar is None or match is None:
            break
        found.append(_layer(grammar, match))
        position = match.end()
    return found


def _layer(grammar: Grammar, match: re.Match[str]) -> Layer:
    keys = [key for key in (*grammar.says, *(("who",) if grammar.named else ())) if match[key]]
    said = {key: match[key] for key in grammar.says if match[key] and not match[key].startswith("-")}
    who = (match["who"] if grammar.named else match.group()) if grammar.writer else ""
    return Layer(grammar, match.start(), match.end(), match.group(), said, tuple(match.span(key) for key in keys), who)


def origin_of_layers(found: Iterable[Layer]) -> Origin:
    """What the layers say together; an inner one knows better."""
    known: dict[str, str] = {}
    for layer in found:
        known.update(layer.said)
    if "task" in known:
        known.setdefault("host", f"task{known['task']}")
    rank, local, pid = (int(known[key]) if key in known else None for key in ("rank", "local_rank", "pid"))
    return Origin(rank=rank, local_rank=local, host=known.get("host"), pid=pid, stream=known.get("stream"))


@dataclass(frozen=True, slots=True)
class Layout:
    """Of one source. `launchers` are names of layers, outermost first; `blanks` how many trailing blanks belong to
    each.

    `mark` is what all outermost launcher
    prefixes begin with. `cut`: a launcher cuts long lines. `inner`: lines behind one launcher prefix come from several
    ranks that tags inside of it tell apart.
    """

    launchers: tuple[str, ...] = ()
    blanks: dict[str, int] = field(default_factory=dict)
    inner: bool = True
    writers: int = 0
    mark: str = ""
    cut: bool = False
    table: Table = field(default_factory=lambda: BY_START)

    @property
    def grammars(self) -> tuple[Grammar, ...]:
        """All that the lines may begin with."""
        return tuple(dict.fromkeys(grammar for start in self.table.values() for grammar in start))

    def outer(self, found: Sequence[Layer]) -> int:
        """How many of the layers, from the outermost, the launchers put there."""
        wanted = 0
        count = 0
        for index, layer in enumerate(found):
            if wanted < len(self.launchers) and layer.grammar.name == self.launchers[wanted]:
                wanted += 1
                count = index + 1
            elif layer.launched:
                break
        return count

    def end(self, layer: Layer) -> int:
        """Where the layer ends, without the blanks that belong to the text behind it."""
        own = len(layer.text) - len(layer.text.rstrip(" "))
        return layer.end - max(0, own - self.blanks.get(layer.grammar.name, own))


def learn(heads: Sequence[str], longest: int = 0) -> tuple[Layout, list[list[Layer]]]:
    """The layout that a sample of lines shows, and the layers of each of them. `longest`: how long the longest line
    there is, in bytes.
    """
    kept = [head for head in heads if head.strip()]
    table = nested(
        table_of(kept[:: max(1, len(kept) // SAMPLED)][:SAMPLED]), "\n".join(kept).encode("utf-8", "replace")
    )
    told = [layers(head, table) for head in kept]
    stacks = [[layer for layer in found if layer.launched] for found in told]
    launchers = _launchers([[layer.grammar.name for layer in stack] for stack in stacks])
    layout = Layout(launchers, _blanks(kept, stacks, launchers), table=table)
    groups: dict[Origin, Counter[tuple[int | None, int | None]]] = defaultdict(Counter)
    for found in told:
        count = layout.outer(found)
        own, inside = found[:count], [layer for layer in found[count:] if layer.tells]
        origin = origin_of_layers(own)
        key = Origin(origin.rank, origin.local_rank, origin.host, origin.pid)
        groups[key][(None, None)] += 0
        if inside:
            said = origin_of_layers(inside)
            groups[key][(said.rank, said.local_rank)] += 1
    writers = {grammar.name for grammar in layout.grammars if grammar.writer}
    keys = {key for grammar in layout.grammars if grammar.name in launchers for key in grammar.says}
    nodes = "task" in keys and keys.isdisjoint(_TELLS)  # several ranks lie behind each label
    inner = writers.isdisjoint(launchers) or nodes or any(_several(counts) for counts in groups.values())
    outermost = {found[0].text for found in told if layout.outer(found)}
    cut = longest <= cuts.LONGEST and not cuts.CUTTING.isdisjoint(launchers)
    return Layout(
        launchers, layout.blanks, inner, len(groups), _common(outermost).rstrip("0123456789"), cut, table
    ), told


def _launchers(stacks: Sequence[Sequence[str]]) -> tuple[str, ...]:
    names: tuple[str, ...] = ()
    rest = list(stacks)
    while rest:
        counts = Counter(stack[len(names)] for stack in rest if len(stack) > len(names))
        if not counts:
            break
        name, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
        if count < len(rest) * (_INNER if names or name == _OWN else _OUTER):
            break
        names += (name,)
        rest = [stack for stack in rest if len(stack) >= len(names) and stack[len(names) - 1] == name]
    return names


def _blanks(heads: Sequence[str], stacks: Sequence[Sequence[Layer]], launchers: Sequence[str]) -> dict[str, int]:
    """The least number of blanks after each launcher layer: what is more belongs to the text (Open MPI before 5 writes
    none).
    """
    least: dict[str, int] = {}
    for head, stack in zip(heads, stacks, strict=True):
        for layer in stack:
            if layer.grammar.name in launchers and head[layer.end :].strip():
                own = len(layer.text) - len(layer.text.rstrip(" "))
                least[layer.grammar.name] = min(own, least.get(layer.grammar.name, own))
    return least


def _several(counts: Counter[tuple[int | None, int | None]]) -> bool:
    common = counts.most_common(2)
    return len(common) > 1 and common[1][1] >= max(1, _SECOND * counts.total())


def _common(texts: Iterable[str]) -> str:
    """What they all begin with."""
    least, most = min(texts, default=""), max(texts, default="")
    return next((least[:index] for index, char in enumerate(least) if char != most[index]), least)
