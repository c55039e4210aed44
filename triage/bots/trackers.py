"""The issues of GitHub, GitLab and Jira: find one by its label, create it, read and add comments.

GitHub and GitLab find a label at once after an issue was created with it; a full-text search they do not. So each cause
has a label. A search of Jira Cloud finds a new issue only after seconds to minutes
(https://developer.atlassian.com/cloud/jira/platform/search-and-reconcile/), so a known one is read by its key.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from triage.bots.forges import MAX_PAGES
from triage.bots.http import Response, send_request
from triage.bots.interface import RetryLater, Undelivered
from triage.settings.notifications import IssueTarget

DEFAULT_URLS = {"github": "https://api.github.com", "gitlab": "https://gitlab.com/api/v4"}
PAGE = 100
INDEX_DELAY = 180.0  # seconds until a search of Jira Cloud has a new issue; the lease of a killed process is as long


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue: its number or key, its address, its labels, and its text."""

    number: str
    address: str
    labels: tuple[str, ...]
    body: str


class Tracker(Protocol):
    """One project of a tracker. All calls raise RetryLater or Undelivered."""

    def find(self, label: str, address: str | None) -> Issue | None:
        """Return the oldest issue with the label, open or closed. `address` is of one that may have it."""

    def create(self, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        """Create an issue."""

    def comments(self, number: str) -> Iterator[str]:
        """Yield the texts of the comments."""

    def comment(self, number: str, body: str) -> None:
        """Add a comment."""

    def quote(self, markdown: str, text: str) -> str:
        """Return the report in the markup of the tracker: `markdown`, or `text` without markup."""

    def mark(self, key: str) -> str:
        """Return a text that people do not see, by which an issue or comment is found again."""


def build_tracker(target: IssueTarget, timeout: float) -> Tracker:
    """Return the tracker of a target."""
    trackers: Mapping[str, type[GitHub | GitLab | Jira]] = {"github": GitHub, "gitlab": GitLab, "jira": Jira}
    return trackers[target.service](target, timeout)


class _Client:
    """Requests to one REST API."""

    service = ""

    def __init__(self, target: IssueTarget, timeout: float) -> None:
        self._api = (target.url or DEFAULT_URLS.get(target.service, "")).rstrip("/")
        self._target = target
        self._timeout = timeout

    def headers(self) -> Mapping[str, str]:
        """Return the headers that authenticate a request."""
        raise NotImplementedError

    def _call(self, method: str, path: str, content: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON of the response."""
        headers = {**self.headers(), "Content-Type": "application/json", "Accept": "application/json"}
        body = json.dumps(content).encode() if content is not None else None
        response = send_request(method, f"{self._api}{path}", headers=headers, body=body, timeout=self._timeout)
        _check_status(self.service, response)
        return response.json()

    def _pages(self, path: str) -> Iterator[Any]:
        """Yield the items of all pages."""
        for page in range(1, MAX_PAGES + 1):
            items = self._call("GET", f"{path}{'&' if '?' in path else '?'}per_page={PAGE}&page={page}")
            if not isinstance(items, list):
                raise RetryLater("the response is not a list")
            yield from items
            if len(items) < PAGE:
                return

    def quote(self, markdown: str, text: str) -> str:
        """Return the Markdown."""
        return markdown

    def mark(self, key: str) -> str:
        """Return a comment of HTML."""
        return f"<!-- triage:{key} -->"


class GitHub(_Client):
    """`project` is OWNER/REPOSITORY."""

    service = "GitHub"

    def headers(self) -> Mapping[str, str]:
        """Return the token and the version of the API."""
        return {
            "Authorization": f"Bearer {self._target.token.get_secret_value()}",
            "X-GitHub-Api-Version": "2022-11-28",
        }

    def find(self, label: str, address: str | None) -> Issue | None:
        """Return the oldest issue with the label; pull requests are issues too, but none of ours."""
        path = f"/repos/{self._target.project}/issues?state=all&sort=created&direction=asc&labels={quote(label)}"
        return next((_read_github(item) for item in self._pages(path) if "pull_request" not in item), None)

    def create(self, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        """Create an issue. GitHub leaves out labels that the token may not set."""
        content = {"title": title, "body": body, "labels": list(labels)}
        return _read_github(self._call("POST", f"/repos/{self._target.project}/issues", content))

    def comments(self, number: str) -> Iterator[str]:
        """Yield the texts of the comments."""
        for item in self._pages(f"/repos/{self._target.project}/issues/{number}/comments"):
            yield str(item.get("body") or "")

    def comment(self, number: str, body: str) -> None:
        """Add a comment."""
        self._call("POST", f"/repos/{self._target.project}/issues/{number}/comments", {"body": body})


class GitLab(_Client):
    """`project` is its number or its path."""

    service = "GitLab"

    def headers(self) -> Mapping[str, str]:
        """Return the token."""
        return {"PRIVATE-TOKEN": self._target.token.get_secret_value()}

    @property
    def _path(self) -> str:
        return f"/projects/{quote(self._target.project, safe='')}/issues"

    def find(self, label: str, address: str | None) -> Issue | None:
        """Return the oldest issue with the label."""
        items = self._pages(f"{self._path}?order_by=created_at&sort=asc&scope=all&labels={quote(label)}")
        return next(map(_read_gitlab, items), None)

    def create(self, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        """Create an issue."""
        content = {"title": title, "description": body, "labels": ",".join(labels)}
        return _read_gitlab(self._call("POST", self._path, content))

    def comments(self, number: str) -> Iterator[str]:
        """Yield the texts of the notes."""
        for item in self._pages(f"{self._path}/{number}/notes"):
            yield str(item.get("body") or "")

    def comment(self, number: str, body: str) -> None:
        """Add a note."""
        self._call("POST", f"{self._path}/{number}/notes", {"body": body})


class Jira(_Client):
    """`project` is its key. A `user` with an API token is for Jira Cloud, a personal access token for Data Center."""

    service = "Jira"

    def headers(self) -> Mapping[str, str]:
        """Return the user with the token, or the token."""
        token = self._target.token.get_secret_value()
        if not self._target.user:
            return {"Authorization": f"Bearer {token}"}
        return {"Authorization": "Basic " + base64.b64encode(f"{self._target.user}:{token}".encode()).decode()}

    def find(self, label: str, address: str | None) -> Issue | None:
        """Return the oldest issue with the label. Cloud has another address for searches than Data Center."""
        jql = quote(f'project = "{self._target.project}" AND labels = "{label}" ORDER BY created ASC')
        query = f"?jql={jql}&maxResults=1&fields=labels,description"
        try:
            reply = self._call("GET", f"/rest/api/2/search/jql{query}")
        except _NotFound:
            reply = self._call("GET", f"/rest/api/2/search{query}")
        oldest = next((self._read(item, item.get("fields") or {}) for item in reply.get("issues") or ()), None)
        return oldest or (self._get(label, address) if address else None)

    def _get(self, label: str, address: str) -> Issue | None:
        """Return the issue with this address if it is there and has the label."""
        try:
            item = self._call("GET", f"/rest/api/2/issue/{address.rpartition('/')[2]}?fields=labels,description")
        except _NotFound:
            return None
        issue = self._read(item, item.get("fields") or {})
        return issue if label in issue.labels else None

    def create(self, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        """Create an issue. If the answer is lost, the next try waits until a search would find the issue."""
        fields = {
            "project": {"key": self._target.project},
            "issuetype": {"name": self._target.issue_type},
            "summary": title,
            "description": body,
            "labels": list(labels),
        }
        try:
            return self._read(self._call("POST", "/rest/api/2/issue", {"fields": fields}), fields)
        except RetryLater as error:
            raise RetryLater(error.message, wait=error.wait or INDEX_DELAY) from None

    def comments(self, number: str) -> Iterator[str]:
        """Yield the texts of the comments."""
        start = 0
        for _ in range(MAX_PAGES):
            reply = self._call("GET", f"/rest/api/2/issue/{number}/comment?startAt={start}&maxResults={PAGE}")
            items = reply.get("comments") or []
            yield from (str(item.get("body") or "") for item in items)
            start += len(items)
            if not items or start >= int(reply.get("total") or 0):
                return

    def comment(self, number: str, body: str) -> None:
        """Add a comment."""
        self._call("POST", f"/rest/api/2/issue/{number}/comment", {"body": body})

    def quote(self, markdown: str, text: str) -> str:
        """Return the text as a block without markup, which the text cannot end."""
        return "{noformat}\n" + text.replace("{", "{\u200b") + "\n{noformat}"

    def mark(self, key: str) -> str:
        """Return an anchor."""
        return f"{{anchor:triage-{key}}}"

    def _read(self, item: Mapping[str, Any], fields: Mapping[str, Any]) -> Issue:
        key = str(item["key"])
        labels = tuple(fields.get("labels") or ())
        return Issue(key, f"{self._api}/browse/{key}", labels, str(fields.get("description") or ""))


class _NotFound(Undelivered):
    """There is no such address, or the token may not see it."""


def _read_github(item: Mapping[str, Any]) -> Issue:
    labels = tuple(str(label["name"]) for label in item.get("labels") or ())
    return Issue(str(item["number"]), str(item.get("html_url") or ""), labels, str(item.get("body") or ""))


def _read_gitlab(item: Mapping[str, Any]) -> Issue:
    labels = tuple(map(str, item.get("labels") or ()))
    return Issue(str(item["iid"]), str(item.get("web_url") or ""), labels, str(item.get("description") or ""))


def _check_status(service: str, response: Response) -> None:
    if 200 <= response.status < 300:
        return
    hints = {
        400: "read the response; Jira answers so where the project has no such type of issues",
        401: "the token is wrong or has expired",
        403: "let the token read and write issues",
        404: "there is no such project, or the token may not see it",
        410: "the project has no issues, or the address is out of date",
    }
    kind = _NotFound if response.status in (404, 410) else Undelivered
    text = response.body[:200].decode("utf-8", "replace")
    raise kind(f"{service} answered {response.status}: {text}", hint=hints.get(response.status, "read the response"))
