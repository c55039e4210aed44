"""Prefixes that only the whole file shows: `node1: ` is pdsh's if most lines begin with few such names, else text.

Each file prefix is a grammar, the share of sampled lines that must have it, and a check of its values.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Sequence

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.ranks.grammar import Grammar, Kind, Table, build_table, make_grammar
from triage.ranks.grammars import BY_START, GRAMMARS
from triage.ranks.prefix import parse_prefix
from triage.ranks.timestamps import ISO, SYSLOG, TIME

# How many lines of a file are sampled, and how many of them must have a file prefix.
SAMPLED_LINES = 48
_STAMP_LENGTH = 33
_FEWEST = 4
_SHARE = 0.6
# `3: ` is srun's label in a file where at least every fifth line has it, else an item of a list.
_ENOUGH_LINES, _LABELLED_SHARE = 12, 5
_LABEL = lazy_re(r" {0,5}\d{1,6}: ")
_LABEL_END = lazy_re(r"\d: ")  # a quick check
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
    ("stamp",),
)
_MORE_LEFT = tuple(tuple(entry for entry in GRAMMARS if entry.name not in names) for names in _LESS_EXACT)
_MOST_FILE_PREFIXES = 3
# pdsh reports itself how the shell on a host ended: `pdsh@login: node7: ssh exited with exit code 1`.
_PDSH = "pdsh, clush and DeepSpeed's runner"
_PDSH_REPORT = lazy_re(r"pdsh@[\w.-]{1,80}: (?P<host>[\w.-]{1,80}): ")
# A name without a digit may stand before one line for each so many lines of hosts.
_OTHER_NAME, _HOST_LINES = lazy_re(r"[A-Za-z_][A-Za-z_.-]{0,60}: "), 8
# A stamp of a collector, such as `ts`: it stands before lines that no program stamps so.
_STAMP = lazy_re(rf"\[?{ISO}\]?:? ")
_STAMPED_AGAIN = lazy_re(
    r"(?:[^ \n]{1,60} ){0,3}(?:[^ \n]{0,40}\]:)?(?:\[?(?:\d{4}[-/]\d\d[-/]\d\d[ T_-]|[IWEFCD]\d{4} )\d\d:\d\d:\d\d\b|"
    r'\s+File "[^"\n]{1,300}", line \d|Traceback \(most recent call last\):)'
)

Check = Callable[[Sequence[str], Sequence[str]], bool]
"""Takes the values of the checked group (in file order) and all sampled lines: is it a prefix?"""


@dataclass(frozen=True, slots=True)
class FilePrefix:
    """A grammar that counts only in files where most lines have it.

    `check` gets the values of `group`. `only_inner`: it is looked for behind the other prefixes only.
    """

    grammar: Grammar
    group: str
    check: Check
    only_inner: bool = False


def _few_values(values: Sequence[str], _: Sequence[str]) -> bool:
    """The same few names repeat."""
    return len(set(values)) * 2 <= len(values)


def _streams_in_utc(values: Sequence[str], lines: Sequence[str]) -> bool:
    """The names of a few streams behind stamps in UTC, as AWS writes them: syslog has other zones, and hosts there."""
    return _few_values(values, lines) and sum("+00:00 " in line[:_STAMP_LENGTH] for line in lines) >= len(values)


def _host_names(values: Sequence[str], lines: Sequence[str]) -> bool:
    """Few names that look like hosts: with a digit, and none that counts something else. No node has over 16 GPUs."""
    counter = re.compile(
        r"(?i)(?:(?:gpu|cuda)[_-]?(?:\d|1[0-5])|"
        r"(?:step|epoch|iter(?:ation)?|batch|layer|loss|rank|stage|phase|fold|run|seed)[_-]?\d+)$"
    )
    return _few_values(values, lines) and all(re.search(r"\d", name) and not counter.match(name) for name in values)


def _hosts_and_few_names(values: Sequence[str], lines: Sequence[str]) -> bool:
    """Names of hosts; a few lines may begin with another name, as `wandb: ` does."""
    others = sum(_OTHER_NAME.match(line) is not None for line in lines)
    return _host_names(values, lines) and others * _HOST_LINES <= len(values)


def _host_and_rank(values: Sequence[str], _: Sequence[str]) -> bool:
    """Each number stands behind one host only, and the hosts have digits and are neither files nor counters."""
    pairs = {tuple(value.rsplit(" ", 1)) for value in values}
    hosts = [host for host, _ in pairs]
    numbers = {number for _, number in pairs}
    repeated = [host for host in hosts for _ in range(2)]
    return len(numbers) == len(pairs) > 1 and _host_names(repeated, ()) and _not_source_files(hosts, ())


def _inside_stack(values: Sequence[str], _: Sequence[str]) -> bool:
    """Some lines are inside a stack, where no program writes a timestamp of its own."""
    inside = re.compile(
        r"(?:\[[^\]]*\]:? ?)*(?:\s{3,}\S|\s+(?:File\b|at \S|in \S|from \S|@ +0x|#\d)|#\d+ |frame #\d+: |"
        r"\s*\d{1,3} +0x|(?:\s*\d{1,3} +)?\S+\(\S*\) ?\[0x)"
    )
    return any(inside.match(rest) for rest in values)


def _not_source_files(values: Sequence[str], _: Sequence[str]) -> bool:
    """No value is a source file: `[launch.py:42] ` is a place in a program."""
    return not any(re.search(r"\.(?:py|cc|cpp|cu|c|h|go|rs|ts)$", name) for name in values)


def _repeating_numbers(values: Sequence[str], _: Sequence[str]) -> bool:
    """The numbers repeat, unlike those of a listing."""
    return not _is_rising(values)


def _rank_tags(values: Sequence[str], lines: Sequence[str]) -> bool:
    """The numbers are ranks, not those of caffe2's frames in mixed threads."""
    return _repeating_numbers(values, lines) and not any(
        re.match(r"\[\d+\] \S.*\+0x[0-9a-f]+\(0x[0-9a-f]+\) in \S", line) for line in lines
    )


