"""Roles, ways to sign in, sessions and the audit log."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.testclient import TestClient

import triage
from tests.service.conftest import job_path
from tests.service.server_process import run_server
from triage.base.errors import OptionError
from triage.service import access, authentication
from triage.service.app import create_app
from triage.service.pages.rendering import local_path
from triage.service.server import serve
from triage.settings import Settings
from triage.settings.sections import Source, StoreSettings, WebSettings
from triage.store import Store

ROLES = {
    "viewer": ["read"],
    "submitter": ["read", "ingest"],
    "curator": ["read", "ingest", "curate"],
    "admin": ["read", "ingest", "curate", "admin"],
}
ORDER = list(ROLES)
WITHOUT_SIGN_IN = {("GET", "/api/v1/health"), ("GET", "/api/v1/ready")}
SUBMITTER_ADDRESSES = re.compile(
    r"POST .*/(?:uploads|ingest|feedback|comments|subscriptions|alerts/.*)$|(?:GET|PATCH) .*/uploads/"
    r"|DELETE .*/(?:tasks|subscriptions)/"
)
CURATOR_ADDRESSES = re.compile(r"POST .*/(?:clusters/.*|assign|undo|work)$|GET /api/v1/audit$")

ADMIN_ADDRESSES = re.compile(r"DELETE .*/incidents/")


@pytest.fixture
def tokens(store: Store) -> dict[str, str]:
    """A token for each role."""
    return {role: store.tokens.create(role, scopes, actor="test")[0] for role, scopes in ROLES.items()}


@pytest.fixture
def protected_client(path: Path, store: Store, tokens: dict[str, str], tmp_path: Path) -> Iterator[TestClient]:
    """A client of a service that other machines can reach."""
    jobs = tmp_path / "jobs"
    (jobs / "a").mkdir(parents=True)
    web = WebSettings(host="0.0.0.0", hosts=("testserver",), changes_a_minute=100_000, requests_a_minute=100_000)
    settings = Settings(store=StoreSettings(path=path), web=web, sources={"slurm": Source(path=jobs)})
    with TestClient(create_app(settings, store), raise_server_exceptions=False) as client:
        yield client


def operations(app: FastAPI) -> list[tuple[str, str]]:
    """Return (method, path) of every operation in the OpenAPI document."""
    return [(method.upper(), path) for path, item in app.openapi()["paths"].items() for method in item]


def required_role(method: str, path: str) -> str | None:
    """Return the role that an operation needs."""
    operation = f"{method} {path}"
    if (method, path) in WITHOUT_SIGN_IN:
        return None
    return (
        "admin"
        if ADMIN_ADDRESSES.search(operation)
        else "curator"
        if CURATOR_ADDRESSES.search(operation)
        else "submitter"
        if SUBMITTER_ADDRESSES.search(operation)
        else "viewer"
    )


def request_status(client: TestClient, method: str, path: str, token: str | None, store: Store) -> int:
    """Return the status of a request with a valid form."""
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


def test_every_address_needs_its_role(protected_client: TestClient, tokens: dict[str, str], store: Store) -> None:
    """ASVS 8.2.1, 8.2.2: every address answers 401 without a sign-in and 403 below its role."""
    app = protected_client.app
    assert isinstance(app, FastAPI)
    wrong = []
    for method, path in operations(app):
        role = required_role(method, path)
        for user in (None, *ORDER):
            status = request_status(protected_client, method, path, tokens[user] if user else None, store)
            if role is None:
                expected = status not in (401, 403)
            elif user is None:
                expected = status == 401
            elif ORDER.index(user) < ORDER.index(role):
                expected = status == 403
            else:
                expected = status not in (401, 403)
            if not expected:
                wrong.append((method, path, user, status))
    assert wrong == []
    assert len(operations(app)) > 30


def test_scopes_include_no_others(protected_client: TestClient, store: Store) -> None:
    """ASVS 8.2.1: a token with the scope ingest alone cannot read."""
    secret, _ = store.tokens.create("robot", ["ingest"], actor="test")
    headers = {"Authorization": f"Bearer {secret}"}
    assert protected_client.get("/api/v1/incidents", headers=headers).status_code == 403
    assert protected_client.post("/api/v1/ingest", json={"source": "nope"}, headers=headers).status_code == 404


@pytest.mark.parametrize(
    "authorization",
    ["Bearer", "Bearer ", "Bearer trg_" + "a" * 46, "Basic dXNlcjpwYXNz", "Bearer \xff", "trg_x", "Bearer a b"],
)
def test_wrong_tokens_are_refused(protected_client: TestClient, authorization: str) -> None:
    """ASVS 7.2.1: an invalid token answers 401."""
    answer = protected_client.get("/api/v1/incidents", headers={"Authorization": authorization.encode("latin-1")})
    assert answer.status_code == 401
    assert "WWW-Authenticate" in answer.headers


def test_wrong_tokens_are_rate_limited(protected_client: TestClient) -> None:
    """ASVS 6.3.1: many wrong tokens from one address answer 429."""
    statuses = {
        protected_client.get("/api/v1/me", headers={"Authorization": "Bearer x"}).status_code for _ in range(40)
    }
    assert statuses == {401, 429}


def test_session_cookie_ends_with_its_token(protected_client: TestClient, tokens: dict[str, str], store: Store) -> None:
    """ASVS 3.3.2, 3.3.4, 7.4.2: the cookie is HttpOnly and SameSite=Lax, and invalid after its token is revoked."""
    answer = protected_client.post(
        "/auth/token", data={"token": tokens["curator"], "next": "//evil.example/"}, follow_redirects=False
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    me = protected_client.get("/api/v1/me").json()
    assert (me["name"], me["role"], me["how"]) == ("curator", "curator", "session")
    store.tokens.revoke("curator", actor="test")
    assert protected_client.get("/api/v1/me").status_code == 401


def test_sign_out_ends_the_session(protected_client: TestClient, tokens: dict[str, str]) -> None:
    """ASVS 7.4.1: after signing out a copy of the cookie is invalid; other sessions of the person continue."""
    copies = []
    for _ in range(2):
        protected_client.cookies.clear()
        protected_client.post("/auth/token", data={"token": tokens["viewer"]}, follow_redirects=False)
        copies.append({"Cookie": f"triage_session={protected_client.cookies['triage_session']}"})
    assert [protected_client.get("/api/v1/me", headers=copy).status_code for copy in copies] == [200, 200]
    protected_client.post("/auth/sign-out", follow_redirects=False)
    protected_client.cookies.clear()
    assert [protected_client.get("/api/v1/me", headers=copy).status_code for copy in copies] == [200, 401]


def test_sign_outs_and_revocations_count_at_once_in_every_process(tmp_path: Path) -> None:
    """ASVS 7.4.1, 7.4.2: the first request after a sign-out or a revocation is refused by every process."""
    path = tmp_path / "triage.db"
    with Store.open(path) as store:
        secret, _ = store.tokens.create("anna", ["read"], actor="test")
        with run_server(path, "--workers", "0", web_processes=2) as server:
            header = {"Authorization": f"Bearer {secret}"}

            def statuses(headers: dict[str, str]) -> set[int]:
                """Ask on many connections, so that both processes answer."""
                address = f"{server.url}/api/v1/me"
                return {httpx.get(address, headers=headers, trust_env=False).status_code for _ in range(12)}

            server.client.post("/auth/token", data={"token": secret})
            cookie = {"Cookie": f"triage_session={server.client.cookies['triage_session']}"}
            assert (statuses(cookie), statuses(header)) == ({200}, {200})
            server.client.post("/auth/sign-out")
            assert statuses(cookie) == {401}
            assert statuses(header) == {200}
            store.tokens.revoke("anna", actor="test")
            assert statuses(header) == {401}


def test_streams_end_with_their_token(tmp_path: Path) -> None:
    """ASVS 7.4.2: the events of a task that waits end when the token is revoked."""
    path = tmp_path / "triage.db"
    with Store.open(path) as store:
        secret, _ = store.tokens.create("anna", ["read"], actor="test")
        task = store.tasks.add("ingest", {"place": {}, "name": "a"}, actor="anna")
        with run_server(path, "--workers", "0") as server:
            address, header = f"/api/v1/tasks/{task.id}/events", {"Authorization": f"Bearer {secret}"}
            with server.client.stream("GET", address, headers=header) as stream:
                lines = stream.iter_lines()
                assert any(line.startswith("data: ") for line in lines)
                store.tokens.revoke("anna", actor="test")
                assert not any(line.startswith("data: ") for line in lines)


def test_sessions_expire(protected_client: TestClient, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """ASVS 7.3.2: the cookie expires after web.session_hours."""
    protected_client.post("/auth/token", data={"token": tokens["viewer"]}, follow_redirects=False)
    assert protected_client.get("/api/v1/me").status_code == 200
    now = time.time()
    monkeypatch.setattr("itsdangerous.timed.time.time", lambda: now + 12 * 3600 + 2)
    assert protected_client.get("/api/v1/me").status_code == 401


def test_sign_ins_and_refusals_are_logged(
    protected_client: TestClient, tokens: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """ASVS 16.2.1, 16.3.1, 16.3.2: the log has the person, time, request and result, and never a token."""
    protected_client.post("/auth/token", data={"token": tokens["viewer"]}, follow_redirects=False)
    protected_client.post("/api/v1/clusters/u-1/ignore", json={})
    protected_client.cookies.clear()
    protected_client.post("/auth/token", data={"token": "trg_wrong"}, follow_redirects=False)
    log = capsys.readouterr().err
    events = [json.loads(line) for line in log.splitlines()]
    assert {"signed in", "sign-in refused", "request"} <= {event["event"] for event in events}
    refused = next(event for event in events if event.get("status") == 403)
    assert (refused["who"], refused["method"], refused["path"]) == ("viewer", "POST", "/api/v1/clusters/u-1/ignore")
    assert all(event["time"].endswith("Z") for event in events)
    assert not any(token in log for token in tokens.values())


def test_only_the_owner_or_an_admin_cancels_a_task(
    protected_client: TestClient, tokens: dict[str, str], store: Store
) -> None:
    """ASVS 8.2.2: the right role is not enough for somebody else's task."""
    task = store.tasks.add("ingest", {}, actor="submitter").id
    statuses = {
        user: protected_client.delete(
            f"/api/v1/tasks/{task}", headers={"Authorization": f"Bearer {tokens[user]}"}
        ).status_code
        for user in ("viewer", "curator", "submitter", "admin")
    }
    assert statuses == {"viewer": 403, "curator": 403, "submitter": 200, "admin": 200}


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


