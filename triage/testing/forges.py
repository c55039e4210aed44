"""Local servers that answer like GitHub's and GitLab's REST API for comments on a pull or merge request, with their
documented limits.

with GitHubServer() as github:
    github.pull("team/repo", 7)
    …GITHUB_API_URL=github.url, GITHUB_TOKEN=github.token…
    assert len(github.comments("team/repo", 7)) == 1
"""

from __future__ import annotations

import re
from typing import Any

from triage.testing.local import LocalServer, Reply, Request


class GitHubServer(LocalServer):
    """Issue comments: list (paged, with the Link header), create, edit, delete. A body may have 65,536 characters."""

    most = 65_536

    def __init__(self) -> None:
        super().__init__()
        self.token = "ghs_local_token"
        self._comments: dict[tuple[str, int], list[dict[str, Any]]] = {}
        self._last = 1000

    def pull(self, repository: str, number: int) -> None:
        """A pull request (or an issue)."""
        self._comments.setdefault((repository, number), [])

    def comments(self, repository: str, number: int) -> list[dict[str, Any]]:
        """What people see there."""
        return [dict(comment) for comment in self._comments[repository, number]]

    def say(self, repository: str, number: int, body: str, user: str = "somebody") -> None:
        """A comment of somebody else."""
        self._add(self._comments[repository, number], body, user)

    def answer(self, request: Request) -> Reply:
        if request.headers.get("authorization") not in (f"Bearer {self.token}", f"token {self.token}"):
            return Reply(401, {"message": "Bad credentials"})
        if not request.headers.get("user-agent"):
            return Reply(403, {"message": "Request forbidden by administrative rules"})
        if found := re.fullmatch(r"/repos/([^/]+/[^/]+)/issues/(\d+)/comments", request.path):
            return self._many(request, found[1], int(found[2]))
        if found := re.fullmatch(r"/repos/([^/]+/[^/]+)/issues/comments/(\d+)", request.path):
            return self._one(request, found[1], int(found[2]))
        return Reply(404, {"message": "Not Found"})

    def _many(self, request: Request, repository: str, number: int) -> Reply:
        there = self._comments.get((repository, number))
        if there is None:
            return Reply(404, {"message": "Not Found"})
        if request.method == "POST":
            wrong = self._wrong(request)
            return wrong or Reply(201, self._add(there, request.json()["body"], "github-actions[bot]"))
        size, page = min(int(request.query.get("per_page", 30)), 100), int(request.query.get("page", 1))
        headers = {}
        if page * size < len(there):
            headers["Link"] = f'<{self.url}{request.path}?per_page={size}&page={page + 1}>; rel="next"'
        return Reply(200, there[(page - 1) * size : page * size], headers)

    def _one(self, request: Request, repository: str, identifier: int) -> Reply:
        for (where, _), there in self._comments.items():
            for comment in there:
                if where == repository and comment["id"] == identifier:
                    return self._change(request, there, comment)
        return Reply(404, {"message": "Not Found"})

    def _change(self, request: Request, there: list[dict[str, Any]], comment: dict[str, Any]) -> Reply:
        if request.method == "GET":
            return Reply(200, comment)
        if comment["user"]["login"] != "github-actions[bot]":
            return Reply(403, {"message": "Resource not accessible by integration"})
        if request.method == "DELETE":
            there.remove(comment)
            return Reply(204)
        if wrong := self._wrong(request):
            return wrong
        comment["body"] = request.json()["body"]
        return Reply(200, comment)

    def _wrong(self, request: Request) -> Reply | None:
        given = request.json()
        body = given.get("body") if isinstance(given, dict) else None
        if not isinstance(body, str) or not body.strip():
            return Reply(422, {"message": "Validation Failed"})
        if len(body) > self.most:
            return Reply(
                422,
                {
                    "message": "Validation Failed",
                    "errors": [{"message": f"body is too long (maximum is {self.most} characters)"}],
                },
            )
        return None

    def _add(self, there: list[dict[str, Any]], body: str, user: str) -> dict[str, Any]:
        self._last += 1
        comment = {
            "id": self._last,
            "body": body,
            "user": {"login": user},
            "html_url": f"{self.url}/comment/{self._last}",
        }
        there.append(comment)
        return comment


class GitLabServer(LocalServer):
    """Notes on merge requests: list (paged, with X-Next-Page), create, edit. A body may have 1,000,000 characters."""

    most = 1_000_000

    def __init__(self) -> None:
        super().__init__()
        self.token = "glpat-local-token"
        self._notes: dict[tuple[str, int], list[dict[str, Any]]] = {}
        self._last = 300

    def merge_request(self, project: str, number: int) -> None:
        """A merge request; `project` is its number or its path with %2F for slashes."""
        self._notes.setdefault((project, number), [])

    def notes(self, project: str, number: int) -> list[dict[str, Any]]:
        """What people see there."""
        return [dict(note) for note in self._notes[project, number]]

    def answer(self, request: Request) -> Reply:
        if (
            request.headers.get("private-token") != self.token
            and request.headers.get("authorization") != f"Bearer {self.token}"
        ):
            return Reply(401, {"message": "401 Unauthorized"})
        found = re.fullmatch(r"/projects/([^/]+)/merge_requests/(\d+)/notes(?:/(\d+))?", request.path)
        there = self._notes.get((found[1], int(found[2]))) if found else None
        if found is None or there is None:
            return Reply(404, {"message": "404 Not found"})
        if request.method == "GET":
            size, page = min(int(request.query.get("per_page", 20)), 100), int(request.query.get("page", 1))
            return Reply(
                200,
                there[(page - 1) * size : page * size],
                {"X-Next-Page": str(page + 1) if page * size < len(there) else ""},
            )
        given = request.json()
        body = given.get("body") if isinstance(given, dict) else None
        if not isinstance(body, str) or not body or len(body) > self.most:
            return Reply(400, {"message": "400 Bad request - Note is too long"})
        if request.method == "POST":
            self._last += 1
            there.append({"id": self._last, "body": body, "author": {"username": "triage-bot"}, "system": False})
            return Reply(201, there[-1])
        for note in there:
            if request.method == "PUT" and str(note["id"]) == found[3]:
                note["body"] = body
                return Reply(200, note)
        return Reply(404, {"message": "404 Not found"})
