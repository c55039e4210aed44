"""triage.ranks.splitting: what launchers mixed comes apart again, byte for byte."""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from triage.ranks.envelopes import ENVELOPES
from triage.ranks.grammars import BY_START, GRAMMARS, Grammar, Table, table
from triage.ranks.habits import HABITS
from triage.ranks.prefix import parse
from triage.ranks.splitting import Options, split

TELLING = ("rank", "local_rank")
PLAIN = b"step 1 loss 2.5"


def rendered(grammar: Grammar, rank: int, number: int, named: bool) -> str:
    """The prefix of one of the grammar's samples, for another rank and at another second; `named`: its name of a host
    or writer is the rank's.
    """
    matches = [match for text in grammar.samples if (match := grammar.pattern.match(text.split("\n", 1)[0]))]
    match = next(
        (match for match in matches if set(TELLING) & {key for key, value in match.groupdict().items() if value}),
        matches[0],
    )
    text = match.string
    told = {"rank": str(rank), "local_rank": str(rank), "s": f"{number % 60:02}", "number": str(100 + number)}
    if named:
        told["who" if match.groupdict().get("who") else "host"] = f"{rank}"
    spans = []
    for key, value in told.items():
        if key in match.groupdict() and match[key]:
            start, stop = match.span(key)
            if named and key in ("who", "host"):
                digits = [found for found in re.finditer(r"\d+", match[key]) if found]
                if not digits:
                    continue
                start, stop = start + digits[-1].start(), start + digits[-1].end()
            spans.append((start, stop, value))
    end = match.end()
    for start, stop, value in sorted(spans, reverse=True):
        text = text[:start] + value + text[stop:]
        end += len(value) - (stop - start)
    return text[:end]


def telling(stack: Sequence[Grammar]) -> bool:
    """Does a layer tell the rank?"""
    return any({"rank", "local_rank", "number"} & set(grammar.says) for grammar in stack)


def prefix(stack: tuple[Grammar, ...], rank: int, number: int) -> str:
    """The stack's text before a line. Where no layer tells the rank, the names of hosts and writers tell writers apart."""
    return "".join(rendered(grammar, rank, number, not telling(stack)) for grammar in stack)


def _comes_apart(stack: tuple[Grammar, ...], known: Table) -> bool:
    """Do the grammars take a single line apart again, and do the lines of two writers differ?"""
    told = {rank: parse(prefix(stack, rank, 7) + PLAIN.decode(), table=known) for rank in (0, 5, 12)}
    names = tuple(grammar.name for grammar in stack)
    if any(line.layers != names or line.text != PLAIN.decode() for line in told.values()):
        return False
    if telling(stack):
        return all(rank in (line.origin.rank, line.origin.local_rank) for rank, line in told.items())
    return len({line.writer for line in told.values()}) == 3


def _stacks(habits: Sequence[Grammar], most: int) -> list[tuple[Grammar, ...]]:
    """Every stack of one to `most` launchers' layers that the grammars themselves take apart again; with each of
    `habits` in it, if there are any.
    """
    layers = [grammar for grammar in GRAMMARS if not grammar.record]
    if not habits:
        stacks = (stack for size in range(1, most + 1) for stack in itertools.permutations(layers, size))
        return [stack for stack in stacks if telling(stack) and _comes_apart(stack, BY_START)]
    found = []
    for habit in habits:
        known = table((habit, *GRAMMARS))
        for size in range(most):
            for others in itertools.permutations(layers, size):
                stacks = ((*others[:place], habit, *others[place:]) for place in range(size + 1))
                found += [stack for stack in stacks if _comes_apart(stack, known)]
    return found


STACKS = _stacks((), 3)
# A stamp that only the text behind it gives away stays with lines that do not: it may be the program's own.
HABIT_STACKS = _stacks([habit.grammar for habit in HABITS if habit.tells != "rest"], 2)

