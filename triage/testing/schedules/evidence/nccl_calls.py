"""The calls that NCCL logs with `NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL`, alone or beside the watchdogs' lines."""

from __future__ import annotations

import hashlib
import random

from triage.testing.schedules.evidence.interface import Form, Scene, Shown, WrittenEvidence, merge
from triage.testing.schedules.evidence.ras import name_operation
from triage.testing.schedules.evidence.watchdog import write_logs
from triage.testing.schedules.model import RankView, Record

_DATA_TYPES = {"Byte": 1, "Int": 2, "Long": 4, "Half": 6, "Float": 7, "Double": 8, "BFloat16": 9}
_WATCHDOGS = ((2, 6), (2, 8), (2, 9), (2, 13))
_NAMES = ("nccl.{host}.{pid}.log", "nccl/debug-{host}-{pid}.txt")
_LONGEST_HISTORY = 4000


def write_calls(scene: Scene, rng: random.Random) -> WrittenEvidence:
    """Write the file of NCCL_DEBUG_FILE of each process. Without a network in use NCCL counts no launch."""
    name, counts = rng.choice(_NAMES), rng.random() < 0.7
    files: dict[str, bytes] = {}
    shown: dict[int, Shown] = {}
    for view in scene.views():
        host, pid = scene.hosts[view.rank // scene.per_host % len(scene.hosts)], 4000 + 7 * view.rank
        lines = _lines(scene, view, f"{host}:{pid}:{pid + 1}", counts=counts)
        files[name.format(host=host, pid=pid)] = ("\n".join(lines) + "\n").encode()
        records = frozenset(
            number for number, record in enumerate(view.records) if name_operation(record.call.operation)
        )
        groups = frozenset(record.call.group for record in view.records)
        shown[view.rank] = Shown(view, records, groups, has_members=False)
    return WrittenEvidence(files, shown)


def _lines(scene: Scene, view: RankView, process: str, *, counts: bool) -> list[str]:
    """Return the lines of one process: each communicator is made for the first call in its group, that of all first."""
    local = view.rank % scene.per_host
    groups, launched = scene.outcome.schedule.groups, dict[int, int]()
    lines = [f"{process} [{local}] NCCL INFO NCCL version 2.21.5+cuda12.4"]
    for record in (None, *view.records[-_LONGEST_HISTORY:]):
        index = record.call.group if record is not None else 0
        group = groups[index]
        head = f"{process} [{local}] NCCL INFO "
        pointer = _hash(scene, group.name, view.rank)[:12]
        if index not in launched:
            launched[index] = 0
            lines.append(
                f"{head}ncclCommInitRankConfig comm 0x{pointer} rank {group.ranks.index(view.rank)} nranks "
                f"{len(group.ranks)} cudaDev {local} nvmlDev {local} busId {0x1B000 + local * 0x1000:x} commId "
                f"0x{_hash(scene, group.name)[:16]} - Init COMPLETE"
            )
        if record is not None:
            end = f"comm 0x{pointer} [nranks={len(group.ranks)}] stream 0x55d0c8a1"
            lines += [f"{head}{text} {end}" for text in _calls(record, launched[index])]
            launched[index] += counts
    return lines


def _calls(record: Record, number: int) -> list[str]:
    """Return what NCCL writes of a call, without its communicator; of a batch or an all-to-all, its parts."""
    call = record.call
    operation = name_operation(call.operation)
    parts = [(operation, call.numel, 0)] if operation else []
    parts += [("Send" if one.is_send else "Recv", one.numel, one.peer) for one in call.transfers]
    parts = parts or [("Send", call.numel, 0), ("Recv", call.numel, 0)]
    buffers = "sendbuff 0x7f2c40000000 recvbuff 0x7f2c48000000"
    kind = _DATA_TYPES.get(call.dtype, 7)
    return [
        f"{name}: opCount {number:x} {buffers} count {count} datatype {kind} op 0 root {root}"
        for name, count, root in parts
    ]


def _hash(scene: Scene, *parts: object) -> str:
    return hashlib.sha256(f"{scene.start} {parts}".encode()).hexdigest()


def _write_alone(scene: Scene, rng: random.Random) -> WrittenEvidence:
    """Without a timeout, nothing shows that ranks hang where they stand."""
    written = write_calls(scene, rng)
    return WrittenEvidence(written.files, {rank: Shown(one.view) for rank, one in written.shown.items()})


def _write_with_logs(scene: Scene, rng: random.Random) -> WrittenEvidence:
    return merge(write_logs(scene, rng, _WATCHDOGS), write_calls(scene, rng))


FORMS = (Form("nccl-calls", _write_alone), Form("nccl-calls+watchdog", _write_with_logs))
