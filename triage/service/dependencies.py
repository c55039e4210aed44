"""The state of the application, and what endpoints ask FastAPI for: the store, the catalog, the settings, the user.

@router.get("/thing")
def get_thing(store: StoreDep, user: Viewer) -> Response: ...
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request, Response

from triage.base.errors import ReadOnlyStoreError
from triage.catalog.load import load
from triage.catalog.model import Catalog
from triage.service.access import Facts, Principal, is_sign_in_required
from triage.service.errors import ServiceError
from triage.service.log import ResponseCounts
from triage.service.sessions import SessionCookies
from triage.service.store_condition import StoreCondition
from triage.service.store_version import StoreVersion
from triage.service.visibility import rules_digest
from triage.settings import Settings
from triage.settings.sections import Role
from triage.store import Store

CATALOG_SECONDS = 30.0
MOST_PARTS = 200  # readers of a part of the store whose caches are kept


@dataclass(slots=True)
class ServiceState:
    """What lives as long as the application, one per process. All threads may use it."""

    settings: Settings
    store: Store
    response_counts: ResponseCounts
    condition: StoreCondition = field(default_factory=StoreCondition)
    started: float = field(default_factory=time.time)
    is_sign_in_required: bool = field(init=False)
    session_cookies: SessionCookies = field(init=False)
    version: StoreVersion = field(init=False)
    # (request, status, code, message, hint) -> the page for a browser; None: JSON for everybody.
    error_page: Callable[[Request, int, str, str, str], Response] | None = None
    oidc_client: Any = None  # Authlib's client, made on first use
    ended_sessions: set[str] = field(default_factory=set)  # of a read-only store, which cannot remember them
    _catalog: Catalog | None = None
    _catalog_loaded_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _visible: OrderedDict[tuple[Facts, str], Store] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.version = StoreVersion(self.store.connections)
        web = self.settings.web
        secret = web.secret.get_secret_value().encode() or cookie_secret(self.store)
        rules = rules_digest(self.settings.visibility)
        self.session_cookies = SessionCookies(secret, web.session_hours, web.public_url.startswith("https://"), rules)
        self.is_sign_in_required = is_sign_in_required(self.settings, self.store)

    def store_for(self, user: Principal | None) -> Store:
        """Return the store with what somebody sees: all of it, or the part of their facts."""
        if user is None or user.sees is None:
            return self.store
        key = user.sees, user.name
        with self._lock:
            part = self._visible.get(key)
        if part is None:
            part = self.store.visible_to(*key)
        with self._lock:
            part = self._visible.setdefault(key, part)
            self._visible.move_to_end(key)
            while len(self._visible) > MOST_PARTS:
                self._visible.popitem(last=False)
        return part

    def catalog(self) -> Catalog:
        """Return the catalog. Its files are read again every half minute."""
        with self._lock:
            now = time.monotonic()
            if self._catalog is None or now - self._catalog_loaded_at > CATALOG_SECONDS:
                catalog, self._catalog_loaded_at = load(strict=False), now
                if catalog != self._catalog:  # caches depend on the identity of the object
                    self._catalog = catalog
            assert self._catalog is not None
            return self._catalog


def cookie_secret(store: Store) -> bytes:
    """Return the key of the session cookies; one for this run if a read-only store has none."""
    try:
        return store.service_data.get_secret("cookies")
    except ReadOnlyStoreError:
        return secrets.token_bytes(32)


def get_state(request: Request) -> ServiceState:
    """Return the state of the application."""
    state: ServiceState = request.app.state.service
    return state


def get_store(request: Request) -> Store:
    """Return the open store with what the user sees; each thread has its own connection."""
    return get_state(request).store_for(get_user(request))


def get_catalog(request: Request) -> Catalog:
    """Return the current catalog."""
    return get_state(request).catalog()


def get_settings(request: Request) -> Settings:
    """Return the settings of this process."""
    return get_state(request).settings


def get_user(request: Request) -> Principal | None:
    """Return who is signed in, or None."""
    user: Principal | None = request.scope.get("triage.principal")
    return user


class Require:
    """A dependency that returns the signed-in user, or refuses with 401 or 403 below the given role."""

    def __init__(self, role: Role) -> None:
        self.role = role

    def __call__(self, request: Request) -> Principal:
        user = get_user(request)
        if user is None:
            raise ServiceError(401, "you are not signed in", headers={"WWW-Authenticate": 'Bearer realm="triage"'})
        if not user.has_role(self.role):
            raise ServiceError(403, f"this needs the role {self.role}; {user.name} has the role {user.role}")
        return user


StateDep = Annotated[ServiceState, Depends(get_state)]
StoreDep = Annotated[Store, Depends(get_store)]
CatalogDep = Annotated[Catalog, Depends(get_catalog)]
SettingsDep = Annotated[Settings, Depends(get_settings)]
Viewer = Annotated[Principal, Depends(Require("viewer"))]
Submitter = Annotated[Principal, Depends(Require("submitter"))]
Curator = Annotated[Principal, Depends(Require("curator"))]
Admin = Annotated[Principal, Depends(Require("admin"))]
