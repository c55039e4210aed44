"""Text of logs in pages, answers and files: it is shown, and it does nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

import triage
from triage.service.app import create_app
from triage.settings import Settings
from triage.settings.store import Store as StoreSection
from triage.store import Store

NASTY = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "javascript:alert(1)",
    "</title></textarea></style><script>alert(1)</script>",
    "{{7*7}}${7*7}<%= 7*7 %>",
    "\u2028alert(1)//\u202e\x1b]52;c;YQ==\x07",
)
MOST = 60


class Dangers(HTMLParser):
    """What a page must not hold, and where it leads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.found += [
            f"{tag} {name}" for name in values if name.startswith("on") or name in ("style", "srcdoc", "formaction")
        ]
        self.found += (
            ["script without a file of ours"]
            if tag == "script" and not values.get("src", "").startswith("/static/")
            else []
        )
        self.found += [f"<{tag}>"] if tag in ("iframe", "object", "embed", "base", "style") else []
        for name in ("href", "src", "action", "xlink:href"):
            where = urlsplit(values.get(name, ""))
            if where.scheme not in ("", "https", "http", "mailto") or (name != "href" and where.netloc):
                self.found.append(f"{tag} {name}={values[name][:40]}")
        if tag == "img" and "onerror" in str(attrs):
            self.found.append("img")
        if tag == "a":
            self.links.append(values.get("href", ""))


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which everything that a log, a file's name or a person can bring is nasty."""
    place = tmp_path_factory.mktemp("poisoned")
    with Store.open(place / "triage.db") as store:
        for number, text in enumerate(NASTY):
            job = place / f"job {number} {text.replace('/', '_')[:60]}".replace("\x1b", "").replace("\x07", "")
            job.mkdir()
            (job / "rank0.log").write_text(
                f'[{text}]: starting on host {text}\n[rank0]: Traceback (most recent call last):\n[rank0]:   File "{text}.py", line 1, in {text}\n'
                f"[rank0]:     {text}\n[rank0]: ValueError: {number} {text}\n",
                encoding="utf-8",
            )
            stored = store.incidents.add(triage.ingest(job))
            store.feedback.add(stored.id, "wrong", actor=text, because=text)
            found = store.incidents.get(stored.id)
            if found.incident.cluster:
                store.moves.name(found.incident.cluster, f"{number} {text}", actor=text, note=text)
        store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return place / "triage.db"


@pytest.fixture
def open_pages(poisoned: Path) -> Iterator[TestClient]:
    settings = Settings(store=StoreSection(path=poisoned))
    with (
        Store.open(poisoned) as store,
        TestClient(create_app(settings, store), base_url="http://127.0.0.1:8321") as client,
    ):
        yield client


def test_no_page_holds_what_a_log_wrote_as_markup(open_pages: TestClient) -> None:
    """ASVS 1.2.1: from the first page along all links, nothing of a log, a name or a remark has become a tag, a script
    or a link.
    """
    waiting, seen, wrong, nasty = (
        ["/", *(f"/search?q={text}" for text in ("alert", "%3Cscript%3Ealert(1)%3C/script%3E"))],
        set(),
        [],
        0,
    )
    while waiting and len(seen) < MOST:
        address = waiting.pop(0)
        if address in seen:
            continue
        seen.add(address)
        answer = open_pages.get(address, headers={"Accept": "text/html"})
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        page = Dangers()
        page.feed(answer.text)
        nasty += "alert(1)" in answer.text
        wrong += [(address, found) for found in page.found]
        kinds = {urlsplit(one).path.split("/")[1] for one in seen}
        links = [
            link for link in page.links if link.startswith("/") and not link.startswith(("//", "/static", "/auth"))
        ]
        waiting += sorted(links, key=lambda link: urlsplit(link).path.split("/")[1] in kinds)
    assert wrong == []
    assert nasty > 5
    assert len(seen) > 10


def test_answers_for_programs_are_no_pages(open_pages: TestClient) -> None:
    """ASVS 1.2.1, 4.1.1: what looks like markup in JSON is called JSON, errors that repeat what was asked as well."""
    for address in (
        "/api/v1/incidents",
        "/api/v1/clusters?state=all",
        "/api/v1/incidents/<script>alert(1)</script>",
        "/api/v1/search?q=<script>",
    ):
        answer = open_pages.get(address)
        assert answer.headers["content-type"].startswith("application/json")
        assert json.loads(answer.content)


@pytest.mark.parametrize(
    "format_", ["text", "json", "markdown", "html", "github", "gitlab", "codequality", "junit", "sarif", "slack"]
)
def test_reports_in_every_format_are_files(open_pages: TestClient, format_: str) -> None:
    """ASVS 3.2.1, 5.4.1: a report is saved under a harmless name, and what is HTML has no script and stands in a
    sandbox.
    """
    for incident in open_pages.get("/api/v1/incidents").json()["incidents"]:
        answer = open_pages.get(f"/api/v1/incidents/{incident['id']}/report", params={"format": format_})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-disposition"].startswith(f'attachment; filename="{incident["id"]}.')
        assert "sandbox" in answer.headers["content-security-policy"]
        if format_ == "html":
            page = Dangers()
            page.feed(answer.text)
            assert [
                found for found in page.found if not found.startswith("<style") and not found.endswith("style")
            ] == []
