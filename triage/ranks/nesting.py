"""Labels that are not ranks: in some files the layers inside a label show that it numbers something else.

`srun --label torchrun …` numbers nodes: `1: [default0]:` is local rank 0 of task 1. Without tee, torch's own tag shows
it, or torchrun's own lines behind a label. `torchrun --role rank` (torchtitan's scripts) tags local ranks as torch tags
ranks: `[rank0]:[rank8]: ` is local rank 0 of its node. The name of a container or replica around a launcher's prefix,
as in `trainer-1  | [default0]:`, stands for the host of the local rank. torchx starts torchrun without a role, whose
tee is then `[0]:`, as that of the template `[${rank}]:` is: where the ranks that lines state are others, it is local.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re

from triage.base.digit_masks import ask_masked, list_masks
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.ranks.grammar import Grammar, Table, build_table, make_grammar
from triage.ranks.grammars import GRAMMARS
from triage.ranks.prefix import parse_prefix

_REPLICA = "torchx and NeMo-Run"
_TEMPLATE = "torchrun template with a rank"
_BARE_TEE = make_grammar(
    "torchrun tee without a role", "writer", "torch 1.9", "[d", "[0]:step 3", r"\[(?P<local_rank>\d{1,4})\]:"
)
_TEE_LAYERS = (("torchrun tee",), ("torchrun tee with a host role",), (_BARE_TEE.name,))
_TEE = lazy_re(rb"(?m)^[^\n]{1,120}?\[(?!rank\d)(?:[A-Za-z_][\w.-]*?:?)?\d{1,4}\]:")
_TWO_RANKS = lazy_re(rb"\[rank(\d{1,18})\]:(?!\[rank\1\]:)\[rank\d+\]: ?")
_MAY_BE_TWO_RANKS = lazy_re(rb"\[rank\d+\]:\[rank\d+\]:")
# Behind a bare number: the rank as torch tags it, as NCCL's Init lines state it, or as a greeting of the program.
_STATED = lazy_re(
    rb"(?m)^[^\n]{0,120}?\[(\d{1,4})\]:(?:\[rank(\d{1,6})\]:|[^\n]{0,160}?\b[Rr]ank (\d{1,6}) (?:nranks|of) \d)"
)
_MOST = 256
# Behind a label: torch's tag, or a program that starts the processes of a node.
_TAGGED = lazy_re(rb"(?m)^([^\n\[]{1,60}?)\[rank(\d{1,18})\]:")
_STARTER = lazy_re(
    rb"(?m)^([^\n]{1,60}?: ?)[^\n]{0,80}?(?:torch[./]distributed[./]"
    rb"(?:run|elastic(?!.multiprocessing.errors)|launcher)\b|\[launch\.py:\d+:\w+\])"
)
_STARTER_HINTS = (
    *(b"distributed%c%s" % (sign, name) for sign in b"./" for name in (b"run", b"elastic", b"launcher")),
    b"[launch.py:",
)
# The part of a name that stands for its host: `i.pretrain/0` is replica `pretrain/0`. Hosts end at their first dot.
_HOST_IN_NAME = r"(?P<who>(?=(?:[\w-]+\.)*(?P<host>[\w-]+(?:/[\w-]+)?)[ |])"
_HET_LABEL = "srun --label of het jobs"
_ROLE_RANK = make_grammar(
    "torchrun tee with the role rank on every line",
    "writer",
    "torch 1.9",
    "[a",
    "[rank0]:step 3",
    r"\[rank(?P<local_rank>\d{1,4})\]:",
)


def resolve_labels(table: Table, *pieces: bytes) -> Table:
    """Return the table for a source with these pieces, in which labels that cannot be ranks give none."""
    data = b"\n".join(pieces)
    looks = [look for piece in pieces for look in _look_at.of_masks(list_masks(piece))]
    if any(entry.name == _REPLICA for entry in table["a"]):
        table = build_table((_BARE_TEE, *_in_order(table)))
    elif any(entry.name == _TEMPLATE for entry in table["[d"]) and _are_local_ranks(data):
        table = build_table(tuple(_BARE_TEE if entry.name == _TEMPLATE else entry for entry in _in_order(table)))
    has_role_rank = any(look.may_have_two_ranks for look in looks) and _TWO_RANKS.search(data) is not None
    has_tee = any(look.has_tee for look in looks)
    heads = list(dict.fromkeys(match.group() for match in _TEE.finditer(data))) if has_tee else []
    sampled = [head.decode("utf-8", "replace") for head in heads[:: len(heads) // _MOST + 1]]
    may_start = any(look.may_start for look in looks)
    is_tagged = any(look.is_tagged for look in looks)
    labels_nodes = any(_label_differs(head, table) for head in sampled) or _labels_nodes(
        data, table, may_start=may_start, is_tagged=is_tagged
    )
    names_hosts = any(_name_is_host(head, table) for head in sampled)
    if not (has_role_rank or labels_nodes or names_hosts):
        return table
    return _changed(_in_order(table), has_role_rank, labels_nodes, names_hosts)


@dataclass(frozen=True, slots=True)
class _Look:
    """What a line may have, by all but its digits. The patterns are slow on the lines of a whole source.

    `is_tagged`: torch's tag may stand behind something.
    """

    has_tee: bool
    may_have_two_ranks: bool
    may_start: bool
    is_tagged: bool


@ask_masked
def _look_at(line: bytes) -> _Look:
    may_start = any(hint in line for hint in _STARTER_HINTS)
    is_tagged = line.find(b"[rank", 1) > 0
    return _Look(_TEE.search(line) is not None, _MAY_BE_TWO_RANKS.search(line) is not None, may_start, is_tagged)


def _are_local_ranks(data: bytes) -> bool:
    """Do bare numbers stand before lines that state another rank, and none but 0 before one that states the same?"""
    stated = itertools.islice(_STATED.finditer(data), _MOST)
    pairs = {(int(match[1]), int(match[2] or match[3])) for match in stated}
    return any(number != rank for number, rank in pairs) and not any(number == rank for number, rank in pairs if number)


def _label_differs(head: str, table: Table) -> bool:
    """Is the label around a tee another number than the tee's?"""
    parsed = parse_prefix(head, table=table)
    if parsed.layers[-1:] not in _TEE_LAYERS or parsed.origin.rank in (None, parsed.origin.local_rank):
        return False
    return any(_is_label(entry) for start in table.values() for entry in start if entry.name in parsed.layers[:-1])


