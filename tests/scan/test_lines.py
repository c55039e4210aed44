"""triage.scan.lines"""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from triage.scan.interface import KEEP_PER_END, Hit, PossibleMatch
from triage.scan.known_spans import KnownSpans, merge_parts
from triage.scan.lines import MAX_MISSES, Collector, HitGroup, _find_overlong, _line_bounds, _line_end, list_hits
from triage.scan.literal_matcher import Re2Matcher

from .factories import (
    LITERALS,
    SHORT_LINES,
    SMALL,
    TEXTS,
    literals_in,
    scan_bytes,
    scan_one,
    small_limits,
    split_lines,
    stream_container,
    writer,
)

GENERIC = frozenset({0, 1})


def limit_per_end_of(kind: tuple[tuple[int, ...], object]) -> int:
    """Return how many hits of a kind are returned from either end."""
    return SMALL["KEEP_PER_END_ALIKE" if kind[1] and set(kind[0]) - GENERIC else "KEEP_PER_END"]


def hit_lines_by_kind(data: bytes) -> dict[tuple[tuple[int, ...], object], list[tuple[int, int]]]:
    """Find the lines with literals one by one: their places by kind."""
    kinds: dict[tuple[tuple[int, ...], object], list[tuple[int, int]]] = {}
    for start, line in split_lines(data):
        if literals := literals_in(line):
            kinds.setdefault((literals, writer(line[: SMALL["WRITER_BYTES"]])), []).append((start, start + len(line)))
    return kinds


@given(SHORT_LINES)
def test_every_line_with_a_literal_is_returned_or_counted(data: bytes) -> None:
    """Of each kind the first and the last lines are returned, and the last of the first ones counts the others."""
    with small_limits(SPAN_LINES=1000, SPAN_KINDS=1000):
        scanned = scan_bytes(data, generic=GENERIC)
    kinds = hit_lines_by_kind(data)
    assert scanned.matched == sum(map(len, kinds.values())) == sum(1 + hit.omitted for hit in scanned.hits)
    assert scanned.sampled == 0
    expected = [
        Hit(
            *place,
            kind[0],
            len(places) - 2 * limit_per_end if index == limit_per_end - 1 and len(places) > 2 * limit_per_end else 0,
        )
        for kind, places in kinds.items()
        for limit_per_end in [limit_per_end_of(kind)]
        for index, place in enumerate(places)
        if index < limit_per_end or index >= len(places) - limit_per_end
    ]
    assert sorted(scanned.hits, key=lambda hit: hit.start) == sorted(expected, key=lambda hit: hit.start)


@given(SHORT_LINES)
def test_a_storm_is_scanned_in_full_and_then_sampled(data: bytes) -> None:
    """After SPAN_LINES repeated hit lines of a span, or SPAN_KINDS kinds, a line counts only for literals that are new
    in its slice.
    """
    with small_limits():
        scanned = scan_bytes(data)
    span, number, repeats, sampled, sampled_literals = -1, -1, 0, 0, set[int]()
    counted, kinds = [], set[object]()
    for start, line in split_lines(data):
        if start // SMALL["SPAN"] != span:
            span, number, repeats, sampled_literals, kinds = start // SMALL["SPAN"], -1, 0, set(), set()
        if repeats >= SMALL["SPAN_LINES"] or len(kinds) >= SMALL["SPAN_KINDS"]:
            sampled += len(data[start : start + len(line) + 1])
            if start // SMALL["SLICE"] != number:
                number, sampled_literals = start // SMALL["SLICE"], set()
            if sampled_literals.issuperset(literals_in(line)):
                continue
            sampled_literals.update(literals_in(line))
        if literals_in(line):
            kind = literals_in(line), writer(line[: SMALL["WRITER_BYTES"]])
            repeats += kind in kinds
            kinds.add(kind)
            counted.append(Hit(start, start + len(line), literals_in(line)))
    assert scanned.sampled == sampled
    assert scanned.matched == len(counted)
    assert {hit.start for hit in scanned.hits} <= {hit.start for hit in counted}
    assert {hit.start for hit in scanned.hits} >= {hit.start for hit in counted[: SMALL["KEEP_PER_END_ALIKE"]]}


def text_of_writers(count: int) -> bytes:
    """Return a failure line of each of so many writers, eight lines a span."""
    return b"".join((b"[r%d] boom" % number).ljust(31) + b"\n" for number in range(1000, 1000 + count))


@pytest.mark.parametrize(("limit", "hits"), [(9, 8), (8, 8), (7, 8), (6, 7)])
def test_so_many_writers_of_a_span_count(limit: int, hits: int) -> None:
    """The first line of every writer counts until there are SPAN_KINDS; of the rest, the first one of a slice does."""
    with small_limits(SPAN_KINDS=limit, SLICE=1 << 20):
        result = scan_bytes(text_of_writers(8))
    assert len(result.hits) == hits
    assert (result.sampled > 0) == (limit < 8)


