"""triage.records.tracebacks"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings, strategies as st

from triage.records.tracebacks import CHAINS, HEADER, is_caught, is_exception

from .factories import block, blocks, interleaved, traceback_of


def simple() -> None:
    raise RuntimeError("boom")


def deep(depth: int) -> None:
    if depth:
        deep(depth - 1)
    json.loads("{")


def during() -> None:
    try:
        simple()
    except RuntimeError as error:
        raise ValueError("while handling") from error


def context() -> None:
    try:
        deep(2)
    except ValueError:
        {}["missing"]


def many_lines() -> None:
    raise RuntimeError("first line\nsecond line\n\n  indented\nfield: value\n1: item\nlast line")


def syntax() -> None:
    compile("x = = 1", "config.py", "exec")


def recursion() -> None:
    recursion()


def noted() -> None:
    error = RuntimeError("boom")
    error.add_note("said later\nin two lines")
    raise error


def bare() -> None:
    raise AssertionError


def lowercase() -> None:
    raise type("gaierror", (OSError,), {"__module__": "socket"})("name not known")


KINDS: dict[str, Callable[[], None]] = {
    "simple": simple,
    "deep": lambda: deep(5),
    "cause": during,
    "context": context,
    "message of many lines": many_lines,
    "SyntaxError": syntax,
    "RecursionError": recursion,
    "notes": noted,
    "no message": bare,
    "lower case": lowercase,
}
UNTAGGED = [kind for kind in KINDS if kind not in ("message of many lines", "notes")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_tagged_traceback_is_one_block(kind: str) -> None:
    """Its lines are those that Python prints, and its headline is the exception."""
    lines = traceback_of(KINDS[kind])
    result = block("before\n" + "".join(f"[rank3]: {line}\n" for line in lines) + "step 3\n", HEADER)
    assert list(result.lines) == lines
    assert (result.form, result.origin.rank, result.ambiguous) == ("traceback", 3, False)


@pytest.mark.parametrize("kind", UNTAGGED)
def test_an_untagged_traceback_is_one_block(kind: str) -> None:
    """Without a prefix it ends with its exception line."""
    lines = traceback_of(KINDS[kind])
    result = block("before\n" + "".join(f"{line}\n" for line in lines) + "step 3 loss 0.1\n", HEADER)
    assert list(result.lines) == lines
    assert (result.origin.rank, result.ambiguous) == (None, False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prefix", ["", "[rank3]: "])
def test_the_headline_is_the_last_exception(kind: str, prefix: str) -> None:
    """Also of chained tracebacks."""
    lines = traceback_of(KINDS[kind])
    data = "".join(f"{prefix}{line}\n" for line in lines)
    result = block(data, HEADER)
    headline = data[result.headline :].split("\n")[0].removeprefix(prefix)
    last = max(index for index, line in enumerate(lines) if HEADER in line)
    assert headline == next(line for line in lines[last + 1 :] if not line.startswith("  "))
    assert is_exception(headline)


def group() -> None:
    errors: list[Exception] = []
    for action in (simple, lambda: deep(1), context):
        try:
            action()
        except Exception as error:
            errors.append(error)
    raise ExceptionGroup("several tasks failed", errors)


@pytest.mark.parametrize("prefix", ["", "[rank3]: "])
def test_an_exception_group_is_one_traceback(prefix: str) -> None:
    """The headers inside a group, behind bars, belong to it."""
    lines = traceback_of(group)
    assert lines[0].startswith("  + Exception Group Traceback")
    result = block("".join(f"{prefix}{line}\n" for line in lines) + f"{prefix and '[rank4]: '}unrelated\n", HEADER)
    assert list(result.lines) == lines
    assert not result.ambiguous


TEXTS = st.sampled_from(
    ["step", "tensor of size 3", "", "  indented", "a: b", "0: zero", "[0]", "value = {1: 2}", "Last error:", "at 0x7f"]
)
MESSAGES = st.lists(TEXTS, min_size=1, max_size=5).map(lambda lines: "\n".join(lines).strip() or "boom")


@st.composite
def tracebacks(draw: st.DrawFn) -> list[str]:
    """Draw a traceback as CPython prints it: frames, an exception with a message of some lines, perhaps chained."""
    lines: list[str] = []
    for index in range(draw(st.integers(1, 3))):
        if index:
            lines += ["", draw(st.sampled_from(CHAINS)), ""]
        lines.append(HEADER + ":")
        for number in range(draw(st.integers(1, 4))):
            lines += [
                f'  File "/job/train_{draw(st.integers(0, 9))}.py", line {number + 1}, in step',
                f"    call({number})",
            ]
            if draw(st.booleans()):
                lines.append("    ^^^^^^^^")
        message = draw(MESSAGES) if index == 0 or draw(st.booleans()) else "boom"
        name = draw(st.sampled_from(["RuntimeError", "torch.cuda.OutOfMemoryError", "socket.timeout"]))
        lines += f"{name}: {message}".split("\n")
    return lines


@given(st.data())
def test_interleaved_tagged_tracebacks_are_separated(data: st.DataObject) -> None:
    """Tracebacks of several ranks, in any order that keeps each rank's own, come out whole with their rank."""
    ranks = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=5, unique=True))
    whole = {rank: data.draw(tracebacks()) for rank in ranks}
    noise = ["step 1 loss 0.5", "  indented noise", "Exception: of nobody", "node1:1:2 [0] NCCL INFO x"][
        : data.draw(st.integers(0, 4))
    ]
    lines = interleaved(data.draw, [[f"[rank{rank}]: {line}" for line in own] for rank, own in whole.items()] + [noise])
    result = blocks("".join(f"{line}\n" for line in lines), HEADER)
    assert {block.origin.rank: list(block.lines) for block in result} == whole
    assert len(result) == len(whole)
    assert not any(block.ambiguous for block in result)


