"""triage.render.html"""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser

from hypothesis import given

from triage.model.diagnosis import Diagnosis, RankState
from triage.render import html, phrases, rank_grid

from .factories import KNOWN, diagnoses, evidence

VOID = {"meta"}
ALLOWED = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "section",
        "h1",
        "h2",
        "p",
        "pre",
        "code",
        "span",
        "ul",
        "ol",
        "li",
        "div",
    ),
    *("details", "summary", "table", "tr", "th", "td", "footer", "a", "svg", "desc", "text", "path", "line", "circle"),
}
ATTACK = "</pre></style><script src=//x>alert(1)</script><img src=x onerror=alert(1)>\"' \x1b[31m\u202e"


class ClusterDetails(HTMLParser):
    """Collects the elements of a page, and says what is left open."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def page(diagnosis: Diagnosis) -> ClusterDetails:
    parsed = ClusterDetails()
    parsed.feed(html.render(diagnosis))
    parsed.close()
    assert parsed.open == []
    return parsed


def check(parsed: ClusterDetails) -> None:
    """Nothing in the page acts or loads."""
    for tag, attributes in parsed.tags:
        assert tag in ALLOWED
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "style", "action", "data")]
        if "href" in attributes:
            assert tag == "a"
            assert (attributes["href"] or "").startswith("https://")


@given(diagnoses)
def test_any_diagnosis_gives_a_page_in_which_nothing_acts(made: Diagnosis) -> None:
    """Every element is closed and one of ours, and no attribute acts or loads, whatever the logs held."""
    check(page(made))


def test_log_text_is_text() -> None:
    """Markup in a log is shown as it is, without its control characters."""
    root = dataclasses.replace(KNOWN.root_cause, title=ATTACK, evidence=(evidence(ATTACK),), hosts=(ATTACK,))  # type: ignore[type-var]
    parsed = page(dataclasses.replace(KNOWN, root_cause=root, findings=(root,)))
    check(parsed)
    shown = "".join(parsed.text)
    assert "<script src=//x>alert(1)</script>" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_the_page_has_the_content_of_the_text() -> None:
    """Verdict, line, advice and states are there, the drawings also as text."""
    parsed = page(KNOWN)
    shown = " ".join("".join(parsed.text).split())
    assert KNOWN.root_cause is not None
    for part in (
        phrases.verdict_kind(KNOWN),
        KNOWN.root_cause.title,
        KNOWN.root_cause.evidence[0].text,
        KNOWN.root_cause.remediation.summary,
    ):
        assert part in shown
    assert {"svg", "pre"} <= {tag for tag, _ in parsed.tags}
    assert rank_grid.state_legend(KNOWN.ranks).split()[0] in shown


def test_the_page_has_a_dark_scheme_and_loads_nothing() -> None:
    """Colours for a dark system are in the page, and a policy that forbids what is not in it."""
    written = html.render(KNOWN)
    assert "prefers-color-scheme: dark" in written
    assert "default-src 'none'" in written.replace("&#x27;", "'")
    assert re.findall(r"@import|url\(", written) == []


def test_ten_thousand_ranks_make_a_small_page() -> None:
    """A page of ten thousand ranks, most of them stalled, stays under 100 kB."""
    states = tuple(
        RankState(rank, f"node{rank // 8}", "failed" if rank == 77 else "stalled", 5, None) for rank in range(10_000)
    )
    assert len(html.render(dataclasses.replace(KNOWN, ranks=states))) < 100_000
