"""Prefixes that only the whole file gives away: `node1: ` is pdsh's when most lines begin with few such names, and text
otherwise.

Each habit is a grammar with a share of the sampled lines that must have it and a check of what it found there.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.ranks.grammars import BY_START, GRAMMARS, Grammar, Kind, Table, grammar, table
from triage.ranks.prefix import parse
from triage.ranks.stamps import SYSLOG, TIME

# Of a file so many lines are looked at, and at least so many must speak for a habit.
SAMPLED = 48
_FEWEST = 4
_SHARE = 0.6
# `3: ` is the label of srun in a file where it stands before every fifth line at least, and the item of a list
# elsewhere.
_MANY, _LABELLED_SHARE = 12, 5
_LABEL = lazy_re(r" {0,5}\d{1,6}: ")
_NUMBERED = lazy_re(r"\d: ")  # a quick look for what it ends with
_NO_LABEL = tuple(entry for entry in GRAMMARS if entry.name != "srun --label")
UNLABELLED = table(_NO_LABEL)
# These have habits that know better where all lines of a file have them, so that for a look at habits they are left on.
# (In PRRTE's tag may
# lie another one.)
_BETTER = (("srun --label", "Open MPI tag-output", "PRRTE tag-output", "stamp"), ("Open MPI tag-output",), ("stamp",))
_UNDRESSED = tuple(tuple(entry for entry in GRAMMARS if entry.name not in names) for names in _BETTER)
_MOST = 3

Check = Callable[[Sequence[str], Sequence[str]], bool]
"""Given what the telling group found (in file order) and all sampled lines: is it a prefix?"""


@dataclass(frozen=True, slots=True)
class Habit:
    """`tells` is the group whose values are checked; `inner`: only what the grammars leave is looked at, never the
    whole line.
    """

    grammar: Grammar
    tells: str
    check: Check
    inner: bool = False


def _few(values: Sequence[str], _: Sequence[str]) -> bool:
    """The same few names again and again."""
    return len(set(values)) * 2 <= len(values)


def _hosts(values: Sequence[str], lines: Sequence[str]) -> bool:
    """Few names, and such as machines have: with a digit in them, and none that counts something else."""
    counted = re.compile(
        r"(?i)(?:gpu|cuda|step|epoch|iter(?:ation)?|batch|layer|loss|rank|stage|phase|fold|run|seed)[_-]?\d+$"
    )
    return _few(values, lines) and all(re.search(r"\d", name) and not counted.match(name) for name in values)


def _torn(values: Sequence[str], _: Sequence[str]) -> bool:
    """A stamp on lines with which nobody begins a record, such as those inside of a stack: not the program's own."""
    inside = re.compile(
        r"(?:\[[^\]]*\]:? ?)*(?:\s{3,}\S|\s+(?:File\b|at \S|in \S|from \S|@ +0x|#\d)|#\d+ |frame #\d+: |\s*\d{1,3} +0x|(?:\s*\d{1,3} +)?\S+\(\S*\) ?\[0x)"
    )
    return any(inside.match(rest) for rest in values)


def _no_file(values: Sequence[str], _: Sequence[str]) -> bool:
    """`[launch.py:42] ` is where a program stands."""
    return not any(re.search(r"\.(?:py|cc|cpp|cu|c|h|go|rs|ts)$", name) for name in values)


def _ranks(values: Sequence[str], _: Sequence[str]) -> bool:
    """Numbers that come back, not the lines of a listing."""
    return not _rising(values)


def _tags(values: Sequence[str], lines: Sequence[str]) -> bool:
    """Ranks, and not the numbers of caffe2's frames with threads mixed."""
    return _ranks(values, lines) and not any(
        re.match(r"\[\d+\] \S.*\+0x[0-9a-f]+\(0x[0-9a-f]+\) in \S", line) for line in lines
    )


def _counter(values: Sequence[str], _: Sequence[str]) -> bool:
    return _rising(values) and len(set(values)) >= 5


def _rising(values: Sequence[str]) -> bool:
    numbers = [int(value) for value in values]
    return len(numbers) >= 4 and all(one < other for one, other in itertools.pairwise(numbers))


def _always(values: Sequence[str], _: Sequence[str]) -> bool:
    return True


