"""The samples to record: how each is launched, and the truth that an expert would read from its files."""

from __future__ import annotations

from dataclasses import dataclass, field

DETAIL = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}


@dataclass(frozen=True)
class Truth:
    """What happened: `root` holds every accepted signature id, None a failure without a signature."""

    verdict: str
    root: tuple[str | None, ...]
    root_ranks: tuple[int, ...] | None
    what_happened: str


@dataclass(frozen=True)
class Sample:
    """One recorded job: `kind` is a script of kinds/, `layout` a key of layouts.LAYOUTS, `ranks` how many start."""

    name: str
    kind: str
    layout: str
    ranks: int
    truth: Truth
    style: str = "logging"
    odd: int = 1
    env: dict[str, str] = field(default_factory=dict)
    args: tuple[str, ...] = ()  # for train.py
    options: tuple[str, ...] = ()  # for torchrun
    expect: str = ""  # text that must be in the output; without it the recording failed
    timeout_s: int = 10  # of a collective
    world_size: int | None = None  # the value of WORLD_SIZE, if it differs from `ranks`
    busy_port: bool = False  # MASTER_PORT is already in use
    stop_at: str = ""  # send SIGTERM to the launcher when its output holds this text
    master: str = "127.0.0.1"


def known(*root: str, ranks: tuple[int, ...] | None, what: str) -> Truth:
    """Return the truth of a failure that the catalog names."""
    return Truth("known", root, ranks, what)


def unknown(ranks: tuple[int, ...] | None, what: str) -> Truth:
    """Return the truth of a failure that only its own exception describes."""
    return Truth("unknown", (None,), ranks, what)


def clean(what: str) -> Truth:
    """Return the truth of a job that finished."""
    return Truth("clean", (), None, what)


BAD_RECORD = "rank {} raises ValueError on a record without tokens; the other ranks lose their peer"
NEVER_JOINED = ("torch.rank-never-joined", "torch.lagging-rank", "torch.hang-outside-collectives")
NULL_READ = "rank {} reads address zero in native code and dies of SIGSEGV, {} faulthandler"
ALL4 = (0, 1, 2, 3)

EXCEPTIONS = [
    Sample(
        "exception_one_rank_tee",
        "exception_one_rank",
        "tee",
        4,
        unknown((2,), BAD_RECORD.format(2)),
        odd=2,
        expect="ValueError: record 'doc-88417'",
    ),
    Sample(
        "exception_one_rank_twonode",
        "exception_one_rank",
        "twonode",
        4,
        unknown((3,), BAD_RECORD.format(3)),
        "pipes",
        odd=3,
        expect="ValueError: record 'doc-88417'",
    ),
    Sample(
        *("exception_recorded_tee_role", "exception_one_rank", "tee-role", 3),
        unknown((1,), "as exception_one_rank_tee with rank 1, under torchrun's @record: its table holds tracebacks"),
        env={"RECORD_ERRORS": "1"},
        expect="error_file",
    ),
    Sample(
        *("assertion_all_ranks_interleaved", "same_assertion", "plain", 8),
        unknown(
            tuple(range(8)),
            "all ranks fail one assertion at once; their unlabelled tracebacks mix line by line in one file",
        ),
        style="bare",
        env={"MIX_LINES": "1"},
        expect="AssertionError: global batch",
    ),
    Sample(
        *("assertion_all_ranks_redirects", "same_assertion", "redirects", 4),
        unknown(ALL4, "all ranks fail the same assertion as in assertion_all_ranks_interleaved, one file a rank"),
        expect="AssertionError: global batch",
    ),
    Sample(
        *("nan_one_rank_perrank", "nan_loss", "perrank", 4),
        known(
            "numeric.nan-loss",
            ranks=(1,),
            what="the loss of rank 1 is NaN at step 11 and its check raises; the others lose their peer",
        ),
        style="print",
        expect="FloatingPointError: non-finite loss",
    ),
    Sample(
        *("tensor_shape_plain", "tensor_shape", "plain", 2),
        known(
            "torch.tensor-shape-error",
            ranks=(0, 1),
            what="the head of the model is wider than its trunk: the first matmul fails",
        ),
        style="json",
        expect="mat1 and mat2 shapes",
    ),
    Sample(
        *("import_error_plain", "import_error", "plain", 4),
        known(
            "python.import-error",
            ranks=ALL4,
            what="the module fused_rotary is not installed: no rank gets past its imports",
        ),
        expect="ModuleNotFoundError",
    ),
    Sample(
        *("bad_arguments_tee", "bad_arguments", "tee", 2),
        known(
            "python.bad-arguments",
            ranks=(0, 1),
            what="the launch script passes --warmup-steps, which the training does not know",
        ),
        args=("--steps", "10", "--warmup-steps", "5"),
        expect="unrecognized arguments",
    ),
    Sample(
        *("restart_failed_again_redirects", "restarted", "redirects", 2),
        unknown((1,), "rank 1 raises TimeoutError fetching a shard, in the first attempt and again after the restart"),
        env={"FAIL_AGAIN": "1"},
        options=("--max-restarts", "1"),
        expect="attempt 1 of 2",
    ),
    Sample(
        *("restart_stale_store_redirects", "restarted", "redirects", 2),
        Truth(
            *("unknown|known", (None, "launch.stale-rendezvous"), None),
            "rank 1 raises TimeoutError in the first attempt; the second cannot connect, as the store still holds old "
            "addresses",
        ),
        env={"SLOW_START": "1"},
        options=("--max-restarts", "1"),
        expect="Gloo connectFullMesh failed",
    ),
]