@pytest.mark.parametrize(
    ("limit", "spans", "left_out"), [(24, 3, [0, 0, 0]), (16, 3, [0, 0, 5]), (16, 2, [0, 0]), (8, 4, [0, 5, 5, 5])]
)
def test_a_file_with_many_writers_takes_few_more_of_each_span(limit: int, spans: int, left_out: list[int]) -> None:
    """With FILE_KINDS kinds, each further span adds MORE_KINDS; what is left out counts as sampled."""
    text = text_of_writers(8 * spans)
    with small_limits(SPAN_KINDS=8, FILE_KINDS=limit, MORE_KINDS=3, SLICE=256):
        result, from_stream = scan_bytes(text), scan_one(stream_container(text))
    by_span = Counter(hit.start // SMALL["SPAN"] for hit in result.hits)
    assert [8 - by_span[number] for number in range(spans)] == left_out
    assert (result.sampled > 0) == (from_stream.sampled > 0) == any(left_out)
    # Where a stream is sampled, the first line of a slice counts.
    assert len(from_stream.hits) == len(result.hits) + sum(map(bool, left_out))


@given(TEXTS)
def test_no_literal_of_a_long_line_is_lost(data: bytes) -> None:
    """Every literal lies in a hit that names it, also across pieces; every hit contains its literals."""
    with small_limits(SPAN_LINES=1000, SPAN_KINDS=1000, KEEP_PER_END=1000, KEEP_PER_END_ALIKE=1000):
        hits = scan_bytes(data).hits
    for hit in hits:
        assert hit.literals
        assert hit.literals == literals_in(data[hit.start : hit.end])
        assert b"\n" not in data[hit.start : hit.end]
        assert hit.end - hit.start <= SMALL["MAX_LINE"] + 2 * SMALL["OVERLAP"]
    for index, literal in enumerate(LITERALS):
        at = data.find(literal.encode())
        while at >= 0:
            end = at + len(literal.encode())
            assert any(hit.start <= at and end <= hit.end and index in hit.literals for hit in hits)
            at = data.find(literal.encode(), at + 1)


@given(TEXTS)
def test_hits_ascend_and_ordinary_lines_are_whole(data: bytes) -> None:
    """Hits are in file order, and a line that is not overlong is one hit, without its newline."""
    with small_limits(SPAN_LINES=1000, SPAN_KINDS=1000, KEEP_PER_END=1000, KEEP_PER_END_ALIKE=1000):
        hits = scan_bytes(data).hits
    assert [hit.start for hit in hits] == sorted({hit.start for hit in hits})
    whole = {
        (start, start + len(line))
        for start, line in split_lines(data)
        if len(line) <= SMALL["MAX_LINE"] and literals_in(line)
    }
    assert whole <= {(hit.start, hit.end) for hit in hits}


@given(st.lists(st.integers(0, 3), max_size=80), st.integers(1, 20))
def test_a_hit_group_returns_the_ends_and_counts_the_middle(omitted_counts: list[int], limit_per_end: int) -> None:
    """The first and last hits are returned, and every line is counted."""
    group = HitGroup(limit_per_end)
    for index, omitted in enumerate(omitted_counts):
        group.add(index, index, (0,), omitted)
    hits = group.hits()
    places = list(range(len(omitted_counts)))
    assert [hit.start for hit in hits] == (
        places if len(places) <= 2 * limit_per_end else places[:limit_per_end] + places[-limit_per_end:]
    )
    assert sum(1 + hit.omitted for hit in hits) == len(omitted_counts) + sum(omitted_counts)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=120), st.lists(st.integers(0, 120), max_size=6))
def test_merged_spans_equal_one_span(kinds: list[tuple[bool, int]], cuts: list[int]) -> None:
    """However hits are divided into spans, the same ones are returned and the same number is counted."""
    hits = [
        (((0,) if literal else (1,), who), Hit(index, index, (0,) if literal else (1,)))
        for index, (literal, who) in enumerate(kinds)
    ]

    def collected(
        part: list[tuple[tuple[tuple[int, ...], int], Hit]],
    ) -> dict[tuple[tuple[int, ...], object], HitGroup]:
        groups: dict[tuple[tuple[int, ...], object], HitGroup] = {}
        for kind, hit in part:
            groups.setdefault(kind, HitGroup(KEEP_PER_END)).add(hit.start, hit.end, hit.literals)
        return groups

    edges = [0, *sorted(min(cut, len(hits)) for cut in cuts), len(hits)]
    parts = [collected(hits[start:stop]) for start, stop in itertools.pairwise(edges)]
    merged = list_hits(merge_parts([KnownSpans(groups=part) for part in parts]).groups)
    assert merged == list_hits(collected(hits))
    assert merged[1] == len(hits)
    assert len(merged[0]) <= 2 * KEEP_PER_END * len({kind for kind, _ in hits})


