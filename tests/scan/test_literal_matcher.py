"""triage.scan.literal_matcher"""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.scan import literal_matcher
from triage.scan.literal_matcher import HyperscanMatcher, Re2Matcher, Storm, build
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


def test_a_storm_gets_a_matcher_after_enough_equal_slices() -> None:
    """128 slices with the same literals build one; other literals are counted apart; there are four at most."""
    storm = Storm()
    built: list[frozenset[int]] = []

    def build_matcher(usual: frozenset[int]) -> Re2Matcher:
        built.append(usual)
        return Re2Matcher([b"boom"])

    for number in range(127):
        storm.record_slice(frozenset({1}), build_matcher)
        storm.record_slice(frozenset({2}), build_matcher)
        assert storm.fast_path is None, number
    storm.record_slice(frozenset({1}), build_matcher)
    assert storm.fast_path is not None
    assert storm.fast_path[0] == frozenset({1})
    storm.record_slice(frozenset({1}), build_matcher)
    assert built == [frozenset({1})]
    for kind in (2, 3, 4, 5):
        for _ in range(128):
            storm.record_slice(frozenset({kind}), build_matcher)
    assert built == [frozenset({kind}) for kind in (1, 2, 3, 4)]


def test_a_storm_forgets_its_counts_when_there_are_too_many_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """With as many kinds as are counted, all begin again."""
    monkeypatch.setattr(literal_matcher, "_MAX_KINDS", 2)
    monkeypatch.setattr(literal_matcher, "_MIN_SLICES", 2)
    storm = Storm()
    for kind in (1, 2, 1):
        storm.record_slice(frozenset({kind}), lambda usual: Re2Matcher([b"boom"]))
    assert storm.fast_path is None
    storm.record_slice(frozenset({1}), lambda usual: Re2Matcher([b"boom"]))
    assert storm.fast_path is not None


@pytest.mark.parametrize(("times", "is_common"), [(2, False), (3, True)])
def test_a_window_that_a_sample_repeats_is_replaced(times: int, is_common: bool) -> None:
    """A window that occurs more than twice without its literal gives way to the whole literal, if it is tried once."""
    sample = b"window99 is healthy\n" * times
    matcher = HyperscanMatcher([b"a window99 failed"], [b"window99"], sample)
    assert matcher._expressions["windows"] == ([b"a window99 failed"] if is_common else [b"window99"])


@pytest.mark.parametrize(
    "text",
    [
        b"\n" + b"a window99 failed, " * 3 + b"\nend",
        b"\n".join([b"a window99 failed", b"." * 300] * 3),
        b"a window99 failed, " * 3 + b"\n" + b"." * 300,
    ],
    ids=["in the first line after an empty one", "in many lines", "in one line"],
)
@pytest.mark.parametrize("is_small", [True, False])
def test_a_window_in_lines_with_its_literal_is_common_only_in_a_small_sample(
    monkeypatch: pytest.MonkeyPatch, text: bytes, is_small: bool
) -> None:
    """In a large sample, lines with the literal of a window do not make it common; in a small one they do."""
    monkeypatch.setattr(literal_matcher, "_SMALL_SAMPLE", len(text) if is_small else len(text) - 1)
    monkeypatch.setattr(literal_matcher, "_MAX_REFITS", 1)
    matcher = HyperscanMatcher([b"a window99 failed"], [b"window99"], text)
    assert matcher._expressions["windows"] == ([b"a window99 failed"] if is_small else [b"window99"])


@pytest.mark.parametrize(("times", "is_common"), [(2, False), (3, True)])
def test_a_window_that_a_large_sample_repeats_is_replaced(
    monkeypatch: pytest.MonkeyPatch, times: int, is_common: bool
) -> None:
    """In a large sample too, a window that occurs more than twice without its literal gives way."""
    sample = b"window99 is healthy\n" * times
    monkeypatch.setattr(literal_matcher, "_SMALL_SAMPLE", len(sample) - 1)
    monkeypatch.setattr(literal_matcher, "_MAX_REFITS", 1)
    matcher = HyperscanMatcher([b"a window99 failed"], [b"window99"], sample)
    assert matcher._expressions["windows"] == ([b"a window99 failed"] if is_common else [b"window99"])


def test_an_exact_search_needs_the_whole_literal() -> None:
    """By default, a window is a possible match of its literals; with `exact`, only a whole literal is."""
    matcher = HyperscanMatcher([b"a window99 failed"], [b"window99"])
    line = b"window99 is healthy"
    assert list(matcher.find(line, 0, len(line), ALL)) == [(8, (0,))]
    assert matcher.find(line, 0, len(line), ALL, exact=True) == []
    line = b"a window99 failed"
    assert list(matcher.find(line, 0, len(line), ALL, exact=True)) == [(len(line), (0,))]


def test_upper_and_lower_case_differ() -> None:
    """A literal in upper case is not one in lower case, in any search."""
    matcher = HyperscanMatcher([b"boom"], [], sample=b"other text")
    for line, literals in ((b"a BOOM", ()), (b"a boom", (0,))):
        assert matcher.literals_in(line) == literals
        for exact in (False, True):
            assert len(matcher.find(line, 0, 6, ALL, exact=exact)) == len(literals)
        assert len(matcher.find_first(line, 0, 6)) == len(literals)


