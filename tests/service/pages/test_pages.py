"""Every page is available as HTML and JSON, has no inline script or style, and escapes log text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

import triage
from tests.service.conftest import ROOT
from tests.store.factories import DAY, NOW, clean_diagnosis, known_diagnosis, unknown_diagnosis
from tests.store.test_host_history import ADDRESS, on_device
from triage.model.diagnosis import Finding
from triage.model.evidence import Evidence, Origin
from triage.service import server
from triage.service.pages import rendering
from triage.service.pages.incidents import fact_title
from triage.service.pages.rendering import format_sentence
from triage.store import Store
from triage.store.cause_work import WorkChange
from triage.store.search import Filter

HTML = {"accept": "text/html"}
HOSTILE_TEXT = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u202e\x1b[31m javascript:alert(1)"


@pytest.fixture
def addresses(store: Store) -> list[str]:
    """The address of every page that has a `.json`."""
    cluster = store.clusters.list_clusters()[0].id
    task = store.tasks.add("ingest", {"place": {"files": []}, "name": HOSTILE_TEXT}, actor="tests").id
    detail_pages = [
        f"/incidents/{first_incident(store)}",
        "/causes/data.worker-killed",
        f"/causes/{cluster}",
        f"/clusters/{cluster}",
        f"/clusters/{cluster}/promote?signature=data.x",
        f"/tasks/{task}",
    ]
    return [*(address for address, _, _ in rendering.NAVIGATION), *detail_pages, "/signatures/host.sigkill"]


def test_every_page_has_json(client: TestClient, addresses: list[str]) -> None:
    """The path with `.json` returns the data, and the page links to it."""
    for address in addresses:
        path, _, query = address.partition("?")
        answer = client.get(f"{path}.json?{query}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json"), address
        assert isinstance(answer.json(), dict)
        assert f'href="{path}.json' in client.get(address, headers=HTML).text


def test_pages_have_no_inline_script_or_style(client: TestClient, addresses: list[str]) -> None:
    """Pages have no inline script, style or handler; the policy allows only files of this server."""
    for address in [*addresses, "/sign-in", "/nothing"]:
        answer = client.get(address, headers=HTML)
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        tags = re.findall(r"<[a-z][^>]*>", answer.text)
        assert len(tags) > 20
        assert not [tag for tag in tags if re.search(r"\s(style|on[a-z]+)=", re.sub(r'"[^"]*"', '""', tag))]
        assert not re.search(r"<style|<script(?![^>]*\ssrc=)|<(script|link)[^>]*(https?:)?//", answer.text)


def test_every_page_has_screenshots() -> None:
    """docs/web.md has a light and a dark picture of each page; pictures are small and all used."""
    shown = set(re.findall(r"img/([\w-]+\.png)", (ROOT / "docs" / "web.md").read_text(encoding="utf-8")))
    files = {path.name: path.stat().st_size for path in (ROOT / "docs" / "img").glob("*.png")}
    assert shown == set(files)
    assert max(files.values()) < 150_000
    for name in (
        *(address[1:] for address, _, _ in rendering.NAVIGATION),
        "incident",
        "cluster",
        "promote",
        "signature",
        "task",
        "sign-in",
    ):
        assert {f"{name}-light.png", f"{name}-dark.png"} <= shown


def first_incident(store: Store, verdict: str = "unknown") -> str:
    """Return the id of the first incident with this verdict."""
    return next(item.id for item in store.search.list_incidents() if item.verdict == verdict)


def test_first_page_lists_causes(client: TestClient, store: Store) -> None:
    """`/` redirects to the causes, which link to each cause; a cause links to its incidents and no others."""
    answer = client.get("/", headers=HTML)
    assert answer.url.path == "/causes"
    causes = client.get("/causes.json").json()["causes"]
    assert [item["id"] for item in causes] == [cause.id for cause in store.causes.list_causes().causes]
    assert all(f'href="/causes/{item["id"]}"' in answer.text for item in causes)
    for item in causes:
        page = client.get(f"/causes/{item['id']}", headers=HTML).text
        rooted = {row.id for row in store.search.list_incidents() if (row.signature or row.cluster) == item["id"]}
        assert set(re.findall(r'class="main" href="/incidents/([^"]+)"', page)) == rooted
        assert len(rooted) == item["incidents"] > 0


def test_a_time_of_the_ingest_is_marked(client: TestClient, store: Store) -> None:
    """Where the files of a job have no time, the pages say that the time is that of the ingest."""
    assert "(ingest)" not in client.get("/causes", headers=HTML).text
    store.connections.execute("UPDATE incident SET has_time = 0")
    assert "(ingest)" in client.get("/causes?order=last", headers=HTML).text
    assert "(ingest)" in client.get("/incidents?limit=9", headers=HTML).text


def test_incidents_link_to_each_incident(client: TestClient) -> None:
    """The list of incidents links to each incident."""
    answer = client.get("/incidents", headers=HTML)
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
        "?cause=data.worker-killed",
    ],
)
def test_filters_are_in_the_address(client: TestClient, query: str) -> None:
    """The page and its JSON show the same incidents; empty form fields mean no filter."""
    document = client.get(f"/incidents.json{query}").json()
    text = client.get(f"/incidents{query}", headers=HTML).text
    assert set(re.findall(r'class="main" href="/incidents/([^"]+)"', text)) == {
        item["id"] for item in document["incidents"]
    }


def test_facet_counts(client: TestClient, store: Store) -> None:
    """Choosing a facet shows at least as many incidents as its count."""
    for facet in client.get("/incidents.json").json()["facets"]:
        for item in facet["counts"]:
            document = client.get("/incidents.json", params={facet["name"]: item["name"]}).json()
            assert document["total"] >= item["count"] > 0


def test_cursor_pages_through_the_list(client: TestClient) -> None:
    """Every incident is on exactly one page."""
    ids: list[str] = []
    after: dict[str, Any] = {}
    while True:
        document = client.get("/incidents.json", params={"limit": 1, **after}).json()
        ids += [item["id"] for item in document["incidents"]]
        if document["next"] is None:
            break
        after = {"after": document["next"]}
    assert len(ids) == len(set(ids)) == 3


def test_diagnosis_comes_first(client: TestClient, store: Store) -> None:
    """The page of an incident starts with its headline, cause, confidence and steps."""
    name = first_incident(store, "known")
    page = client.get(f"/incidents/{name}", headers=HTML).text
    document = client.get(f"/incidents/{name}.json").json()
    card = page[page.index('<section class="card') : page.index('class="onpage"')]
    root = document["diagnosis"]["root_cause"]
    for text in (document["headline"], root["signature"], document["confidence"], root["remediation"]["steps"][0][:30]):
        assert text.replace("'", "&#39;").replace('"', "&#34;").replace("<", "&lt;").replace(">", "&gt;") in card
    assert card.count("data-copy=") >= len(root["remediation"]["steps"])


def test_an_incident_leads_to_its_cause_and_says_how_often_it_came(client: TestClient, store: Store) -> None:
    """The second incident of a cause says so with the work on it; the first one and a clean one do not."""
    first = store.incidents.add(known_diagnosis("again-1", "data.shard", at=NOW - DAY))
    second = store.incidents.add(known_diagnosis("again-2", "data.shard"))
    store.cause_work.change(["data.shard"], WorkChange(assignee="anna <a>"), actor="anna")
    page = client.get(f"/incidents/{second.id}", headers=HTML).text
    card = page[page.index('<section class="card') : page.index('class="onpage"')]
    assert "Second time in a week, on node1 each time. Assigned to anna &lt;a&gt;." in card
    assert 'href="/causes/data.shard"' in card
    document = client.get(f"/incidents/{second.id}.json").json()
    assert (document["cause"], document["recurrence"][:21]) == ("data.shard", "Second time in a week")
    clean = store.incidents.add(clean_diagnosis("again-3"))
    for name in (first.id, clean.id):
        assert "Seen before" not in client.get(f"/incidents/{name}", headers=HTML).text


def test_clusters_are_told_apart_by_their_places(client: TestClient, store: Store, tmp_path: Path) -> None:
    """The inbox and the page of a cluster name the function that raised it, and the page leads to its cause."""
    text, functions = "IndexError: list index out of range", ("collate", "select_targets")
    for name in functions:
        log = tmp_path / f"{name}.log"
        log.write_text(
            f'Traceback (most recent call last):\n  File "/home/u/steps.py", line 9, in {name}\n    x[9]\n{text}\n'
        )
        store.incidents.add(triage.ingest(log))
    inbox = client.get("/inbox", headers=HTML).text
    clusters = [cluster for cluster in store.clusters.list_clusters() if cluster.title == text]
    assert sorted(place for cluster in clusters for place in cluster.places) == [f"steps.py:{it}" for it in functions]
    for cluster in clusters:
        page = client.get(f"/clusters/{cluster.id}", headers=HTML).text
        assert f"<code>{cluster.places[0]}</code>" in inbox
        assert f"<code>{cluster.places[0]}</code>" in page
        assert f'href="/causes/{cluster.id}"' in page


def test_a_signature_leads_to_its_cause(client: TestClient, store: Store) -> None:
    """Its page has the link where it ended jobs here, else it says that it did not."""
    name = next(item.signature for item in store.search.list_incidents() if item.signature)
    assert f'href="/causes/{name}"' in client.get(f"/signatures/{name}", headers=HTML).text
    assert "no incidents here" in client.get("/signatures/gpu.driver-too-old", headers=HTML).text


def test_feedback_needs_no_javascript(client: TestClient, store: Store) -> None:
    """A posted form stores the feedback, and the page confirms it."""
    name = first_incident(store)
    answer = client.post(
        f"/incidents/{name}/feedback",
        data={"verdict": "wrong", "because": "the disk was full", "signature": ""},
        headers=HTML,
    )
    assert answer.status_code == 200
    assert rendering.NOTICES["wrong"] in answer.text
    assert "the disk was full" in answer.text
    assert store.feedback.list_feedback()[0].verdict == "wrong"
    feedback = client.get(f"/incidents/{name}.json").json()["feedback"]
    assert set(feedback[0]) == {"id", "incident", "at", "actor", "verdict", "because", "signature", "said"}
    refused = client.post(f"/incidents/{name}/feedback", data={"verdict": "wrong", "because": " "}, headers=HTML)
    assert refused.status_code == 400
    assert "a reason is missing" in refused.text


def test_quoted_lines_are_an_attachment(client: TestClient, store: Store) -> None:
    """Quoted lines are plain text that a browser saves and never shows."""
    answer = client.get(f"/incidents/{first_incident(store)}/evidence.txt")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "has no tokens column" in answer.text


def test_pages_escape_log_text(client: TestClient, store: Store) -> None:
    """No element, control character or bidirectional mark of a log reaches a page."""
    import dataclasses

    diagnosis = store.incidents.get(first_incident(store)).diagnosis
    fact = Evidence(
        "exception",
        "Python",
        HOSTILE_TEXT,
        Origin(rank=1, host=HOSTILE_TEXT),
        f"{HOSTILE_TEXT}.log",
        0,
        excerpt=HOSTILE_TEXT,
        line=3,
        end_line=3,
    )
    finding = Finding(
        None,
        HOSTILE_TEXT,
        "unknown",
        "cause",
        "fatal",
        0.9,
        ranks=(1,),
        hosts=(HOSTILE_TEXT,),
        cluster="u-abcdef",
        why=(HOSTILE_TEXT,),
        evidence=(fact,),
    )
    job = dataclasses.replace(
        diagnosis.job,
        id="j-feed00feed00",
        name=HOSTILE_TEXT,
        path=f"/x/{HOSTILE_TEXT}",
        versions={"torch": HOSTILE_TEXT},
    )
    stored = store.incidents.add(dataclasses.replace(diagnosis, job=job, root_cause=finding, unknown=(finding,)))
    for path, query in (("/incidents", ""), (f"/incidents/{stored.id}", ""), ("/incidents", HOSTILE_TEXT)):
        text = client.get(path, params={"q": query}, headers=HTML).text
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "onerror=alert(1)>" not in text.replace("&gt;", "")
        assert not re.search("[\u202e\x1b]", text)
        assert 'href="javascript' not in text


def test_placeholders_are_marked(client: TestClient) -> None:
    """A page marks the placeholders of a signature; the JSON has the template."""
    page = client.get("/signatures/config.env-mismatch", headers=HTML).text
    assert "<var>ranks</var>" in page
    assert (
        "{ranks}"
        not in page.replace('"', "")[page.index("<h2>What to do") : page.index("References")].partition("data-copy")[0]
    )
    assert "{ranks}" in client.get("/signatures/config.env-mismatch.json").text


def test_a_problem_is_a_sentence_with_ways_back(client: TestClient) -> None:
    """Its commands are marked as code, an id at its start stays as it is, and it leads to causes and incidents."""
    page = client.get("/incidents/i-nothere", headers=HTML).text
    assert "<h1>The store has no incident i-nothere</h1>" in page
    assert "<code>triage list</code> shows the incidents" in page
    assert '<a href="/causes">All causes</a>' in page
    assert format_sentence("i-12 <b> is gone") == "i-12 &lt;b&gt; is gone"


def test_a_refused_form_leads_back_to_its_page(client: TestClient) -> None:
    """The link back has the filters of the page; it never leads to another site, and a page that was read has none."""
    form = {**HTML, "referer": "http://127.0.0.1:8321/causes?status=open"}
    page = client.post("/causes/work", data={}, headers=form).text
    assert '<a href="/causes?status=open" data-back>Back to the form</a>' in page
    for referrer in ("https://evil.example/causes", "http://127.0.0.1:8321//evil.example/", ""):
        page = client.post("/causes/work", data={}, headers={**HTML, "referer": referrer}).text
        assert "evil.example" not in page
    assert "data-back" not in client.get("/incidents/i-nothere", headers=form).text


def test_a_bulk_change_keeps_the_filters(client: TestClient) -> None:
    """After it the same list is shown; the notice in the address is no filter that could be cleared or saved."""
    (cause, *_) = client.get("/causes.json?kind=cluster").json()["causes"]
    page = client.get("/causes?kind=cluster", headers=HTML).text
    assert '<input type="hidden" name="back" value="/causes?kind=cluster">' in page
    data = {"cause": cause["id"], "ticket": "https://t.example/browse/OPS-7", "back": "/causes?kind=cluster"}
    answer = client.post("/causes/work", data=data, headers=HTML)
    assert (answer.url.path, answer.url.query) == ("/causes", b"kind=cluster&said=worked")
    assert ">OPS-7</a>" in answer.text
    data["back"] = "https://evil.example/"
    answer = client.post("/causes/work", data=data, headers=HTML, follow_redirects=False)
    assert answer.headers["location"] == "/?said=worked"
    assert ">Clear<" in page
    assert ">Clear<" not in client.get("/causes?said=worked", headers=HTML).text


def test_the_line_of_the_card_is_quoted_once(client: TestClient, store: Store) -> None:
    """Without lines around it, the evidence has the place of the line and a link to the quote, not the line again."""
    diagnosis = known_diagnosis("quoted")
    page = client.get(f"/incidents/{store.incidents.add(diagnosis).id}", headers=HTML).text
    assert page.count("CUDA out of memory. Tried to allocate 2.00 GiB</pre>") == 1
    assert page.count("The line is quoted above") == 1


def test_a_cause_is_not_repeated_in_its_incidents(client: TestClient, store: Store) -> None:
    """The rows below a cause have no title while all are equal to the heading, and one each where a title differs."""
    cause = store.causes.get("data.worker-killed")
    page = client.get(f"/causes/{cause.id}", headers=HTML).text
    assert page[page.index("<tbody>") :].count(cause.title) == 0
    (cluster, *_) = store.clusters.list_clusters()
    store.cluster_actions.name(cluster.id, "torn shards", actor="tests")
    page = client.get(f"/causes/{cluster.id}", headers=HTML).text
    assert page[page.index("<tbody>") :].count('<td class="what">') == 2 * page.count("<tr data-row>")


def test_splitting_nothing_says_what_to_select(client: TestClient, store: Store) -> None:
    """A split without a fingerprint is refused in words of the page."""
    (cluster, *_) = store.clusters.list_clusters()
    page = client.post(f"/clusters/{cluster.id}/split", data={}, headers=HTML)
    assert (page.status_code, "Select those to split off, and leave some" in page.text) == (400, True)


@pytest.mark.parametrize(("name", "title"), [("nccl", "NCCL"), ("cuda", "CUDA"), ("team", "Team"), ("ncclx", "Ncclx")])
def test_headings_of_facts(name: str, title: str) -> None:
    """Acronyms are in capitals, other names begin with one."""
    assert fact_title(name) == title


def test_signatures_are_folded_by_domain(client: TestClient) -> None:
    """The list of all fits a screen; one domain is open. Each summary counts signatures and incidents here."""
    page = client.get("/signatures", headers=HTML).text
    assert "<details open>" not in page
    assert re.search(r"<summary>data <span class=\"count\">\d+, \d+ incidents? here</span></summary>", page)
    page = client.get("/signatures?domain=data", headers=HTML).text
    assert page.count("<details open>") == page.count("<summary>data ") == 1


def test_causes_with_equal_titles_name_their_places(client: TestClient, store: Store) -> None:
    """A cluster in the list of causes shows the function where its failures begin."""
    page = client.get("/causes", headers=HTML).text
    places = store.clusters.list_places([cluster.id for cluster in store.clusters.list_clusters()])
    assert any(places.values())
    for cluster, names in places.items():
        assert not names or re.search(rf"<code>{cluster}</code> · <code>{re.escape(names[0])}</code>", page)


def test_draft_is_checked_once(client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of a draft is cached by its text."""
    checked: list[object] = []
    monkeypatch.setattr("triage.catalog.check.check_files", lambda paths: checked.append(paths) or [])
    cluster = store.clusters.list_clusters()[0].id
    for query in ("signature=data.once", "signature=data.once&title=", "signature=data.twice"):
        assert "passes" in client.get(f"/clusters/{cluster}/promote?{query}", headers=HTML).text
    assert len(checked) == 2


