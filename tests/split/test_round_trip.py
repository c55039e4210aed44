"""triage.split: mixed logs are split byte for byte."""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import assume, given, settings, strategies as st

from triage.ranks.file_prefixes import FILE_PREFIXES
from triage.ranks.grammar import Grammar, Table, build_table
from triage.ranks.grammars import BY_START, GRAMMARS
from triage.ranks.log_wrappers import LOG_WRAPPERS
from triage.ranks.prefix import parse_prefix
from triage.split import Options, split

RANK_PARTS = ("rank", "local_rank")
PLAIN = b"step 1 loss 2.5"


def render_prefix(grammar: Grammar, rank: int, number: int, named: bool) -> str:
    """Return the prefix of one of the grammar's samples, changed to another rank and second.

    With `named`, the name of its host or writer is the rank's.
    """
    matches = [match for text in grammar.samples if (match := grammar.pattern.match(text.split("\n", 1)[0]))]
    match = next(
        (match for match in matches if set(RANK_PARTS) & {key for key, value in match.groupdict().items() if value}),
        matches[0],
    )
    text = match.string
    values = {"rank": str(rank), "local_rank": str(rank), "s": f"{number % 60:02}", "number": str(100 + number)}
    if named:
        values["who" if match.groupdict().get("who") else "host"] = f"{rank}"
    spans = []
    for key, value in values.items():
        if key in match.groupdict() and match[key]:
            start, stop = match.span(key)
            if named and key in ("who", "host"):
                digits = list(re.finditer(r"\d+", match[key]))
                if not digits:
                    continue
                start, stop = start + digits[-1].start(), start + digits[-1].end()
            spans.append((start, stop, value))
    end = match.end()
    for start, stop, value in sorted(spans, reverse=True):
        text = text[:start] + value + text[stop:]
        end += len(value) - (stop - start)
    return text[:end]


def names_rank(stack: Sequence[Grammar]) -> bool:
    """Does a layer name the rank?"""
    return any({"rank", "local_rank", "number"} & set(grammar.origin_parts) for grammar in stack)


def prefix(stack: tuple[Grammar, ...], rank: int, number: int) -> str:
    """Return the text of the stack before a line. Where no layer names a rank, names of hosts and writers differ."""
    return "".join(render_prefix(grammar, rank, number, not names_rank(stack)) for grammar in stack)


def _is_separable(stack: tuple[Grammar, ...], table: Table) -> bool:
    """Do the grammars parse a line of the stack back, and do the lines of several writers differ?"""
    parsed = {rank: parse_prefix(prefix(stack, rank, 7) + PLAIN.decode(), table=table) for rank in (0, 5, 12)}
    names = tuple(grammar.name for grammar in stack)
    if any(line.layers != names or line.text != PLAIN.decode() for line in parsed.values()):
        return False
    if names_rank(stack):
        return all(rank in (line.origin.rank, line.origin.local_rank) for rank, line in parsed.items())
    return len({line.writer for line in parsed.values()}) == 3


def _stacks(file_prefixes: Sequence[Grammar], most: int) -> list[tuple[Grammar, ...]]:
    """Return every stack of one to `most` launcher layers that the grammars parse back.

    With `file_prefixes`, each stack has one of them in it.
    """
    # A byte order mark stands at the start of a file, not before each line. The text behind `> ` says if it is a quote.
    left_out = ("byte order mark", "quotation")
    layers = [grammar for grammar in GRAMMARS if not grammar.is_record and grammar.name not in left_out]
    if not file_prefixes:
        candidates = (stack for size in range(1, most + 1) for stack in itertools.permutations(layers, size))
        return [stack for stack in candidates if names_rank(stack) and _is_separable(stack, BY_START)]
    stacks = []
    for file_prefix in file_prefixes:
        table = build_table((file_prefix, *GRAMMARS))
        for size in range(most):
            for others in itertools.permutations(layers, size):
                candidates = ((*others[:place], file_prefix, *others[place:]) for place in range(size + 1))
                stacks += [stack for stack in candidates if _is_separable(stack, table)]
    return stacks