def test_each_thread_has_one_matcher_of_its_own_for_the_rest_of_a_storm() -> None:
    """Threads share no scratch space, and a thread uses the same copy for all slices until the storm changes."""
    matcher, rest = HyperscanMatcher([b"boom"], []), HyperscanMatcher([b"err"], [])
    own, other = matcher._rest_for_this_thread(rest), matcher.for_thread()._rest_for_this_thread(rest)
    assert len({id(rest), id(own), id(other)}) == 3
    assert matcher._rest_for_this_thread(rest) is own
    assert matcher._rest_for_this_thread(HyperscanMatcher([b"bang"], [])) is not own


@pytest.mark.parametrize(("lines", "sample", "is_compiled"), [(256, b"", False), (257, b"", True), (1, b"z", True)])
def test_few_lines_are_searched_without_an_automaton(lines: int, sample: bytes, is_compiled: bool) -> None:
    """The database of all literals is compiled for the 257th line, in a large job for the first; not for candidates."""
    matcher = HyperscanMatcher([b"boom", b"err"], [], sample)
    for _ in range(lines):
        assert matcher.literals_in(b"an err") == (1,)
        assert matcher.literals_in(b"an err", (0, 1)) == (1,)
    assert ("all" in matcher._databases) is is_compiled


def test_re2_stops_at_the_limit() -> None:
    """As many matches as the limit are returned, in ascending order."""
    ends = [end for end, _ in Re2Matcher([b"boom"]).find(b"boom boom boom", 0, 14, 2)]
    assert ends == [4, 9]


@pytest.mark.parametrize(("size", "is_counted"), [(16, False), (17, True)])
def test_only_large_slices_teach_a_storm(monkeypatch: pytest.MonkeyPatch, size: int, is_counted: bool) -> None:
    """A slice counts that is more than twice the part searched for all literals, if some of them occur and not all."""
    monkeypatch.setattr(literal_matcher, "_SLICE_START", 8)
    monkeypatch.setattr(literal_matcher, "_MIN_SLICES", 1)
    for data, may_count in ((b"boom", True), (b"boomerr", False), (b"nothing", False)):
        matcher = HyperscanMatcher([b"boom", b"err"], [])
        matcher.find_first(data.ljust(size, b"."), 0, size)
        assert (matcher._storm.fast_path is not None) is (is_counted and may_count)


@pytest.mark.parametrize(("slices", "is_storm"), [(3, True), (2, False)])
def test_a_storm_is_learned_from_the_sample(monkeypatch: pytest.MonkeyPatch, slices: int, is_storm: bool) -> None:
    """A literal in more than half of the slices of a sample is usual; nothing is left to learn or to compile then."""
    monkeypatch.setattr(literal_matcher, "_SLICE_START", 8)
    matcher = HyperscanMatcher([b"boom", b"err"], [])
    matcher.prepare(b"a boom..".ljust(8) * slices + b"nothing." * (4 - slices))
    assert (matcher._storm.fast_path is not None) is is_storm
    if matcher._storm.fast_path is not None:
        usual, rest = matcher._storm.fast_path
        assert usual == {0}
        assert isinstance(rest, HyperscanMatcher)
        assert set(matcher._databases) == {"windows", "all", "first"}
        assert "windows" in rest._databases
        for data in (b"boom" * 8, b"boom" * 8 + b"err", b"err" * 8, b"." * 24 + b"boom"):
            assert matcher.find_first(data, 0, len(data)) == Re2Matcher([b"boom", b"err"]).find_first(
                data, 0, len(data)
            )


@pytest.mark.parametrize(("slices", "first_end"), [(3, 15), (2, 8)])
def test_lines_of_a_storm_are_searched_for_whole_literals(
    monkeypatch: pytest.MonkeyPatch, slices: int, first_end: int
) -> None:
    """In a storm, a window without its literal is no possible match; else it is one."""
    monkeypatch.setattr(literal_matcher, "_SLICE_START", 8)
    matcher = HyperscanMatcher([b"boom", b"a window99 failed"], [b"window99"])
    matcher.prepare(b"a boom..".ljust(8) * slices + b"nothing." * (4 - slices))
    data = b"window99 a boom"
    assert next(end for end, _ in matcher.find(data, 0, len(data), ALL)) == first_end


def test_a_sample_with_every_literal_is_no_storm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all literals are usual there are no others to search for."""
    monkeypatch.setattr(literal_matcher, "_SLICE_START", 8)
    matcher = HyperscanMatcher([b"boom"], [])
    matcher.prepare(b"a boom.." * 4)
    assert matcher._storm.fast_path is None


def test_windows_are_fitted_until_none_is_common(monkeypatch: pytest.MonkeyPatch) -> None:
    """What replaces a common window is checked too, in a large sample as in a small one; the others stay."""
    literals, windows = [b"my window99 failed", b"boom and more"], [b"window99", b"boom and"]
    sample = b"\n".join([b"my window99 is fine", b"boom", b"my window99 ok"] * 3)
    expected = sorted([b"my window99 failed", b"boom and"])
    for small in (0, 1 << 17):
        monkeypatch.setattr(literal_matcher, "_SMALL_SAMPLE", small)
        monkeypatch.setattr(literal_matcher, "_MAX_REFITS", 3)
        fitted = HyperscanMatcher(literals, windows, sample)._expressions["windows"]
        assert all(any(window in literal for window in fitted) for literal in literals)
        assert b"window99" not in fitted
        assert b"boom and" in fitted
    assert fitted == expected