def _blank_after_every_tag(values: Sequence[str], lines: Sequence[str]) -> bool:
    """PRRTE writes a blank behind its tag, Open MPI before it none: one line without settles it."""
    return not any(re.match(r"\[[\w@.-]+,\d+\](?:\[[^\]]+\])?<std\w+>:\S", line) for line in lines)


def _habit(
    name: str,
    kind: Kind,
    since: str,
    starts: str,
    sample: str,
    pattern: str,
    tells: str,
    check: Check,
    *,
    inner: bool = False,
) -> Habit:
    return Habit(grammar(name, kind, since, starts, sample, pattern), tells, check, inner)


def _sample(*forms: str) -> str:
    """Lines of several writers in turn."""
    return "\n".join(form.format(n) for n in (0, 1, 1, 0) for form in forms)


HABITS: tuple[Habit, ...] = (
    _habit(
        "Open MPI tag with a blank",
        "writer",
        "Open MPI 5",
        "[d",
        _sample("[1,{}]<stdout>: step 3"),
        r"\[\d+,(?P<rank>\d+)\]<(?P<stream>std(?:out|err|diag))>: ",
        "rank",
        _blank_after_every_tag,
    ),
    _habit(
        "srun --label on every line",
        "writer",
        "Slurm 1",
        "d _",
        _sample("{}: step 3", "{}:   File"),
        r" {0,5}(?P<rank>\d{1,6}):(?: |$)",
        "rank",
        _ranks,
    ),
    _habit(
        "torchrun template with a rank",
        "writer",
        "torch 2.1",
        "[d",
        _sample("[{}]:step 3"),
        r"\[(?P<rank>\d{1,6})\]:",
        "rank",
        _ranks,
    ),
    _habit(
        "host and local rank in brackets",
        "writer",
        "torchrun, copied into documents",
        "[a",
        _sample("[node1:{}] step 3"),
        r"\[(?P<host>[A-Za-z][\w.-]*):(?P<local_rank>\d{1,2})\](?: |$)",
        "host",
        _no_file,
    ),
    _habit(
        "CI line counter",
        "carrier",
        "any",
        "[d",
        "\n".join(f"[{number}] step 3" for number in range(80746, 80752)),
        r"\[(?P<number>\d{1,9})\](?: |$)",
        "number",
        _counter,
    ),
    _habit(
        "MPICH and Intel MPI -prepend-rank",
        "writer",
        "MPICH 1.3",
        "[d",
        _sample("[{}] step 3"),
        r"\[(?P<rank>\d{1,6})\](?: |$)",
        "rank",
        _tags,
    ),
    _habit(
        "CloudWatch export to S3",
        "carrier",
        "any",
        "date",
        "\n".join(f"2026-11-21T03:07:45.372Z {line}" for line in ("step 3", "  File", "  File", "step 3")),
        rf"(?P<Y>\d{{4}})-(?P<M>\d\d)-(?P<D>\d\d)T{TIME}\.(?P<f>\d{{3,6}})(?P<z>Z) (?=(?P<rest>.*))",
        "rest",
        _torn,
    ),
    _habit(
        "aws logs tail",
        "writer",
        "AWS CLI 2",
        "date",
        _sample("2026-11-21T03:07:45.372000+00:00 train/algo-{} step 3"),
        rf"(?P<Y>\d{{4}})-(?P<M>\d\d)-(?P<D>\d\d)T{TIME}(?:\.(?P<f>\d{{3,6}}))?(?P<z>\+00:00) (?P<who>\S+)(?: |$)",
        "who",
        _few,
    ),
    _habit(
        "docker compose",
        "writer",
        "Docker Compose 1",
        "a d date",
        _sample("trainer-{}  | step 3"),
        r"(?P<who>\w[\w.-]*) +\|(?: |$)",
        "who",
        _few,
    ),
    _habit(
        "pdsh, clush and DeepSpeed's runner",
        "writer",
        "pdsh 2",
        "a d date",
        _sample("node{}: step 3"),
        r"(?P<host>(?=[\w-]*[A-Za-z]|\d+\.\d+\.\d+\.\d+:)\w[\w.-]*\w):(?: |$)",
        "host",
        _hosts,
    ),
    _habit(
        "torchx and NeMo-Run",
        "writer",
        "torchx 0.1",
        "a",
        _sample("i.pretrain/{} step 3"),
        r"(?P<who>[A-Za-z][\w.-]*/\d{1,5})(?: |$)",
        "who",
        _few,
    ),
    _habit(
        "stern",
        "writer",
        "stern 1",
        "a d date",
        _sample("train-worker-{} pytorch step 3"),
        r"(?P<who>(?P<host>[a-z0-9](?:[a-z0-9.]*-)+(?=[a-z0-9-]*\d)[a-z0-9-]+) [a-z0-9][a-z0-9-]*)(?: |$)",
        "who",
        _few,
    ),
    _habit(
        "rank in words",
        "writer",
        "logging",
        "a (",
        _sample("Rank {}: step 3"),
        r"\(?(?:[Rr]ank|RANK)[ :=#_-]{0,2}(?P<rank>\d{1,6})(?:/\d+)?(?: ?[:|>]|\))(?: |$)",
        "rank",
        _always,
    ),
    _habit(
        "ts",
        "carrier",
        "moreutils",
        "a",
        _sample("Nov 21 03:07:4{} step 3"),
        rf"{SYSLOG}(?:\.\d+)? ",
        "s",
        _always,
        inner=True,
    ),
)