STACKS = _stacks((), 3)
# A stamp that only the text behind it gives away stays with lines that do not: it may be the program's own.
FILE_PREFIX_STACKS = _stacks([entry.grammar for entry in FILE_PREFIXES if entry.group != "rest"], 2)

TEXTS = st.sampled_from(
    [
        *(b"step 3", b'  File "train.py", line 3, in f', b"    call()", b"ValueError: boom", b"", b"   ", b"\t tab"),
        *(b"caf\xc3\xa9 \\xff\\xfe", b"50%|##  | 5/10", b"a: b", b"x" * 600, b"trailing  ", b"with\rreturn", b"cr\r"),
        *(b'{"log": 1}', b"] bracket", b"= 3", b"\x1b[31mred\x1b[0m", b"end:"),
    ]
)
LINES = st.lists(TEXTS | st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")), max_size=8)


def is_plain(line: bytes) -> bool:
    """Does the line look like no prefix? Output that imitates a launcher cannot be told from the launcher's."""
    return not parse_prefix(line.decode("latin-1")).layers


@settings(max_examples=60)
@given(st.data())
def test_every_stream_comes_back_byte_for_byte(data: st.DataObject) -> None:
    """Streams behind any stack of prefixes, mixed in any order, come back whole, and every line is counted."""
    stack = data.draw(st.sampled_from(STACKS) | st.sampled_from(FILE_PREFIX_STACKS))
    # A host with one number may be anything: only several show that they are ranks.
    fewest = 2 if "host and rank" in {grammar.name for grammar in stack} else 1
    ranks = data.draw(st.lists(st.integers(0, 40), min_size=fewest, max_size=6, unique=True))
    # Between lines of all kinds plain ones: the label of srun has the form of a list, so that some lines must show what
    # it is.
    streams = {
        rank: [
            b"of %d" % rank,
            *[PLAIN] * 6,
            *(part for line in data.draw(LINES) if is_plain(line) for part in (line, PLAIN)),
        ]
        for rank in ranks
    }
    # A program may put torch's tag before some of its lines: that is its own text, and stays.
    if "c10d rank" not in {grammar.name for grammar in stack} and names_rank(stack) and data.draw(st.booleans()):
        streams = {
            rank: [*lines, PLAIN, b"[rank%d]: Traceback (most recent call last):" % rank]
            for rank, lines in streams.items()
        }
    queues = {rank: list(lines) for rank, lines in streams.items()}
    mixed = []
    while any(queues.values()):
        rank = data.draw(st.sampled_from([rank for rank, lines in queues.items() if lines]))
        for _ in range(min(data.draw(st.integers(1, 3)), len(queues[rank]))):
            mixed.append(prefix(stack, rank, len(mixed)).encode() + queues[rank].pop(0))
    assume(all(b"\n" not in line for line in mixed))
    raw = b"".join(line + b"\n" for line in mixed)
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "job.txt").write_bytes(raw)
        result = split([str(Path(directory) / "job.txt")], Path(directory) / "out", Options(workers=1))
        outputs = {file.rank or file.name: (Path(directory) / "out" / file.name).read_bytes() for file in result.files}
    expected = {rank: b"".join(line + b"\n" for line in lines) for rank, lines in streams.items()}
    assert sorted(outputs.values()) == sorted(expected.values())
    if {"rank", "local_rank"} & {key for grammar in stack for key in grammar.origin_parts}:
        assert outputs == {rank or "rank_0.log": text for rank, text in expected.items()}
    assert result.lines == len(mixed) == sum(file.lines for file in result.files)
    assert result.left_out == 0


