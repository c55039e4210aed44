"""triage.records.line_cuts"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

import triage
from triage.ranks.grammars import BY_START
from triage.ranks.layouts import detect_layout
from triage.records.line_cuts import (
    REACH,
    TORCH_TAG,
    find_joined_lines,
    find_second_writers,
    is_continuation,
    is_second_writer,
    open_until,
    parse_piece,
    unescape_syslog,
)
from triage.records.text import Text
from triage.split import Options, segment, split

AddPrefix = Callable[[int, str], list[str]]
FILLER = [f"step {number} loss 2.5" for number in range(20)]
TRACEBACK = ["Traceback (most recent call last):", '  File "train.py", line 88, in <module>', "    main()"]
DETAIL = "a tensor of [4096, 4096], dtype=torch.bfloat16; "


def srun(rank: int, line: str) -> list[str]:
    """Return a line as srun --label writes it.

    It writes pieces of 1,024 bytes, and behind a line of exactly that length the newline with a label of its own.
    """
    return [f"{rank:2d}: {line[at : at + 1024]}" for at in range(0, len(line) + (len(line) >= 1024), 1024)] or [
        f"{rank:2d}: "
    ]


def logger(rank: int, line: str, width: int = 1024) -> list[str]:
    """Return a line as logger sends it to syslog."""
    start = f"Nov 21 03:07:{rank + len(line) % 40:02d} node{rank // 8} train[{400 + rank}]: "
    return [start + line[at : at + width] for at in range(0, max(1, len(line)), width)]


def text_of(data: bytes) -> Text:
    return Text(
        "job.log", lambda offset, length: data[offset : offset + length], len(data), 2026, detect_layout(b"", data)
    )


def read_lines(lines: list[str]) -> list[str]:
    text = text_of("\n".join(lines).encode())
    return [line.raw for line in text.lines_from(0, text.size)]


@pytest.mark.parametrize("add_prefix", [srun, logger, lambda rank, line: logger(rank, line, 1023)])
def test_a_cut_failure_is_diagnosed_and_split_whole(add_prefix: AddPrefix, tmp_path: Path) -> None:
    """Evidence, diagnosis and the output of split are those of the whole line, even if the cut is inside a literal."""
    for before in (30, 1015):
        message = (
            f"RuntimeError: {DETAIL * before}"[:before]
            + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
            + DETAIL * 30
        )
        own = [*FILLER, *(f"[rank2]: {line}" for line in (*TRACEBACK, message))]
        other = [piece for line in FILLER for piece in add_prefix(1, line)]
        pieces = [piece for line in own for piece in add_prefix(2, line)]
        mixed = [line for pair in zip(pieces, [*other, *other], strict=False) for line in pair] + other
        (tmp_path / "job.log").write_text("\n".join(mixed) + "\n")
        root = triage.ingest([str(tmp_path / "job.log")]).root_cause
        assert root is not None
        assert (root.signature, root.ranks, root.count) == ("cuda.out-of-memory", (2,), 1)
        assert message.strip() in " ".join(fact.text for fact in root.evidence)
        result = split([str(tmp_path / "job.log")], tmp_path / "out", Options(force=True))
        assert (tmp_path / "out" / "rank_2.log").read_text() == "".join(f"{line}\n" for line in own)
        assert {"partial-lines"} == {warning.code for warning in result.warnings}


TEXTS = st.sampled_from(["x", "word ", "a, b ", "(", "%", "torch.nn.", "  ", "7"])
LONG = st.lists(TEXTS, min_size=1, max_size=4).flatmap(
    lambda some: st.integers(0, 3300).map(lambda size: ("of " + "".join(some) * size)[:size])
)


@settings(max_examples=25)
@given(st.data(), st.sampled_from([1 << 15, 1 << 19]))
def test_lines_that_srun_cut_are_joined(data: st.DataObject, chunk: int) -> None:
    """For lines of any length and several tasks, and for every way to read the file."""
    streams = [
        [*FILLER, *data.draw(st.lists(LONG | st.sampled_from(["y" * 1024, "z" * 2048]), max_size=4))] for _ in range(3)
    ]
    queues = [[piece for line in lines for piece in srun(rank, line)] for rank, lines in enumerate(streams)]
    mixed = [
        queues[rank].pop(0)
        for rank in data.draw(st.permutations([rank for rank, queue in enumerate(queues) for _ in queue]))
    ]
    assert sorted(read_lines(mixed)) == sorted(
        f"{rank:2d}: {line}" for rank, lines in enumerate(streams) for line in lines
    )
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment, "CHUNK", chunk)
        patch.setattr(segment, "_FIRST_CHUNK", chunk)
        (Path(directory) / "job.log").write_text("".join(f"{line}\n" for line in mixed))
        result = split([f"{directory}/job.log"], Path(directory) / "out")
        outputs = {file.rank: (Path(directory) / "out" / file.name).read_text() for file in result.files}
        assert outputs == {rank: "".join(f"{line}\n" for line in lines) for rank, lines in enumerate(streams)}
        assert result.lines == len(mixed) == sum(file.lines for file in result.files) - result.added


def is_left_alone(line: str, after: str, add_prefix: AddPrefix = logger) -> bool:
    """Is a line of 1,024 bytes left alone, with `after` behind it?"""
    start = add_prefix(2, "")[0]
    lines = [*(start + text for text in FILLER), start + line, start + after, *(start + text for text in FILLER)]
    assert len(line) == 1024
    return read_lines(lines) == lines


def test_a_whole_line_of_that_length_is_left_alone() -> None:
    """If the next line begins a new one, nothing shows that it continues, or other lines are longer."""
    assert is_left_alone("x" * 1023 + ".", "step 4")
    assert is_left_alone("x" * 1024, "Traceback (most recent call last):")
    assert is_left_alone("x" * 1024, "[rank2]: ValueError: x")
    assert is_left_alone("x" * 1024, "2026-11-21 03:07:45,372 INFO step 4")
    assert is_left_alone("x" * 1024, '  File "train.py", line 88, in <module>')
    assert is_left_alone("x" * 1024, "")
    assert not is_left_alone("x" * 1024, "y, and so on")
    assert not is_left_alone("x" * 1023 + ",", "and so on")
    assert not is_left_alone("x" * 1023 + ".", "y" * 1024)
    assert not is_left_alone("x" * 1023 + ".", "and so on", srun)
    longer = [f" 2: {line}" for line in ("x" * 1024, "y", "z" * 5000, *FILLER)]
    assert read_lines(longer) == longer
    bare = ["x" * 1024, "y", *FILLER]
    assert read_lines(bare) == bare


def test_lines_that_syslog_escaped_are_separated(tmp_path: Path) -> None:
    """rsyslog writes the newlines of a message as `#012`; a message in pieces is joined first."""
    record = "#012".join(
        [*TRACEBACK, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. " + DETAIL * 30]
    )
    lines = [piece for text in (*FILLER, record) for piece in logger(2, text)]
    (tmp_path / "messages").write_text("\n".join(lines) + "\n")
    root = triage.ingest([str(tmp_path)]).root_cause
    assert root is not None
    assert root.signature == "cuda.out-of-memory"
    assert [line.parsed.text for line in text_of("\n".join(lines).encode()).lines_from(0, 1 << 20)][20:23] == TRACEBACK


LABEL, SYSLOG = b" 2: ", b"Nov 21 03:07:45 node1 train[400]: "
FULL = b"x" * 1024


@pytest.mark.parametrize(
    ("line", "piece"),
    [
        (LABEL + FULL, (4, True)),
        (SYSLOG + FULL, (34, False)),
        (SYSLOG + FULL[:1023], (34, False)),
        (b"2026-11-21T03:07:45.372001123Z" + LABEL + b" " + FULL, None),
        (b"2026-11-21T03:07:45.372001123Z " + LABEL + FULL, (35, True)),
        (LABEL + FULL[:1023], None),
        (FULL, None),
        (b"[rank2]: " + FULL, None),
    ],
)
def test_a_piece_is_as_long_as_its_collector_allows(line: bytes, piece: tuple[int, bool] | None) -> None:
    """Behind the prefix of one that cuts lines; srun cuts at 1,024 bytes only."""
    parsed = parse_piece(line, BY_START)
    assert (None if parsed is None else (parsed.start, parsed.is_label)) == piece


@pytest.mark.parametrize(
    ("prefix", "end", "rest", "is_later", "continues"),
    [
        (LABEL, b".", b"", False, True),
        (SYSLOG, b",", b"", True, False),
        (SYSLOG, b".", b"and", False, False),
        (SYSLOG, b".", b"and", True, True),
        (SYSLOG, b"x", b"and", False, True),
        (SYSLOG, b",", b"(and", False, True),
        (SYSLOG, b".", b", and", False, True),
        (SYSLOG, b".", FULL, False, True),
        (SYSLOG, b"x", b"[rank2]: and", True, False),
    ],
)
def test_a_piece_continues_a_line(prefix: bytes, end: bytes, rest: bytes, is_later: bool, continues: bool) -> None:
    """By what stands at the cut; srun's label alone is the end of a line, an empty line of syslog is a line."""
    line = prefix + FULL[:-1] + end
    piece = parse_piece(line, BY_START)
    assert piece is not None
    assert is_continuation(piece, line, rest, BY_START, is_later) is continues