@given(st.data())
def test_interleaved_tracebacks_behind_a_tee_are_separated(data: st.DataObject) -> None:
    """The same with torchrun's `[default3]:`, where nothing marks the end of a message."""
    ranks = data.draw(st.lists(st.integers(0, 7), min_size=1, max_size=4, unique=True))
    whole = {rank: [*traceback_of(KINDS[data.draw(st.sampled_from(UNTAGGED))]), "step 3 after all"] for rank in ranks}
    lines = interleaved(data.draw, [[f"[default{rank}]:{line}" for line in own] for rank, own in whole.items()])
    result = blocks("".join(f"{line}\n" for line in lines), HEADER)
    assert {block.origin.local_rank: list(block.lines) for block in result} == {
        rank: own[:-1] for rank, own in whole.items()
    }


@given(st.data())
def test_lines_with_another_prefix_are_not_in_a_traceback(data: st.DataObject) -> None:
    """A traceback without a prefix, or behind `[default1]:`, has no lines with a further tag in it."""
    own = traceback_of(KINDS[data.draw(st.sampled_from(UNTAGGED))])
    prefix, other = data.draw(
        st.sampled_from([("", "[rank3]: "), ("", "[default1]:"), ("[default1]:", "[default1]:[rank3]: ")])
    )
    foreign = [
        f"{other}{line}"
        for line in ['  File "b.py", line 9, in other', "    other()", "ValueError: of another", "", "step 4"]
    ]
    merged = interleaved(data.draw, [[f"{prefix}{line}" for line in own], foreign])
    result = block("".join(f"{line}\n" for line in merged), HEADER)
    assert list(result.lines) == own
    assert not result.ambiguous


def test_two_mixed_tracebacks_are_ambiguous() -> None:
    """After a second header, each exception comes out with its certain frames only."""
    one, two = traceback_of(simple), traceback_of(lambda: deep(1))
    lines = [one[0], two[0], *one[1:3], *two[1:], *one[3:]]
    result = blocks("\n".join(lines) + "\nstep 3\n", HEADER)
    assert [block.lines[-1] for block in result] == [two[-1], one[-1]]
    for part, own in zip(result, (two, one), strict=True):
        assert part.ambiguous
        assert part.writers == 1
        assert [line for line in part.lines if line in own] == [
            line for line in part.lines if not line.startswith("  [")
        ]


@st.composite
def kinds_of_tracebacks(draw: st.DrawFn) -> list[list[str]]:
    """Draw different tracebacks of one program: calls in one direction, some shared, with code and perhaps carets."""
    names = [f"step_{number}" for number in range(draw(st.integers(1, 5)))]
    frames = [
        [f'  File "/job/train.py", line {at + 10}, in {name}', f"    call_{at}()"] for at, name in enumerate(names)
    ]
    if draw(st.booleans()):
        frames = [[*frame, "    ~~~~^^"] for frame in frames]
    result = []
    for _ in range(draw(st.integers(1, 3))):
        chosen = sorted(draw(st.sets(st.sampled_from(range(len(frames))), min_size=1)))
        result.append(
            [
                HEADER + ":",
                *(line for at in chosen for line in frames[at]),
                draw(st.sampled_from(["ValueError: a", "KeyError: b"])),
            ]
        )
    return list({tuple(lines): lines for lines in result}.values())


