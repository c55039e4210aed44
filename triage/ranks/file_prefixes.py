"""Prefixes that only the whole file shows: `node1: ` is pdsh's if most lines begin with few such names, else text.

Each file prefix is a grammar, the share of sampled lines that must have it, and a check of its values.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

from triage.base.digit_masks import ask_masked_text
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.ranks import file_prefix_checks as checks
from triage.ranks.grammar import Grammar, Kind, Table, build_table, make_grammar
from triage.ranks.grammars import BY_START, GRAMMARS
from triage.ranks.prefix import names_rank, read_text
from triage.ranks.program_tags import FIRST_TAGS, INNER_TAGS
from triage.ranks.timestamps import ISO, SYSLOG, TIME

# How many lines of a file are sampled, and how many of them must have a file prefix.
SAMPLED_LINES = 48
_FEWEST = 4
_SHARE = 0.6
# `3: ` is srun's label in a file where at least every fifth line has it, else an item of a list.
_ENOUGH_LINES, _LABELLED_SHARE = 12, 5
_LABEL = lazy_re(r" {0,5}\d{1,6}: ")
_LABEL_END = lazy_re(r"\d: ")  # a quick check
# The numbered frames of Rust and V8: an address, one name, or a qualified name.
_NUMBERED_FRAME = lazy_re(r" {0,5}(\d{1,6}): +(?:0x[0-9a-f]+ .*|\w{1,80}|[\w<{][\w<>{},$ ]{0,80}::.*)$")
_WITHOUT_LABEL = tuple(entry for entry in GRAMMARS if entry.name != "srun --label")
UNLABELLED = build_table(_WITHOUT_LABEL)
# What launchers of MPI write at the end of a failed job, for every rank perhaps, and without the prefix of any.
_BANNER = lazy_re(
    r"(?:^|\s)(?:[=-]{20,}|=   (?:BAD TERM|RANK |PID |EXIT |KILLED |CLEANING |YOU CAN ).*|\[(?:proxy|mpiexec)[:@].*)$"
)
# Some file prefixes are more exact than these grammars, so they are also looked for with these layers left on. (PRRTE's
# tag may contain another one.)
_LESS_EXACT = (
    ("srun --label", "Open MPI tag-output", "PRRTE tag-output", "Horovod", "stamp"),
    ("Open MPI tag-output", "Horovod"),
    ("Open MPI tag-output", "PRRTE tag-output"),
    ("stamp",),
)
_MORE_LEFT = tuple(tuple(entry for entry in GRAMMARS if entry.name not in names) for names in _LESS_EXACT)
_MOST_FILE_PREFIXES = 3
# pdsh reports itself how the shell on a host ended: `pdsh@login: node7: ssh exited with exit code 1`.
_PDSH = "pdsh, clush and DeepSpeed's runner"
_PDSH_REPORT = lazy_re(r"pdsh@[\w.-]{1,80}: (?P<host>[\w.-]{1,80}): ")
# A stamp of a collector, such as `ts`: it stands before lines that no program stamps so.
_STAMP = lazy_re(rf"\[?{ISO}\]?:? ")
_STAMPED_AGAIN = lazy_re(
    r"(?:[^ \n]{1,60} ){0,3}(?:[^ \n]{0,40}\]:)?(?:\[?(?:\d{4}[-/]\d\d[-/]\d\d[ T_-]|[IWEFCD]\d{4} )\d\d:\d\d:\d\d\b|"
    r'\s+File "[^"\n]{1,300}", line \d|Traceback \(most recent call last\):)'
)


@dataclass(frozen=True, slots=True, eq=False)
class FilePrefix:
    """A grammar that counts only in files where most lines have it.

    `check` gets the values of `group`. `only_inner`: it is looked for behind the other prefixes only.
    `in_records`: also behind those that open a record, such as a timestamp.
    """

    grammar: Grammar
    group: str
    check: checks.Check
    only_inner: bool = False
    in_records: bool = False


def _file_prefix(
    name: str,
    kind: Kind,
    since: str,
    start_classes: str,
    sample: str,
    pattern: str,
    group: str,
    check: checks.Check,
    *,
    only_inner: bool = False,
) -> FilePrefix:
    return FilePrefix(make_grammar(name, kind, since, start_classes, sample, pattern), group, check, only_inner)


def _sample(*forms: str) -> str:
    """Return lines of several writers in turn."""
    return "\n".join(form.format(n) for n in (0, 1, 1, 0) for form in forms)


FILE_PREFIXES: tuple[FilePrefix, ...] = (
    _file_prefix(
        "Open MPI tag with a blank",
        "writer",
        "Open MPI 5",
        "[d",
        _sample("[1,{}]<stdout>: step 3"),
        r"\[\d+,(?P<rank>\d{1,18})\]<(?P<stream>std(?:out|err|diag))>: ",
        "rank",
        checks.blank_after_every_tag,
    ),
    _file_prefix(
        "PRRTE rank-output",
        "writer",
        "Open MPI 5",
        "[d",
        _sample("[{}]<stdout>: step 3"),
        r"\[(?P<rank>\d{1,18})\]<(?P<stream>std(?:out|err|diag))>: ",
        "rank",
        checks.blank_after_every_tag,
    ),
    _file_prefix(
        "srun --label on every line",
        "writer",
        "Slurm 1",
        "d _",
        _sample("{}: step 3", "{}:   File"),
        r" {0,5}(?P<rank>\d{1,6}):(?: |$)",
        "rank",
        checks.repeating_numbers,
    ),
    _file_prefix(
        "torchrun template with a rank",
        "writer",
        "torch 2.1",
        "[d",
        _sample("[{}]:step 3"),
        r"\[(?P<rank>\d{1,6})\]:",
        "rank",
        checks.repeating_numbers,
    ),
    _file_prefix(
        "host and local rank in brackets",
        "writer",
        "torchrun, copied into documents",
        "[a",
        _sample("[node1:{}] step 3"),
        r"\[(?P<host>[A-Za-z][\w.-]*):(?P<local_rank>\d{1,2})\](?: |$)",
        "host",
        checks.not_source_files,
    ),
    _file_prefix(
        "numbers of lines",
        "carrier",
        "cat -n, nl",
        "d _",
        "\n".join(f"{number:6d}\tstep 3" for number in range(8, 14)),
        r" {0,5}(?P<number>\d{1,9})\t",
        "number",
        checks.rising_counter,
    ),
    _file_prefix(
        "host and rank",
        "writer",
        "HPE PALS 1 --label, where hosts have other names than Cray's",
        "a d date",
        _sample("node1 {}: step 3"),
        r"(?P<who>(?P<host>(?=[\w-]*[A-Za-z])\w[\w.-]*\w) (?P<rank>\d{1,6})):(?: |$)",
        "who",
        checks.host_and_rank,
    ),
    _file_prefix(
        "CI line counter",
        "carrier",
        "any",
        "[d",
        "\n".join(f"[{number}] step 3" for number in range(80746, 80752)),
        r"\[(?P<number>\d{1,9})\](?: |$)",
        "number",
        checks.rising_counter,
    ),
    _file_prefix(
        "MPICH and Intel MPI -prepend-rank",
        "writer",
        "MPICH 1.3",
        "[d",
        _sample("[{}] step 3"),
        r"\[(?P<rank>\d{1,6})\](?: |$)",
        "rank",
        checks.rank_tags,
    ),
    _file_prefix(
        "CloudWatch export to S3",
        "carrier",
        "any",
        "date",
        "\n".join(f"2026-11-21T03:07:45.372Z {line}" for line in ("step 3", "  File", "  File", "step 3")),
        rf"(?P<Y>\d{{4}})-(?P<M>\d\d)-(?P<D>\d\d)T{TIME}\.(?P<f>\d{{3,6}})(?P<z>Z) (?=(?P<rest>.*))",
        "rest",
        checks.inside_stack,
    ),
    _file_prefix(
        "aws logs tail",
        "writer",
        "AWS CLI 2",
        "date",
        _sample("2026-11-21T03:07:45.372000+00:00 train/algo-{} step 3"),
        rf"(?P<Y>\d{{4}})-(?P<M>\d\d)-(?P<D>\d\d)T{TIME}(?:\.(?P<f>\d{{3,6}}))?(?P<z>[+-]\d\d:\d\d) "
        r"(?P<who>\S+)(?: |$)",
        "who",
        checks.streams_in_utc,
    ),
    _file_prefix(
        "docker compose",
        "writer",
        "Docker Compose 1",
        "a d date",
        _sample("trainer-{}  | step 3"),
        r"(?P<who>(?P<host>\w[\w-]*)|\w[\w.-]*) +\|(?: |$)",  # a container is a host to its processes
        "who",
        checks.services,
    ),
    _file_prefix(
        "foreman and honcho",
        "writer",
        "foreman 0.1",
        "d",
        _sample("03:07:45 trainer.{} | step 3"),
        r"\d\d:\d\d:\d\d (?P<who>\w[\w.-]*) +\|(?: |$)",
        "who",
        checks.services,
    ),
    _file_prefix(
        _PDSH,
        "writer",
        "pdsh 2",
        "a d date",
        _sample("node{}: step 3"),
        # A digit is part of it: `wandb: ` before some lines is a program's.
        r"(?P<host>(?=[\w-]*[A-Za-z]|\d+\.\d+\.\d+\.\d+:)(?=[\w.-]*\d)\w[\w.-]*\w):(?: |$)",
        "host",
        checks.hosts_and_few_names,
    ),
    _file_prefix(
        "torchx and NeMo-Run",
        "writer",
        "torchx 0.1",
        "a",
        _sample("i.pretrain/{} step 3"),
        r"(?P<who>[A-Za-z][\w.-]*/\d{1,5})(?: |$)",
        "who",
        checks.few_values,
    ),
    _file_prefix(
        "stern",
        "writer",
        "stern 1",
        "a d date",
        _sample("train-worker-{} pytorch step 3"),
        r"(?P<who>(?P<host>[a-z0-9](?:[a-z0-9.]{0,63}-){1,16}(?=[a-z0-9-]{0,63}\d)[a-z0-9-]{1,63}) "
        r"[a-z0-9][a-z0-9-]*)(?: |$)",
        "who",
        checks.few_values,
    ),
    _file_prefix(
        "rank spelled out",
        "writer",
        "logging",
        "a (",
        _sample("Rank {}: step 3"),
        r"\(?(?:[Rr]ank|RANK)[ :=#_-]{0,2}(?P<rank>\d{1,6})(?:/\d+)?(?: ?[:|>]|\))(?: |$)",
        "rank",
        checks.any_value,
    ),
    _file_prefix(
        "ts",
        "carrier",
        "moreutils",
        "a",
        _sample("Nov 21 03:07:4{} step 3"),
        rf"{SYSLOG}(?:\.\d+)? ",
        "s",
        checks.any_value,
        only_inner=True,
    ),
)

# What names a rank in words may be the only one of its file; other numbers must be those of several.
PROGRAM_TAGS: tuple[FilePrefix, ...] = tuple(
    FilePrefix(
        tag, part, checks.repeating_numbers if tag.name.startswith("rank ") else checks.several_repeat, in_records=True
    )
    for tag in (*FIRST_TAGS, *INNER_TAGS)
    for part in tag.origin_parts
)
_MAY_BE_TAGGED = lazy_re(r"(?i)\b(?:\w+_)?(?:ranks?|rk|r|proc|process|gpu|cuda)[ :=#_-]{0,2}\d")

# A collector may collect from another one of its kind (pdsh of pdsh, stern of a pod that runs stern).
_INSIDE_ANOTHER = {
    entry: dataclasses.replace(entry, grammar=dataclasses.replace(entry.grammar, most=2), only_inner=True)
    for entry in FILE_PREFIXES
    if entry.group in ("host", "who") and not entry.grammar.has_time and set(entry.grammar.origin_parts) <= {"host"}
}


def detect_table(lines: Sequence[str], outer: Table | None = None) -> Table:
    """Return the grammars of a file from a sample of its lines.

    `outer` has the grammars of the prefixes around messages, if the lines are these messages: its prefixes are kept.
    """
    looks = [_look_at(line) for line in lines]
    is_labelled = len(lines) < _ENOUGH_LINES or _LABELLED_SHARE * max(
        sum(look.is_labelled for look in looks), sum(look.is_labelled_behind for look in looks)
    ) >= len(lines)
    is_labelled = is_labelled and not _has_numbered_frames(lines)
    grammars = GRAMMARS if is_labelled else _WITHOUT_LABEL
    chosen = () if outer is None else _list_file_prefixes(outer)
    if not chosen and any(look.is_of_pdsh for look in looks) and _is_from_pdsh(lines):
        chosen = tuple(entry for entry in FILE_PREFIXES if entry.grammar.name == _PDSH)
    table = _table_with(chosen, grammars) if chosen else BY_START if is_labelled else UNLABELLED
    lines = [line for line, look in zip(lines, looks, strict=True) if not look.is_banner]
    looks = [look for look in looks if not look.is_banner]
    if len(lines) < _FEWEST:
        return table
    if _may_have_file_prefix(looks[:: len(looks) // (2 * _FEWEST) or 1]):
        chosen, table = _choose_file_prefixes(lines, chosen, table, grammars)
    tag = _find_program_tag(lines, looks, table)
    return table if tag is None else _table_with((*chosen, tag), grammars)


def _has_numbered_frames(lines: Sequence[str]) -> bool:
    """Whether all labels are the numbers of a stack's frames: they count from 0 or 1, and qualified names follow."""
    labelled = [line for line in lines if _LABEL.match(line)]
    frames = [match for match in map(_NUMBERED_FRAME.match, labelled) if match is not None]
    numbers = [int(match[1]) for match in frames]
    is_counted = (
        len(frames) == len(labelled) > 1 and numbers[0] < 2 and numbers == list(range(numbers[0], numbers[-1] + 1))
    )
    return is_counted and any("::" in match[0] for match in frames)


