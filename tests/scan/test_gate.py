"""triage.scan.gate"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.scan import gate as gate_module
from triage.scan import storm as storm_module
from triage.scan.gate import HyperscanGate, Re2Gate, build
from triage.scan.windows import choose

ALL = 1 << 60
LITERALS = st.lists(
    st.one_of(st.text("ab.*\\[^$ ü", min_size=1, max_size=9), st.text(min_size=1, max_size=9).filter(str.isprintable)),
    min_size=1,
    max_size=12,
    unique=True,
).map(lambda words: [word.encode() for word in words])


@st.composite
def searches(draw: st.DrawFn) -> tuple[list[bytes], bytes, int, int]:
    """Literals, bytes in which they stand here and there, and a part of those bytes."""
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


def line_of(data: bytes, start: int, stop: int, end: int) -> tuple[int, int]:
    """The line in `data[start:stop]` that holds the byte before `end`."""
    finish = data.find(b"\n", end - 1, stop)
    return max(data.rfind(b"\n", start, end) + 1, start), stop if finish < 0 else finish


@given(searches())
def test_engines_agree_on_the_literals_inside_a_line(search: tuple[list[bytes], bytes, int, int]) -> None:
    """Both engines name the literals that `in` finds."""
    literals, data, start, stop = search
    expected = tuple(index for index, literal in enumerate(literals) if literal in data[start:stop])
    hyperscan = HyperscanGate(literals, [])
    few = hyperscan.inside(data[start:stop])
    hyperscan._asked = gate_module._BY_HAND
    assert few == hyperscan.inside(data[start:stop]) == Re2Gate(literals).inside(data[start:stop]) == expected


@given(searches())
def test_engines_agree_on_the_first_place_of_every_literal(search: tuple[list[bytes], bytes, int, int]) -> None:
    """Both engines give the first end of each literal in the range, ascending, relative to the whole data."""
    literals, data, start, stop = search
    places = [
        (data.find(literal, start, stop) + len(literal), index)
        for index, literal in enumerate(literals)
        if data.find(literal, start, stop) >= 0
    ]
    assert (
        HyperscanGate(literals, []).first(bytearray(data), start, stop)
        == Re2Gate(literals).first(bytearray(data), start, stop)
        == sorted(places)
    )


@given(
    st.lists(st.sampled_from([b"boom", b"crash", b"bang!", b"fine ", b"\n", b"bo", b"om"]), max_size=60),
    st.integers(1, 12),
)
def test_a_storm_gives_the_same_first_places(words: list[bytes], start_bytes: int) -> None:
    """However often slices held the same literals, `first` still names the first place of each literal in the next."""
    literals = [b"boom", b"crash", b"bang!"]
    usual = b"fine boom\n" * 8
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate_module, "_START", start_bytes)
        patch.setattr(storm_module, "_OFTEN", 2)
        gate = HyperscanGate(literals, [])
        for _ in range(3):
            assert gate.first(usual, 0, len(usual)) == [(9, 0)]
        assert gate._storm.known is not None
        for data in (b"".join(words), b"boom" + b"".join(words), usual + b"".join(words)):
            for one in (gate, gate.for_thread()):
                assert one.first(data, 0, len(data)) == Re2Gate(literals).first(data, 0, len(data))


@given(searches(), st.binary(max_size=60), st.integers(1, 5), st.sampled_from([0, 1 << 17]))
def test_every_line_with_a_literal_is_found(
    search: tuple[list[bytes], bytes, int, int], healthy: bytes, limit: int, little: int
) -> None:
    """Whatever the engine, the windows and the sample, `find` is ascending and names in each line all its literals, up
    to where `limit` stopped it.
    """
    literals, data, start, stop = search
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate_module, "_LITTLE", little)
        fitted = HyperscanGate(literals, choose(literals, healthy), data * 4 + healthy)
    for gate in (
        HyperscanGate(literals, []),
        HyperscanGate(literals, choose(literals, healthy)),
        fitted,
        Re2Gate(literals),
    ):
        for most in (ALL, limit):
            found = gate.find(bytearray(data), start, stop, most)
            assert found == sorted(found, key=lambda place: place[0])
            met: dict[tuple[int, int], set[int]] = {}
            for end, named in found:
                met.setdefault(line_of(data, start, stop, end), set()).update(named)
            reached = found[-1][0] if len(found) >= most else stop
            at = start
            for line in data[start:stop].split(b"\n"):
                inside = Re2Gate(literals).inside(line)
                if at + len(line) < reached and inside:
                    assert gate.inside(line, met[at, at + len(line)]) == inside
                at += len(line) + 1


def test_a_gate_for_another_thread_gives_the_same() -> None:
    """`for_thread` shares what was compiled and nothing that one scan changes."""
    for gate in (HyperscanGate([b"boom"], []), Re2Gate([b"boom"])):
        other = gate.for_thread()
        [(end, named)] = gate.find(b"a boom", 0, 6, ALL)
        assert (end, *named) == (6, 0)
        assert other.find(b"a boom", 0, 6, ALL) == [(end, named)]


def test_auto_takes_re2_where_hyperscan_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the wheel `auto` falls back to google-re2, and asking for hyperscan by name fails."""
    monkeypatch.setitem(__import__("sys").modules, "hyperscan", None)
    assert isinstance(build(["boom"], "auto"), Re2Gate)
    with pytest.raises(ImportError):
        build(["boom"], "hyperscan")


def test_auto_takes_hyperscan_where_it_is_installed() -> None:
    """`auto` prefers the faster engine, and re2 is taken when asked for."""
    pytest.importorskip("hyperscan")
    assert isinstance(build(["boom"], "auto"), HyperscanGate)
    assert isinstance(build(["boom"], "re2"), Re2Gate)