def test_every_change_is_in_the_audit_log(protected_client: TestClient, tokens: dict[str, str], store: Store) -> None:
    """ASVS 16.3.3: every change leaves an audit entry with its actor and action."""
    store.incidents.add(triage.ingest(job_path("assertion_all_ranks_interleaved")))
    curator, incident = (
        {"Authorization": f"Bearer {tokens['curator']}"},
        next(i for i in store.search.list_incidents() if i.cluster),
    )
    other = next(cluster for cluster in store.clusters.list_clusters() if cluster.id != incident.cluster)
    values = {"incident": incident.id, "cluster": str(incident.cluster), "other": other.id, "key": other.keys[0].key}
    values["task"] = store.tasks.add("ingest", {}, actor="curator").id
    for method, path, body, action in CHANGES:
        last = store.audit.list_entries(limit=1)[0].id
        content = None if body is None else json.dumps(body)
        for name, value in {**values, "entry": str(last)}.items():
            path, content = path.replace(f"{{{name}}}", value), content and content.replace(f"{{{name}}}", value)
        answer = protected_client.request(
            method, path, headers={**curator, "Content-Type": "application/json"}, content=content
        )
        assert answer.status_code < 300, answer.text
        new = [entry for entry in store.audit.list_entries(limit=500) if entry.id > last]
        assert [(entry.actor, entry.action) for entry in new] == [("curator", action)], path


