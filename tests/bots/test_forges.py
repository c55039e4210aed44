"""`triage post github` and `gitlab` keep one comment per request, whatever fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.store.factories import clean_diagnosis, known_diagnosis, unknown_diagnosis
from triage.bots import forges
from triage.bots.interface import RetryLater, Undelivered
from triage.model.diagnosis import Diagnosis
from triage.render import json as reports
from triage.testing.forges import GitHubServer, GitLabServer

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubServer]:
    """A pull request, and the variables of a workflow."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    with GitHubServer() as server:
        server.add_pull_request("team/model", 7)
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
        server.add_merge_request("42", 3)
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


def test_the_comment_is_edited_in_place(command: Command, github: GitHubServer, tmp_path: Path) -> None:
    """It is found by its marker among comments of others that quote it."""
    for number in range(130):
        github.post_as_user("team/model", 7, f"talk {number}")
    github.post_as_user("team/model", 7, "<!-- triage:train/smoke -->\nquoted by a person")
    assert command("post", "github", report(tmp_path, unknown_diagnosis("a")))[0] == 0
    assert command("post", "github", report(tmp_path, known_diagnosis("a")))[0] == 0
    (_, own) = [item for item in github.comments("team/model", 7) if item["body"].startswith("<!-- triage:")]
    assert "cuda.out-of-memory" in own["body"]
    assert "https://github.example/team/model/actions/runs/99" in own["body"]
    assert len(github.comments("team/model", 7)) == 132


@pytest.mark.parametrize("failure", ["429", "500", "503", "cut", "cut after", "half"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_failed_requests_make_no_second_comment(
    command: Command, github: GitHubServer, tmp_path: Path, failure: str, method: str
) -> None:
    """Each try looks for the comment first, because a response may be lost."""
    github.inject_failure(method, failure, times=2)
    assert command("post", "github", report(tmp_path, known_diagnosis("a")))[0] == 0
    assert len(github.comments("team/model", 7)) == 1


def test_permanent_errors_are_reported(
    command: Command, github: GitHubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong token, a missing pull request and a service that stays down give an error with a hint."""
    path = report(tmp_path, known_diagnosis("a"))
    for changed, expected in (
        ({"GITHUB_TOKEN": "wrong"}, "token"),
        ({"GITHUB_REF": "refs/pull/8/merge"}, "no such pull request"),
    ):
        with monkeypatch.context() as patch:
            for name, value in changed.items():
                patch.setenv(name, value)
            status, _, errors = command("post", "github", path)
        assert status != 0
        assert expected in errors
    github.inject_failure("", "503", times=100)
    status, _, errors = command("post", "github", path)
    assert (status != 0, "503" in errors) == (True, True)
    assert len(github.requests) < 20


def test_outside_of_a_pull_request_nothing_is_posted(
    command: Command, github: GitHubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command says so and succeeds."""
    monkeypatch.setenv("GITHUB_REF", "refs/heads/main")
    assert command("post", "github", report(tmp_path, known_diagnosis("a")))[0] == 0
    assert github.requests == []


def test_the_event_file_names_the_pull_request(
    command: Command, github: GitHubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --only-failures a clean job adds no comment but edits an existing one."""
    github.add_pull_request("team/model", 9)
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 9}}), encoding="utf-8")
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(tmp_path / "event.json"))
    assert command("post", "github", report(tmp_path, clean_diagnosis("a")), "--only-failures")[0] == 0
    assert github.comments("team/model", 9) == []
    assert command("post", "github", report(tmp_path, known_diagnosis("a")), "--only-failures")[0] == 0
    assert command("post", "github", report(tmp_path, clean_diagnosis("a")), "--only-failures")[0] == 0
    (own,) = github.comments("team/model", 9)
    assert "Clean" in own["body"]


def test_gitlab_gets_one_note_per_merge_request(command: Command, gitlab: GitLabServer, tmp_path: Path) -> None:
    """The note is edited, and links the CI job."""
    gitlab.inject_failure("POST", "cut after")
    for diagnosis in (unknown_diagnosis("a"), known_diagnosis("a")):
        assert command("post", "gitlab", report(tmp_path, diagnosis))[0] == 0
    (note,) = gitlab.notes("42", 3)
    assert note["body"].startswith("<!-- triage:smoke -->")
    assert "https://gitlab.example/-/jobs/5" in note["body"]


def test_the_token_does_not_leak(github: GitHubServer) -> None:
    """Redirects are not followed, and no error contains the token."""
    forge = forges.github("http://127.0.0.1:9", github.token, "team/model", 7)
    with pytest.raises(RetryLater) as caught:
        forges.comment(forge, "<!-- triage:k -->", "body", timeout=2)
    assert github.token not in str(caught.value) + caught.value.hint
    github.inject_failure("", "302")
    with pytest.raises(Undelivered):
        forges.comment(forges.github(github.url, github.token, "team/model", 7), "<!-- triage:k -->", "body")
