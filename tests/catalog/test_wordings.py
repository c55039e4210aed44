"""The words that a pattern spells out."""

from __future__ import annotations

import pytest

from triage.catalog.match import positive_leaves
from triage.catalog.model import Catalog
from triage.catalog.wordings import MOST_WORDINGS, list_wordings, split_words


def show(pattern: str) -> list[str]:
    """Return each wording as a line, with … where any text may stand in between."""
    return [
        " ".join(f"… {term}" if gap and place else term for place, (term, gap) in enumerate(zip(*pair, strict=True)))
        for pair in ((wording.terms, wording.after_gap) for wording in list_wordings(pattern))
    ]


@pytest.mark.parametrize(
    ("pattern", "wordings"),
    [
        (r"remote process exited or there was a network error", ["remote process exited or there was a network error"]),
        (r"peer (?P<peer>\S+) with status=12\b", ["peer … with status 12"]),
        (r"Kill(?:ed)? process", ["Killed process", "Kill process"]),
        (r"(?:recv|send) operation", ["recv operation", "send operation"]),
        (r"[Tt]imed\s+out", ["Timed out"]),
        (r"world[ _]size\(s\)", ["world size s"]),
        (r"NCCL.*timeout[^\n]{0,40}seq", ["NCCL … timeout … seq"]),
        (r"rank\d+ is lost", ["is lost"]),
        (r"a(?!b) lookahead(?P<x>y)\1", ["a"]),
        (r"(", []),
    ],
)
def test_words_and_gaps(pattern: str, wordings: list[str]) -> None:
    """Spelled words stay in order, gaps are marked, and a word of which only a part is known is left out."""
    assert show(pattern) == wordings


def test_alternatives_are_limited() -> None:
    """A pattern with many alternatives gives some of its wordings, always the same."""
    pattern = " ".join(f"(?:a{number}|b{number})" for number in range(6))
    assert len(list_wordings(pattern)) == MOST_WORDINGS
    assert len(list_wordings("(?:a|b|c) d")) == 3


def test_words_of_a_text() -> None:
    """Identifiers count word by word, so that punctuation does not matter."""
    assert split_words("NCCL WARN NET/IB: world_size=8") == ["NCCL", "WARN", "NET", "IB", "world", "size", "8"]


def test_shipped_patterns_have_words(catalog: Catalog) -> None:
    """Nearly every pattern of the catalog spells out a word."""
    texts = {leaf.text for one in catalog.signatures for leaf in positive_leaves(one.match) if leaf.text}
    silent = [text for text in texts if not any(wording.terms for wording in list_wordings(text))]
    assert len(silent) < len(texts) / 20, silent
