"""Diagnose stored incidents again after a change of the catalog, and record what changes.

Only excerpts are stored, so this knows less than a new ingest: a stored diagnosis changes where the catalog differs
about the same lines, and a cause whose signature is unchanged is never dropped.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from triage.catalog.match import Match, Matcher
from triage.catalog.model import Catalog, Signature
from triage.diagnose import diagnose, report
from triage.model import Diagnosis, Evidence, Finding, Inconclusive
from triage.ranks.file_names import find_root
from triage.ranks.identity import JobMap
from triage.store import codec
from triage.store.incidents import Incidents
from triage.store.interface import Connections

BATCH = 200


@dataclass(frozen=True, slots=True)
class ChangedIncident:
    """An incident whose diagnosis changes.

    `old` and `new` are its root cause before and after: a signature, a cluster or a verdict.
    """

    incident: str
    job_name: str
    old: str
    new: str
    old_verdict: str
    new_verdict: str

    @property
    def kind(self) -> str:
        """The kind of change: `unknown → known`, `one signature → another`, …"""
        if self.old == self.new:
            return "findings beside the cause"
        if self.old_verdict == self.new_verdict == "known":
            return "one signature → another"
        return f"{self.old_verdict} → {self.new_verdict}"


@dataclass(frozen=True, slots=True)
class RetriageResult:
    """The result: how many incidents were checked, and those whose diagnosis changes."""

    checked: int = 0
    changed: tuple[ChangedIncident, ...] = ()
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
) -> RetriageResult:
    """Diagnose all stored incidents again, or those that failed after `since`.

    `signature` limits it to incidents that this signature changes. Each change is written with its history and its post
    in one transaction. `dry_run` writes nothing.
    """
    rediagnosis = _Rediagnosis(catalog, signature)
    total = int(connections.read("SELECT count(*) AS n FROM incident WHERE at >= ?", (since or 0.0,))[0]["n"])
    checked, changed = 0, []
    for num, identifier in _all(connections, since):
        if progress is not None:
            progress(checked, total)
        checked += 1
        facts = codec.decode_evidence(connections.read("SELECT body FROM report WHERE num = ?", (num,))[0]["body"])
        if not facts or not rediagnosis.may_change(facts, _stored(connections, num)):
            continue
        stored = incidents.get(identifier)
        new = rediagnosis.rediagnose(stored.diagnosis, facts)
        if _is_same(stored.diagnosis, new):
            continue
        changed.append(_change(stored.incident.id, stored.incident.job_name, stored.diagnosis, new))
        if not dry_run:
            incidents.replace_diagnosis(num, new, "retriage", now=now)
    return RetriageResult(checked, tuple(changed), Counter(item.kind for item in changed))


def _is_same(old: Diagnosis, new: Diagnosis) -> bool:
    """Whether the diagnoses differ in nothing but the catalog's version."""
    old = dataclasses.replace(old, catalog_version=new.catalog_version)
    return codec.diagnosis_digest(new) == codec.diagnosis_digest(old)


def _all(connections: Connections, since: float | None) -> Iterator[tuple[int, str]]:
    """Yield (num, id) of the incidents in batches, so that no long read blocks writers."""
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
    """Return the signatures of the stored findings, with their fingerprints; None is an unknown failure."""
    rows = connections.read("SELECT signature, fingerprint FROM finding WHERE incident = ?", (num,))
    return {row["signature"]: row["fingerprint"] for row in rows}


class _Rediagnosis:
    """A catalog that diagnoses many incidents."""

    def __init__(self, catalog: Catalog, only: str | None) -> None:
        self._catalog = catalog
        self._only = only
        self._signatures: dict[str, Signature] = {signature.id: signature for signature in catalog.signatures}
        self._matcher = Matcher(catalog)

    def may_change(self, facts: list[Evidence], stored: Mapping[str | None, str | None]) -> bool:
        """Whether the diagnosis may change: other signatures match, or a matched one has changed or is gone."""
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

    def rediagnose(self, old: Diagnosis, facts: list[Evidence]) -> Diagnosis:
        """Return the diagnosis by this catalog, from the stored lines alone."""
        job = JobMap(root=find_root([old.job.path], {fact.source for fact in facts}))
        for fact in facts:
            job.learn(fact.source, fact.origin)
        for host, ranks in old.job.hosts.items():
            for rank in ranks:
                job.ranks.add(rank)
                job.hosts[rank].add(host)
        if old.job.world_size is not None:
            job.sizes.add(old.job.world_size)
        result = diagnose(_distinct(facts), [], job, self._catalog)
        verdict, root = report.decide_verdict(result, old.job.versions)
        findings, unknown = report.build_findings(result)
        if self._must_stay(old, root):
            return old
        inferred = tuple(finding for finding in old.findings if self._inferred(finding, result.matches))
        return dataclasses.replace(
            old,
            catalog_version=self._catalog.version,
            verdict=verdict,
            root_cause=root,
            findings=(
                *findings,
                *(finding for finding in inferred if finding.signature not in {new.signature for new in findings}),
            ),
            unknown=unknown,
            inconclusive=_NO_LONGER_MATCHED if verdict == "inconclusive" else None,
        )

    def _must_stay(self, old: Diagnosis, root: Finding | None) -> bool:
        """Whether the old cause stays: few excerpts do not refute an unchanged signature that had all files."""
        before = old.root_cause
        if before is None or before.signature is None or not self._same(before.signature, before.fingerprint):
            return old.verdict == "clean" or (old.verdict == "inconclusive" and root is None)
        if root is not None and root.signature == before.signature:
            return False
        return root is None or root.signature is None or root.confidence < before.confidence

    def _inferred(self, finding: Finding, matches: Mapping[str, Match]) -> bool:
        """Whether the finding was inferred across ranks, for which the excerpts are not enough."""
        return (
            finding.signature is not None
            and finding.signature not in matches
            and self._same(finding.signature, finding.fingerprint)
            and any(fact.kind == "inference" for fact in finding.evidence)
        )


_NO_LONGER_MATCHED = Inconclusive(
    why=("No signature of this catalog matches the stored lines",), next_steps=("Ingest the job's files again",)
)


def _distinct(facts: list[Evidence]) -> list[Evidence]:
    """Return each fact once: a line may belong to several findings."""
    return list({(fact.source, fact.offset, fact.kind, fact.text): fact for fact in facts}.values())


def _change(identifier: str, name: str, old: Diagnosis, new: Diagnosis) -> ChangedIncident:
    def cause(diagnosis: Diagnosis) -> str:
        root = diagnosis.root_cause
        return (root and (root.signature or root.cluster)) or diagnosis.verdict

    return ChangedIncident(identifier, name, cause(old), cause(new), old.verdict, new.verdict)