WORDS = st.sampled_from(
    [b"step 3", b"  File \"train.py\", line 3, in f", b"    call()", b"ValueError: boom", b"", b"   ", b"\t tab", b"caf\xc3\xa9 \xff\xfe", b"50%|##  | 5/10",
     b"a: b", b"x" * 600, b"trailing  ", b"with\rreturn", b"cr\r", b"{\"log\": 1}", b"] bracket", b"= 3", b"\x1b[31mred\x1b[0m", b"end:"]
)  # fmt: skip
LINES = st.lists(WORDS | st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")), max_size=8)


def is_plain(line: bytes) -> bool:
    """Is it no prefix of anything? What a program prints in a launcher's own way nobody can tell from the launcher's."""
    return not parse(line.decode("latin-1")).layers


@settings(max_examples=60)
@given(st.data())
def test_every_stream_comes_back_byte_for_byte(data: st.DataObject) -> None:
    """Known streams behind any stack of prefixes, in any fair order: each comes back whole, and every line is accounted
    for.
    """
    stack = data.draw(st.sampled_from(STACKS) | st.sampled_from(HABIT_STACKS))
    ranks = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=6, unique=True))
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
    if "c10d rank" not in {grammar.name for grammar in stack} and telling(stack) and data.draw(st.booleans()):
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
        found = {file.rank or file.name: (Path(directory) / "out" / file.name).read_bytes() for file in result.files}
    expected = {rank: b"".join(line + b"\n" for line in lines) for rank, lines in streams.items()}
    assert sorted(found.values()) == sorted(expected.values())
    if {"rank", "local_rank"} & {key for grammar in stack for key in grammar.says}:
        assert found == {rank or "rank_0.log": told for rank, told in expected.items()}
    assert result.lines == len(mixed) == sum(file.lines for file in result.files)
    assert result.left_out == 0


@settings(max_examples=60)
@given(st.data())
def test_every_line_is_in_the_output_once(data: st.DataObject) -> None:
    """Whatever stands in a file, with the prefixes kept the lines of the output are those of the input, each as often."""
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
            some | WORDS | st.binary(max_size=30).map(lambda text: text.replace(b"\n", b"")), min_size=1, max_size=60
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
    found = [line for part in parts for line in part.removesuffix(b"\n").split(b"\n")]
    if result.added == 0:
        assert sorted(found) == sorted((b"text\n" * 40 + raw).removesuffix(b"\n").split(b"\n"))
    assert result.lines == sum(file.lines for file in result.files) - result.added


def test_there_are_stacks_of_every_launcher() -> None:
    """Each layer that tells a rank is in a stack of its own, and there are stacks of three."""
    telling = {
        grammar.name for grammar in GRAMMARS if not grammar.record and {"rank", "local_rank"} & set(grammar.says)
    }
    behind_another = {"torchrun tee with the role rank"}  # only with torch's own tag behind it
    assert telling - behind_another <= {stack[0].name for stack in STACKS if len(stack) == 1}
    assert behind_another <= {grammar.name for stack in STACKS for grammar in stack}
    assert any(len(stack) == 3 for stack in STACKS)


SAMPLES = {entry.name: entry.samples for entry in (*GRAMMARS, *(habit.grammar for habit in HABITS))}
SAMPLES |= {envelope.name: (envelope.sample.removesuffix("\n"),) for envelope in ENVELOPES}


@settings(max_examples=25)
@given(st.sampled_from(sorted(SAMPLES)), st.sampled_from(sorted(SAMPLES)), st.booleans(), st.sampled_from(["", "\n"]))
def test_lines_of_any_two_layouts_in_one_file_are_all_accounted_for(
    one: str, other: str, keep: bool, ending: str
) -> None:
    """Grammars, habits and envelopes: what is read is written, but for what a warning counts."""
    some, others = (list(itertools.islice(itertools.cycle(SAMPLES[name]), 9)) for name in (one, other))
    raw = "\n".join([*some, "plain text", *others, *some]) + ending
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "job.txt").write_text(raw)
        result = split(
            [str(Path(directory) / "job.txt")], Path(directory) / "out", Options(workers=1, keep_prefix=keep)
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
    if keep and not codes:
        found = [line for part in parts for line in part.decode().removesuffix("\n").split("\n")]
        assert any(json.startswith(("{", "__")) for json in raw.split("\n")) or sorted(found) == sorted(
            raw.removesuffix("\n").split("\n")
        )
