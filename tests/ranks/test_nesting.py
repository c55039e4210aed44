"""triage.ranks.nesting"""

from __future__ import annotations

import pytest

from triage.model.evidence import Origin
from triage.ranks.grammars import BY_START
from triage.ranks.layouts import detect_layout
from triage.ranks.nesting import resolve_labels
from triage.ranks.prefix import parse_prefix


def parse_origin(line: str, data: bytes) -> Origin:
    return parse_prefix(line, table=resolve_labels(BY_START, data)).origin


def test_a_label_around_a_tee_is_a_task() -> None:
    """One line whose numbers differ is enough, and then no label of the file is a rank."""
    data = b"0: [default0]:step 1\n" * 500 + b"1: [default0]:step 1\n" + b"0: [default0]:step 2\n" * 500
    assert parse_origin("1: [default2]:step 1", data) == Origin(local_rank=2, host="task1")
    assert parse_origin("[1,1]<stderr>:[host0:2]:step", b"[1,1]<stderr>:[host0:2]:step\n") == Origin(
        local_rank=2, host="host0", stream="stderr"
    )
    assert parse_origin("1: [default2]:[rank6]: boom", data) == Origin(rank=6, local_rank=2, host="task1")


def test_labels_that_agree_with_inner_ranks_are_ranks() -> None:
    """Nothing contradicts them. A rank that a process states itself is not a label."""
    assert parse_origin("3: step", b"0: [default0]:step\n3: [default3]:step\n").rank == 3
    assert resolve_labels(BY_START, b"[rank3]: [default1]: is what it said\n") is BY_START
    assert resolve_labels(BY_START, b"1: worker [default0]: is what it said\n") is BY_START


def test_a_label_around_other_ranks_or_torchrun_is_a_task() -> None:
    """torch's tag has another rank than the label, or torchrun itself writes behind it. Rank 0 of task 0 decides
    nothing.
    """
    tags = b"0: step 1\n1: step 1\n0: [rank0]: boom\n"
    assert parse_origin("1: step 1", tags).rank == 1
    assert parse_origin("1: step 1", tags + b"1: [rank8]: boom\n") == Origin(host="task1")
    assert parse_origin("1: [rank9]: boom", tags + b"1: [rank8]: boom\n") == Origin(rank=9, host="task1")
    assert parse_origin("1: step 1", tags + b"1: [rank1]: boom\n0: [rank1]: was said by another\n").rank == 1
    starter = b"1: W1121 03:07:43.356000 14671 torch/distributed/run.py:874] Setting OMP_NUM_THREADS\n"
    assert parse_origin("0: step 1", tags + starter) == Origin(host="task0")
    assert parse_origin("[1,0]<stderr>:step 1", starter.replace(b"1: ", b"[1,1]<stderr>:")).host == "task0"
    assert parse_origin("0: step 1", b'0:   File "/usr/lib/torch/distributed/run.py", line 1\n').host == "task0"
    assert (
        parse_origin(
            "0: step 1", b'0:   File "/usr/lib/torch/distributed/elastic/multiprocessing/errors/__init__.py", line 1\n'
        ).rank
        == 0
    )


def test_torchrun_with_the_role_rank_tags_local_ranks() -> None:
    """torch's own tag behind the launcher's is another rank, so the outer tags are local ranks."""
    data = b"[rank0]:step 1\n" * 9 + b"[rank0]:[rank8]: Traceback (most recent call last):\n"
    assert parse_origin("[rank0]:step 1", data) == Origin(local_rank=0)
    assert parse_origin("[rank0]:[rank8]: boom", data) == Origin(rank=8, local_rank=0)
    assert parse_origin("[rank0]: boom", b"[rank0]: boom\n[rank0]:[rank0]: boom\n") == Origin(rank=0)


def test_names_around_a_tee_are_hosts() -> None:
    """Two replicas have a local rank 2 each. Without a tee inside, such a name is not a host; a container always is."""
    for name, host in (("trainer-{}  | ", "trainer-{}"), ("i.pretrain/{} ", "pretrain/{}"), ("P{}  0: ", "P{}  0")):
        lines = [name.format(node) + f"[default{local}]:step 3" for node in (0, 1, 1, 0) for local in (2, 0)]
        layout = detect_layout("\n".join(lines * 3).encode() + b"\n")
        for node in (0, 1):
            assert parse_prefix(name.format(node) + "[default2]:boom", table=layout.table).origin == Origin(
                local_rank=2, host=host.format(node)
            )
    bare = detect_layout(b"trainer-0  | step 3\ntrainer-1  | step 3\n" * 9)
    assert parse_prefix("pretrain/0 step 3", table=bare.table).origin == Origin()


