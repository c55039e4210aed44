"""Who may do what: every address of the API with every role, and every way to come in."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.testclient import TestClient

import triage
from tests.service.conftest import job
from triage.base.errors import OptionError
from triage.service import access, identify
from triage.service.app import create_app
from triage.service.auth import inside
from triage.service.run import run
from triage.settings import Settings
from triage.settings.sources import Source
from triage.settings.store import Store as StoreSection
from triage.settings.web import Web
from triage.store import Store

ROLES = {
    "viewer": ["read"],
    "submitter": ["read", "ingest"],
    "curator": ["read", "ingest", "curate"],
    "admin": ["read", "ingest", "curate", "admin"],
}
ORDER = list(ROLES)
ANYBODY = {("GET", "/api/v1/health"), ("GET", "/api/v1/ready")}
SUBMITTER = re.compile(r"POST .*/(?:uploads|ingest|feedback|alerts/.*)$|(?:GET|PATCH) .*/uploads/|DELETE .*/tasks/")
CURATOR = re.compile(r"POST .*/(?:clusters/.*|assign|undo)$|GET /api/v1/audit$")


@pytest.fixture
def tokens(store: Store) -> dict[str, str]:
    """A token for each role."""
    return {role: store.tokens.create(role, scopes, actor="test")[0] for role, scopes in ROLES.items()}


@pytest.fixture
def guarded(path: Path, store: Store, tokens: dict[str, str], tmp_path: Path) -> Iterator[TestClient]:
    """The service as others reach it."""
    jobs = tmp_path / "jobs"
    (jobs / "a").mkdir(parents=True)
    web = Web(host="0.0.0.0", hosts=("testserver",), changes_a_minute=100_000, requests_a_minute=100_000)
    settings = Settings(store=StoreSection(path=path), web=web, sources={"slurm": Source(path=jobs)})
    with TestClient(create_app(settings, store), raise_server_exceptions=False) as client:
        yield client


def operations(app: FastAPI) -> list[tuple[str, str]]:
    """(method, path) of everything that the document describes."""
    return [(method.upper(), path) for path, item in app.openapi()["paths"].items() for method in item]


def needed(method: str, path: str) -> str | None:
    """The role that an address needs, by what it does."""
    said = f"{method} {path}"
    if (method, path) in ANYBODY:
        return None
    return "curator" if CURATOR.search(said) else "submitter" if SUBMITTER.search(said) else "viewer"


def call(client: TestClient, method: str, path: str, token: str | None, store: Store) -> int:
    """The status of a request that is right as far as its form goes."""
    address = re.sub(r"\{sha256\}", "0" * 64, re.sub(r"\{number\}|\{entry\}", "0", path))
    address = re.sub(r"\{incident\}", "i-none", re.sub(r"\{source\}", "slurm", re.sub(r"\{\w+\}", "none", address)))
    body: Any = {
        "verdict": "agree",
        "name": "x",
        "other": "u-1",
        "keys": ["k"],
        "signature": "a.b",
        "version": "4",
        "alerts": [],
    }
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return client.request(method, address, json=body if method == "POST" else None, headers=headers).status_code


def test_every_address_asks_for_its_role(guarded: TestClient, tokens: dict[str, str], store: Store) -> None:
    """ASVS 8.2.1, 8.2.2: without a sign-in everything answers 401, below the needed role 403, and from that role on
    neither.
    """
    app = guarded.app
    assert isinstance(app, FastAPI)
    wrong = []
    for method, path in operations(app):
        role = needed(method, path)
        for who in (None, *ORDER):
            status = call(guarded, method, path, tokens[who] if who else None, store)
            if role is None:
                expected = status not in (401, 403)
            elif who is None:
                expected = status == 401
            elif ORDER.index(who) < ORDER.index(role):
                expected = status == 403
            else:
                expected = status not in (401, 403)
            if not expected:
                wrong.append((method, path, who, status))
    assert wrong == []
    assert len(operations(app)) > 30


def test_scopes_do_not_bring_others_along(guarded: TestClient, store: Store) -> None:
    """ASVS 8.2.1: a token that may only ingest cannot read."""
    secret, _ = store.tokens.create("robot", ["ingest"], actor="test")
    headers = {"Authorization": f"Bearer {secret}"}
    assert guarded.get("/api/v1/incidents", headers=headers).status_code == 403
    assert guarded.post("/api/v1/ingest", json={"source": "nope"}, headers=headers).status_code == 404


@pytest.mark.parametrize(
    "given", ["Bearer", "Bearer ", "Bearer trg_" + "a" * 46, "Basic dXNlcjpwYXNz", "Bearer \xff", "trg_x", "Bearer a b"]
)
def test_wrong_tokens_are_refused(guarded: TestClient, given: str) -> None:
    """ASVS 7.2.1: whatever is no living token answers 401, also where anybody may ask."""
    answer = guarded.get("/api/v1/incidents", headers={"Authorization": given.encode("latin-1")})
    assert answer.status_code == 401
    assert "WWW-Authenticate" in answer.headers


def test_guessing_tokens_is_slowed_down(guarded: TestClient) -> None:
    """ASVS 6.3.1: after some wrong ones an address is answered 429."""
    seen = {guarded.get("/api/v1/me", headers={"Authorization": "Bearer x"}).status_code for _ in range(40)}
    assert seen == {401, 429}


@pytest.fixture
def asks_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the store said of a token or a session counts for no time."""
    monkeypatch.setattr(identify, "FRESH", -1.0)