def frames_of(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if line.startswith("  File")]


@settings(max_examples=300)
@given(st.data())
def test_separated_tracebacks_were_written(data: st.DataObject) -> None:
    """For any mix, every exception is counted, and every complete traceback was written exactly that often.

    What an ambiguous one holds was written by as many of the others as it counts.
    """
    kinds = data.draw(kinds_of_tracebacks())
    writers = [kind for kind in kinds for _ in range(data.draw(st.integers(1, 4)))]
    merged = interleaved(data.draw, writers)
    result = blocks("".join(f"{line}\n" for line in merged), HEADER)
    counts: Counter[tuple[str, ...]] = Counter()
    for part in result:
        counts[(part.lines[-1], *([] if part.ambiguous else frames_of(part.lines)))] += max(
            not part.ambiguous, part.writers
        )
    truth = Counter((own[-1], *frames_of(own)) for own in writers)
    decided = Counter({key: count for key, count in counts.items() if len(key) > 1})
    assert all(truth[key] >= count for key, count in decided.items())
    for part in (part for part in result if part.ambiguous):
        having = [(key, count) for key, count in (truth - decided).items() if key[0] == part.lines[-1]]
        assert sum(count for key, count in having if is_part(frames_of(part.lines), list(key[1:]))) >= part.writers
    for exception in ("ValueError: a", "KeyError: b"):
        expected = sum(count for key, count in truth.items() if key[0] == exception)
        assert sum(count for key, count in counts.items() if key[0] == exception) == expected


def is_part(some: list[str], whole: list[str]) -> bool:
    """Are the lines in the other list, in this order?"""
    rest = iter(whole)
    return all(line in rest for line in some)


@given(st.data())
def test_identical_tracebacks_are_counted(data: st.DataObject) -> None:
    """The same traceback of N ranks, mixed line by line, is one traceback of N writers, and not ambiguous."""
    own = data.draw(kinds_of_tracebacks())[0]
    writers = data.draw(st.integers(2, 8))
    merged = interleaved(data.draw, [own] * writers)
    result = blocks("before\n" + "".join(f"{line}\n" for line in merged) + "step 4\n", HEADER)
    assert sum(max(1, part.writers) for part in result) == writers
    for part in result:
        assert not part.ambiguous
        assert [line for line in part.lines if "^^" not in line] == [line for line in own if "^^" not in line]


def test_a_chain_that_all_ranks_print_is_one_traceback() -> None:
    """With both parts and the sentence between them, in order."""
    own = traceback_of(during)
    lines = [line for line in own for _ in range(4)]
    [result] = blocks("\n".join(lines) + "\n", HEADER)
    assert (result.ambiguous, result.writers) == (False, 4)
    assert list(result.lines) == [line for line in own if line.strip(" ~^")]


def test_a_different_traceback_among_many_has_its_certain_frames() -> None:
    """Seven ranks print one traceback, rank 0 another: only what stands behind all others is certainly its own."""
    many = [
        f"{HEADER}:",
        '  File "a.py", line 1, in main',
        "    train()",
        '  File "a.py", line 7, in train',
        "    boom()",
        "ValueError: many",
    ]
    one = [
        f"{HEADER}:",
        '  File "a.py", line 1, in main',
        "    train()",
        '  File "a.py", line 9, in save',
        "    dump()",
        "OSError: one",
    ]
    lines = [one[0], *(line for line in many for _ in range(7)), *one[1:]]
    result = blocks("\n".join(lines) + "\n", HEADER)
    assert [(part.lines[-1], part.writers) for part in result] == [("ValueError: many", 7), ("OSError: one", 1)]
    # One of the seven may have lacked `train`, and the other may have had it: nothing excludes that.
    assert [part.ambiguous for part in result] == [True, True]
    assert [frames_of(part.lines) for part in result] == [[many[1]], [one[1], one[3]]]


