"""triage.records.headerless"""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from triage.model.evidence import Block
from triage.records.blocks import build_blocks
from triage.records.headerless import find_headerless_tracebacks

from .factories import text_of

# Four ranks at once, as terminals show it: no header, and blanks lost at the start of some lines.
PASTE = """File "/t/dataset.py", line 785, in __init__
 File "/t/dataset.py", line 785, in __init__
    if self.proba.sum() != 1:
AttributeError: 'list' object has no attribute 'sum'
    if self.proba.sum() != 1:
  File "/t/dataset.py", line 785, in __init__
 File "/t/dataset.py", line 785, in __init__
    if self.proba.sum() != 1:
    if self.proba.sum() != 1:
AttributeError: 'list' object has no attribute 'sum'
AttributeError: 'list' object has no attribute 'sum'
AttributeError: 'list' object has no attribute 'sum'
"""


def headerless_blocks(text: str) -> list[Block]:
    source = text_of(text)
    return [block for block, _ in build_blocks(source, [], list(find_headerless_tracebacks(source)))]


def test_the_same_traceback_of_four_ranks_is_counted(tmp_path: Path) -> None:
    """Without headers and prefixes the traceback comes out once, with its count and without a rank."""
    [block] = headerless_blocks(PASTE)
    assert (block.writers, block.ambiguous, len(block.lines)) == (4, False, 3)
    log = tmp_path / "paste.txt"
    log.write_text(PASTE)
    diagnosis = triage.ingest([str(log)])
    assert diagnosis.root_cause is not None
    [fact] = diagnosis.root_cause.evidence
    assert (fact.count, fact.fields["type"], fact.fields["line"], fact.origin.rank) == (
        4,
        "AttributeError",
        "785",
        None,
    )


def test_different_tracebacks_are_not_mixed() -> None:
    """Frames that may belong to either of two exceptions are in neither."""
    first = ['  File "a.py", line 1, in f', "ValueError: a"]
    second = ['  File "b.py", line 2, in g', "KeyError: b"]
    blocks = headerless_blocks("\n".join([first[0], second[0], first[1], second[1]]) + "\n")
    assert [block.lines[-1] for block in blocks] == ["ValueError: a", "KeyError: b"]
    assert all(block.ambiguous and not {first[0], second[0]} & set(block.lines) for block in blocks)


def test_lines_with_prefixes_keep_their_writer() -> None:
    """Each of two tagged ranks has its own traceback."""
    frames = [(rank, line) for line in ('  File "a.py", line 1, in f', "    g()", "ValueError: a") for rank in (1, 2)]
    blocks = headerless_blocks("\n".join(f"[rank{rank}]: {line}" for rank, line in frames) + "\n")
    assert [(block.origin.rank, len(block.lines), block.writers) for block in blocks] == [(1, 3, 0), (2, 3, 0)]


def test_frames_without_an_exception_are_ignored() -> None:
    """A printed stack with progress after it is not a failure."""
    assert headerless_blocks('  File "a.py", line 1, in f\n    g()\n' + "Loss: 3\n" * 20) == []


def test_tags_without_a_colon_are_parsed(tmp_path: Path) -> None:
    """As in documents with torchrun's output: untagged code lines, and exceptions with their rank."""
    lines = [f'[host1:{rank}] File "/path/to/dataset.py", line 785, in __init__' for rank in (0, 1)]
    lines += [
        "    if self.proba.sum() != 1:",
        "[host1:0]",
        "[host1:0] AttributeError: 'list' object has no attribute 'sum'",
        "[host1:1]",
    ]
    lines += ["[host1:1] AttributeError: 'list' object has no attribute 'sum'"]
    (tmp_path / "a.log").write_text("".join(f"{line}\n" for line in lines))
    root = triage.ingest([str(tmp_path)]).root_cause
    assert root is not None
    assert (root.title, root.ranks, root.hosts) == (
        "AttributeError: 'list' object has no attribute 'sum'",
        (0, 1),
        ("host1",),
    )


def test_a_message_that_goes_on_in_the_next_lines_is_kept(tmp_path: Path) -> None:
    """Lines behind an exception line that ends with a colon are its message; others are the code of another rank."""
    frame = '  File "/t/model.py", line 18, in load\n    super().load(state)\n'
    log = tmp_path / "paste.txt"
    log.write_text(frame + 'RuntimeError: Error(s) in loading for Net:\n        Missing key(s) in it: "a.weight"\n')
    diagnosis = triage.ingest([str(log)])
    assert diagnosis.root_cause is not None
    [fact] = diagnosis.root_cause.evidence
    assert fact.fields["message"].endswith('Missing key(s) in it: "a.weight"')
    [block] = headerless_blocks(frame + "ValueError: no loss\n    super().load(state)\n")
    assert len(block.lines) == 3


def test_a_rank_before_each_line_is_no_record() -> None:
    """Lines of two ranks with `[rank1] ` in front are two tracebacks, although they are mixed."""
    text = """[rank1]   File "/t/a.py", line 4, in f
[rank2]   File "/t/b.py", line 5, in g
[rank1]     f.write(x)
[rank2]     g.read(y)
[rank1] OSError: [Errno 5] Input/output error
[rank2] ValueError: no data
"""
    one, two = headerless_blocks(text)
    assert [one.origin.rank, two.origin.rank] == [1, 2]
    assert one.lines == ('  File "/t/a.py", line 4, in f', "    f.write(x)", "OSError: [Errno 5] Input/output error")
    assert len(two.lines) == 3


FRAME = '  File "a.py", line 1, in f\n'


@pytest.mark.parametrize(("between", "is_one"), [("x\n" * 8, True), ("x\n" * 9, False), ("\n" * 20, True)])
def test_eight_lines_of_others_may_stand_between(between: str, is_one: bool) -> None:
    """After more the frames are no traceback; empty lines do not count."""
    assert len(headerless_blocks(f"{FRAME}    g()\n{between}ValueError: a\n")) == is_one


@pytest.mark.parametrize("record", ["2026-11-21 03:07:45 INFO step 3", "2026-11-21 03:07:45 ValueError: a"])
def test_a_record_ends_the_frames(record: str) -> None:
    """What stands behind it belongs to it."""
    assert headerless_blocks(f"{FRAME}    g()\n{record}\nValueError: a\n") == []


def test_the_message_stands_directly_behind_the_colon() -> None:
    """Up to a frame, or a line that is left out."""
    end = "RuntimeError: Error(s) in loading for Net:\n"
    assert [len(block.lines) for block in headerless_blocks(f"{FRAME}{end}  a\n  b\n{FRAME}  c\n")] == [4]
    assert [len(block.lines) for block in headerless_blocks(f"{FRAME}{end}x\n  a\n")] == [2]


def test_code_stands_behind_its_frame_or_is_indented() -> None:
    """A line without blanks is code only directly behind a frame; an empty one is none."""
    [block] = headerless_blocks(f"{FRAME}g()\nloss is 3\n\n  ^^^\nValueError: a\n")
    assert block.lines == (FRAME.rstrip(), "g()", "  ^^^", "ValueError: a")


def test_exceptions_of_one_writer_are_separate() -> None:
    """Behind a prefix each ends with its exception; frames behind the last one are left out."""
    texts = [FRAME.rstrip(), "ValueError: a", FRAME.rstrip(), "KeyError: b", FRAME.rstrip()]
    blocks = headerless_blocks("".join(f"[rank1]: {line}\n" for line in texts))
    assert [block.lines[-1] for block in blocks] == ["ValueError: a", "KeyError: b"]
