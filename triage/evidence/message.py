"""Messages: lines of NCCL, HCCL and CANN, c10d, CUDA, the kernel, the scheduler, and all other lines.

Fields, where the text has them: NCCL file and rc chain, CANN code, kernel xid and bus id, glog source.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from triage.base.lazy_re import lazy_re
from triage.base.masked_re import MaskedPattern, MaskedPatterns, masked_re
from triage.evidence.extractor import make_evidence
from triage.model import Block, Detail, Evidence, KernelDetail, SchedulerDetail

# Component, kind of fact and pattern: the first pattern that is found decides.
COMPONENTS: tuple[tuple[str, str, MaskedPattern], ...] = (
    ("NCCL", "message", masked_re(r"\bNCCL (?:WARN|INFO|TRACE)|\bncclInternalError|NCCL error in")),
    ("torch_npu", "message", masked_re(r"\bERR\d{5} |torch_npu|WorkHCCL|ProcessGroupHCCL")),
    ("c10d", "message", masked_re(r"\[c10d\]|ProcessGroup|TCPStore|\[PG |monitoredBarrier|Watchdog caught")),
    ("CANN", "message", masked_re(r"\b[EW][A-Z0-9]\d{4}(?:: |\(|\[|\))|\bCANN\b|aicore|aicpu")),
    ("HCCL", "message", masked_re(r"\bHCCL\b|hccl|\bHCCP\b|TopoDetect")),
    (
        "kernel",
        "kernel",
        masked_re(
            r"NVRM: |\bXid \(PCI:|nvidia-nvswitch|oom-kill:|Out of memory: Killed|Memory cgroup out of memory"
            r"|segfault at|\bsoft lockup|blocked for more than|EXT4-fs|nfs: server"
            r"|mlx5_core|pcieport|AER: |general protection fault|I/O error, dev|Aborting journal on device"
            r"|\bnvme\d+(?:n\d+)?: I/O |\bata\d+(?:\.\d+)?: |\bsd \d+:\d+:\d+:\d+: "
            r"|\b(?:amdgpu|i915|xe) [\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.\d: "
        ),
    ),
    ("slurm", "scheduler", masked_re(r"slurmstepd|srun: |StepId=|DUE TO |CANCELLED AT|oom[-_]kill event")),
    ("kubernetes", "scheduler", masked_re(r"OOMKilled|Evicted|kubelet|Preempted|FailedScheduling")),
    ("Gloo", "message", masked_re(r"gloo/")),
    (
        "torchelastic",
        "message",
        masked_re(r"death signal|Worker group|ChildFailedError|rendezvous|SignalException|elastic"),
    ),
    ("c10d", "message", masked_re(r"Watchdog|collective")),
    ("CUDA", "message", masked_re(r"CUDA|cuda|CUBLAS|cudnn")),
    ("deepspeed", "message", masked_re(r"deepspeed|\[deepscale\]|launch\.py|sigkill_handler|hostfile")),
    ("ray", "message", masked_re(r"raylet|Worker exit type|\bray\b")),
    ("glibc", "message", masked_re(r"double free|corrupted|malloc\(\)|free\(\): |munmap_chunk|stack smashing")),
)
_FIELDS = (
    masked_re(r"\bXid \((?:PCI:)?(?P<busid>[\da-fA-F:.]+)\): (?P<xid>\d{1,18})(?:, pid=(?P<pid>\d{1,18}))?"),
    masked_re(r"SXid \((?:PCI:)?(?P<busid>[\da-fA-F:.]+)\): (?P<sxid>\d{1,18})"),
    masked_re(r"\b(?P<code>E[A-Z0-9]\d{4})\b"),
    masked_re(r"(?P<file>\b\w[\w/.]{0,200}\.(?:cc|cu|h|cpp)):(?P<line>\d{1,18})"),
    masked_re(r"(?:Killed process|task=\S+,pid=) ?(?P<pid>\d{1,18})"),
    masked_re(r"\[(?P<pid>\d{1,18})\](?:: segfault at| general protection fault| trap )"),
    masked_re(r"\btask [^\n]{1,40}?:(?P<pid>\d{1,18}) blocked for more than"),
    masked_re(
        r"[Nn]ode failure on (?P<node>[\w.\[\],-]{0,2000}[\w\]])"
        r"|(?<!\S)(?P<down>\S{1,2000}) not responding, setting DOWN"
    ),
    masked_re(r"soft lockup.*\[[^\]]+:(?P<pid>\d{1,18})\]"),
    masked_re(r"page fault \([^\n]{1,80}for process \S{1,40} pid (?P<pid>\d{1,18})"),
    masked_re(r"GPU HANG: ecode [^\n]{1,60} \[(?P<pid>\d{1,18})\]"),
    masked_re(r"\S\[(?P<pid>\d{1,18})\] context reset due to GPU hang"),
)
_OF_COMPONENTS = MaskedPatterns([pattern for _, _, pattern in COMPONENTS])
_OF_FIELDS = MaskedPatterns(_FIELDS)
_CHAIN = lazy_re(r"NCCL INFO (\S+:\d+) -> (\d{1,18})")


def extract(block: Block) -> list[Evidence]:
    """Return the block as one message; no block is refused."""
    text = "\n".join(block.lines) if block.form != "nccl" else block.lines[0]
    component, kind = next((COMPONENTS[number][:2] for number, _ in _OF_COMPONENTS.search(text)), ("app", "message"))
    fields: dict[str, str] = {}
    for _, stating in _OF_FIELDS.search(text):
        fields.update({name: value for name, value in stating.groupdict().items() if value and name not in fields})
    chain = [match for line in block.lines if (match := _CHAIN.search(line))]
    if chain:
        fields["rc"] = chain[0][2]
        fields["chain"] = " <- ".join(match[1] for match in chain)
    node = fields.get("node") or fields.get("down", "")
    fact = make_evidence(block, kind, component, text, _detail(fields, node), **fields)
    if kind == "kernel" and fact.origin.pid is None and fields.get("pid", "").isdigit():
        # The kernel names the process it means: through its pid the line joins a rank of that host.
        fact = dataclasses.replace(fact, origin=dataclasses.replace(fact.origin, pid=int(fields["pid"])))
    if node and not set(node) & set("[,"):  # the scheduler says which node it lost
        fact = dataclasses.replace(fact, origin=dataclasses.replace(fact.origin, host=node))
    return [fact]


def _detail(fields: Mapping[str, str], lost_nodes: str) -> Detail | None:
    if "busid" in fields:
        return KernelDetail(fields["busid"], int(fields["xid"][:9]) if "xid" in fields else None)
    return SchedulerDetail(lost_nodes) if lost_nodes else None
