"""For a Slack channel: one short message, and its evidence for the thread below it, as Block Kit.

Log text stays text: `&`, `<` and `>` are escaped (so that no `<!channel>` pings anybody), signs that Slack reads as
markup stand between
zero-width spaces, a fence inside a fence is broken, and every text is `verbatim`. Limits: 50 blocks and 3000 characters
a section by Slack's documents; a message is kept under 12,000 characters of text, for Slack refuses it somewhat above
13,000.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from triage.base.lazy_re import lazy_re
from triage.model.diagnosis import Diagnosis, Finding
from triage.model.evidence import Evidence
from triage.render import words
from triage.render.json import escaped as safe_json
from triage.render.safe import clip, safe, safe_line

__all__ = ["Message", "address", "block", "context", "fence", "message", "mrkdwn", "name", "render", "thread", "within"]

name = "slack"

Message = dict[str, Any]
"""`text`, what notifications show, and `blocks`."""

SECTION = 3000
BLOCKS = 50
TOTAL = 12_000
FALLBACK = 600
PROOFS = 4
QUOTED = 1600  # characters of one piece of evidence
LINES = 20
_MARKS = {
    "ROOT CAUSE": ":red_circle:",
    "UNKNOWN FAILURE": ":large_orange_circle:",
    "SYMPTOMS ONLY": ":large_yellow_circle:",
    "CLEAN": ":white_check_mark:",
}
_BREAK = "\u200b"
# Slack reads a mark as markup only at the edge of a word, so that names like num_workers can stay as they are, to be
# copied.
_MARKUP = lazy_re(r"`|(?<!\w)[*_~](?=\S)|(?<=\S)[*_~](?!\w)")
_EMOJI = lazy_re(r":(?!\d\d:)(?=[A-Za-z0-9_+'-]+:)")
_ADDRESS = lazy_re(r"https?://[A-Za-z0-9\[][^\s<>|\"'`\\^{}]{0,2000}")


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False, link: str = "") -> str:
    """A JSON object with the `message` and the `thread` reply, each as chat.postMessage takes it."""
    shown = {"message": message(diagnosis, link=link), "thread": thread(diagnosis)}
    return safe_json(json.dumps(shown, ensure_ascii=False, indent=2)) + "\n"


def message(
    diagnosis: Diagnosis, *, link: str = "", incident: str = "", team: str = "", notes: Sequence[str] = ()
) -> Message:
    """The parent: cause, confidence in words, who and when, the one sentence of advice, the link; with an incident also
    the buttons.

    `notes` are lines of our own for the foot, in Slack's markup. `team` is the id of a user group that is to be told.
    """
    root = diagnosis.root_cause
    kind = words.kind(diagnosis)
    head = [f"{_MARKS[kind]} *{kind.capitalize()}:* {mrkdwn(words.headline(diagnosis), 900)}"]
    if root is not None and kind != "CLEAN":
        sure = f"{words.certainty(root.confidence)} confidence" if kind == "ROOT CAUSE" else ""
        named = _code(root.signature or root.cluster or "", 120)
        called = f"<!subteam^{team}>" if team else ""
        head.append(" · ".join(part for part in (mrkdwn(words.radius(diagnosis), 400), sure, named, called) if part))
    blocks = [block("\n".join(part for part in head if part))]
    advice = _advice(diagnosis)
    if advice:
        blocks.append(block(f"*What to do:* {mrkdwn(advice, 1500)}"))
    foot = [mrkdwn(words.job(diagnosis.job), 400), _linked(link, incident or "report")]
    blocks.append(context([" · ".join(part for part in foot if part) or "triage", *notes]))
    if incident and kind != "CLEAN":
        blocks.append(_buttons(incident))
    return within({"text": _fallback(diagnosis), "blocks": blocks})


def thread(diagnosis: Diagnosis) -> Message:
    """The evidence: the lines with their places, the reasons, and what else was considered."""
    root = diagnosis.root_cause
    blocks: list[dict[str, Any]] = []
    for item in root.evidence[:PROOFS] if root is not None else ():
        blocks.append(block(_proof(item, diagnosis)))
    more = len(root.evidence) - PROOFS if root is not None else 0
    if more > 0:
        blocks.append(context([f"and {words.plural(more, 'more line')} like these"]))
    groups = words.groups(diagnosis)
    if root is not None:
        blocks += _listed("Why", [mrkdwn(sentence, 400) for sentence in root.why])
        blocks += _listed("Steps", [mrkdwn(step, 400) for step in root.remediation.steps])
    blocks += _listed("It caused", [_finding(finding) for finding in groups.caused])
    blocks += _listed("Also considered", [_finding(finding) for finding in groups.considered])
    blocks += _listed("Unknown", [_finding(finding) for finding in words.others(diagnosis)])
    blocks += _listed("Warnings", [mrkdwn(text, 300) for _, text, _ in words.warnings(diagnosis)])
    if not blocks:
        blocks.append(block("No line is kept as evidence."))
    return within({"text": f"Evidence: {_fallback(diagnosis)}", "blocks": blocks})


def within(made: Message) -> Message:
    """The message with as many of its blocks as Slack takes; what is left out is counted."""
    kept: list[dict[str, Any]] = []
    total = 0
    for number, item in enumerate(made["blocks"]):
        total += size(item)
        if total > TOTAL - 200 or (len(kept) == BLOCKS - 1 and number < len(made["blocks"]) - 1):
            kept.append(context([f"{words.plural(len(made['blocks']) - number, 'more part')} left out"]))
            break
        kept.append(item)
    return {**made, "blocks": kept}


def size(item: Any) -> int:
    """Characters of all texts in a block."""
    if isinstance(item, dict):
        return sum(
            len(value) if key in ("text", "value", "url") and isinstance(value, str) else size(value)
            for key, value in item.items()
        )
    return sum(map(size, item)) if isinstance(item, list) else 0


def mrkdwn(text: str, limit: int) -> str:
    """Text of one line that stays text, at most `limit` characters as it is sent."""
    return _fitted(safe_line(text), limit, _inert)


def fence(text: str, limit: int) -> str:
    """Log text in a fence that nothing in it closes, at most `limit` characters with the fence."""
    lines = safe(text).strip("\n").split("\n")
    if len(lines) > LINES:
        left = len(lines) - LINES
        lines = [*lines[:8], f"… {words.plural(left, 'more line')} …", *lines[8 + left :]]
    inner = _fitted(
        "\n".join(line.rstrip() for line in lines), limit - 8, lambda cut: _escape(re.sub("`(?=`)", f"`{_BREAK}", cut))
    )
    return f"```\n{inner}\n```"


def block(text: str) -> dict[str, Any]:
    """A section. Its text is at most 3000 characters by then."""
    return {"type": "section", "text": _text(text)}


def context(texts: Iterable[str]) -> dict[str, Any]:
    """Small print, ten pieces at most."""
    return {"type": "context", "elements": [_text(text) for text in list(texts)[:10]]}


def address(link: str) -> str:
    """The link if it is plainly a web address, else nothing."""
    return link if _ADDRESS.fullmatch(link) else ""


def _text(text: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _inert(text: str) -> str:
    return _escape(_EMOJI.sub(f":{_BREAK}", _MARKUP.sub(rf"{_BREAK}\g<0>{_BREAK}", text)))


def _fitted(text: str, limit: int, write: Callable[[str], str]) -> str:
    """What `write` makes of the text, whose middle gives way to a count until it fits."""
    room = limit
    while len(written := write(clip(text, room))) > limit:
        room = min(room - 1, room * limit // len(written))
    return written


def _code(text: str, limit: int) -> str:
    inner = _fitted(safe_line(text).replace("`", "'"), limit - 2, _escape)
    return f"`{inner}`" if inner else ""


def _linked(link: str, title: str) -> str:
    found = address(link)
    return f"<{_escape(found)}|{mrkdwn(title, 100)}>" if found else _code(title, 100) if title != "report" else ""


def _advice(diagnosis: Diagnosis) -> str:
    root = diagnosis.root_cause
    if root is None or diagnosis.verdict == "clean":
        return ""
    if root.remediation.summary:
        return root.remediation.summary
    return root.why[-1] if words.kind(diagnosis) == "SYMPTOMS ONLY" and root.why else ""


def _fallback(diagnosis: Diagnosis) -> str:
    told = [
        f"{words.kind(diagnosis).capitalize()}: {words.headline(diagnosis)}",
        words.radius(diagnosis) if diagnosis.verdict != "clean" else "",
    ]
    return mrkdwn(" · ".join(part for part in told if part), FALLBACK)


def _buttons(incident: str) -> dict[str, Any]:
    made = []
    for action, title in (("agree", "Agree"), ("wrong", "Wrong"), ("mute", "Mute")):
        made.append(
            {
                "type": "button",
                "action_id": f"triage.{action}",
                "text": {"type": "plain_text", "text": title},
                "value": incident[:200],
            }
        )
    return {"type": "actions", "block_id": f"triage.{incident[:200]}", "elements": made}


def _proof(item: Evidence, diagnosis: Diagnosis) -> str:
    said = [
        f"rank {item.origin.rank}" if item.origin.rank is not None else "",
        item.origin.host or "",
        words.clock(item.origin.time, diagnosis),
    ]
    head = " · ".join(
        part
        for part in (_code(words.place(item, diagnosis), 300), mrkdwn(" ".join(part for part in said if part), 200))
        if part
    )
    return f"{head}\n{fence(item.text, QUOTED)}"


def _finding(finding: Finding) -> str:
    return f"{_code(finding.signature or finding.cluster or 'no name', 120)} {mrkdwn(finding.title, 200)}"


def _listed(title: str, lines: Sequence[str], most: int = 5) -> list[dict[str, Any]]:
    if not lines:
        return []
    more = [f"• and {len(lines) - most} more"] if len(lines) > most else []
    return [block("\n".join([f"*{title}*", *(f"• {line}" for line in lines[:most]), *more]))]
