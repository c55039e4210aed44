"""Read the order of hosts from a printed launch command, or from a hostfile among the files of a job.

Formats: `mpirun -H node1:4,node2:4 -np 8` (Open MPI, Horovod), `mpiexec -hosts node1,node2 -ppn 4` (MPICH, Intel MPI),
hostfiles with `node1 slots=4` (Open MPI, DeepSpeed), `node1:4` (MPICH, Intel MPI), or a name for each slot (PBS).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from triage.base.digit_masks import ask_masked, list_masks
from triage.base.lazy_re import lazy_re
from triage.ranks.host_orders import HostOrder
from triage.records.text import Text

_MOST_HOSTS = 1 << 14
_MOST_SLOTS = 1 << 10
_LONGEST = 1 << 16
_MOST_COMMANDS = 8
_LONGEST_FILE = 1 << 19
_HINTS = (b"mpirun ", b"mpiexec", b"prterun ", b"horovodrun ")
_NAME = r"[A-Za-z0-9][\w.-]{0,252}"
_LAUNCHER = lazy_re(
    r"(?:^|[\s\"'/`(])(?:mpirun|mpiexec(?:\.hydra)?|prterun|horovodrun)\s(?P<arguments>.*)",
)
_HOSTS = lazy_re(
    r"(?:^|\s)--?(?:H|hosts?)[ =]\s?"
    rf"(?P<hosts>{_NAME}(?::\d{{1,4}})?(?:,{_NAME}(?::\d{{1,4}})?){{0,16383}})(?=[\s\"']|$)"
)
_PROCESSES = lazy_re(r"(?:^|\s)(?:-np|-n|-c|--np|--n|-num-proc|--num-proc)[ =](\d{1,6})(?=[\s\"']|$)")
_ON_EACH = lazy_re(r"(?:^|\s)(?:--?ppn|--?npernode|--?perhost|-N|--map-by ppr)[ =:](\d{1,4})(?=[\s\"':]|$)")
# Ranks go around the hosts, are placed by another file, or belong to several programs.
_OTHER_ORDER = lazy_re(r"--?bynode\b|--?(?:map|rank)-by\s+(?:node|seq)|rankfile|(?:^|\s)-rf\s|(?:^|\s)-rr\b|\s:\s")
_FILE_NAME = lazy_re(r"(?i)(?:^|/)[\w.-]{0,80}(?:host|machine|node)[_-]?(?:file|list|s)(?:[._-][\w.-]{0,40})?$")
_SLOTS = lazy_re(
    rf"(?P<host>{_NAME})\s+slots\s?=\s?(?P<slots>\d{{1,4}})(?:\s+max[_-]slots\s?=\s?\d{{1,4}})?\s*(?:#.*)?"
)
_COUNTED = lazy_re(rf"(?P<host>{_NAME}):(?P<slots>\d{{1,4}})")
_BARE = lazy_re(rf"(?P<host>{_NAME})")


def find_host_orders(text: Text, head: bytes, tail: bytes, tail_offset: int) -> tuple[HostOrder, ...]:
    """Return the orders that the first and last lines of a source state, or a source that is a hostfile."""
    whole = tail if not tail_offset else b""
    hostfile = read_hostfile(text.name, whole.decode("utf-8", "replace")) if len(whole) <= _LONGEST_FILE else None
    if hostfile is not None:
        return (hostfile,)
    orders: dict[HostOrder, None] = {}
    for data, offset in ((head[: max(0, tail_offset)], 0), (tail, tail_offset)):
        for start, end in _commands(data):
            for line in text.parse_line(data[start:end], offset + start):
                if (order := read_command(line.parsed.text)) is not None:
                    orders[order] = None
    return tuple(orders)


def read_command(text: str) -> HostOrder | None:
    """Return the order of hosts in a printed command; None if it has none or places its ranks in another way."""
    launcher = _LAUNCHER.search(text[:_LONGEST])
    listed = _HOSTS.search(launcher["arguments"]) if launcher is not None else None
    if launcher is None or listed is None or _OTHER_ORDER.search(launcher["arguments"]):
        return None
    entries = [entry.partition(":") for entry in listed["hosts"].split(",")]
    on_each, processes = (pattern.search(launcher["arguments"]) for pattern in (_ON_EACH, _PROCESSES))
    default = int(on_each[1]) if on_each is not None else 0
    hosts = [(host, int(slots) if slots else default) for host, _, slots in entries]
    return _make_order(hosts, int(processes[1]) if processes is not None else -1)


def read_hostfile(name: str, content: str) -> HostOrder | None:
    """Return the order in the content of a hostfile; None if another kind of line is in it."""
    lines = [line.strip() for line in content.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    forms = (_SLOTS, _COUNTED, _BARE) if _FILE_NAME.search(name) else (_SLOTS,)
    for form in forms if 0 < len(lines) <= _MOST_HOSTS * 8 else ():
        entries = [form.fullmatch(line) for line in lines]
        if all(entries):
            listed = [entry.groupdict() for entry in entries if entry is not None]
            return _make_order([(entry["host"], int(entry.get("slots") or 0)) for entry in listed], -1)
    return None


def _make_order(entries: list[tuple[str, int]], processes: int) -> HostOrder | None:
    """Return an order of several hosts; a host that is listed again without slots has one for each time."""
    times = Counter(host for host, _ in entries)
    if any(slots for _, slots in entries) and max(times.values()) > 1:
        return None
    hosts = dict(entries)
    if max(times.values()) > 1:
        hosts = dict(times)
    fits = 1 < len(hosts) <= _MOST_HOSTS and max(hosts.values()) <= _MOST_SLOTS
    return HostOrder(tuple(hosts.items()), processes) if fits and "localhost" not in hosts else None


@ask_masked
def _may_have_command(line: bytes) -> bool:
    return any(hint in line for hint in _HINTS)


def _commands(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of the first lines that may have the command of a launcher."""
    starts: dict[int, int] = {}
    for hint in _HINTS if any(_may_have_command.of_masks(list_masks(data))) else ():
        at = data.find(hint)
        for _ in range(_MOST_COMMANDS):
            if at < 0:
                break
            start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
            starts[start] = end if end >= 0 else len(data)
            at = data.find(hint, starts[start])
    yield from sorted(starts.items())
