"""The tree of a pattern, from which its literals are found."""

from __future__ import annotations

import pytest

from triage.catalog.match import positive_leaves
from triage.catalog.model import Catalog
from triage.catalog.pattern_tree import Branch, Characters, Node, Repeat, Sequence, parse_pattern


def show(node: Node) -> str:
    """A tree as text: characters as they are, classes as [abc], unknown ones as ?, `x{low,high}` for repeats."""
    if isinstance(node, Characters):
        if node.choices is None:
            return "?"
        return min(node.choices) if len(node.choices) == 1 else f"[{''.join(sorted(node.choices))}]"
    if isinstance(node, Branch):
        return f"<{'|'.join(map(show, node.alternatives))}>"
    if isinstance(node, Repeat):
        return f"{show(node.item)}{{{node.low},{'' if node.high is None else node.high}}}"
    text = "".join(map(show, node.items))
    return f"({text})" if isinstance(node, Sequence) and text and not node.plain else text


@pytest.mark.parametrize(
    ("pattern", "tree"),
    [
        (r"a\.b\x41\t", "(a.bA\t)"),
        (r"\d.\w", "(???)"),
        (r"^a$\b", "(a)"),
        (r"[a-c][\]x][^x][\d_][a-z]", "([abc][]x]???)"),
        (r"[]a][a-]", "([]a][-a])"),
        (r"a*b+?c?d{2}e{2,}f{2,3}", "(a{0,}b{1,}c{0,1}d{2,2}e{2,}f{2,3})"),
        (r"x{y}", "(x{y})"),
        (r"a(?:bc)d", "(abcd)"),
        (r"a(bc)(?P<name>d)", "(a(bc)(d))"),
        (r"a(?:bc)+", "(abc{1,})"),
        (r"foo|bar", "(<(foo)|(bar)>)"),
        (r"a(?:foo|fall|fox)b", "(af<(oo)|(all)|(ox)>b)"),
        (r"(?i)k1", "([Kk\u212a]1)"),
        (r"(?i:a)b", "(([Aa])b)"),
        (r"a\nb", "(a?b)"),
        ("", ""),
        (r"a(?=bc)(?<!d)(?<=e)(?!f|g)h", "(ah)"),
        (r"(?P<n>a)(?P=n)\1", "((a)?{0,}?{0,})"),
        (r"(?>ab)c++", "(abc{1,})"),
    ],
)
def test_trees(pattern: str, tree: str) -> None:
    """Each construct gives its node; plain groups disappear, and a shared start is moved before its branch."""
    assert show(parse_pattern(pattern)) == tree


@pytest.mark.parametrize("pattern", ["(", ")", "a)", "(a", "*", "[a", r"\07", r"\pN", "(?#a)", "(?(1)a)", "a\\"])
def test_what_is_not_understood_is_an_error(pattern: str) -> None:
    """A wrong reading would promise literals that a match need not contain."""
    with pytest.raises(ValueError, match="not understood"):
        parse_pattern(pattern)


def test_every_shipped_pattern_is_understood(catalog: Catalog) -> None:
    """A pattern that is not understood would have no literals, and the scan could not look for it."""
    patterns = [leaf.text for signature in catalog.signatures for leaf in positive_leaves(signature.match) if leaf.text]
    assert len([parse_pattern(pattern) for pattern in patterns]) > 500
