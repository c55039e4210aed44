"""The environment of a job: settings and versions on which its ranks agree or differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from triage.base.lazy_dataclass import dataclass
from triage.model.diagnosis import Severity
from triage.model.evidence import Evidence, Warning


@dataclass(frozen=True, slots=True)
class Deviation:
    """A problem of settings, versions or devices: what `triage env` lists.

    `rule` is env-mismatch, determinism-incomplete, dangerous-setting or device-unhealthy. `names` are the variables or
    programs. `text` is the sentence, `why` the possible effect. `values` are pairs of a value and those who have it.
    `ranks` and `hosts` are the odd ones.
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
class TrainingValues:
    """What one rank printed of the training: its pace, and values of some first and last steps.

    `steps_per_second` is None where steps have no times. `quantities` maps a name to (step, value) in the order of the
    steps.
    """

    steps_per_second: float | None = None
    last_step: int | None = None
    quantities: Mapping[str, tuple[tuple[int, str], ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Audit:
    """The environment of a job: who stated it, on which values all agree, and the deviations, the worst first."""

    writers: tuple[str, ...] = ()
    agreed: Mapping[str, str] = field(default_factory=dict)
    deviations: tuple[Deviation, ...] = ()
    warnings: tuple[Warning, ...] = ()
    training: TrainingValues | None = None