def test_new_wordings_are_shown(client: TestClient, store: Store) -> None:
    """The inbox names the signature that a cluster looks like, and the cluster's page has the drafted change."""
    text = "RuntimeError: cuda out-of-memory: tried to allocate 2.00 GiB <b>"
    store.incidents.add(unknown_diagnosis("near", text, "u-00aaaa"))
    assert "Looks like a new wording of cuda.out-of-memory" in client.get("/inbox", headers=HTML).text
    cluster = next(one.id for one in store.clusters.list_clusters() if "cuda" in one.title)
    page = client.get(f"/clusters/{cluster}", headers=HTML).text
    assert "New wording of a signature?" in page
    assert "tried to allocate" in page
    assert "<b>" not in page
    (draft,) = client.get(f"/clusters/{cluster}.json").json()["wordings"]
    assert draft["path"] == "cuda/out-of-memory.yaml"
    assert client.get(f"/api/v1/clusters/{cluster}").json()["wordings"] == [draft]
    other = next(one.id for one in store.clusters.list_clusters() if one.id != cluster)
    assert "New wording of a signature?" not in client.get(f"/clusters/{other}", headers=HTML).text


def test_browser_gets_an_error_page(client: TestClient) -> None:
    """A browser gets an error page, a program gets JSON."""
    page = client.get("/incidents/i-nothere", headers=HTML)
    assert page.status_code == 404
    assert "<h1>" in page.text
    assert client.get("/incidents/i-nothere.json").json()["error"]["code"] == "not-found"