def table_of(lines: Sequence[str]) -> Table:
    """The grammars for a file of which these lines are a sample."""
    labelled = len(lines) < _MANY or _labelled(lines) or _labelled([_left_of(line) for line in lines])
    plain = BY_START if labelled else UNLABELLED
    if len(lines) < _FEWEST or not _may_have(lines[:: len(lines) // (2 * _FEWEST) or 1]):
        return plain
    chosen: tuple[Habit, ...] = ()
    found = plain
    while len(chosen) < _MOST:
        left = _left(lines, found)
        more = [_left(lines, _table(chosen, grammars)) for grammars in _UNDRESSED]
        views = [([left] if habit.inner else [left, lines, *more]) for habit in HABITS]
        fits = (
            habit
            for habit, texts in zip(HABITS, views, strict=True)
            if habit not in chosen and _has(habit, texts, len(lines))
        )
        habit = next(fits, None)
        if habit is None:
            break
        chosen = (*chosen, habit)
        found = _table(chosen, GRAMMARS if labelled else _NO_LABEL)
    return found


def _left(lines: Sequence[str], known: Table) -> list[str]:
    """What the grammars leave of the lines. Behind a stamp, a plog or NCCL head `[5108] ` is a thread, not what a
    launcher put before the line.
    """
    return [parsed.text for parsed in (parse(line, 1970, known) for line in lines) if not parsed.record]


def _left_of(line: str) -> str:
    """What the grammars leave of a line in which a label may stand."""
    return parse(line, 1970, UNLABELLED).text if _NUMBERED.search(line) else ""


def _labelled(texts: Sequence[str]) -> bool:
    return _LABELLED_SHARE * sum(_LABEL.match(text) is not None for text in texts) >= len(texts)


def _may_have(some: Sequence[str]) -> bool:
    """A quick look at a few lines: does any habit fit a third of them? Of most files none does."""
    return any(
        3 * sum(habit.grammar.pattern.match(text) is not None for text in texts) >= len(texts) > 0
        for texts in (_left(some, BY_START), some, *(_left(some, _table((), grammars)) for grammars in _UNDRESSED))
        for habit in HABITS
    )


@functools.cache
def _table(habits: tuple[Habit, ...], grammars: tuple[Grammar, ...]) -> Table:
    return table((*(habit.grammar for habit in habits), *grammars))


def _has(habit: Habit, views: Sequence[Sequence[str]], total: int) -> bool:
    """Does the habit stand before most lines of one of the views of a file, and a third of all its lines?"""
    for texts in views:
        full = [text for text in texts if text.strip()]
        matches = [match for text in full if (match := habit.grammar.pattern.match(text))]
        if len(matches) >= max(_FEWEST, _SHARE * len(full), total / 3) and habit.check(
            [match[habit.tells] or "0" for match in matches], texts
        ):
            return True
    return False
