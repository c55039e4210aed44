"""Roles and scopes, and whether people must sign in."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, get_args
from urllib.parse import urlsplit

from triage.base.errors import OptionError
from triage.settings import Settings
from triage.settings.sections import Role, WebSettings
from triage.store import Store

Facts = tuple[tuple[str, str], ...]
Scope = Literal["read", "ingest", "curate", "admin"]
SignInMethod = Literal["local", "token", "session", "proxy"]
# The role at each position has the scope at this position and all before it.
ROLES: tuple[Role, ...] = get_args(Role)
SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who is signed in.

    `name` goes to the audit log; `client_key` tells clients apart for the rate limits, or their address if it is empty.
    `sees` are the facts of jobs whose incidents they see, one of which must hold; None: all incidents.
    """

    name: str
    role: Role
    scopes: frozenset[Scope]
    sign_in_method: SignInMethod
    client_key: str = field(default="")
    groups: tuple[str, ...] = ()
    sees: Facts | None = None

    def has_role(self, role: Role) -> bool:
        """Return whether they have this role or a higher one."""
        return SCOPES[ROLES.index(role)] in self.scopes


def scopes_of(role: Role) -> frozenset[Scope]:
    """Return the scopes of a role."""
    return frozenset(SCOPES[: ROLES.index(role) + 1])


def highest_role(scopes: Iterable[str]) -> Role:
    """Return the highest role whose scopes are all there; `viewer` if there is none."""
    present = set(scopes)
    highest: Role = "viewer"
    for role, scope in zip(ROLES, SCOPES, strict=True):
        if scope not in present:
            break
        highest = role
    return highest


LOCAL = Principal("local", "admin", scopes_of("admin"), "local")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def sign_in_methods(web: WebSettings, store: Store) -> list[str]:
    """Return the names of the ways to sign in that are set up."""
    methods = {
        "tokens": store.tokens.has_valid_token(),
        "OpenID Connect": web.oidc_issuer,
        "a trusted proxy": web.proxy_user and web.trusted_proxies,
    }
    return [name for name, is_set_up in methods.items() if is_set_up]


def is_sign_in_required(settings: Settings, store: Store) -> bool:
    """Return whether people must sign in: not on loopback while no way to sign in is set up."""
    web = settings.web
    return web.sign_in == "required" or not is_loopback(web.host) or bool(sign_in_methods(web, store))


def check_settings(settings: Settings, store: Store) -> None:
    """Raise OptionError for settings that would let strangers in, or are incomplete."""
    web = settings.web
    if web.proxy_user and not web.trusted_proxies:
        raise OptionError(
            "web.proxy_user is set without web.trusted_proxies, so any client could send that header",
            hint="set web.trusted_proxies to the address of the proxy",
        )
    if web.oidc_issuer:
        _check_oidc(web)
    if settings.visibility.has_rules() and not is_sign_in_required(settings, store):
        raise OptionError(
            "[visibility] has rules, but nobody must sign in",
            hint="set up a way to sign in, or set web.sign_in to required",
        )
    if not is_loopback(web.host) and not sign_in_methods(web, store):
        raise OptionError(
            f"other machines can reach {web.host}, but no way to sign in is set up",
            hint="make a token with `triage token create NAME --scope read`, or set up web.oidc_… or web.proxy_…, "
            "or listen on 127.0.0.1",
        )
    for name, source in settings.sources.items():
        if not source.path.is_absolute():
            raise OptionError(
                f"sources.{name}.path is not an absolute directory",
                hint="write an absolute path; relative paths and addresses are refused",
            )


def _check_oidc(web: WebSettings) -> None:
    if not (web.oidc_client_id and web.oidc_client_secret.get_secret_value() and web.public_url):
        raise OptionError(
            "the settings for OpenID Connect are incomplete",
            hint="set web.oidc_client_id, web.oidc_client_secret and web.public_url",
        )
    if not (web.oidc_issuer.startswith("https://") or is_loopback(urlsplit(web.oidc_issuer).hostname or "")):
        raise OptionError("web.oidc_issuer must be an https address", hint="write https://…")