def _choose_file_prefixes(
    lines: Sequence[str], chosen: tuple[FilePrefix, ...], table: Table, grammars: tuple[Grammar, ...]
) -> tuple[tuple[FilePrefix, ...], Table]:
    """Add the file prefixes that most lines have to those chosen, and return them with their table."""
    while len(chosen) < _MOST_FILE_PREFIXES:
        inner = _remove_prefixes(lines, table)
        left = (_remove_prefixes(lines, _table_with(chosen, rest)) for rest in _MORE_LEFT)
        views = [inner, lines, *left, _remove_prefixes(_remove_collector_stamps(lines), table)]
        file_prefix = next(
            (
                entry
                for entry in (*FILE_PREFIXES, *(_INSIDE_ANOTHER[one] for one in chosen if one in _INSIDE_ANOTHER))
                if entry not in chosen and _is_common(entry, views[:1] if entry.only_inner else views, len(lines))
            ),
            None,
        )
        if file_prefix is None:
            break
        chosen = (*chosen, file_prefix)
        table = _table_with(chosen, grammars)
    return chosen, table


def _is_from_pdsh(lines: Sequence[str]) -> bool:
    """Whether pdsh itself names a host that other lines begin with, however few."""
    hosts = {match["host"] for match in map(_PDSH_REPORT.match, lines) if match is not None}
    return any(line.startswith(f"{host}: ") for host in hosts for line in lines)


