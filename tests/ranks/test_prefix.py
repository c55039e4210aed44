"""triage.ranks.prefix"""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.model.evidence import Origin
from triage.ranks.prefix import parse_prefix

AT = 1_795_230_465.0  # 2026-11-21 03:07:45 UTC

CASES = [
    ("[rank3]: Traceback", "Traceback", "[rank3]:", False, Origin(rank=3)),
    ("[rank3]:", "", "[rank3]:", False, Origin(rank=3)),
    ("[default2]:[rank10]: boom", "boom", "[default2]:[rank10]:", False, Origin(rank=10, local_rank=2)),
    ("\ufeff[trainer12]:boom", "boom", "[trainer12]:", False, Origin(local_rank=12)),
    ("[trainer12]:boom", "boom", "[trainer12]:", False, Origin(local_rank=12)),
    ("[node1:0]:boom", "boom", "[node1:0]:", False, Origin(local_rank=0, host="node1")),
    ("12: [rank12]: boom", "boom", "12: [rank12]:", False, Origin(rank=12)),
    (" 3: boom", "boom", " 3:", False, Origin(rank=3)),
    ("[1,5]<stderr>:boom", "boom", "[1,5]<stderr>:", False, Origin(rank=5, stream="stderr")),
    (
        "[rank1]:[E1121 03:07:45.123456789 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog",
        "[Rank 1] Watchdog",
        "[rank1]:",
        True,
        Origin(rank=1, time=AT),
    ),
    ("2026-11-21 03:07:45,500 [rank2] INFO step", "INFO step", "", True, Origin(rank=2, time=AT + 0.5)),
    ("(Worker_TP6_EP6 pid=412) boom", "boom", "(Worker_TP6_EP6 pid=412)", False, Origin(rank=6, pid=412)),
    ("(Worker_PP1_TP0 pid=412) boom", "boom", "(Worker_PP1_TP0 pid=412)", False, Origin(pid=412)),
    ("[2026-11-21 03:07:45 TP2] boom", "boom", "", True, Origin(rank=2, time=AT)),
    ("[2026-11-21 03:07:45 DP1 TP2] boom", "boom", "", True, Origin(time=AT)),
    (
        "[2026-11-21T03:07:45.000000Z] 1f2e3d4c [rank=2] || boom",
        "boom",
        "1f2e3d4c [rank=2]",
        False,
        Origin(rank=2, time=AT),
    ),
    ("node1:412:530 [3] NCCL INFO Channel", "NCCL INFO Channel", "", True, Origin(host="node1", pid=412)),
    ("3f2a9c1b7d4e:412:530 [3] NCCL INFO Channel", "NCCL INFO Channel", "", True, Origin(host="3f2a9c1b7d4e", pid=412)),
    (
        "10-0-0-7:412:530 NCCL CALL ncclGroupEnd()",
        "NCCL CALL ncclGroupEnd()",
        "",
        True,
        Origin(host="10-0-0-7", pid=412),
    ),
    (
        "[2026-11-21 03:07:45] node1:412:530 [0] misc/socket.cc:50 NCCL WARN x",
        "misc/socket.cc:50 NCCL WARN x",
        "",
        True,
        Origin(host="node1", pid=412, time=AT),
    ),
    ("Nov 21 03:07:45 node1 kernel: [12.345678] NVRM: Xid", "NVRM: Xid", "", True, Origin(host="node1", time=AT)),
    (
        "2026-11-21T03:07:45+0000 node1 slurmd[77]: x",
        "x",
        "node1 slurmd[77]:",
        False,
        Origin(host="node1", pid=77, time=AT),
    ),
    (
        "2026-11-21T03:07:45.000001Z stderr F [rank0]: boom",
        "boom",
        "[rank0]:",
        False,
        Origin(rank=0, stream="stderr", time=AT + 0.000001),
    ),
    (
        "[ERROR] 2026-11-21-03:07:45 (PID:41, Device:0, RankID:-1) ERR02200 x",
        "ERR02200 x",
        "",
        True,
        Origin(pid=41, time=AT),
    ),
    ("i.pretrain [default2]:[rank2]: boom", "i.pretrain [default2]:[rank2]: boom", "", False, Origin()),
    ("[1,2]<stderr>:  File", "  File", "[1,2]<stderr>:", False, Origin(rank=2, stream="stderr")),
    ("[pod/a-0/main] [pod/b-1/main] boom", "boom", "[pod/a-0/main] [pod/b-1/main]", False, Origin(host="b-1")),
    ("[2]<stdout>:  File", "  File", "[2]<stdout>:", False, Origin(rank=2, stream="stdout")),
    ("P1  3: boom", "boom", "P1  3:", False, Origin()),
    (
        "(Worker pid=1, ip=10.0.0.7) (Worker_TP0 pid=2) boom",
        "boom",
        "(Worker pid=1, ip=10.0.0.7) (Worker_TP0 pid=2)",
        False,
        Origin(pid=2, host="10.0.0.7"),
    ),
    ("(T pid=1) boom [repeated 26x across cluster]", "boom", "(T pid=1)", False, Origin(pid=1)),
    ("[pod/w-0/main] [rank1]: boom", "boom", "[pod/w-0/main] [rank1]:", False, Origin(rank=1, host="w-0")),
    ("2026-11-21T03:07:45.123456789Z boom", "boom", "", False, Origin(time=AT + 0.123456789)),
    (
        "2026-11-21T03:07:45Z stderr F 2026-11-21 04:07:44,000 boom",
        "boom",
        "",
        True,
        Origin(stream="stderr", time=AT - 1),
    ),
    (
        "2026-11-21 03:07:45 master-0 >> [rank7]: boom",
        "boom",
        "master-0 >> [rank7]:",
        False,
        Origin(rank=7, host="master-0", time=AT),
    ),
    ("[INFO] [Rank 3] boom", "[INFO] [Rank 3] boom", "", True, Origin(rank=3)),
    ("[Rank 3] Watchdog caught", "[Rank 3] Watchdog caught", "", False, Origin()),
    ("[PG ID 2 PG GUID 9 Rank 2] boom", "[PG ID 2 PG GUID 9 Rank 2] boom", "", False, Origin()),
    (
        "LOCAL_RANK: 2 - CUDA_VISIBLE_DEVICES: [0]",
        "LOCAL_RANK: 2 - CUDA_VISIBLE_DEVICES: [0]",
        "",
        True,
        Origin(local_rank=2),
    ),
    ("plain text: nothing", "plain text: nothing", "", False, Origin()),
    ("", "", "", False, Origin()),
    ("RuntimeError: boom", "RuntimeError: boom", "", False, Origin()),
    ("Epoch 3: 50%|", "Epoch 3: 50%|", "", False, Origin()),
    ("03:07:45 [0] NCCL is a library", "03:07:45 [0] NCCL is a library", "", False, Origin()),
]


