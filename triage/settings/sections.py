"""The sections for the store, the catalog, `triage serve` and its workers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from triage.store.location import without_password

Role = Literal["viewer", "submitter", "curator", "admin"]
MIB = 1 << 20


class Section(BaseSettings):
    """One section `[name]` of the file; unknown names are errors.

    The variable TRIAGE_NAME_FIELD sets a field from the environment.
    """

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class StoreSettings(Section):
    """`[store]`: the database of incidents."""

    model_config = SettingsConfigDict(env_prefix="TRIAGE_STORE_")

    path: Annotated[str, BeforeValidator(os.fspath), PlainSerializer(without_password)] | None = Field(
        default=None,
        description="file of the store, or the address of a PostgreSQL database (postgresql://…), also set by "
        "TRIAGE_STORE; default: a file in the user's data directory",
    )
    check_seconds: float = Field(
        default=60.0,
        ge=0,
        le=3600,
        description="longest check of the store's pages, at the start of `triage serve` and after a process died; "
        "0: none",
    )


class CatalogSettings(Section):
    """`[catalog]`: signatures of your own, from `catalogs = [...]` at the top of the file and from TRIAGE_CATALOG."""

    model_config = SettingsConfigDict(env_prefix="TRIAGE_CATALOG_")

    directories: tuple[Path, ...] = Field(
        default=(), description="directories with your own signatures; set by `catalogs = [...]` at the top of the file"
    )


class WebSettings(Section):
    """`[web]`: where `triage serve` listens and who may sign in.

    People sign in with tokens (`triage token create`), OpenID Connect (`oidc_…`) or a reverse proxy (`proxy_…`).
    """

    model_config = SettingsConfigDict(env_prefix="TRIAGE_WEB_")

    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=8321, ge=0, le=65_535, description="port to listen on; 0: any free port")
    processes: int = Field(default=1, ge=1, le=64, description="number of processes that answer requests")
    public_url: str = Field(
        default="", description="address that people use, such as https://triage.example.org; for links and sign-in"
    )
    hosts: tuple[str, ...] = Field(
        default=(), description="more host names that requests may use, besides loopback and public_url; *: any"
    )
    sign_in: Literal["auto", "required"] = Field(
        default="auto", description="auto: people on this machine need no sign-in until a way to sign in is set up"
    )
    secret: SecretStr = Field(
        default=SecretStr(""), description="key that signs session cookies; default: a key that the store keeps"
    )
    session_hours: float = Field(default=12.0, gt=0, le=720, description="hours until a session ends")
    requests_a_minute: int = Field(
        default=1200, ge=1, description="requests per minute of one client (token, session or address)"
    )
    changes_a_minute: int = Field(default=120, ge=1, description="changing requests per minute of one client")
    body_bytes: int = Field(default=1 << 20, ge=1024, description="largest request body, except for uploads")
    slow_seconds: float = Field(
        default=20.0,
        gt=0,
        le=600,
        description="longest time for the headers of a request, pause in its body, and wait for a client that reads "
        "nothing",
    )
    connections: int = Field(default=1000, ge=2, description="open connections per process")
    client_connections: int = Field(
        default=200, ge=1, description="open connections per process from one address, except trusted proxies"
    )
    log_requests: bool = Field(default=True, description="log each request")
    trusted_proxies: tuple[str, ...] = Field(default=(), description="addresses or networks of the reverse proxy")
    proxy_user: str = Field(default="", description="header in which a trusted proxy sends the user; empty: none")
    proxy_role: str = Field(
        default="", description="header in which a trusted proxy sends roles or groups; empty: default_role"
    )
    default_role: Role = Field(
        default="viewer", description="role of people from OpenID Connect or a proxy who are in no known group"
    )
    groups: dict[str, Role] = Field(default_factory=dict, description="role of each group")
    oidc_issuer: str = Field(default="", description="OpenID Connect issuer; empty: none")
    oidc_client_id: str = Field(default="", description="OpenID Connect client id")
    oidc_client_secret: SecretStr = Field(default=SecretStr(""), description="OpenID Connect client secret")
    oidc_scopes: str = Field(default="openid profile email", description="OpenID Connect scopes to request")
    oidc_groups_claim: str = Field(default="groups", description="OpenID Connect claim that lists groups")


class TaskSettings(Section):
    """`[tasks]`: the workers that analyse uploads, and the limits of one task. Sizes in bytes, times in seconds."""

    model_config = SettingsConfigDict(env_prefix="TRIAGE_TASKS_")

    workers: int = Field(
        default=1, ge=0, le=64, description="number of worker processes; 0: another `triage serve` does the tasks"
    )
    memory: int = Field(default=4096 * MIB, ge=256 * MIB, description="memory limit of one task (address space)")
    seconds: float = Field(default=900.0, gt=0, le=86_400, description="time limit of one task")
    attempts: int = Field(default=3, ge=1, le=10, description="attempts per task when its worker dies")
    stale: float = Field(
        default=15.0, ge=1, le=600, description="a task without a heartbeat for so long is given to another worker"
    )
    nice: int = Field(default=10, ge=0, le=19, description="niceness of the workers")
    scan_threads: int = Field(default=1, ge=1, le=64, description="scan threads per task")
    uploads: Path | None = Field(default=None, description="directory of uploads; default: `uploads` next to the store")
    upload_bytes: int = Field(default=2048 * MIB, ge=1, description="largest upload")
    upload_files: int = Field(default=100, ge=1, le=10_000, description="most files in one upload")
    open_uploads: int = Field(default=64, ge=1, description="uploads in progress")
    client_open_uploads: int = Field(
        default=16, ge=1, description="uploads in progress of one client (token, session or address)"
    )
    open_bytes: int = Field(
        default=32 << 30, ge=1, description="bytes that incomplete uploads declare together, also interrupted ones"
    )
    client_open_bytes: int = Field(default=8 << 30, ge=1, description="the same for one client")
    partial_hours: float = Field(
        default=24.0, gt=0, le=24 * 30, description="hours until an interrupted upload is deleted"
    )
    keep_days: float = Field(default=7.0, ge=0, description="days until an upload is deleted")
    disk_free: int = Field(default=512 * MIB, ge=0, description="uploads are refused below this much free disk space")
    waiting: int = Field(default=200, ge=1, description="uploads are refused while this many tasks wait")


class RetentionRule(BaseModel):
    """`[[retention.rules]]`: how long incidents with one value of a fact stay."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fact: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*=.+$", description="the fact as NAME=VALUE, as team=vision")
    days: float = Field(gt=0, le=36_500, description="days since the ingest after which they are deleted")


