"""Every page answers as HTML and as JSON, holds no inline script or style, and shows log text as text."""

from __future__ import annotations

import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.service.conftest import ROOT
from triage.model.diagnosis import Finding
from triage.model.evidence import Evidence, Origin
from triage.service.pages import show
from triage.store import Store

HTML = {"accept": "text/html"}
NASTY = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u202e\x1b[31m javascript:alert(1)"


@pytest.fixture
def addresses(store: Store) -> list[str]:
    """Every page that has a `.json`."""
    cluster = store.clusters.listed()[0].id
    task = store.tasks.add("ingest", {"place": {"files": []}, "name": NASTY}, actor="tests").id
    own = [
        f"/incidents/{first(store)}",
        f"/clusters/{cluster}",
        f"/clusters/{cluster}/promote?signature=data.x",
        f"/tasks/{task}",
    ]
    return [*(address for address, _, _ in show.NAV), *own, "/signatures/host.sigkill"]


def test_every_page_is_json_too(client: TestClient, addresses: list[str]) -> None:
    """The path with `.json` answers with the data; the page names that address."""
    for address in addresses:
        path, _, query = address.partition("?")
        answer = client.get(f"{path}.json?{query}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json"), address
        assert isinstance(answer.json(), dict)
        assert f'href="{path}.json' in client.get(address, headers=HTML).text


def test_the_strict_policy_blocks_nothing_of_ours(client: TestClient, addresses: list[str]) -> None:
    """No page has a script or a style of its own, or a handler; the policy allows only files of this server."""
    for address in [*addresses, "/sign-in", "/nothing"]:
        answer = client.get(address, headers=HTML)
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        tags = re.findall(r"<[a-z][^>]*>", answer.text)
        assert len(tags) > 20
        assert not [tag for tag in tags if re.search(r"\s(style|on[a-z]+)=", re.sub(r'"[^"]*"', '""', tag))]
        assert not re.search(r"<style|<script(?![^>]*\ssrc=)|<(script|link)[^>]*(https?:)?//", answer.text)


def test_the_tour_shows_every_page() -> None:
    """docs/web.md has a picture of each, light and dark, and none is large or left over."""
    shown = set(re.findall(r"img/([\w-]+\.png)", (ROOT / "docs" / "web.md").read_text(encoding="utf-8")))
    there = {path.name: path.stat().st_size for path in (ROOT / "docs" / "img").glob("*.png")}
    assert shown == set(there)
    assert max(there.values()) < 150_000
    for name in (
        *(address[1:] for address, _, _ in show.NAV),
        "incident",
        "cluster",
        "promote",
        "signature",
        "task",
        "sign-in",
    ):
        assert {f"{name}-light.png", f"{name}-dark.png"} <= shown


def first(store: Store, verdict: str = "unknown") -> str:
    return next(item.id for item in store.search.listed() if item.verdict == verdict)


def test_the_list_is_the_first_page(client: TestClient) -> None:
    """`/` leads to the incidents, and each of them is a link."""
    answer = client.get("/", headers=HTML)
    assert answer.url.path == "/incidents"
    ids = [item["id"] for item in client.get("/incidents.json").json()["incidents"]]
    assert len(ids) == 3
    assert all(f'href="/incidents/{name}"' in answer.text for name in ids)


@pytest.mark.parametrize(
    "query",
    [
        "?verdict=known",
        "?verdict=&rank=&q=&host=",
        "?q=shard",
        "?signature=host.sigkill",
        "?domain=host&limit=1",
        "?wrong=true",
    ],
)
def test_filters_stand_in_the_address(client: TestClient, query: str) -> None:
    """The page and its JSON show the same incidents, and empty fields of the form do not matter."""
    found = client.get(f"/incidents.json{query}").json()
    text = client.get(f"/incidents{query}", headers=HTML).text
    assert set(re.findall(r'class="main" href="/incidents/([^"]+)"', text)) == {
        item["id"] for item in found["incidents"]
    }


def test_facets_count_what_the_filter_lets_through(client: TestClient, store: Store) -> None:
    """Each facet's number is what the list has when it is chosen."""
    for facet in client.get("/incidents.json").json()["facets"]:
        for item in facet["counts"]:
            found = client.get("/incidents.json", params={facet["name"]: item["name"]}).json()
            assert found["total"] >= item["count"] > 0


def test_a_cursor_leads_through_the_list(client: TestClient) -> None:
    """Every incident is on exactly one page."""
    seen: list[str] = []
    after: dict[str, Any] = {}
    while True:
        found = client.get("/incidents.json", params={"limit": 1, **after}).json()
        seen += [item["id"] for item in found["incidents"]]
        if found["next"] is None:
            break
        after = {"after": found["next"]}
    assert len(seen) == len(set(seen)) == 3


def test_the_answer_comes_first(client: TestClient, store: Store) -> None:
    """Before anything else an incident says what it is, where, how sure that is and what to do."""
    name = first(store, "known")
    page = client.get(f"/incidents/{name}", headers=HTML).text
    found = client.get(f"/incidents/{name}.json").json()
    card = page[page.index('<section class="card') : page.index('class="onpage"')]
    root = found["diagnosis"]["root_cause"]
    for said in (found["headline"], root["signature"], found["confidence"], root["remediation"]["steps"][0][:30]):
        assert said.replace("'", "&#39;").replace('"', "&#34;").replace("<", "&lt;").replace(">", "&gt;") in card
    assert card.count("data-copy=") >= len(root["remediation"]["steps"])


def test_feedback_needs_no_javascript(client: TestClient, store: Store) -> None:
    """A form is posted, the page says so, and the audit log knows it."""
    name = first(store)
    answer = client.post(
        f"/incidents/{name}/feedback",
        data={"verdict": "wrong", "because": "the disk was full", "signature": ""},
        headers=HTML,
    )
    assert answer.status_code == 200
    assert show.SAID["wrong"] in answer.text
    assert "the disk was full" in answer.text
    assert store.feedback.listed()[0].verdict == "wrong"
    refused = client.post(f"/incidents/{name}/feedback", data={"verdict": "wrong", "because": " "}, headers=HTML)
    assert refused.status_code == 400
    assert "needs a reason" in refused.text


def test_quoted_lines_are_a_text_to_keep(client: TestClient, store: Store) -> None:
    """Log text leaves as plain text that the browser stores and never shows."""
    answer = client.get(f"/incidents/{first(store)}/evidence.txt")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "has no tokens column" in answer.text


def test_log_text_is_text_on_every_page(client: TestClient, store: Store) -> None:
    """Whatever a log holds, no element, no control character and no bidirectional mark of it reaches a page."""
    import dataclasses

    found = store.incidents.get(first(store)).diagnosis
    fact = Evidence(
        "exception", "Python", NASTY, Origin(rank=1, host=NASTY), f"{NASTY}.log", 0, excerpt=NASTY, line=3, end_line=3
    )
    bad = Finding(
        None,
        NASTY,
        "unknown",
        "cause",
        "fatal",
        0.9,
        ranks=(1,),
        hosts=(NASTY,),
        cluster="u-abcdef",
        why=(NASTY,),
        evidence=(fact,),
    )
    job = dataclasses.replace(found.job, id="j-feed00feed00", name=NASTY, path=f"/x/{NASTY}", versions={"torch": NASTY})
    stored = store.incidents.add(dataclasses.replace(found, job=job, root_cause=bad, unknown=(bad,)))
    for path, query in (("/incidents", ""), (f"/incidents/{stored.id}", ""), ("/incidents", NASTY)):
        text = client.get(path, params={"q": query}, headers=HTML).text
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "onerror=alert(1)>" not in text.replace("&gt;", "")
        assert not re.search("[\u202e\x1b]", text)
        assert 'href="javascript' not in text


def test_what_a_log_fills_in_is_said_in_words(client: TestClient) -> None:
    """No braces in the advice of a signature for people; a program gets the template."""
    page = client.get("/signatures/config.env-mismatch", headers=HTML).text
    assert "<var>ranks</var>" in page
    assert (
        "{ranks}"
        not in page.replace('"', "")[page.index("<h2>What to do") : page.index("References")].partition("data-copy")[0]
    )
    assert "{ranks}" in client.get("/signatures/config.env-mismatch.json").text


def test_a_draft_is_checked_once(client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check reads the whole catalog: what it said of a text is kept, and another text is checked again."""
    checked: list[object] = []
    monkeypatch.setattr("triage.catalog.check.check", lambda paths: checked.append(paths) or [])
    cluster = store.clusters.listed()[0].id
    for query in ("signature=data.once", "signature=data.once&title=", "signature=data.twice"):
        assert "passes" in client.get(f"/clusters/{cluster}/promote?{query}", headers=HTML).text
    assert len(checked) == 2


def test_an_error_is_a_page_for_a_browser(client: TestClient) -> None:
    """Who reads pages gets a page with the next step, a program gets JSON."""
    page = client.get("/incidents/i-nothere", headers=HTML)
    assert page.status_code == 404
    assert "<h1>" in page.text
    assert client.get("/incidents/i-nothere.json").json()["error"]["code"] == "not-found"


def test_the_theme_is_kept_and_leads_nobody_away(client: TestClient) -> None:
    """The choice is a cookie, and the way back is a path of ours."""
    answer = client.post("/theme", data={"choice": "dark", "back": "/incidents?verdict=known"}, headers=HTML)
    assert 'data-theme="dark"' in answer.text
    assert answer.url.query == b"verdict=known"
    for back in ("//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", "/a\nb"):
        gone = client.post("/theme", data={"choice": "light", "back": back}, follow_redirects=False)
        assert gone.headers["location"] == "/"
