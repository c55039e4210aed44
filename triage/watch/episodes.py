"""News of the pace that belong together: from the first rank that falls out of step until none is, or until the job
fails.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from triage.model.watch import Episode, News, NewsKind

BEGIN: tuple[NewsKind, ...] = ("silent", "slow", "stalled")
END: tuple[NewsKind, ...] = ("back", "usual", "resumed")
_MOST = 20  # news of one episode that are kept


def after(episode: Episode | None, news: News) -> Episode | None:
    """The episode as it is with this news; the same one where the news is not about it."""
    going = episode if episode is not None and episode.wrong else None
    if news.kind in BEGIN:
        wrong = (going.wrong if going else frozenset()) | _names(news.kind, news.ranks)
    elif going is not None and news.kind in END:
        wrong = going.wrong - _names(BEGIN[END.index(news.kind)], news.ranks)
    elif going is not None and news.kind == "failure":
        wrong = frozenset()
    else:
        return episode
    said = (*(going.news if going else ()), dataclasses.replace(news, diagnosis=None))
    return Episode(said if len(said) <= _MOST else (said[0], *said[1 - _MOST :]), wrong)


def _names(kind: NewsKind, ranks: Iterable[int]) -> frozenset[str]:
    return frozenset(f"silent {rank}" for rank in ranks) if kind == "silent" else frozenset((kind,))
