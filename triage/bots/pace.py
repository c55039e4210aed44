"""The pace of a job that is watched, told like a failure: one message an episode, edited while it lasts and when it is
over.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from triage.bots.interface import Undelivered
from triage.bots.routing import PACE, Facts
from triage.model.watch import Episode, News
from triage.render.watch import episode, read_episode
from triage.store.outbox import Post
from triage.store.told import Message


@dataclass(frozen=True, slots=True)
class Pace:
    """An episode of one job."""

    job: str
    path: str
    episode: Episode

    @property
    def cause(self) -> str:
        """What makes two episodes the same: how it began, and with which ranks."""
        first = self.episode.news[0]
        return f"{PACE}.{first.kind}" + (f":{','.join(map(str, first.ranks))}" if first.ranks else "")

    def facts(self) -> Facts:
        """What routes ask for; patterns of signatures see `pace.silent`, `pace.slow` or `pace.stalled`."""
        hosts = tuple(dict.fromkeys(host for news in self.episode.news for host in news.hosts))
        return Facts(PACE, self.cause.partition(":")[0], "", 0.0, hosts, self.job, self.path)

    def report(self) -> str:
        """As a message keeps it, and a webhook sends it."""
        return json.dumps({"job": self.job, "path": self.path, **episode(self.episode)}, ensure_ascii=False)

    @property
    def newest(self) -> News:
        """What was said last."""
        return self.episode.news[-1]


def is_pace(message: Message) -> bool:
    """Is the message about the pace of a job?"""
    return message.cause.startswith(f"{PACE}.")


def of(post: Post, message: Message) -> Pace:
    """What the message is about. Raises Undelivered when it cannot be read."""
    try:
        report = json.loads(message.report or "")
        return Pace(str(report["job"]), str(report["path"]), read_episode(report))
    except (LookupError, TypeError, ValueError):
        raise Undelivered("what was to be told cannot be read", hint=f"`triage outbox drop {post.id}`") from None
