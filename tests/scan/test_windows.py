"""triage.scan.windows"""

from __future__ import annotations

from hypothesis import given, strategies as st

from triage.scan.windows import add_missing_windows, choose_windows, literals_by_window, replace_common_windows

LITERALS = st.lists(st.text("abcü ", min_size=1, max_size=12), min_size=1, max_size=12, unique=True).map(
    lambda parts: [part.encode() for part in parts]
)


def all_covered(windows: list[bytes], literals: list[bytes]) -> bool:
    """Does each literal contain a window, and is each window a piece of a literal?"""
    return all(any(window in literal for window in windows) for literal in literals) and all(
        window and any(window in literal for literal in literals) for window in windows
    )


@given(LITERALS, st.binary(max_size=80))
def test_every_literal_contains_a_window(literals: list[bytes], healthy: bytes) -> None:
    """Every literal contains a window, and the choice does not depend on the order."""
    assert all_covered(choose_windows(literals, healthy), literals)
    assert choose_windows(literals, healthy) == choose_windows(literals[::-1], healthy)


@given(LITERALS, LITERALS, st.binary(max_size=80))
def test_new_literals_are_their_own_windows(literals: list[bytes], later: list[bytes], healthy: bytes) -> None:
    """Windows of an older catalog are completed for literals that it did not have."""
    windows = add_missing_windows(choose_windows(literals, healthy), later)
    assert all(any(window in literal for window in windows) for literal in later)
    assert set(windows) <= {*choose_windows(literals, healthy), *later}


@given(LITERALS, LITERALS)
def test_literals_by_window_are_those_that_contain_it(windows: list[bytes], literals: list[bytes]) -> None:
    """The literals of a window are those in which `in` finds it."""
    assert literals_by_window(windows, literals) == [
        tuple(at for at, literal in enumerate(literals) if window in literal) for window in windows
    ]


@given(LITERALS, st.binary(max_size=80), st.data())
def test_replacing_windows_leaves_every_literal_one(literals: list[bytes], healthy: bytes, data: st.DataObject) -> None:
    """Whichever windows are common, each literal still contains one, and none is longer than its literal."""
    windows = choose_windows(literals, healthy)
    for last in (False, False, True):
        common = data.draw(st.lists(st.sampled_from(windows), unique=True))
        windows = replace_common_windows(windows, common, literals, last=last)
        assert all_covered(windows, literals)


def test_windows_are_rare_in_healthy_logs_and_shared() -> None:
    """A piece that is common in healthy logs is avoided, and one window serves several literals."""
    [window] = choose_windows([b"step has failed", b"rank has failed"], b"step has rank has " * 10)
    assert window in b" has failed"
    assert window not in b"step has rank has "


def test_a_literal_without_a_rare_piece_is_its_own_window() -> None:
    """When all its pieces are common, the whole literal is the window."""
    assert choose_windows([b"step 12 done"], b"step 12 done " * 10) == [b"step 12 done"]
