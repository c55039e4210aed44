"""What the lines of a job state of all of it is read from those few lines that may state it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from triage.evidence.extracted import ExtractedJob
from triage.evidence.learn_job import find_stating_lines, learn_addresses, learn_from_fact, learn_from_text
from triage.model import Evidence, Origin

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "jobs"


def _list_heads() -> Iterator[bytes]:
    for path in sorted(SAMPLES.rglob("*")):
        if path.is_file() and b"\0" not in (head := path.read_bytes()[: 1 << 13]):
            yield head


def _learn(text: str) -> tuple[object, ...]:
    result = ExtractedJob()
    learn_from_text(result, "a.log", text)
    learn_addresses(result.job, text)
    return result.versions, result.stated_versions, result.job.sizes, result.job.ranks, result.job.addresses


def test_the_stating_lines_give_what_all_first_lines_give() -> None:
    """In all samples, versions, sizes, ranks and addresses are those of the whole head."""
    heads = list(_list_heads())
    assert len(heads) > 300
    for head in heads:
        assert _learn(find_stating_lines(head)) == _learn(head.decode("utf-8", "replace"))


@pytest.mark.parametrize(
    ("line", "is_stating"),
    [
        (b"node1:311:402 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>", True),
        (b"PyTorch version 2.6.0", True),
        (b"world_size=8", True),
        (b"Kernel Module  550.54", True),
        (b"step 3 loss 0.25 \xff", False),
    ],
)
def test_a_line_states_something_by_its_words(line: bytes, is_stating: bool) -> None:
    """Only lines with a word of what is learned are handed on, decoded."""
    assert find_stating_lines(b"iteration 1\n" + line + b"\niteration 2") == (line.decode() if is_stating else "")


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("UserWarning: In PyTorch 1.1.0 and later, you should call them in the opposite order", None),
        ("FutureWarning: deprecated since torch 2.3.10, use torch.amp", None),
        ("RuntimeError: this operator needs PyTorch 2.10.12 or newer", None),
        ("running with PyTorch 2.4.0", "2.4.0"),
        ("torch 2.6.0+cu124 and nccl 2.21.5", "2.6.0+cu124"),
    ],
)
def test_a_version_that_advice_mentions_is_not_that_of_the_job(line: str, version: str | None) -> None:
    """Signatures with bounds would be left out for a job that has another version."""
    result = ExtractedJob()
    learn_from_text(result, "a.log", line)
    assert result.versions.get("torch") == version


@pytest.mark.parametrize(("kind", "ranks"), [("message", {1}), ("ending", set())])
def test_lines_around_the_last_line_of_a_process_say_nothing_of_its_rank(kind: str, ranks: set[int]) -> None:
    """Who states a rank in a line of its own has that rank; who writes a last line beside such lines has none."""
    line = (
        "node3:41:52 [1] NCCL INFO ncclCommInitRank comm 0x55d0 rank 1 nranks 2 cudaDev 1 busId 43000 - Init COMPLETE"
    )
    text = line if kind == "message" else f"2 pages are free\n{line}"
    result = ExtractedJob()
    learn_from_fact(result, Evidence(kind, "app", text, Origin(pid=77), "node3.log", 0, len(text)))
    result.job.resolve()
    assert result.job.ranks == ranks
