"""One event of a watch: a few lines for people, one line of JSON for programs."""

from __future__ import annotations

import datetime
import json as encoder
from typing import Any

from triage.model.watch import Episode, News
from triage.render import json as report
from triage.render import words
from triage.render.safe import safe_line

TITLES = {
    "failure": "FAILED",
    "revised": "REVISED",
    "recovered": "GOES ON",
    "silent": "SILENT",
    "back": "BACK",
    "slow": "SLOW",
    "usual": "AS BEFORE",
    "stalled": "STALLED",
    "resumed": "RESUMED",
}


def text(event: News) -> str:
    """For a terminal or a log: the time, what, on which rank, where it shows, what to do."""
    when = datetime.datetime.fromtimestamp(event.at, datetime.UTC).strftime("%H:%M:%SZ")
    lines = [f"{when} {TITLES[event.kind]:9} {_headline(event)}"]
    root = event.diagnosis.root_cause if event.diagnosis else None
    if root is not None:
        if root.evidence:
            fact = root.evidence[0]
            lines.append(f"{fact.source}:{fact.line}: {fact.text.splitlines()[-1] if fact.text else ''}")
        lines += root.why[:1] if not root.signature else ()
        if root.remediation.summary:
            lines.append(f"to do: {root.remediation.summary}")
    return "\n  ".join(safe_line(line) for line in lines) + "\n"


def _headline(event: News) -> str:
    root = event.diagnosis.root_cause if event.diagnosis else None
    if root is None:
        return event.text + (f" (on {', '.join(event.hosts)})" if event.hosts else "")
    who = words.ranks(root.ranks) if root.ranks else "no rank can be named"
    hosts = f" on {', '.join(root.hosts)}" if root.hosts else ""
    named = f" [{root.signature}]" if root.signature else ""
    return f"{who}{hosts}: {root.title}{named}, confidence {words.confidence(root.confidence)}"


def json(event: News) -> str:
    """One line: `triage.watch/1`. `diagnosis` is the report of DESIGN.md, or null for what is about the pace."""
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
        "diagnosis": encoder.loads(report.render(event.diagnosis)) if event.diagnosis else None,
    }
    return encoder.dumps(body, ensure_ascii=False) + "\n"


def episode(told: Episode) -> dict[str, Any]:
    """What JSON takes of an episode; `read_episode` reads it."""
    news = [
        {"event": item.kind, "at": item.at, "text": item.text, "ranks": [*item.ranks], "hosts": [*item.hosts]}
        for item in told.news
    ]
    return {"news": news, "wrong": sorted(told.wrong)}


def read_episode(told: Any) -> Episode:
    """Raises LookupError, TypeError or ValueError for what is none."""
    news = tuple(
        News(
            item["event"],
            float(item["at"]),
            str(item["text"]),
            tuple(map(int, item["ranks"])),
            hosts=tuple(map(str, item["hosts"])),
        )
        for item in told["news"]
    )
    if not news or any(item.kind not in TITLES for item in news):
        raise ValueError("no news")
    return Episode(news, frozenset(map(str, told["wrong"])))
