"""Who may do what: every address of the API with every role, and every way to come in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from triage.errors import OptionError
from triage.service import access
from triage.service.app import create_app
from triage.service.auth import inside
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
    body: Any = {"verdict": "agree", "name": "x", "other": "u-1", "keys": ["k"], "signature": "a.b", "version": "4", "alerts": []}
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return client.request(method, address, json=body if method == "POST" else None, headers=headers).status_code


def test_every_address_asks_for_its_role(guarded: TestClient, tokens: dict[str, str], store: Store) -> None:
    """ASVS 8.2.1, 8.2.2: without a sign-in everything answers 401, below the needed role 403, and from that role on neither."""
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
    """ASVS 9.1.1: whatever is no living token answers 401, also where anybody may ask."""
    answer = guarded.get("/api/v1/incidents", headers={"Authorization": given.encode("latin-1")})
    assert answer.status_code == 401
    assert "WWW-Authenticate" in answer.headers


def test_guessing_tokens_is_slowed_down(guarded: TestClient) -> None:
    """ASVS 6.3.1: after some wrong ones an address is answered 429."""
    seen = {guarded.get("/api/v1/me", headers={"Authorization": "Bearer x"}).status_code for _ in range(40)}
    assert seen == {401, 429}


def test_a_session_is_a_cookie_that_ends_with_its_token(guarded: TestClient, tokens: dict[str, str], store: Store) -> None:
    """ASVS 3.3.2, 3.3.4, 7.4.1: HttpOnly, SameSite=Lax, and useless once the token is revoked or the session closed."""
    answer = guarded.post("/auth/token", data={"token": tokens["curator"], "next": "//evil.example/"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    said = answer.headers["set-cookie"].lower()
    assert "httponly" in said
    assert "samesite=lax" in said
    me = guarded.get("/api/v1/me").json()
    assert (me["name"], me["role"], me["how"]) == ("curator", "curator", "session")
    store.tokens.revoke("curator", actor="test")
    kept = guarded.app.middleware_stack  # type: ignore[attr-defined]
    assert kept is not None
    import time

    time.sleep(2.1)  # for so long an answer of the store counts
    assert guarded.get("/api/v1/me").status_code == 401


@pytest.mark.parametrize("change", ["", "x", "a.b.c", "é"])
def test_a_forged_session_is_none(guarded: TestClient, change: str) -> None:
    """ASVS 7.2.1: a cookie that we did not sign opens nothing."""
    assert guarded.get("/api/v1/me", headers={"Cookie": f"triage_session={change}".encode()}).status_code == 401


def test_secure_cookies_over_https(path: Path, store: Store, tokens: dict[str, str]) -> None:
    """ASVS 3.3.1, 3.4.1: with an https address the cookie is Secure and bound to the host, and the answers say HSTS."""
    web = Web(public_url="https://triage.example.org")
    with TestClient(create_app(Settings(store=StoreSection(path=path), web=web), store), base_url="https://triage.example.org") as client:
        answer = client.post("/auth/token", data={"token": tokens["viewer"]}, follow_redirects=False)
    assert answer.headers["set-cookie"].startswith("__Host-triage=")
    assert "; secure" in answer.headers["set-cookie"].lower()
    assert "max-age" in answer.headers["strict-transport-security"]


def settings_of(path: Path, **web: Any) -> Settings:
    return Settings(store=StoreSection(path=path), web=Web(**web))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "triage.example.org"])
def test_it_does_not_start_open_to_others(path: Path, store: Store, host: str) -> None:
    """ASVS 6.3.2: an address that others reach needs a way to sign in first."""
    with pytest.raises(OptionError, match="nobody would have to sign in"):
        access.check(settings_of(path, host=host), store)
    store.tokens.create("a", ["read"], actor="test")
    access.check(settings_of(path, host=host), store)


def test_a_proxy_is_only_believed_from_its_address(path: Path, store: Store) -> None:
    """ASVS 6.8.1: who signed in is taken from the header of a trusted proxy alone, and never from two headers."""
    web = {"proxy_user": "X-User", "proxy_role": "X-Groups", "trusted_proxies": ("192.0.2.0/24",), "groups": {"ops": "curator"}}
    app = create_app(settings_of(path, **web), store)
    headers = {"X-User": "anna", "X-Groups": "users, ops"}
    with TestClient(app, client=("192.0.2.7", 1), base_url="http://127.0.0.1") as client:
        assert client.get("/api/v1/me", headers=headers).json()["role"] == "curator"
        assert client.get("/api/v1/me", headers=[("X-User", "anna"), ("X-User", "root")]).status_code == 401
    with TestClient(app, client=("198.51.100.1", 1), base_url="http://127.0.0.1") as client:
        assert client.get("/api/v1/me", headers=headers).status_code == 401
    with pytest.raises(OptionError, match="anybody could send"):
        access.check(settings_of(path, proxy_user="X-User"), store)


@pytest.mark.parametrize(
    ("target", "to"),
    [("/inbox", "/inbox"), ("//evil", "/"), ("https://evil", "/"), ("/\\evil", "/"), ("javascript:1", "/"), ("/a\r\nb", "/"), ("", "/")],
)
def test_sign_in_goes_on_inside_only(target: str, to: str) -> None:
    """ASVS 3.7.2: no redirect leads to another site."""
    assert inside(target) == to
