"""Comments on pull and merge requests, through the commands and against the local GitHub and GitLab: one each, whatever
breaks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.store.making import clean, known, unknown
from triage.bots import forges
from triage.bots.interface import Later, Undelivered
from triage.model.diagnosis import Diagnosis
from triage.render import json as reports
from triage.testing.forges import GitHubServer, GitLabServer

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubServer]:
    """A pull request where somebody talks, and the variables of a workflow."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    with GitHubServer() as server:
        server.pull("team/model", 7)
        for name, value in {
            "GITHUB_API_URL": server.url,
            "GITHUB_TOKEN": server.token,
            "GITHUB_REPOSITORY": "team/model",
            "GITHUB_REF": "refs/pull/7/merge",
            "GITHUB_WORKFLOW": "train",
            "GITHUB_JOB": "smoke",
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_RUN_ID": "99",
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("GITHUB_EVENT_PATH", raising=False)
        yield server


@pytest.fixture
def gitlab(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitLabServer]:
    """A merge request, and the variables of a pipeline."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    with GitLabServer() as server:
        server.merge_request("42", 3)
        for name, value in {
            "CI_API_V4_URL": server.url,
            "GITLAB_TOKEN": server.token,
            "CI_PROJECT_ID": "42",
            "CI_MERGE_REQUEST_IID": "3",
            "CI_JOB_NAME": "smoke",
            "CI_JOB_URL": "https://gitlab.example/-/jobs/5",
        }.items():
            monkeypatch.setenv(name, value)
        yield server


def report(where: Path, diagnosis: Diagnosis) -> str:
    path = where / "report.json"
    path.write_text(reports.render(diagnosis), encoding="utf-8")
    return str(path)


def test_one_comment_edited_in_place(command: Command, github: GitHubServer, tmp_path: Path) -> None:
    """Found by its marker among those of others, who may quote it."""
    for number in range(130):
        github.say("team/model", 7, f"talk {number}")
    github.say("team/model", 7, "<!-- triage:train/smoke -->\nquoted by a person")
    assert command("post", "github", report(tmp_path, unknown("a")))[0] == 0
    assert command("post", "github", report(tmp_path, known("a")))[0] == 0
    (_, mine) = [item for item in github.comments("team/model", 7) if item["body"].startswith("<!-- triage:")]
    assert "cuda.out-of-memory" in mine["body"]
    assert "https://github.example/team/model/actions/runs/99" in mine["body"]
    assert len(github.comments("team/model", 7)) == 132


@pytest.mark.parametrize("trouble", ["429", "500", "503", "cut", "cut after", "half"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_one_comment_whatever_breaks(
    command: Command, github: GitHubServer, tmp_path: Path, trouble: str, method: str
) -> None:
    """Each try looks first, so that an answer that was lost makes no second comment."""
    github.trouble(method, trouble, times=2)
    assert command("post", "github", report(tmp_path, known("a")))[0] == 0
    assert len(github.comments("team/model", 7)) == 1


def test_what_cannot_be_helped_is_said(
    command: Command, github: GitHubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong token, a pull request that is not there, a service that stays away: status 2 or 1, a hint, no traceback."""
    path = report(tmp_path, known("a"))
    for changed, said in (
        ({"GITHUB_TOKEN": "wrong"}, "token"),
        ({"GITHUB_REF": "refs/pull/8/merge"}, "no such pull request"),
    ):
        with monkeypatch.context() as patch:
            for name, value in changed.items():
                patch.setenv(name, value)
            status, _, errors = command("post", "github", path)
        assert status != 0
        assert said in errors
    github.trouble("", "503", times=100)
    status, _, errors = command("post", "github", path)
    assert (status != 0, "503" in errors) == (True, True)
    assert len(github.requests) < 20


def test_outside_of_a_pull_request_nothing_is_posted(
    command: Command, github: GitHubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said, and it is no error."""
    monkeypatch.setenv("GITHUB_REF", "refs/heads/main")
    assert command("post", "github", report(tmp_path, known("a")))[0] == 0
    assert github.requests == []


def test_the_pull_request_of_the_event(
    command: Command, github: GitHubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the event's file says; a clean job makes no comment with --only-failures."""
    github.pull("team/model", 9)
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 9}}), encoding="utf-8")
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(tmp_path / "event.json"))
    assert command("post", "github", report(tmp_path, clean("a")), "--only-failures")[0] == 0
    assert github.comments("team/model", 9) == []
    assert command("post", "github", report(tmp_path, known("a")), "--only-failures")[0] == 0
    assert command("post", "github", report(tmp_path, clean("a")), "--only-failures")[0] == 0
    (mine,) = github.comments("team/model", 9)
    assert "Clean" in mine["body"]


def test_a_note_on_a_merge_request(command: Command, gitlab: GitLabServer, tmp_path: Path) -> None:
    """One note, edited; the link is the job's."""
    gitlab.trouble("POST", "cut after")
    for found in (unknown("a"), known("a")):
        assert command("post", "gitlab", report(tmp_path, found))[0] == 0
    (note,) = gitlab.notes("42", 3)
    assert note["body"].startswith("<!-- triage:smoke -->")
    assert "https://gitlab.example/-/jobs/5" in note["body"]


def test_the_token_stays_in_the_house(github: GitHubServer) -> None:
    """Redirects are not followed, and no error shows the token."""
    forge = forges.github("http://127.0.0.1:9", github.token, "team/model", 7)
    with pytest.raises(Later) as caught:
        forges.comment(forge, "<!-- triage:k -->", "body", timeout=2)
    assert github.token not in str(caught.value) + caught.value.hint
    github.trouble("", "302")
    with pytest.raises(Undelivered):
        forges.comment(forges.github(github.url, github.token, "team/model", 7), "<!-- triage:k -->", "body")
