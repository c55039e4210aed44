"""triage.records.line_cuts: lines that a transport cut, joined again."""

from __future__ import annotations

import pytest

from triage.records.text import split_line


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("[host1:0]:step 3[host1:1]:step 4", ["[host1:0]:step 3", "[host1:1]:step 4"]),
        ("[default0]: 50%|##   [default1]:x", ["[default0]: 50%|##   [default1]:x"]),
        ("[default0]: 50%|##[default1]:ValueError: x", ["[default0]: 50%|##", "[default1]:ValueError: x"]),
        ("[1,0]<stderr>:ab[1,12]<stdout>:cd", ["[1,0]<stderr>:ab", "[1,12]<stdout>:cd"]),
        (
            "5/10 [00:01<00:01, 4.9it/s, loss=0.3][rank3]: ValueError: x",
            ["5/10 [00:01<00:01, 4.9it/s, loss=0.3]", "[rank3]: ValueError: x"],
        ),
        ("[default2]:[rank2]: step 3", ["[default2]:[rank2]: step 3"]),
        ("(Worker pid=7)[rank2]: step 3", ["(Worker pid=7)[rank2]: step 3"]),
        ("[default2]:he said '[default3]:no'", ["[default2]:he said '[default3]:no'"]),
        ("x[default3]:y", ["x[default3]:y"]),
        ('[host1:0]:  File "a" [host1:1]:  File "b"', ['[host1:0]:  File "a" ', '[host1:1]:  File "b"']),
        ("[rank0]: Traceback (most recent call last):[rank1]: Traceback (most recent", None),
        ("Traceback (most recent: [rank1]: Traceback (most recent", None),
        ("[default0]:5/10 [00:01, 4.9MB/s][default1]: boom", None),
        ("5/10 [00:01<00:01, 4.9it/s]ValueError: x", ["5/10 [00:01<00:01, 4.9it/s]", "ValueError: x"]),
        ("5/10 [00:01<00:01, 4.9it/s]2026-11-21 03:07:45,372 ERROR x", None),
        (
            "[default0]:5/10 [00:01<00:01, 4.9it/s]ValueError: x",
            ["[default0]:5/10 [00:01<00:01, 4.9it/s]ValueError: x"],
        ),
    ],
)
def test_a_prefix_behind_text_begins_another_line(line: str, parts: list[str] | None) -> None:
    """A launcher's prefix behind text splits a line that begins with a similar one. Layers and quotations stay.

    `None` stands for any two pieces.
    """
    pieces = [part.data.decode() for part in split_line(line.encode(), 0, 2026)]
    assert pieces == parts or (parts is None and len(pieces) == 2)


@pytest.mark.parametrize(("length", "count"), [(193, 2), (194, 1)])
def test_the_end_of_a_progress_bar_is_at_most_200_bytes(length: int, count: int) -> None:
    """From its rate to its bracket; behind a longer one a prefix is quoted."""
    line = f"[default0]:5/10 4.9it/s, {'x' * length}][default1]: boom"
    assert len(split_line(line.encode(), 0, 2026)) == count
