"""Sign-in with OpenID Connect against a provider on a real socket: valid and forged answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from tests.service.oidc_issuer import CLIENT, SECRET, Issuer, make_key, run_issuer
from triage.base.errors import OptionError
from triage.service import access
from triage.service.app import create_app
from triage.settings import Settings
from triage.settings.sections import StoreSettings, WebSettings
from triage.store import Store

HOME = "http://127.0.0.1:8321"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """A running provider."""
    with run_issuer() as provider:
        yield provider


def oidc_settings(issuer: Issuer, **more: Any) -> WebSettings:
    """Return settings with this provider."""
    return WebSettings(
        oidc_issuer=issuer.url,
        oidc_client_id=CLIENT,
        oidc_client_secret=SecretStr(SECRET),
        public_url=HOME,
        groups={"curators": "curator", "staff": "submitter"},
        **more,
    )


@pytest.fixture
def browser(issuer: Issuer, path: Path, store: Store) -> Iterator[TestClient]:
    """A client of the service."""
    app = create_app(Settings(store=StoreSettings(path=path), web=oidc_settings(issuer)), store)
    with TestClient(app, base_url=HOME, follow_redirects=False) as client:
        yield client


def callback_address(browser: TestClient, next_: str = "/") -> str:
    """Return the address with a code to which the provider sends the browser."""
    answer = browser.get("/auth/oidc", params={"next": next_})
    assert answer.status_code in (302, 303), answer.text
    with httpx.Client(trust_env=False, verify=False) as client:
        return client.get(answer.headers["location"]).headers["location"]


def test_sign_in(browser: TestClient, issuer: Issuer) -> None:
    """ASVS 10.2.1: a valid sign-in sends state, nonce, PKCE and secret, and gets the role of the highest group."""
    answer = browser.get(callback_address(browser, "/inbox"))
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
def test_user_name_and_role(browser: TestClient, issuer: Issuer, person: dict[str, Any], name: str, role: str) -> None:
    """ASVS 10.5.2: an unverified mail address is not used as name, and only configured groups give roles."""
    issuer.person = person
    browser.get(callback_address(browser))
    me = browser.get("/api/v1/me").json()
    assert (me["name"], me["role"]) == (name, role)


def _expire(_: dict[str, Any], claims: dict[str, Any]) -> None:
    claims.update(iat=int(time.time()) - 7200, exp=int(time.time()) - 3600)


FORGERIES: dict[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "no signature": lambda header, _: header.update(alg="none"),
    "signed with the public key": lambda header, _: header.update(alg="HS256"),
    "expired": _expire,
    "for another client": lambda _, claims: claims.update(aud="other"),
    "from another issuer": lambda _, claims: claims.update(iss="https://evil.example"),
    "from another sign-in": lambda _, claims: claims.update(nonce="other"),
    "without a nonce": lambda _, claims: claims.pop("nonce"),
    "without a user": lambda _, claims: [claims.pop(name, None) for name in ("sub", "email")],
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
def test_forged_id_token_is_refused(
    browser: TestClient, issuer: Issuer, forge: Callable[[dict[str, Any], dict[str, Any]], None]
) -> None:
    """ASVS 9.1.1, 9.1.2, 9.2.1, 10.5.1, 10.5.4: signature, algorithm, time, audience, issuer and nonce are checked."""
    issuer.forge = forge
    assert browser.get(callback_address(browser)).status_code == 401
    assert browser.get("/api/v1/me").status_code == 401


def test_token_with_unpublished_key_is_refused(browser: TestClient, issuer: Issuer) -> None:
    """ASVS 9.1.1: a token is refused if the issuer does not publish its key."""
    issuer.key = make_key(1)
    assert browser.get(callback_address(browser)).status_code == 401


def test_answer_is_bound_to_its_browser(browser: TestClient, issuer: Issuer) -> None:
    """ASVS 10.1.2, 10.2.1: answers of another browser, with a wrong state or with a used code are refused."""
    address = callback_address(browser)
    cookies = dict(browser.cookies)
    browser.cookies.clear()
    assert browser.get(address).status_code == 401
    browser.cookies.update(cookies)
    assert browser.get(address.partition("state=")[0] + "state=other").status_code == 401
    assert browser.get(address.partition("&state=")[0]).status_code == 401
    assert browser.get(address).status_code == 303
    browser.cookies.clear()
    browser.cookies.update(cookies)
    assert browser.get(address).status_code == 401


def test_denied_sign_in(browser: TestClient, issuer: Issuer) -> None:
    """A denied sign-in answers 401 with a hint."""
    issuer.deny = True
    answer = browser.get(callback_address(browser))
    assert answer.status_code == 401
    assert answer.json()["error"]["hint"]


def test_issuer_with_another_name_is_refused(browser: TestClient, issuer: Issuer) -> None:
    """ASVS 10.5.3: the issuer's document must have the configured name."""
    issuer.name = "https://evil.example"
    assert browser.get("/auth/oidc").status_code == 503


def test_unreachable_issuer(issuer: Issuer, path: Path, store: Store) -> None:
    """An unreachable issuer answers 503; tokens still work."""
    unreachable = oidc_settings(issuer).model_copy(update={"oidc_issuer": "http://127.0.0.1:9"})
    secret, _ = store.tokens.create("a", ["read"], actor="test")
    with TestClient(
        create_app(Settings(store=StoreSettings(path=path), web=unreachable), store),
        base_url=HOME,
        follow_redirects=False,
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
def test_incomplete_settings_are_refused(issuer: Issuer, path: Path, store: Store, change: dict[str, Any]) -> None:
    """Incomplete settings, or plain http to another machine, are refused at the start."""
    with pytest.raises(OptionError):
        access.check_settings(
            Settings(store=StoreSettings(path=path), web=oidc_settings(issuer).model_copy(update=change)), store
        )
