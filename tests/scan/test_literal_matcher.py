"""triage.scan.literal_matcher"""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.scan import literal_matcher
from triage.scan.literal_matcher import HyperscanMatcher, Re2Matcher, build
from triage.scan.windows import choose_windows

ALL = 1 << 60
LITERALS = st.lists(
    st.one_of(st.text("ab.*\\[^$ ü", min_size=1, max_size=9), st.text(min_size=1, max_size=9).filter(str.isprintable)),
    min_size=1,
    max_size=12,
    unique=True,
).map(lambda parts: [part.encode() for part in parts])


@st.composite
def searches(draw: st.DrawFn) -> tuple[list[bytes], bytes, int, int]:
    """Draw literals, bytes that contain some of them, and a part of those bytes."""
    literals = draw(LITERALS)
    data = b"".join(
        draw(
            st.lists(
                st.one_of(
                    st.sampled_from(literals),
                    st.sampled_from([b"\n", b"\0", b"\xff", b"a", b"b"]),
                    st.binary(max_size=8),
                ),
                max_size=30,
            )
        )
    )
    start = draw(st.integers(0, len(data)))
    return literals, data, start, draw(st.integers(start, len(data)))


def line_bounds(data: bytes, start: int, stop: int, end: int) -> tuple[int, int]:
    """Return the bounds of the line in `data[start:stop]` that contains the byte before `end`."""
    finish = data.find(b"\n", end - 1, stop)
    return max(data.rfind(b"\n", start, end) + 1, start), stop if finish < 0 else finish


@given(searches())
def test_engines_agree_on_the_literals_inside_a_line(search: tuple[list[bytes], bytes, int, int]) -> None:
    """Both engines return the literals that `in` finds."""
    literals, data, start, stop = search
    expected = tuple(index for index, literal in enumerate(literals) if literal in data[start:stop])
    hyperscan = HyperscanMatcher(literals, [])
    by_hand = hyperscan.literals_in(data[start:stop])
    hyperscan._lines_searched = literal_matcher._LINES_WITHOUT_AUTOMATON
    assert (
        by_hand
        == hyperscan.literals_in(data[start:stop])
        == Re2Matcher(literals).literals_in(data[start:stop])
        == expected
    )


@given(searches())
def test_engines_agree_on_the_first_place_of_every_literal(search: tuple[list[bytes], bytes, int, int]) -> None:
    """Both engines return the first end of each literal in the range, ascending."""
    literals, data, start, stop = search
    places = [
        (data.find(literal, start, stop) + len(literal), index)
        for index, literal in enumerate(literals)
        if data.find(literal, start, stop) >= 0
    ]
    assert (
        HyperscanMatcher(literals, []).find_first(bytearray(data), start, stop)
        == Re2Matcher(literals).find_first(bytearray(data), start, stop)
        == sorted(places)
    )


@given(
    st.lists(st.sampled_from([b"boom", b"crash", b"bang!", b"fine ", b"\n", b"bo", b"om"]), max_size=60),
    st.integers(1, 12),
)
def test_a_storm_gives_the_same_first_places(parts: list[bytes], start_bytes: int) -> None:
    """However many slices had the same literals, `find_first` returns the first place of each one in the next."""
    literals = [b"boom", b"crash", b"bang!"]
    usual = b"fine boom\n" * 8
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(literal_matcher, "_SLICE_START", start_bytes)
        patch.setattr(literal_matcher, "_MIN_SLICES", 2)
        matcher = HyperscanMatcher(literals, [])
        for _ in range(3):
            assert matcher.find_first(usual, 0, len(usual)) == [(9, 0)]
        assert matcher._storm.fast_path is not None
        for data in (b"".join(parts), b"boom" + b"".join(parts), usual + b"".join(parts)):
            for one in (matcher, matcher.for_thread()):
                assert one.find_first(data, 0, len(data)) == Re2Matcher(literals).find_first(data, 0, len(data))


@given(searches(), st.binary(max_size=60), st.integers(1, 5), st.sampled_from([0, 1 << 17]))
def test_every_line_with_a_literal_is_found(
    search: tuple[list[bytes], bytes, int, int], healthy: bytes, limit: int, small_sample: int
) -> None:
    """`find` is ascending and names all literals of each line up to its limit, for all engines, windows and samples."""
    literals, data, start, stop = search
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(literal_matcher, "_SMALL_SAMPLE", small_sample)
        fitted = HyperscanMatcher(literals, choose_windows(literals, healthy), data * 4 + healthy)
    for matcher in (
        HyperscanMatcher(literals, []),
        HyperscanMatcher(literals, choose_windows(literals, healthy)),
        fitted,
        Re2Matcher(literals),
    ):
        for max_matches in (ALL, limit):
            matches = matcher.find(bytearray(data), start, stop, max_matches)
            assert matches == sorted(matches, key=lambda place: place[0])
            named_by_line: dict[tuple[int, int], set[int]] = {}
            for end, named in matches:
                named_by_line.setdefault(line_bounds(data, start, stop, end), set()).update(named)
            reached = matches[-1][0] if len(matches) >= max_matches else stop
            at = start
            for line in data[start:stop].split(b"\n"):
                expected = Re2Matcher(literals).literals_in(line)
                if at + len(line) < reached and expected:
                    assert matcher.literals_in(line, named_by_line[at, at + len(line)]) == expected
                at += len(line) + 1


def test_a_matcher_for_another_thread_gives_the_same() -> None:
    """`for_thread` shares the compiled databases and nothing that a scan changes."""
    for matcher in (HyperscanMatcher([b"boom"], []), Re2Matcher([b"boom"])):
        other = matcher.for_thread()
        [(end, named)] = matcher.find(b"a boom", 0, 6, ALL)
        assert (end, *named) == (6, 0)
        assert other.find(b"a boom", 0, 6, ALL) == [(end, named)]


def test_auto_takes_re2_where_hyperscan_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the wheel `auto` uses google-re2, and the engine `hyperscan` fails."""
    monkeypatch.setitem(__import__("sys").modules, "hyperscan", None)
    assert isinstance(build(["boom"], "auto"), Re2Matcher)
    with pytest.raises(ImportError):
        build(["boom"], "hyperscan")


def test_auto_takes_hyperscan_where_it_is_installed() -> None:
    """`auto` prefers the faster engine; `re2` selects the other."""
    pytest.importorskip("hyperscan")
    assert isinstance(build(["boom"], "auto"), HyperscanMatcher)
    assert isinstance(build(["boom"], "re2"), Re2Matcher)
