"""Signing in by OpenID Connect, against a provider on a real socket: the way through, and every lie that must not lead
in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from tests.service.issuer import CLIENT, SECRET, Issuer, issuing, key
from triage.base.errors import OptionError
from triage.service import access
from triage.service.app import create_app
from triage.settings import Settings
from triage.settings.store import Store as StoreSection
from triage.settings.web import Web
from triage.store import Store

HOME = "http://127.0.0.1:8321"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuing() as found:
        yield found


def web(issuer: Issuer, **more: Any) -> Web:
    return Web(
        oidc_issuer=issuer.url,
        oidc_client_id=CLIENT,
        oidc_client_secret=SecretStr(SECRET),
        public_url=HOME,
        groups={"curators": "curator", "staff": "submitter"},
        **more,
    )


@pytest.fixture
def browser(issuer: Issuer, path: Path, store: Store) -> Iterator[TestClient]:
    app = create_app(Settings(store=StoreSection(path=path), web=web(issuer)), store)
    with TestClient(app, base_url=HOME, follow_redirects=False) as client:
        yield client


def asked(browser: TestClient, next_: str = "/") -> str:
    """Where the browser comes back to, with a code; the person has agreed at the provider."""
    answer = browser.get("/auth/oidc", params={"next": next_})
    assert answer.status_code in (302, 303), answer.text
    with httpx.Client(trust_env=False, verify=False) as client:
        return client.get(answer.headers["location"]).headers["location"]


def test_the_way_through(browser: TestClient, issuer: Issuer) -> None:
    """ASVS 10.2.1: state, nonce, PKCE and the client's secret are sent and fit; the session has the role of the
    person's highest group.
    """
    answer = browser.get(asked(browser, "/inbox"))
    assert (answer.status_code, answer.headers["location"], issuer.refused) == (303, "/inbox", [])
    me = browser.get("/api/v1/me").json()
    assert (me["name"], me["role"], me["how"]) == ("anna@example.org", "curator", "session")
    browser.post("/auth/sign-out")
    assert browser.get("/api/v1/me").status_code == 401


@pytest.mark.parametrize(
    ("person", "name", "role"),
    [
        ({"sub": "7", "groups": ["staff"]}, "7", "submitter"),
        ({"sub": "7", "preferred_username": "bo", "groups": "curators"}, "bo", "curator"),
        ({"sub": "7", "email": "root@example.org", "email_verified": False, "groups": ["admin"]}, "7", "viewer"),
    ],
)
def test_who_it_is(browser: TestClient, issuer: Issuer, person: dict[str, Any], name: str, role: str) -> None:
    """ASVS 10.5.2: an address of mail that nobody verified names nobody, and a group gives a role only where it is set
    so.
    """
    issuer.person = person
    browser.get(asked(browser))
    me = browser.get("/api/v1/me").json()
    assert (me["name"], me["role"]) == (name, role)


def _old(_: dict[str, Any], claims: dict[str, Any]) -> None:
    claims.update(iat=int(time.time()) - 7200, exp=int(time.time()) - 3600)


LIES: dict[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "no signature": lambda header, _: header.update(alg="none"),
    "signed with the public key": lambda header, _: header.update(alg="HS256"),
    "too old": _old,
    "for another client": lambda _, claims: claims.update(aud="other"),
    "of another issuer": lambda _, claims: claims.update(iss="https://evil.example"),
    "of another sign-in": lambda _, claims: claims.update(nonce="other"),
    "without a nonce": lambda _, claims: claims.pop("nonce"),
    "of nobody": lambda _, claims: [claims.pop(name, None) for name in ("sub", "email")],
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_false_id_token_leads_nowhere(
    browser: TestClient, issuer: Issuer, lie: Callable[[dict[str, Any], dict[str, Any]], None]
) -> None:
    """ASVS 9.1.1, 9.1.2, 9.2.1, 10.5.1, 10.5.4: signature, algorithm, time, audience, issuer and nonce are checked."""
    issuer.forge = lie
    assert browser.get(asked(browser)).status_code == 401
    assert browser.get("/api/v1/me").status_code == 401


def test_another_key_leads_nowhere(browser: TestClient, issuer: Issuer) -> None:
    """ASVS 9.1.1: a token signed with a key that the issuer does not publish is refused."""
    issuer.key = key(1)
    assert browser.get(asked(browser)).status_code == 401


def test_an_answer_belongs_to_the_browser_that_asked(browser: TestClient, issuer: Issuer) -> None:
    """ASVS 10.1.2, 10.2.1: another browser's answer, another state, no state, a code used twice: none leads in."""
    back = asked(browser)
    cookies = dict(browser.cookies)
    browser.cookies.clear()
    assert browser.get(back).status_code == 401
    browser.cookies.update(cookies)
    assert browser.get(back.partition("state=")[0] + "state=other").status_code == 401
    assert browser.get(back.partition("&state=")[0]).status_code == 401
    assert browser.get(back).status_code == 303
    browser.cookies.clear()
    browser.cookies.update(cookies)
    assert browser.get(back).status_code == 401


def test_who_says_no_is_not_signed_in(browser: TestClient, issuer: Issuer) -> None:
    """The person or the provider refuses: 401 with what to do, and no session."""
    issuer.deny = True
    answer = browser.get(asked(browser))
    assert answer.status_code == 401
    assert answer.json()["error"]["hint"]


def test_an_issuer_that_calls_itself_otherwise_is_none(browser: TestClient, issuer: Issuer) -> None:
    """ASVS 10.5.3: its document must name the issuer that was set."""
    issuer.name = "https://evil.example"
    assert browser.get("/auth/oidc").status_code == 503


def test_an_issuer_that_is_away(issuer: Issuer, path: Path, store: Store) -> None:
    """Who cannot be asked leads to a 503 with a hint; tokens still work."""
    away = web(issuer).model_copy(update={"oidc_issuer": "http://127.0.0.1:9"})
    secret, _ = store.tokens.create("a", ["read"], actor="test")
    with TestClient(
        create_app(Settings(store=StoreSection(path=path), web=away), store), base_url=HOME, follow_redirects=False
    ) as client:
        assert client.get("/auth/oidc").status_code == 503
        assert client.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"}).status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"oidc_client_id": ""},
        {"oidc_client_secret": SecretStr("")},
        {"public_url": ""},
        {"oidc_issuer": "http://issuer.example"},
    ],
)
def test_half_of_it_does_not_start(issuer: Issuer, path: Path, store: Store, change: dict[str, Any]) -> None:
    """What is set up in part, or over plain http to another machine, is refused at the start."""
    with pytest.raises(OptionError):
        access.check(Settings(store=StoreSection(path=path), web=web(issuer).model_copy(update=change)), store)
