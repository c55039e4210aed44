"""The ways in which a condition can hold, and what its patterns are certain to capture then."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from triage.base.lazy_re import lazy_re
from triage.catalog.model import Clause, Leaf
from triage.catalog.pattern_tree import Branch, Characters, Node, Repeat, parse_pattern

MOST_BRANCHES = 200
_TOKEN = lazy_re(
    r"""(?sx)
    \\. | \[ \^? \]? (?: \\. | [^\]\\] )* \]
    | (?P<open> \( (?: \? (?: P<(?P<name> \w+ )> | (?P<negative> <?! ) | <?= | > | [a-zA-Z-]* [:)] ) )? )
    | (?P<close> [)] ) | (?P<branch> [|] ) | (?P<optional> [*?] | \{0,?\d*\} ) | ."""
)

Conjunction = tuple[Leaf, ...]


def list_branches(match: Clause | Leaf | None) -> list[Conjunction]:
    """The sets of leaves of which each makes the condition hold; at most MOST_BRANCHES."""
    if match is None:
        return []
    if isinstance(match, Leaf):
        return [(match,)]
    parts = [list_branches(part) for part in match.parts]
    if match.op == "any":
        return list(itertools.chain.from_iterable(parts))[:MOST_BRANCHES]
    combined = (tuple(itertools.chain.from_iterable(chosen)) for chosen in itertools.product(*parts))
    return list(itertools.islice(combined, MOST_BRANCHES))


def list_certain_captures(leaves: Iterable[Leaf]) -> set[str]:
    """The names that these leaves capture in each text that they match."""
    patterns = (pattern for leaf in leaves for pattern in (leaf.text, *leaf.fields.values()) if pattern)
    return set().union(*(find_groups(pattern).certain for pattern in patterns))


@dataclass
class Groups:
    """The named groups of a pattern: the text inside each, and those that take part in every match."""

    inner: dict[str, list[str]] = field(default_factory=dict)
    certain: set[str] = field(default_factory=set)


@dataclass
class _Open:
    name: str | None
    start: int
    is_negative: bool
    alternatives: list[list[set[str]]] = field(default_factory=lambda: [[]])

    def list_certain(self) -> set[str]:
        certain = set.intersection(*(set().union(*items) for items in self.alternatives))
        return set() if self.is_negative else certain | ({self.name} if self.name else set())


def find_groups(pattern: str) -> Groups:
    """The named groups of a pattern that `verify_pattern` has passed."""
    groups = Groups()
    stack = [_Open(None, 0, is_negative=False)]
    for token in _TOKEN.finditer(pattern):
        items = stack[-1].alternatives[-1]
        if token["open"]:
            if not token["open"].endswith(")"):  # else a flag such as (?i)
                stack.append(_Open(token["name"], token.end(), token["negative"] is not None))
        elif token["close"] and len(stack) > 1:
            closed = stack.pop()
            stack[-1].alternatives[-1].append(closed.list_certain())
            if closed.name:
                groups.inner.setdefault(closed.name, []).append(pattern[closed.start : token.start()])
        elif token["branch"]:
            stack[-1].alternatives.append([])
        elif token["optional"] and items:
            items[-1] = set()
        else:
            items.append(set())
    groups.certain = stack[0].list_certain()
    return groups


def is_bound(inner: str) -> bool:
    """Whether the inside of a group matches only a list of texts, such as `12|13` or `bad (?:read|write)`."""
    try:
        return _is_finite(parse_pattern(inner))
    except (ValueError, re.error, RecursionError):
        return False


def _is_finite(node: Node) -> bool:
    if isinstance(node, Characters):
        return node.choices is not None
    if isinstance(node, Repeat):
        return node.high is not None and node.high <= 1 and _is_finite(node.item)
    return all(map(_is_finite, node.alternatives if isinstance(node, Branch) else node.items))


def iter_patterns(leaves: Iterable[Leaf]) -> Iterator[str]:
    """The patterns of these leaves that must be found."""
    for leaf in leaves:
        yield from filter(None, (leaf.text, *leaf.fields.values()))
