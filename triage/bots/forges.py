"""One comment on a pull request of GitHub or a merge request of GitLab, found again by its marker and edited in place.

A comment counts as ours when it begins with the marker and may be edited by us: what others quote or copy is left
alone. Every try looks
first, so that a try whose answer was lost does no harm.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from triage.bots.http import Answer, call
from triage.bots.interface import Later, Undelivered

PAGES = 50
TRIES = 5
LONGEST = 60.0


@dataclass(frozen=True, slots=True)
class Forge:
    """How one service names things: where comments are listed and made, where one is, how it is edited."""

    name: str
    listed: str
    one: str
    edit: str
    headers: Mapping[str, str]


def github(api: str, token: str, repository: str, number: int) -> Forge:
    """Issue comments of GitHub's REST API; a pull request is an issue there."""
    base = f"{api.rstrip('/')}/repos/{repository}/issues"
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    return Forge("GitHub", f"{base}/{number}/comments", f"{base}/comments", "PATCH", headers)


def gitlab(api: str, token: str, project: str, number: int) -> Forge:
    """Notes on a merge request; `project` is its number or its path."""
    base = f"{api.rstrip('/')}/projects/{quote(project, safe='%')}/merge_requests/{number}/notes"
    return Forge("GitLab", base, base, "PUT", {"PRIVATE-TOKEN": token})


def comment(forge: Forge, marker: str, body: str, *, only_edit: bool = False, timeout: float = 20.0) -> str:
    """Make or edit the comment; its address or number, empty when there was nothing to edit. Raises Later or
    Undelivered.
    """
    for number in _ours(forge, marker, timeout):
        answer = _call(forge, forge.edit, f"{forge.one}/{number}", body, timeout)
        if answer.status in (403, 404):  # another bot's, or deleted meanwhile
            continue
        return _named(forge, answer)
    return "" if only_edit else _named(forge, _call(forge, "POST", forge.listed, body, timeout))


def patiently(act: Callable[[], str], *, tries: int = TRIES, sleep: Callable[[float], None] | None = None) -> str:
    """Try again what may pass, for CI has no outbox: waits as long as the other side says, or 1, 2, 4 … seconds."""
    for attempt in range(tries):
        try:
            return act()
        except Later as error:
            if attempt == tries - 1 or (error.wait or 0) > LONGEST:
                raise
            (sleep or time.sleep)(error.wait if error.wait is not None else 2.0**attempt)
    raise AssertionError("unreachable")


def _ours(forge: Forge, marker: str, timeout: float) -> Iterator[int]:
    for page in range(1, PAGES + 1):
        answer = call("GET", f"{forge.listed}?per_page=100&page={page}", headers=forge.headers, timeout=timeout)
        _check(forge, answer)
        found: Any = answer.json()
        if not isinstance(found, list):
            raise Later("the answer is no list of comments")
        yield from [int(item["id"]) for item in found if str(item.get("body", "")).startswith(marker)]
        if len(found) < 100:
            return


def _call(forge: Forge, method: str, url: str, body: str, timeout: float) -> Answer:
    headers = {**forge.headers, "Content-Type": "application/json"}
    return call(method, url, headers=headers, body=json.dumps({"body": body}).encode(), timeout=timeout)


def _named(forge: Forge, answer: Answer) -> str:
    _check(forge, answer)
    made = answer.json()
    return str(made.get("html_url") or made.get("id") or "") if isinstance(made, dict) else ""


def _check(forge: Forge, answer: Answer) -> None:
    if 200 <= answer.status < 300:
        return
    hints = {
        401: "the token is wrong or has expired",
        403: "the token may not write comments: `permissions: pull-requests: write` in the workflow, or scope `api` on GitLab",
        404: "there is no such pull request, or the token may not see it",
    }
    hint = hints.get(answer.status, "look at what it says")
    raise Undelivered(
        f"{forge.name} answered {answer.status}: {answer.body[:200].decode('utf-8', 'replace')}", hint=hint
    )
