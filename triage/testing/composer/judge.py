"""Judge a diagnosis by what the files of a composed job allow to be known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from triage.model import Diagnosis, Finding, Verdict
from triage.testing.composer.model import Expected

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is right. `ranks` and `hosts` are None where there is nothing to know. `confidence` is None without a claim.

    `claims_root`: the diagnosis names a cause or a cluster. `is_healthy`: only the verdict clean is right.
    """

    verdict: bool
    root: bool
    ranks: bool | None
    hosts: bool | None
    claims_root: bool
    confidence: float | None
    is_healthy: bool = False

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong."""
        return self.verdict and self.root and self.ranks is not False and self.hosts is not False


def judge(expected: Expected, diagnosis: Diagnosis) -> Judgement:
    """Compare verdict, root, ranks and hosts. Unknown ranks may be left out, or be part of the truth, not others."""
    return judge_answer(expected, diagnosis.verdict, diagnosis.root_cause, (*diagnosis.findings, *diagnosis.unknown))


def judge_answer(
    expected: Expected, stated_verdict: Verdict, root: Finding | None, findings: Sequence[Finding]
) -> Judgement:
    """Compare the parts of a diagnosis. Of the findings only those count that are alongside the root."""
    verdict = stated_verdict in expected.verdicts
    claims = root is not None and bool(root.signature or root.cluster)
    confidence = root.confidence if root is not None and claims else None
    is_healthy = expected.verdicts == {"clean"}
    if stated_verdict == "clean" or is_healthy:
        return Judgement(verdict, verdict, None, None, claims, confidence, is_healthy)
    if stated_verdict == "inconclusive" and verdict:
        return Judgement(verdict, verdict, None, None, claims, confidence)
    roots = [] if root is None else [root, *_alongside(root, findings)]
    ranks = frozenset(rank for one in roots for rank in one.ranks)
    hosts = _canonical((host for one in roots for host in one.hosts), expected.host_names)
    true_hosts, all_hosts = (_canonical(names, {}) for names in (expected.true_hosts, expected.all_hosts))
    known_hosts = None if expected.hosts is None else _canonical(expected.hosts, {})
    return Judgement(
        verdict,
        root is not None and root.signature in expected.roots,
        _agrees(ranks, expected.ranks, expected.true_ranks, expected.all_ranks),
        None if true_hosts == all_hosts and not hosts else _agrees(hosts, known_hosts, true_hosts, all_hosts),
        claims,
        confidence,
    )


def _alongside(root: Finding, findings: Iterable[Finding]) -> list[Finding]:
    return [one for one in findings if (one.signature or one.cluster) in root.alongside]


def _canonical(hosts: Iterable[str], names: Mapping[str, str]) -> frozenset[str]:
    """Return the hosts that these names stand for, without their domains, which NCCL and syslog leave out."""
    short = {_short(name): host for name, host in names.items()}
    return frozenset(_short(short.get(name := _short(host), name)) for host in hosts)


def _short(host: str) -> str:
    """Return a host without its domain; an address unchanged."""
    return host if host[:1].isdigit() and host.count(".") == 3 else host.partition(".")[0]


def _agrees(
    stated: frozenset[T], known: frozenset[T] | None, true: frozenset[T], everyone: frozenset[T]
) -> bool | None:
    """Whether the stated ones are right; None where there is nothing to know. What is nobody's is everybody's."""
    if known is None:
        return None if stated <= true or (not true and stated == everyone) else False
    return stated == known or (not known and stated == everyone)
