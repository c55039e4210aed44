"""triage.ranks.file_prefixes"""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.ranks.file_prefixes import FILE_PREFIXES, PROGRAM_TAGS, UNLABELLED, FilePrefix, detect_table
from triage.ranks.grammars import BY_START, GRAMMARS
from triage.ranks.prefix import parse_prefix


@pytest.mark.parametrize("file_prefix", FILE_PREFIXES, ids=lambda file_prefix: file_prefix.grammar.name)
def test_a_file_prefix_is_detected_in_its_sample(file_prefix: FilePrefix) -> None:
    """The lines of its sample have it as their outermost layer, and the text behind it is left."""
    lines = file_prefix.grammar.example.split("\n")
    table = detect_table(lines)
    for line in lines:
        parsed = parse_prefix(line, 2026, table)
        assert parsed.layers[0] == file_prefix.grammar.name
        assert parsed.text in ("step 3", "  File")


def test_names_are_unique_among_all_layouts() -> None:
    """A layer is identified by its name."""
    names = [grammar.name for grammar in (*GRAMMARS, *(entry.grammar for entry in (*FILE_PREFIXES, *PROGRAM_TAGS)))]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("tag", PROGRAM_TAGS, ids=lambda tag: tag.grammar.name)
@pytest.mark.parametrize("before", ["", "2026-11-21 03:07:45,372 - ", "E1121 03:07:43.356000 14670 train.py:88] "])
def test_a_tag_of_the_program_is_detected_in_its_sample(tag: FilePrefix, before: str) -> None:
    """Its lines are of the rank or local rank in the tag, also behind timestamps; a tag in front is removed."""
    lines = [before + line for line in tag.grammar.example.split("\n")]
    table = detect_table(lines)
    parsed = [parse_prefix(line, 2026, table) for line in lines]
    assert [getattr(line.origin, tag.group) for line in parsed] == [0, 1, 1, 0]
    assert {line.text.endswith("step 3") for line in parsed} == {True}
    assert all(line.text == "step 3" or not tag.grammar.name.endswith("first") for line in parsed)
    assert {line.origin.time is None for line in parsed} == {not before}


@pytest.mark.parametrize(
    "lines",
    [
        [f"received from (rank {n % 4}) {n} bytes over link {n}" for n in range(4)] + ["step 3"] * 8,
        [f"INFO layer {n} has LoRA rank 16" for n in range(12)],
        [f"[R{n}] {n}th reference" for n in range(12)],
        ["[GPU 0] one process"] * 12,
        [f"[rank{n % 4}] [process {n % 3}] loads" for n in range(12)],
    ],
    ids=["few lines", "no tag", "a listing", "one number", "a rank before it"],
)
def test_what_is_no_tag_of_the_program(lines: list[str]) -> None:
    """Numbers in few lines, of a listing, of a single process, or behind a rank are text."""
    names = {tag.grammar.name for tag in PROGRAM_TAGS}
    table = detect_table(lines)
    assert all(names.isdisjoint(parse_prefix(line, 2026, table).layers) for line in lines)


@pytest.mark.parametrize(("tagged", "rank"), [(6, 2), (5, None)])
def test_a_tag_of_the_program_stands_before_most_lines(tagged: int, rank: int | None) -> None:
    """Six in ten lines have it, else it may be text."""
    lines = [f"INFO (rank {n % 3}/3) step" for n in range(tagged)] + ["downloading"] * 4
    parsed = parse_prefix("INFO (rank 2/3) step", 2026, detect_table(lines))
    assert parsed.origin.rank == rank


ORDINARY = [
    ["loading: a", "saving: b", "epoch3: c", "epoch3: d", "epoch3: e", "epoch3: f"],
    ["gpu0: 61 C", "gpu1: 60 C", "gpu0: 62 C", "gpu1: 61 C"],
    [f"gpu-{number % 2 + 14} {number % 2}: {number} C" for number in range(6)],
    [f"{number}: a line of a listing" for number in range(1, 40)],
    [f"[{number}] reference" for number in range(4)],
    ["the quick brown fox", "the quick red fox", "the quick brown dog", "the quick red dog"],
    [f"[INFO] HCCL(510{n},python3):2026-03-07-19:00:40.120.118 [x.cc:18][5108] body" for n in range(6)],
    [f"[rank3]:[E1121 02:38:00.123456789 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog {n}" for n in range(6)],
    ["name  | a", "size  | b", "depth | c", "width | d", "heads | e"],
]


