"""What lives as long as the application: settings, store, catalog, and the secret that signs cookies."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from triage.catalog.load import load
from triage.catalog.model import Catalog
from triage.service import access
from triage.service.counters import Counters
from triage.service.sessions import Sessions
from triage.settings import Settings
from triage.store import Store

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

CATALOG_SECONDS = 30.0


@dataclass(slots=True)
class Service:
    """One a process; may be used by all threads."""

    settings: Settings
    store: Store
    counters: Counters
    started: float = field(default_factory=time.time)
    sign_in: bool = True
    sessions: Sessions = field(init=False)
    error_page: Callable[[Request, int, str, str, str], Response] | None = None
    oidc: Any = None  # Authlib's client, made at its first use
    _catalog: Catalog | None = None
    _loaded: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        web = self.settings.web
        secret = web.secret.get_secret_value().encode() or self.store.beside.secret("cookies")
        self.sessions = Sessions(secret, web.session_hours, web.public_url.startswith("https://"))
        self.sign_in = access.sign_in_needed(self.settings, self.store)

    def catalog(self) -> Catalog:
        """The catalog as it is now: its files are looked at again every half minute."""
        with self._lock:
            now = time.monotonic()
            if self._catalog is None or now - self._loaded > CATALOG_SECONDS:
                found, self._loaded = load(strict=False), now
                self._catalog = (
                    self._catalog if found == self._catalog else found
                )  # what is made of it is kept while it is the same
            return self._catalog
