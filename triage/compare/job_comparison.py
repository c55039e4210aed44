"""Compare a failed job with a healthy one by what the store keeps of both: settings, versions, facts, pace, values.

What only one of the two states is listed, but is no difference: its absence elsewhere shows nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from triage.base.lazy_re import lazy_re
from triage.model import Job

PACE_TOLERANCE = 0.1  # of the steps a second, which vary from run to run
VALUE_TOLERANCE = 0.05  # of losses and norms, which vary with the seed
PartName = Literal["settings", "versions", "facts", "size", "pace", "values"]
# Names that differ between any two jobs.
_OF_ONE_RUN = lazy_re(
    r"(?i)(?:^|_)(?:JOB_?ID|JOB_?NAME|JOB_(?:START|END)_TIME|RUN_?ID|STEP_?ID|TASK_?PID|PID|HOSTS?|HOSTNAME"
    r"|ADDR(?:ESS)?|IPADDR|PORT|NODELIST|NODENAME|NODE_?ALIASES|NODEID|SRUN_COMM_\w+|TMPDIR|PWD|OLDPWD|CONNECTION"
    r"|CLIENT|TTY|SESSION_ID|ENDPOINT|COOKIE|SHLVL|LINES|COLUMNS)$|^_$"
)


@dataclass(frozen=True, slots=True)
class JobSide:
    """What is known of one job. `environment` is the stored document of `triage env`; None: it was not stored."""

    job: Job
    environment: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One name with the values of the failed and of the healthy job; None is not stated. `step` is that of both."""

    name: str
    failed: str | None
    healthy: str | None
    differs: bool
    step: int | None = None


@dataclass(frozen=True, slots=True)
class ComparedPart:
    """One kind of values. `compared` counts the names that both state; `rows` are those that differ or one states.

    `why_not` says why nothing was compared; empty where something was.
    """

    name: PartName
    compared: int
    rows: tuple[ComparedRow, ...]
    why_not: str = ""

    @property
    def differing(self) -> int:
        """How many values differ."""
        return sum(row.differs for row in self.rows)


@dataclass(frozen=True, slots=True)
class JobComparison:
    """All parts. `headline` says in a sentence how many values were compared and how many differ."""

    parts: tuple[ComparedPart, ...]

    @property
    def compared(self) -> int:
        """How many values both jobs state."""
        return sum(part.compared for part in self.parts)

    @property
    def differing(self) -> int:
        """How many values differ."""
        return sum(part.differing for part in self.parts)

    @property
    def headline(self) -> str:
        """Return the result as a sentence."""
        if not self.compared:
            return "Nothing was compared: the two jobs state no value in common."
        values = "1 value" if self.compared == 1 else f"{self.compared} values"
        if not self.differing:
            return f"Nothing differs in the {values} that both jobs state."
        verb = "differs" if self.differing == 1 else "differ"
        return f"{self.differing} of {values} that both jobs state {verb}."


def compare_jobs(failed: JobSide, healthy: JobSide) -> JobComparison:
    """Compare two jobs by everything that is stored of them."""
    versions = set(failed.job.versions) | set(healthy.job.versions)
    return JobComparison(
        (
            _compare_texts("settings", _settings(failed, versions), _settings(healthy, versions)),
            _compare_texts("versions", failed.job.versions, healthy.job.versions),
            _compare_texts("facts", _facts(failed), _facts(healthy)),
            _compare_texts("size", _size(failed), _size(healthy)),
            _compare_pace(failed, healthy),
            _compare_values(failed, healthy),
        )
    )


def _settings(side: JobSide, versions: set[str]) -> dict[str, str]:
    """Return the settings that all ranks share, and those on which they differ with the values of all."""
    document = side.environment or {}
    settings = {name: str(value) for name, value in document.get("agreed", {}).items()}
    for deviation in document.get("deviations", ()):
        if deviation["rule"] == "env-mismatch" and len(deviation["names"]) == 1:
            values = sorted(f"{item['value']} on {item['who']}" for item in deviation["values"])
            settings[deviation["names"][0]] = "; ".join(values)
    return {name: value for name, value in settings.items() if name not in versions and not _OF_ONE_RUN.search(name)}