COLLECTIVES = [
    Sample(
        *("skipped_collective_plain", "skipped_collective", "plain", 4),
        known(
            *NEVER_JOINED,
            ranks=(1,),
            what="rank 1 hangs in a checkpoint upload after step 12; the others time out in its all-reduce",
        ),
        expect="Timed out waiting",
    ),
    Sample(
        *("skipped_collective_stacks_redirects", "skipped_collective", "redirects", 4),
        known(
            *NEVER_JOINED,
            ranks=(2,),
            what="as skipped_collective_plain with rank 2; faulthandler wrote every rank's stack meanwhile",
        ),
        odd=2,
        env={"DUMP_STACK_AFTER_S": "8"},
        expect="in upload_checkpoint",
    ),
    Sample(
        *("hung_stacks", "skipped_collective", "hung", 4),
        known(
            "torch.rank-never-joined",
            ranks=(2,),
            what="rank 2 uploads a checkpoint for ever while ranks 0, 1, 3 wait for its gradients in backward",
        ),
        odd=2,
        stop_at="uploading checkpoint",
        expect="upload_checkpoint (train.py",
        timeout_s=600,
    ),
    Sample(
        *("order_mismatch_detail_tee_role", "mismatched_collective", "tee-role", 4),
        known(
            "torch.collective-order-mismatch",
            ranks=(3,),
            what="rank 3 calls broadcast where the others call all_reduce (DETAIL)",
        ),
        odd=3,
        env=DETAIL | {"WHAT": "op"},
        expect="Op type",
    ),
    Sample(
        *("shape_mismatch_detail_archive", "mismatched_collective", "redirects+tar.gz", 4),
        known(
            "torch.collective-shape-mismatch",
            ranks=(2,),
            what="rank 2 reduces 63 elements where the others reduce 64 (DETAIL)",
        ),
        odd=2,
        env=DETAIL | {"WHAT": "shape"},
        expect="Tensor shapes",
    ),
    Sample(
        *("dtype_mismatch_detail_perrank", "mismatched_collective", "perrank", 3),
        known(
            "torch.collective-dtype-mismatch",
            ranks=(1,),
            what="rank 1 reduces float64 where the others reduce float32 (DETAIL)",
        ),
        style="pipes",
        env=DETAIL | {"WHAT": "dtype"},
        expect="dtypes",
    ),
    Sample(
        *("monitored_barrier_perrank", "monitored_barrier", "perrank", 4),
        known(
            "torch.monitored-barrier-timeout",
            ranks=(2,),
            what="rank 2 builds its index longer than a monitored barrier waits",
        ),
        odd=2,
        timeout_s=20,
        expect="Rank 2 failed to pass monitoredBarrier",
    ),
    Sample(
        *("rank_zero_barrier_perrank", "rank_zero_barrier", "perrank", 3),
        known(
            "torch.rank-conditional-collective",
            "torch.collective-order-mismatch",
            ranks=(0,),
            what="a barrier inside `if rank == 0`: rank 0 waits there alone",
        ),
        timeout_s=8,
        expect="in save_checkpoint",
    ),
    Sample(
        *("uneven_inputs_redirects", "uneven_inputs", "redirects", 4),
        known(
            "data.uneven-inputs",
            *NEVER_JOINED,
            ranks=(3,),
            what="rank 3 has 20 batches, the others 24: it validates, they wait",
        ),
        odd=3,
        timeout_s=8,
        expect="Timed out waiting",
    ),
    Sample(
        *("left_early_plain", "left_early", "plain", 4),
        known(
            "launch.rank-left-early", ranks=(2,), what="rank 2 stops early by its own loss and ends with exit code 0"
        ),
        odd=2,
        expect="early stop",
    ),
    Sample(
        *("unused_parameters_tee", "unused_parameters", "tee", 2),
        known("ddp.unused-parameters", ranks=(0, 1), what="an adapter of the model takes no part in the loss"),
        style="print",
        expect="Expected to have finished reduction",
    ),
    Sample(
        *("model_differs_plain", "model_differs", "plain", 3),
        known(
            "ddp.model-differs-across-ranks",
            "torch.model-differs-across-ranks",
            ranks=(1,),
            what="rank 1 builds a wider model",
        ),
        expect="appears not to match sizes",
    ),
]

