"""Compare settings and versions of the ranks: which deviate, and which are dangerous."""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TypedDict

from triage.base.lazy_dataclass import dataclass
from triage.base.rank_ranges import format_ranks
from triage.compare.devices import find_unhealthy_devices
from triage.compare.setting_rules import Condition, Rules
from triage.evidence.settings import HEALTH
from triage.model import Audit, Deviation, Evidence, Origin, Severity
from triage.ranks.identity import JobMap

_SEVERITY_ORDER: dict[Severity, int] = {"fatal": 0, "error": 1, "warning": 2, "info": 3}
_KINDS = ("rank", "host", "source")
NOT_SET = "(not set)"
_MAX_VALUE_LENGTH = 120
_MAX_PLACES = 8
_MAX_VALUES = 4
_MAX_NAMES = 4


class _Affected(TypedDict):
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]


@dataclass
class Writer:
    """One rank (or, where no rank is known, host or file) with all settings that it states.

    `settings` maps a name to (value, evidence), `values` a name to its value only. `forms` are the components of the
    evidence: dump, versions, log.
    """

    kind: str
    rank: int | None
    host: str | None
    name: str
    settings: dict[str, tuple[str, Evidence]] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    forms: set[str] = field(default_factory=set)

    @property
    def has_full_dump(self) -> bool:
        """Whether a variable that it does not state is known to be unset."""
        return "dump" in self.forms


def audit_environment(facts: Iterable[Evidence], job: JobMap, rules: Rules, versions: Mapping[str, str]) -> Audit:
    """Compare the evidence of kind `environment`. `versions` are those of the job, for ranks that state none."""
    facts = list(facts)
    writers = _collect_writers(facts, job)
    deviations: list[Deviation] = []
    agreed: dict[str, str] = {}
    for name in sorted({name for writer in writers for name in writer.settings}):
        deviation = _compare_setting(name, writers, rules)
        values = {_normalize(writer.values[name]): writer.values[name] for writer in writers if name in writer.values}
        if deviation is not None:
            deviations.append(deviation)
        elif rules.policy_for(name)[0] != "own" and len(values) == 1:
            agreed[name] = min(values.values())
    deviations = _merge_packages(deviations, rules)
    hosts = {writer.host for writer in writers if writer.host}.union(*job.hosts.values())
    deviations += _apply_rules(writers, rules, {**versions, "hosts": str(len(hosts))})
    deviations += find_unhealthy_devices((fact for fact in facts if fact.component != "log"), job)
    deviations.sort(key=lambda one: (_SEVERITY_ORDER[one.severity], one.rule != "env-mismatch", one.names, one.text))
    return Audit(tuple(writer.name for writer in writers), agreed, tuple(deviations))


def _collect_writers(facts: Iterable[Evidence], job: JobMap) -> list[Writer]:
    writers: dict[tuple[str, str], Writer] = {}
    for fact in sorted(facts, key=lambda fact: (fact.component != "dump", fact.source, fact.offset)):
        origin = job.complete(fact.source, fact.origin)
        kind = "rank" if origin.rank is not None else "host" if origin.host else "source"
        key = {"rank": f"rank {origin.rank}", "host": origin.host or "", "source": fact.source}[kind]
        writer = writers.setdefault((kind, key), Writer(kind, origin.rank, origin.host, key))
        writer.forms.add(fact.component)
        for name, value in fact.fields.items():
            if not name.startswith(HEALTH):
                writer.values[name] = writer.settings.setdefault(name, (value, fact))[0]
    folder = _common_folder([writer.name for writer in writers.values() if writer.kind == "source"])
    for writer in writers.values():
        writer.name = writer.name[len(folder) :] if writer.kind == "source" else writer.name
    return sorted(writers.values(), key=_writer_order)


def _writer_order(writer: Writer) -> tuple[int, int, str]:
    return _KINDS.index(writer.kind), writer.rank or 0, writer.name


def _common_folder(names: Sequence[str]) -> str:
    """The folder that contains all files; it is left out of their names."""
    folders = [name.split("/")[:-1] for name in names]
    shared = itertools.takewhile(lambda parts: len(set(parts)) == 1, zip(*folders, strict=False))
    return "".join(f"{parts[0]}/" for parts in shared) if len(names) > 1 else ""


