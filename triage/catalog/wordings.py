"""The words that a pattern spells out, in order: what a message of the same failure is likely to keep."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.catalog.pattern_tree import Branch, Characters, Node, Repeat, Sequence, parse_pattern

MOST_WORDINGS = 12  # of one pattern with alternatives
GAP = "\0"
# White space is a blank; `.*` and `[^:]*` may match whole words, and so stand by themselves.
_SPACES = lazy_re(
    r"(\[\^?\]?(?:\\.|[^\]\\])*\](?:[+*?]|\{\d*,?\d*\})?\??)|\\s(?:[+*?]|\{\d*,?\d*\})?\??|(\.(?:[+*]|\{\d*,?\d*\})\??)|(\\.)",
    re.DOTALL,
)
_TERM = lazy_re(r"[^\W_]+")
_PART = lazy_re(r"(?:[^\W_]|\0)+")
_WITHOUT_SPACE = lazy_re(r"\\[sw]| ")


@dataclass(frozen=True, slots=True)
class Wording:
    r"""Words as the pattern has them. `after_gap` says for each whether any text may stand before it: `.*` or `\d+`."""

    terms: tuple[str, ...]
    after_gap: tuple[bool, ...]


@functools.lru_cache(maxsize=2048)
def list_wordings(pattern: str) -> tuple[Wording, ...]:
    """The wordings of a pattern: one, or several where it has alternatives. Empty if the pattern is not understood."""
    try:
        tree = parse_pattern(mark_spaces(pattern))
    except (ValueError, RecursionError):
        return ()
    return tuple(dict.fromkeys(map(_to_wording, spell_texts(tree))))


def mark_spaces(pattern: str) -> str:
    """The pattern with white space as blanks, and repeats of any text as words of their own."""
    return _SPACES.sub(_write_space, pattern)


def split_words(text: str) -> list[str]:
    """The words and numbers of a text; those of an identifier count one by one."""
    return _TERM.findall(text)


def _write_space(match: re.Match[str]) -> str:
    group: str = match[1] or ""
    if match[2] or (group.startswith("[^") and not _WITHOUT_SPACE.search(group)):
        return " .* "
    return group or match[3] or " "


def spell_texts(node: Node) -> list[str]:
    """The texts that a node stands for, gaps marked; at most MOST_WORDINGS."""
    if isinstance(node, Characters):
        return [_spell_characters(node.choices or frozenset())]
    if isinstance(node, Branch):
        return _limit(itertools.chain.from_iterable(map(spell_texts, node.alternatives)))
    if isinstance(node, Repeat):
        texts = spell_texts(node.item)
        if node.low == 0:
            return _limit([*texts, ""]) if node.high == 1 else [GAP]
        return texts if node.high == 1 else [f"{text}{GAP}" for text in texts]
    return _spell_sequence(node)


def _spell_characters(choices: frozenset[str]) -> str:
    if len({choice.lower() for choice in choices}) == 1:
        return min(choices)
    return " " if choices and not any(map(str.isalnum, choices)) else GAP


def _spell_sequence(node: Sequence) -> list[str]:
    texts = [""]
    for item in node.items:
        texts = _limit(before + after for before in texts for after in spell_texts(item))
    return texts


def _limit(texts: Iterable[str]) -> list[str]:
    return list(itertools.islice(dict.fromkeys(texts), MOST_WORDINGS))


def _to_wording(text: str) -> Wording:
    """Leave out words that touch a gap: of `rank\\d+` only a part is known."""
    terms: list[str] = []
    after_gap: list[bool] = []
    gap = True
    for part, is_known in _parts(text):
        if is_known:
            terms.append(part)
            after_gap.append(gap)
            gap = False
        else:
            gap = True
    return Wording(tuple(terms), tuple(after_gap))


def _parts(text: str) -> Iterable[tuple[str, bool]]:
    """Words of a text in order, and (text, False) where there is a gap or only a part of a word is known."""
    for match in _PART.finditer(text):
        yield match[0], GAP not in match[0]