def _facts(side: JobSide) -> dict[str, str]:
    return {name: ", ".join(values) for name, values in side.job.facts.items()}


def _size(side: JobSide) -> dict[str, str]:
    size = {"ranks": side.job.world_size or len(side.job.ranks), "hosts": len(side.job.hosts)}
    return {name: str(count) for name, count in size.items() if count}


def _compare_texts(name: PartName, failed: Mapping[str, str], healthy: Mapping[str, str]) -> ComparedPart:
    common = failed.keys() & healthy.keys()
    rows = [
        ComparedRow(key, failed.get(key), healthy.get(key), key in common)
        for key in sorted(failed.keys() | healthy.keys())
        if failed.get(key) != healthy.get(key)
    ]
    rows.sort(key=lambda row: not row.differs)
    why_not = "" if common else _explain_missing(bool(failed), bool(healthy), name)
    return ComparedPart(name, len(common), tuple(rows), why_not)


def _explain_missing(of_failed: bool, of_healthy: bool, things: str) -> str:
    if of_failed and of_healthy:
        return "the two jobs state none of the same name"
    if of_failed or of_healthy:
        return f"the {'healthy' if of_failed else 'failed'} job states no {things}"
    return f"neither job states {things}"


def _training(side: JobSide) -> Mapping[str, Any]:
    return (side.environment or {}).get("training") or {}


def _compare_pace(failed: JobSide, healthy: JobSide) -> ComparedPart:
    """Compare the steps a second; both are shown where both are known."""
    one, other = (_training(side).get("steps_per_second") for side in (failed, healthy))
    if one is None or other is None:
        return ComparedPart("pace", 0, (), _explain_missing(one is not None, other is not None, "pace"))
    differs = abs(one - other) > PACE_TOLERANCE * max(one, other)
    row = ComparedRow("steps a second", f"{one:.4g}", f"{other:.4g}", differs)
    return ComparedPart("pace", 1, (row,))


def _compare_values(failed: JobSide, healthy: JobSide) -> ComparedPart:
    """Compare losses and norms at the last step that both jobs have of a quantity; all are shown."""
    tables = [_read_quantities(_training(side)) for side in (failed, healthy)]
    rows = [
        row
        for name in sorted(tables[0].keys() & tables[1].keys())
        if (row := _compare_at_common_step(name, tables[0][name], tables[1][name])) is not None
    ]
    if rows:
        return ComparedPart("values", len(rows), tuple(rows))
    if all(tables):
        return ComparedPart("values", 0, (), "the two jobs have no step of a quantity in common")
    return ComparedPart("values", 0, (), _explain_missing(bool(tables[0]), bool(tables[1]), "losses"))


def _read_quantities(training: Mapping[str, Any]) -> dict[str, dict[int, str]]:
    quantities: Mapping[str, Iterable[Mapping[str, Any]]] = training.get("quantities", {})
    return {name: {row["step"]: row["value"] for row in rows} for name, rows in quantities.items()}


def _compare_at_common_step(name: str, failed: Mapping[int, str], healthy: Mapping[int, str]) -> ComparedRow | None:
    common = failed.keys() & healthy.keys()
    if not common:
        return None
    step = max(common)
    return ComparedRow(name, failed[step], healthy[step], _values_differ(failed[step], healthy[step]), step)


def _values_differ(one: str, other: str) -> bool:
    try:
        numbers: Sequence[float] = [float(text.replace(",", "")) for text in (one, other)]
    except ValueError:
        return one != other
    if not all(map(math.isfinite, numbers)):
        return [str(number) for number in numbers[:1]] != [str(number) for number in numbers[1:]]
    return abs(numbers[0] - numbers[1]) > VALUE_TOLERANCE * max(map(abs, numbers))
