"""Keep one comment on a pull request (GitHub) or merge request (GitLab), found by its marker and edited in place.

A comment is ours if it begins with the marker and we may edit it; comments that quote it stay untouched. Every try
looks for the comment first, so that a try whose response was lost does no harm.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from triage.bots.http import Response, send_request
from triage.bots.interface import RetryLater, Undelivered

MAX_PAGES = 50
MAX_TRIES = 5
MAX_WAIT = 60.0


@dataclass(frozen=True, slots=True)
class Forge:
    """The addresses of one service: `list_url` lists and creates comments, `comment_url` is the base of one."""

    name: str
    list_url: str
    comment_url: str
    edit_method: str
    headers: Mapping[str, str]


def github(api: str, token: str, repository: str, number: int) -> Forge:
    """Return the issue comments of GitHub's REST API; a pull request is an issue there."""
    base = f"{api.rstrip('/')}/repos/{repository}/issues"
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    return Forge("GitHub", f"{base}/{number}/comments", f"{base}/comments", "PATCH", headers)


def gitlab(api: str, token: str, project: str, number: int) -> Forge:
    """Return the notes of a merge request; `project` is its number or its path."""
    base = f"{api.rstrip('/')}/projects/{quote(project, safe='%')}/merge_requests/{number}/notes"
    return Forge("GitLab", base, base, "PUT", {"PRIVATE-TOKEN": token})


def comment(forge: Forge, marker: str, body: str, *, only_edit: bool = False, timeout: float = 20.0) -> str:
    """Create or edit the comment; return its address or number, or nothing if there was nothing to edit.

    Raises RetryLater or Undelivered.
    """
    for number in _find_own_comments(forge, marker, timeout):
        response = _send(forge, forge.edit_method, f"{forge.comment_url}/{number}", body, timeout)
        if response.status in (403, 404):  # of another bot, or deleted meanwhile
            continue
        return _read_address(forge, response)
    return "" if only_edit else _read_address(forge, _send(forge, "POST", forge.list_url, body, timeout))


def retry(act: Callable[[], str], *, tries: int = MAX_TRIES, sleep: Callable[[float], None] | None = None) -> str:
    """Repeat what raises RetryLater: after the time the server asks for, or 1, 2, 4 … seconds. CI has no outbox."""
    for attempt in range(tries):
        try:
            return act()
        except RetryLater as error:
            if attempt == tries - 1 or (error.wait or 0) > MAX_WAIT:
                raise
            (sleep or time.sleep)(error.wait if error.wait is not None else 2.0**attempt)
    raise AssertionError("unreachable")


def _find_own_comments(forge: Forge, marker: str, timeout: float) -> Iterator[int]:
    for page in range(1, MAX_PAGES + 1):
        url = f"{forge.list_url}?per_page=100&page={page}"
        response = send_request("GET", url, headers=forge.headers, timeout=timeout)
        _check_status(forge, response)
        comments: Any = response.json()
        if not isinstance(comments, list):
            raise RetryLater("the response is not a list of comments")
        yield from [int(item["id"]) for item in comments if str(item.get("body", "")).startswith(marker)]
        if len(comments) < 100:
            return


def _send(forge: Forge, method: str, url: str, body: str, timeout: float) -> Response:
    headers = {**forge.headers, "Content-Type": "application/json"}
    return send_request(method, url, headers=headers, body=json.dumps({"body": body}).encode(), timeout=timeout)


def _read_address(forge: Forge, response: Response) -> str:
    _check_status(forge, response)
    created = response.json()
    return str(created.get("html_url") or created.get("id") or "") if isinstance(created, dict) else ""


def _check_status(forge: Forge, response: Response) -> None:
    if 200 <= response.status < 300:
        return
    hints = {
        401: "the token is wrong or has expired",
        403: "let the token write comments: `permissions: pull-requests: write` on GitHub, scope `api` on GitLab",
        404: "there is no such pull request, or the token may not see it",
    }
    text = response.body[:200].decode("utf-8", "replace")
    raise Undelivered(
        f"{forge.name} answered {response.status}: {text}", hint=hints.get(response.status, "read the response")
    )