def _compare_setting(name: str, writers: Sequence[Writer], rules: Rules) -> Deviation | None:
    """The deviation of one setting; None if all who state it agree, or may differ."""
    policy, why = rules.policy_for(name)
    groups = _group_by_value(name, writers) if policy != "own" else []
    if len(groups) < 2:
        return None
    values = tuple(
        (_shorten(group[0].values[name] or "empty") if name in group[0].values else NOT_SET, _format_writers(group))
        for group in sorted(groups, key=lambda group: name not in group[0].values)
    )
    stated = (f"{value if value != NOT_SET else 'not set'} on {who}" for value, who in values[:_MAX_VALUES])
    more = len(values) - _MAX_VALUES
    return Deviation(
        rule="env-mismatch",
        severity="error" if policy == "agree" else "info",
        names=(name,),
        text=f"{name} is {' and '.join(stated)}" + (f" and has {more} more values elsewhere" if more > 0 else ""),
        why=why,
        values=values,
        **_ranks_and_hosts(itertools.chain.from_iterable(groups[1:])),
        evidence=tuple(_locate(name, group[0]) for group in groups[1 : _MAX_PLACES + 1]),
    )


def _group_by_value(name: str, writers: Sequence[Writer]) -> list[list[Writer]]:
    """The writers with equal values of a setting, the largest group first. Those that have it unset are a group too."""
    counts = ((kind, sum(writer.kind == kind and name in writer.values for writer in writers)) for kind in _KINDS)
    kind = next((kind for kind, count in counts if count > 1), None)
    level = [writer for writer in writers if kind is None or writer.kind == kind]
    by_value: dict[str, list[Writer]] = defaultdict(list)
    for writer in level:
        if name in writer.values:
            by_value[_normalize(writer.values[name])].append(writer)
    # Only a full dump shows that a variable is not set; a log just does not mention it.
    unset = [writer for writer in level if name not in writer.values and name.isupper() and writer.has_full_dump]
    if unset:
        by_value[NOT_SET] = unset
    return sorted(by_value.values(), key=lambda group: (-len(group), _writer_order(group[0])))


def _merge_packages(deviations: Sequence[Deviation], rules: Rules) -> list[Deviation]:
    """Join the deviations of packages that no rule names: two images differ in dozens of them."""
    packages = [one for one in deviations if not one.names[0].isupper() and rules.policy_for(one.names[0])[0] is None]
    if len(packages) < 2:
        return list(deviations)
    more = f" and {len(packages) - _MAX_PLACES} more" if len(packages) > _MAX_PLACES else ""
    merged = dataclasses.replace(
        packages[0],
        names=tuple(one.names[0] for one in packages),
        text=f"{len(packages)} packages differ: {'; '.join(one.text for one in packages[:_MAX_PLACES])}{more}",
        values=(),
        ranks=tuple(sorted({rank for one in packages for rank in one.ranks})),
        hosts=tuple(sorted({host for one in packages for host in one.hosts})),
        evidence=tuple(one.evidence[0] for one in packages[:_MAX_PLACES]),
    )
    return [*(one for one in deviations if one not in packages), merged]


def _apply_rules(writers: Sequence[Writer], rules: Rules, common: Mapping[str, str]) -> Iterable[Deviation]:
    """Incomplete groups of settings, and dangerous settings. `common` are values that hold for all writers."""
    for group in rules.groups:
        describe = partial(_describe_missing, group.conditions)
        yield from _group_by_text(writers, describe, "determinism-incomplete", "warning", group.why)
    for danger in rules.dangers:
        describe = partial(_describe_danger, danger.conditions, common)
        yield from _group_by_text(writers, describe, "dangerous-setting", danger.severity, danger.why)


