"""The pace of a watched job as a message: one message per episode, edited while it lasts and when it is over."""

from __future__ import annotations

import json
from dataclasses import dataclass

from triage.bots.interface import Undelivered
from triage.bots.routing import PACE, RoutingFacts
from triage.model.watch import Episode, WatchEvent
from triage.render.watch import episode_as_dict, read_episode
from triage.store.notifications import Notification
from triage.store.outbox import Post


@dataclass(frozen=True, slots=True)
class PaceReport:
    """An episode of one job."""

    job: str
    path: str
    episode: Episode

    @property
    def cause(self) -> str:
        """What makes two episodes the same: the first problem and its ranks."""
        first = self.episode.events[0]
        return f"{PACE}.{first.kind}" + (f":{','.join(map(str, first.ranks))}" if first.ranks else "")

    def facts(self) -> RoutingFacts:
        """Return what routes match; signature patterns see `pace.silent`, `pace.slow` or `pace.stalled`."""
        hosts = tuple(dict.fromkeys(host for event in self.episode.events for host in event.hosts))
        return RoutingFacts(PACE, self.cause.partition(":")[0], "", 0.0, hosts, self.job, self.path)

    def as_json(self) -> str:
        """Return the JSON that a message stores and a webhook sends."""
        return json.dumps({"job": self.job, "path": self.path, **episode_as_dict(self.episode)}, ensure_ascii=False)

    @property
    def newest(self) -> WatchEvent:
        """The last event."""
        return self.episode.events[-1]


def is_pace(message: Notification) -> bool:
    """Return whether the message is about the pace of a job."""
    return message.cause.startswith(f"{PACE}.")


def read_pace(post: Post, message: Notification) -> PaceReport:
    """Read the report of a message. Raises Undelivered when it cannot be read."""
    try:
        report = json.loads(message.report or "")
        return PaceReport(str(report["job"]), str(report["path"]), read_episode(report))
    except (LookupError, TypeError, ValueError):
        raise Undelivered(
            "the stored notification cannot be read", hint=f"drop it with `triage outbox drop {post.id}`"
        ) from None
