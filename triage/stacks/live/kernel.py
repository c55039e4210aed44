"""What a thread waits for in the kernel, from its system call, wait channel and kernel stack."""

from __future__ import annotations

from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.stacks.live.model import Call, State


@dataclass(frozen=True, slots=True)
class Rule:
    """A state for kernel functions that match the pattern `function`, searched from the innermost outward."""

    kind: str
    phrase: str
    function: str


# File systems and drivers first: they contain the functions that they wait with (a page, a lock).
RULES: tuple[Rule, ...] = (
    Rule("io", "waiting for NFS", r"_?nfs\d?_\w+|rpc_\w+|nlmclnt\w*|xprt_\w+|call_reserve\w*"),
    Rule("io", "waiting for Lustre", r"ll_\w+|cl_(?:sync_)?io_\w+|ldlm_\w+|osc_\w+|ptlrpc\w*|lov_\w+|mdc_\w+"),
    Rule("io", "waiting for Ceph", r"ceph_\w+|rbd_\w+"),
    Rule("io", "waiting for GPFS", r"cxi\w+|mmfs\w*|kxWaitCondvar\w*|gpfs\w*"),
    Rule("io", "waiting for BeeGFS", r"Fhgfs\w+|beegfs\w*|RWPages\w+"),
    Rule("io", "waiting for a FUSE file system", r"fuse_\w+|__fuse_\w+|request_wait_answer"),
    Rule("kernel", "in the GPU driver", r"nvidia_\w+|_?nv\d{6}rm|nv_\w+|uvm_\w+|os_acquire_\w+|amdgpu_\w+|kfd_\w+"),
    Rule("kernel", "in the NPU driver", r"devdrv\w*|davinci\w*|tsdrv\w*|hal_\w+|svm_\w+|trs_\w+"),
    Rule(
        "kernel",
        "in the driver of the fabric",
        r"ib_\w+|_?rdma_\w+|uverbs\w*|mlx\d_\w+|ucma_\w+|hns_roce\w*|irdma_\w+|efa_\w+",
    ),
    Rule(
        "memory",
        "waiting for free memory",
        r"mem_cgroup_\w+|try_charge\w*|\w*reclaim\w*|shrink_\w+|out_of_memory|oom_\w+|__alloc_pages_slow\w*",
    ),
    Rule(
        "lock",
        "waiting for a file lock",
        r"flock_lock_inode_wait|posix_lock_inode_wait|locks_lock_inode_wait|fcntl_setlk\w*|do_lock_file_wait",
    ),
    Rule("pipe", "in a pipe", r"(?:anon_)?pipe_\w+|fifo_\w+|wait_for_partner"),
    Rule(
        "io",
        "waiting for a disk",
        r"io_schedule\w*|folio_wait_\w+|wait_on_page\w*|__?(?:folio|lock_page)\w*|jbd2_\w+|ext4_\w+|xfs_\w+|btrfs_\w+|"
        r"blk_\w+|bio_\w+|submit_bio\w*|wait_on_buffer|balance_dirty_pages\w*|filemap_\w+",
    ),
    Rule(
        "stopped", "stopped or frozen", r"\w*freez\w*|\w*refrigerator|do_signal_stop|ptrace_\w*stop\w*|do_jobctl_trap"
    ),
    Rule("futex", "in futex", r"\w*futex\w*"),
    Rule("sleep", "asleep", r"\w*nanosleep\w*"),
    Rule("subprocess", "waiting for a subprocess", r"do_wait\w*|kernel_wait(?:4|id)"),
    Rule(
        "network",
        "waiting for the network",
        r"\w*poll\w*|sk_wait_data|sk_stream_wait\w*|inet_\w+|tcp_\w+|unix_\w+|__skb_\w+|sock_\w+|wait_woken|do_accept",
    ),
    Rule(
        "kernel", "waiting for a lock in the kernel", r"_*mutex_lock\w*|rwsem_\w+|_*down_\w+|schedule_preempt_disabled"
    ),
)
_COMPILED = tuple((rule, lazy_re(rule.function)) for rule in RULES)
_ON_FILES = """read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 fsync fdatasync sync_file_range
ftruncate fallocate lseek sendfile copy_file_range splice openat open unlink unlinkat rename renameat renameat2 stat
lstat newfstatat fstat statx getdents64 mkdir mkdirat rmdir close msync truncate statfs fstatfs utimensat chmod fchmod
link linkat symlink readlink readlinkat access faccessat"""
_CHANGING = (
    "write pwrite64 writev pwritev pwritev2 fsync fdatasync ftruncate fallocate rename renameat renameat2 close msync"
)
_ON_SOCKETS = """poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2 recvfrom recvmsg recvmmsg sendto sendmsg
sendmmsg accept accept4 connect"""
_FILES, _WRITES, _NETWORK = (frozenset(names.split()) for names in (_ON_FILES, _CHANGING, _ON_SOCKETS))
_FAMILIES: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("futex", "in futex", frozenset(("futex", "futex_wait", "futex_waitv"))),
    ("sleep", "asleep", frozenset(("nanosleep", "clock_nanosleep", "pause"))),
    ("subprocess", "waiting for a subprocess", frozenset(("wait4", "waitid"))),
    ("lock", "waiting for a file lock", frozenset(("flock",))),
    ("network", "waiting for the network", _NETWORK),
)
_DRIVERS = (
    ("/dev/nvidia", "in the GPU driver"),
    ("/dev/kfd", "in the GPU driver"),
    ("/dev/dri", "in the GPU driver"),
    ("/dev/davinci", "in the NPU driver"),
    ("/dev/hisi_hdc", "in the NPU driver"),
    ("/dev/infiniband", "in the driver of the fabric"),
)
_ENTRY = lazy_re(r"__(?:x64|arm64|se|do)_sys_(\w+)|ksys_(\w+)|vfs_(\w+)")
# On the way back from an interrupt: the thread runs and waits for nothing.
_RETURNING = lazy_re(r"irqentry_\w+|exit_to_user_mode\w*|syscall_exit_\w+|asm_\w+|sysvec_\w+")
SPECIFIC_KINDS = frozenset(("io", "kernel", "memory", "pipe", "lock", "subprocess", "stopped", "dead", "deadlock"))
"""States that say more than the program's stack does; every waiting thread sleeps in futex or poll."""


