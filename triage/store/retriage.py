"""After a change of the catalog: what is stored is asked again, and what is held for something else now says so.

Only excerpts are stored, so less can be said than by a new ingest: a stored diagnosis is changed where the catalog
speaks otherwise about
the same lines, and a cause whose signature is unchanged is never taken back.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from triage.catalog.match import Match, Matcher
from triage.catalog.model import Catalog, Signature
from triage.diagnose import diagnose, report
from triage.model.diagnosis import Diagnosis, Finding
from triage.model.evidence import Evidence
from triage.ranks.identity import JobMap
from triage.store import codec
from triage.store.connection import Connections
from triage.store.incidents import Incidents

BATCH = 200


@dataclass(frozen=True, slots=True)
class Changed:
    """An incident whose diagnosis changes: what it was held for before and after (a signature, a cluster or a verdict),
    and whether that moved.
    """

    incident: str
    job_name: str
    old: str
    new: str
    old_verdict: str
    new_verdict: str

    @property
    def kind(self) -> str:
        """`unknown → known`, `one signature → another`, …"""
        if self.old == self.new:
            return "findings beside the cause"
        if self.old_verdict == self.new_verdict == "known":
            return "one signature → another"
        return f"{self.old_verdict} → {self.new_verdict}"


@dataclass(frozen=True, slots=True)
class Retriaged:
    """`asked` incidents were looked at; `changed` are those of which the catalog says something else now."""

    asked: int = 0
    changed: tuple[Changed, ...] = ()
    kinds: Mapping[str, int] = field(default_factory=dict)


def retriage(
    connections: Connections,
    incidents: Incidents,
    catalog: Catalog,
    *,
    since: float | None = None,
    signature: str | None = None,
    dry_run: bool = False,
    now: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Retriaged:
    """Ask the catalog again about all stored incidents, or those that failed after `since`; `signature` limits it to
    what that one changes.

    Each change is written with its history and its post in one transaction of its own. `dry_run` only tells.
    """
    asker = _Asker(catalog, signature)
    total = int(connections.read("SELECT count(*) AS n FROM incident WHERE at >= ?", (since or 0.0,))[0]["n"])
    asked, changed = 0, []
    for num, identifier in _all(connections, since):
        if progress is not None:
            progress(asked, total)
        asked += 1
        facts = codec.facts(connections.read("SELECT body FROM report WHERE num = ?", (num,))[0]["body"])
        if not facts or not asker.concerns(facts, _stored(connections, num)):
            continue
        remembered = incidents.get(identifier)
        new = asker.answer(remembered.diagnosis, facts)
        if codec.digest(new) == codec.digest(
            dataclasses.replace(remembered.diagnosis, catalog_version=new.catalog_version)
        ):
            continue
        changed.append(_change(remembered.incident.id, remembered.incident.job_name, remembered.diagnosis, new))
        if not dry_run:
            incidents.rewrite(num, new, "retriage", now=time.time() if now is None else now)
    kinds: dict[str, int] = {}
    for item in changed:
        kinds[item.kind] = kinds.get(item.kind, 0) + 1
    return Retriaged(asked, tuple(changed), kinds)


def _all(connections: Connections, since: float | None) -> Iterator[tuple[int, str]]:
    """In batches, so that nothing holds a long read while others write."""
    last = 0
    while True:
        rows = connections.read(
            "SELECT num, id FROM incident WHERE num > ? AND at >= ? ORDER BY num LIMIT ?", (last, since or 0.0, BATCH)
        )
        if not rows:
            return
        yield from ((row["num"], row["id"]) for row in rows)
        last = rows[-1]["num"]


def _stored(connections: Connections, num: int) -> dict[str | None, str | None]:
    """The signatures found then, with their fingerprints; None stands for an unknown failure."""
    rows = connections.read("SELECT signature, fingerprint FROM finding WHERE incident = ?", (num,))
    return {row["signature"]: row["fingerprint"] for row in rows}


class _Asker:
    """A catalog, ready to be asked about many incidents."""

    def __init__(self, catalog: Catalog, only: str | None) -> None:
        self._catalog = catalog
        self._only = only
        self._signatures: dict[str, Signature] = {signature.id: signature for signature in catalog.signatures}
        self._matcher = Matcher(catalog)

    def concerns(self, facts: list[Evidence], stored: Mapping[str | None, str | None]) -> bool:
        """May the answer be another one? Signatures match that did not, or one that did has changed or is gone."""
        matches = self._matcher.evaluate(facts)
        appeared = {identifier for identifier in matches if identifier not in stored}
        moved = {
            identifier
            for identifier, print_ in stored.items()
            if identifier is not None and not self._same(identifier, print_)
        }
        affected = appeared | moved
        return self._only in affected if self._only is not None else bool(affected)

    def _same(self, identifier: str, print_: str | None) -> bool:
        return identifier in self._signatures and self._signatures[identifier].fingerprint == print_

    def answer(self, old: Diagnosis, facts: list[Evidence]) -> Diagnosis:
        """The diagnosis as the catalog has it now, from the stored lines alone."""
        job = JobMap()
        for fact in facts:
            job.learn(fact.source, fact.origin)
        for host, ranks in old.job.hosts.items():
            for rank in ranks:
                job.ranks.add(rank)
                job.hosts[rank].add(host)
        if old.job.world_size is not None:
            job.sizes.add(old.job.world_size)
        result = diagnose(_distinct(facts), [], job, self._catalog)
        verdict, root = report.root_cause(result, old.job.versions)
        findings, unknown = report.findings(result)
        if self._must_stay(old, root):
            return old
        kept = tuple(finding for finding in old.findings if self._inferred(finding, result.matches))
        return dataclasses.replace(
            old,
            catalog_version=self._catalog.version,
            verdict=verdict,
            root_cause=root,
            findings=(
                *findings,
                *(finding for finding in kept if finding.signature not in {new.signature for new in findings}),
            ),
            unknown=unknown,
        )

    def _must_stay(self, old: Diagnosis, root: Finding | None) -> bool:
        """A cause that the unchanged catalog gave from all the files is not taken back by what a few excerpts say."""
        before = old.root_cause
        if before is None or before.signature is None or not self._same(before.signature, before.fingerprint):
            return old.verdict == "clean"
        if root is not None and root.signature == before.signature:
            return False
        return root is None or root.signature is None or root.confidence < before.confidence

    def _inferred(self, finding: Finding, matches: Mapping[str, Match]) -> bool:
        """Found then by comparing ranks, of which the excerpts hold too little to find it again."""
        return (
            finding.signature is not None
            and finding.signature not in matches
            and self._same(finding.signature, finding.fingerprint)
            and any(fact.kind == "inference" for fact in finding.evidence)
        )


def _distinct(facts: list[Evidence]) -> list[Evidence]:
    """The same line may prove several findings."""
    return list({(fact.source, fact.offset, fact.kind, fact.text): fact for fact in facts}.values())


def _change(identifier: str, name: str, old: Diagnosis, new: Diagnosis) -> Changed:
    def held(diagnosis: Diagnosis) -> str:
        root = diagnosis.root_cause
        return (root and (root.signature or root.cluster)) or diagnosis.verdict

    return Changed(identifier, name, held(old), held(new), old.verdict, new.verdict)
