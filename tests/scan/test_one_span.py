"""triage.scan.one_span: which cells of a file later stages read."""

from __future__ import annotations

import pytest

from triage.scan.edges import TAIL
from triage.scan.interface import CELL, SPAN
from triage.scan.lines import HitGroup
from triage.scan.one_span import cells_between, cells_read_later

SIZE = 20 * CELL
SAMPLES = {3, 7, 11, 15}


@pytest.mark.parametrize(
    ("size", "hit_end", "cells"),
    [
        (SIZE, None, {0, 19}),
        (SIZE, SIZE - TAIL, {0, *range(18, 22)}),
        (SIZE, SIZE - TAIL + 1, {0, *range(18, 22), *SAMPLES}),
        (SPAN, None, {0, 31}),
        (SPAN + CELL, None, {0, 6, 13, 19, 26, 32}),
        (100, None, {0}),
    ],
)
def test_later_stages_read_ends_hits_and_samples(size: int, hit_end: int | None, cells: set[int]) -> None:
    """Both ends and what is around hits; samples between the ends where a hit is at the end, or other spans follow."""
    group = HitGroup(8)
    if hit_end is not None:
        group.add(hit_end - 50, hit_end, (1,))
    assert cells_read_later({((1,), b""): group}, size) == cells


@pytest.mark.parametrize(
    ("start", "stop", "cells"),
    [(-5, CELL, {0}), (0, CELL + 1, {0, 1}), (CELL - 1, CELL + 1, {0, 1}), (CELL, 2 * CELL, {1}), (0, 0, set())],
)
def test_cells_have_the_bytes_between_offsets(start: int, stop: int, cells: set[int]) -> None:
    """A cell counts if one of its bytes lies between the offsets."""
    assert cells_between(start, stop) == cells