@pytest.mark.parametrize(
    ("edge", "stop", "end"), [(1, 6, 3), (2, 6, 3), (3, 6, 3), (4, 6, 6), (5, 6, 6), (6, 6, 6), (9, 6, 6), (4, 5, 5)]
)
def test_a_line_belongs_to_where_it_starts(edge: int, stop: int, end: int) -> None:
    """The lines that start before the edge end there; one that starts at the edge is not among them."""
    assert _line_end(bytearray(b"ab\ncd\n"), edge, stop) == end


@pytest.mark.parametrize(("length", "start"), [(64, 72), (65, 2), (66, 2)])
def test_a_line_that_is_too_long_is_found(length: int, start: int) -> None:
    """A line of MAX_LINE bytes is not too long, one byte more is. Without such a line it is the end."""
    data = bytearray(b"a\n" + b"z" * length + b"\nlast\n")
    with small_limits():
        assert _find_overlong(data, 0, len(data)) == (start if length > 64 else len(data)) == start


@pytest.mark.parametrize(("end", "bounds"), [(1, (0, 2)), (2, (0, 2)), (4, (3, 5)), (5, (3, 5)), (7, (6, 7))])
def test_the_line_around_a_match(end: int, bounds: tuple[int, int]) -> None:
    """The line of the byte before the end of a match, without its newline; the last one ends where the search does."""
    assert _line_bounds(bytearray(b"ab\ncd\nefgh"), end, 7) == bounds


@pytest.mark.parametrize("before", [4158, 4159, 4160, 4161])
def test_a_line_in_which_a_search_stops_has_all_its_literals(before: int) -> None:
    """A search stops after 4160 matches; literals of its last line that come later are found too."""
    [hit] = scan_bytes(b"boom" * before + b" Zug\n").hits
    assert hit.literals == (0, 3)


@pytest.mark.parametrize("span_end", [b"boom\n", b"boom.zzz\n"], ids=["at the border", "across the border"])
def test_the_limit_of_a_stream_counts_anew_in_each_span(span_end: bytes) -> None:
    """A stream is sampled as the file is: a new span begins with the first line that starts in it."""
    line = b"[r1] boom.....\n"
    data = line * 16 + b"z" * 10 + b"\n" + span_end + b"boom\n" * 9
    with small_limits():
        assert data.index(span_end) < SMALL["SPAN"] <= data.index(span_end) + len(span_end)
        plain, stream = scan_bytes(data), scan_one(stream_container(data))
    assert (stream.matched, stream.sampled, stream.hits) == (plain.matched, plain.sampled, plain.hits)


@pytest.mark.parametrize("length", [SMALL["MAX_LINE"], SMALL["MAX_LINE"] + 1])
def test_an_overlong_line_of_a_storm_is_not_sampled(length: int) -> None:
    """After the limit, a line of MAX_LINE bytes counts as sampled; a longer one is searched in full."""
    storm, line, rest = b"boom\n" * (1 + SMALL["SPAN_LINES"]), b"z" * length + b"\n", b"a line\n"
    with small_limits():
        scanned = scan_bytes(storm + line + rest)
    assert scanned.sampled == len(rest) + (len(line) if length == SMALL["MAX_LINE"] else 0)


class RecordingMatcher(Re2Matcher):
    """A matcher that takes each line with `window` for a possible match, and records which searches were exact."""

    def __init__(self) -> None:
        super().__init__([b"window"])
        self.exact_searches: list[bool] = []

    def find(
        self, data: bytearray | bytes, start: int, stop: int, limit: int, *, exact: bool = False
    ) -> list[PossibleMatch]:
        self.exact_searches.append(exact)
        return super().find(data, start, stop, limit)

    def literals_in(self, line: bytes, candidates: object = None) -> tuple[int, ...]:
        return ()


@pytest.mark.parametrize("misses", [MAX_MISSES, MAX_MISSES + 1])
def test_after_many_false_matches_a_span_is_searched_for_whole_literals(misses: int) -> None:
    """One line too many without any literal of its window makes the next search exact; the next span begins anew."""
    matcher = RecordingMatcher()
    collector = Collector(matcher, writer)
    data = bytearray(b"window\n" * misses)
    with small_limits(SPAN=1 << 20, SPAN_LINES=1000):
        for base in (0, len(data), 1 << 20):
            collector.feed(data, base, len(data), base)
    assert matcher.exact_searches == [False, misses > MAX_MISSES, False]
