"""What HCCL says of the process that writes: its number in a communicator, its server and its device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.model.evidence import Evidence, Origin
from triage.ranks.communicators import CommunicatorMember

# What stands between a host's folder and the plogs of its processes.
_LOG_FOLDERS = lazy_re(r"(?:^|/)(?:(?:log|run|debug|plog|security)/|device-\d{1,4}/)")
# The entry of a communicator and the call of a failed task state the device of their writer, without its server.
_OWN_DEVICE = lazy_re(
    r"Entry-HcclCommInit\w{0,60}:[^\n]{0,600}?\bdeviceLogicId\[(\d{1,4})\]"
    r"|\bopData information is [^\n]{0,100}?\bdeviceId\[(\d{1,4})\]"
)
_DEVICE_HINTS = ("Entry-HcclCommInit", "opData information is ")
_MOST_DEVICES = 3


@dataclass(frozen=True, slots=True)
class NpuProcess:
    """What one line of a process says: `number` in communicator `group` of `size`, `device` of the server `address`.

    -1 and empty: not stated. `is_error`: the line reports an error, so the group may be any of the process.
    """

    source: str
    origin: Origin
    group: str = ""
    number: int = -1
    size: int = -1
    address: str = ""
    device: int = -1
    is_error: bool = False


def list_npu_members(
    processes: Iterable[NpuProcess], sources: Mapping[str, Origin], has_ranks: bool
) -> list[CommunicatorMember]:
    """Return the members of communicators. `sources` has what file names say, `has_ranks` whether other lines do."""
    lines = [one for one in processes if one.number >= 0 and not one.is_error]
    if not lines and not has_ranks:
        lines = _find_world([one for one in processes if one.is_error and one.number >= 0], sources)
    return [CommunicatorMember(one.source, one.origin, one.number, one.size) for one in lines]


def _find_world(processes: Sequence[NpuProcess], sources: Mapping[str, Origin]) -> list[NpuProcess]:
    """Return the members of the communicator of all ranks, where only errors name communicators.

    It must be the only one of the largest size, with one process for each number, and there must be no more processes:
    else it may be a part of the job. The last process has the last number.
    """
    size = max((one.size for one in processes), default=-1)
    members = [one for one in processes if one.size == size]
    if size < 2 or len({one.group for one in members}) != 1:
        return []
    owners: dict[int, set[object]] = defaultdict(set)
    for one in members:
        owners[one.number].add(_name(one.source, one.origin))
    others = {_name(source, origin): (source, origin) for source, origin in sources.items() if origin.pid is not None}
    if any(len(names) > 1 for names in owners.values()) or len(others) > size:
        return []
    known = {name for names in owners.values() for name in names}
    left, numbers = others.keys() - known, set(range(size)) - owners.keys()
    if len(left) == len(numbers) == 1:
        source, origin = others[left.pop()]
        members.append(NpuProcess(source, Origin(host=origin.host, pid=origin.pid), "", numbers.pop(), size))
    return members


def _name(source: str, origin: Origin) -> tuple[str, int | None]:
    """Return what is equal for all files of a process: the folder of the logs of its host, and its pid."""
    return _LOG_FOLDERS.split(source, maxsplit=1)[0], origin.pid


def place_devices(
    processes: Iterable[NpuProcess], complete: Callable[[str, Origin], Origin]
) -> dict[tuple[str, int], set[int]]:
    """Return the ranks on each device of a server, by (address, device)."""
    ranks: dict[tuple[str, int], set[int]] = defaultdict(set)
    for one in processes:
        if one.address and one.device >= 0:
            rank = complete(one.source, one.origin).rank
            if rank is not None:
                ranks[(one.address, one.device)].add(rank)
    return dict(ranks)


def find_devices(
    processes: Iterable[NpuProcess], complete: Callable[[str, Origin], Origin]
) -> dict[int, tuple[str, int]]:
    """Return the server and the device of each rank whose lines name one device."""
    places: dict[int, set[tuple[str, int]]] = defaultdict(set)
    for place, ranks in place_devices(processes, complete).items():
        for rank in ranks:
            places[rank].add(place)
    return {rank: min(known) for rank, known in sorted(places.items()) if len(known) == 1}


def describe_npu_devices(
    ranks: Collection[int], placed: Mapping[int, tuple[str, int]], facts: Sequence[Evidence]
) -> Iterator[str]:
    """Yield a sentence for each of at most three ranks: its device, and its server if `placed` has it."""
    if len(ranks) > _MOST_DEVICES:
        return
    for rank in sorted(ranks):
        if rank in placed:
            server, device = placed[rank]
            yield f"Rank {rank} uses device {device} of {server}"
            continue
        devices = {device for fact in facts if fact.origin.rank == rank for device in _read_devices(fact.text)}
        if len(devices) == 1:
            yield f"Rank {rank} uses device {devices.pop()} of its host"


def _read_devices(text: str) -> Iterator[str]:
    if any(hint in text for hint in _DEVICE_HINTS):
        for match in _OWN_DEVICE.finditer(text):
            yield match[1] or match[2]