CRASHES = [
    Sample(
        *("sigkill_redirects", "killed", "redirects", 4),
        known(
            "host.sigkill",
            ranks=(1,),
            what="rank 1 is killed by SIGKILL after step 15, as by the OOM killer; nothing says by whom",
        ),
        style="megatron",
        expect="(SIGKILL)",
    ),
    Sample(
        *("sigkill_twonode_tee", "killed", "twonode-tee", 4),
        known("host.sigkill", ranks=(2,), what="rank 2 is killed by SIGKILL; on its node it is local rank 0"),
        odd=2,
        expect="(SIGKILL)",
    ),
    Sample(
        *("sigkill_perrank", "killed", "perrank", 3),
        unknown(
            (2,), "rank 2 is killed by SIGKILL without any agent: its file just ends, and the others lose their peer"
        ),
        odd=2,
        expect="reset by peer",
    ),
    Sample(
        *("segfault_plain", "native_crash", "plain", 3),
        known("crash.segfault", ranks=(1,), what=NULL_READ.format(1, "without")),
        env={"CRASH": "null"},
        expect="(SIGSEGV)",
    ),
    Sample(
        *("segfault_faulthandler_tee", "native_crash", "tee", 3),
        known("crash.segfault", ranks=(2,), what=NULL_READ.format(2, "with")),
        odd=2,
        env={"CRASH": "null", "PYTHONFAULTHANDLER": "1"},
        expect="Fatal Python error: Segmentation fault",
    ),
    Sample(
        *("heap_corruption_tee_role", "native_crash", "tee-role", 2),
        known("crash.heap-corruption", ranks=(0,), what="rank 0 frees a block twice and glibc aborts it"),
        odd=0,
        env={"CRASH": "free"},
        expect="double free",
    ),
    Sample(
        *("segfault_all_ranks_redirects", "healthy", "redirects", 3),
        known(
            "crash.segfault",
            ranks=(0, 1, 2),
            what="the DDP constructor itself crashes on all ranks (torch 2.13, CPU, DETAIL)",
        ),
        env=DETAIL | {"PYTHONFAULTHANDLER": "1"},
        expect="in _ddp_init_helper",
    ),
    Sample(
        *("stack_overflow_perrank", "native_crash", "perrank", 2),
        known(
            "crash.stack-overflow",
            ranks=(1,),
            what="rank 1 recurses without end until its stack is gone; faulthandler saw it",
        ),
        env={"CRASH": "stack", "PYTHONFAULTHANDLER": "1"},
        expect="in walk",
    ),
    Sample(
        *("bus_error_plain", "native_crash", "plain", 2),
        known("crash.bus-error", ranks=(1,), what="rank 1 reads a mapped file that was cut short (SIGBUS)"),
        env={"CRASH": "mapping"},
        expect="(SIGBUS)",
    ),
]