class RetentionSettings(Section):
    """`[retention]`: how long incidents stay. Workers delete older ones once an hour; those with feedback stay."""

    model_config = SettingsConfigDict(env_prefix="TRIAGE_RETENTION_")

    days: float = Field(
        default=0.0, ge=0, le=36_500, description="days since the ingest after which incidents are deleted; 0: never"
    )
    rules: tuple[RetentionRule, ...] = Field(
        default=(), description="other times for incidents with a fact; `days` is for those that no rule names"
    )


FACT = r"^(?:\*|[A-Za-z][A-Za-z0-9_.-]*=.+)$"
Facts = tuple[Annotated[str, Field(pattern=FACT)], ...]


class VisibilitySettings(Section):
    """`[visibility]`: who sees which incidents, by facts of their jobs (NAME=VALUE, as team=vision; *: all incidents).

    A person sees what any of their rules allows. Without this section, everybody sees all incidents.
    """

    model_config = SettingsConfigDict(env_prefix="TRIAGE_VISIBILITY_")

    users: dict[str, Facts] = Field(
        default_factory=dict, description="what people from OpenID Connect or a proxy see, by name"
    )
    groups: dict[str, Facts] = Field(default_factory=dict, description="what the members of a group see")
    tokens: dict[str, Facts] = Field(default_factory=dict, description="what a token sees, by its name")
    roles: dict[Role, Facts] = Field(default={"admin": ("*",)}, description="what everybody with a role sees")
    others: Facts = Field(default=(), description="what those see for whom there is no rule; nothing by default")

    def has_rules(self) -> bool:
        """Return whether anybody sees only a part of the incidents."""
        return self != VisibilitySettings.model_construct()


class Source(BaseModel):
    """`[sources.NAME]`: a server directory from which clients ingest jobs by name, never by path.

    The directory holds one directory or archive per job; with `one` it is itself one job.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Path = Field(description="absolute directory on the server")
    one: bool = Field(default=False, description="true: the directory is one job; false: each entry in it is a job")
    label: str = Field(default="job", description="alert label that holds the name of the entry")
