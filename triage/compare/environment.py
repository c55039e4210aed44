"""What the ranks were told: settings and versions side by side, what deviates, and which of it is dangerous."""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from triage.compare.devices import unhealthy
from triage.compare.rules import Condition, Rules
from triage.compare.words import say_who
from triage.evidence.settings import HEALTH
from triage.model.diagnosis import Severity
from triage.model.environment import Audit, Deviation
from triage.model.evidence import Evidence, Origin
from triage.ranks.identity import JobMap

_ORDER: dict[Severity, int] = {"fatal": 0, "error": 1, "warning": 2, "info": 3}
_KINDS = ("rank", "host", "source")
NOT_SET = "(not set)"
_SHOWN = 120
_PLACES = 8


@dataclass
class Writer:
    """Everything that one rank (or, where no rank is known, host or file) says. `forms` are the ways in which it was
    said.
    """

    kind: str
    rank: int | None
    host: str | None
    name: str
    told: dict[str, tuple[str, Evidence]] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    forms: set[str] = field(default_factory=set)

    @property
    def complete(self) -> bool:
        return "dump" in self.forms


def audit(facts: Iterable[Evidence], job: JobMap, rules: Rules, versions: Mapping[str, str]) -> Audit:
    """Compare the facts of kind `environment`. `versions` are those of the job as a whole, for ranks that state none."""
    told = list(facts)
    writers = _writers(told, job)
    deviations: list[Deviation] = []
    agreed: dict[str, str] = {}
    for name in sorted({name for writer in writers for name in writer.told}):
        found = _differs(name, writers, rules)
        if found is not None:
            deviations.append(found)
        elif (
            rules.of(name)[0] != "own"
            and len(
                values := {
                    _alike(writer.told[name][0]): writer.told[name][0] for writer in writers if name in writer.told
                }
            )
            == 1
        ):
            agreed[name] = min(values.values())
    deviations = _packages_as_one(deviations, rules)
    hosts = {writer.host for writer in writers if writer.host} | {
        name for names in job.hosts.values() for name in names
    }
    common = {**versions, "hosts": str(len(hosts))}
    for group in rules.groups:
        deviations += _by_rank(
            writers, partial(_missing, group.conditions), "determinism-incomplete", "warning", group.why
        )
    for danger in rules.dangers:
        deviations += _by_rank(
            writers, partial(_met, danger.conditions, common), "dangerous-setting", danger.severity, danger.why
        )
    deviations += unhealthy((fact for fact in told if fact.component != "log"), job)
    deviations.sort(key=lambda found: (_ORDER[found.severity], found.rule != "env-mismatch", found.names, found.text))
    return Audit(tuple(writer.name for writer in writers), agreed, tuple(deviations))


def _writers(facts: Iterable[Evidence], job: JobMap) -> list[Writer]:
    found: dict[tuple[str, str], Writer] = {}
    for fact in sorted(facts, key=lambda fact: (fact.component != "dump", fact.source, fact.offset)):
        origin = job.complete(fact.source, fact.origin)
        kind = "rank" if origin.rank is not None else "host" if origin.host else "source"
        key = {"rank": f"rank {origin.rank}", "host": origin.host or "", "source": fact.source}[kind]
        writer = found.setdefault((kind, key), Writer(kind, origin.rank, origin.host, key))
        writer.forms.add(fact.component)
        for name, value in fact.fields.items():
            if name.startswith(HEALTH):
                continue
            writer.values[name] = writer.told.setdefault(name, (value, fact))[0]
    folder = _folder([writer.name for writer in found.values() if writer.kind == "source"])
    for writer in found.values():
        writer.name = writer.name[len(folder) :] if writer.kind == "source" else writer.name
    return sorted(found.values(), key=lambda writer: (_KINDS.index(writer.kind), writer.rank or 0, writer.name))


def _folder(names: Sequence[str]) -> str:
    """The folder that all are in, which need not be said."""
    folders = [name.split("/")[:-1] for name in names]
    same = itertools.takewhile(lambda parts: len(set(parts)) == 1, zip(*folders, strict=False))
    return "".join(f"{parts[0]}/" for parts in same) if len(names) > 1 else ""


def _differs(name: str, writers: Sequence[Writer], rules: Rules) -> Deviation | None:
    """The deviation in one name, None when all who tell of it agree (or need not)."""
    stand, why = rules.of(name)
    if stand == "own":
        return None
    kind = next(
        (kind for kind in _KINDS if sum(writer.kind == kind and name in writer.told for writer in writers) > 1), None
    )
    level = [writer for writer in writers if kind is None or writer.kind == kind]
    having = [writer for writer in level if name in writer.told]
    # That it is not set is known of a full dump; of a log only that it says nothing.
    form = {"dump"} if name.isupper() else {"dump", "versions"} if kind != "rank" else set()
    lacking = [writer for writer in level if name not in writer.told and name.isupper() and writer.forms & form]
    by_value: dict[str, list[Writer]] = defaultdict(list)
    for writer in having:
        by_value[_alike(writer.told[name][0])].append(writer)
    if lacking:
        by_value[NOT_SET] = lacking
    if len(by_value) < 2:
        return None
    groups = sorted(
        by_value.values(),
        key=lambda group: (-len(group), _KINDS.index(group[0].kind), group[0].rank or 0, group[0].name),
    )
    odd = [writer for group in groups[1:] for writer in group]
    values = tuple(
        (_shown(name, group[0]), say_who(_who(group)))
        for group in sorted(groups, key=lambda group: name not in group[0].told)
    )
    text = f"{name} is " + " and ".join(
        f"{value if value != NOT_SET else 'not set'} on {who}" for value, who in values[:4]
    )
    text += f" and has {len(values) - 4} more values elsewhere" if len(values) > 4 else ""
    return Deviation(
        rule="env-mismatch",
        severity="error" if stand == "agree" else "info",
        names=(name,),
        text=text,
        why=why,
        values=values,
        ranks=tuple(sorted(writer.rank for writer in odd if writer.rank is not None)),
        hosts=tuple(sorted({writer.host for writer in odd if writer.host})),
        evidence=tuple(_place(name, group[0]) for group in groups[1 : _PLACES + 1]),
    )


