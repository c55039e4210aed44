"""triage.ranks.cuts"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import triage
from triage.ranks.layouts import layout_of
from triage.ranks.splitting import Options, split, stretch
from triage.ranks.text import Text

Dress = Callable[[int, str], list[str]]
FILLED = [f"step {number} loss 2.5" for number in range(20)]
TRACEBACK = ["Traceback (most recent call last):", '  File "train.py", line 88, in <module>', "    main()"]
DETAIL = "a tensor of [4096, 4096], dtype=torch.bfloat16; "


def srun(rank: int, line: str) -> list[str]:
    """As srun --label writes it: pieces of 1,024 bytes, and of a line that is just so long the newline behind a label
    of its own.
    """
    return [f"{rank:2d}: {line[at : at + 1024]}" for at in range(0, len(line) + (len(line) >= 1024), 1024)] or [
        f"{rank:2d}: "
    ]


def logger(rank: int, line: str, width: int = 1024) -> list[str]:
    """As logger sends it to syslog."""
    start = f"Nov 21 03:07:{rank + len(line) % 40:02d} node{rank // 8} train[{400 + rank}]: "
    return [start + line[at : at + width] for at in range(0, max(1, len(line)), width)]


def text_of(data: bytes) -> Text:
    return Text("job.log", lambda offset, length: data[offset : offset + length], len(data), 2026, layout_of(b"", data))


def read(lines: list[str]) -> list[str]:
    text = text_of("\n".join(lines).encode())
    return [line.raw for line in text.lines_from(0, text.size)]


@pytest.mark.parametrize("dress", [srun, logger, lambda rank, line: logger(rank, line, 1023)])
def test_a_failure_that_a_collector_cut_comes_out_whole(dress: Dress, tmp_path: Path) -> None:
    """Evidence and diagnosis are those of the whole line, also where the cut lies within what is sought, and so is what
    split writes.
    """
    for before in (30, 1015):
        message = (
            f"RuntimeError: {DETAIL * before}"[:before]
            + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
            + DETAIL * 30
        )
        own = [*FILLED, *(f"[rank2]: {line}" for line in (*TRACEBACK, message))]
        other = [piece for line in FILLED for piece in dress(1, line)]
        pieces = [piece for line in own for piece in dress(2, line)]
        mixed = [line for pair in zip(pieces, [*other, *other], strict=False) for line in pair] + other
        (tmp_path / "job.log").write_text("\n".join(mixed) + "\n")
        root = triage.ingest([str(tmp_path / "job.log")]).root_cause
        assert root is not None
        assert (root.signature, root.ranks, root.count) == ("cuda.out-of-memory", (2,), 1)
        assert message.strip() in " ".join(fact.text for fact in root.evidence)
        result = split([str(tmp_path / "job.log")], tmp_path / "out", Options(force=True))
        assert (tmp_path / "out" / "rank_2.log").read_text() == "".join(f"{line}\n" for line in own)
        assert {"partial-lines"} == {warning.code for warning in result.warnings}


WORDS = st.sampled_from(["x", "word ", "a, b ", "(", "%", "torch.nn.", "  ", "7"])
LONG = st.lists(WORDS, min_size=1, max_size=4).flatmap(
    lambda some: st.integers(0, 3300).map(lambda size: ("of " + "".join(some) * size)[:size])
)


@settings(max_examples=25)
@given(st.data(), st.sampled_from([1 << 15, 1 << 19]))
def test_what_srun_cut_is_whole_again(data: st.DataObject, chunk: int) -> None:
    """Lines of any length of several tasks: each is read as it was written, and split gives back every byte, however it
    is read.
    """
    streams = [
        [*FILLED, *data.draw(st.lists(LONG | st.sampled_from(["y" * 1024, "z" * 2048]), max_size=4))] for _ in range(3)
    ]
    queues = [[piece for line in lines for piece in srun(rank, line)] for rank, lines in enumerate(streams)]
    mixed = [
        queues[rank].pop(0)
        for rank in data.draw(st.permutations([rank for rank, queue in enumerate(queues) for _ in queue]))
    ]
    assert sorted(read(mixed)) == sorted(f"{rank:2d}: {line}" for rank, lines in enumerate(streams) for line in lines)
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretch, "CHUNK", chunk)
        patch.setattr(stretch, "_FIRST", chunk)
        (Path(directory) / "job.log").write_text("".join(f"{line}\n" for line in mixed))
        result = split([f"{directory}/job.log"], Path(directory) / "out")
        found = {file.rank: (Path(directory) / "out" / file.name).read_text() for file in result.files}
        assert found == {rank: "".join(f"{line}\n" for line in lines) for rank, lines in enumerate(streams)}
        assert result.lines == len(mixed) == sum(file.lines for file in result.files) - result.added


def whole(line: str, after: str, dress: Dress = logger) -> bool:
    """Is a line of 1,024 bytes left alone, with `after` behind it?"""
    start = dress(2, "")[0]
    lines = [*(start + text for text in FILLED), start + line, start + after, *(start + text for text in FILLED)]
    assert len(line) == 1024
    return read(lines) == lines


def test_a_line_that_is_just_so_long_stays() -> None:
    """Where what follows opens a line, or nothing says that it goes on, or other lines are longer."""
    assert whole("x" * 1023 + ".", "step 4")
    assert whole("x" * 1024, "Traceback (most recent call last):")
    assert whole("x" * 1024, "[rank2]: ValueError: x")
    assert whole("x" * 1024, "2026-11-21 03:07:45,372 INFO step 4")
    assert whole("x" * 1024, '  File "train.py", line 88, in <module>')
    assert whole("x" * 1024, "")
    assert not whole("x" * 1024, "y, and so on")
    assert not whole("x" * 1023 + ",", "and so on")
    assert not whole("x" * 1023 + ".", "y" * 1024)
    assert not whole("x" * 1023 + ".", "and so on", srun)
    longer = [f" 2: {line}" for line in ("x" * 1024, "y", "z" * 5000, *FILLED)]
    assert read(longer) == longer
    bare = ["x" * 1024, "y", *FILLED]
    assert read(bare) == bare


def test_lines_that_syslog_escaped_are_lines(tmp_path: Path) -> None:
    """rsyslog writes the newlines of a record as `#012`; a record in pieces is opened when it is whole."""
    record = "#012".join(
        [*TRACEBACK, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. " + DETAIL * 30]
    )
    lines = [piece for text in (*FILLED, record) for piece in logger(2, text)]
    (tmp_path / "messages").write_text("\n".join(lines) + "\n")
    root = triage.ingest([str(tmp_path)]).root_cause
    assert root is not None
    assert root.signature == "cuda.out-of-memory"
    assert [line.parsed.text for line in text_of("\n".join(lines).encode()).lines_from(0, 1 << 20)][20:23] == TRACEBACK