@pytest.mark.parametrize(("line", "text", "writer", "record", "origin"), CASES, ids=[case[0][:40] for case in CASES])
def test_prefixes_are_parsed(line: str, text: str, writer: str, record: bool, origin: Origin) -> None:
    """The rest of the line, the writer, whether it opens a record, and the origin."""
    parsed = parse_prefix(line, 2026)
    assert (parsed.text, parsed.writer, parsed.opens_record) == (text, writer, record)
    parsed_origin = parsed.origin
    assert (
        parsed_origin.rank,
        parsed_origin.local_rank,
        parsed_origin.host,
        parsed_origin.pid,
        parsed_origin.stream,
    ) == (
        origin.rank,
        origin.local_rank,
        origin.host,
        origin.pid,
        origin.stream,
    )
    assert parsed_origin.time == pytest.approx(origin.time) if origin.time else parsed_origin.time is None


WRITERS = ["[rank7]: ", "[default3]:", "[1,7]<stderr>:", "[job@1,7]<stdout>: "]
RECORDS = ["2026-11-21 03:07:45,372 ", "[E1121 03:07:45.123456789 x.cpp:1] ", "[rank7] "]


@given(
    st.lists(st.sampled_from(WRITERS), unique=True, max_size=3),
    st.lists(st.sampled_from(RECORDS), unique=True, max_size=2),
)
def test_layers_stack_in_any_order(writers: list[str], records: list[str]) -> None:
    """Writers before records are all removed, and each adds its part to the origin."""
    parsed = parse_prefix("".join(writers) + "".join(records) + "boom", 2026)
    assert parsed.text == "boom"
    assert parsed.writer == "".join(writers).rstrip()
    assert parsed.opens_record == bool(records)
    assert len(parsed.layers) == len(writers) + len(records)
    assert parsed.origin.rank in ({7} if set(writers) - {"[default3]:"} or "[rank7] " in records else {None})
    assert parsed.origin.local_rank == (3 if "[default3]:" in writers else None)


