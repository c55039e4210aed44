"""triage.ranks.glue, and the lines that it parts"""

from __future__ import annotations

import pytest

from triage.ranks.text import split_line


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
    ],
)
def test_a_prefix_right_behind_text_begins_another_writers_line(line: str, parts: list[str]) -> None:
    """A launcher's prefix behind text parts the line where one like it opens the line; layers and quotations stay."""
    assert [part.data.decode() for part in split_line(line.encode(), 0, 2026)] == parts
