"""Slurm's lists of hosts and tasks: `node[2-4,8],login1` and `0-3,7`, expanded by ClusterShell."""

from __future__ import annotations

from triage.base.lazy_re import lazy_re

_MOST = 65536
_BRACKETS = lazy_re(r"\[([^\]]*)\]")
_RANGE = lazy_re(r"(\d+)-(\d+)")
_ONE_NUMBER = lazy_re(r"[0-9]{1,18}")


def expand_hosts(text: str) -> list[str]:
    """Return the hosts of `node[2-4,8],login1` in order; nothing for a list that is malformed or longer than 65,536."""
    if _size(text) > _MOST:
        return []
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    try:
        return [str(host) for host in NodeSet(text, resolver=RESOLVER_NOGROUP)]  # no groups: those may run commands
    except NodeSetException:
        return []


def expand_numbers(text: str) -> list[int]:
    """Return the numbers of `0-3,7`, ascending; nothing for a list that is malformed or longer than 65,536."""
    if not text or _size(f"[{text}]") > _MOST:
        return []
    if _ONE_NUMBER.fullmatch(text):  # the usual case, without the import
        return [int(text)]
    from ClusterShell.RangeSet import RangeSet, RangeSetException

    try:
        return sorted(int(number) for number in RangeSet(text))
    except (RangeSetException, ValueError):  # ValueError: a range of five numbers or more
        return []


def _size(text: str) -> int:
    """Return an upper bound of the number of entries, without expanding anything: ranges multiply between brackets."""
    product = 1
    for part in _BRACKETS.findall(text):
        product *= sum(max(0, int(high[:9]) - int(low[:9])) for low, high in _RANGE.findall(part)) + part.count(",") + 1
    return product if len(text) <= _MOST else _MOST + 1