RESOURCES = [
    Sample(
        *("dataloader_worker_killed_tee", "dataloader_worker_killed", "tee", 2),
        known(
            "data.worker-killed", "host.sigkill", ranks=(1,), what="a DataLoader worker of rank 1 is killed by SIGKILL"
        ),
        expect="is killed by signal: Killed",
    ),
    Sample(
        *("memory_limit_redirects", "memory_limit", "redirects", 3),
        known(
            "host.memory-limit", ranks=(1,), what="rank 1 meets its address-space limit loading a cache: MemoryError"
        ),
        style="pipes",
        expect="MemoryError",
    ),
    Sample(
        *("memory_limit_torch_plain", "memory_limit", "plain", 2),
        known(
            "host.memory-limit", ranks=(0,), what="rank 0 meets its address-space limit in the CPU allocator of torch"
        ),
        odd=0,
        env={"ALLOCATE": "torch"},
        expect="DefaultCPUAllocator",
    ),
    Sample(
        *("file_limit_perrank", "file_limit", "perrank", 2),
        known("host.fd-limit", ranks=(1,), what="rank 1 opens files and closes none until it meets its limit of 64"),
        expect="Too many open files",
    ),
    Sample(
        *("checkpoint_size_mismatch_twonode", "load_checkpoint", "twonode", 4),
        known(
            "checkpoint.shape-mismatch",
            ranks=ALL4,
            what="the checkpoint is of a wider model: load_state_dict fails on all ranks",
        ),
        env={"BROKEN": "size"},
        expect="size mismatch for",
    ),
    Sample(
        *("checkpoint_half_redirects", "load_checkpoint", "redirects", 2),
        known("checkpoint.corrupt", ranks=(0, 1), what="the checkpoint is half a file: torch.load fails on all ranks"),
        env={"BROKEN": "half"},
        expect="PytorchStreamReader failed",
    ),
    Sample(
        *("disk_full_tee", "disk_full", "tee", 3),
        known(
            "checkpoint.no-space",
            "host.no-space",
            ranks=(0,),
            what="rank 0 saves a checkpoint to a device without space",
        ),
        expect="unexpected pos",
    ),
]