def test_a_host_that_is_named_after_its_gpus() -> None:
    """`gpu-064` is a host, since no node has over 16 GPUs."""
    table = detect_table([f"gpu-{number % 2 + 64} {number % 2}: step {number}" for number in range(6)])
    assert table not in (BY_START, UNLABELLED)


@pytest.mark.parametrize("tag", ["[{}]<stderr>:", "[1,{}]<stderr>:"])
@pytest.mark.parametrize(("other", "frame"), [("x", "   File"), (" x", "  File")])
def test_a_blank_behind_every_tag_is_part_of_it(tag: str, other: str, frame: str) -> None:
    """Open MPI 5 writes it, Open MPI 4 and Horovod do not: there it begins the indent of a frame."""
    lines = [tag.format(rank) + text for rank, text in ((0, other), (1, "   File"), (1, "   File"), (0, " y"))]
    parsed = parse_prefix(lines[1], 2026, detect_table(lines))
    assert (parsed.text, parsed.origin.rank) == (frame, 1)


@pytest.mark.parametrize(
    ("form", "host"),
    [
        ("node{}: ", "node0"),
        ("trainer-{}  | ", "trainer-0"),
        ("trainer.{}  | ", None),
        ("train-worker-{} pytorch ", "train-worker-0"),
        ("i.pretrain/{} ", None),
    ],
)
def test_a_collector_inside_another_of_its_kind(form: str, host: str | None) -> None:
    """Both prefixes are removed, and the inner one names the host."""
    lines = [form.format(7 + number % 2) + form.format(number % 2) + "step 3" for number in range(8)]
    parsed = parse_prefix(lines[0], 2026, detect_table(lines))
    assert (parsed.text, parsed.origin.host) == ("step 3", host)


@pytest.mark.parametrize("others", [4, 5])
def test_a_second_name_before_few_lines_is_text(others: int) -> None:
    """`node1: node7: ` is twice a prefix only where most lines have two."""
    second = ["node1: node7: step 3", "node2: node8: step 3"] * 3
    lines = [*second, *["node1: step 3"] * others]
    text = parse_prefix(second[0], 2026, detect_table(lines)).text
    assert text == ("step 3" if others == 4 else "node7: step 3")


@pytest.mark.parametrize("lines", ORDINARY, ids=lambda lines: lines[0][:30])
def test_text_that_looks_like_a_prefix_is_text(lines: list[str]) -> None:
    """Words, counters, listings and threads are neither hosts nor ranks."""
    assert detect_table(lines) in (BY_START, UNLABELLED)


@pytest.mark.parametrize(("count", "is_host"), [(8, True), (7, False)])
def test_a_program_names_itself_before_a_line_of_a_host(count: int, is_host: bool) -> None:
    """One host, and one line of wandb behind no prefix: pdsh's where hosts stand before far more lines."""
    table = detect_table(["wandb: Tracking run", *(f"worker-31: step {number}" for number in range(count))])
    origin = parse_prefix("worker-31: step 3", 2026, table).origin
    assert (origin.host == "worker-31") is is_host
    assert parse_prefix("wandb: Tracking run", 2026, table).origin.host is None


def test_an_item_of_a_list_is_not_a_label() -> None:
    """`0: ` is srun's label in a file where many lines have one, and in a very short file."""
    ordinary = [f"step {step}" for step in range(40)]
    assert parse_prefix("0: a list", 2026, detect_table([*ordinary, "0: a list"])).origin.rank is None
    assert (
        parse_prefix(
            "0: step 3", 2026, detect_table([*ordinary[:10], *(f"{rank}: step 3" for rank in (0, 1, 1, 0))])
        ).origin.rank
        == 0
    )
    assert parse_prefix("0: step 3", 2026, detect_table(["0: step 3"])).origin.rank == 0