def state_of(call: Call) -> State:
    """Return what the thread does, by its system call and kernel stack."""
    remark = _remark(call)
    if call.run == "Z":
        return State("dead", "dead, but not reaped by its parent")
    if (
        not call.name
        and (call.wait or call.run == "R")
        and all(_RETURNING.fullmatch(function) for function in call.wait)
    ):
        return State("running", "running")
    name = call.name or _entry(call.wait)
    if call.ended:
        return State("running", f"making system calls, {_describe_call(name, call)} the last", name, remark=remark)
    by_wait = next(
        (rule for rule, pattern in _COMPILED if any(pattern.fullmatch(function) for function in call.wait)), None
    )
    by_name = _state_of_call(name, call)
    if by_name is not None and by_wait is not None and by_wait.kind in _COMPLETING:
        kind = by_name.kind if by_name.kind == "io" else by_wait.kind
        return State(kind, _combine(by_name.phrase, by_wait, name, call), name, remark=remark)
    known = by_name or by_wait
    if known is not None:
        return State(known.kind, known.phrase, name, remark=remark)
    phrase = f"in {name}" if name else f"in {call.wait[0]} of the kernel" if call.wait else "in the kernel"
    return State("kernel" if name or call.wait else "unknown", phrase, name, remark=remark)


_COMPLETING = ("io", "kernel", "memory", "pipe", "lock", "stopped")
"""Kinds of waits that complete what the system call shows."""


def _combine(phrase: str, wait: Rule, name: str, call: Call) -> str:
    """`in write to a pipe`, or `in write to /mnt/ckpt.pt, waiting for NFS`."""
    if wait.kind != "pipe":
        return f"{phrase}, {wait.phrase}"
    return phrase if _file(call) else f"{phrase} {'from' if name.startswith('read') else 'to'} a pipe"


def _state_of_call(name: str, call: Call) -> State | None:
    if name == "ioctl":
        driver = next((phrase for start, phrase in _DRIVERS if call.path.startswith(start)), None)
        return State("kernel", driver) if driver is not None else None
    if call.path.startswith("socket:") or call.path.startswith(("TCP:", "UDP:", "TCPv6:", "UNIX")):
        return State("network", "waiting for the network")
    if name in _FILES:
        return State("io", _describe_call(name, call))
    return next((State(kind, phrase) for kind, phrase, names in _FAMILIES if name in names), None)


def _describe_call(name: str, call: Call) -> str:
    """`in write to /mnt/ckpt.pt`; the descriptor where no file is known."""
    way = (
        " to"
        if name in _WRITES and name.startswith(("write", "pwrite"))
        else " from"
        if name.startswith(("read", "pread"))
        else " of"
    )
    where = _file(call)
    return f"in {name or 'the kernel'}" + (
        f"{way} {where}" if where and name in _FILES else f" on {where}" if where else ""
    )


def _file(call: Call) -> str:
    if call.path.startswith("pipe:"):
        return f"a pipe (descriptor {call.fd})" if call.fd is not None else "a pipe"
    return call.path or (f"file descriptor {call.fd}" if call.fd is not None else "")


def _entry(wait: tuple[str, ...]) -> str:
    """The system call by the kernel's own functions."""
    for function in reversed(wait):
        if entry := _ENTRY.fullmatch(function):
            return next(group for group in entry.groups() if group)
    return ""


def _remark(call: Call) -> str:
    """What else is known of the call, like `fd 11, for at least 4.0 s`."""
    parts = []
    if call.fd is not None and call.path and not call.path.startswith("pipe:"):
        parts.append(f"fd {call.fd}")
    if call.run == "D":
        parts.append("uninterruptible")
    if call.since:
        parts.append(f"since {call.since}")
    if call.seconds is not None and call.seconds >= 0.1 and not call.ended:
        parts.append(
            f"for at least {call.seconds:.1f} s" if call.seconds < 120 else f"for at least {call.seconds / 60:.0f} min"
        )
    return ", ".join(parts)
