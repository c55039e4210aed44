"""Texts of the Slack bot besides the diagnosis: footer, repeats, digest, pace, and answers to commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from triage.base.rank_ranges import format_ranks
from triage.bots.pace import PaceReport
from triage.bots.subject import incident_url
from triage.model.store import Incident, StoredIncident
from triage.render import phrases
from triage.render.slack import Message, address, block, context, mrkdwn, within
from triage.render.watch import TITLES
from triage.store.notifications import Notification, Repeat
from triage.store.search import SearchHit, SimilarIncident

DIGEST = "digest"
MAX_LISTED = 10


def footer_notes(incident: StoredIncident | None, muted: tuple[float, str] | None) -> list[str]:
    """Return the lines of the footer: feedback, the earlier diagnosis, and who muted the cause until when."""
    lines: list[str] = []
    feedback = incident.feedback if incident is not None else ()
    for verdict, label in (("agree", "Marked as right by"), ("wrong", "Marked as wrong by")):
        items = [item for item in feedback if item.verdict == verdict]
        if items:
            names = list(dict.fromkeys(item.actor for item in items))
            because = next((f": {item.because}" for item in reversed(items) if item.because), "")
            lines.append(mrkdwn(f"{label} {', '.join(names[:5])}{because}", 600))
    if incident is not None and incident.history:
        lines.append(mrkdwn(f"Earlier diagnosis: {incident.history[-1].old}", 300))
    if muted is not None:
        lines.append(mrkdwn(f"Muted here by {muted[1]} until {_format_day(muted[0])}", 300))
    return lines


def repeats(message: Notification, repeats: Sequence[Repeat]) -> Message:
    """Return the reply that counts the repeats of a failure."""
    frequent = ", ".join(_frequent_hosts([message.hosts, *(item.hosts for item in repeats)]))
    head = f"The same {phrases.format_count(len(repeats), 'more time')}" + (f": {frequent}" if frequent else "")
    lines = [f"• {mrkdwn(item.job or item.topic, 120)}, {_format_day(item.at)}" for item in repeats[-MAX_LISTED:]]
    return within({"text": head, "blocks": [block("\n".join([head, *lines]))]})


def digest(day: str, incidents: Sequence[Incident]) -> Message:
    """Return the digest of a day: `5 jobs, 3 causes, node17 twice`, and the causes by frequency."""
    failed = [item for item in incidents if item.verdict != "clean"]
    titles = {_cause_of(item): item.title for item in failed}
    causes = Counter(map(_cause_of, failed))
    head = ", ".join(
        [
            phrases.format_count(len({item.job for item in failed}), "job"),
            phrases.format_count(len(causes), "cause"),
            *_frequent_hosts(item.hosts for item in failed),
        ]
    )
    lines = [
        f"• {count} × {mrkdwn(cause, 120)}: {mrkdwn(titles[cause], 160)}"
        for cause, count in causes.most_common(MAX_LISTED)
    ]
    if len(causes) > MAX_LISTED:
        lines.append(f"• and {phrases.format_count(len(causes) - MAX_LISTED, 'more cause')}")
    text = f"*{day}:* {head}"
    return within({"text": text, "blocks": [block(text), block("\n".join(lines))]})


def pace(report: PaceReport, team: str = "") -> Message:
    """Return the message of a pace episode: the newest event, what to do, and the earlier events."""
    newest, is_open = report.newest, bool(report.episode.problems)
    mark = "large_yellow_circle" if is_open else "red_circle" if newest.kind == "failure" else "white_check_mark"
    title = TITLES[newest.kind].capitalize()
    ranks = format_ranks(newest.ranks) if newest.ranks and not is_open else ""
    who = [mrkdwn(ranks, 200), mrkdwn(phrases.format_hosts(newest.hosts), 200), f"<!subteam^{team}>" if team else ""]
    head = f":{mark}: *{title}:* {mrkdwn(newest.text, 900)}"
    blocks = [block("\n".join(filter(None, [head, " · ".join(filter(None, who))])))]
    if is_open:
        blocks.append(block("*What to do:* run `triage collect` on the host now; it saves the stacks of its ranks."))
    before = [
        f"{_format_clock(event.at)} {TITLES[event.kind].capitalize()}: {mrkdwn(event.text, 200)}"
        for event in report.episode.events[:-1][-MAX_LISTED:]
    ]
    footer = " · ".join([mrkdwn(report.job, 200), _format_clock(newest.at)])
    blocks.append(context([footer, *(["\n".join(before)] if before else [])]))
    return within({"text": mrkdwn(f"{title}: {newest.text}", 600), "blocks": blocks})


def search_results(query: str, hits: Sequence[SearchHit], public_url: str) -> Message:
    """Return the answer to `search`."""
    if not hits:
        return plain(f"No incident contains “{mrkdwn(query, 200)}”.")
    lines = [
        _format_incident(hit.incident, public_url)
        + f"\n  {mrkdwn(hit.snippet.replace(chr(2), '').replace(chr(3), ''), 200)}"
        for hit in hits[:MAX_LISTED]
    ]
    text = f"{phrases.format_count(len(hits), 'incident')} found"
    return within({"text": text, "blocks": [block(line) for line in lines]})


def similar_incidents(query: str, similar: Sequence[SimilarIncident], public_url: str) -> Message:
    """Return the answer to `similar`, with the feedback on each incident."""
    if not similar:
        return plain(f"No incident is similar to {mrkdwn(query, 100)}.")
    blocks = []
    for item in similar[:MAX_LISTED]:
        notes = "".join(f"\n  {mrkdwn(sentence, 300)}" for sentence in item.feedback_notes[-2:])
        blocks.append(block(f"{_format_incident(item.incident, public_url)} ({mrkdwn(item.why, 100)}){notes}"))
    text = f"{phrases.format_count(len(similar), 'incident')} similar to {mrkdwn(query, 100)}"
    return within({"text": text, "blocks": blocks})


def plain(text: str) -> Message:
    """Return a message of one text in Slack's markup."""
    return {"text": text, "blocks": [block(text)]}


