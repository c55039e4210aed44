"""Labels that are no ranks, which only some lines of a file give away: what stands inside of them says another number.

`srun --label torchrun …` numbers the nodes: `1: [default0]:` is local rank 0 of task 1. Without tee, torch's own tag
shows it, or that
torchrun itself speaks behind a label. `torchrun --role rank` (torchtitan's scripts) tags
local ranks as torch tags ranks: `[rank0]:[rank8]: ` is local rank 0 of its node. A container's or replica's name around
a launcher's
prefix, `trainer-1  | [default0]:`, is where its local ranks count.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re

from triage.base.lazy_re import lazy_re
from triage.ranks.grammars import GRAMMARS, Grammar, Table, grammar, table
from triage.ranks.prefix import parse

TEES = (("torchrun tee",), ("torchrun tee with a host role",))
_TEE = lazy_re(rb"(?m)^[^\n]{1,120}?\[(?!rank\d)[A-Za-z_][\w.-]*?:?\d{1,4}\]:")
_NUMBERED = lazy_re(rb"\d\]:")  # a quick look for what _TEE ends with
_TWICE = lazy_re(rb"\[rank(\d+)\]:(?!\[rank\1\]:)\[rank\d+\]: ?")
_MOST = 256
# Behind a label: torch's tag, and what starts the processes of a node.
_TAGGED = lazy_re(rb"(?m)^([^\n\[]{1,60}?)\[rank(\d+)\]:")
_STARTER = lazy_re(
    rb"(?m)^([^\n]{1,60}?: ?)[^\n]{0,80}?(?:torch[./]distributed[./](?:run|elastic(?!.multiprocessing.errors)|launcher)\b|\[launch\.py:\d+:\w+\])"
)
_STARTERS = (
    *(b"distributed%c%s" % (sign, name) for sign in b"./" for name in (b"run", b"elastic", b"launcher")),
    b"[launch.py:",
)
# What of a name stands for its host: `i.pretrain/0` is replica `pretrain/0`. Names of hosts end at their first dot.
_HOUSE = r"(?P<who>(?=(?:[\w-]+\.)*(?P<host>[\w-]+(?:/[\w-]+)?)[ |])"
_HET = "srun --label of het jobs"
_ROLE = grammar(
    "torchrun tee with the role rank on every line",
    "writer",
    "torch 1.9",
    "[a",
    "[rank0]:step 3",
    r"\[rank(?P<local_rank>\d{1,4})\]:",
)


def nested(found: Table, data: bytes) -> Table:
    """The grammars for a source of which `data` are lines, all that are at hand: outer labels give no rank where they
    cannot be one.
    """
    role = b"[rank" in data and _TWICE.search(data) is not None
    heads = list(dict.fromkeys(match.group() for match in _TEE.finditer(data))) if _NUMBERED.search(data) else []
    step = len(heads) // _MOST + 1
    told = [head.decode("utf-8", "replace") for head in heads[::step]]
    scoped = any(_differ(head, found) for head in told) or _of_nodes(data, found)
    housed = any(_has_house(head, found) for head in told)
    return _amended(_in_order(found), role, scoped, housed) if role or scoped or housed else found


def _differ(head: str, found: Table) -> bool:
    """Is the label outside of a tee's another number than the tee's?"""
    parsed = parse(head, table=found)
    if parsed.layers[-1:] not in TEES or parsed.origin.rank in (None, parsed.origin.local_rank):
        return False
    return any(_is_label(entry) for start in found.values() for entry in start if entry.name in parsed.layers[:-1])


def _of_nodes(data: bytes, found: Table) -> bool:
    """Do the labels number nodes? A starter of processes speaks behind one, or each tag (but for that of rank 0) is
    another number than its label.
    """
    starting = (
        _STARTER.finditer(data) if any(word in data for word in _STARTERS) else ()
    )  # the patterns are slow on what has neither
    if any(_label(match[1], found) is not None for match in itertools.islice(starting, _MOST)):
        return True
    tagged = data.count(b"[rank") > data.count(b"\n[rank") + data.startswith(b"[rank")
    tags = {match.groups() for match in _TAGGED.finditer(data)} if tagged else set()
    pairs = {(label, int(tag)) for before, tag in sorted(tags)[:_MOST] if (label := _label(before, found)) is not None}
    return any(label != tag for label, tag in pairs) and not any(label == tag for label, tag in pairs if label)


def _label(before: bytes, found: Table) -> int | None:
    """The number of the label that a line begins with, if that is all that it begins with."""
    parsed = parse(before.decode("utf-8", "replace") + "x", table=found)
    labels = {entry.name for start in found.values() for entry in start if _is_label(entry)}
    return (
        parsed.origin.rank if parsed.text == "x" and labels.issuperset(parsed.layers[-1:]) and parsed.layers else None
    )


def _in_order(found: Table) -> tuple[Grammar, ...]:
    """The entries of a table in the order in which they are tried: habits, then grammars."""
    entries = dict.fromkeys(entry for start in found.values() for entry in start)
    return (*(entry for entry in entries if entry not in GRAMMARS), *(entry for entry in GRAMMARS if entry in entries))


def _has_house(head: str, found: Table) -> bool:
    """Does a name that is no host's stand outside of a tee that names no host?"""
    parsed = parse(head, table=found)
    if parsed.layers[-1:] not in TEES or parsed.origin.host is not None:
        return False
    return any(_is_name(entry) for start in found.values() for entry in start if entry.name in parsed.layers[:-1])


def _is_name(entry: Grammar) -> bool:
    return entry.name == _HET or (entry.writer and entry.named and "host" not in entry.says)


def _house(entry: Grammar) -> Grammar:
    """The same layer, whose name is that of a host."""
    if not _is_name(entry):
        return entry
    text = entry.pattern.pattern
    text = f"(?=(?P<host>P\\d+ +\\d+)){text}" if entry.name == _HET else text.replace("(?P<who>", _HOUSE)
    return dataclasses.replace(entry, pattern=re.compile(text), says=(*entry.says, "host"))


@functools.cache
def _amended(entries: tuple[Grammar, ...], role: bool, scoped: bool, housed: bool) -> Table:
    entries = tuple(map(_task, entries)) if scoped else entries
    return table((*([_ROLE] if role else []), *(map(_house, entries) if housed else entries)))


def _is_label(entry: Grammar) -> bool:
    """Does it number what a launcher started, rather than what a process says of itself?"""
    return entry.writer and "rank" in entry.says and "pid=" not in entry.needs and entry.name != "c10d rank"


def _task(entry: Grammar) -> Grammar:
    """The same layer, whose number is a task's."""
    if not _is_label(entry):
        return entry
    pattern = re.compile(entry.pattern.pattern.replace("(?P<rank>", "(?P<task>"))
    return dataclasses.replace(
        entry, pattern=pattern, says=tuple("task" if key == "rank" else key for key in entry.says)
    )
