"""Find texts on which a pattern of the engine regex takes too long: long runs of what its repeats match."""

from __future__ import annotations

from collections.abc import Iterator

from triage.catalog.backtracking import MAX_TEXT, SEARCH_SECONDS, search_text
from triage.catalog.pattern_tree import Branch, Characters, Node, Repeat, Sequence, parse_pattern

FILLERS = ("a", "0", " ", "/", "_", "A", '"', "a ", "a.", "=")  # what `.`, \w, \d, \s and [^…] may stand for
MOST_TEXTS = 400
_MOST_EXAMPLE = 400  # characters of a text that matches
_END = "\x00!"  # what no pattern expects, so that the match fails at the end of a run


def find_slow_text(pattern: str, seconds: float = SEARCH_SECONDS) -> str | None:
    """The first generated text on which one search of the pattern takes longer than that; None if there is none."""
    for text in _generate_texts(pattern):
        try:
            search_text(pattern, text, seconds)
        except TimeoutError:
            return text
    return None


def _generate_texts(pattern: str) -> Iterator[str]:
    tree = parse_pattern(pattern)
    count = 0
    for filler in FILLERS:
        yield filler * MAX_TEXT
        for number in range(_count_repeats(tree)):
            count += 1
            if count > MOST_TEXTS:
                return
            yield _Example(filler, number).write(tree)[: MAX_TEXT - len(_END)] + _END


def _count_repeats(node: Node) -> int:
    if isinstance(node, Sequence):
        return sum(map(_count_repeats, node.items))
    if isinstance(node, Branch):
        return sum(map(_count_repeats, node.alternatives))
    return 1 + _count_repeats(node.item) if isinstance(node, Repeat) else 0


class _Example:
    """Writes a text that the pattern nearly matches, with one of its repeats as long as possible."""

    def __init__(self, filler: str, longest: int) -> None:
        self._filler = filler
        self._longest = longest
        self._repeats = 0

    def write(self, node: Node) -> str:
        if isinstance(node, Characters):
            return self._filler if node.choices is None else min(node.choices, default="")
        if isinstance(node, Sequence):
            return "".join(map(self.write, node.items))
        if isinstance(node, Branch):
            first, *_ = [self.write(one) for one in node.alternatives]  # all, so that all repeats are counted
            return first
        is_longest = self._repeats == self._longest
        self._repeats += 1
        item = self.write(node.item) or self._filler
        if is_longest:
            return item * (MAX_TEXT // len(item) if node.high is None else node.high)
        return (item * max(node.low, 1))[:_MOST_EXAMPLE]