LAUNCHES = [
    Sample(
        *("port_in_use_plain", "healthy", "plain", 2),
        known(
            "launch.port-in-use",
            ranks=None,
            what="MASTER_PORT is taken: the agent cannot open its store, no rank starts",
        ),
        busy_port=True,
        expect="EADDRINUSE",
    ),
    Sample(
        *("port_in_use_perrank", "healthy", "perrank", 2),
        known(
            "launch.port-in-use",
            ranks=(0,),
            what="MASTER_PORT is taken: rank 0 cannot open the store, rank 1 talks to a stranger",
        ),
        busy_port=True,
        expect="EADDRINUSE",
    ),
    Sample(
        *("env_missing_bare", "healthy", "bare", 1),
        known("launch.env-missing", ranks=None, what="started with bare python: RANK is not set"),
        expect="RANK expected",
    ),
    Sample(
        *("master_unresolvable_perrank", "healthy", "perrank", 2),
        known("launch.host-unresolvable", ranks=None, what="MASTER_ADDR is a name that does not resolve, on any rank"),
        master="trainer-head-0.cluster.example",
        timeout_s=12,
        expect="Name or service not known",
    ),
    Sample(
        *("ranks_missing_perrank", "healthy", "perrank", 3),
        known(
            *("launch.wrong-world-size", "launch.ranks-missing-at-rendezvous", "torch.rank-never-joined"),
            ranks=None,
            what="WORLD_SIZE says 4 and three ranks were started; rank 3 never existed",
        ),
        world_size=4,
        timeout_s=8,
        expect="3/4 clients joined",
    ),
    Sample(
        *("wrong_backend_tee", "wrong_backend", "tee", 2),
        known("launch.backend-unavailable", ranks=(0, 1), what="the job asks for NCCL with a CPU build of torch"),
        expect="NCCL built in",
    ),
    Sample(
        *("agent_sigterm_tee", "healthy", "tee", 3),
        known(
            "launch.interrupted",
            "launch.signal-exception",
            ranks=None,
            what="the agent gets SIGTERM from outside at step 40",
        ),
        env={"STEPS": "2000"},
        stop_at="step 40 ",
        expect="got signal: 15",
    ),
]

HEALTHY = [
    Sample(
        "healthy_handled_plain",
        "healthy_handled",
        "plain",
        3,
        clean("handled exceptions are logged with their tracebacks"),
        expect="training finished",
    ),
    Sample(
        "healthy_retries_tee",
        "healthy_retries",
        "tee",
        3,
        clean("a connection, a helper and a barrier go well in the end"),
        "pipes",
        expect="training finished",
    ),
    Sample(
        "healthy_teardown_redirects",
        "healthy_teardown",
        "redirects",
        3,
        clean("noise at teardown, exit code 0"),
        "print",
        expect="leaked shared_memory",
    ),
    Sample(
        "healthy_bar_twonode",
        "healthy",
        "twonode",
        4,
        clean("a progress bar redrawn with carriage returns"),
        "bar",
        env={"STEPS": "60"},
    ),
    Sample(
        "healthy_json_archive",
        "healthy_handled",
        "tee+tar.gz",
        2,
        clean("handled exceptions inside JSON lines"),
        "json",
        expect="training finished",
    ),
    Sample(
        *("restarted_then_finished_tee", "restarted", "tee", 2),
        clean("rank 1 failed in the first attempt; torchrun started the job again and it finished"),
        options=("--max-restarts", "1"),
        expect="training finished",
    ),
]

DIVERGED = [
    Sample(
        *("divergence_gradient_perrank", "diverged_gradient", "perrank", 4),
        known(
            "numeric.rank-divergence",
            ranks=(2,),
            what="from step 30 on rank 2 steps with its own gradient, the norm says so",
        ),
        odd=2,
        expect="checkpoint written",
    ),
    Sample(
        *("divergence_weights_tee", "diverged_weights", "tee", 4),
        known(
            "numeric.rank-divergence",
            ranks=(3,),
            what="rank 3 starts with other weights, the printed hash is never that of the others",
        ),
        odd=3,
        expect="param_hash=",
    ),
    Sample(
        *("divergence_assertion_redirects", "diverged_assertion", "redirects", 4),
        known(
            "numeric.rank-divergence",
            ranks=(1,),
            what="a weight of rank 1 flips at step 17, the check at step 20 raises on all ranks",
        ),
        expect="inconsistent: [",
    ),
    Sample(
        *("env_detail_one_rank_perrank", "env_one_rank", "perrank", 3),
        known(
            "config.env-mismatch",
            ranks=(1,),
            what="rank 1 alone has TORCH_DISTRIBUTED_DEBUG=DETAIL and waits in collectives of its own",
        ),
        expect="TORCH_DISTRIBUTED_DEBUG=DETAIL",
    ),
]

SAMPLES = [*EXCEPTIONS, *COLLECTIVES, *CRASHES, *RESOURCES, *LAUNCHES, *HEALTHY, *DIVERGED]
