from __future__ import annotations

import re
from pathlib import Path

import pytest

from triage.base.errors import OptionError
from triage.catalog import pages as files
from triage.catalog.model import Catalog, Edge, Leaf, Sample, Signature
from triage.render.pages import INDEX, MARK, pages

ROOT = Path(__file__).resolve().parents[2]
EVIL = "```\n<script>alert(1)</script> [x](javascript:y) | `` ~~~"
HOSTILE = Signature(
    id="a.hostile",
    revision=1,
    title="<img src=x> | *bold* [l](m)",
    status="stable",
    role="cause",
    severity="error",
    match=Leaf(text="x```  \\<y"),
    leads_to=(Edge("b.other"), Edge("z.missing")),
    meaning="# no heading <b>",
    summary="1. no list",
    samples_match=(Sample(EVIL, {"name": "`|<i>"}),),
    references=("javascript:alert(1)", "https://example.org/a_b"),
)
OTHER = Signature(
    id="b.other", revision=1, title="Other", status="stable", role="symptom", severity="error", match=Leaf(text="other")
)


def outside(page: str) -> str:
    """The page without its fenced blocks, code spans and mark."""
    page = re.sub(r"^(`{3,})text\n.*?^\1$", "", page, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", page).replace(MARK, "")


def test_pages_in_docs_are_current(catalog: Catalog) -> None:
    """docs/signatures/ holds what `triage catalog docs` writes; `make docs` writes it again."""
    assert files.stale(ROOT / "docs" / "signatures", pages(catalog.signatures), MARK) == [], "run `make docs`"


def test_links_between_pages_resolve(catalog: Catalog) -> None:
    """Every relative link of a page leads to a page."""
    written = pages(catalog.signatures)
    links = {link for page in written.values() for link in re.findall(r"\]\(([^)#:]+)\)", outside(page))}
    assert links <= set(written)
    assert len(written) == len({signature.table or signature.id for signature in catalog.signatures}) + 1


def test_nothing_of_a_signature_becomes_markup() -> None:
    """Outside of fences and code spans no tag, no foreign link, no table cell more."""
    page = outside(pages([HOSTILE, OTHER])["a.hostile.md"])
    assert re.findall(r"<(?!https://example\.org/a_b>)\w", page) == []
    assert re.findall(r"(?<!\\)\]\((?!b\.other\.md|README\.md)", page) == []
    assert "\\# no heading" in page
    assert "1\\. no list" in page


def test_log_text_cannot_end_its_fence() -> None:
    """The fence is longer than any run of backticks in the sample, and the sample stands in it as it is."""
    assert f"````text\n{EVIL}\n````" in pages([HOSTILE])["a.hostile.md"]
    assert "````text\ntext /x```  \\<y/\n````" in pages([HOSTILE])["a.hostile.md"]


def test_both_ends_of_an_edge_show_it() -> None:
    """What explains and what is explained; an id that the catalog has not is named without a link."""
    written = pages([HOSTILE, OTHER])
    assert (
        "## Explains\n\n- [`b.other`](b.other.md) (any-rank): Other\n- `z.missing` (any-rank)"
        in written["a.hostile.md"]
    )
    assert "## Explained by\n\n- [`a.hostile`](a.hostile.md)" in written["b.other.md"]


def test_the_index_is_by_domain() -> None:
    """A heading a domain, in order, with every signature below its own."""
    found = pages([OTHER, HOSTILE])[INDEX]
    assert found.index("## a\n") < found.index("a.hostile.md") < found.index("## b\n") < found.index("b.other.md")


def test_writing_twice_changes_nothing(tmp_path: Path) -> None:
    """Then no page is stale; a page that is gone or changed is, and is mended."""
    wanted = pages([HOSTILE, OTHER])
    assert files.stale(tmp_path / "new", wanted, MARK) == sorted(wanted)
    files.write(tmp_path / "new", wanted, MARK)
    assert files.stale(tmp_path / "new", wanted, MARK) == []
    (tmp_path / "new" / INDEX).unlink()
    (tmp_path / "new" / "b.other.md").write_text(MARK, encoding="utf-8")
    assert files.stale(tmp_path / "new", wanted, MARK) == [INDEX, "b.other.md"]
    files.write(tmp_path / "new", wanted, MARK)
    assert files.stale(tmp_path / "new", wanted, MARK) == []


def test_only_generated_pages_are_removed(tmp_path: Path) -> None:
    """A page of a signature that is gone goes, what somebody wrote stays."""
    files.write(tmp_path, pages([HOSTILE, OTHER]), MARK)
    (tmp_path / "notes.md").write_text("mine", encoding="utf-8")
    wanted = pages([OTHER])
    assert files.stale(tmp_path, wanted, MARK) == [INDEX, "a.hostile.md", "b.other.md"]
    files.write(tmp_path, wanted, MARK)
    assert sorted(path.name for path in tmp_path.iterdir()) == [INDEX, "b.other.md", "notes.md"]


def test_a_readme_of_somebody_is_not_overwritten(tmp_path: Path) -> None:
    """`-o .` in a repository must not cost its README."""
    (tmp_path / INDEX).write_text("# Mine\n", encoding="utf-8")
    with pytest.raises(OptionError, match="not written by this command"):
        files.write(tmp_path, pages([OTHER]), MARK)
    assert [path.name for path in tmp_path.iterdir()] == [INDEX]
