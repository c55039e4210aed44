"""triage.ranks.word_wrap"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import triage
from triage.ranks import word_wrap
from triage.ranks.layouts import detect_layout

MESSAGE = (
    "RuntimeError: Detected mismatch between collectives on ranks. DDP expects same model across all ranks, but "
    "Rank 3 has 198 params, while rank 0 has inconsistent 0 params, although all of them must build the same model."
)
FULL = "the watchdog of the process group has waited for this collective on stream"

FIRST_BREAK = f"{FULL[4:]}\nwhere no other rank has come"


def break_at_words(text: str, width: int) -> bytes:
    """Return the lines of a text as an editor breaks them."""
    return "".join(f"{piece}\n" for line in text.split("\n") for piece in textwrap.wrap(line, width) or [""]).encode()


@pytest.mark.parametrize("width", [72, 80, 88, 100])
def test_a_paste_broken_between_words_is_joined(width: int, tmp_path: Path) -> None:
    """Its message is whole again, and so is the diagnosis, although a break is inside every literal."""
    data = break_at_words(f"step 7\n{MESSAGE}", width)
    assert word_wrap.join_lines(detect_layout(b"", data).word_width, data).decode() == f"step 7\n{MESSAGE}\n"
    (tmp_path / "paste.txt").write_bytes(data)
    root = triage.ingest([str(tmp_path)]).root_cause
    assert root is not None
    assert root.signature == "ddp.model-differs-across-ranks"


@pytest.mark.parametrize(
    ("following", "is_joined"),
    [
        ("of the device, and gave up", True),
        ("10 times, and gave up", True),
        ("ERROR of the device", False),
        ("10:30:01 of the device", False),
        ("    of_the_device()", False),
        ("srun: of the device", False),
        ("loss=0.31 of the device", False),
        ("kernel[412] of the device", False),
        ("[rank1] of the device", False),
        ("terminate called after throwing", False),
        ("", False),
    ],
)
def test_only_the_rest_of_a_sentence_is_joined(following: str, is_joined: bool) -> None:
    """What begins as another line does is another line: a stamp, a prefix, a name, an indented line."""
    data = f"start\n{FULL}\n{following}\n{FIRST_BREAK}\nend".encode()
    assert bool(word_wrap.detect_width(data)) is is_joined


@pytest.mark.parametrize(
    "text",
    [
        f"start\n{FULL}.\nof the device\nend",  # a sentence is over
        f"start\n{FULL}\nof the device\n{FULL[:-9]}, device\nTraceback (most recent call last):\nend",  # one is none
        f"of the node\n{FULL}\nof the device\nend",  # another line begins with the same word
        f"start\n{FULL}    4:1    node1\nworker      2:0    node2\nend",  # the columns of a table
        f"start\n{FULL[: word_wrap._NARROWEST - 1]}\nof-a-device\nend",  # too narrow
        f"start\n{FULL} {FULL}\nof the device\nend",  # too wide
        f"start\n{FULL}\nof the device\nend{chr(10) * word_wrap._MOST_LINES}",  # too many lines
        f"start\n{FULL}\nof the device\n{'end ' * (word_wrap.SMALL // 4)}",  # too large
        "",
    ],
)
def test_a_contradiction_leaves_the_text_as_it_is(text: str) -> None:
    """One break that looks like two lines, or a text that is no short paste, and nothing is joined."""
    assert word_wrap.detect_width(text.encode()) == 0


@pytest.mark.parametrize(("breaks", "is_joined"), [(1, False), (2, True)])
def test_one_long_line_before_a_short_one_shows_no_width(breaks: int, is_joined: bool) -> None:
    """A line that another writer begins with a small letter would become a part of it."""
    broken = [FULL, "of the device", FIRST_BREAK][: 2 if breaks == 1 else 3]
    assert bool(word_wrap.detect_width("\n".join(["start", *broken, "end"]).encode())) is is_joined


def test_a_long_address_says_nothing_of_the_width() -> None:
    """A short line before a word as long as the width is no broken line."""
    data = f"see\nhttps://example.com/{'a' * 60}.\n\nEnd".encode()
    assert word_wrap.detect_width(data) == 0
    assert list(word_wrap.find_joined_lines(80, data)) == []
    assert word_wrap.join_pieces(80, 0, len(data), lambda offset, length: data[offset : offset + length]) is None


def sentence(width: int) -> str:
    """Return a line of this width."""
    return "the watchdog of this process ".ljust(width, "w")


@pytest.mark.parametrize(("width", "is_joined"), [(67, False), (68, True), (120, True), (121, False)])
def test_editors_break_lines_at_68_to_120_characters(width: int, is_joined: bool) -> None:
    """Other texts are no pastes."""
    data = f"start\n{sentence(width)}\nof the device\n{sentence(width)}\nwhere nobody has come\nend".encode()
    assert word_wrap.detect_width(data) == (width if is_joined else 0)


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_last_line_may_be_the_rest_of_a_broken_one(end: str) -> None:
    """With a newline behind it, and without one."""
    assert word_wrap.detect_width(f"start\n{FULL}\nof the device\n{FIRST_BREAK}{end}".encode()) == len(FULL)


@pytest.mark.parametrize(("first", "is_joined"), [("to the node", True), ("of the node", False)])
def test_what_begins_as_another_line_does_continues_nothing(first: str, is_joined: bool) -> None:
    """The first word of the rest begins no other line."""
    data = f"{first}\n{FULL}\nof the device\n{FIRST_BREAK}\nend".encode()
    assert bool(word_wrap.detect_width(data)) is is_joined
