"""Open one issue for each cause, and comment on it when the cause ends another job.

The tracker is asked each time what it already has: the issue by the label of the cause, each occurrence by a mark in
the text. So a delivery that is repeated changes nothing, also with an empty store.
"""

from __future__ import annotations

import hashlib

from triage.bots.interface import Undelivered
from triage.bots.subject import Subject, find_message, find_target, incident_url, read_subject
from triage.bots.trackers import Issue, Tracker, build_tracker
from triage.render import phrases, render
from triage.render.markdown import fence, inline
from triage.render.sanitize import clip, sanitize_line
from triage.settings.notifications import IssueSettings, IssueTarget
from triage.store import Store
from triage.store.notifications import NotificationPart, Repeat
from triage.store.outbox import Post

PART = "issue"
TITLE = 200  # characters; Jira takes 255
BODY = 30_000  # characters; Jira takes 32,767
LISTED = 20


class IssueBot:
    """Keeps the issues of the targets in the settings."""

    kind = "issue"

    def __init__(self, settings: IssueSettings, public_url: str = "") -> None:
        self._settings = settings
        self._public_url = public_url

    def deliver(self, post: Post, store: Store, now: float) -> str:
        """Create the issue if there is none, and comment on the occurrences that it does not have yet."""
        target = find_target(self._settings.targets, post)
        message = find_message(post, store)
        repeats = store.notifications.list_repeats(message.id)
        part = store.notifications.get_part(message.id, PART)
        if part.ref is not None and part.digest == str(len(repeats)):
            return part.ref
        store.notifications.save_part(message.id, PART, NotificationPart(True, part.ref, part.digest))
        tracker = build_tracker(target, self._settings.timeout)
        occurrences = [Repeat(message.topic, message.job, message.hosts, message.at), *repeats]
        label = f"triage-{_digest(message.cause)}"
        issue = tracker.find(label, part.ref)
        if issue is None:
            subject = read_subject(post, message, store)
            issue = self._create(tracker, target, label, subject, occurrences[0])
        address = issue.address or issue.number
        store.notifications.save_part(message.id, PART, NotificationPart(True, address, part.digest))
        _comment(tracker, issue, occurrences)
        store.notifications.save_part(message.id, PART, NotificationPart(True, address, str(len(repeats))))
        return address

    def _create(self, tracker: Tracker, target: IssueTarget, label: str, subject: Subject, first: Repeat) -> Issue:
        diagnosis = subject.diagnosis
        link = incident_url(self._public_url, subject.message.incident)
        text = clip(render(diagnosis, "text", width=100, color=False, verbose=False), BODY)
        markdown = render(diagnosis, "markdown")
        report = tracker.quote(markdown if len(markdown) <= BODY else fence(text), text)
        body = "\n\n".join(part for part in (link, report, tracker.mark(_digest(first.topic))) if part)
        root = diagnosis.root_cause
        # The title of a cause has no rank: the next job fails on another one.
        title = root.title if root and not root.alongside else phrases.headline(diagnosis)
        title = clip(sanitize_line(title), TITLE)
        issue = tracker.create(title, body, (*target.labels, label))
        if label not in issue.labels:  # the next occurrence would open another issue
            raise Undelivered(
                f"the tracker did not set the label {label} on {issue.address or issue.number}",
                hint="set it by hand and let the token set labels, then `triage outbox retry`",
            )
        return issue


def _comment(tracker: Tracker, issue: Issue, occurrences: list[Repeat]) -> None:
    """Add one comment with all occurrences that neither the issue nor a comment has."""
    text = "\n".join([issue.body, *tracker.comments(issue.number)])
    missing = [item for item in occurrences if tracker.mark(_digest(item.topic)) not in text]
    if not missing:
        return
    lines = [
        f"- {inline(item.job or item.topic)}" + (f", {inline(phrases.format_hosts(item.hosts))}" if item.hosts else "")
        for item in missing[:LISTED]
    ]
    more = [f"- and {len(missing) - LISTED} more"] if len(missing) > LISTED else []
    head = f"The same again ({len(occurrences)} times in all):"
    marks = "".join(tracker.mark(_digest(item.topic)) for item in missing)
    tracker.comment(issue.number, "\n".join([head, "", *lines, *more, "", marks]))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
