"""Hostile text from logs is shown in pages, responses and files, but never interpreted."""

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
from triage.settings.sections import StoreSettings
from triage.store import Store

HOSTILE_TEXTS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "javascript:alert(1)",
    "</title></textarea></style><script>alert(1)</script>",
    "{{7*7}}${7*7}<%= 7*7 %>",
    "\u2028alert(1)//\u202e\x1b]52;c;YQ==\x07",
)
MAX_PAGES = 60


class DangerParser(HTMLParser):
    """Collects dangerous elements and the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.dangers: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Check one element."""
        values = {name: value or "" for name, value in attrs}
        self.dangers += [
            f"{tag} {name}" for name in values if name.startswith("on") or name in ("style", "srcdoc", "formaction")
        ]
        self.dangers += (
            ["script without a file of ours"]
            if tag == "script" and not values.get("src", "").startswith("/static/")
            else []
        )
        self.dangers += [f"<{tag}>"] if tag in ("iframe", "object", "embed", "base", "style") else []
        for name in ("href", "src", "action", "xlink:href"):
            where = urlsplit(values.get(name, ""))
            if where.scheme not in ("", "https", "http", "mailto") or (name != "href" and where.netloc):
                self.dangers.append(f"{tag} {name}={values[name][:40]}")
        if tag == "img" and "onerror" in str(attrs):
            self.dangers.append("img")
        if tag == "a":
            self.links.append(values.get("href", ""))


@pytest.fixture(scope="module")
def hostile_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with hostile texts from logs, file names and people."""
    directory = tmp_path_factory.mktemp("hostile")
    with Store.open(directory / "triage.db") as store:
        for number, text in enumerate(HOSTILE_TEXTS):
            job = directory / f"job {number} {text.replace('/', '_')[:60]}".replace("\x1b", "").replace("\x07", "")
            job.mkdir()
            (job / "rank0.log").write_text(
                f"[{text}]: starting on host {text}\n[rank0]: Traceback (most recent call last):\n"
                f'[rank0]:   File "{text}.py", line 1, in {text}\n'
                f"[rank0]:     {text}\n[rank0]: ValueError: {number} {text}\n",
                encoding="utf-8",
            )
            result = store.incidents.add(triage.ingest(job))
            store.feedback.add(result.id, "wrong", actor=text, because=text)
            stored = store.incidents.get(result.id)
            if stored.incident.cluster:
                store.cluster_actions.name(stored.incident.cluster, f"{number} {text}", actor=text, note=text)
        store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return directory / "triage.db"


@pytest.fixture
def hostile_client(hostile_store: Path) -> Iterator[TestClient]:
    """A client of a service on that store."""
    settings = Settings(store=StoreSettings(path=hostile_store))
    with (
        Store.open(hostile_store) as store,
        TestClient(create_app(settings, store), base_url="http://127.0.0.1:8321") as client,
    ):
        yield client


def test_pages_escape_hostile_text(hostile_client: TestClient) -> None:
    """ASVS 1.2.1: no page that is linked from the first one has a tag, a script or a link from hostile text."""
    waiting, visited, dangers, hostile_pages = (
        ["/", *(f"/search?q={text}" for text in ("alert", "%3Cscript%3Ealert(1)%3C/script%3E"))],
        set(),
        [],
        0,
    )
    while waiting and len(visited) < MAX_PAGES:
        address = waiting.pop(0)
        if address in visited:
            continue
        visited.add(address)
        answer = hostile_client.get(address, headers={"Accept": "text/html"})
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        page = DangerParser()
        page.feed(answer.text)
        hostile_pages += "alert(1)" in answer.text
        dangers += [(address, danger) for danger in page.dangers]
        kinds = {urlsplit(one).path.split("/")[1] for one in visited}
        links = [
            link for link in page.links if link.startswith("/") and not link.startswith(("//", "/static", "/auth"))
        ]
        waiting += sorted(links, key=lambda link: urlsplit(link).path.split("/")[1] in kinds)
    assert dangers == []
    assert hostile_pages > 5
    assert len(visited) > 10


def test_api_responses_are_json(hostile_client: TestClient) -> None:
    """ASVS 1.2.1, 4.1.1: API responses and errors with hostile text have the content type JSON."""
    for address in (
        "/api/v1/incidents",
        "/api/v1/clusters?state=all",
        "/api/v1/incidents/<script>alert(1)</script>",
        "/api/v1/search?q=<script>",
    ):
        answer = hostile_client.get(address)
        assert answer.headers["content-type"].startswith("application/json")
        assert json.loads(answer.content)


@pytest.mark.parametrize(
    "format_", ["text", "json", "markdown", "html", "github", "gitlab", "codequality", "junit", "sarif", "slack"]
)
def test_reports_are_attachments(hostile_client: TestClient, format_: str) -> None:
    """ASVS 3.2.1, 5.4.1: reports are sandboxed attachments with safe names, and HTML reports have no script."""
    for incident in hostile_client.get("/api/v1/incidents").json()["incidents"]:
        answer = hostile_client.get(f"/api/v1/incidents/{incident['id']}/report", params={"format": format_})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-disposition"].startswith(f'attachment; filename="{incident["id"]}.')
        assert "sandbox" in answer.headers["content-security-policy"]
        if format_ == "html":
            page = DangerParser()
            page.feed(answer.text)
            assert [
                danger for danger in page.dangers if not danger.startswith("<style") and not danger.endswith("style")
            ] == []
