"""A local server that answers like the issues of GitHub, GitLab and Jira, with their documented limits.

with TrackerServer() as tracker:
    …url=tracker.url, token=tracker.token…
    assert len(tracker.issues) == 1
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from triage.testing.local import LocalServer, Reply, Request


@dataclass(slots=True)
class StoredIssue:
    """An issue as people see it."""

    number: int
    title: str
    body: str
    labels: list[str]
    state: str = "open"
    comments: list[str] = field(default_factory=list)


class TrackerServer(LocalServer):
    """One project in three forms: `team/model` of GitHub and GitLab, `ML` of Jira."""

    def __init__(self) -> None:
        super().__init__()
        self.token = "a-local-token"
        self.issues: list[StoredIssue] = []
        self.is_jira_cloud = True
        self.sets_labels = True
        self.indexed: int | None = None  # as many issues a search of Jira Cloud finds; None: all

    def rate_limit_reply(self, seconds: int) -> Reply:
        """Return 429; GitHub answers 403, and for a secondary limit (`retry_after = 0`) only with a message."""
        if not self.requests[-1].path.startswith("/repos/"):
            return super().rate_limit_reply(seconds)
        text = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
        return Reply(403, {"message": text}, {"Retry-After": str(seconds)} if seconds else {})

    def handle(self, request: Request) -> Reply:
        """Answer a request like its service."""
        tokens = (f"Bearer {self.token}", "Basic Ym90OmEtbG9jYWwtdG9rZW4=")
        if request.headers.get("authorization") not in tokens and request.headers.get("private-token") != self.token:
            return Reply(401, {"message": "Bad credentials"})
        path, content = request.path, request.json() or {}
        if match := re.fullmatch(r"/repos/team/model/issues(?:/(\d+)/comments)?", path):
            return self._github(request, match[1], content)
        if match := re.fullmatch(r"/projects/team/model/issues(?:/(\d+)/notes)?", unquote(path)):
            return self._gitlab(request, match[1], content)
        if match := re.fullmatch(r"/rest/api/2/(search(?:/jql)?|issue(?:/ML-(\d+)(?:/comment)?)?)", path):
            return self._jira(request, match[1], match[2], content)
        return Reply(404, {"message": "Not Found"})

    def _github(self, request: Request, number: str | None, content: dict[str, Any]) -> Reply:
        if request.method == "GET":
            texts = [{"body": text} for text in self.issues[int(number) - 1].comments] if number else None
            return _page(request, texts if texts is not None else self._matching(request, _as_github))
        if len(content.get("body") or "") > 65_536 or (not number and len(content["title"]) > 256):
            return Reply(422, {"message": "Validation Failed"})
        if number:
            self.issues[int(number) - 1].comments.append(content["body"])
            return Reply(201, {"id": 1, "body": content["body"]})
        return Reply(201, _as_github(self._add(content["title"], content["body"], content["labels"])))

    def _gitlab(self, request: Request, number: str | None, content: dict[str, Any]) -> Reply:
        if request.method == "GET":
            texts = [{"body": text} for text in self.issues[int(number) - 1].comments] if number else None
            return _page(request, texts if texts is not None else self._matching(request, _as_gitlab))
        if number:
            self.issues[int(number) - 1].comments.append(content["body"])
            return Reply(201, {"id": 1, "body": content["body"]})
        if len(content["title"]) > 255 or len(content["description"]) > 1_048_576:
            return Reply(400, {"message": {"title": ["is too long"]}})
        return Reply(201, _as_gitlab(self._add(content["title"], content["description"], content["labels"].split(","))))

    def _jira(self, request: Request, action: str, number: str | None, content: dict[str, Any]) -> Reply:
        if action.startswith("search"):
            if (action == "search/jql") != self.is_jira_cloud:
                return Reply(
                    410 if self.is_jira_cloud else 404, {"errorMessages": ["The requested API has been removed."]}
                )
            match = re.search(r'project = "ML" AND labels = "([^"]+)"', request.query["jql"])
            searched = self.issues[: self.indexed if self.is_jira_cloud else None]
            return Reply(200, {"issues": [_as_jira(item) for item in searched if match and match[1] in item.labels]})
        if number and action.endswith(number):
            exists = len(self.issues) >= int(number)
            return Reply(200, _as_jira(self.issues[int(number) - 1])) if exists else Reply(404, {"errorMessages": []})
        if number and request.method == "GET":
            texts = self.issues[int(number) - 1].comments
            start, size = int(request.query["startAt"]), int(request.query["maxResults"])
            return Reply(
                200, {"total": len(texts), "comments": [{"body": text} for text in texts[start : start + size]]}
            )
        text = str(content.get("body") or (content.get("fields") or {}).get("description") or "")
        if len(text) > 32_767:
            return Reply(400, {"errors": {"description": "The entered text is too long."}})
        if number:
            self.issues[int(number) - 1].comments.append(text)
            return Reply(201, {"id": "1"})
        fields = content["fields"]
        if len(fields["summary"]) > 255 or any(" " in label for label in fields["labels"]):
            return Reply(400, {"errors": {"summary": "Summary must be less than 255 characters."}})
        issue = self._add(fields["summary"], text, fields["labels"])
        return Reply(201, {"id": "1", "key": f"ML-{issue.number}", "self": self.url})

    def _add(self, title: str, body: str, labels: list[str]) -> StoredIssue:
        issue = StoredIssue(len(self.issues) + 1, title, body, list(labels) if self.sets_labels else [])
        self.issues.append(issue)
        return issue

    def _matching(self, request: Request, convert: Any) -> list[Any]:
        label = request.query.get("labels", "")
        return [convert(item) for item in self.issues if label in item.labels]


def _page(request: Request, items: list[Any]) -> Reply:
    size, page = min(int(request.query.get("per_page", 30)), 100), int(request.query.get("page", 1))
    return Reply(200, items[(page - 1) * size : page * size])


def _as_github(issue: StoredIssue) -> dict[str, Any]:
    labels = [{"name": label} for label in issue.labels]
    return {
        "number": issue.number,
        "html_url": f"https://github.example/{issue.number}",
        "body": issue.body,
        "labels": labels,
    }


def _as_gitlab(issue: StoredIssue) -> dict[str, Any]:
    address = f"https://gitlab.example/{issue.number}"
    return {"iid": issue.number, "web_url": address, "description": issue.body, "labels": issue.labels}


def _as_jira(issue: StoredIssue) -> dict[str, Any]:
    return {"key": f"ML-{issue.number}", "fields": {"labels": issue.labels, "description": issue.body}}
