"""What to keep the next time, so that the cause of such a failure can be known: only what this job's files lack, with
the names of its versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Evidence

_GLOO = lazy_re(r"gloo|unbound_buffer\.cc|\bpair\.cc", re.I)
_NPU = lazy_re(r"\bHCCL\b|\bWorkHCCL\b|\bEI\d{4}\b|torch_npu|ProcessGroupHCCL", re.I)
_NCCL = lazy_re(r"\bNCCL\b|\bWorkNCCL\b|ProcessGroupNCCL")
_DUMPS = frozenset(("flight", "flight-recorder"))
_STACKS = frozenset(("stack", "stacks", "core"))
# torch 2.9 renamed the variable of the flight recorder's buffer, and lets it record by default.
_RENAMED = (2, 9)
_RECORDED = (2, 2)  # the first torch with a flight recorder


@dataclass(frozen=True, slots=True)
class Left:
    """What the job left behind. `silent`: ranks without any line."""

    facts: Sequence[Evidence]
    versions: Mapping[str, str]
    silent: tuple[int, ...] = ()

    def says(self, pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(fact.text) for fact in self.facts[:2000])

    def kinds(self) -> set[str]:
        return {fact.kind for fact in self.facts} | {fact.component for fact in self.facts}


def backend(left: Left) -> str:
    """Which library the ranks waited in: hccl, nccl, gloo, or nothing that is known."""
    for name, pattern in (("hccl", _NPU), ("nccl", _NCCL), ("gloo", _GLOO)):
        if left.says(pattern):
            return name
    return ""


def recorder(left: Left) -> str:
    """How far each rank had come in its collectives: the flight recorder, which gloo has not."""
    if left.kinds() & _DUMPS:
        return ""
    if backend(left) == "nccl" and () < _torch(left) < _RECORDED:
        return "set NCCL_DESYNC_DEBUG=1, so that a time-out says which ranks are missing (torch 2.2 and newer have a flight recorder)"
    if backend(left) == "nccl":
        size = "TORCH_FR_BUFFER_SIZE" if _torch(left) >= _RENAMED else "TORCH_NCCL_TRACE_BUFFER_SIZE"
        both = "" if left.versions.get("torch") else " (TORCH_FR_BUFFER_SIZE since torch 2.9)"
        return (
            f"set {size}=2000{both} and TORCH_NCCL_DUMP_ON_TIMEOUT=1, so that every rank leaves a flight recorder dump"
        )
    if backend(left) == "hccl":
        return "set HCCL_ENTRY_LOG_ENABLE=1 and keep the run and debug folders of every process's plog (ASCEND_PROCESS_LOG_PATH)"
    if backend(left) == "gloo":
        return "set TORCH_DISTRIBUTED_DEBUG=DETAIL: gloo leaves no flight recorder dump, but then says which collective each rank ran"
    return ""


def library(left: Left) -> str:
    """What the transport itself says."""
    if backend(left) == "nccl" and "NCCL" not in left.kinds():
        return "set NCCL_DEBUG=INFO (with NCCL_DEBUG_FILE=/logs/nccl.%h.%p, a file for each process)"
    return ""


def stacks(left: Left) -> str:
    """Where each rank stood."""
    if left.kinds() & _STACKS:
        return ""
    return "run `py-spy dump --pid PID --native` on the suspects, or `triage collect`, while the job still hangs"


def machine(left: Left) -> str:
    """Why a process was gone: only the kernel and the scheduler know."""
    kinds = left.kinds()
    missing = [
        name
        for kind, name in (
            ("kernel", "the kernel's log of every host (`dmesg -T > $(hostname).dmesg`)"),
            (
                "scheduler",
                "what the scheduler says of the job (`sacct -j ID --format=JobID,State,ExitCode,MaxRSS`, `kubectl describe pod`)",
            ),
        )
        if kind not in kinds
    ]
    return "keep " + " and ".join(missing) if missing else ""


def writers(left: Left) -> str:
    """Who wrote which line."""
    spoken = [fact.origin.rank for fact in left.facts if fact.kind not in ("kernel", "scheduler", "inference")]
    if left.silent or spoken.count(None) * 4 > len(spoken):
        return (
            "keep the log of every rank apart or labelled (torchrun --log-dir DIR --redirects 3 --tee 3, srun --label)"
        )
    return ""


def hosts(left: Left) -> str:
    """Stamps, so that the first of several failures can be told."""
    if left.facts and not any(fact.origin.time is not None for fact in left.facts):
        return "let the program's logger print the time, the rank and the step of each line"
    return ""


ASKING: tuple[Callable[[Left], str], ...] = (recorder, library, stacks, machine, writers, hosts)


def what_to_collect(left: Left) -> str:
    """One sentence with all that is missing; empty when nothing is."""
    said = [text for ask in ASKING if (text := ask(left))]
    return f"to know the cause next time: {'; '.join(said)}" if said else ""


def _torch(left: Left) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", left.versions.get("torch", "").partition("+")[0])[:2])