def test_unknown_fields_are_refused(protected_client: TestClient, tokens: dict[str, str]) -> None:
    """ASVS 15.3.3: a body cannot set the actor, id, time or state."""
    for extra in ("actor", "id", "at", "state"):
        answer = protected_client.post(
            "/api/v1/incidents/i-1/feedback",
            headers={"Authorization": f"Bearer {tokens['admin']}"},
            json={"verdict": "agree", extra: "x"},
        )
        assert answer.status_code == 422


@pytest.mark.parametrize("cookie", ["", "x", "a.b.c", "é"])
def test_forged_session_is_refused(protected_client: TestClient, cookie: str) -> None:
    """ASVS 9.1.1: a cookie without our signature opens no session."""
    assert (
        protected_client.get("/api/v1/me", headers={"Cookie": f"triage_session={cookie}".encode()}).status_code == 401
    )


def test_secure_cookies_over_https(path: Path, store: Store, tokens: dict[str, str]) -> None:
    """ASVS 3.3.1, 3.3.3, 3.4.1: over https the cookie is Secure with the prefix __Host-, and responses have HSTS."""
    web = WebSettings(public_url="https://triage.example.org")
    with TestClient(
        create_app(Settings(store=StoreSettings(path=path), web=web), store), base_url="https://triage.example.org"
    ) as client:
        answer = client.post("/auth/token", data={"token": tokens["viewer"]}, follow_redirects=False)
    assert answer.headers["set-cookie"].startswith("__Host-triage=")
    assert "; secure" in answer.headers["set-cookie"].lower()
    assert "max-age" in answer.headers["strict-transport-security"]


