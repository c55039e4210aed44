"""What to collect the next time, so that the cause can be found: only what this job lacks, as its versions call it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.model.evidence import Evidence

_GLOO = lazy_re(r"gloo|unbound_buffer\.cc|\bpair\.cc", re.I)
_NPU = lazy_re(r"\bHCCL\b|\bWorkHCCL\b|\bEI\d{4}\b|torch_npu|ProcessGroupHCCL", re.I)
_NCCL = lazy_re(r"\bNCCL\b|\bWorkNCCL\b|ProcessGroupNCCL")
_DUMPS = frozenset(("flight", "flight-recorder"))
_STACKS = frozenset(("stack", "stacks", "core"))
# torch 2.9 renamed the variable of the flight recorder's buffer, and lets it record by default.
_RENAMED = (2, 9)
_FIRST_RECORDER = (2, 2)


@dataclass(frozen=True, slots=True)
class AvailableData:
    """What the job left behind. `absent`: ranks without any line."""

    facts: Sequence[Evidence]
    versions: Mapping[str, str]
    absent: tuple[int, ...] = ()

    def mentions(self, pattern: re.Pattern[str]) -> bool:
        """Whether the pattern is in one of the first facts."""
        return any(pattern.search(fact.text) for fact in self.facts[:2000])

    def kinds(self) -> set[str]:
        """Return the kinds and the components of all facts."""
        return {fact.kind for fact in self.facts} | {fact.component for fact in self.facts}


def detect_backend(data: AvailableData) -> str:
    """Return the library in which the ranks waited: hccl, nccl, gloo, or nothing where it is not known."""
    for name, pattern in (("hccl", _NPU), ("nccl", _NCCL), ("gloo", _GLOO)):
        if data.mentions(pattern):
            return name
    return ""


def advise_flight_recorder(data: AvailableData) -> str:
    """Return how to record how far each rank is in its collectives; gloo has no flight recorder."""
    backend = detect_backend(data)
    if data.kinds() & _DUMPS:
        return ""
    if backend == "nccl" and () < _torch_version(data) < _FIRST_RECORDER:
        return (
            "set NCCL_DESYNC_DEBUG=1, so that a timeout lists the missing ranks"
            " (torch 2.2 and newer have a flight recorder)"
        )
    if backend == "nccl":
        size = "TORCH_FR_BUFFER_SIZE" if _torch_version(data) >= _RENAMED else "TORCH_NCCL_TRACE_BUFFER_SIZE"
        both = "" if data.versions.get("torch") else " (TORCH_FR_BUFFER_SIZE since torch 2.9)"
        return (
            f"set {size}=2000{both} and TORCH_NCCL_DUMP_ON_TIMEOUT=1, so that every rank writes a flight recorder dump"
        )
    if backend == "hccl":
        return (
            "set HCCL_ENTRY_LOG_ENABLE=1 and keep the run and debug folders of every process's plog"
            " (ASCEND_PROCESS_LOG_PATH)"
        )
    if backend == "gloo":
        return (
            "set TORCH_DISTRIBUTED_DEBUG=DETAIL: gloo has no flight recorder,"
            " but then prints which collective each rank ran"
        )
    return ""


def advise_nccl_log(data: AvailableData) -> str:
    """Return how to get the log of the transport itself."""
    if detect_backend(data) == "nccl" and "NCCL" not in data.kinds():
        return "set NCCL_DEBUG=INFO (with NCCL_DEBUG_FILE=/logs/nccl.%h.%p, one file per process)"
    return ""


def advise_stacks(data: AvailableData) -> str:
    """Return how to get the stack of each rank."""
    if data.kinds() & _STACKS:
        return ""
    return (
        "run `py-spy dump --pid PID --native` on every rank that still runs, or `triage collect`, while the job hangs"
    )


def advise_machine_logs(data: AvailableData) -> str:
    """Return how to learn why a process was killed, which only the kernel and the scheduler know."""
    kinds = data.kinds()
    missing = []
    if "kernel" not in kinds:
        missing.append("the kernel log of every host (`dmesg -T > $(hostname).dmesg`)")
    if "scheduler" not in kinds:
        command = "`sacct -j ID --format=JobID,State,ExitCode,MaxRSS`, `kubectl describe pod`"
        missing.append(f"the scheduler's record of the job ({command})")
    return "keep " + " and ".join(missing) if missing else ""


def advise_rank_logs(data: AvailableData) -> str:
    """Return how to know which rank wrote which line."""
    ranks = [fact.origin.rank for fact in data.facts if fact.kind not in ("kernel", "scheduler", "inference")]
    if not data.absent and ranks.count(None) * 4 <= len(ranks):
        return ""
    missing = f" (no line is from {format_ranks(data.absent)})" if data.absent else ""
    label = "label the lines (torchrun --log-dir DIR --redirects 3 --tee 3, srun --label)"
    return f"keep one log per rank{missing}, or {label}"


def advise_timestamps(data: AvailableData) -> str:
    """Return how to know which of several failures was first."""
    if data.facts and not any(fact.origin.time is not None for fact in data.facts):
        return "let the program's logger print the time, the rank and the step of each line"
    return ""


ADVICE: tuple[Callable[[AvailableData], str], ...] = (
    advise_flight_recorder,
    advise_nccl_log,
    advise_stacks,
    advise_machine_logs,
    advise_rank_logs,
    advise_timestamps,
)


def advise_collection(data: AvailableData) -> str:
    """Return one sentence with all that is missing; empty when nothing is."""
    advice = [text for advise in ADVICE if (text := advise(data))]
    return f"To find the cause next time: {'; '.join(advice)}" if advice else ""


def _torch_version(data: AvailableData) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", data.versions.get("torch", "").partition("+")[0])[:2])
