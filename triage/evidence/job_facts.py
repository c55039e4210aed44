"""Facts of the job as a whole: its user, project, partition, cluster and image, from what schedulers print.

Read are environment variables, `scontrol show job`, tables of `sacct` and `squeue`, `kubectl describe pod` and the
specs of pods. A better source of a fact hides the others: what the scheduler says comes before variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from triage.base.errors import OptionError
from triage.base.lazy_re import lazy_re

Stated = tuple[str, str]
"""The name of a fact and its value."""

MOST_VALUES, LONGEST_VALUE = 8, 200
MOST_LABELS = 50
_VARIABLES = {
    "SLURM_JOB_USER": "user",
    "SLURM_JOB_ACCOUNT": "project",
    "SLURM_JOB_PARTITION": "partition",
    "SLURM_CLUSTER_NAME": "cluster",
    "SLURM_JOB_QOS": "qos",
    "POD_NAMESPACE": "namespace",
}
_LOGIN = ("USER", "LOGNAME")  # who runs the program: the weakest source of the user
_FIELDS = {
    "UserId": "user",
    "Account": "project",
    "Partition": "partition",
    "QOS": "qos",
    "Container": "image",
}
_COLUMNS = {
    "user": "user",
    "account": "project",
    "partition": "partition",
    "cluster": "cluster",
    "qos": "qos",
    "container": "image",
}
_LABELS = ("user", "project", "team", "partition", "cluster")
_HINTS = (b"UserId=", b"SLURM_", b"JobID", b"JOBID", b"Image:", b"image", b"POD_NAMESPACE")
_NOTHING = frozenset(("", "(null)", "(none)", "none", "n/a", "unknown", "root", "<none>"))
_VALUE = r"(?:'[^'\n\0]{0,200}'|\"[^\"\n\0]{0,200}\"|[^\s\0;'\"]{1,200})"
_VARIABLE = lazy_re(rf"(?:^|[\s\0'\"])(SLURM_[A-Z_]{{5,20}}|POD_NAMESPACE|USER|LOGNAME)=({_VALUE})", re.M)
_JOB = lazy_re(r"\bJobId=\d+(?:_\d+)? (?:ArrayJobId=|JobName=)")
_FIELD = lazy_re(r"(?:^|\s)(UserId|Account|Partition|QOS|Container)=([^\s=]{1,200})", re.M)
_SCONTROL_CHARACTERS = 4000
_TABLE = lazy_re(r"^ *(?:JobID|JOBID)\b[^\n]*", re.M)
_TABLE_LINES = 200
_DESCRIBED = lazy_re(r"^ +Image: +(\S{1,200})$", re.M)
_POD_NAMESPACE = lazy_re(r"^Namespace: +(\S{1,200})$", re.M)
_POD_LABELS = lazy_re(r"^Labels: +(\S+)((?:\n {4,}[\w./-]+=[^\n]*)*)", re.M)
_SPEC_IMAGE = lazy_re(r"^\s*(?:- )?\"?image\"?: *\"?([\w][\w./:@-]{2,200})\"?,?\s*$", re.M)
_SPEC = lazy_re(r"^\s*\"?kind\"?: *\"?(?:Pod|Job|PyTorchJob|MPIJob|RayJob|RayCluster|List)\b", re.M)
_LABEL = lazy_re(r"[A-Za-z][A-Za-z0-9_.-]{0,49}")


def find_facts(dumps: Iterable[bytes], texts: Iterable[bytes]) -> dict[str, tuple[str, ...]]:
    """Return the facts in dumps of the environment and in parts of texts, each with its values in order."""
    ranked: dict[str, dict[int, set[str]]] = {}

    def add(rank: int, pairs: Iterable[Stated]) -> None:
        for name, value in pairs:
            value = value.strip("'\"")[:LONGEST_VALUE]
            if value.lower() not in _NOTHING:
                ranked.setdefault(name, {}).setdefault(rank, set()).add(value)

    for data in dumps:
        add(1, _variables(data))
        add(2, _login(data))
    for data in texts:
        if any(hint in data for hint in _HINTS):
            text = data.decode("utf-8", "replace")
            add(0, (*_scontrol(text), *_tables(text), *_pods(text)))
            add(1, _variables(data))
    best = {name: values[min(values)] for name, values in ranked.items()}
    return {name: tuple(sorted(values)[:MOST_VALUES]) for name, values in sorted(best.items())}


def parse_labels(labels: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the facts that a user gave as `name=value`, with all values of a name. Raises OptionError."""
    facts: dict[str, tuple[str, ...]] = {}
    for label in labels:
        name, equals, value = label.partition("=")
        value = " ".join(value.split())
        if not equals or not value or len(value) > LONGEST_VALUE or not _LABEL.fullmatch(name):
            hint = "write NAME=VALUE, as team=vision: a name of letters, digits, dots, dashes and underscores"
            raise OptionError(f"{label[:80]!r} is not a label", hint=hint)
        facts[name] = tuple(dict.fromkeys((*facts.get(name, ()), value)))
    if len(labels) > MOST_LABELS or any(len(values) > MOST_VALUES for values in facts.values()):
        raise OptionError(f"there are more than {MOST_LABELS} labels, or {MOST_VALUES} of one name", hint="give fewer")
    return facts