def usage(command: str) -> Message:
    """Return the help of the command."""
    name = mrkdwn(command, 40)
    return plain(
        f"`{name} search TEXT` finds incidents, `{name} show ID` shows one, `{name} similar ID` finds similar ones."
    )


def wrong_form(incident: str, metadata: str) -> dict[str, Any]:
    """Return the form that asks for a reason after `Wrong`."""
    return {
        "type": "modal",
        "callback_id": "triage.wrong",
        "private_metadata": metadata,
        "title": {"type": "plain_text", "text": "What was it really?"},
        "submit": {"type": "plain_text", "text": "Send"},
        "close": {"type": "plain_text", "text": "Cancel"},
        "blocks": [
            context([f"Incident {mrkdwn(incident, 100)}. Your answer stays with it and helps with similar failures."]),
            _input_block("because", "What it was, and how you know", multiline=True),
            {**_input_block("signature", "Id of the signature, if you know it"), "optional": True},
        ],
    }


def _input_block(name: str, label: str, *, multiline: bool = False) -> dict[str, Any]:
    element = {"type": "plain_text_input", "action_id": name, "multiline": multiline, "max_length": 2000}
    return {"type": "input", "block_id": name, "label": {"type": "plain_text", "text": label}, "element": element}


def _format_incident(incident: Incident, public_url: str) -> str:
    url = address(incident_url(public_url, incident.id))
    name = f"<{url}|{incident.id}>" if url else f"`{incident.id}`"
    cause = incident.signature or incident.name or incident.cluster or incident.verdict
    title, job = mrkdwn(incident.title, 200), mrkdwn(incident.job_name, 80)
    return f"{name} {_format_day(incident.at)} {mrkdwn(cause, 120)}: {title} ({job})"


def _format_day(seconds: float) -> str:
    when = phrases.to_datetime(seconds)
    return when.strftime("%Y-%m-%d %H:%M") if when is not None else ""


def _format_clock(seconds: float) -> str:
    when = phrases.to_datetime(seconds)
    return f"{when:%H:%M:%S}Z" if when is not None else ""


def _frequent_hosts(host_lists: Iterable[Sequence[str]]) -> list[str]:
    """Return the hosts that occur in several lists: `node17 twice`."""
    return [
        f"{mrkdwn(host, 80)} {'twice' if count == 2 else f'{count} times'}"
        for host, count in Counter(host for hosts in host_lists for host in dict.fromkeys(hosts)).most_common(5)
        if count > 1
    ]


def _cause_of(incident: Incident) -> str:
    return incident.signature or incident.name or incident.cluster or "symptoms only"
