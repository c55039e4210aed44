"""Forms of communication libraries and of the kernel, by their own severity words."""

from __future__ import annotations

from triage.evidence.endings.interface import HINT, INNER_MESSAGE, LEVEL_ERROR, MESSAGE, Form, strong, weak

FORMS: tuple[Form, ...] = (
    weak(
        "warning of a collective library",
        "NCCL",
        r"\b[A-Z]*[CR]CL WARN\b.{0,200}?\S",
        "gpu07:31124:31340 [2] transport/net_fancy.cc:411 NCCL WARN NET/Fancy : ring doorbell rejected (state 6)",
        MESSAGE,
        any_level=True,
    ),
    weak(
        "severity of a communication library",
        "any",
        r"\|\w*CCL_(?:ERROR|FATAL)\||\b(?:UCX|UCC|UCP|UCT|UCS|SHARP|HCOLL|PMIX|PSM\d?|OFI|MXM|SHMEM|NVSHMEM|"
        r"Gloo|GLOO)\s{1,4}"
        r"(?:ERROR|FATAL|FATL|ERR)\b|^libfabric:.{0,200}<(?:warn|error)>|\[(?:ERROR|FATAL)\] ?[A-Z][A-Z_]{2,12}\(\d+,",
        "[1772424712.118231] [gpu07:31124:0]  mlx5_mkey.c:214  UCX  ERROR mlx5_0: mkey pool ran dry",
        MESSAGE,
        any_level=True,
    ),
    weak(
        "status of a library",
        "any",
        r"\b(?:HSA|CUDA|CUBLAS|CUDNN|CUFFT|NVML|HIP|ROCM|ACL|HCCL|NCCL|UCS|MPI|PMIX|FI|IBV?_WC|RDMA|CL|VK|SYCL|"
        r"ZE|CNRT|XPU)"
        r"_(?:STATUS_)?(?:ERR|ERROR)(?:_\w+)?\b",
        "Queue 0x7f1fa0a00000 aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in …",
        INNER_MESSAGE,
        any_level=True,
    ),
    weak(
        "enforced condition",
        "PyTorch",
        r"\[enforce fail at [^\]]{1,200}\]",
        "[enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:99] rv != -1. No interface",
        MESSAGE,
        any_level=True,
    ),
    weak(
        "code of a status",
        "gRPC",
        r"\b(?:CANCELLED|UNKNOWN|INVALID_ARGUMENT|DEADLINE_EXCEEDED|NOT_FOUND|ALREADY_EXISTS|PERMISSION_DENIED|"
        r"RESOURCE_EXHAUSTED|"
        r"FAILED_PRECONDITION|ABORTED|OUT_OF_RANGE|UNIMPLEMENTED|INTERNAL|UNAVAILABLE|DATA_LOSS|UNAUTHENTICATED): \S",
        "DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect::0.",
        MESSAGE,
        any_level=True,
    ),
    weak(
        "wait for others",
        "any",
        r"(?i)\b(?:waiting|waited|blocked|stalled|stuck|hung|no (?:progress|heartbeat)|missing ranks)\b.{0,60}"
        r"\bfor (?:more than |over |at least )?\d+",
        "waiting for remainder of ranks for more than 60 seconds",
        LEVEL_ERROR,
        any_level=True,
    ),
    strong(
        "kernel",
        "kernel",
        r"\b(?:BUG: |Oops: |Kernel panic|general protection fault|unable to handle (?:kernel|page)|Unable to handle|"
        r"(?:soft|hard) lockup|rcu\w* .{0,40}stall|blocked for more than \d+ sec|Machine check|Hardware Error|"
        r"segfault at |"
        r"Out of memory: Kill)",
        "general protection fault, probably for non-canonical address 0xdead000000000122: 0000 [#1] PREEMPT SMP NOPTI",
        INNER_MESSAGE,
    ),
    weak(
        "trap of the kernel",
        "kernel",
        r"\btraps: |\[ cut here \]|^Call Trace:|end trace ",
        "Call Trace:",
        HINT,
        any_level=True,
    ),
)
