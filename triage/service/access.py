"""Whether people must sign in, and that a service which others can reach never starts without."""

from __future__ import annotations

import ipaddress

from triage.base.errors import OptionError
from triage.settings import Settings
from triage.settings.web import Web
from triage.store import Store


def loopback(host: str) -> bool:
    """Is it an address that only this machine can reach?"""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def ways(web: Web, store: Store) -> list[str]:
    """The ways to sign in that are set up."""
    found = ["tokens"] if store.tokens.any_alive() else []
    found += ["OpenID Connect"] if web.oidc_issuer else []
    return [*found, *(["a trusted proxy"] if web.proxy_user and web.trusted_proxies else [])]


def sign_in_needed(settings: Settings, store: Store) -> bool:
    """Must people sign in? Not on loopback while nothing to sign in with is set up."""
    return settings.web.sign_in == "required" or not loopback(settings.web.host) or bool(ways(settings.web, store))


def check(settings: Settings, store: Store) -> None:
    """Raises OptionError for settings with which it must not start."""
    web = settings.web
    if web.proxy_user and not web.trusted_proxies:
        raise OptionError(
            "web.proxy_user is set, and anybody could send that header",
            hint="set web.trusted_proxies to the proxy's address",
        )
    if web.oidc_issuer and not (web.oidc_client_id and web.oidc_client_secret.get_secret_value() and web.public_url):
        hint = "set web.oidc_client_id, web.oidc_client_secret and web.public_url"
        raise OptionError("sign-in by OpenID Connect is only half set up", hint=hint)
    if web.oidc_issuer and not (web.oidc_issuer.startswith("https://") or _local_address(web.oidc_issuer)):
        raise OptionError("web.oidc_issuer must be an https address", hint="write https://…")
    if not loopback(web.host) and not ways(web, store):
        hint = "`triage token create NAME --scope read` makes a token; or set up web.oidc_… or web.proxy_…; or listen on 127.0.0.1"
        raise OptionError(f"{web.host} can be reached by others, and nobody would have to sign in", hint=hint)
    for name, source in settings.sources.items():
        if not source.path.is_absolute():
            raise OptionError(
                f"sources.{name}.path is not an absolute directory", hint="addresses and relative paths are not taken"
            )


def _local_address(url: str) -> bool:
    from urllib.parse import urlsplit

    return loopback(urlsplit(url).hostname or "")
