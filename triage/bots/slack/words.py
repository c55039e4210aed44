"""What the bot says beside the diagnosis: the foot of a message, the count of repeats, the digest of a day, answers to
commands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from triage.bots.pace import Pace
from triage.model.store import Incident, Remembered
from triage.render import words
from triage.render.slack import Message as Shown
from triage.render.slack import block, context, mrkdwn, within
from triage.render.watch import TITLES
from triage.store.search import Hit, Likeness
from triage.store.told import Again, Message

DIGEST = "digest"
LISTED = 10


def notes(remembered: Remembered | None, muted: tuple[float, str] | None) -> list[str]:
    """Lines for the foot: who agreed, who said that it is wrong and why, what it was held for before, who muted it."""
    told: list[str] = []
    for verdict, said in (("agree", "Agreed by"), ("wrong", "Wrong, say")):
        found = [item for item in (remembered.feedback if remembered is not None else ()) if item.verdict == verdict]
        if found:
            names = list(dict.fromkeys(item.actor for item in found))
            because = next((f": {item.because}" for item in reversed(found) if item.because), "")
            told.append(mrkdwn(f"{said} {', '.join(names[:5])}{because}", 600))
    if remembered is not None and remembered.history:
        told.append(mrkdwn(f"Before: {remembered.history[-1].old}", 300))
    if muted is not None:
        told.append(mrkdwn(f"Muted here by {muted[1]} until {_day(muted[0])}", 300))
    return told


def again(message: Message, repeats: Sequence[Again]) -> Shown:
    """The count of the same failure since, for the thread."""
    counts = Counter(
        host for hosts in [message.hosts, *(item.hosts for item in repeats)] for host in dict.fromkeys(hosts)
    )
    twice = ", ".join(f"{mrkdwn(host, 80)} {_times(count)}" for host, count in counts.most_common(5) if count > 1)
    head = f"The same {words.plural(len(repeats), 'more time')}" + (f": {twice}" if twice else "")
    lines = [f"• {mrkdwn(item.job or item.topic, 120)}, {_day(item.at)}" for item in repeats[-LISTED:]]
    return within({"text": head, "blocks": [block("\n".join([head, *lines]))]})


def digest(day: str, incidents: Sequence[Incident]) -> Shown:
    """`5 jobs, 3 causes, node17 twice`, and the causes by their number."""
    failed = [item for item in incidents if item.verdict != "clean"]
    causes = Counter(item.signature or item.name or item.cluster or "symptoms only" for item in failed)
    hosts = Counter(host for item in failed for host in dict.fromkeys(item.hosts))
    twice = [f"{mrkdwn(host, 80)} {_times(count)}" for host, count in hosts.most_common(5) if count > 1]
    jobs = len({item.job for item in failed})
    head = ", ".join([words.plural(jobs, "job"), words.plural(len(causes), "cause"), *twice])
    titles = {item.signature or item.name or item.cluster or "symptoms only": item.title for item in failed}
    lines = [
        f"• {count} × {mrkdwn(cause, 120)}: {mrkdwn(titles[cause], 160)}" for cause, count in causes.most_common(LISTED)
    ]
    more = [f"• and {len(causes) - LISTED} more causes"] if len(causes) > LISTED else []
    text = f"*{day}:* {head}"
    return within({"text": text, "blocks": [block(text), block("\n".join([*lines, *more]))]})


def pace(about: Pace, team: str = "") -> Shown:
    """What is out of step, or that nothing is any more, and what was said of it before."""
    newest = about.newest
    mark = (
        ":large_yellow_circle:"
        if about.episode.wrong
        else ":red_circle:"
        if newest.kind == "failure"
        else ":white_check_mark:"
    )
    ranks = (
        f"rank{'s' * (len(newest.ranks) > 1)} {words.rank_list(newest.ranks)}"
        if newest.ranks and not about.episode.wrong
        else ""
    )
    who = [mrkdwn(ranks, 200), mrkdwn(words.hosts(newest.hosts), 200), f"<!subteam^{team}>" if team else ""]
    head = f"{mark} *{TITLES[newest.kind].capitalize()}:* {mrkdwn(newest.text, 900)}"
    blocks = [block("\n".join(filter(None, [head, " · ".join(filter(None, who))])))]
    if about.episode.wrong:
        blocks.append(
            block(
                "*What to do:* look at it while it lasts; `triage collect` on the host keeps the stacks of its ranks."
            )
        )
    before = [
        f"{_clock(item.at)} {TITLES[item.kind].capitalize()}: {mrkdwn(item.text, 200)}"
        for item in about.episode.news[:-1][-LISTED:]
    ]
    blocks.append(
        context([" · ".join([mrkdwn(about.job, 200), _clock(newest.at)]), *(["\n".join(before)] if before else [])])
    )
    return within({"text": mrkdwn(f"{TITLES[newest.kind].capitalize()}: {newest.text}", 600), "blocks": blocks})


def hits(asked: str, found: Sequence[Hit], public_url: str) -> Shown:
    """The answer to `search`."""
    if not found:
        return plain(f"Nothing has “{mrkdwn(asked, 200)}”.")
    lines = [
        _line(hit.incident, public_url) + f"\n  {mrkdwn(hit.snippet.replace(chr(2), '').replace(chr(3), ''), 200)}"
        for hit in found[:LISTED]
    ]
    return within({"text": f"{words.plural(len(found), 'incident')} found", "blocks": [block(line) for line in lines]})


def likenesses(asked: str, found: Sequence[Likeness], public_url: str) -> Shown:
    """The answer to `similar`, with what people said then."""
    if not found:
        return plain(f"Nothing is like {mrkdwn(asked, 100)}.")
    blocks = []
    for item in found[:LISTED]:
        said = "".join(f"\n  {mrkdwn(sentence, 300)}" for sentence in item.said[-2:])
        blocks.append(block(f"{_line(item.incident, public_url)} ({mrkdwn(item.why, 100)}){said}"))
    return within({"text": f"{words.plural(len(found), 'incident')} like {mrkdwn(asked, 100)}", "blocks": blocks})


def plain(text: str) -> Shown:
    """A sentence of ours, in Slack's markup."""
    return {"text": text, "blocks": [block(text)]}


