"""triage.ranks.layouts"""

from __future__ import annotations

import pytest

from triage.ranks.layouts import PLAIN, Layout, detect_layout, remove_repeated_labels
from triage.ranks.prefix import parse_prefix

SRUN = [f"{number % 4}: step {number}" for number in range(12)]
SYSLOG = [f"Nov 21 03:07:{number:02} node1 train[400]: step {number}" for number in range(12)]
OTHERS = ["loading the data"] * 12


def layout_of(*lines: str) -> Layout:
    """Return the layout of a source with these lines."""
    return detect_layout("".join(f"{line}\n" for line in lines).encode())


@pytest.mark.parametrize(
    ("lines", "cuts", "escapes"),
    [
        (SRUN, True, False),
        (SYSLOG, True, True),
        (SYSLOG[:6] + OTHERS[:6], True, True),
        (SYSLOG[:5] + OTHERS[:7], False, False),
        (OTHERS, False, False),
        ([], False, False),
    ],
)
def test_a_collector_writes_most_lines(lines: list[str], cuts: bool, escapes: bool) -> None:
    """Half of them at least; srun cuts long lines, syslog escapes newlines too."""
    layout = layout_of(*lines)
    assert (layout.cuts_lines, layout.escapes_newlines) == (cuts, escapes)


@pytest.mark.parametrize(("length", "cuts"), [(1024 + 160, True), (1024 + 161, False)])
def test_a_collector_that_cuts_leaves_no_longer_line(length: int, cuts: bool) -> None:
    """At either end of the source: 1,024 bytes of text, and a prefix of 160 at most."""
    assert layout_of(*SRUN, "0: ".ljust(length, "x")).cuts_lines is cuts
    head = "".join(f"{line}\n" for line in SRUN).encode()
    assert detect_layout(head, head + b"0: ".ljust(length, b"x")).cuts_lines is cuts


def test_a_plain_source_has_the_plain_layout() -> None:
    """Nothing is around its lines, whatever its prefixes are."""
    assert layout_of(*OTHERS[:6]) is PLAIN
    assert not layout_of(*OTHERS).is_wrapped
    assert detect_layout(b"") is PLAIN
    assert not PLAIN.is_wrapped
    assert not layout_of(*OTHERS, "[rank3]: step").is_wrapped


def test_only_a_whole_source_is_a_paste() -> None:
    """Of a large one with a head and a tail the lines in the middle are not known."""
    broken = "\n".join(f"{chr(97 + number)}word".ljust(80, "x") + "\nxtail" for number in range(4))
    paste = f"{broken}\nA\nB\nC\n".encode()
    assert detect_layout(paste).width == detect_layout(b"", paste).width == 80
    assert detect_layout(paste).is_wrapped
    assert detect_layout(paste, paste).width == 0


def test_the_prefixes_of_a_broken_paste_are_detected() -> None:
    """In its lines as they were, not in their pieces."""
    lines = [f"node{number % 2}: {chr(97 + number)}{'x' * 90}{chr(97 + number)} step {number}" for number in range(8)]
    broken = "".join(f"{line[:80]}\n{line[80:]}\n" for line in lines).encode()
    layout = detect_layout(broken)
    assert layout.width == 80
    assert parse_prefix("node1: boom", table=layout.table).text == "boom"


def test_the_prefixes_of_messages_in_the_journal_are_detected() -> None:
    """The last ones of the export format, whose fields are no lines."""
    records = [f"__REALTIME_TIMESTAMP=1\n_PID=4\nMESSAGE=node{number % 2}: step {number}\n\n" for number in range(8)]
    layout = detect_layout("".join(records).encode())
    assert (layout.wrapper, layout.is_wrapped) == ("export", True)
    assert parse_prefix("node1: boom", table=layout.table).text == "boom"


def test_a_sample_is_without_colours_and_a_cut_line() -> None:
    """The last line of a part of a file may lack its end; a single one is read all the same."""
    coloured = [f"\x1b[36mnode{number % 2}:\x1b[0m step {number}" for number in range(8)]
    assert parse_prefix("node1: boom", table=layout_of(*coloured).table).text == "boom"
    assert detect_layout(b'{"log":"a\\n","stream":"stderr"}').wrapper == "json"
    assert detect_layout(b'x\n{"log":"a\\n","stream":"stderr"}').wrapper == ""
    assert detect_layout(b"\xef\xbb\xbf" + b"{" + b'"message": "a"}\n').wrapper == "json"


@pytest.mark.parametrize("at_end", [False, True])
def test_every_line_of_a_short_start_and_end_is_sampled(at_end: bool) -> None:
    """Only the last of 24 lines at either end is a JSON record."""
    record = b'{"log":"step 3\\n","stream":"stderr","time":"2026-11-21T03:07:45.372001123Z"}\n'
    plain = b"".join(b"step %d\n" % step for step in range(23))
    head, tail = plain + (b"step 23\n" if at_end else record), b"ep 3\n" + plain + (record if at_end else b"step 23\n")
    assert detect_layout(head, tail).wrapper == "json"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("[2] IndexError[2] : [2] bad row[2] ", "[2] IndexError: bad row"),
        ("[12]     [12] main()[12] ", "[12]     main()"),
        ("[2] rows [2] and [3]", "[2] rows [2] and [3]"),
        ("[2] rows [3] ", "[2] rows [3] "),
        ("[2] ", "[2] "),
        ("[a] part [a] ", "[a] part [a] "),
        ("] ", "] "),
    ],
)
def test_a_label_before_each_part_of_a_line_counts_once(line: str, text: str) -> None:
    """Only where the line ends with the label that it begins with: that is no text of a program."""
    assert remove_repeated_labels(line) == text
