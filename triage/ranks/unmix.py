"""Tracebacks of several writers, mixed line by line without any prefix: which there were, and how often.

Nobody says who wrote a line, so a traceback is put together only where every way of sharing the lines out agrees on it.
That is counting: if
frames do not repeat within a traceback and calls do not go both ways, then a frame that stands as often as there are
tracebacks it can
belong to is in each of them. What can be shared out in several ways is left out, and the traceback is said to be
ambiguous.
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re

FRAME = lazy_re(r'\s*File "[^"]+", line \d+')
_CARETS = lazy_re(r"[\s~^]*$")
_END = 1 << 62


@dataclass(frozen=True, slots=True)
class Unmixed:
    """A traceback that `count` writers printed: `lines` are indices of one occurrence of each of its lines, `headline`
    of its exception.

    Not `decided`: it holds what all of them have in common, and nothing tells whose the other frames are.
    """

    lines: tuple[int, ...]
    headline: int
    count: int
    decided: bool


def unmix(
    texts: Sequence[str], is_header: Callable[[str], bool], is_exception: Callable[[str], bool], chains: Sequence[str]
) -> list[Unmixed]:
    """The tracebacks in `texts`, the lines of several writers in the order in which they stand, by the place of their
    first exception line.
    """
    headers = [index for index, text in enumerate(texts) if is_header(text)]
    joints = [index for index, text in enumerate(texts) if text.strip() in chains]
    ends: dict[str, list[int]] = defaultdict(list)
    body: dict[str, list[int]] = defaultdict(list)
    for index, text in enumerate(texts):
        if is_header(text) or text.strip() in chains or _CARETS.match(text):
            continue
        (ends if not FRAME.match(text) and is_exception(text) else body)[text.strip()].append(index)
    if not ends:
        return []
    if joints:
        whole = _chain(texts, headers, joints, ends, body)
        if whole is not None:
            return [whole]
    finished = sum(map(len, ends.values()))
    counts = {name: len(places) for name, places in ends.items()}
    last = {name: places[-1] for name, places in ends.items()}
    counts[""], last[""] = max(0, len(headers) - finished), _END  # tracebacks that break off
    belongs = {
        key: {name for name in counts if counts[name] and last[name] > places[0]} for key, places in body.items()
    }
    sure = {key for key, names in belongs.items() if sum(counts[name] for name in names) == len(body[key])}
    found = []
    for name, places in ends.items():
        own = [key for key in body if name in belongs[key]]
        order, undecided = _ordered([key for key in own if key in sure], body, belongs)
        undecided = undecided or any(key not in sure and FRAME.match(key) for key in own) or bool(joints)
        lines = (*headers[:1], *(body[key][0] for key in order), places[0])
        found.append(Unmixed(lines, places[0], len(places), not undecided and len(headers) in (0, finished)))
    return sorted(found, key=lambda part: part.headline)


def _ordered(keys: Sequence[str], body: dict[str, list[int]], belongs: dict[str, set[str]]) -> tuple[list[str], bool]:
    """Lines in the only order they can have had, and whether a frame had to go because it could stand in several
    places.
    """
    order: list[str] = []
    lost = False
    for key in sorted(keys, key=lambda key: (body[key][0], body[key][-1])):
        if order and not _before(order[-1], key, body, belongs):
            if FRAME.match(key):
                lost = True
            continue
        order.append(key)
    # A line of code without its frame right before it is a line of another frame.
    kept = [key for at, key in enumerate(order) if FRAME.match(key) or (at and FRAME.match(order[at - 1]))]
    return kept, lost


def _before(one: str, other: str, body: dict[str, list[int]], belongs: dict[str, set[str]]) -> bool:
    """Does `one` stand before `other` in every traceback that has both, however the lines are shared out?"""
    if body[one][-1] < body[other][0]:
        return True
    if not (belongs[one] <= belongs[other] or belongs[other] <= belongs[one]):
        return False
    return _can(body[one], body[other]) and not _can(body[other], body[one])


def _can(first: Sequence[int], second: Sequence[int]) -> bool:
    """Can all pairs be made with the first before the second? Of the rarer of both every place needs a partner of its
    own.
    """
    if len(first) >= len(second):
        return all(bisect.bisect(first, place) > index for index, place in enumerate(second))
    left = len(second)
    return all(left - bisect.bisect(second, place) >= len(first) - index for index, place in enumerate(first))


def _chain(
    texts: Sequence[str],
    headers: Sequence[int],
    joints: Sequence[int],
    ends: dict[str, list[int]],
    body: dict[str, list[int]],
) -> Unmixed | None:
    """Chained tracebacks of one kind, each of one joint: every line stands as often as the joint, the headers twice as
    often.
    """
    count = len(joints)
    links = {texts[index].strip() for index in joints}
    frames = {key: places for key, places in {**body, **ends}.items() if FRAME.match(key) or key in ends}
    if (
        len(links) != 1
        or len(ends) != 2
        or len(headers) != 2 * count
        or any(len(places) != count for places in frames.values())
    ):
        return None
    link = next(iter(links))
    every = {key: places for key, places in {**body, **ends, link: list(joints)}.items() if len(places) == count}
    order = sorted(every, key=lambda key: every[key][-1])
    if not all(_can(every[one], every[other]) for one, other in itertools.pairwise(order)):
        return None
    at = order.index(link)
    first, second = (key for key in order if key in ends)
    if not (order.index(first) == at - 1 and order[-1] == second):
        return None
    lines = (
        headers[0],
        *(every[key][0] for key in order[: at + 1]),
        headers[-1],
        *(every[key][-1] for key in order[at + 1 :]),
    )
    return Unmixed(lines, every[second][-1], count, True)