def settings_of(path: Path, **web: Any) -> Settings:
    return Settings(store=StoreSettings(path=path), web=WebSettings(**web))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "triage.example.org"])
def test_start_on_a_network_needs_a_sign_in(path: Path, store: Store, host: str) -> None:
    """ASVS 6.3.4: an address that other machines can reach needs a way to sign in."""
    with pytest.raises(OptionError, match="no way to sign in is set up"):
        serve(settings_of(path, host=host))
    store.tokens.create("a", ["read"], actor="test")
    access.check_settings(settings_of(path, host=host), store)


def test_proxy_headers_count_from_its_address_only(path: Path, store: Store) -> None:
    """ASVS 4.1.3: the user comes from one header of a trusted proxy, never from other clients or two headers."""
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
    with pytest.raises(OptionError, match="any client could send"):
        access.check_settings(settings_of(path, proxy_user="X-User"), store)


def test_client_address_comes_from_trusted_proxies_only() -> None:
    """ASVS 15.3.4: the client address is the last one that is not a trusted proxy."""
    proxies = authentication.TrustedProxies(WebSettings(trusted_proxies=("192.0.2.0/24",)))
    headers = Headers({"x-forwarded-for": "203.0.113.9, 198.51.100.1, 192.0.2.8"})
    assert proxies.client_address({"type": "http", "client": ("192.0.2.7", 1)}, headers) == "198.51.100.1"
    assert proxies.client_address({"type": "http", "client": ("198.51.100.2", 1)}, headers) == "198.51.100.2"


@pytest.mark.parametrize(
    ("target", "expected"),
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
def test_redirects_stay_on_this_site(target: str, expected: str) -> None:
    """ASVS 3.7.2: no redirect leads to another site."""
    assert local_path(target) == expected