def usage(command: str) -> Shown:
    """What the command understands."""
    name = mrkdwn(command, 40)
    return plain(
        f"`{name} search WORDS` finds incidents, `{name} show ID` shows one, `{name} similar ID` shows those like it."
    )


def modal(incident: str, metadata: str) -> dict[str, Any]:
    """The question after `Wrong`."""
    return {
        "type": "modal",
        "callback_id": "triage.wrong",
        "private_metadata": metadata,
        "title": {"type": "plain_text", "text": "What was it really?"},
        "submit": {"type": "plain_text", "text": "Send"},
        "close": {"type": "plain_text", "text": "Cancel"},
        "blocks": [
            context([f"Incident {mrkdwn(incident, 100)}. It stays there and helps those who meet the same again."]),
            _question("because", "What it was, and how you know", multiline=True),
            {**_question("signature", "Id of the signature, if you know it"), "optional": True},
        ],
    }


def _question(name: str, label: str, *, multiline: bool = False) -> dict[str, Any]:
    element = {"type": "plain_text_input", "action_id": name, "multiline": multiline, "max_length": 2000}
    return {"type": "input", "block_id": name, "label": {"type": "plain_text", "text": label}, "element": element}


def _line(incident: Incident, public_url: str) -> str:
    from triage.bots.subject import link
    from triage.render.slack import address

    found = address(link(public_url, incident.id))
    name = f"<{found}|{incident.id}>" if found else f"`{incident.id}`"
    cause = incident.signature or incident.name or incident.cluster or incident.verdict
    return f"{name} {_day(incident.at)} {mrkdwn(cause, 120)}: {mrkdwn(incident.title, 200)} ({mrkdwn(incident.job_name, 80)})"


def _day(seconds: float) -> str:
    when = words.moment(seconds)
    return when.strftime("%Y-%m-%d %H:%M") if when is not None else ""


def _clock(seconds: float) -> str:
    when = words.moment(seconds)
    return f"{when:%H:%M:%S}Z" if when is not None else ""


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"
