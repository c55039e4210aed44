"""Local servers that answer like the REST APIs of GitHub and GitLab for comments, with their documented limits.

with GitHubServer() as github:
    github.add_pull_request("team/repo", 7)
    …GITHUB_API_URL=github.url, GITHUB_TOKEN=github.token…
    assert len(github.comments("team/repo", 7)) == 1
"""

from __future__ import annotations

import re
from typing import Any

from triage.testing.local import LocalServer, Reply, Request


class GitHubServer(LocalServer):
    """Issue comments: list (paged, with the Link header), create, edit, delete. A body may have 65,536 characters."""

    max_length = 65_536

    def __init__(self) -> None:
        super().__init__()
        self.token = "ghs_local_token"
        self._comments: dict[tuple[str, int], list[dict[str, Any]]] = {}
        self._last_id = 1000

    def add_pull_request(self, repository: str, number: int) -> None:
        """Add a pull request (or an issue)."""
        self._comments.setdefault((repository, number), [])

    def comments(self, repository: str, number: int) -> list[dict[str, Any]]:
        """Return the visible comments."""
        return [dict(comment) for comment in self._comments[repository, number]]

    def post_as_user(self, repository: str, number: int, body: str, user: str = "somebody") -> None:
        """Add a comment of a person."""
        self._add(self._comments[repository, number], body, user)

    def handle(self, request: Request) -> Reply:
        """Answer a request like GitHub."""
        if request.headers.get("authorization") not in (f"Bearer {self.token}", f"token {self.token}"):
            return Reply(401, {"message": "Bad credentials"})
        if not request.headers.get("user-agent"):
            return Reply(403, {"message": "Request forbidden by administrative rules"})
        if match := re.fullmatch(r"/repos/([^/]+/[^/]+)/issues/(\d+)/comments", request.path):
            return self._handle_list(request, match[1], int(match[2]))
        if match := re.fullmatch(r"/repos/([^/]+/[^/]+)/issues/comments/(\d+)", request.path):
            return self._handle_comment(request, match[1], int(match[2]))
        return Reply(404, {"message": "Not Found"})

    def _handle_list(self, request: Request, repository: str, number: int) -> Reply:
        comments = self._comments.get((repository, number))
        if comments is None:
            return Reply(404, {"message": "Not Found"})
        if request.method == "POST":
            return self._check_body(request) or Reply(
                201, self._add(comments, request.json()["body"], "github-actions[bot]")
            )
        size, page = min(int(request.query.get("per_page", 30)), 100), int(request.query.get("page", 1))
        headers = {}
        if page * size < len(comments):
            headers["Link"] = f'<{self.url}{request.path}?per_page={size}&page={page + 1}>; rel="next"'
        return Reply(200, comments[(page - 1) * size : page * size], headers)

    def _handle_comment(self, request: Request, repository: str, identifier: int) -> Reply:
        for (owner, _), comments in self._comments.items():
            for comment in comments:
                if owner == repository and comment["id"] == identifier:
                    return self._handle_change(request, comments, comment)
        return Reply(404, {"message": "Not Found"})

    def _handle_change(self, request: Request, comments: list[dict[str, Any]], comment: dict[str, Any]) -> Reply:
        if request.method == "GET":
            return Reply(200, comment)
        if comment["user"]["login"] != "github-actions[bot]":
            return Reply(403, {"message": "Resource not accessible by integration"})
        if request.method == "DELETE":
            comments.remove(comment)
            return Reply(204)
        if invalid := self._check_body(request):
            return invalid
        comment["body"] = request.json()["body"]
        return Reply(200, comment)

    def _check_body(self, request: Request) -> Reply | None:
        content = request.json()
        body = content.get("body") if isinstance(content, dict) else None
        if not isinstance(body, str) or not body.strip():
            return Reply(422, {"message": "Validation Failed"})
        if len(body) > self.max_length:
            error = {"message": f"body is too long (maximum is {self.max_length} characters)"}
            return Reply(422, {"message": "Validation Failed", "errors": [error]})
        return None

    def _add(self, comments: list[dict[str, Any]], body: str, user: str) -> dict[str, Any]:
        self._last_id += 1
        comment = {
            "id": self._last_id,
            "body": body,
            "user": {"login": user},
            "html_url": f"{self.url}/comment/{self._last_id}",
        }
        comments.append(comment)
        return comment


class GitLabServer(LocalServer):
    """Notes on merge requests: list (paged, with X-Next-Page), create, edit. A body may have 1,000,000 characters."""

    max_length = 1_000_000

    def __init__(self) -> None:
        super().__init__()
        self.token = "glpat-local-token"
        self._notes: dict[tuple[str, int], list[dict[str, Any]]] = {}
        self._last_id = 300

    def add_merge_request(self, project: str, number: int) -> None:
        """Add a merge request; `project` is its number or its path with %2F for slashes."""
        self._notes.setdefault((project, number), [])

    def notes(self, project: str, number: int) -> list[dict[str, Any]]:
        """Return the visible comments."""
        return [dict(note) for note in self._notes[project, number]]

    def handle(self, request: Request) -> Reply:
        """Answer a request like GitLab."""
        if (
            request.headers.get("private-token") != self.token
            and request.headers.get("authorization") != f"Bearer {self.token}"
        ):
            return Reply(401, {"message": "401 Unauthorized"})
        match = re.fullmatch(r"/projects/([^/]+)/merge_requests/(\d+)/notes(?:/(\d+))?", request.path)
        notes = self._notes.get((match[1], int(match[2]))) if match else None
        if match is None or notes is None:
            return Reply(404, {"message": "404 Not found"})
        if request.method == "GET":
            return _page_notes(request, notes)
        content = request.json()
        body = content.get("body") if isinstance(content, dict) else None
        if not isinstance(body, str) or not body or len(body) > self.max_length:
            return Reply(400, {"message": "400 Bad request - Note is too long"})
        if request.method == "POST":
            self._last_id += 1
            notes.append({"id": self._last_id, "body": body, "author": {"username": "triage-bot"}, "system": False})
            return Reply(201, notes[-1])
        for note in notes:
            if request.method == "PUT" and str(note["id"]) == match[3]:
                note["body"] = body
                return Reply(200, note)
        return Reply(404, {"message": "404 Not found"})


def _page_notes(request: Request, notes: list[dict[str, Any]]) -> Reply:
    size, page = min(int(request.query.get("per_page", 20)), 100), int(request.query.get("page", 1))
    next_page = str(page + 1) if page * size < len(notes) else ""
    return Reply(200, notes[(page - 1) * size : page * size], {"X-Next-Page": next_page})
