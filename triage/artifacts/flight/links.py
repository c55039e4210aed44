"""Point to point calls that do not find their other side, as places where a rank waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from triage.artifacts.flight.grid import comparable
from triage.artifacts.flight.model import Recording
from triage.artifacts.flight.p2p import Pair, pairs

Kind = Literal["no-receive", "no-send", "wrong-target", "wrong-source", "sizes-differ", "stuck"]


@dataclass(frozen=True, slots=True)
class Link:
    """`waiting` stand in the call of `pair`, `absent` is the side that is not there; `odd` where the calls themselves
    are wrong.
    `instead` is the rank that the call should have named, if the dumps tell."""

    kind: Kind
    pair: Pair
    waiting: frozenset[int]
    absent: frozenset[int] = frozenset()
    odd: frozenset[int] = frozenset()
    instead: int | None = None

    @property
    def row(self) -> int:
        return self.pair.send if self.pair.send >= 0 else self.pair.recv


def links(recording: Recording) -> list[Link]:
    """What is wrong between pairs of ranks. Pairs that fit and merely stand behind something wrong are left out."""
    open_ = pairs(recording)
    if not open_:
        return []
    lone_sends = [pair for pair in open_ if pair.recv < 0]
    lone_recvs = [pair for pair in open_ if pair.send < 0]
    found: list[Link] = []
    for pair in lone_sends:
        wanted = [other for other in lone_recvs if other.source == pair.source and other.group == pair.group]
        if wanted:
            waiting = frozenset((pair.source, wanted[0].target))
            found.append(Link("wrong-target", pair, waiting, odd=frozenset((pair.source,)), instead=wanted[0].target))
        else:
            found.append(Link("no-receive", pair, frozenset((pair.source,)), frozenset((pair.target,))))
    astray = {link.pair for link in found if link.kind == "wrong-target"}
    explained = {(link.pair.source, link.instead) for link in found if link.instead is not None}
    for pair in lone_recvs:
        if (pair.source, pair.target) in explained:
            continue
        offered = [
            other
            for other in lone_sends
            if other not in astray and other.target == pair.target and other.group == pair.group
        ]
        if offered:
            waiting = frozenset((pair.target, offered[0].source))
            found.append(Link("wrong-source", pair, waiting, odd=frozenset((pair.target,)), instead=offered[0].source))
        else:
            found.append(Link("no-send", pair, frozenset((pair.target,)), frozenset((pair.source,))))
    answered = {(link.instead, link.pair.target) for link in found if link.kind == "wrong-source"}
    found = [
        link for link in found if not (link.kind == "no-receive" and (link.pair.source, link.pair.target) in answered)
    ]
    found += [
        Link("sizes-differ", pair, _both(pair), odd=_both(pair)) for pair in open_ if _sizes_differ(recording, pair)
    ]
    if not found:
        found = [Link("stuck", pair, _both(pair), odd=_both(pair)) for pair in open_]
    return found


def _both(pair: Pair) -> frozenset[int]:
    return frozenset((pair.source, pair.target))


def _sizes_differ(recording: Recording, pair: Pair) -> bool:
    if pair.send < 0 or pair.recv < 0:
        return False
    table = recording.table
    sent, taken = (recording.shapes[int(table.shape[row])] for row in (pair.send, pair.recv))
    out = comparable("", sent)
    into = comparable("scatter", taken) or comparable("", taken)
    return out != into or table.dtype[pair.send] != table.dtype[pair.recv]
