"""A message of the wrong size: other lines show who sent it."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from triage.model.diagnosis import Finding

ABORT = (
    "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n"
    "  what():  [enforce fail at ../gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. {} vs {}\n"
)
TRUNCATED = (
    "n1:77:90 [0] transport/net_socket.cc:488 NCCL WARN NET/Socket : peer 10.0.0.9<4> message truncated : receiving 8 "
    "bytes instead of 4. If you believe your socket network is in healthy state, there may be a mismatch\n"
)


def root(directory: Path, lines: dict[int, str]) -> Finding | None:
    """The root cause of a job with one file for each rank."""
    for rank, text in lines.items():
        (directory / f"rank{rank}.log").write_text(text)
    return triage.ingest(directory).root_cause


@pytest.mark.parametrize(
    ("values", "sizes", "suspects"),
    [
        ((600, 300, 300, 300), (300, 152), (0,)),
        (("1,200,000", 1_000_000, 1_000_000, 1_000_000), (600000, 500000), (0,)),
        ((300, 300, 300, 150), (300, 152), (3,)),  # the receiver itself has the smaller tensor
        ((600, 600, 300, 300), (300, 152), ()),  # halves: nobody is the odd one
        ((500, 300, 300, 300), (300, 152), ()),  # another ratio than that of the message
    ],
)
def test_the_rank_with_another_number_sent_it(
    tmp_path: Path, values: tuple[object, ...], sizes: tuple[int, int], suspects: tuple[int, ...]
) -> None:
    """Only a number that one rank has alone, and as much larger or smaller as the message, names that rank."""
    lines = {rank: f"shard {rank + 2}\nI collate: {value} rows in this chunk\n" for rank, value in enumerate(values)}
    lines[3] += ABORT.format(*sizes)
    cause = root(tmp_path, lines)
    assert cause is not None
    assert (cause.signature, cause.ranks) == ("torch.collective-shape-mismatch", suspects)


@pytest.mark.parametrize(
    ("line", "suspects"),
    [
        ("irecv(src=1) of activations", (1, 2)),
        ("waiting to receive the gradient from rank 3", (2, 3)),
        ("received 5 from the queue", (2,)),
        ("received a batch from rank 2", (2,)),
    ],
)
def test_the_receiver_names_its_sender(tmp_path: Path, line: str, suspects: tuple[int, ...]) -> None:
    """The last line of the receiver about what it receives names the other end; without one, only the receiver is."""
    lines = dict.fromkeys(range(4), "step 1 loss 2.0\n")
    lines[2] += f"{line}\n{TRUNCATED}"
    cause = root(tmp_path, lines)
    assert cause is not None
    assert (cause.signature, cause.ranks) == ("nccl.message-truncated", suspects)