def _packages_as_one(deviations: Sequence[Deviation], rules: Rules) -> list[Deviation]:
    """Packages that no rule names differ by the dozen between two images: they are one remark."""
    others = [found for found in deviations if not found.names[0].isupper() and rules.of(found.names[0])[0] is None]
    if len(others) < 2:
        return list(deviations)
    told = "; ".join(found.text for found in others[:_PLACES]) + (
        f" and {len(others) - _PLACES} more" if len(others) > _PLACES else ""
    )
    one = dataclasses.replace(
        others[0],
        names=tuple(found.names[0] for found in others),
        text=f"{len(others)} packages differ: {told}",
        values=(),
        ranks=tuple(sorted({rank for found in others for rank in found.ranks})),
        hosts=tuple(sorted({host for found in others for host in found.hosts})),
        evidence=tuple(found.evidence[0] for found in others[:_PLACES]),
    )
    return [*(found for found in deviations if found not in others), one]


def _by_rank(
    writers: Sequence[Writer], test: Callable[[Writer], str | None], rule: str, severity: Severity, why: str
) -> list[Deviation]:
    """A deviation for each different thing that `test` says, with all the writers of whom it says that."""
    said: dict[str, list[Writer]] = defaultdict(list)
    for writer in writers:
        text = test(writer)
        if text is not None:
            said[text].append(writer)
    out = []
    for text, group in said.items():
        names = tuple(name for name in group[0].told if name in text.replace("=", " ").replace(",", " ").split())
        first = names[0] if names else next(iter(group[0].told))
        out.append(
            Deviation(
                rule=rule,
                severity=severity,
                names=names,
                text=f"{text} on {say_who(_who(group))}",
                why=why,
                ranks=tuple(sorted(writer.rank for writer in group if writer.rank is not None)),
                hosts=tuple(sorted({writer.host for writer in group if writer.host})),
                evidence=(_place(first, group[0]),),
            )
        )
    return out


def _missing(conditions: Sequence[Condition], writer: Writer) -> str | None:
    """What is left out of a group that this writer has switched on."""
    values = writer.values
    held = [condition for condition in conditions if condition.holds(values, complete=writer.complete)]
    if not any(condition.starts for condition in held):
        return None
    left = [
        condition for condition in conditions if condition not in held and (condition.name in values or writer.complete)
    ]
    if not left:
        return None
    on = " ".join(f"{condition.name}={values[condition.name]}" for condition in held)
    off = ", ".join(f"{c.name}={values[c.name]}" if c.name in values else f"{c.name} is not set" for c in left)
    return f"{on} but {off}"


def _met(conditions: Sequence[Condition], common: Mapping[str, str], writer: Writer) -> str | None:
    own = writer.values
    values = {**common, **own}
    if not any(condition.name in own for condition in conditions):
        return None
    if not all(condition.holds(values, complete=writer.complete) for condition in conditions):
        return None
    return " with ".join(_named(condition, values) for condition in conditions if condition.name != "hosts")


def _named(condition: Condition, values: Mapping[str, str]) -> str:
    if condition.absent:
        return f"{condition.name} not set"
    value = values[condition.name]
    if condition.what in values and condition.how != "=":
        return f"{condition.name}={value} with {condition.what}={values[condition.what]}"
    return f"{condition.name}={value}" if condition.name.isupper() else f"{condition.name.upper()} version {value}"


def _who(group: Sequence[Writer]) -> tuple[list[int], list[str]]:
    return [writer.rank for writer in group if writer.rank is not None], [
        writer.name for writer in group if writer.rank is None
    ]


def _alike(value: str) -> str:
    return value.strip().lower() if value.strip().lower() in ("true", "false", "info", "warn") else value.strip()


def _shown(name: str, writer: Writer) -> str:
    if name not in writer.told:
        return NOT_SET
    value = writer.told[name][0] or "empty"
    return value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…"


def _place(name: str, about: Writer) -> Evidence:
    """The fact of this one name, about a writer: where it stands in its file, or the file in which it does not stand."""
    if name in about.told:
        value, fact = about.told[name]
        said = f"{name}={value}" if name.isupper() else f"{name} {value}"
    else:
        fact = min(
            (fact for _, fact in about.told.values()),
            key=lambda fact: (fact.component == "log", fact.source, fact.offset),
        )
        said = f"{name} is not set"
    offset, line = next(
        ((int(parts[1]), int(parts[2])) for row in fact.excerpt.split("\n") if (parts := row.split(" "))[0] == name),
        (fact.offset, 0),
    )
    return dataclasses.replace(
        fact,
        text=said,
        origin=Origin(rank=about.rank, host=about.host),
        offset=offset,
        end=offset,
        line=line or None,
        end_line=line or None,
        fields={},
        excerpt=said,
    )