def test_lines_are_open_until_behind_the_last_piece() -> None:
    """As far as its continuation is searched for; not at all without a piece."""
    data = (LABEL + FULL + b"\n") * 3
    assert open_until(data + b"step 3\n", BY_START) == len(data) + REACH
    assert open_until(b"step 3\n" + FULL, BY_START) == 0


def test_a_line_of_three_pieces_is_one_line() -> None:
    """Also where only the second piece shows that the third continues it."""
    line = "a" * 1024 + "b" * 1023 + ".and so on"
    pieces = [piece for text in (*FILLER, line, *FILLER) for piece in logger(2, text)]
    [joined] = [text for text in read_lines(pieces) if "aaa" in text or "and so on" in text]
    assert joined.endswith(f": {line}")


def test_a_piece_at_the_end_of_a_file_is_a_line() -> None:
    """Nothing of its writer follows."""
    lines = [logger(2, text)[0] for text in (*FILLER, "x" * 1024)]
    assert read_lines(lines) == lines


def test_only_syslog_escapes_newlines() -> None:
    """`#012` behind another prefix is text."""
    lines = unescape_syslog(SYSLOG + b"a#012#011b", 2026, BY_START)
    assert lines is not None
    assert [text for text, _ in lines] == ["a", "\tb"]
    assert unescape_syslog(b"[rank2]: a#012b", 2026, BY_START) is None
    assert unescape_syslog(SYSLOG + b"a", 2026, BY_START) is None