def test_theme_cookie_and_redirect(client: TestClient) -> None:
    """The theme is saved in a cookie, and the redirect stays on this site."""
    answer = client.post("/theme", data={"choice": "dark", "back": "/incidents?verdict=known"}, headers=HTML)
    assert 'data-theme="dark"' in answer.text
    assert answer.url.query == b"verdict=known"
    for back in ("//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", "/a\nb"):
        answer = client.post("/theme", data={"choice": "light", "back": back}, follow_redirects=False)
        assert answer.headers["location"] == "/"


def test_the_page_of_a_host_has_causes_incidents_and_comments(client: TestClient, store: Store) -> None:
    """A host and its device have pages with causes, incidents and comments; that of an unknown host is empty."""
    root = store.incidents.get(store.incidents.add(on_device("gpu-0", "node<1>")).id).diagnosis.root_cause
    assert root is not None
    store.cause_work.comment("gpu.xid-79", "card <b>replaced</b>", actor="anna")
    for address in ("/hosts/node%3C1%3E", f"/hosts/node%3C1%3E/devices/{ADDRESS}"):
        page = client.get(address, headers=HTML).text
        assert "card &lt;b&gt;replaced&lt;/b&gt;" in page
        assert "gpu.xid-79" in page
        assert "node&lt;1&gt;" in page
        assert client.get(f"{address}.json").json()["history"]["incidents"] == 1
        row = client.get(f"/api/v1{address}").json()
        assert (row["host"], row["incidents"]) == ("node<1>", 1)
        assert row["first_at"] == row["last_at"] == row["devices"][0]["last_at"]
        assert [cause["id"] for cause in row["causes"]] == ["gpu.xid-79"]
        (comment,) = row["comments"]
        assert (comment["cause"], comment["actor"], comment["text"]) == ("gpu.xid-79", "anna", "card <b>replaced</b>")
    assert "No stored failure" in client.get("/hosts/node99", headers=HTML).text
    incident = store.search.list_incidents(Filter(device=ADDRESS))[0].id
    assert (
        f'<a href="/hosts/node%3C1%3E/devices/{quote(ADDRESS)}">'
        in client.get(f"/incidents/{incident}", headers=HTML).text
    )
    (hit,) = re.findall(
        r"<li data-row><a href=./incidents.*?</li>", client.get("/search?q=xid", headers=HTML).text, re.DOTALL
    )
    assert "node&lt;1&gt;" in hit
    absent = client.get("/api/v1/hosts/node99").json()
    assert (absent["incidents"], absent["first_at"], absent["causes"]) == (0, None, [])


def test_a_new_process_has_all_templates() -> None:
    """`triage serve` compiles every template before it listens, so that the first readers do not wait for it."""
    rendering.environment.cache_clear()
    server._preload()
    names = {path.name for path in rendering.TEMPLATES.iterdir()}
    assert {key[1] for key in rendering.environment().cache} == names


def test_a_started_process_has_all_routes(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """What FastAPI builds for each route is there before the first request: nothing is built then."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a route was built at a request")

    monkeypatch.setattr("fastapi.routing.create_model_field", refuse)
    assert client.get("/stats").status_code == 200
    assert client.get("/api/v1/stats").status_code == 200