def _group_by_text(
    writers: Sequence[Writer], describe: Callable[[Writer], str | None], rule: str, severity: Severity, why: str
) -> Iterable[Deviation]:
    """One deviation for each different text, with all writers that it describes."""
    by_text: dict[str, list[Writer]] = defaultdict(list)
    for writer in writers:
        text = describe(writer)
        if text is not None:
            by_text[text].append(writer)
    for text, group in by_text.items():
        mentioned = text.replace("=", " ").replace(",", " ").split()
        names = tuple(name for name in group[0].settings if name in mentioned)
        place = names[0] if names else next(iter(group[0].settings))
        yield Deviation(
            rule=rule,
            severity=severity,
            names=names,
            text=f"{text} on {_format_writers(group)}",
            why=why,
            **_ranks_and_hosts(group),
            evidence=(_locate(place, group[0]),),
        )


def _describe_missing(conditions: Sequence[Condition], writer: Writer) -> str | None:
    """The settings that a group needs and this writer lacks; None if it does not use the group or lacks nothing."""
    values, is_complete = writer.values, writer.has_full_dump
    met = [condition for condition in conditions if condition.holds(values, complete=is_complete)]
    unmet = [one for one in conditions if one not in met and (one.name in values or is_complete)]
    if not unmet or not any(condition.starts_group for condition in met):
        return None
    on = " ".join(f"{one.name}={values[one.name]}" for one in met)
    off = (f"{one.name}={values[one.name]}" if one.name in values else f"{one.name} is not set" for one in unmet)
    return f"{on} but {', '.join(off)}"


def _describe_danger(conditions: Sequence[Condition], common: Mapping[str, str], writer: Writer) -> str | None:
    """The dangerous settings, if this writer states one of them and all conditions hold."""
    values = {**common, **writer.values}
    if not any(condition.name in writer.values for condition in conditions):
        return None
    if not all(condition.holds(values, complete=writer.has_full_dump) for condition in conditions):
        return None
    return " with ".join(_describe_condition(one, values) for one in conditions if one.name != "hosts")


def _describe_condition(condition: Condition, values: Mapping[str, str]) -> str:
    if condition.must_be_unset:
        return f"{condition.name} not set"
    value = values[condition.name]
    if condition.operand in values and condition.operator != "=":
        return f"{condition.name}={value} with {condition.operand}={values[condition.operand]}"
    return f"{condition.name}={value}" if condition.name.isupper() else f"{condition.name.upper()} version {value}"


def _format_writers(writers: Sequence[Writer]) -> str:
    """`ranks 0-3 and node7`: ranks, and hosts or files where no rank is known."""
    ranks = [writer.rank for writer in writers if writer.rank is not None]
    names = [writer.name for writer in writers if writer.rank is None]
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return " and ".join(filter(None, [format_ranks(ranks) if ranks else "", ", ".join(names[:_MAX_NAMES]) + more]))


def _ranks_and_hosts(writers: Iterable[Writer]) -> _Affected:
    writers = list(writers)
    return {
        "ranks": tuple(sorted(writer.rank for writer in writers if writer.rank is not None)),
        "hosts": tuple(sorted({writer.host for writer in writers if writer.host})),
    }


def _normalize(value: str) -> str:
    return value.strip().lower() if value.strip().lower() in ("true", "false", "info", "warn") else value.strip()


def _shorten(value: str) -> str:
    return value if len(value) <= _MAX_VALUE_LENGTH else value[: _MAX_VALUE_LENGTH - 1] + "…"


def _locate(name: str, writer: Writer) -> Evidence:
    """The evidence of one setting of a writer: its line, or the file in which it is missing."""
    if name in writer.settings:
        value, fact = writer.settings[name]
        text = f"{name}={value}" if name.isupper() else f"{name} {value}"
    else:
        facts = (fact for _, fact in writer.settings.values())
        fact = min(facts, key=lambda fact: (fact.component == "log", fact.source, fact.offset))
        text = f"{name} is not set"
    rows = (row.split(" ") for row in fact.excerpt.split("\n"))
    offset, line = next(((int(row[1]), int(row[2])) for row in rows if row[0] == name), (fact.offset, 0))
    return dataclasses.replace(
        fact,
        text=text,
        origin=Origin(rank=writer.rank, host=writer.host),
        offset=offset,
        end=offset,
        line=line or None,
        end_line=line or None,
        fields={},
        excerpt=text,
    )