def _labels_nodes(data: bytes, table: Table, *, may_start: bool, is_tagged: bool) -> bool:
    """Do the labels number nodes?

    A program that starts processes writes behind one (`may_start`: a line may be such a program's), or each tag (except
    rank 0's) is another number than its label.
    """
    starting = _STARTER.finditer(data) if may_start else ()
    if any(_label_number(match[1], table) is not None for match in itertools.islice(starting, _MOST)):
        return True
    tags = {match.groups() for match in _TAGGED.finditer(data)} if is_tagged else set()
    pairs = {
        (label, int(tag)) for before, tag in sorted(tags)[:_MOST] if (label := _label_number(before, table)) is not None
    }
    return any(label != tag for label, tag in pairs) and not any(label == tag for label, tag in pairs if label)


def _label_number(before: bytes, table: Table) -> int | None:
    """Return the number of the label in `before`, if there is nothing else in it."""
    parsed = parse_prefix(before.decode("utf-8", "replace") + "x", table=table)
    labels = {entry.name for start in table.values() for entry in start if _is_label(entry)}
    is_label = parsed.text == "x" and parsed.layers and parsed.layers[-1] in labels
    return parsed.origin.rank if is_label else None


def _in_order(table: Table) -> tuple[Grammar, ...]:
    """Return the entries of a table in the order they are tried: file prefixes, then grammars."""
    entries = dict.fromkeys(entry for start in table.values() for entry in start)
    return (*(entry for entry in entries if entry not in GRAMMARS), *(entry for entry in GRAMMARS if entry in entries))


def _name_is_host(head: str, table: Table) -> bool:
    """Does a name without a host stand around a tee without a host?"""
    parsed = parse_prefix(head, table=table)
    if parsed.layers[-1:] not in _TEE_LAYERS or parsed.origin.host is not None:
        return False
    return any(_is_name(entry) for start in table.values() for entry in start if entry.name in parsed.layers[:-1])


def _is_name(entry: Grammar) -> bool:
    return entry.name == _HET_LABEL or (entry.is_writer and entry.has_writer_group and "host" not in entry.origin_parts)


def _name_as_host(entry: Grammar) -> Grammar:
    """Return the same layer with its name as a host."""
    if not _is_name(entry):
        return entry
    text = entry.pattern.pattern
    is_het = entry.name == _HET_LABEL
    text = f"(?=(?P<host>P\\d+ +\\d+)){text}" if is_het else text.replace("(?P<who>", _HOST_IN_NAME)
    return dataclasses.replace(entry, pattern=re.compile(text), origin_parts=(*entry.origin_parts, "host"))


@functools.cache
def _changed(entries: tuple[Grammar, ...], has_role_rank: bool, labels_nodes: bool, names_hosts: bool) -> Table:
    entries = tuple(map(_label_as_task, entries)) if labels_nodes else entries
    entries = tuple(map(_name_as_host, entries)) if names_hosts else entries
    return build_table((_ROLE_RANK, *entries) if has_role_rank else entries)


def _is_label(entry: Grammar) -> bool:
    """Does it number what a launcher started, rather than state a process's own rank?"""
    has_pid = "pid=" in entry.required_text
    return entry.is_writer and "rank" in entry.origin_parts and not has_pid and entry.name != "c10d rank"


def _label_as_task(entry: Grammar) -> Grammar:
    """Return the same layer with its number as a task's."""
    if not _is_label(entry):
        return entry
    return dataclasses.replace(
        entry,
        pattern=re.compile(entry.pattern.pattern.replace("(?P<rank>", "(?P<task>")),
        origin_parts=tuple("task" if key == "rank" else key for key in entry.origin_parts),
    )