def _list_file_prefixes(table: Table) -> tuple[FilePrefix, ...]:
    """Return the file prefixes among the grammars of a file."""
    grammars = {id(grammar) for row in table.values() for grammar in row}
    every = (*FILE_PREFIXES, *_INSIDE_ANOTHER.values(), *PROGRAM_TAGS)
    return tuple(entry for entry in every if id(entry.grammar) in grammars)


def _find_program_tag(lines: Sequence[str], looks: Sequence[_Look], table: Table) -> FilePrefix | None:
    """Return the tag by which the program names its rank in most messages; None where a third have ranks already."""
    if 3 * sum(look.may_be_tagged for look in looks) < len(lines):
        return None
    if table is BY_START and 3 * sum(look.has_rank for look in looks) >= len(lines):
        return None
    if table is UNLABELLED and 3 * sum(look.has_unlabelled_rank for look in looks) >= len(lines):
        return None
    if 3 * sum(names_rank(line, table) for line in lines) >= len(lines):
        return None
    texts = [read_text(line, table)[0] for line in lines]
    return next((tag for tag in PROGRAM_TAGS if _is_common(tag, [texts], len(lines))), None)


def _remove_prefixes(lines: Sequence[str], table: Table) -> list[str]:
    """Return the text of the lines that open no record.

    Behind a timestamp or a head of plog or NCCL, `[5108] ` is a thread, and no launcher's prefix.
    """
    texts = (read_text(line, table) for line in lines)
    return [text for text, opens_record in texts if not opens_record]


