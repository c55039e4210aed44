"""The tags by which training programs name their own rank: `[rank 3/4]`, `[R3]`, `INFO | rank=3 |`.

There is no standard, and in one line any of them may be text: `received from (rank 3)`. So they count in files where
most lines have the same tag at the same place, see file_prefixes.py.
"""

from __future__ import annotations

from triage.ranks.grammar import Grammar, make_grammar

_ANY_START = "[d [a [_ date d a ( _"
# A level, a logger, a source file and their separators.
_HEAD = r"(?:\S{1,60} {1,8}){1,6}?"
_OF_WORLD = r"(?: ?(?:/|of) ?\d{1,6})?"
_NUMBER = rf"[ :=#_-]{{0,2}}(?P<rank>\d{{1,6}}){_OF_WORLD}"
_RANK = rf"(?:(?:global|world|dist|proc(?:ess)?)[ _-]?)?(?:[Rr]ank|RANK|rk|RK){_NUMBER}"
_OPEN, _CLOSE = r"[\[({<]", r"[\])}>]"
_MORE = r"(?:[ ,|;@/][^\])}>\n]{0,60})?"

# Name, an example, and the pattern of the tag.
_FORMS: tuple[tuple[str, str, str], ...] = (
    ("rank in brackets", "[rank {}/4]", rf"{_OPEN}{_RANK}{_MORE}{_CLOSE}:?"),
    ("rank before a separator", "rank{} |", rf"{_RANK} ?(?:[|:>,]|->?)(?= )"),
    ("rank as a setting", "rank={}", rf"(?:global_)?rank=(?P<rank>\d{{1,6}}){_OF_WORLD}(?![\w.])"),
    ("R and a number", "[R{}]", rf"{_OPEN}[Rr](?P<rank>\d{{1,6}}){_CLOSE}:?"),
    ("process in brackets", "[proc {}/4]", rf"{_OPEN}[Pp]roc(?:ess)?{_NUMBER}{_CLOSE}:?"),
    ("GPU in brackets", "[GPU {}]", rf"{_OPEN}(?:[Gg]pu|GPU|cuda)[ :=#_-]?(?P<local_rank>\d{{1,2}}){_CLOSE}:?"),
)


def _at_start(name: str, example: str, tag: str) -> Grammar:
    lines = "\n".join(f"{example.format(rank)} step 3" for rank in (0, 1, 1, 0))
    return make_grammar(f"{name}, first", "record", "programs", _ANY_START, lines, rf"{tag}(?: (?=  )| *)")


def _behind_head(name: str, example: str, tag: str) -> Grammar:
    lines = "\n".join(f"INFO train.py:88 {example.format(rank)} step 3" for rank in (0, 1, 1, 0))
    return make_grammar(name, "record", "programs", _ANY_START, lines, rf"(?={_HEAD}{tag})")


FIRST_TAGS: tuple[Grammar, ...] = tuple(_at_start(*form) for form in _FORMS)
"""Tags with which the message begins; they are removed from it."""
INNER_TAGS: tuple[Grammar, ...] = tuple(_behind_head(*form) for form in _FORMS)
"""Tags behind a level or a logger, which stay in the text."""