@given(st.data())
def test_mixed_writers_give_no_false_stack(data: st.DataObject) -> None:
    """However two writers mix, a traceback that is not ambiguous is that of one of them."""
    whole = [traceback_of(simple), traceback_of(lambda: deep(1))]
    merged = interleaved(data.draw, whole)
    for result in blocks("".join(f"{line}\n" for line in merged), HEADER):
        lines = [line for line in result.lines if line.strip(" ~^")]
        assert result.ambiguous or lines in [[line for line in own if line.strip(" ~^")] for own in whole]


def test_the_table_of_a_failed_child_belongs_to_its_traceback() -> None:
    """torchelastic's summary is the message of ChildFailedError, up to its closing line."""
    table = [
        "=" * 60,
        "train.py FAILED",
        "-" * 60,
        "Failures:",
        "  <NO_OTHER_FAILURES>",
        "-" * 60,
        "Root Cause (first observed failure):",
    ]
    table += [
        "[0]:",
        "  time      : 2026-11-21_03:07:45",
        "  host      : node1",
        "  rank      : 1 (local_rank: 1)",
        "  exitcode  : 1 (pid: 77)",
        "=" * 60,
    ]
    lines = [
        f"{HEADER}:",
        '  File "run.py", line 1, in <module>',
        "    main()",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        *table,
    ]
    result = blocks(
        "\n".join([*lines, "srun: error: node1: task 0: Exited with exit code 1", ""]),
        HEADER,
        "exitcode  : ",
        "srun: error",
    )
    assert [block.form for block in result] == ["traceback", "line"]
    assert list(result[0].lines) == lines


def test_a_spawned_process_quotes_the_traceback_of_its_child() -> None:
    """Behind `-- Process 1 terminated with the following error:` follows the child's own traceback."""
    lines = [
        f"{HEADER}:",
        '  File "a.py", line 1, in <module>',
        "torch.multiprocessing.spawn.ProcessRaisedException: ",
        "",
    ]
    lines += [
        "-- Process 1 terminated with the following error:",
        f"{HEADER}:",
        '  File "b.py", line 2, in train',
        "ValueError: boom",
    ]
    result = block("\n".join(lines) + "\nstep 3\n", HEADER)
    assert list(result.lines) == lines
    assert not result.ambiguous


@pytest.mark.parametrize(
    ("heading", "gap", "after", "is_one"),
    [
        ("errors.UnavailableError: Graph execution error:", [""], "cleaning up", True),
        ("errors.UnavailableError: Graph execution error:", [], "cleaning up", False),
        ("errors.UnavailableError: no more workers", [""], "cleaning up", False),
        ("errors.UnavailableError: Graph execution error:", [""], "step 4 loss 0.1", False),
    ],
)
def test_paragraphs_below_a_heading_are_the_message(heading: str, gap: list[str], after: str, *, is_one: bool) -> None:
    """TensorFlow writes what failed in a graph below a heading and an empty line; progress is no message."""
    head = [f"{HEADER}:", '  File "run.py", line 1, in <module>', "    step(data)", heading]
    result = block("\n".join([*head, *gap, after, "Error reported from task 1", ""]), HEADER)
    assert ("Error reported from task 1" in result.lines) is is_one


@pytest.mark.parametrize("before", ["loading data", ""])
def test_a_tag_on_every_line_does_not_extend_the_message(before: str) -> None:
    """If other output has the tag too, or progress follows, the traceback ends as it would without a tag."""
    own = traceback_of(simple)
    after = ["cleaning up", "bye"] if before else ["step 4 loss 0.1", "step 5 loss 0.1"]
    lines = [*([before] if before else []), *own, *after]
    result = block("".join(f"[rank3]: {line}\n" for line in lines), HEADER)
    assert list(result.lines) == own


def test_an_incomplete_traceback_is_a_block() -> None:
    """A job killed while printing leaves frames without an exception; the header is the headline."""
    result = block(f'[rank1]: {HEADER}:\n[rank1]:   File "a.py", line 1, in f\n', HEADER)
    assert len(result.lines) == 2
    assert result.headline == result.offset


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RuntimeError: boom", True),
        ("RuntimeError", True),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory.", True),
        ("socket.timeout: timed out", True),
        ("pkg.Type[int]: x", True),
        ("KeyError: 'a'", True),
        ("INFO: starting", False),
        ("ERROR: bad", False),
        ("step 3 loss 0.1", False),
        ("  File x", False),
        ("http://host:80/", False),
        ("", False),
    ],
)
def test_exception_lines_are_recognised(text: str, expected: bool) -> None:
    """A dotted or capitalised name, then a colon or the end, but no log level."""
    assert is_exception(text) is expected


