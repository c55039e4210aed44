"""The jobs on one GPU that programs.py and ../hangs/programs/ make, and the truth of each, written before any ran.

Backend NCCL; every rank is a host of its own to NCCL, so all traffic goes over sockets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

NEVER = ("torch.rank-never-joined", "torch.lagging-rank", "torch.hang-outside-collectives")
ORDER = ("torch.collective-order-mismatch", "torch.rank-conditional-collective")
UNEVEN = ("data.uneven-inputs", "torch.extra-collective", *ORDER)
SIZE = ("torch.collective-shape-mismatch", "nccl.mismatched-collective", "nccl.message-truncated")
GROUPS = ("torch.group-order-deadlock", "torch.wrong-process-group", *ORDER)
MEMORY = ("cuda.out-of-memory", "cuda.memory-imbalance", "cuda.absurd-allocation")
ADDRESS = ("cuda.illegal-memory-access", "gpu.xid-31", "gpu.xid-13")
ASSERTION = ("cuda.device-side-assert",)
LAYOUTS = ("plain", "tee", "redirects", "perrank")
NCCL_DEBUG = ("", "WARN", "INFO")


@dataclass(frozen=True)
class Job:
    """`ids` and `ranks` hold every right answer: None is an unknown failure, no ids a job that ended well.

    A form in `silent` (log, dump, pyspy) cannot tell, so an answer without a cause is right there. `program` is the
    function that runs, if not the one called like the job; `layout` is one of LAYOUTS, or any; of the last ranks
    `absent` never start.
    """

    name: str
    size: int
    ids: tuple[str | None, ...]
    ranks: tuple[tuple[int, ...], ...]
    silent: tuple[str, ...] = ()
    hangs: bool = False  # py-spy shows where the ranks stand before NCCL's watchdog ends them
    env: dict[str, str] = field(default_factory=dict)
    program: str = ""
    layout: str = ""
    absent: int = 0


def hang(
    name: str, size: int, ids: tuple[str | None, ...], *ranks: tuple[int, ...], silent: tuple[str, ...] = ()
) -> Job:
    """Return a job whose ranks wait until the watchdog ends them."""
    return Job(name, size, ids, ranks, silent, hangs=True)


def ends_well(name: str, size: int, ids: tuple[str | None, ...], *ranks: tuple[int, ...], **options: Any) -> Job:
    """Return a job that would end well, but for its environment or its start."""
    return Job(name, size, ids, ranks, program="ends_well", **options)


LOG = ("log", "pyspy")  # counts differ: only dumps show which call was left out

JOBS = (
    Job("out_of_memory", 4, MEMORY, ((1,),)),
    Job("out_of_memory_everywhere", 2, MEMORY, ((0, 1), ())),
    Job("memory_fraction_full", 3, MEMORY, ((1,),)),
    Job("label_out_of_range", 4, ASSERTION, ((2,),), env={"ODD_RANK": "2"}),
    Job("token_out_of_range", 4, ASSERTION, ((3,),), env={"ODD_RANK": "3"}),
    Job("illegal_address", 4, ADDRESS, ((1,),)),
    Job("illegal_address_seen_late", 4, ADDRESS, ((2,),), env={"ODD_RANK": "2"}),
    Job("misaligned_address", 2, ("cuda.misaligned-address", "gpu.xid-13"), ((1,),)),
    Job("trapped", 4, ("cuda.launch-failure", "gpu.xid-13"), ((0,),), env={"ODD_RANK": "0"}),
    hang("kernel_never_ends", 4, (*NEVER, "torch.stuck-in-collective"), (1,), silent=("log", "pyspy")),
    Job("shared_memory_too_large", 2, ("triton.out-of-resources",), ((0, 1), (0,), (1,), ())),
    Job("code_for_another_gpu", 2, ("cuda.no-kernel-image",), ((0, 1), (0,), (1,), ())),
    Job("device_by_local_rank", 4, ("launch.local-rank-misuse",), ((1, 2, 3), ())),
    Job("two_ranks_one_gpu", 2, ("nccl.duplicate-gpu",), ((0, 1), ())),
    Job("gpu_hidden", 4, ("cuda.initialization-error", "cuda.no-driver", "launch.devices-missing"), ((1,),)),
    Job("killed", 4, ("host.sigkill", None), ((1,),)),
    Job("killed_while_others_wait", 3, ("host.sigkill", None), ((2,),), env={"ODD_RANK": "2"}),
    Job("segfault", 4, ("crash.segfault",), ((3,),), env={"ODD_RANK": "3"}),
    Job("exception", 4, (None,), ((2,),), env={"ODD_RANK": "2"}),
    Job("exception_handled_wrongly", 4, (None, *NEVER), ((1,),), hangs=True),
    Job("left_with_zero", 4, ("launch.rank-left-early", *NEVER), ((1,),)),
    Job("gpu_in_data_worker", 2, ("cuda.forked-subprocess",), ((0, 1), (0,), (1,), ())),
    Job("capture_reads_value", 2, ("cuda.graph-capture",), ((0, 1), (0,), (1,), ())),
    Job("tensors_on_two_devices", 4, ("torch.device-mix",), ((2,),), env={"ODD_RANK": "2"}),
    Job("collective_of_cpu_tensor", 2, ("torch.collective-wrong-device",), ((0, 1), (0,), (1,), ())),
    Job("half_and_float", 2, ("torch.dtype-error",), ((0, 1), (0,), (1,), ())),
    Job("unused_head", 2, ("ddp.unused-parameters",), ((0, 1), (0,), (1,), ())),
    Job("models_differ", 4, ("torch.model-differs-across-ranks", "ddp.model-differs-across-ranks"), ((1,),)),
    Job("sharded_out_of_memory", 4, MEMORY, ((3,),), env={"ODD_RANK": "3"}),
    Job("sharded_skips_step", 4, (*UNEVEN, *NEVER), ((1,),), silent=LOG, hangs=True),
    Job("no_compiler", 2, ("triton.toolchain-missing", "triton.build-failed"), ((0, 1), (0,), (1,), ())),
    Job("retries_with_less", 4, (), ((),)),
    Job("ends_well", 4, (), ((),)),
    Job("ends_without_cleanup", 4, (), ((),)),
    Job("trainer_bad_token", 2, ASSERTION, ((1,),)),
    Job("reads_stopped_store", 3, ("host.sigkill", None), ((0,),), layout="perrank"),
    ends_well("ends_well_network", 2, (), (), env={"NCCL_IB_DISABLE": "1", "NCCL_DEBUG": "INFO"}),
    ends_well("interface_missing", 2, ("nccl.no-socket-interface",), (0, 1), (), env={"NCCL_SOCKET_IFNAME": "ib9"}),
    ends_well("network_missing", 2, ("nccl.network-not-found",), (0, 1), (), env={"NCCL_NET": "IB"}),
    ends_well("rank_never_started", 4, ("launch.wrong-world-size", *NEVER), (3,), layout="perrank", absent=1),
    Job("jax_task_killed", 3, ("host.sigkill", "jax.task-heartbeat-lost", None), ((1,),), layout="perrank"),
    Job("jax_out_of_memory", 2, MEMORY, ((1,),), layout="perrank"),
    Job("jax_shapes_differ", 2, ("jax.shape-error",), ((1,),), layout="perrank"),
    hang("skipped_call", 4, (*ORDER, *SIZE), (3,), silent=LOG),
    hang("skipped_same_size", 4, UNEVEN, (3,)),
    hang("extra_call", 4, UNEVEN, (2,)),
    hang("other_operation", 4, ORDER, (1,), silent=LOG),
    hang("other_size", 4, SIZE, (3,), silent=LOG),
    hang("rank0_gathers", 4, ORDER, (0,), silent=LOG),
    hang("swapped", 4, ORDER, (3,), silent=LOG),
    hang("uneven_batches", 4, UNEVEN, (1,)),
    hang("object_mismatch", 4, ORDER, (0,), silent=LOG),
    hang("ddp_skipped_backward", 4, (*ORDER, *SIZE), (2,), silent=LOG),
    hang("group_order", 4, GROUPS, (2,), silent=("pyspy",)),
    hang("wrong_group", 4, GROUPS, (1,), silent=("pyspy",)),
    hang("never_in_group", 4, NEVER, (2,)),
    hang("cascade", 6, NEVER, (3,)),
    hang("recv_without_send", 3, (*ORDER, "torch.extra-collective", *NEVER), (0,), (1,), (0, 1), silent=LOG),
    hang("wrong_peer", 4, (*ORDER, "torch.extra-collective", *NEVER), (1,), (2,), (1, 2), silent=(*LOG, "dump")),
    hang("new_group_without_rank", 4, (*ORDER, *NEVER), (3,)),
    hang("sleeps", 8, NEVER, (5,)),
    hang("download", 2, NEVER, (1,)),
    hang("rank0_evaluates", 4, NEVER, (0,)),
    hang("left_loop", 3, ("launch.rank-left-early", *NEVER), (1,)),
    hang("abba_locks", 4, ("torch.thread-deadlock", *NEVER), (1,)),
    hang("holds_gil", 4, ("torch.gil-hang", *NEVER), (1,)),
    hang("async_never_waited", 4, NEVER, (1,)),
)


def layout_of(job: Job) -> str:
    """Return the layout of ../layouts.py in which the job runs."""
    return job.layout or LAYOUTS[JOBS.index(job) % len(LAYOUTS)]


def nccl_debug_of(job: Job) -> str:
    """Return the NCCL_DEBUG of the job."""
    return NCCL_DEBUG[JOBS.index(job) % len(NCCL_DEBUG)]
