"""The literals in lines that differ only in digits."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.scan import literals_by_mask
from triage.scan.literals_by_mask import LiteralsByMask

PIECES = st.sampled_from((b"0x", b"x1", b"1", b"20", b"NCCL", b" 3", b"rank ", b"0", b"\n", b"err"))
TEXTS = st.lists(PIECES, min_size=1, max_size=4).map(b"".join)


@given(st.lists(TEXTS, min_size=1, max_size=8, unique=True), st.lists(TEXTS, max_size=30))
def test_the_literals_are_those_that_in_finds(literals: list[bytes], lines: list[bytes]) -> None:
    """Also where a line has the mask of an earlier one, and where 0x makes a mask of its own elsewhere."""
    by_mask = LiteralsByMask(literals)
    for line in lines:
        assert by_mask.find(line) == tuple(number for number, literal in enumerate(literals) if literal in line)


@pytest.mark.parametrize(("masks", "searches"), [(2, 2), (1, 3)])
def test_few_masks_are_remembered(monkeypatch: pytest.MonkeyPatch, masks: int, searches: int) -> None:
    """A line whose mask is remembered is not searched for every literal; too many masks are forgotten together."""
    monkeypatch.setattr(literals_by_mask, "_MOST_MASKS", masks)
    searched: list[bytes] = []
    search = LiteralsByMask._find_in_mask
    monkeypatch.setattr(LiteralsByMask, "_find_in_mask", lambda self, mask: searched.append(mask) or search(self, mask))
    by_mask = LiteralsByMask([b"rank 3"])
    assert [by_mask.find(line) for line in (b"rank 3", b"host a", b"rank 4", b"rank 5")] == [(0,), (), (), ()]
    assert len(searched) == searches