def test_a_traceback_in_container_lines_is_one_block() -> None:
    """A container runtime writes a timestamp before every line, which opens no record."""
    from triage.evidence import extract_text

    stamp = "2026-11-21T03:07:45.00000{}Z stderr F "
    lines = ["Traceback (most recent call last):", '  File "t.py", line 3, in f', "    g()", "ValueError: boom"]
    facts = extract_text("\n".join(stamp.format(number) + line for number, line in enumerate(lines)))
    assert [(fact.kind, fact.text) for fact in facts] == [("exception", "ValueError: boom")]


TRACE = [f"{HEADER}:", '  File "a.py", line 1, in f', "    g()"]


def lines_of_first(*lines: str) -> list[str]:
    """Return the lines of the first block with a header."""
    return list(blocks("\n".join(lines) + "\n", HEADER)[0].lines)


@pytest.mark.parametrize(("others", "is_read"), [(200, True), (201, False)])
def test_200_other_lines_may_stand_before_the_exception(others: int, is_read: bool) -> None:
    """What the program prints between the frames and the exception; empty lines do not count."""
    lines = lines_of_first(*TRACE, *["output of a child"] * others, "", "ValueError: x")
    assert ("ValueError: x" in lines) is is_read


@pytest.mark.parametrize("extra", [0, 1])
def test_a_traceback_has_at_most_400_lines_with_its_message(extra: int) -> None:
    """The rest of a message is left out; more frames than that are not."""
    lines = lines_of_first(*TRACE, "ValueError: x", *["  more"] * (396 + extra))
    assert len(lines) == 400
    assert len(lines_of_first(TRACE[0], *TRACE[1:] * 250, "ValueError: x", "  more")) == 502


@pytest.mark.parametrize(("others", "is_read"), [(4, True), (5, False)])
def test_four_other_lines_may_stand_in_a_chain(others: int, is_read: bool) -> None:
    """Between the sentence and the second header; empty lines do not count."""
    chain = [*TRACE, "KeyError: a", "", CHAINS[0], "", *["output of a child"] * others, *TRACE, "ValueError: b"]
    assert ("ValueError: b" in lines_of_first(*chain)) is is_read


@pytest.mark.parametrize(("others", "count"), [(8, 2), (9, 1)])
def test_eight_other_lines_may_stand_in_mixed_tracebacks(others: int, count: int) -> None:
    """After more in a row they have ended."""
    lines = [
        TRACE[0],
        TRACE[0],
        *TRACE[1:],
        "ValueError: x",
        *["output of a child"] * others,
        *TRACE[1:],
        "ValueError: x",
    ]
    assert sum(one.writers for one in blocks("\n".join(lines) + "\n", HEADER)[:1]) == count


def test_the_reason_of_nccl_stands_behind_last_error() -> None:
    """One line; a record is none."""
    message = [*TRACE, "torch.distributed.DistBackendError: NCCL error", "Last error:"]
    assert lines_of_first(*message, "socket closed", "step 3")[-1] == "socket closed"
    assert lines_of_first(*message, "2026-11-21 03:07:45 INFO step 3")[-1] == "Last error:"


@pytest.mark.parametrize(("label", "is_label"), [("info:", True), ("step 3 info:", False), ("INFO:", False)])
def test_a_label_on_its_own_line_and_the_next_line_belong_to_the_exception(label: str, is_label: bool) -> None:
    """Tenstorrent's runtime says in blocks of its exception what the failed condition means."""
    message = [
        *TRACE,
        "RuntimeError: TT_FATAL @ bank.cpp:4: address.has_value()",
        label,
        "Out of memory: 4 B",
        "step 3",
    ]
    assert lines_of_first(*message)[-1] == ("Out of memory: 4 B" if is_label else message[len(TRACE)])


def test_the_exception_of_a_jvm_stands_behind_that_of_py4j() -> None:
    """It begins with a colon, and its frames with tabs."""
    message = [
        *TRACE,
        "py4j.protocol.Py4JJavaError: An error occurred while calling o37.next.",
        ": java.io.EOFException: x",
    ]
    assert lines_of_first(*message, "\tat a.B.c(B.java:7)", "step 3")[-1] == "\tat a.B.c(B.java:7)"


