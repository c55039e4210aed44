"""triage.render.rankmap"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from hypothesis import given, strategies as st

from triage.model.diagnosis import RankState
from triage.render import rankmap

SVG = "{http://www.w3.org/2000/svg}"
STATES = ("failed", "killed", "stalled", "silent", "ok")


def states(*named: str) -> list[RankState]:
    return [RankState(rank, None, state) for rank, state in enumerate(named)]  # type: ignore[arg-type]


def cells(drawing: str, state: str, width: int) -> set[int]:
    """The ranks that the rectangles of a state cover."""
    covered: set[int] = set()
    for path in ElementTree.fromstring(drawing).iter(f"{SVG}path"):
        if path.get("class") == state:
            for x, y, across, down in re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)", path.get("d", "")):
                left, top = (int(x) - rankmap.LABEL) // rankmap.CELL, (int(y) - rankmap.TOP) // rankmap.CELL
                for row in range(top, top + (int(down) + rankmap.GAP) // rankmap.CELL):
                    covered |= {
                        row * width + left + column for column in range((int(across) + rankmap.GAP) // rankmap.CELL)
                    }
    return covered


@given(st.lists(st.sampled_from(STATES), min_size=2, max_size=400))
def test_every_rank_is_drawn_once_in_its_state(named: list[str]) -> None:
    """The rectangles of a state cover the ranks that are in it, and no other."""
    drawing = rankmap.draw(states(*named))
    for state in STATES:
        assert cells(drawing, state, rankmap.columns(len(named))) == {
            rank for rank, own in enumerate(named) if own == state
        }


def test_ten_thousand_ranks_stay_small() -> None:
    """Runs are drawn, not cells: a few odd ranks among ten thousand cost a few kilobytes, the worst mixture less than
    200.
    """
    few = states(*("failed" if rank == 4711 else "stalled" if rank > 9000 else "ok" for rank in range(10_000)))
    assert len(rankmap.draw(few, [4711])) < 12_000
    worst = states(*(STATES[rank * rank % 5] for rank in range(10_000)))
    assert len(rankmap.draw(worst)) < 200_000


def test_the_map_has_a_description() -> None:
    """The description names the states with their ranks and where it began."""
    tree = ElementTree.fromstring(rankmap.draw(states("ok", "failed", "ok", "stalled"), [1]))
    assert tree.get("role") == "img"
    assert tree.findtext(f"{SVG}desc") == "It began on rank 1. failed: 1 (1); stalled: 3 (1); ok: 0, 2 (2)"


def test_one_rank_needs_no_map() -> None:
    """There is nothing to draw of less than two ranks."""
    assert rankmap.draw(states("failed")) == rankmap.draw([]) == ""


def test_the_row_of_a_blamed_rank_is_marked_and_its_frame_grows_with_the_drawing() -> None:
    """Among ten thousand ranks, shown smaller, the one where it began can still be found."""
    few, many = (rankmap.draw(states(*["stalled"] * size), [7]) for size in (64, 10_000))
    assert all(drawing.count('class="row"') == 1 for drawing in (few, many))
    widths = [int(drawing.split('class="blamed" stroke-width="')[1].split('"')[0]) for drawing in (few, many)]
    assert widths[0] < widths[1]
