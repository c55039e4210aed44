"""The environment of a job: settings and versions on which its ranks agree or differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from triage.model.diagnosis import Severity
from triage.model.evidence import Evidence, Warning


@dataclass(frozen=True, slots=True)
class Deviation:
    """Something about settings or versions that may harm: what `triage env` lists.

    `rule` is env-mismatch, determinism-incomplete, dangerous-setting or device-unhealthy; `names` the variables or
    programs it is about; `text` the sentence;
    `why` what may come of it. `values` pairs what stands there with those who have it; `ranks`, `hosts` are the odd
    ones.
    """

    rule: str
    severity: Severity
    names: tuple[str, ...]
    text: str
    why: str = ""
    values: tuple[tuple[str, str], ...] = ()
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Audit:
    """The environment of a job: who told of it, the settings and versions on which all agree, and what deviates,
    gravest first.
    """

    speakers: tuple[str, ...] = ()
    agreed: Mapping[str, str] = field(default_factory=dict)
    deviations: tuple[Deviation, ...] = ()
    warnings: tuple[Warning, ...] = ()
