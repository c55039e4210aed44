"""Checks of what may be a prefix of a file: do the values before its lines look like hosts, ranks or counters?"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence

from triage.base.lazy_re import lazy_re

_STAMP_LENGTH = 33
# A name without a digit may stand before one line for each so many lines of hosts.
_OTHER_NAME, _HOST_LINES = lazy_re(r"[A-Za-z_][A-Za-z_.-]{0,60}: "), 8

Check = Callable[[Sequence[str], Sequence[str]], bool]
"""Takes the values of the checked group (in file order) and all sampled lines: is it a prefix?"""


def few_values(values: Sequence[str], _: Sequence[str]) -> bool:
    """The same few names repeat."""
    return len(set(values)) * 2 <= len(values)


def services(values: Sequence[str], _: Sequence[str]) -> bool:
    """The same few names repeat, and are not the ranks of a program."""
    return few_values(values, _) and not all(re.fullmatch(r"(?i)rank[_-]?\d+", name) for name in values)


def streams_in_utc(values: Sequence[str], lines: Sequence[str]) -> bool:
    """The names of a few streams behind stamps in UTC, as AWS writes them: syslog has other zones, and hosts there."""
    return few_values(values, lines) and sum("+00:00 " in line[:_STAMP_LENGTH] for line in lines) >= len(values)


def host_names(values: Sequence[str], lines: Sequence[str]) -> bool:
    """Few names that look like hosts: with a digit, and none that counts something else. No node has over 16 GPUs."""
    counter = re.compile(
        r"(?i)(?:(?:gpu|cuda)[_-]?(?:\d|1[0-5])|"
        r"(?:step|epoch|iter(?:ation)?|batch|layer|loss|rank|stage|phase|fold|run|seed)[_-]?\d+)$"
    )
    return few_values(values, lines) and all(re.search(r"\d", name) and not counter.match(name) for name in values)


def hosts_and_few_names(values: Sequence[str], lines: Sequence[str]) -> bool:
    """Names of hosts; a few lines may begin with another name, as `wandb: ` does."""
    others = sum(_OTHER_NAME.match(line) is not None for line in lines)
    return host_names(values, lines) and others * _HOST_LINES <= len(values)


def host_and_rank(values: Sequence[str], _: Sequence[str]) -> bool:
    """Each number stands behind one host only, and the hosts have digits and are neither files nor counters."""
    pairs = {tuple(value.rsplit(" ", 1)) for value in values}
    hosts = [host for host, _ in pairs]
    numbers = {number for _, number in pairs}
    repeated = [host for host in hosts for _ in range(2)]
    return len(numbers) == len(pairs) > 1 and host_names(repeated, ()) and not_source_files(hosts, ())


def inside_stack(values: Sequence[str], _: Sequence[str]) -> bool:
    """Some lines are inside a stack, where no program writes a timestamp of its own."""
    inside = re.compile(
        r"(?:\[[^\]]*\]:? ?)*(?:\s{3,}\S|\s+(?:File\b|at \S|in \S|from \S|@ +0x|#\d)|#\d+ |frame #\d+: |"
        r"\s*\d{1,3} +0x|(?:\s*\d{1,3} +)?\S+\(\S*\) ?\[0x)"
    )
    return any(inside.match(rest) for rest in values)


def not_source_files(values: Sequence[str], _: Sequence[str]) -> bool:
    """No value is a source file: `[launch.py:42] ` is a place in a program."""
    return not any(re.search(r"\.(?:py|cc|cpp|cu|c|h|go|rs|ts)$", name) for name in values)


def repeating_numbers(values: Sequence[str], _: Sequence[str]) -> bool:
    """The numbers repeat, unlike those of a listing."""
    return not _is_rising(values)


def rank_tags(values: Sequence[str], lines: Sequence[str]) -> bool:
    """The numbers are ranks, not those of caffe2's frames in mixed threads."""
    return repeating_numbers(values, lines) and not any(
        re.match(r"\[\d+\] \S.*\+0x[0-9a-f]+\(0x[0-9a-f]+\) in \S", line) for line in lines
    )


def several_repeat(values: Sequence[str], lines: Sequence[str]) -> bool:
    """Several numbers come again and again, as those of ranks do."""
    return len(set(values)) > 1 and few_values(values, lines) and repeating_numbers(values, lines)


def rising_counter(values: Sequence[str], _: Sequence[str]) -> bool:
    """The numbers of lines, one after another."""
    return _is_rising(values) and len(set(values)) >= 5


def _is_rising(values: Sequence[str]) -> bool:
    numbers = [int(value) for value in values]
    return len(numbers) >= 4 and all(one < other for one, other in itertools.pairwise(numbers))


def any_value(values: Sequence[str], _: Sequence[str]) -> bool:
    """The form of the prefix is enough."""
    return True


def blank_after_every_tag(values: Sequence[str], lines: Sequence[str]) -> bool:
    """A blank follows every tag: PRRTE writes one, Open MPI before it and Horovod do not."""
    return not any(re.match(r"\[[\w@.-]+(?:,\d+)?\](?:\[[^\]]+\])?<std\w+>:\S", line) for line in lines)
