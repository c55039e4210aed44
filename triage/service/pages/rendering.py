"""Render a view as a page or, where the address ends in `.json`, as JSON.

Jinja escapes every text of a template; before that, `sanitize` removes control characters and bidirectional marks.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from fastapi import APIRouter, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response

import triage
from triage.base.errors import StoreError
from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.model import AuditEntry, Cluster, Diagnosis, Incident
from triage.model.store import Cause
from triage.render import causes, clusters, incidents, json, phrases
from triage.render.sanitize import sanitize
from triage.render.table import day, iso
from triage.service.access import Facts, Principal
from triage.service.api.responses import JsonResponse
from triage.service.dependencies import ServiceState, get_state, get_user
from triage.service.store_condition import NOTICES as NOTICES_OF_STORE

TEMPLATES = Path(__file__).parents[1] / "templates"
THEMES = ("light", "dark")
NOTICE_PARAMETER = "said"
# What a page shows after an action. The address holds the key only, so that nobody can write our notices.
NOTICES: Mapping[str, str] = {
    "agreed": "Feedback saved: this diagnosis is right.",
    "wrong": "Feedback saved: this diagnosis is wrong.",
    "merged": "Clusters merged. You can undo this in the audit log.",
    "split": "Fingerprints moved to a new cluster.",
    "named": "Name saved.",
    "ignored": "Cluster removed from the inbox. It is still counted.",
    "reopened": "Cluster moved back to the inbox.",
    "promoted": "Cluster marked as promoted.",
    "apart": "Saved: these two clusters are different. Merging them is not suggested again.",
    "undone": "Undone.",
    "cancelled": "Task cancelled.",
    "worked": "Saved. The audit log has the change.",
    "commented": "Comment saved.",
    "saved": "View saved.",
    "deleted": "View deleted.",
    "incident-deleted": "Incident deleted. The audit log has who, when and why.",
    "subscribed": "Subscribed: failures are posted from now on.",
    "unsubscribed": "Subscription ended.",
}
_PLAIN_WORD = lazy_re(r"[a-z]+[ ,]")
PLACEHOLDER = lazy_re(r"\{([a-z]\w*)\}")
# Address, name and access key of the main pages, in the order of the navigation bar.
NAVIGATION: tuple[tuple[str, str, str], ...] = (
    ("/causes", "Causes", "c"),
    ("/incidents", "Incidents", "i"),
    ("/inbox", "Inbox", "b"),
    ("/search", "Search", "s"),
    ("/upload", "Upload", "u"),
    ("/signatures", "Signatures", "g"),
    ("/stats", "Stats", "t"),
    ("/audit", "Audit", "a"),
    ("/status", "Status", "h"),
)
TIME_FIELDS = frozenset(
    [
        *("at", "stored_at", "seen_at", "created_at", "started_at", "ended_at", "used_at", "first", "last"),
        *("ingested_at", "late_since"),
    ]
)
# Drawings, and what reasoning alone uses of evidence.
OMITTED_FIELDS = frozenset({"pictures", "detail", "inherits_time", "rank_basis"})
# The names in JSON of fields that are called otherwise here.
JSON_NAMES = {"feedback_notes": "said", "diagnosed": "said"}
FRESHNESS_SECONDS = 5.0
_freshness_lock = threading.Lock()
_freshness_cache: dict[tuple[str, Facts | None], tuple[float, Freshness]] = {}


def render_page(request: Request, template: str, view: Any, *, status: int = 200) -> Response:
    """Return the view as HTML, or as JSON if the address asks for it."""
    if request.url.path.endswith(".json"):
        return JsonResponse(to_json(view), status_code=status)
    html = environment().get_template(template).render(view=view, **_common_variables(request))
    return HTMLResponse(html, status_code=status)


def page_and_json(router: APIRouter, path: str) -> Callable[[Callable[..., Response]], Callable[..., Response]]:
    """Add an endpoint for a page and its `.json`; that comes first, so that it is not taken for an id."""

    def add(endpoint: Callable[..., Response]) -> Callable[..., Response]:
        router.get(path + ".json")(endpoint)
        return router.get(path)(endpoint)

    return add


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """The page of an error. `back` is the page with the form that was refused, or empty."""

    status: int
    code: str
    message: str
    hint: str
    back: str


def error_page(request: Request, status: int, code: str, message: str, hint: str) -> Response:
    """Return the page of an error; who is not signed in goes to the sign-in page, and back afterwards."""
    if status == 401 and request.method in ("GET", "HEAD") and request.url.path != "/sign-in":
        address = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/sign-in?next={quote(address, safe='')}", 303)
    problem = Problem(status, code, message, hint, _find_form(request))
    return render_page(request, "problem.html", problem, status=status)


def _find_form(request: Request) -> str:
    """Return the path of the page whose form was sent, as the browser says; empty if none of this site was."""
    referrer = urlsplit(request.headers.get("referer", ""))
    if request.method != "POST" or referrer.netloc != request.url.netloc:
        return ""
    return local_path(urlunsplit(("", "", referrer.path, referrer.query, "")))


def redirect_with_notice(path: str, notice: str, fragment: str = "") -> Response:
    """Go to a page that shows one of NOTICES."""
    mark = "&" if "?" in path else "?"
    return RedirectResponse(f"{path}{mark}{NOTICE_PARAMETER}={notice}{fragment}", 303)


def local_path(address: str) -> str:
    """Return the address if it is a path of this site, else `/`: no redirect leads to another site."""
    is_path = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if is_path and address.isprintable() and len(address) <= 2000 else "/"


def to_json(value: Any, name: str = "") -> Any:
    """Return what `json.dumps` accepts: dataclasses as objects, times as ISO 8601, texts unchanged."""
    if isinstance(value, float):
        return iso(value) if name in TIME_FIELDS else value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int, bool)):
        return value
    if isinstance(value, Incident):
        return incidents.as_dict(value)
    if isinstance(value, Cause):
        return causes.as_dict(value)
    if isinstance(value, Cluster):
        return clusters.as_dict(value)
    if isinstance(value, AuditEntry):
        return clusters.entry_as_dict(value)
    if isinstance(value, Diagnosis):
        return json.document(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.name not in OMITTED_FIELDS]
        return {JSON_NAMES.get(name, name): to_json(getattr(value, name), name) for name in names}
    if isinstance(value, Mapping):
        return {str(key): to_json(item, str(key)) for key, item in value.items()}
    return [to_json(item) for item in value]


@dataclasses.dataclass(frozen=True, slots=True)
class Freshness:
    """What the foot of each page shows. `ingested_at` is the time of the last ingest, 0 for never."""

    ingested_at: float
    incidents: int
    catalog: str
    signatures: int


def _freshness(state: ServiceState, user: Principal | None) -> Freshness:
    """Return what the foot shows, from the store at most every few seconds."""
    store, now = state.store_for(user), time.monotonic()
    key = str(store.connections.location), user.sees if user is not None else None
    with _freshness_lock:
        cached = _freshness_cache.get(key)
    if cached is not None and now - cached[0] < FRESHNESS_SECONDS:
        return cached[1]
    try:
        ingested_at, count = store.search.get_latest()
    except StoreError:  # the page says more about it; its foot may be old
        return cached[1] if cached is not None else Freshness(0.0, 0, "", 0)
    catalog = state.catalog()
    freshness = Freshness(ingested_at, count, catalog.version, len(catalog.signatures))
    with _freshness_lock:
        _freshness_cache[key] = now, freshness
    return freshness


def _common_variables(request: Request) -> dict[str, Any]:
    theme = request.cookies.get("theme", "")
    query = {name: value for name, value in request.query_params.items() if name != NOTICE_PARAMETER}
    pairs = [(name, value) for name, value in request.query_params.multi_items() if name != NOTICE_PARAMETER]
    return {
        "user": get_user(request),
        "path": request.url.path,
        "query": query,
        "navigation": NAVIGATION,
        "theme": theme if theme in THEMES else "",
        "notice": NOTICES.get(request.query_params.get(NOTICE_PARAMETER, ""), ""),
        "fresh": _freshness(get_state(request), get_user(request)),
        "store_notice": NOTICES_OF_STORE[get_state(request).condition.get()],
        "version": triage.__version__,
        "json_address": quote(request.url.path) + ".json" + (f"?{urlencode(pairs)}" if pairs else ""),
    }


def load_templates() -> None:
    """Compile all templates: half a second that the first readers of a node that just started would wait for."""
    for name in environment().list_templates():
        environment().get_template(name)


@cache
def environment() -> Environment:
    """Return Jinja's environment, which escapes all texts and removes control characters from them."""

    def finalize(value: Any) -> Any:
        return sanitize(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    jinja = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.filters.update(
        day=day,
        iso=iso,
        ago=format_age,
        ranks=lambda ranks: format_ranks(ranks) if ranks else "",
        plural=phrases.format_count,
        size=phrases.format_bytes,
        confidence=phrases.format_confidence,
        number=format_number,
        audit_detail=format_audit_detail,
        placeholders=mark_placeholders,
        sentence=format_sentence,
    )
    jinja.globals.update(with_query=with_query, picture=Markup)
    return jinja


def format_age(seconds: float | None) -> str:
    """Return a time as `3 minutes ago`."""
    if not seconds:
        return "never"
    age = time.time() - seconds
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if age >= size:
            return f"{phrases.format_count(int(age // size), unit)} ago"
    return "just now"


def format_number(value: int) -> str:
    """Return a number as `12,345`."""
    return f"{value:,}"


def mark_placeholders(text: str) -> Markup:
    """Return the advice of a signature with each placeholder, such as `{host}`, marked as a variable."""
    return Markup("").join(
        Markup("<var>{}</var>").format(part.replace("_", " ")) if index % 2 else part
        for index, part in enumerate(PLACEHOLDER.split(sanitize(text)))
    )


def format_sentence(text: str) -> Markup:
    """Return a message as a sentence begins, with what stands between backticks as code."""
    if _PLAIN_WORD.match(text):
        text = text[0].upper() + text[1:]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else part
        for index, part in enumerate(sanitize(text).split("`"))
    )


def format_audit_detail(value: Any) -> str:
    """Return a detail of the audit log as text: lists and objects with commas."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {format_audit_detail(part)}" for name, part in value.items())
    return ", ".join(map(format_audit_detail, value)) if isinstance(value, (list, tuple)) else str(value)


def with_query(query: Mapping[str, str], **changes: str | None) -> str:
    """Return the query string with changes (None removes a name), without the cursor and the notice of the old page."""
    hidden = ("after", NOTICE_PARAMETER)
    pairs = {name: value for name, value in query.items() if name not in hidden and value != ""}
    return "?" + urlencode({name: value for name, value in {**pairs, **changes}.items() if value is not None})
