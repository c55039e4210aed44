"""Names of one host that stand together in lines."""

from __future__ import annotations

import pytest

from triage.model.evidence import Origin
from triage.ranks.identity import JobMap
from triage.ranks.layouts import detect_layout
from triage.records.host_pairs import HostPair, find_host_pairs, learn_host_pair
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


@pytest.mark.parametrize(("before", "after", "is_read"), [(63, 64, True), (64, 63, True), (64, 64, False)])
def test_64_lines_at_each_end_are_read(before: int, after: int, is_read: bool) -> None:
    """Of those that may name a host."""
    noise = b"rank x\n"
    data = noise * before + b"rank 3 of 8 on node7\n" + noise * after
    text = Text("job.log", lambda at, length: data[at : at + length], len(data), 1970)
    assert (HostPair("", "node7", True, 3) in find_host_pairs(text, b"", data, 0)) is is_read


def test_both_ends_of_a_source_are_read() -> None:
    """Each pair once."""
    line = b"rank 3 of 8 on node7\n"
    data = line + b"step 3\n" + line
    text = Text("job.log", lambda at, length: data[at : at + length], len(data), 1970)
    assert find_host_pairs(text, data[:28], line, 28) == (HostPair("", "node7", True, 3),)
    assert find_host_pairs(text, data[:28], b"step 3\n", 28) == (HostPair("", "node7", True, 3),)


def test_a_stated_pair_gives_the_host_of_its_rank() -> None:
    """Rank 0 too; a pair of two prefixes does not, nor one without a rank."""
    for pair, hosts in (
        (HostPair("", "node7", True, 0), {"node7"}),
        (HostPair("", "node7", True), set()),
        (HostPair("pod-0", "node7", False, 0), set()),
    ):
        job = JobMap()
        job.learn("job.log", Origin(rank=0))
        learn_host_pair(job, "job.log", pair)
        job.resolve()
        assert job.hosts.get(0, set()) == hosts


def test_the_first_line_of_a_source_is_read() -> None:
    """However many follow."""
    data = b"  host      : node7\n" + b"  host      : localhost\n" * 65
    text = Text("job.log", lambda at, length: data[at : at + length], len(data), 1970)
    assert find_host_pairs(text, b"", data, 0) == (HostPair("", "node7", True),)


@pytest.mark.parametrize(("text", "is_read"), [("rank 3 waits", True), ("step 3", False)])
def test_only_lines_with_a_hint_are_read(text: str, is_read: bool) -> None:
    """Two prefixes with names are parsed only in lines with a word such as `rank`, as most lines have none."""
    line = f"[pod/train-0/main] Nov 21 03:07:45 node7 python[412]: {text}"
    assert pairs(line) == ([HostPair("train-0", "node7")] if is_read else [])


def test_a_source_that_grew_is_read_once() -> None:
    """Its last bytes are more than the size that was read before: all of it is in them, and nothing is cut."""
    data = b"rank 3 of 8 on node12"
    text = Text("job.log", lambda at, length: data[at : at + length], len(data), 1970)
    assert find_host_pairs(text, data, data, -5) == (HostPair("", "node12", True, 3),)