RULE = "-" * 38
SECTIONS = [
    *("", RULE, "C++ Traceback (most recent call last):", RULE),
    *("0   paddle::imperative::BasicEngine::Execute()", "10  cudaMemcpy", "", "-" * 22),
    *("Error Message Summary:", "-" * 22),
]


@pytest.mark.parametrize("heading", ["C++ Traceback (most recent call last):", "C++ Call Stacks (More useful to x):"])
@pytest.mark.parametrize("kind", ["SystemError: ", "paddle.fluid.core_avx.EnforceNotMet:"])
def test_the_sections_of_paddle_belong_to_its_exception(kind: str, heading: str) -> None:
    """They end with the line of the message, and what indented lines add to it."""
    sections = [heading if line.startswith("C++") else line for line in SECTIONS]
    message = ["ExternalError:  CUDA error(700).", "  [Hint: x]"]
    assert lines_of_first(*TRACE, kind, *sections, *message, "epoch 3") == [*TRACE, kind, *sections, *message]


def test_the_message_of_paddle_may_follow_its_name() -> None:
    """Out of memory: a bare name, an empty line, and one line; not what stands behind it."""
    message = ["ResourceExhaustedError: ", "", "Out of memory error on GPU 0."]
    assert lines_of_first(*TRACE, "SystemError:", *SECTIONS, *message, "epoch 3")[-1] == message[-1]
    assert lines_of_first(*TRACE, "SystemError:", *SECTIONS, "A: b", "epoch 3")[-1] == "A: b"


def test_sections_of_paddle_follow_an_exception_without_message_only() -> None:
    """Behind a message, a record or other lines the stack is a block of its own."""
    assert lines_of_first(*TRACE, "SystemError: x", *SECTIONS)[-1] == "SystemError: x"
    assert lines_of_first(*TRACE, "SystemError:", "epoch 3", *SECTIONS)[-1] == "SystemError:"
    assert lines_of_first(*TRACE, "SystemError:", "0   frame")[-1] == "SystemError:"
    record = "2026-11-21 03:07:45 INFO step 3"
    assert lines_of_first(*TRACE, "SystemError:", *SECTIONS, record)[-1] == SECTIONS[-1]


def test_a_traceback_of_ray_goes_on_behind_its_exception() -> None:
    """The frames of the worker stand below the line that names it, which may be a record's."""
    again = "ray.exceptions.RayTaskError(ValueError): ray::Trainer.fit() (pid=412, ip=10.0.0.7)"
    lines = [*TRACE, again, *TRACE[1:], "ValueError: x"]
    assert lines_of_first(*lines) == lines
    assert lines_of_first(*TRACE, f"2026-11-21 03:07:45 {again}", "ValueError: x")[3] == "ValueError: x"


def test_a_named_detail_of_a_message_may_speak_of_an_epoch() -> None:
    """gRPC indents `details = …`; that it names an epoch makes it no progress."""
    message = ("RpcError: <RPC that terminated with:", '\tdetails = "worker 7 is fenced since epoch 3"', '\tcode = "x"')
    assert lines_of_first(*TRACE, *message)[-1] == message[-1]
    assert lines_of_first(*TRACE, message[0], "  epoch 3 of 7", message[2])[-1] == message[0]


def test_a_progress_bar_is_no_part_of_a_message() -> None:
    """Though it begins with blanks."""
    assert lines_of_first(*TRACE, "ValueError: x", "  a", " 10%|#  | 1/10 [00:01, 3.2it/s]", "  b")[-1] == "  a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("ValueError: x", True), ("a.b.c", True), ("socket.gaierror: x", True), ("INFO: x", False), ("step: 3", False)],
)
def test_the_form_of_an_exception_line(text: str, expected: bool) -> None:
    """A type with its module, or a name with a capital; a level of a logger is none."""
    assert is_exception(text) is expected


def test_empty_lines_at_the_end_do_not_belong_to_a_traceback() -> None:
    """Behind one of one writer, and in mixed ones anywhere."""
    assert lines_of_first(*TRACE, "ValueError: x", "", "") == [*TRACE, "ValueError: x"]
    mixed = [TRACE[0], "", TRACE[0], *TRACE[1:], *TRACE[1:], "ValueError: x", "ValueError: x", "", "step 3"]
    assert [(one.writers, one.lines) for one in blocks("\n".join(mixed) + "\n", HEADER)] == [
        (2, (*TRACE, "ValueError: x"))
    ]


