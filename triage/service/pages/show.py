"""From data to a page or, where the address ends in `.json`, to the same data as JSON.

Every text that a template prints passes `safe`, which takes control characters and bidirectional marks out, and then
the autoescape.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

import triage
from triage.base.lazy_re import lazy_re
from triage.render import words
from triage.render.safe import safe
from triage.render.table import day, iso
from triage.service import deps
from triage.service.api.answers import Json
from triage.service.pages import plain
from triage.service.pages.freshness import freshness

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

TEMPLATES = Path(__file__).parents[1] / "templates"
THEMES = ("light", "dark")
# What a page says after something was done: the address carries the key only, so that nobody can put words into our
# mouth.
SAID: Mapping[str, str] = {
    "agreed": "Thank you: it is noted that this diagnosis is right.",
    "wrong": "Thank you: it is noted that this diagnosis is wrong.",
    "merged": "They are one cluster now. The audit log can take it back.",
    "split": "These fingerprints are a cluster of their own now.",
    "named": "The name is kept.",
    "ignored": "It is out of the inbox; it is still counted.",
    "reopened": "It is back in the inbox.",
    "promoted": "It is noted which signature was made of it.",
    "apart": "Nobody will suggest again that these two are one.",
    "undone": "It is taken back.",
    "cancelled": "The task is cancelled.",
    "signed-in": "You are signed in.",
    "signed-out": "You are signed out.",
}
SLOT = lazy_re(r"\{([a-z]\w*)\}")
# Address, name, access key of the main pages, in the order of the bar.
NAV: tuple[tuple[str, str, str], ...] = (
    ("/incidents", "Incidents", "i"),
    ("/inbox", "Inbox", "b"),
    ("/search", "Search", "s"),
    ("/upload", "Upload", "u"),
    ("/signatures", "Signatures", "g"),
    ("/stats", "Stats", "t"),
    ("/audit", "Audit", "a"),
    ("/status", "Status", "h"),
)


def page(
    request: Request, template: str, view: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """The view as HTML, or as JSON when the address asks for it."""
    if request.url.path.endswith(".json"):
        return Json(plain.plain(view), status_code=status, headers=dict(headers or {}))
    text = environment().get_template(template).render(view=view, **_common(request))
    return HTMLResponse(text, status_code=status, headers=dict(headers or {}))


def both(router: APIRouter, path: str) -> Callable[[Callable[..., Response]], Callable[..., Response]]:
    """A page and its `.json`, which comes first so that an id does not swallow it."""

    def add(endpoint: Callable[..., Response]) -> Callable[..., Response]:
        router.get(path + ".json")(endpoint)
        return router.get(path)(endpoint)

    return add


def _common(request: Request) -> dict[str, Any]:
    theme = request.cookies.get("theme", "")
    query = dict(request.query_params)
    return {
        "who": deps.principal(request),
        "here": request.url.path,
        "query": query,
        "nav": NAV,
        "theme": theme if theme in THEMES else "",
        "said": SAID.get(query.get("said", ""), ""),
        "fresh": freshness(deps.service(request)),
        "version": triage.__version__,
        "json_address": _json_address(request),
    }


def _json_address(request: Request) -> str:
    asked = urlencode([(name, value) for name, value in request.query_params.multi_items() if name != "said"])
    return quote(request.url.path) + ".json" + (f"?{asked}" if asked else "")


@cache
def environment() -> Environment:
    """Jinja with autoescape; nothing of what is printed can steer a terminal or reorder the text of the page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def final(value: Any) -> Any:
        return safe(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=final,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        day=day,
        iso=iso,
        ago=ago,
        ranks=words.ranks,
        plural=words.plural,
        size=words.size,
        confidence=words.confidence,
        number=number,
    )
    made.filters.update(told=told, slots=slots)
    made.globals.update(with_query=with_query, picture=Markup)
    return made


def ago(seconds: float | None) -> str:
    """`3 minutes ago`, for people; the exact time stands beside it."""
    if not seconds:
        return "never"
    past = time.time() - seconds
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if past >= size:
            return f"{words.plural(int(past // size), unit)} ago"
    return "just now"


def number(value: int) -> str:
    """`12,345`."""
    return f"{value:,}"


def slots(text: str) -> Markup:
    """`{host}` in the advice of a signature: the names of what the log fills in are told from the words around them."""
    from markupsafe import Markup

    words = SLOT.split(safe(text))
    return Markup("").join(
        Markup("<var>{}</var>").format(word.replace("_", " ")) if place % 2 else word
        for place, word in enumerate(words)
    )


def told(value: Any) -> str:
    """A detail of the audit log: texts, numbers, lists and objects in words."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {told(part)}" for name, part in value.items())
    return ", ".join(map(told, value)) if isinstance(value, (list, tuple)) else str(value)


def with_query(query: Mapping[str, str], **changes: str | None) -> str:
    """The query of an address with these changes; a page's place in a list and its message do not outlive a change."""
    kept = {name: value for name, value in query.items() if name not in ("after", "said") and value != ""}
    kept.update({name: value for name, value in changes.items() if value is not None})
    for name in [name for name, value in changes.items() if value is None]:
        kept.pop(name, None)
    return "?" + urlencode(kept)