def _rising_counter(values: Sequence[str], _: Sequence[str]) -> bool:
    return _is_rising(values) and len(set(values)) >= 5


def _is_rising(values: Sequence[str]) -> bool:
    numbers = [int(value) for value in values]
    return len(numbers) >= 4 and all(one < other for one, other in itertools.pairwise(numbers))


def _any_value(values: Sequence[str], _: Sequence[str]) -> bool:
    return True


def _blank_after_every_tag(values: Sequence[str], lines: Sequence[str]) -> bool:
    """A blank follows every tag: PRRTE writes one, Open MPI before it and Horovod do not."""
    return not any(re.match(r"\[[\w@.-]+(?:,\d+)?\](?:\[[^\]]+\])?<std\w+>:\S", line) for line in lines)


def _file_prefix(
    name: str,
    kind: Kind,
    since: str,
    start_classes: str,
    sample: str,
    pattern: str,
    group: str,
    check: Check,
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
        _blank_after_every_tag,
    ),
    _file_prefix(
        "PRRTE rank-output",
        "writer",
        "Open MPI 5",
        "[d",
        _sample("[{}]<stdout>: step 3"),
        r"\[(?P<rank>\d{1,18})\]<(?P<stream>std(?:out|err|diag))>: ",
        "rank",
        _blank_after_every_tag,
    ),
    _file_prefix(
        "srun --label on every line",
        "writer",
        "Slurm 1",
        "d _",
        _sample("{}: step 3", "{}:   File"),
        r" {0,5}(?P<rank>\d{1,6}):(?: |$)",
        "rank",
        _repeating_numbers,
    ),
    _file_prefix(
        "torchrun template with a rank",
        "writer",
        "torch 2.1",
        "[d",
        _sample("[{}]:step 3"),
        r"\[(?P<rank>\d{1,6})\]:",
        "rank",
        _repeating_numbers,
    ),
    _file_prefix(
        "host and local rank in brackets",
        "writer",
        "torchrun, copied into documents",
        "[a",
        _sample("[node1:{}] step 3"),
        r"\[(?P<host>[A-Za-z][\w.-]*):(?P<local_rank>\d{1,2})\](?: |$)",
        "host",
        _not_source_files,
    ),
    _file_prefix(
        "numbers of lines",
        "carrier",
        "cat -n, nl",
        "d _",
        "\n".join(f"{number:6d}\tstep 3" for number in range(8, 14)),
        r" {0,5}(?P<number>\d{1,9})\t",
        "number",
        _rising_counter,
    ),
    _file_prefix(
        "host and rank",
        "writer",
        "HPE PALS 1 --label, where hosts have other names than Cray's",
        "a d date",
        _sample("node1 {}: step 3"),
        r"(?P<who>(?P<host>(?=[\w-]*[A-Za-z])\w[\w.-]*\w) (?P<rank>\d{1,6})):(?: |$)",
        "who",
        _host_and_rank,
    ),
    _file_prefix(
        "CI line counter",
        "carrier",
        "any",
        "[d",
        "\n".join(f"[{number}] step 3" for number in range(80746, 80752)),
        r"\[(?P<number>\d{1,9})\](?: |$)",
        "number",
        _rising_counter,
    ),
    _file_prefix(
        "MPICH and Intel MPI -prepend-rank",
        "writer",
        "MPICH 1.3",
        "[d",
        _sample("[{}] step 3"),
        r"\[(?P<rank>\d{1,6})\](?: |$)",
        "rank",
        _rank_tags,
    ),
    _file_prefix(
        "CloudWatch export to S3",
        "carrier",
        "any",
        "date",
        "\n".join(f"2026-11-21T03:07:45.372Z {line}" for line in ("step 3", "  File", "  File", "step 3")),
        rf"(?P<Y>\d{{4}})-(?P<M>\d\d)-(?P<D>\d\d)T{TIME}\.(?P<f>\d{{3,6}})(?P<z>Z) (?=(?P<rest>.*))",
        "rest",
        _inside_stack,
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
        _streams_in_utc,
    ),
    _file_prefix(
        "docker compose",
        "writer",
        "Docker Compose 1",
        "a d date",
        _sample("trainer-{}  | step 3"),
        r"(?P<who>\w[\w.-]*) +\|(?: |$)",
        "who",
        _few_values,
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
        _hosts_and_few_names,
    ),
    _file_prefix(
        "torchx and NeMo-Run",
        "writer",
        "torchx 0.1",
        "a",
        _sample("i.pretrain/{} step 3"),
        r"(?P<who>[A-Za-z][\w.-]*/\d{1,5})(?: |$)",
        "who",
        _few_values,
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
        _few_values,
    ),
    _file_prefix(
        "rank spelled out",
        "writer",
        "logging",
        "a (",
        _sample("Rank {}: step 3"),
        r"\(?(?:[Rr]ank|RANK)[ :=#_-]{0,2}(?P<rank>\d{1,6})(?:/\d+)?(?: ?[:|>]|\))(?: |$)",
        "rank",
        _any_value,
    ),
    _file_prefix(
        "ts",
        "carrier",
        "moreutils",
        "a",
        _sample("Nov 21 03:07:4{} step 3"),
        rf"{SYSLOG}(?:\.\d+)? ",
        "s",
        _any_value,
        only_inner=True,
    ),
)

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
    is_labelled = len(lines) < _ENOUGH_LINES or _is_labelled(lines) or _is_labelled([_label_text(x) for x in lines])
    grammars = GRAMMARS if is_labelled else _WITHOUT_LABEL
    chosen = () if outer is None else _list_file_prefixes(outer)
    if not chosen and _is_from_pdsh(lines):
        chosen = tuple(entry for entry in FILE_PREFIXES if entry.grammar.name == _PDSH)
    table = _table_with(chosen, grammars) if chosen else BY_START if is_labelled else UNLABELLED
    lines = [line for line in lines if not _BANNER.search(line)]
    if len(lines) < _FEWEST or not _may_have_file_prefix(lines[:: len(lines) // (2 * _FEWEST) or 1]):
        return table
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
    return table


def _is_from_pdsh(lines: Sequence[str]) -> bool:
    """Whether pdsh itself names a host that other lines begin with, however few."""
    hosts = {match["host"] for match in map(_PDSH_REPORT.match, lines) if match is not None}
    return any(line.startswith(f"{host}: ") for host in hosts for line in lines)


def _list_file_prefixes(table: Table) -> tuple[FilePrefix, ...]:
    """Return the file prefixes among the grammars of a file."""
    grammars = {id(grammar) for row in table.values() for grammar in row}
    return tuple(entry for entry in (*FILE_PREFIXES, *_INSIDE_ANOTHER.values()) if id(entry.grammar) in grammars)


def _remove_prefixes(lines: Sequence[str], table: Table) -> list[str]:
    """Return the text of the lines that open no record.

    Behind a timestamp or a head of plog or NCCL, `[5108] ` is a thread, and no launcher's prefix.
    """
    return [parsed.text for parsed in (parse_prefix(line, 1970, table) for line in lines) if not parsed.opens_record]


def _remove_collector_stamps(lines: Sequence[str]) -> list[str]:
    """Return the lines without the stamp that a collector wrote before each; none where it may be the programs' own."""
    rests = _remove_stamps(lines)
    return rests if len(rests) == len(lines) and any(_STAMPED_AGAIN.match(rest) for rest in rests) else []


def _remove_stamps(lines: Sequence[str]) -> list[str]:
    """Return the lines that begin with a stamp, without it."""
    matches = [(line, _STAMP.match(line)) for line in lines]
    return [line[match.end() :] for line, match in matches if match is not None]


def _label_text(line: str) -> str:
    """Return the line without its prefixes if it may have a label, else ""."""
    return parse_prefix(line, 1970, UNLABELLED).text if _LABEL_END.search(line) else ""


def _is_labelled(texts: Sequence[str]) -> bool:
    return _LABELLED_SHARE * sum(_LABEL.match(text) is not None for text in texts) >= len(texts)


def _may_have_file_prefix(some: Sequence[str]) -> bool:
    """Quick check of a few lines: does any file prefix match a third of them? In most files none does."""
    left = (_remove_prefixes(some, _table_with((), rest)) for rest in _MORE_LEFT)
    views = (_remove_prefixes(some, BY_START), some, *left, _remove_stamps(some))
    return any(
        3 * sum(entry.grammar.pattern.match(text) is not None for text in texts) >= len(texts) > 0
        for texts in views
        for entry in FILE_PREFIXES
    )


@functools.cache
def _table_with(file_prefixes: tuple[FilePrefix, ...], grammars: tuple[Grammar, ...]) -> Table:
    return build_table((*(entry.grammar for entry in file_prefixes), *grammars))


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
