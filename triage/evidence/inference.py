"""Facts that no line states: concluded from a dump, a stack, an environment, or from the ranks together.

Any module may hand them in with its other facts. The catalog matches them by `fields: {rule: …}`, and the graph of
causes treats them like
anything that a file says, except that a conclusion from silence weighs less than a line that states a cause.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from triage.model.evidence import Evidence, Origin

# What a conclusion stands on: `measured` (a dump, a number, a stack says it), or `silence` (somebody did not speak).
Ground = Literal["measured", "silence"]


def inferred(
    rule: str,
    ranks: Iterable[int],
    text: str,
    basis: Evidence,
    *,
    ground: Ground = "measured",
    component: str = "triage",
    **fields: str,
) -> list[Evidence]:
    """One inference for each rank it names (one without a rank if it names none), standing where its basis stands.

    `rule` is the name that signatures ask for, `text` the sentence with which a reader can check it against the files.
    `basis` is the
    evidence on which it stands: its place is shown, and its time and attempt are taken.
    """
    named = sorted(set(ranks))
    origins = [Origin(rank=rank, time=basis.origin.time, attempt=basis.origin.attempt) for rank in named]
    origins = origins or [Origin(time=basis.origin.time, attempt=basis.origin.attempt)]
    told = {"rule": rule, "ranks": ",".join(map(str, named)), "ground": ground, **fields}
    return [
        Evidence("inference", component, text, origin, basis.source, basis.offset, basis.end, told, basis.excerpt)
        for origin in origins
    ]
