"""`[web]`: what `triage serve` listens to and who may come in."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from triage.settings.section import Section

Role = Literal["viewer", "submitter", "curator", "admin"]


class Web(Section):
    """Sign-in is by tokens (`triage token create`), by OpenID Connect (`oidc_…`) or by a proxy's header (`proxy_…`)."""

    model_config = SettingsConfigDict(env_prefix="TRIAGE_WEB_")

    host: str = Field(default="127.0.0.1", description="address to listen to")
    port: int = Field(default=8321, ge=0, le=65_535, description="port; 0 takes a free one")
    processes: int = Field(default=1, ge=1, le=64, description="processes that answer requests")
    public_url: str = Field(
        default="", description="address that people use, such as https://triage.example.org; for links and for sign-in"
    )
    hosts: tuple[str, ...] = Field(
        default=(), description="names by which it may be called besides loopback's and public_url's; * for any"
    )
    sign_in: Literal["auto", "required"] = Field(
        default="auto", description="auto: needed unless on loopback with no way to sign in set up"
    )
    secret: SecretStr = Field(
        default=SecretStr(""), description="signs session cookies; not set: made once and kept in the store"
    )
    session_hours: float = Field(default=12.0, gt=0, le=720, description="how long a sign-in lasts")
    requests_a_minute: int = Field(
        default=1200, ge=1, description="requests of one client (token, session or address) a minute"
    )
    changes_a_minute: int = Field(
        default=120, ge=1, description="requests that change something, of one client a minute"
    )
    body_bytes: int = Field(default=1 << 20, ge=1024, description="size of a request that is no upload")
    slow_seconds: float = Field(
        default=20.0, gt=0, le=600, description="a client that sends nothing for so long is cut off"
    )
    connections: int = Field(default=1000, ge=1, description="connections at once, of one process")
    log_requests: bool = Field(default=True, description="a line in the log for each request")
    trusted_proxies: tuple[str, ...] = Field(default=(), description="addresses or networks of the reverse proxy")
    proxy_user: str = Field(default="", description="header in which a trusted proxy names who signed in; empty: none")
    proxy_role: str = Field(default="", description="header in which it gives a role or group; empty: default_role")
    default_role: Role = Field(
        default="viewer", description="role of who signs in by OpenID Connect or a proxy without a known group"
    )
    groups: dict[str, Role] = Field(default_factory=dict, description="roles by group")
    oidc_issuer: str = Field(default="", description="OpenID Connect issuer; empty: none")
    oidc_client_id: str = Field(default="", description="client id there")
    oidc_client_secret: SecretStr = Field(default=SecretStr(""), description="client secret there")
    oidc_scopes: str = Field(default="openid profile email", description="scopes to ask for")
    oidc_groups_claim: str = Field(default="groups", description="claim that lists groups")