def test_a_prefix_at_the_start_of_a_line_is_no_second_writer() -> None:
    """One that directly follows text is."""
    line = b"[rank1]: step 3[rank2]: step 3"
    assert set(find_second_writers(line)) == {15}
    assert [is_second_writer(line, at, TORCH_TAG) for at in (0, 15)] == [False, True]


@pytest.mark.parametrize("between", [[], [""]])
def test_an_empty_line_may_stand_between_two_pieces(between: list[str]) -> None:
    """It has no prefix, so it is of another writer."""
    first, second = logger(2, "x" * 1024 + "y, and so on")
    filler = logger(2, FILLER[0]) * 20
    assert read_lines([*filler, first, *between, second]) == [*filler, first + "y, and so on", *between]


def test_a_file_may_begin_with_a_cut_line() -> None:
    """Its second piece is no line of its own."""
    filler = [piece for text in FILLER for piece in srun(2, text)]
    assert read_lines([*srun(2, "x" * 1500), *filler]) == [f" 2: {'x' * 1500}", *filler]


def test_the_cut_lines_of_a_source_are_listed_whole() -> None:
    """Each once, with the place of its first piece and the bytes from there to the end of the last piece."""
    pieces, step = srun(2, "x" * 2500), " 1: step 3"
    data = "\n".join([step, pieces[0], step, *pieces[1:], step]).encode()
    between = "\n".join([pieces[0], step, *pieces[1:]])
    [joined] = find_joined_lines(data, BY_START)
    assert joined == (len(step) + 1, len(step) + 1 + len(pieces[0]), f" 2: {'x' * 2500}", [between])
