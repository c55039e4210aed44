"""Lines of an unknown failure are read again as their program may have printed them."""

from __future__ import annotations

import html
from pathlib import Path

import pytest

import triage
from tests.diagnose.factories import fact
from triage.catalog.match import Matcher
from triage.catalog.model import Catalog
from triage.diagnose.confidence import UNCERTAIN
from triage.diagnose.rereading import LONGEST_LINE, MOST_FACTS, MOST_LINES, READ_AS, list_readings, reread
from triage.model import Evidence

IMPORT = "ImportError: cannot import name 'top_k' from 'transformers' (/venv/transformers/__init__.py)"


def ingest(directory: Path, text: str) -> triage.Diagnosis:
    """Diagnose a paste."""
    (directory / "post.txt").write_text(f"{text}\n", "utf-8")
    return triage.ingest(directory)


@pytest.mark.parametrize(
    ("line", "reading"),
    [
        (f"I cannot start, because of ```{IMPORT}```", IMPORT),
        (f"> **{IMPORT}**", IMPORT),
        (f"训练报错{IMPORT}", IMPORT),
        (f"<pre><code>{html.escape(IMPORT)}</code></pre>", IMPORT),
        ("cannot import name 'GRPOConfig' from 'trl'", "ImportError: cannot import name 'GRPOConfig' from 'trl'"),
        ("`No module named 'apex'`", "ModuleNotFoundError: No module named 'apex'"),
        ("'Plugin' object has no attribute 'x'", "AttributeError: 'Plugin' object has no attribute 'x'"),
        ("f() got an unexpected keyword argument 'y'", "TypeError: f() got an unexpected keyword argument 'y'"),
        (f'I met the problem "{IMPORT}"', IMPORT),
        ("RuntimeErrorRuntimeError: : stack expects each", "RuntimeError: stack expects each"),
        ("torch.cuda.OutOfMemoryErrortorch.cuda.OutOfMemoryError: : CUDA", "torch.cuda.OutOfMemoryError: CUDA"),
    ],
)
def test_the_likeliest_reading_of_a_pasted_line(line: str, reading: str) -> None:
    """Without what people and other writers added, and with the name that Python prints before such a sentence."""
    assert list_readings(line)[0] == reading


def test_a_line_without_a_name_has_one_reading_for_each_usual_name() -> None:
    """A line of marks alone, or without text, has none."""
    assert [one.split(":")[0] for one in list_readings("the mesh is too big")][:2] == ["RuntimeError", "ValueError"]
    assert list_readings("```") == list_readings("") == ()
    assert list_readings("x" * (LONGEST_LINE + 50))[0] == "RuntimeError: " + "x" * LONGEST_LINE


@pytest.mark.parametrize(
    "text",
    [
        f"Hello, I cannot train because of this kind of error:\n```{IMPORT}```",
        "Failed to import transformers.trainer because of the following error:\ncannot import name 'a' from 'b'",
        f"# Error when the trainer starts: {IMPORT}",
    ],
)
def test_a_paste_names_its_cause_without_being_sure(tmp_path: Path, text: str) -> None:
    """The confidence stays low, and the report shows what was read."""
    root = ingest(tmp_path, text).root_cause
    assert root is not None
    assert root.signature == "python.import-error"
    assert root.confidence <= UNCERTAIN
    assert any('read as "ImportError: cannot import name' in reason for reason in root.why)


def test_a_line_that_matches_as_it_stands_is_not_read_again(tmp_path: Path) -> None:
    """Its confidence is that of the line."""
    root = ingest(tmp_path, IMPORT).root_cause
    assert root is not None
    assert root.signature == "python.import-error"
    assert root.confidence > UNCERTAIN
    assert not any("read as" in reason for reason in root.why)


@pytest.mark.parametrize("mark", ["INFO loader: ", "tools/check.py:12:    raise ", "[ok] ", "libloader: Warning: "])
def test_a_mention_is_not_read_again(catalog: Catalog, mark: str) -> None:
    """Ordinary levels, source, passed checks and warnings stay what they are."""
    line = "cannot import name 'a' from 'b'"
    assert read(catalog, fact(line, kind="ending"))
    assert read(catalog, fact(f"{mark}{line}", kind="ending")) == {}


def test_only_the_first_facts_and_lines_are_read(catalog: Catalog) -> None:
    """The work does not grow with the job."""
    line = "cannot import name 'a' from 'b'"
    facts = [fact(line, number, kind="exception") for number in range(MOST_FACTS + 1)]
    assert list(read(catalog, *facts)) == [id(one) for one in facts[:MOST_FACTS]]
    assert read(catalog, fact("one\n" * (MOST_LINES - 1) + line, kind="ending"))
    assert read(catalog, fact("one\n" * MOST_LINES + line, kind="ending")) == {}
    assert read(catalog, fact(line, kind="exit")) == {}


def test_a_reading_is_the_exception_that_signatures_see(catalog: Catalog) -> None:
    """The fact keeps its place and its rank."""
    line = fact("cannot import name 'a' from 'b'", 3, kind="ending", offset=70)
    (reading,) = read(catalog, line).values()
    assert (reading.kind, reading.fields["type"], reading.fields["message"]) == ("exception", "ImportError", line.text)
    assert (reading.origin.rank, reading.offset, reading.fields[READ_AS]) == (3, 70, reading.text)


def read(catalog: Catalog, *facts: Evidence) -> dict[int, Evidence]:
    """Read facts of unknown failures again with the shipped catalog."""
    signatures = {signature.id: signature for signature in catalog.signatures}
    return reread(facts, Matcher(catalog).evaluate, signatures)
