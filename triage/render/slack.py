"""The report for Slack, as Block Kit: one short message, and its evidence for the thread below it.

Log text stays text: `&`, `<` and `>` are escaped (so that no `<!channel>` notifies anybody), markup characters stand
between zero-width spaces, a fence inside a fence is broken, and every text is `verbatim`. Limits: 50 blocks and 3000
characters a section by Slack's documents; a message stays under 12,000 characters of text, because Slack refuses it
somewhat above 13,000.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from triage.base.lazy_re import lazy_re
from triage.model import Diagnosis, Evidence, Finding
from triage.render import job_warnings, phrases
from triage.render.json import dump_json
from triage.render.sanitize import clip, sanitize_line

__all__ = ["Message", "address", "block", "context", "fence", "message", "mrkdwn", "name", "render", "thread", "within"]

name = "slack"

Message = dict[str, Any]
"""`text` for notifications, and `blocks`."""

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
    "INCONCLUSIVE": ":grey_question:",
    "CLEAN": ":white_check_mark:",
}
_BREAK = "\u200b"
# Slack reads a mark as markup only at the edge of a word, so that names like num_workers can stay as they are, to be
# copied.
_MARKUP = lazy_re(r"`|(?<!\w)[*_~](?=\S)|(?<=\S)[*_~](?!\w)")
_EMOJI = lazy_re(r":(?!\d\d:)(?=[A-Za-z0-9_+'-]+:)")
_ADDRESS = lazy_re(r"https?://[A-Za-z0-9\[][^\s<>|\"'`\\^{}]{0,2000}")


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False, link: str = "") -> str:
    """Return a JSON object with the `message` and the `thread` reply, each as chat.postMessage takes it."""
    return dump_json({"message": message(diagnosis, link=link), "thread": thread(diagnosis)})


def message(
    diagnosis: Diagnosis, *, link: str = "", incident: str = "", team: str = "", notes: Sequence[str] = ()
) -> Message:
    """Return the first message of a thread: cause, confidence, ranks, time, advice, link; buttons for an incident.

    `notes` are further lines at the end, in Slack's markup. `team` is the id of a user group to notify.
    """
    root = diagnosis.root_cause
    kind = phrases.verdict_kind(diagnosis)
    head = [f"{_MARKS[kind]} *{kind.capitalize()}:* {mrkdwn(phrases.headline(diagnosis), 900)}"]
    if root is not None and kind != "CLEAN":
        confidence = f"{phrases.confidence_level(root.confidence)} confidence" if kind == "ROOT CAUSE" else ""
        name = _code(root.signature or root.cluster or "", 120)
        mention = f"<!subteam^{team}>" if team else ""
        head.append(
            " · ".join(
                part for part in (mrkdwn(phrases.describe_extent(diagnosis), 400), confidence, name, mention) if part
            )
        )
    blocks = [block("\n".join(part for part in head if part))]
    advice = _advice(diagnosis)
    if advice:
        blocks.append(block(f"*What to do:* {mrkdwn(advice, 1500)}"))
    foot = [mrkdwn(phrases.describe_job(diagnosis.job), 400), _linked(link, incident or "report")]
    blocks.append(context([" · ".join(part for part in foot if part) or "triage", *notes]))
    if incident and kind != "CLEAN":
        blocks.append(_buttons(incident))
    return within({"text": _fallback(diagnosis), "blocks": blocks})


def thread(diagnosis: Diagnosis) -> Message:
    """Return the reply in the thread: log lines with their places, reasons, and what else was considered."""
    root = diagnosis.root_cause
    blocks: list[dict[str, Any]] = []
    evidence = phrases.distinct_evidence(root) if root is not None else []
    blocks += [block(_proof(item, diagnosis)) for item in evidence[:PROOFS]]
    more = len(evidence) - PROOFS
    if more > 0:
        blocks.append(context([f"and {phrases.format_count(more, 'more line')} like these"]))
    groups = phrases.group_findings(diagnosis)
    advice = _advice(diagnosis)
    blocks += _listed("Why", [mrkdwn(reason, 400) for reason in phrases.root_reasons(diagnosis) if reason != advice])
    blocks += _listed("Steps", [mrkdwn(step, 400) for step in root.remediation.steps] if root is not None else [])
    blocks += _listed("It caused", _caused(groups.caused, diagnosis))
    blocks += _listed(phrases.considered_label(diagnosis), list(map(_finding, groups.considered)))
    blocks += _listed("Their consequences", _names(groups.aftermath))
    blocks += _listed("Unknown", list(map(_finding, phrases.other_unknowns(diagnosis))))
    blocks += _listed("Warnings", [mrkdwn(text, 300) for _, text, _ in job_warnings.merge_warnings(diagnosis)])
    if not blocks:
        blocks.append(block("The report quotes no log line."))
    return within({"text": f"Evidence: {_fallback(diagnosis)}", "blocks": blocks})


def within(message: Message) -> Message:
    """Return the message with as many of its blocks as Slack takes, and the number of those left out."""
    blocks: list[dict[str, Any]] = []
    total = 0
    for number, item in enumerate(message["blocks"]):
        total += size(item)
        if total > TOTAL - 200 or (len(blocks) == BLOCKS - 1 and number < len(message["blocks"]) - 1):
            left_out = phrases.format_count(len(message["blocks"]) - number, "more part")
            blocks.append(context([f"{left_out} left out"]))
            break
        blocks.append(item)
    return {**message, "blocks": blocks}


def size(item: Any) -> int:
    """Return the number of characters of all texts in a block."""
    if isinstance(item, dict):
        return sum(
            len(value) if key in ("text", "value", "url") and isinstance(value, str) else size(value)
            for key, value in item.items()
        )
    return sum(map(size, item)) if isinstance(item, list) else 0


def mrkdwn(text: str, limit: int) -> str:
    """Return text of one line that stays text, at most `limit` characters with its escapes."""
    return _fitted(sanitize_line(text), limit, _inert)


def fence(text: str, limit: int) -> str:
    """Return log text in a fence that nothing in it closes, at most `limit` characters with the fence."""
    lines = phrases.shorten_lines(text, LINES, first=8)
    inner = _fitted(
        "\n".join(line.rstrip() for line in lines), limit - 8, lambda cut: _escape(re.sub("`(?=`)", f"`{_BREAK}", cut))
    )
    return f"```\n{inner}\n```"


def block(text: str) -> dict[str, Any]:
    """Return a section block; the text has at most 3000 characters."""
    return {"type": "section", "text": _text(text)}


def context(texts: Iterable[str]) -> dict[str, Any]:
    """Return a context block (small print) of at most ten texts."""
    return {"type": "context", "elements": [_text(text) for text in list(texts)[:10]]}


def address(link: str) -> str:
    """Return the link if it is a plain web address, else nothing."""
    return link if _ADDRESS.fullmatch(link) else ""


def _text(text: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _inert(text: str) -> str:
    return _escape(_EMOJI.sub(f":{_BREAK}", _MARKUP.sub(rf"{_BREAK}\g<0>{_BREAK}", text)))


def _fitted(text: str, limit: int, write: Callable[[str], str]) -> str:
    """Return what `write` makes of the text; its middle is left out until it fits."""
    room = limit
    while len(written := write(clip(text, room))) > limit:
        room = min(room - 1, room * limit // len(written))
    return written


def _code(text: str, limit: int) -> str:
    inner = _fitted(sanitize_line(text).replace("`", "'"), limit - 2, _escape)
    return f"`{inner}`" if inner else ""


def _linked(link: str, title: str) -> str:
    target = address(link)
    return f"<{_escape(target)}|{mrkdwn(title, 100)}>" if target else _code(title, 100) if title != "report" else ""


def _advice(diagnosis: Diagnosis) -> str:
    root = diagnosis.root_cause
    if diagnosis.inconclusive is not None:
        return "; ".join([*diagnosis.inconclusive.why, *diagnosis.inconclusive.next_steps[:1]])
    if root is None or diagnosis.verdict == "clean":
        return ""
    reasons = phrases.root_reasons(diagnosis) if phrases.verdict_kind(diagnosis) == "SYMPTOMS ONLY" else []
    steps = phrases.next_steps(diagnosis)
    return root.remediation.summary or (f"Next time: {'; '.join(steps)}" if steps else "".join(reasons[-1:]))


def _fallback(diagnosis: Diagnosis) -> str:
    parts = [
        f"{phrases.verdict_kind(diagnosis).capitalize()}: {phrases.headline(diagnosis)}",
        phrases.describe_extent(diagnosis) if diagnosis.verdict != "clean" else "",
    ]
    return mrkdwn(" · ".join(part for part in parts if part), FALLBACK)


def _buttons(incident: str) -> dict[str, Any]:
    buttons = [
        {
            "type": "button",
            "action_id": f"triage.{title.lower()}",
            "text": {"type": "plain_text", "text": title},
            "value": incident[:200],
        }
        for title in ("Agree", "Wrong", "Mute")
    ]
    return {"type": "actions", "block_id": f"triage.{incident[:200]}", "elements": buttons}


def _proof(item: Evidence, diagnosis: Diagnosis) -> str:
    origin = [
        f"rank {rank}" if (rank := phrases.writer_rank(item)) is not None else "",
        item.origin.host or "",
        phrases.format_time(item.origin.time, diagnosis),
    ]
    place = _code(phrases.format_place(item, diagnosis), 300)
    head = " · ".join(part for part in (place, mrkdwn(" ".join(part for part in origin if part), 200)) if part)
    return f"{head}\n{fence(item.text, QUOTED)}"


def _caused(findings: Sequence[Finding], diagnosis: Diagnosis) -> list[str]:
    sentence = phrases.describe_consequences(diagnosis)
    return [f"{sentence}: {names}" if sentence else names for names in _names(findings)]


def _names(findings: Sequence[Finding], most: int = 8) -> list[str]:
    """Return the findings by name as one line, or nothing."""
    names = [_code(finding.signature or finding.cluster or "no name", 120) for finding in findings]
    return [phrases.shorten_list(names, most)] if findings else []


def _finding(finding: Finding) -> str:
    return f"{_code(finding.signature or finding.cluster or 'no name', 120)} {mrkdwn(finding.title, 200)}"


def _listed(title: str, lines: Sequence[str], most: int = 5) -> list[dict[str, Any]]:
    if not lines:
        return []
    more = [f"• and {len(lines) - most} more"] if len(lines) > most else []
    return [block("\n".join([f"*{title}*", *(f"• {line}" for line in lines[:most]), *more]))]
