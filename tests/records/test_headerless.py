"""triage.records.headerless"""

from __future__ import annotations

from pathlib import Path

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