def with_labels(
    facts: Mapping[str, tuple[str, ...]], labels: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return the facts, with what a user says in place of what the files say."""
    return dict(sorted({**facts, **labels}.items()))


def _variables(data: bytes) -> Iterator[Stated]:
    for name, value in _VARIABLE.findall(data.decode("utf-8", "replace")):
        if name in _VARIABLES:
            yield _VARIABLES[name], value


def _login(data: bytes) -> Iterator[Stated]:
    for name, value in _VARIABLE.findall(data.decode("utf-8", "replace")):
        if name in _LOGIN:
            yield "user", value


def _scontrol(text: str) -> Iterator[Stated]:
    """Yield what `scontrol show job` says: `UserId=anna(1001) GroupId=…` below `JobId=17 JobName=…`."""
    rows = []
    for job in _JOB.finditer(text):
        described = text[job.start() : job.start() + _SCONTROL_CHARACTERS].split("\n\n")[0]
        number = described.partition(" ")[0]
        for name, value in _FIELD.findall(described):
            rows.append((number, _FIELDS[name], value.partition("(")[0] if name == "UserId" else value))
    yield from _of_one_job(rows)


def _tables(text: str) -> Iterator[Stated]:
    """Yield the columns of the tables of `sacct` and `squeue`: with bars, or with fixed widths below dashes."""
    for head in _TABLE.finditer(text):
        lines = text[head.start() : head.start() + (1 << 14)].split("\n")[:_TABLE_LINES]
        job, rows = "", []
        for title, value in _split_bars(lines) if "|" in lines[0] else _split_widths(lines):
            title, value = title.strip().lower(), value.strip()
            if title == "jobid":
                job = value.partition(".")[0].partition("_")[0]  # steps and tasks of one job
            elif title in _COLUMNS and value and not value.endswith("+"):  # sacct cuts long values off with a plus
                rows.append((job, _COLUMNS[title], value))
        yield from _of_one_job(rows)


def _of_one_job(rows: Sequence[tuple[str, str, str]]) -> Iterator[Stated]:
    """Yield what (job, name, value) say of this job: where several jobs are listed, only what all of them share."""
    several = len({job for job, _, _ in rows}) > 1
    for name in dict.fromkeys(name for _, name, _ in rows):
        values = {value for _, other, value in rows if other == name}
        if not several or len(values) == 1:
            yield from ((name, value) for value in values)


def _split_bars(lines: Sequence[str]) -> Iterator[Stated]:
    titles = lines[0].split("|")
    for line in lines[1:]:
        cells = line.split("|")
        if len(cells) != len(titles):
            return
        yield from zip(titles, cells, strict=True)


def _split_widths(lines: Sequence[str]) -> Iterator[Stated]:
    """Yield (title, value) of a table whose second line has the widths of its columns as dashes."""
    if len(lines) < 3 or not lines[1].strip() or set(lines[1].strip()) != {"-", " "}:
        return
    spans = [match.span() for match in re.finditer("-+", lines[1])]
    for line in lines[2:]:
        if not line.strip() or len(line) > spans[-1][1] + 40:
            return
        for begin, end in spans:
            yield lines[0][begin:end], line[begin:end]


def _pods(text: str) -> Iterator[Stated]:
    """Yield the images, the namespace and the labels of pods, from `kubectl describe` and from specs."""
    images = _DESCRIBED.findall(text)
    yield from (("image", image) for image in images)
    if images:
        yield from (("namespace", name) for name in _POD_NAMESPACE.findall(text))
        for first, more in _POD_LABELS.findall(text):
            for label in (first, *more.split()):
                name, _, value = label.partition("=")
                if name.rpartition("/")[2] in _LABELS:
                    yield name.rpartition("/")[2], value
    if _SPEC.search(text):
        yield from (("image", image) for image in _SPEC_IMAGE.findall(text))