@pytest.mark.usefixtures("asks_every_time")
def test_a_session_is_a_cookie_that_ends_with_its_token(
    guarded: TestClient, tokens: dict[str, str], store: Store
) -> None:
    """ASVS 3.3.2, 3.3.4, 7.4.2: HttpOnly, SameSite=Lax, and useless once the token is revoked."""
    answer = guarded.post(
        "/auth/token", data={"token": tokens["curator"], "next": "//evil.example/"}, follow_redirects=False
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    said = answer.headers["set-cookie"].lower()
    assert "httponly" in said
    assert "samesite=lax" in said
    me = guarded.get("/api/v1/me").json()
    assert (me["name"], me["role"], me["how"]) == ("curator", "curator", "session")
    store.tokens.revoke("curator", actor="test")
    assert guarded.get("/api/v1/me").status_code == 401


@pytest.mark.usefixtures("asks_every_time")
def test_who_signs_out_is_out(guarded: TestClient, tokens: dict[str, str]) -> None:
    """ASVS 7.4.1: a copy of the cookie opens nothing after signing out; another session of the same person goes on."""
    copies = []
    for _ in range(2):
        guarded.cookies.clear()
        guarded.post("/auth/token", data={"token": tokens["viewer"]}, follow_redirects=False)
        copies.append({"Cookie": f"triage_session={guarded.cookies['triage_session']}"})
    guarded.post("/auth/sign-out", follow_redirects=False)
    guarded.cookies.clear()
    assert [guarded.get("/api/v1/me", headers=copy).status_code for copy in copies] == [200, 401]


def test_sessions_end_by_themselves(
    guarded: TestClient, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ASVS 7.3.2: after web.session_hours the cookie is too old."""
    guarded.post("/auth/token", data={"token": tokens["viewer"]}, follow_redirects=False)
    assert guarded.get("/api/v1/me").status_code == 200
    now = time.time()
    monkeypatch.setattr("itsdangerous.timed.time.time", lambda: now + 12 * 3600 + 2)
    assert guarded.get("/api/v1/me").status_code == 401


def test_sign_ins_and_refusals_are_logged(
    guarded: TestClient, tokens: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """ASVS 16.2.1, 16.3.1, 16.3.2: who, when, what and how it ended, and never a token."""
    guarded.post("/auth/token", data={"token": tokens["viewer"]}, follow_redirects=False)
    guarded.post("/api/v1/clusters/u-1/ignore", json={})
    guarded.cookies.clear()
    guarded.post("/auth/token", data={"token": "trg_wrong"}, follow_redirects=False)
    said = capsys.readouterr().err
    events = [json.loads(line) for line in said.splitlines()]
    assert {"signed in", "sign-in refused", "request"} <= {event["event"] for event in events}
    refused = next(event for event in events if event.get("status") == 403)
    assert (refused["who"], refused["method"], refused["path"]) == ("viewer", "POST", "/api/v1/clusters/u-1/ignore")
    assert all(event["time"].endswith("Z") for event in events)
    assert not any(token in said for token in tokens.values())


def test_a_task_is_stopped_by_its_owner_or_an_admin(guarded: TestClient, tokens: dict[str, str], store: Store) -> None:
    """ASVS 8.2.2: the right role is not enough for another one's task."""
    task = store.tasks.add("ingest", {}, actor="submitter").id
    status = {
        who: guarded.delete(f"/api/v1/tasks/{task}", headers={"Authorization": f"Bearer {tokens[who]}"}).status_code
        for who in ("viewer", "curator", "submitter", "admin")
    }
    assert status == {"viewer": 403, "curator": 403, "submitter": 200, "admin": 200}


CHANGES = [
    ("POST", "/api/v1/incidents/{incident}/feedback", {"verdict": "agree"}, "feedback agree"),
    ("POST", "/api/v1/clusters/{cluster}/name", {"name": "a name"}, "name"),
    ("POST", "/api/v1/clusters/{cluster}/ignore", {}, "ignore"),
    ("POST", "/api/v1/clusters/{cluster}/reopen", {}, "reopen"),
    ("POST", "/api/v1/clusters/{cluster}/reject", {"other": "{other}"}, "reject"),
    ("POST", "/api/v1/clusters/{cluster}/merge", {"other": "{other}"}, "merge"),
    ("POST", "/api/v1/clusters/{cluster}/split", {"keys": ["{key}"]}, "split"),
    ("POST", "/api/v1/audit/{entry}/undo", None, "undo"),
    ("POST", "/api/v1/incidents/{incident}/assign", {"cluster": None}, "assign"),
    ("POST", "/api/v1/clusters/{cluster}/promote", {"signature": "data.column-missing"}, "promote"),
    ("POST", "/api/v1/ingest", {"source": "slurm", "job": "a"}, "task ingest"),
    ("DELETE", "/api/v1/tasks/{task}", None, "task cancel"),
]


def test_every_change_is_in_the_audit_log(guarded: TestClient, tokens: dict[str, str], store: Store) -> None:
    """ASVS 16.3.3: whatever changes something leaves an entry with the name of who did it, and what it was."""
    store.incidents.add(triage.ingest(job("assertion_all_ranks_interleaved")))
    curator, incident = (
        {"Authorization": f"Bearer {tokens['curator']}"},
        next(i for i in store.search.listed() if i.cluster),
    )
    other = next(cluster for cluster in store.clusters.listed() if cluster.id != incident.cluster)
    known = {"incident": incident.id, "cluster": str(incident.cluster), "other": other.id, "key": other.keys[0].key}
    known["task"] = store.tasks.add("ingest", {}, actor="curator").id
    for method, path, body, action in CHANGES:
        last = store.audit.listed(limit=1)[0].id
        sent = None if body is None else json.dumps(body)
        for name, value in {**known, "entry": str(last)}.items():
            path, sent = path.replace(f"{{{name}}}", value), sent and sent.replace(f"{{{name}}}", value)
        answer = guarded.request(method, path, headers={**curator, "Content-Type": "application/json"}, content=sent)
        assert answer.status_code < 300, answer.text
        new = [entry for entry in store.audit.listed(limit=500) if entry.id > last]
        assert [(entry.actor, entry.action) for entry in new] == [("curator", action)], path


def test_fields_that_are_not_asked_for_are_refused(guarded: TestClient, tokens: dict[str, str]) -> None:
    """ASVS 15.3.3: nobody names another actor, an id or a state in a body."""
    for extra in ("actor", "id", "at", "state"):
        answer = guarded.post(
            "/api/v1/incidents/i-1/feedback",
            headers={"Authorization": f"Bearer {tokens['admin']}"},
            json={"verdict": "agree", extra: "x"},
        )
        assert answer.status_code == 422


@pytest.mark.parametrize("change", ["", "x", "a.b.c", "é"])
def test_a_forged_session_is_none(guarded: TestClient, change: str) -> None:
    """ASVS 9.1.1: a cookie that we did not sign opens nothing."""
    assert guarded.get("/api/v1/me", headers={"Cookie": f"triage_session={change}".encode()}).status_code == 401


def test_secure_cookies_over_https(path: Path, store: Store, tokens: dict[str, str]) -> None:
    """ASVS 3.3.1, 3.3.3, 3.4.1: with an https address the cookie is Secure and bound to the host, and the answers say
    HSTS.
    """
    web = Web(public_url="https://triage.example.org")
    with TestClient(
        create_app(Settings(store=StoreSection(path=path), web=web), store), base_url="https://triage.example.org"
    ) as client:
        answer = client.post("/auth/token", data={"token": tokens["viewer"]}, follow_redirects=False)
    assert answer.headers["set-cookie"].startswith("__Host-triage=")
    assert "; secure" in answer.headers["set-cookie"].lower()
    assert "max-age" in answer.headers["strict-transport-security"]


def settings_of(path: Path, **web: Any) -> Settings:
    return Settings(store=StoreSection(path=path), web=Web(**web))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "triage.example.org"])