def test_grammars_keep_their_order_when_labels_change() -> None:
    """A container's line is still tried before the timestamp that it begins with."""
    data = b"2026-11-21T03:07:45.372001Z stderr F [rank0]:[rank8]: boom\n" * 9
    parsed = parse_prefix(data.split(b"\n")[0].decode(), table=detect_layout(data).table)
    assert parsed.text == "boom"
    assert (parsed.origin.rank, parsed.origin.local_rank) == (8, 0)


def test_a_tee_without_a_role_is_a_local_rank_behind_a_replica() -> None:
    """torchx starts torchrun on each replica without a role; elsewhere `[1]:` is a rank."""
    lines = [f"{start}step {step}" for step in range(4) for start in ("trainer/0 [1]:", "trainer/1 [1]:")]
    data = "\n".join(lines).encode()
    assert parse_prefix("trainer/1 [1]:step 5", table=detect_layout(data).table).origin == Origin(
        local_rank=1, host="trainer/1"
    )
    bare = b"\n".join(b"[%d]:step" % rank for rank in (0, 1, 1, 0) * 4)
    assert parse_prefix("[1]:step 5", table=detect_layout(bare).table).origin == Origin(rank=1)


def test_a_bare_number_before_lines_that_state_other_ranks_is_a_local_rank() -> None:
    """`torchrun --role ''` writes `[1]:` before rank 5 of the second node; a template with the rank agrees with it."""
    steps = "".join(f"[{number}]:step {step}\n" for step in range(4) for number in (0, 1))
    for stated in ("[1]:[rank5]: boom", "[1]:node2:82:293 [1] NCCL INFO comm 0x55 rank 5 nranks 8", "[1]:rank 5 of 8"):
        data = f"{steps}{stated}\n".encode()
        origin = parse_prefix("[1]:step 5", table=detect_layout(data).table).origin
        assert (origin.rank, origin.local_rank) == (None, 1)
    agreeing = f"{steps}[1]:[rank1]: boom\n[0]:rank 5 of 8 is lost\n".encode()
    assert parse_prefix("[1]:step 5", table=detect_layout(agreeing).table).origin == Origin(rank=1)


def test_a_bare_number_of_0_agrees_with_any_rank() -> None:
    """Rank 0 has local rank 0; another number that agrees makes all of them ranks."""
    steps = "".join(f"[{number}]:step {step}\n" for step in range(4) for number in (0, 1))
    for stated, local in (("[0]:[rank0]: a\n[1]:[rank5]: b\n", 1), ("[1]:[rank1]: a\n[2]:[rank5]: b\n", None)):
        origin = parse_prefix("[1]:step 5", table=detect_layout(f"{steps}{stated}".encode()).table).origin
        assert origin.local_rank == local
    assert resolve_labels(BY_START, b"[1]:[rank5]: boom\n") is BY_START


def test_only_the_bare_number_becomes_a_local_rank() -> None:
    """The other prefixes of the file are parsed as before."""
    table = resolve_labels(detect_layout(b"[0]:step 1\n[1]:step 1\n" * 4).table, b"[1]:[rank5]: boom\n")
    assert parse_prefix("[1]:step 5", table=table).origin == Origin(local_rank=1)
    assert parse_prefix("[1]:[rank5]: boom", table=table).origin == Origin(rank=5, local_rank=1)


def test_a_frame_of_torchrun_behind_a_stated_rank_shows_no_label() -> None:
    """A process tags its own traceback, and the labels of the file stay ranks."""
    frame = b'File "/usr/lib/torch/distributed/run.py", line 1\n'
    assert parse_origin("1: step 1", b"1: step 1\n[rank1]:   " + frame) == Origin(rank=1)
    assert parse_origin("1: step 1", b"1: step 1\n1:   " + frame) == Origin(host="task1")


@pytest.mark.parametrize(
    ("inner", "host"),
    [("[default2]:step 3", "trainer/0"), ("[host0:2]:step 3", None), ("[rank2]: sshd[412]: closed", None)],
)
def test_a_name_is_a_host_only_around_a_tee_that_names_none(inner: str, host: str | None) -> None:
    """The role of the tee has the host, or what has brackets is a program with its pid."""
    layout = detect_layout("".join(f"trainer/{number % 2} {inner}\n" for number in range(12)).encode())
    assert parse_prefix("trainer/0 step 3", table=layout.table).origin.host == host