@pytest.mark.parametrize("prefix", ["[rank3]: ", "[default3]:", "[1,3]<stderr>:"])
def test_a_number_behind_another_prefix_is_not_a_label(prefix: str) -> None:
    """`0: ` behind another writer's prefix is text, so the line is not rank 0's."""
    parsed = parse_prefix(f"{prefix}0: a numbered line")
    assert parsed.text == "0: a numbered line"
    assert parsed.origin.rank in (3, None)


@given(st.text(max_size=60))
def test_any_line_can_be_parsed(line: str) -> None:
    """The text is the end of the line, and a rank comes from a layer."""
    parsed = parse_prefix(line)
    assert line.endswith(parsed.text)
    assert parsed.origin.rank is None or parsed.layers


@given(st.integers(0, 99_999), st.sampled_from(["[rank{}]: x", "{}: x", "[1,{}]<stdout>:x", "[rank{}] x"]))
def test_ranks_are_parsed_as_numbers(rank: int, form: str) -> None:
    """Every rank is the number in the prefix, 0 included."""
    assert parse_prefix(form.format(rank)).origin.rank == rank


def test_a_label_of_srun_stands_before_indented_text_too() -> None:
    """Megatron's lines begin with a blank, so two blanks follow the colon."""
    parsed = parse_prefix("11:  iteration        3/     100 | loss: 1.0")
    assert (parsed.origin.rank, parsed.text) == (11, " iteration        3/     100 | loss: 1.0")


@pytest.mark.parametrize(
    ("line", "rank", "text"),
    [
        ("11: \tat org.example.Feed.seek(Feed.java:51)", 11, "\tat org.example.Feed.seek(Feed.java:51)"),
        ("11: \t", None, "11: \t"),
    ],
)
def test_a_label_of_srun_stands_before_a_tab_too(line: str, rank: int | None, text: str) -> None:
    """The frames of a JVM and of Go begin with a tab; a label before nothing is none."""
    parsed = parse_prefix(line)
    assert (parsed.origin.rank, parsed.text) == (rank, text)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("2026-11-21 03:07:45     INFO step 3", "INFO step 3"),
        ("2026-11-21 03:07:45    Step 3", "Step 3"),
        ("2026-11-21 03:07:45     Pool.get (pool.py:33)", "    Pool.get (pool.py:33)"),
        ('2026-11-21 03:07:45   File "a.py", line 3, in f', '  File "a.py", line 3, in f'),
    ],
)
def test_the_padding_of_a_level_is_no_indentation(line: str, text: str) -> None:
    """Behind a timestamp blanks before a level belong to the prefix, and four more before a frame to the frame."""
    assert parse_prefix(line).text == text


def test_a_collector_s_stamp_before_that_of_the_program() -> None:
    """Both are removed; a line with the collector's alone has other layers, so it may continue a record."""
    both, one = (
        parse_prefix(f"2026-08-15 20:30:26 {text}")
        for text in ("[2026-08-15 20:30:27,111] torch.distributed.run: [WARNING] boom", "  File")
    )
    assert both.text.split()[0] != "[2026-08-15"
    assert both.origin.time == (one.origin.time or 0) + 1.111
    assert (both.layers, one.layers) == (("stamp", "stamp"), ("stamp",))


@pytest.mark.parametrize(("line", "lines"), [("(T pid=1) done [repeated 7x across cluster]", 7), ("(T pid=1) done", 1)])
def test_a_line_that_ray_prints_for_several(line: str, lines: int) -> None:
    """It is one of so many equal lines."""
    assert parse_prefix(line).lines == lines
