"""Events of a watch: a few lines of text or one line of JSON each."""

from __future__ import annotations

import datetime
import json
from typing import Any

from triage.base.rank_ranges import format_ranks
from triage.model import Episode, Inconclusive, WatchEvent
from triage.render import json as json_report, phrases
from triage.render.sanitize import sanitize_line

_MOST_LINES = 3
TITLES = {
    "failure": "FAILED",
    "revised": "REVISED",
    "recovered": "GOES ON",
    "inconclusive": "INCONCLUSIVE",
    "silent": "SILENT",
    "back": "BACK",
    "slow": "SLOW",
    "usual": "NORMAL",
    "stalled": "STALLED",
    "resumed": "RESUMED",
}


def as_text(event: WatchEvent) -> str:
    """Return time, event, ranks, log line and advice, for a terminal or a log."""
    when = datetime.datetime.fromtimestamp(event.at, datetime.UTC).strftime("%H:%M:%SZ")
    lines = [f"{when} {TITLES[event.kind]:9} {_headline(event)}"]
    root = event.diagnosis.root_cause if event.diagnosis else None
    if root is not None:
        if root.evidence:
            fact = root.evidence[0]
            lines.append(f"{fact.source}:{fact.line}: {fact.text.splitlines()[-1] if fact.text else ''}")
        lines += phrases.root_reasons(event.diagnosis)[:1] if event.diagnosis and not root.signature else []
        if root.remediation.summary:
            lines.append(f"to do: {root.remediation.summary}")
    if event.kind == "inconclusive" and event.diagnosis is not None and event.diagnosis.inconclusive is not None:
        lines += _describe_end(event.diagnosis.inconclusive)
    return "\n  ".join(sanitize_line(line) for line in lines) + "\n"


def _describe_end(end: Inconclusive) -> list[str]:
    """Return where the logs end: the other reasons, the lines that are unlike all before, or the last lines."""
    shown = (end.unusual_lines or end.last_lines)[:_MOST_LINES]
    lines = [f"{line.source}{f':{line.line}' if line.line else ''}: {line.text}" for line in shown]
    return [*end.why[1:], *lines, *(f"to do: {step}" for step in end.next_steps[:1])]


def _headline(event: WatchEvent) -> str:
    root = event.diagnosis.root_cause if event.diagnosis else None
    if root is None:
        return event.text + (f" (on {', '.join(event.hosts)})" if event.hosts else "")
    ranks = format_ranks(root.ranks)
    hosts = f" on {', '.join(root.hosts)}" if root.hosts else ""
    signature = f" [{root.signature}]" if root.signature else ""
    return f"{ranks}{hosts}: {root.title}{signature}, confidence {phrases.format_confidence(root.confidence)}"


def as_json(event: WatchEvent) -> str:
    """Return one line of `triage.watch/1`; `diagnosis` is the JSON report, or null for an event about the pace."""
    body: dict[str, Any] = {
        "schema": "triage.watch/1",
        "event": event.kind,
        "at": datetime.datetime.fromtimestamp(event.at, datetime.UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z"),
        "text": event.text,
        "ranks": list(event.ranks),
        "hosts": list(
            event.diagnosis.root_cause.hosts if event.diagnosis and event.diagnosis.root_cause else event.hosts
        ),
        "attempt": event.attempt,
        "diagnosis": json.loads(json_report.render(event.diagnosis)) if event.diagnosis else None,
    }
    return json.dumps(body, ensure_ascii=False) + "\n"


def episode_as_dict(episode: Episode) -> dict[str, Any]:
    """Return an episode for a JSON file; `read_episode` is the inverse."""
    news = [
        {"event": item.kind, "at": item.at, "text": item.text, "ranks": [*item.ranks], "hosts": [*item.hosts]}
        for item in episode.events
    ]
    return {"news": news, "wrong": sorted(episode.problems)}


def read_episode(value: Any) -> Episode:
    """Return the episode; raises LookupError, TypeError or ValueError for anything else."""
    events = tuple(
        WatchEvent(
            item["event"],
            float(item["at"]),
            str(item["text"]),
            tuple(map(int, item["ranks"])),
            hosts=tuple(map(str, item["hosts"])),
        )
        for item in value["news"]
    )
    if not events or any(item.kind not in TITLES for item in events):
        raise ValueError("not an episode of a watch")
    return Episode(events, frozenset(map(str, value["wrong"])))