def test_a_record_ends_a_traceback_unless_all_lines_are_records() -> None:
    """Where a collector stamps every line, a stamp begins nothing."""
    stamp = "2026-11-21 03:07:45 "
    assert lines_of_first(*TRACE, f"{stamp}ValueError: x", "ValueError: y")[-1] == "ValueError: y"
    stamped = [stamp + line for line in (*TRACE, "ValueError: x", "  more")]
    assert lines_of_first(*stamped) == [*TRACE, "ValueError: x", "  more"]


def test_a_record_ends_mixed_tracebacks() -> None:
    """What stands behind it is of another failure."""
    mixed = [TRACE[0], TRACE[0], *TRACE[1:], "ValueError: x", "2026-11-21 03:07:45 INFO step 3", "ValueError: x"]
    assert sum(one.writers for one in blocks("\n".join(mixed) + "\n", HEADER)) == 1


@pytest.mark.parametrize(
    ("outermost", "expected"),
    [
        ('  File "train.py", line 9, in load', True),
        ('  File "train.py", line 9, in <module>', False),
        ('  File "/opt/venv/lib/python3.11/threading.py", line 982, in run', False),
        ('  File "/opt/venv/lib/python3.11/site-packages/ray/actor.py", line 9, in call', False),
        ('  File "python/ray/_raylet.pyx", line 1883, in ray._raylet.execute_task', False),
    ],
)
def test_code_of_the_job_above_a_frame_caught_the_exception(outermost: str, expected: bool) -> None:
    """The outermost frame is a function of the job; `<module>` and what starts a thread have nobody above them."""
    lines = [f"{HEADER}:", outermost, "    run()", "KeyError: 'a'"]
    assert is_caught(lines) is expected
    assert is_caught([lines[0], "", *lines[1:]]) is expected
    first = [f"{HEADER}:", '  File "train.py", line 3, in read', "OSError: gone", "", CHAINS[0], ""]
    assert is_caught([*first, *lines]) is expected
    assert not is_caught([*first[:3], "", "-- Process 1 terminated with the following error:", *lines])
    assert not is_caught(lines[:1])
    assert not is_caught(lines[-1:])


def test_a_message_that_ends_with_a_colon_quotes_the_traceback_behind_it() -> None:
    """Its own lines stand between: what counts is the line before the header."""
    quoted = [*TRACE, "TaskFailed: rank 4 failed:", *TRACE, "ValueError: x"]
    assert lines_of_first(*quoted, "step 3") == quoted
    assert lines_of_first(*TRACE, "TaskFailed: rank 4 failed", *TRACE, "ValueError: x")[-1].startswith("TaskFailed")


def test_an_empty_line_behind_a_header_alone_does_not_belong_to_it() -> None:
    """The header of a traceback that was cut off."""
    assert lines_of_first(TRACE[0], "") == TRACE[:1]


@pytest.mark.parametrize(
    ("line", "belongs"),
    [("the shards differ", True), ("step 3 loss 0.5", False), ("2026-11-21 03:07:45 INFO start", False)],
)
def test_any_line_may_stand_in_a_message_before_a_joint(line: str, belongs: bool) -> None:
    """But no record and no progress: behind those the sentence is another traceback's."""
    chain = [*TRACE, "KeyError: a", line, "", CHAINS[0], "", *TRACE, "ValueError: b"]
    assert lines_of_first(*chain) == (chain if belongs else chain[:4])


@pytest.mark.parametrize(
    ("headline", "belongs"),
    [("pydantic.ValidationError: 1 validation error for Spec", True), ("ValueError: the settings are wrong", False)],
)
def test_pydantic_names_the_field_behind_its_headline(headline: str, belongs: bool) -> None:
    """Such a line belongs to no other message."""
    lines = [*TRACE, headline, "parallel -> tensor", "  value is not a valid integer"]
    assert lines_of_first(*lines, "step 3") == (lines if belongs else lines[:4])


@pytest.mark.parametrize(("output", "count"), [("output of a child", 2), ("", 3)])
def test_mixed_tracebacks_end_where_each_has_its_exception(output: str, count: int) -> None:
    """The next line ends them if it is not empty."""
    mixed = [TRACE[0], TRACE[0], *TRACE[1:], *TRACE[1:], *["ValueError: x"] * 2, output, "ValueError: x"]
    assert sum(one.writers for one in blocks("\n".join(mixed) + "\n", HEADER)) == count