def test_it_does_not_start_open_to_others(path: Path, store: Store, host: str) -> None:
    """ASVS 6.3.4: an address that others reach needs a way to sign in first."""
    with pytest.raises(OptionError, match="nobody would have to sign in"):
        run(settings_of(path, host=host))
    store.tokens.create("a", ["read"], actor="test")
    access.check(settings_of(path, host=host), store)


def test_a_proxy_is_only_believed_from_its_address(path: Path, store: Store) -> None:
    """ASVS 4.1.3: who signed in is taken from the header of a trusted proxy alone, and never from two headers."""
    web = {
        "proxy_user": "X-User",
        "proxy_role": "X-Groups",
        "trusted_proxies": ("192.0.2.0/24",),
        "groups": {"ops": "curator"},
    }
    app = create_app(settings_of(path, **web), store)
    headers = {"X-User": "anna", "X-Groups": "users, ops"}
    with TestClient(app, client=("192.0.2.7", 1), base_url="http://127.0.0.1") as client:
        assert client.get("/api/v1/me", headers=headers).json()["role"] == "curator"
        assert client.get("/api/v1/me", headers=[("X-User", "anna"), ("X-User", "root")]).status_code == 401
    with TestClient(app, client=("198.51.100.1", 1), base_url="http://127.0.0.1") as client:
        assert client.get("/api/v1/me", headers=headers).status_code == 401
    with pytest.raises(OptionError, match="anybody could send"):
        access.check(settings_of(path, proxy_user="X-User"), store)


def test_addresses_of_clients_come_from_trusted_proxies_only() -> None:
    """ASVS 15.3.4: limits and the log see the last address that is no proxy of ours; what a client writes itself does
    not count.
    """
    proxies = identify.Proxies(Web(trusted_proxies=("192.0.2.0/24",)))
    said = Headers({"x-forwarded-for": "203.0.113.9, 198.51.100.1, 192.0.2.8"})
    assert proxies.address({"type": "http", "client": ("192.0.2.7", 1)}, said) == "198.51.100.1"
    assert proxies.address({"type": "http", "client": ("198.51.100.2", 1)}, said) == "198.51.100.2"


@pytest.mark.parametrize(
    ("target", "to"),
    [
        ("/inbox", "/inbox"),
        ("//evil", "/"),
        ("https://evil", "/"),
        ("/\\evil", "/"),
        ("javascript:1", "/"),
        ("/a\r\nb", "/"),
        ("", "/"),
    ],
)
def test_sign_in_goes_on_inside_only(target: str, to: str) -> None:
    """ASVS 3.7.2: no redirect leads to another site."""
    assert inside(target) == to