def _remove_collector_stamps(lines: Sequence[str]) -> list[str]:
    """Return the lines without the stamp that a collector wrote before each; none where it may be the programs' own."""
    rests = _remove_stamps(lines)
    return rests if len(rests) == len(lines) and any(_STAMPED_AGAIN.match(rest) for rest in rests) else []


def _remove_stamps(lines: Sequence[str]) -> list[str]:
    """Return the lines that begin with a stamp, without it."""
    matches = [(line, _STAMP.match(line)) for line in lines]
    return [line[match.end() :] for line, match in matches if match is not None]


@dataclass(frozen=True, slots=True)
class _Look:
    """What a line shows by all but its digits: a label at its start, or behind its prefix; a banner; pdsh's own report.

    `may_be_tagged`: a program may name its rank in it; `has_rank`: a prefix does, `has_unlabelled_rank`: also
    where labels are none. `prefixes` has a row for each view of
    the line, without some of its prefixes: which file prefixes begin it. None stands for a view without the line.
    """

    is_labelled: bool
    is_labelled_behind: bool
    is_banner: bool
    is_of_pdsh: bool
    may_be_tagged: bool
    has_rank: bool
    has_unlabelled_rank: bool
    prefixes: tuple[tuple[bool, ...] | None, ...]


@ask_masked_text
def _look_at(line: str) -> _Look:
    views = [
        _remove_prefixes([line], BY_START),
        [line],
        *(_remove_prefixes([line], _table_with((), rest)) for rest in _MORE_LEFT),
        _remove_stamps([line]),
    ]
    behind = read_text(line, UNLABELLED)[0] if _LABEL_END.search(line) else ""
    return _Look(
        _LABEL.match(line) is not None,
        _LABEL.match(behind) is not None,
        _BANNER.search(line) is not None,
        _PDSH_REPORT.match(line) is not None,
        _MAY_BE_TAGGED.search(line) is not None,
        names_rank(line, BY_START),
        names_rank(line, UNLABELLED),
        tuple(tuple(map(_begins(text), FILE_PREFIXES)) if texts else None for texts in views for text in texts or [""]),
    )


