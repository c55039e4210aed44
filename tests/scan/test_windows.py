"""triage.scan.windows"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from triage.scan.windows import choose, complete, holders, refit

LITERALS = st.lists(st.text("abcü ", min_size=1, max_size=12), min_size=1, max_size=12, unique=True).map(
    lambda words: [word.encode() for word in words]
)


def all_held(windows: list[bytes], literals: list[bytes]) -> bool:
    """Does each literal contain a window, and is each window a piece of a literal?"""
    return all(any(window in literal for window in windows) for literal in literals) and all(
        window and any(window in literal for literal in literals) for window in windows
    )


@given(LITERALS, st.binary(max_size=80))
def test_every_literal_holds_a_window(literals: list[bytes], healthy: bytes) -> None:
    """Whatever the corpus holds, no literal is without a window, and the choice is the same each time."""
    assert all_held(choose(literals, healthy), literals)
    assert choose(literals, healthy) == choose(literals[::-1], healthy)


@given(LITERALS, LITERALS, st.binary(max_size=80))
def test_literals_that_came_later_stand_for_themselves(
    literals: list[bytes], later: list[bytes], healthy: bytes
) -> None:
    """Windows of an older catalog are completed for the literals it did not have."""
    windows = complete(choose(literals, healthy), later)
    assert all(any(window in literal for window in windows) for literal in later)
    assert set(windows) <= {*choose(literals, healthy), *later}


@given(LITERALS, LITERALS)
def test_holders_are_the_literals_that_contain_a_window(windows: list[bytes], literals: list[bytes]) -> None:
    """As `in` finds them."""
    assert holders(windows, literals) == [
        tuple(at for at, literal in enumerate(literals) if window in literal) for window in windows
    ]


@given(LITERALS, st.binary(max_size=80), st.data())
def test_giving_up_windows_leaves_every_literal_one(literals: list[bytes], healthy: bytes, data: st.DataObject) -> None:
    """Whichever turn out common, each literal still holds a window, and none is longer than its literal."""
    windows = choose(literals, healthy)
    for last in (False, False, True):
        common = data.draw(st.lists(st.sampled_from(windows), unique=True))
        windows = refit(windows, common, literals, last=last)
        assert all_held(windows, literals)


def test_windows_avoid_what_is_healthy_and_are_shared() -> None:
    """A piece that healthy logs hold again and again is no window while the literal has another, and one window serves
    several literals.
    """
    [window] = choose([b"step has failed", b"rank has failed"], b"step has rank has " * 10)
    assert window in b" has failed"
    assert window not in b"step has rank has "


def test_a_literal_without_a_rare_piece_stands_for_itself() -> None:
    """When all its pieces are common, the whole is looked for."""
    assert choose([b"step 12 done"], b"step 12 done " * 10) == [b"step 12 done"]