def test_a_few_lines_have_no_file_prefix() -> None:
    """Three lines are too few to detect one."""
    assert detect_table(["node1: a", "node1: b", "node1: c"]) is BY_START


def test_a_line_without_the_file_prefix_is_parsed_as_usual() -> None:
    """The launcher's own lines have no label."""
    table = detect_table([f"{rank}: step {step}" for step in range(4) for rank in range(4)])
    assert parse_prefix("[rank3]: boom", 2026, table).origin.rank == 3
    assert parse_prefix("RuntimeError: boom", 2026, table).text == "RuntimeError: boom"
    assert parse_prefix("3:   File", 2026, table).text == "  File"


@given(st.lists(st.text(max_size=40), max_size=30))
def test_any_lines_give_a_table(lines: list[str]) -> None:
    """Whatever a file holds, its table parses each of its lines."""
    table = detect_table(lines)
    for line in lines:
        assert line.endswith(parse_prefix(line, 2026, table).text) or "across cluster" in line


def test_the_end_of_a_failed_mpi_job_hides_no_prefix() -> None:
    """mpiexec writes a block for each rank, without a prefix, and there may be more of them than other lines."""
    block = [
        "=" * 83,
        "=   BAD TERMINATION OF ONE OF YOUR",
        "=   RANK 3 PID 412 RUNNING AT node1",
        "=   EXIT STATUS: 1",
    ]
    lines = [f"[{rank}] step {step}" for step in range(3) for rank in (1, 0)]
    assert parse_prefix("[1] step 3", 2026, detect_table(lines + block * 8)).origin.rank == 1
    assert parse_prefix("[1] step 3", 2026, detect_table([*lines, *["a line of text"] * 32])).origin.rank is None


@pytest.mark.parametrize(
    ("forms", "rank"),
    [
        (("r37u114 {0}: step", "a4f8d4a434b6 {1}: step"), 1),
        (("node1 {0}: step", "node2 {0}: step"), None),  # one number behind two names
        (("train.py2 {0}: step", "epoch2 {1}: step"), None),
        (("step {0}: loss", "done {1}: loss"), None),
    ],
)
def test_a_host_and_a_rank_before_each_line(forms: tuple[str, ...], rank: int | None) -> None:
    """Each rank has one host, which has a digit and is neither a file nor a counter."""
    lines = [form.format(0, 1) for _ in range(4) for form in forms]
    assert parse_prefix(lines[-1], 2026, detect_table(lines)).origin.rank == rank


REPLICAS = [f"trainer/{node} [{local}]:step 3" for node in (0, 1) for local in (0, 1)] * 3
FRAME = 'trainer/1 [1]:  File "/work/train.py", line 9, in <module>'


@pytest.mark.parametrize(
    ("inner", "is_collected"),
    [
        (FRAME, True),
        ("trainer/0 [2026-07-28 18:21:57,576] torch.distributed.run: [WARNING] boom", True),
        ("trainer/0 [0]:Traceback (most recent call last):", True),
        ("trainer/0 [0]:the run began long before 2026-07-28 18:21:57 on this node", False),
        ("trainer/0 [0]:step 4", False),
    ],
)
def test_a_stamp_before_every_line_is_a_collectors(inner: str, is_collected: bool) -> None:
    """No program stamps the frames of its tracebacks, or a record twice."""
    table = detect_table([f"2026-07-28 18:21:57 {line}" for line in (*REPLICAS, inner)])
    layers = parse_prefix(f"2026-07-28 18:21:58 {FRAME}", 2026, table).layers
    assert ("torchx and NeMo-Run" in layers) is is_collected


def test_a_stamp_before_some_lines_is_a_programs() -> None:
    """One line without it is enough: what follows a program's stamp may look like a launcher's prefix."""
    lines = [f"2026-07-28 18:21:57 {line}" for line in (*REPLICAS, FRAME)]
    assert detect_table([*lines, "  File"]) in (BY_START, UNLABELLED)


