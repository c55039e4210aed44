from __future__ import annotations

import re
from pathlib import Path

import pytest

from triage.base.errors import OptionError
from triage.catalog import page_files as files
from triage.catalog.model import Catalog, CausalEdge, Leaf, Sample, Signature
from triage.render.catalog_pages import INDEX, MARK, render_pages

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
    causal_edges=(CausalEdge("b.other"), CausalEdge("z.missing")),
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
    assert files.find_stale_pages(ROOT / "docs" / "signatures", render_pages(catalog.signatures), MARK) == [], (
        "run `make docs`"
    )


def test_links_between_pages_resolve(catalog: Catalog) -> None:
    """Every relative link of a page leads to a page."""
    written = render_pages(catalog.signatures)
    links = {link for page in written.values() for link in re.findall(r"\]\(([^)#:]+)\)", outside(page))}
    assert links <= set(written)
    assert len(written) == len({signature.table or signature.id for signature in catalog.signatures}) + 1


def test_signature_texts_become_no_markup() -> None:
    """Outside of fences and code spans there is no tag, no foreign link and no extra table cell."""
    page = outside(render_pages([HOSTILE, OTHER])["a.hostile.md"])
    assert re.findall(r"<(?!https://example\.org/a_b>)\w", page) == []
    assert re.findall(r"(?<!\\)\]\((?!b\.other\.md|README\.md)", page) == []
    assert "\\# no heading" in page
    assert "1\\. no list" in page


def test_log_text_cannot_end_its_fence() -> None:
    """The fence is longer than any run of backticks in the sample."""
    assert f"````text\n{EVIL}\n````" in render_pages([HOSTILE])["a.hostile.md"]
    assert "````text\ntext /x```  \\<y/\n````" in render_pages([HOSTILE])["a.hostile.md"]


def test_both_ends_of_an_edge_show_it() -> None:
    """Pages list causes and effects; an unknown id has no link."""
    written = render_pages([HOSTILE, OTHER])
    assert (
        "## Explains\n\n- [`b.other`](b.other.md) (any-rank): Other\n- `z.missing` (any-rank)"
        in written["a.hostile.md"]
    )
    assert "## Explained by\n\n- [`a.hostile`](a.hostile.md)" in written["b.other.md"]


def test_the_index_is_by_domain() -> None:
    """Each domain has a heading with its signatures below."""
    result = render_pages([OTHER, HOSTILE])[INDEX]
    assert result.index("## a\n") < result.index("a.hostile.md") < result.index("## b\n") < result.index("b.other.md")


def test_writing_twice_changes_nothing(tmp_path: Path) -> None:
    """After writing, no page is stale; a missing or changed page is written again."""
    wanted = render_pages([HOSTILE, OTHER])
    assert files.find_stale_pages(tmp_path / "new", wanted, MARK) == sorted(wanted)
    files.write_pages(tmp_path / "new", wanted, MARK)
    assert files.find_stale_pages(tmp_path / "new", wanted, MARK) == []
    (tmp_path / "new" / INDEX).unlink()
    (tmp_path / "new" / "b.other.md").write_text(MARK, encoding="utf-8")
    assert files.find_stale_pages(tmp_path / "new", wanted, MARK) == [INDEX, "b.other.md"]
    files.write_pages(tmp_path / "new", wanted, MARK)
    assert files.find_stale_pages(tmp_path / "new", wanted, MARK) == []


def test_only_generated_pages_are_removed(tmp_path: Path) -> None:
    """The page of a removed signature goes; pages that people wrote stay."""
    files.write_pages(tmp_path, render_pages([HOSTILE, OTHER]), MARK)
    (tmp_path / "notes.md").write_text("mine", encoding="utf-8")
    wanted = render_pages([OTHER])
    assert files.find_stale_pages(tmp_path, wanted, MARK) == [INDEX, "a.hostile.md", "b.other.md"]
    files.write_pages(tmp_path, wanted, MARK)
    assert sorted(path.name for path in tmp_path.iterdir()) == [INDEX, "b.other.md", "notes.md"]


def test_a_foreign_readme_is_not_overwritten(tmp_path: Path) -> None:
    """`-o .` in a repository must not overwrite its README."""
    (tmp_path / INDEX).write_text("# Mine\n", encoding="utf-8")
    with pytest.raises(OptionError, match="not written by this command"):
        files.write_pages(tmp_path, render_pages([OTHER]), MARK)
    assert [path.name for path in tmp_path.iterdir()] == [INDEX]
