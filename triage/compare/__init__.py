"""What all ranks say of the same thing, side by side: settings, values that must agree, memory. Differences become
evidence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from triage.compare.devices import UNHEALTHY
from triage.compare.environment import audit
from triage.compare.memory import imbalanced, out_of_memory
from triage.compare.rules import Rules, RulesError, load
from triage.compare.said import Read, said
from triage.compare.values import Values, diverged
from triage.evidence.collect import Harvest
from triage.evidence.inference import inferred
from triage.model.environment import Audit, Deviation
from triage.model.evidence import Evidence, Source, Warning
from triage.scan.interface import Scanned

__all__ = ["Rules", "RulesError", "inferences", "load", "look"]

GRAVE = ("error", "warning")
_NAMED = 4096  # ranks of one deviation that get a fact of their own


class Seen(NamedTuple):
    """`facts` are all that were gathered but dumps of settings, `settings` what is concluded from those."""

    facts: list[Evidence]
    settings: list[Evidence]
    audit: Audit


def look(
    texts: Sequence[tuple[Source, Scanned]],
    read_of: Callable[[Source, Scanned], Read],
    gathered: Harvest,
    artifacts: Sequence[Evidence],
    rules: Rules,
) -> Seen:
    """Compare the ranks of a job."""
    dumps = [fact for fact in artifacts if fact.kind == "environment"]
    gathered.job.sizes.update(
        int(size) for fact in dumps if "RANK" in fact.fields and (size := fact.fields.get("WORLD_SIZE", "")).isdecimal()
    )
    told = dumps + said(texts, read_of, gathered.year)
    found = audit(told, gathered.job, rules, gathered.versions)
    gathered.warnings.extend(
        Warning(item.rule, item.evidence[0].source, item.text) for item in found.deviations if item.rule == UNHEALTHY
    )
    facts = [*gathered.facts, *(fact for fact in artifacts if fact.kind != "environment")]
    memory = out_of_memory(facts)
    values = Values(texts, read_of, gathered, memory=memory)
    facts += diverged(values, facts)
    facts += imbalanced(values) if memory else []
    return Seen(facts, inferences(found), found)


def inferences(found: Audit) -> list[Evidence]:
    """What the audit found, as facts for the catalog: one for each odd rank. What is only worth knowing makes none, nor
    does the health of a
    device, for it was looked at some time before or after.
    """
    return [
        fact
        for deviation in found.deviations
        if deviation.severity in GRAVE and deviation.rule != UNHEALTHY
        for fact in _facts(deviation)
    ]


def _facts(deviation: Deviation) -> Iterable[Evidence]:
    """A deviation harms somehow, or not at all: it weighs no more than silence."""
    text = f"{deviation.text}: {deviation.why}" if deviation.why else deviation.text
    places = {place.origin.rank: place for place in deviation.evidence}
    for fact in inferred(deviation.rule, deviation.ranks[:_NAMED], text, deviation.evidence[0], ground="silence"):
        place = places.get(fact.origin.rank, deviation.evidence[0])
        at = {
            "source": place.source,
            "offset": place.offset,
            "end": place.end,
            "line": place.line,
            "end_line": place.end_line,
        }
        yield dataclasses.replace(fact, **at, excerpt=place.excerpt)  # type: ignore[arg-type]