@pytest.mark.parametrize(("count", "others", "is_common"), [(4, 0, True), (3, 0, False), (6, 4, True), (5, 5, False)])
def test_most_lines_have_a_file_prefix(count: int, others: int, is_common: bool) -> None:
    """Four lines at least, and six of ten."""
    lines = [f"node{number % 2}: step {number}" for number in range(count)] + ["loading the data"] * others
    assert (detect_table(lines) is not BY_START) is is_common


@pytest.mark.parametrize(
    ("lines", "labelled", "is_label"), [(11, 2, True), (12, 2, False), (15, 3, True), (16, 3, False)]
)
def test_every_fifth_line_has_a_label(lines: int, labelled: int, is_label: bool) -> None:
    """In a file of twelve lines or more."""
    texts = [f"{number}: step" for number in range(labelled)] + ["loading the data"] * (lines - labelled)
    assert detect_table(texts) is (BY_START if is_label else UNLABELLED)


@pytest.mark.parametrize(("host", "is_prefix"), [("node7", True), ("node8", False)])
def test_pdsh_names_its_host_however_few_its_lines(host: str, is_prefix: bool) -> None:
    """Its own report proves the prefix of that host only."""
    lines = [
        "step 1 loss 3",
        "step 2 loss 2",
        "node7: Traceback (most recent call last):",
        f"pdsh@login: {host}: ssh exited with exit code 1",
    ]
    parsed = parse_prefix(lines[2], 1970, detect_table(lines))
    assert (parsed.text == "Traceback (most recent call last):") == is_prefix


def test_an_item_of_a_list_is_not_a_label_in_a_file_with_a_file_prefix() -> None:
    """One line without the prefix begins with `3: `, so it is text."""
    lines = [*(f"trainer-{number % 2}  | loading the data" for number in range(20)), "3: a list"]
    parsed = parse_prefix(lines[-1], 2026, detect_table(lines))
    assert (parsed.text, parsed.origin.rank) == ("3: a list", None)


@pytest.mark.parametrize(("zone", "is_stream"), [("+00:00", True), ("+05:45", False)])
def test_the_streams_of_aws_stand_behind_stamps_in_utc(zone: str, is_stream: bool) -> None:
    """A kernel's log with another zone names its host there, not a stream."""
    lines = [f"2026-11-21T03:07:4{n}.372000{zone} node-{n % 2} kernel: text" for n in range(8)]
    names = {name for line in lines for name in parse_prefix(line, 2026, detect_table(lines)).layers}
    assert ("aws logs tail" in names) == is_stream


_RUST_STACK = [
    "stack backtrace:",
    "   0: rust_begin_unwind",
    "   1: core::panicking::panic_fmt",
    "   2: shop::rows::take",
]
_V8_STACK = [" 1: 0xb8d0a9 node::Abort() [node]", " 2: 0xb8d0aa shop::Rows::take(int) [/src/shop.node]"]


@pytest.mark.parametrize("lines", [_RUST_STACK, _V8_STACK], ids=["Rust", "V8"])
def test_the_numbers_of_frames_are_no_labels(lines: list[str]) -> None:
    """In a short file that ends with a numbered stack no line has the label of srun."""
    table = detect_table(["step 3", *lines])
    assert all(parse_prefix(line, 2026, table).origin.rank is None for line in lines)


@pytest.mark.parametrize(
    "lines",
    [
        ["0: core::start", "1: step 3"],
        ["0: shop::start", "0: shop::start"],
        ["2: shop::start", "3: shop::start"],
        ["0: step", "1: step"],
    ],
    ids=["another text", "one number twice", "from two", "no qualified name"],
)
def test_labels_before_what_looks_like_frames_stay(lines: list[str]) -> None:
    """Labels are kept where one line is no frame, a number repeats, they begin late, or no name is qualified."""
    table = detect_table(lines)
    assert [parse_prefix(line, 2026, table).origin.rank for line in lines] == [int(line[0]) for line in lines]