@settings(max_examples=60)
@given(st.data())
def test_every_line_is_in_the_output_once(data: st.DataObject) -> None:
    """With the prefixes kept, the output has the same lines as the input, whatever they are."""
    some = st.sampled_from(
        [
            b"[rank1]: a",
            b"[default0]:b",
            b" 3: c",
            b"[1,2]<stderr>:d",
            b"node1:4:5 [0] NCCL INFO x",
            b"\x1b[31m[rank2]:\x1b[0m e",
        ]
    )
    lines = data.draw(
        st.lists(
            some | TEXTS | st.binary(max_size=30).map(lambda text: text.replace(b"\n", b"")), min_size=1, max_size=60
        )
    )
    ending = data.draw(st.sampled_from([b"", b"\n"]))
    raw = b"\n".join(lines) + ending
    assume(raw.strip() and b"\0" not in raw)
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "job.txt").write_bytes(b"text\n" * 40 + raw)
        result = split(
            [str(Path(directory) / "job.txt")], Path(directory) / "out", Options(workers=1, keep_prefix=True)
        )
        parts = [(Path(directory) / "out" / file.name).read_bytes() for file in result.files]
    outputs = [line for part in parts for line in part.removesuffix(b"\n").split(b"\n")]
    if result.added == 0:
        assert sorted(outputs) == sorted((b"text\n" * 40 + raw).removesuffix(b"\n").split(b"\n"))
    assert result.lines == sum(file.lines for file in result.files) - result.added


def test_every_launcher_is_in_a_stack() -> None:
    """Each layer with a rank is in a stack of its own, and there are stacks of three."""
    with_rank = {
        grammar.name
        for grammar in GRAMMARS
        if not grammar.is_record and {"rank", "local_rank"} & set(grammar.origin_parts)
    }
    behind_another = {"torchrun tee with the role rank"}  # only with torch's own tag behind it
    assert with_rank - behind_another <= {stack[0].name for stack in STACKS if len(stack) == 1}
    assert behind_another <= {grammar.name for stack in STACKS for grammar in stack}
    assert any(len(stack) == 3 for stack in STACKS)


SAMPLES = {entry.name: entry.samples for entry in (*GRAMMARS, *(entry.grammar for entry in FILE_PREFIXES))}
SAMPLES |= {wrapper.name: (wrapper.sample.removesuffix("\n"),) for wrapper in LOG_WRAPPERS}


@settings(max_examples=25)
@given(st.sampled_from(sorted(SAMPLES)), st.sampled_from(sorted(SAMPLES)), st.booleans(), st.sampled_from(["", "\n"]))
def test_all_lines_of_two_mixed_layouts_are_counted(one: str, other: str, keep_prefix: bool, ending: str) -> None:
    """Grammars, file prefixes and log wrappers: every line is written, except those that a warning counts."""
    some, others = (list(itertools.islice(itertools.cycle(SAMPLES[name]), 9)) for name in (one, other))
    raw = "\n".join([*some, "plain text", *others, *some]) + ending
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "job.txt").write_text(raw)
        result = split(
            [str(Path(directory) / "job.txt")], Path(directory) / "out", Options(workers=1, keep_prefix=keep_prefix)
        )
        parts = [(Path(directory) / "out" / file.name).read_bytes() for file in result.files]
    assert (
        result.lines
        == len(raw.removesuffix("\n").split("\n"))
        == sum(file.lines for file in result.files) - result.added
    )
    assert result.left_out == 0
    codes = {warning.code for warning in result.warnings}
    assert (
        result.added == 0 or codes & {"glued", "partial-lines", "record-fields"} or raw.startswith("{") or "\n{" in raw
    )
    if keep_prefix and not codes:
        outputs = [line for part in parts for line in part.decode().removesuffix("\n").split("\n")]
        assert any(json.startswith(("{", "__")) for json in raw.split("\n")) or sorted(outputs) == sorted(
            raw.removesuffix("\n").split("\n")
        )
