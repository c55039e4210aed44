"""A cause has one issue in GitHub, GitLab or Jira, and one comment for each further job, whatever fails."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.bots.factories import Bench
from tests.store.factories import known_diagnosis, unknown_diagnosis
from triage.bots import trackers
from triage.bots.http import Response, send_request
from triage.bots.issues import IssueBot
from triage.bots.work import deliver_due
from triage.settings.notifications import IssueSettings, Route
from triage.testing.trackers import TrackerServer

PROJECTS = {"github": "team/model", "gitlab": "team/model", "jira": "ML"}


@pytest.fixture
def tracker() -> Iterator[TrackerServer]:
    with TrackerServer() as server:
        yield server


@pytest.fixture(params=PROJECTS)
def service(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def issue_bench(bench: Bench) -> Bench:
    bench.routing = bench.routing.model_copy(update={"routes": (Route(to="issue:ops"),)})
    return bench


def make_bot(tracker: TrackerServer, service: str, name: str = "ops", **more: object) -> IssueBot:
    target = {"service": service, "project": PROJECTS[service], "token": tracker.token, "url": tracker.url, **more}
    settings = IssueSettings.model_validate({"targets": {name: target}, "timeout": 5})
    return IssueBot(settings, "https://triage.example")


def deliver(bench: Bench, bot: IssueBot, rounds: int = 1) -> None:
    """Deliver due posts; an hour passes between the rounds."""
    for _ in range(rounds):
        deliver_due(bench.store, [bot], clock=lambda: bench.now)
        bench.now += 3600


@pytest.mark.parametrize("failure", ["429", "500", "cut", "cut after", "half"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_one_issue_is_opened_whatever_fails(
    issue_bench: Bench, tracker: TrackerServer, service: str, failure: str, method: str
) -> None:
    """Also after a request whose answer was lost: the label of the cause finds the issue again."""
    tracker.inject_failure(method, failure, times=2)
    stored = issue_bench.ingest(known_diagnosis("a"))
    deliver(issue_bench, make_bot(tracker, service), rounds=5)
    (issue,) = tracker.issues
    assert issue.comments == []
    assert f"https://triage.example/incidents/{stored.id}" in issue.body
    assert "CUDA out of memory" in issue.body
    assert "triage" in issue.labels
    assert {post.state for post in issue_bench.store.outbox.list_posts()} == {"sent"}


@pytest.mark.parametrize("failure", ["", "429", "cut", "cut after"])
def test_another_job_is_one_comment(issue_bench: Bench, tracker: TrackerServer, service: str, failure: str) -> None:
    """The same cause in another job on another host, days later, is a comment on the issue, once."""
    bot = make_bot(tracker, service)
    issue_bench.ingest(known_diagnosis("a"))
    deliver(issue_bench, bot)
    issue_bench.now += 30 * 86_400
    if failure:
        tracker.inject_failure("POST", failure, times=2)
    issue_bench.ingest(known_diagnosis("job_b", host="node9"))
    deliver(issue_bench, bot, rounds=4)
    issue_bench.ingest(known_diagnosis("job_b", host="node9"))
    deliver(issue_bench, bot)
    (issue,) = tracker.issues
    (comment,) = issue.comments
    assert re.search(r"job\\?_b, node9", comment)
    issue_bench.ingest(known_diagnosis("c"))
    deliver(issue_bench, bot)
    assert len(issue.comments) == 2


def test_a_burst_of_failures_beyond_the_rate(issue_bench: Bench, tracker: TrackerServer, service: str) -> None:
    """Failures of two causes at once, of a tracker that takes four requests in ten seconds: an issue of each."""
    tracker.rate, tracker.clock = (4, 10.0), lambda: issue_bench.now
    for number, cause in enumerate(("data.shard", "fabric.ib-retry-exceeded") * 3):
        issue_bench.ingest(known_diagnosis(f"job-{number}", cause, host=f"node{number}"))
    for _ in range(90):
        deliver(issue_bench, make_bot(tracker, service))
        issue_bench.now += 1 - 3600
    assert sorted(len(issue.comments) for issue in tracker.issues) == [1, 1]
    assert all(comment.count("job-") == 2 for issue in tracker.issues for comment in issue.comments)


def test_another_cause_is_another_issue(issue_bench: Bench, tracker: TrackerServer, service: str) -> None:
    """Signatures and clusters are causes; each has its own issue."""
    issue_bench.ingest(known_diagnosis("a"))
    issue_bench.ingest(known_diagnosis("b", "fabric.ib-retry-exceeded"))
    issue_bench.ingest(unknown_diagnosis("c"))
    deliver(issue_bench, make_bot(tracker, service))
    assert len(tracker.issues) == 3
    assert len({label for issue in tracker.issues for label in issue.labels}) == 4


def test_a_new_store_uses_the_existing_issue(issue_bench: Bench, tracker: TrackerServer, service: str) -> None:
    """A closed issue too: the tracker is asked before one is created, and the job becomes a comment."""
    bot = make_bot(tracker, service)
    issue_bench.ingest(known_diagnosis("a"))
    deliver(issue_bench, bot)
    tracker.issues[0].state = "closed"
    issue_bench.store.connections.execute("DELETE FROM told")
    issue_bench.ingest(known_diagnosis("b"))
    deliver(issue_bench, bot, rounds=2)
    (issue,) = tracker.issues
    assert len(issue.comments) == 1


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("is_sent", [False, True])
def test_a_killed_process_repeats_nothing(
    issue_bench: Bench,
    tracker: TrackerServer,
    service: str,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    is_sent: bool,
) -> None:
    """It may die before or after any of its requests, for the first job and for the next: one issue, one comment."""
    for job in ("a", "b"):
        issue_bench.ingest(known_diagnosis(job))
        calls = itertools.count()

        def send_or_die(*arguments: Any, calls: Iterator[int] = calls, **options: Any) -> Response:
            is_last = next(calls) == number
            response = send_request(*arguments, **options) if is_sent or not is_last else None
            if is_last or response is None:
                raise SystemExit
            return response

        with monkeypatch.context() as patch:
            patch.setattr(trackers, "send_request", send_or_die)
            with pytest.raises(SystemExit):
                deliver(issue_bench, make_bot(tracker, service))
        issue_bench.now += 3600  # the lease of the killed process ends
        deliver(issue_bench, make_bot(tracker, service), rounds=2)
    (issue,) = tracker.issues
    assert len(issue.comments) == 1


def test_an_issue_that_a_search_does_not_find_yet_is_used(issue_bench: Bench, tracker: TrackerServer) -> None:
    """A search of Jira Cloud lags behind: the next job is a comment on the issue that was just created."""
    bot = make_bot(tracker, "jira")
    tracker.indexed = 0
    issue_bench.ingest(known_diagnosis("a"))
    tracker.inject_failure("/comment", "500")  # after the creation
    deliver(issue_bench, bot, rounds=2)
    issue_bench.ingest(known_diagnosis("b"))
    deliver(issue_bench, bot)
    (issue,) = tracker.issues
    assert len(issue.comments) == 1
    issue.labels.remove(next(label for label in issue.labels if label.startswith("triage-")))
    issue_bench.ingest(known_diagnosis("c"))
    deliver(issue_bench, bot)
    assert len(tracker.issues) == 2


@pytest.mark.parametrize("failure", ["cut after", "half", "504"])
def test_jira_is_asked_again_when_a_search_has_the_issue(
    issue_bench: Bench, tracker: TrackerServer, failure: str
) -> None:
    """Nobody knows the key of an issue whose answer was lost, so the next try waits for the search."""
    tracker.inject_failure("POST", failure)
    issue_bench.ingest(known_diagnosis("a"))
    before = issue_bench.now
    deliver(issue_bench, make_bot(tracker, "jira"))
    (post,) = issue_bench.store.outbox.list_posts()
    assert post.next_at == before + trackers.INDEX_DELAY


@pytest.mark.parametrize(("seconds", "expected"), [(0, 60), (7, 7)])
def test_a_rate_limit_of_github_is_no_refusal(
    issue_bench: Bench, tracker: TrackerServer, seconds: int, expected: int
) -> None:
    """Its status is that of a missing permission; without a time the next try waits a minute, as documented."""
    tracker.retry_after = seconds
    tracker.inject_failure("POST", "429")
    issue_bench.ingest(known_diagnosis("a"))
    before = issue_bench.now
    deliver(issue_bench, make_bot(tracker, "github"))
    (post,) = issue_bench.store.outbox.list_posts()
    assert (post.state, post.next_at) == ("waiting", before + expected)
    deliver(issue_bench, make_bot(tracker, "github"))
    assert len(tracker.issues) == 1


def test_failures_without_a_cause_open_no_issue(issue_bench: Bench, tracker: TrackerServer) -> None:
    """Symptoms and inconclusive jobs would all be one issue."""
    issue_bench.ingest(replace(known_diagnosis("a"), verdict="inconclusive", root_cause=None, findings=()))
    issue_bench.ingest(replace(known_diagnosis("b"), verdict="unknown", root_cause=None, findings=()))
    deliver(issue_bench, make_bot(tracker, "github"))
    assert tracker.issues == []
    assert issue_bench.store.outbox.list_posts() == []


def test_both_forms_of_jira_are_understood(issue_bench: Bench, tracker: TrackerServer) -> None:
    """Data Center searches at another address, with a token instead of a user."""
    tracker.is_jira_cloud = False
    issue_bench.ingest(known_diagnosis("a"))
    deliver(issue_bench, make_bot(tracker, "jira"))
    tracker.is_jira_cloud = True
    issue_bench.ingest(known_diagnosis("b"))
    deliver(issue_bench, make_bot(tracker, "jira", user="bot"))
    (issue,) = tracker.issues
    assert len(issue.comments) == 1


def test_a_token_that_sets_no_labels_opens_one_issue(issue_bench: Bench, tracker: TrackerServer) -> None:
    """GitHub drops labels silently; without one the next occurrence would open another issue."""
    tracker.sets_labels = False
    issue_bench.ingest(known_diagnosis("a"))
    deliver(issue_bench, make_bot(tracker, "github"), rounds=3)
    assert len(tracker.issues) == 1
    (post,) = issue_bench.store.outbox.list_posts(state="dead")
    assert "did not set the label" in (post.error or "")


def test_many_comments_are_read_in_pages(issue_bench: Bench, tracker: TrackerServer, service: str) -> None:
    """An occurrence that is noted on the third page is not noted again."""
    bot = make_bot(tracker, service)
    issue_bench.ingest(known_diagnosis("a"))
    deliver(issue_bench, bot)
    issue_bench.ingest(known_diagnosis("b"))
    deliver(issue_bench, bot)
    (issue,) = tracker.issues
    issue.comments[:0] = ["from people"] * 230
    issue_bench.store.connections.execute("DELETE FROM told_part")
    issue_bench.ingest(known_diagnosis("b"))
    deliver(issue_bench, bot)
    assert len(issue.comments) == 231


def test_long_reports_fit(issue_bench: Bench, tracker: TrackerServer, service: str) -> None:
    """Title and body stay below the limits of each tracker."""
    diagnosis = known_diagnosis("a")
    assert diagnosis.root_cause is not None
    root = replace(diagnosis.root_cause, title="t" * 3000, why=("word " * 30_000,))
    issue_bench.ingest(replace(diagnosis, root_cause=root))
    deliver(issue_bench, make_bot(tracker, service))
    assert len(tracker.issues) == 1


def test_a_wrong_token_and_a_missing_target_are_dead_letters(issue_bench: Bench, tracker: TrackerServer) -> None:
    """The errors say what to do, and do not hold the token."""
    issue_bench.ingest(known_diagnosis("a"))
    deliver(issue_bench, make_bot(tracker, "github", token="wrong-token"))
    (post,) = issue_bench.store.outbox.list_posts(state="dead")
    assert "the token is wrong" in (post.error or "")
    assert "wrong-token" not in (post.error or "")
    issue_bench.store.outbox.retry(post.id, now=issue_bench.now)
    deliver(issue_bench, make_bot(tracker, "github", name="other"))
    (post,) = issue_bench.store.outbox.list_posts(state="dead")
    assert "[issue.targets.ops]" in (post.error or "")


def test_the_title_of_an_issue_is_the_cause(issue_bench: Bench, tracker: TrackerServer, service: str) -> None:
    """It names no rank: the next job with the same cause fails on another one."""
    issue_bench.ingest(unknown_diagnosis("a", "ValueError: shard 7 is bad"))
    deliver(issue_bench, make_bot(tracker, service))
    assert [issue.title for issue in tracker.issues] == ["ValueError: shard 7 is bad"]