def _begins(text: str) -> Callable[[FilePrefix], bool]:
    return lambda entry: entry.grammar.pattern.match(text) is not None


def _may_have_file_prefix(some: Sequence[_Look]) -> bool:
    """Quick check of a few lines: does any file prefix match a third of them? In most files none does."""
    for rows in zip(*(look.prefixes for look in some), strict=True):
        texts = [row for row in rows if row is not None]
        if any(3 * sum(matches) >= len(texts) for matches in zip(*texts, strict=True)):
            return True
    return False


@functools.cache
def _table_with(file_prefixes: tuple[FilePrefix, ...], grammars: tuple[Grammar, ...]) -> Table:
    first = [entry.grammar for entry in file_prefixes if not entry.in_records]
    last = [entry.grammar for entry in file_prefixes if entry.in_records]
    return build_table((*first, *grammars, *last))


def _is_common(file_prefix: FilePrefix, views: Sequence[Sequence[str]], total: int) -> bool:
    """Does it stand before most lines of one of the views of a file, and before a third of all its lines?"""
    for texts in views:
        full = [text for text in texts if text.strip()]
        matches = [match for text in full if (match := file_prefix.grammar.pattern.match(text))]
        if len(matches) >= max(_FEWEST, _SHARE * len(full), total / 3) and file_prefix.check(
            [match[file_prefix.group] or "0" for match in matches], texts
        ):
            return True
    return False
