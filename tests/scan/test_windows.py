"""triage.scan.windows"""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.scan.windows import (
    _cover,
    _is_steady,
    _widen_window,
    add_missing_windows,
    choose_windows,
    literals_by_window,
    replace_common_windows,
)

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


@pytest.mark.parametrize(("times", "is_window"), [(3, True), (4, False)])
def test_how_often_a_healthy_log_may_contain_a_window(times: int, is_window: bool) -> None:
    """A piece that healthy logs contain four times is no window; then the literal is its own."""
    healthy = b" lane gone ".join([b"."] * (times + 1))
    assert (choose_windows([b"lane gone"], healthy) != [b"lane gone"]) is is_window


@pytest.mark.parametrize(
    ("piece", "is_steady"),
    [
        (b"abc 12 3", True),
        (b"ab 12 34", False),
        (b"ab\t12 34", False),
        (b"a=b:1234", True),
        ("abcdefü".encode(), False),
    ],
)
def test_a_window_has_three_letters(piece: bytes, is_steady: bool) -> None:
    """Digits, blanks and control characters do not count as letters; a piece that is not ASCII is no window."""
    assert _is_steady(piece) is is_steady


@pytest.mark.parametrize(
    ("literal", "window"),
    [
        (b"the windows99 failed", b"e windows99 f"),
        (b"windows99 failed", b"windows99 f"),
        (b"the windows99", b"e windows99"),
        (b"windows99abc", b"windows99ab"),  # three bytes longer: one is left out
        (b"xwindows99", b"xwindows99"),  # one byte longer: the literal itself
        (b"xwindows99y", b"xwindows99y"),  # two
        (b"nothing common", b"nothing common"),
    ],
)
def test_a_common_window_is_widened_by_two_bytes(literal: bytes, window: bytes) -> None:
    """Two bytes on either side of the longest common window in the literal, as far as the literal has them."""
    assert _widen_window(literal, [b"windows9", b"windows99"]) == window


def test_only_literals_without_another_window_get_a_new_one() -> None:
    """A literal that has a second window needs none; the last fitting takes whole literals."""
    windows, literals = [b"window-a", b"window-b"], [b"window-a or window-b", b"no window-a is open"]
    assert replace_common_windows(windows, [b"window-a"], literals, last=False) == [b"o window-a i", b"window-b"]
    assert replace_common_windows(windows, [b"window-a"], literals, last=True) == [b"no window-a is open", b"window-b"]
    assert replace_common_windows(windows, [], literals, last=True) == windows


def test_a_piece_is_ranked_again_when_others_cover_its_literals() -> None:
    """A cheap piece whose literals are partly covered is still chosen before an expensive one."""
    covered = {b"most": {b"a", b"b", b"c"}, b"cheap": {b"c", b"d"}, b"expensive": {b"d"}}
    assert _cover(covered, {b"most": 1.0, b"cheap": 1.0, b"expensive": 3.0}) == {b"most", b"cheap"}
