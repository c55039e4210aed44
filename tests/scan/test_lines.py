"""triage.scan.lines"""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from triage.scan.interface import KEEP, Hit
from triage.scan.lines import Kept, merge

from .scanning import LITERALS, SMALL, TEXTS, TIDY, in_line, lines_of, of_plain, small, writer

GENERIC = frozenset({0, 1})


def keeps(kind: tuple[tuple[int, ...], object]) -> int:
    """How many of a kind are kept at either end: fewer where the writer and a literal that is not generic make them
    alike.
    """
    return SMALL["KEEP_ALIKE" if kind[1] and set(kind[0]) - GENERIC else "KEEP"]


def kinds_of(data: bytes) -> dict[tuple[tuple[int, ...], object], list[tuple[int, int]]]:
    """Where the lines with literals stand, by kind, the slow way."""
    kinds: dict[tuple[tuple[int, ...], object], list[tuple[int, int]]] = {}
    for start, line in lines_of(data):
        if literals := in_line(line):
            kinds.setdefault((literals, writer(line[: SMALL["WRITER_BYTES"]])), []).append((start, start + len(line)))
    return kinds


@given(TIDY)
def test_every_line_with_a_literal_is_kept_or_counted(data: bytes) -> None:
    """Of each kind the first and the last lines are kept, and the others are counted where the first ones end."""
    with small(SPAN_LINES=1000):
        scanned = of_plain(data, generic=GENERIC)
    kinds = kinds_of(data)
    assert scanned.matched == sum(map(len, kinds.values())) == sum(1 + hit.more for hit in scanned.hits)
    assert scanned.sampled == 0
    expected = [
        Hit(*place, kind[0], len(places) - 2 * keep if index == keep - 1 and len(places) > 2 * keep else 0)
        for kind, places in kinds.items()
        for keep in [keeps(kind)]
        for index, place in enumerate(places)
        if index < keep or index >= len(places) - keep
    ]
    assert sorted(scanned.hits, key=lambda hit: hit.start) == sorted(expected, key=lambda hit: hit.start)


@given(TIDY)
def test_a_storm_is_looked_at_in_full_and_then_in_slices(data: bytes) -> None:
    """In a span the first SPAN_LINES hit lines count; after them a line counts when a literal of it was not yet seen in
    its slice.
    """
    with small():
        scanned = of_plain(data)
    span, number, lines, sampled, seen = -1, -1, 0, 0, set[int]()
    counted = []
    for start, line in lines_of(data):
        if start // SMALL["SPAN"] != span:
            span, number, lines, seen = start // SMALL["SPAN"], -1, 0, set()
        if lines >= SMALL["SPAN_LINES"]:
            sampled += len(data[start : start + len(line) + 1])
            if start // SMALL["SLICE"] != number:
                number, seen = start // SMALL["SLICE"], set()
            if seen.issuperset(in_line(line)):
                continue
            seen.update(in_line(line))
        if in_line(line):
            lines += 1
            counted.append(Hit(start, start + len(line), in_line(line)))
    assert scanned.sampled == sampled
    assert scanned.matched == len(counted)
    assert {hit.start for hit in scanned.hits} <= {hit.start for hit in counted}
    assert {hit.start for hit in scanned.hits} >= {hit.start for hit in counted[: SMALL["KEEP_ALIKE"]]}


@given(TEXTS)
def test_no_literal_of_a_long_line_is_lost(data: bytes) -> None:
    """Every place of a literal lies in a hit that names it, also across the borders of pieces; no hit is without its
    literals.
    """
    with small(SPAN_LINES=1000, KEEP=1000, KEEP_ALIKE=1000):
        hits = of_plain(data).hits
    for hit in hits:
        assert hit.literals
        assert hit.literals == in_line(data[hit.start : hit.end])
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
    """Hits come in the order of the file, and a line that is not too long is one hit from its start to its newline."""
    with small(SPAN_LINES=1000, KEEP=1000, KEEP_ALIKE=1000):
        hits = of_plain(data).hits
    assert [hit.start for hit in hits] == sorted({hit.start for hit in hits})
    whole = {
        (start, start + len(line)) for start, line in lines_of(data) if len(line) <= SMALL["MAX_LINE"] and in_line(line)
    }
    assert whole <= {(hit.start, hit.end) for hit in hits}


@given(st.lists(st.integers(0, 3), max_size=80), st.integers(1, 20))
def test_kept_holds_the_ends_and_counts_the_middle(mores: list[int], keep: int) -> None:
    """The first and last hits are kept whatever the number, and nothing is lost from the count."""
    kept = Kept(keep)
    for index, more in enumerate(mores):
        kept.add(Hit(index, index, (0,), more))
    hits = kept.hits()
    places = list(range(len(mores)))
    assert [hit.start for hit in hits] == (places if len(places) <= 2 * keep else places[:keep] + places[-keep:])
    assert sum(1 + hit.more for hit in hits) == len(mores) + sum(mores)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=120), st.lists(st.integers(0, 120), max_size=6))
def test_merging_spans_gives_what_one_span_would(kinds: list[tuple[bool, int]], cuts: list[int]) -> None:
    """However hits are cut into spans, the same ones are kept and the same number is counted."""
    hits = [
        (((0,) if literal else (1,), who), Hit(index, index, (0,) if literal else (1,)))
        for index, (literal, who) in enumerate(kinds)
    ]

    def collected(part: list[tuple[tuple[tuple[int, ...], int], Hit]]) -> dict[tuple[tuple[int, ...], object], Kept]:
        found: dict[tuple[tuple[int, ...], object], Kept] = {}
        for kind, hit in part:
            found.setdefault(kind, Kept(KEEP)).add(hit)
        return found

    edges = [0, *sorted(min(cut, len(hits)) for cut in cuts), len(hits)]
    parts = [collected(hits[start:stop]) for start, stop in itertools.pairwise(edges)]
    assert merge(parts) == merge([collected(hits)])
    assert merge(parts)[1] == len(hits)
    assert len(merge(parts)[0]) <= 2 * KEEP * len({kind for kind, _ in hits})
