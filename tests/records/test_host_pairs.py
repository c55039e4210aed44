"""Names of one host that stand together in lines."""

from __future__ import annotations

import pytest

from triage.ranks.layouts import detect_layout
from triage.records.host_pairs import HostPair, find_host_pairs
from triage.records.text import Text


def pairs(line: str) -> list[HostPair]:
    """Return what one line joins."""
    data = line.encode()
    text = Text("job.log", lambda at, length: data[at : at + length], len(data), 1970, detect_layout(data))
    return list(find_host_pairs(text, b"", data, 0))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[pod/train-0/main] node7:412:980 [0] NCCL INFO Bootstrap", HostPair("train-0", "node7")),
        ("[pod/train-0/main]   host      : node7", HostPair("train-0", "node7", True)),
        ("[pod/train-0/main] [default1]:rank 3 of 8 on node7", HostPair("train-0", "node7", True, 3)),
        ("rank 3 of 8 on node7", HostPair("", "node7", True, 3)),
        ("(Worker pid=81, ip=10.0.0.8) node7: global rank 3 ready", HostPair("10.0.0.8", "node7", True, 3)),
    ],
)
def test_names_that_stand_together_are_read(line: str, expected: HostPair) -> None:
    """In two prefixes, in torchelastic's table, and where a process introduces itself."""
    assert pairs(line) == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "[pod/train-0/main]   host      : localhost",
        "[pod/node7/main] node7:412:980 [0] NCCL INFO Bootstrap",
        "[pod/train-0/main] rank 3 waits for the store on node7",
        "[pod/train-0/main] rank 3 of 8 on cuda:3",
    ],
)
def test_other_lines_join_nothing(line: str) -> None:
    """One name twice, peers, and devices."""
    assert pairs(line) == []
