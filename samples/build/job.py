"""A made-up healthy job: clock, random numbers, files, and lines that look like failures but are not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

START = 1_772_600_400  # 2026-03-04 05:00:00 UTC

# Lines of healthy programs that contain words of failures.
DECOYS = (
    "dataloader: num_workers=8 prefetch=4 timeout=1800",
    "validation of 1024 shards: 0 errors, 0 warnings, 0 failed",
    "fetch of shard-00017.tar: retry 1/3 after ConnectionResetError, succeeded after 2.1 s",
    "cgroup memory.events: low 0 high 0 max 0 oom 0 oom_kill 0 oom_group_kill 0",
    "workers: started 8, exited 8, killed: 0, failed: 0",
    "grad stats: nan_count=0 inf_count=0 max=1.87",
    "no NaN found in 291 parameters, no Inf found in 291 gradients",
    "CUDA out of memory handled: reducing batch size to 8",
    "request latency p50=12.1ms p99=40.7ms error_rate=0.00 timeouts=0",
    "error_handler.py: registered on_failure, on_oom, on_timeout",
    "env: TORCH_NCCL_ASYNC_ERROR_HANDLING=1 TORCH_NCCL_DUMP_ON_TIMEOUT=1 NCCL_IB_TIMEOUT=22 NCCL_IB_RETRY_CNT=7",
    "cache /shared/cache/hub not writable (Permission denied), falling back to /tmp/hub",
    "huggingface.co answered 429 Too Many Requests for tokenizer.json, retry 1/5 in 2.0 s",
    "retry 1/5 of tokenizer.json succeeded",
    "tensorboard: port 6006: Address already in use, trying next port 6007",
    "preprocess subprocess 4471 exitcode: 0",
    "no straggler detected, no hang detected, no crash in the last 24 h",
    "watchdog thread started, heartbeat every 30 s, will abort after 600 s",
    "loss is finite: True, skipped (nan/inf) iterations: 0",
    "failed_nodes=[] lost_ranks=[] dead_workers=0",
    "/opt/venv/lib/python3.11/site-packages/torch/utils/checkpoint.py:92: UserWarning: None of the inputs have "
    "requires_grad=True."
    " Gradients will be None",
    "/opt/venv/lib/python3.11/site-packages/torch/cuda/__init__.py:61: FutureWarning: The pynvml package is "
    "deprecated.",
    "/workspace/train.py:88: FutureWarning: `torch.cuda.amp.GradScaler(args...)` is deprecated.",
    "fault tolerance: on SIGTERM or SIGUSR1 a checkpoint is written; on SIGSEGV faulthandler prints the stack",
    "docs: if you see `NCCL timeout` here, raise --dist-timeout",
    "profiler: ncclDevKernel_AllReduce_Sum_bf16 41.2 %, Memcpy HtoD 3.3 %, cudaErrorNotReady polls: 18",
    "health: xid=0 ecc_uncorrectable=0 sxid=0 nvlink_errors=0 pcie_replays=0",
    "lr finder: loss diverged at lr=1.3e+00 as expected, suggestion 3.1e-04",
    "heartbeat ok: 8/8 ranks alive, 0 lost, last barrier 0.31 s",
    "early stopping: patience 3/10 exceeded: no",
    "assert_finite(loss) passed; assert_same_across_ranks(params) passed",
    "kill switch file /workspace/KILL not found, going on",
    "unexpected keys: [], missing keys: [], mismatched keys: []",
    "scanned 88 logs for 'Segmentation fault', 'CUDA error' and 'Traceback': none found",
    "signal handlers installed: SIGTERM SIGINT SIGUSR1 (SIGKILL cannot be caught)",
    "metrics server on :9400 refused one scrape (503 Service Unavailable), next scrape ok",
    "OOM guard: peak 61.2 GiB of 79.1 GiB, headroom 22 %, oom_count=0",
    "disk: / 41 % used, /ckpt 63 % used (warn at 90 %, No space below 1 GiB: never)",
    "restarts so far: 0 of max_restarts=3, rendezvous timeout=900",
    "broken pipe guard active; deadlock detector idle; fatal=0 error=0 warning=2",
    "deprecated config key `timeout_on_failure` ignored",
    "wandb: WARNING Step must only increase in log calls.  Step 7 < 8; dropping {'sys/gpu_errors': 0}.",
    "wandb: Network error (ConnectionError), entering retry loop.",
    "wandb: Network error resolved after 0:00:12.410322, resuming normal operation.",
    "GPU clocks: 1980 MHz, throttle reasons: none, thermal slowdown: not active",
    "killing time: waiting 5 s for the prefetch of the first shard",
    'docker inspect helper: "State": {"Status": "exited", "OOMKilled": false, "Dead": false, "ExitCode": 0, "Error": '
    '""}',
    "Port 8265 is already in use, using 8266 instead",
    "[Errno 98] Address already in use: metrics port 9400, trying next port 9401",
    "store: 8/8 clients joined after 0.4 s",
    "NaN loss detected: no; non-finite loss detected: 0 batches",
    "check that parameters differ across ranks: no, weights identical on 8 ranks",
    "no checkpoint yet ([Errno 2] No such file or directory: '/ckpt/run/step_0/.metadata'), starting from scratch",
    "An error occurred (SlowDown) when calling the PutObject operation (reached max retries: 0), retry 1/5 in 2 s",
    "cgroup of StepId=4711.0: Detected 0 oom_kill events",
    "/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py:824: UserWarning: cumsum_cuda_kernel does not have "
    "a deterministic"
    " implementation, but you set 'torch.use_deterministic_algorithms(True, warn_only=True)'.",
    "raylet: Worker exit type: INTENDED_SYSTEM_EXIT Worker exit detail: Worker exits because it was idle",
    "ulimits: open files 1048576, core 0, locked memory unlimited (RLIMIT_MEMLOCK ok)",
)

# Exceptions that a program catches, logs and survives; progress follows.
HANDLED = (
    (
        "shards.py",
        61,
        "fetch",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "shard 17 not read, trying again (1/3)",
    ),
    ("shards.py", 66, "decode", "ValueError: could not decode sample 00004411.jpg: truncated image", "sample skipped"),
    (
        "cache.py",
        24,
        "open_cache",
        "PermissionError: [Errno 13] Permission denied: '/shared/cache/hub'",
        "optional cache is not used",
    ),
    ("hooks.py", 40, "notify", "TimeoutError: The read operation timed out", "could not notify the chat channel"),
    (
        "ops.py",
        12,
        "load_fused",
        "ModuleNotFoundError: No module named 'flash_attn_3'",
        "fused attention not there, using sdpa",
    ),
    (
        "ckpt.py",
        91,
        "latest",
        "FileNotFoundError: [Errno 2] No such file or directory: '/ckpt/run/latest'",
        "no checkpoint, starting anew",
    ),
    (
        "memory.py",
        33,
        "probe",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 "
        "GiB of which"
        " 1.12 GiB is free.",
        "batch 16 does not fit, taking 8",
    ),
    (
        "metrics.py",
        52,
        "push",
        "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: http://push:9091/",
        "dropped",
    ),
    (
        "tokenizer.py",
        19,
        "load",
        "OSError: Can't load tokenizer for 'internal/bpe'; using the local copy",
        "local tokenizer is used",
    ),
    ("serve.py", 71, "bind", "OSError: [Errno 98] Address already in use", "port 8000 is taken, trying next port 8001"),
)

# What Python prints at exit or in destructors; nothing is lost.
IGNORED = (
    "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f3c1c2e5a80>\n"
    "Traceback (most recent call last):\n"
    '  File "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 1604, in __del__\n'
    "    self._shutdown_workers()\n"
    '  File "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 1582, in _shutdown_workers\n'
    "    if w.is_alive():\n"
    "AssertionError: can only test a child process",
    "Exception ignored in: <function BaseEventLoop.__del__ at 0x7f10a8>\n"
    "Traceback (most recent call last):\n"
    '  File "/usr/lib/python3.11/asyncio/base_events.py", line 692, in __del__\n'
    "    self.close()\n"
    "RuntimeError: Event loop is closed",
    "Exception ignored in atexit callback: <function dump_compile_times at 0x7f33>\n"
    "Traceback (most recent call last):\n"
    '  File "/opt/venv/lib/python3.11/site-packages/torch/_dynamo/utils.py", line 760, in dump_compile_times\n'
    "    log.info(compile_times(repr='str', aggregate=True))\n"
    "ValueError: I/O operation on closed file.",
)


class Job:
    """One job: `variant` counts the jobs of a kind from 0 and seeds the random numbers together with the kind."""

    def __init__(self, kind: str, variant: int, number: int) -> None:
        self.kind = kind
        self.variant = variant
        self.rng = random.Random(f"{kind} {variant}")
        self.now = START + number * 7200.0 + self.rng.randrange(3600)
        self.files: dict[str, list[str]] = {}
        self._decoy_number = number * 5
        self._exception_number = number

    def add_lines(self, *texts: str, to: str = "job.log") -> None:
        """Append lines to a file of the job; a text may hold several."""
        self.files.setdefault(to, []).extend(texts)

    def timestamp(self, form: str = "%Y-%m-%d %H:%M:%S", *, forward: float = 0.0) -> str:
        """Advance the clock and return it in UTC; `%f` is six digits, `%L` three."""
        self.now += forward
        part = f"{self.now % 1:.6f}"[2:8]
        return time.strftime(form.replace("%f", part).replace("%L", part[:3]), time.gmtime(self.now))

    def glog_prefix(self, level: str, where: str, pid: int = 4100) -> str:
        """Return the prefix of a line of torch's own Python loggers."""
        return f"{level}{self.timestamp('%m%d %H:%M:%S.%f', forward=0.001)} {pid} {where}] "

    def c10_prefix(self, rank: int, where: str, level: str = "I") -> str:
        """Return the prefix of a line of torch's C++ loggers."""
        return f"[rank{rank}]:[{level}{self.timestamp('%m%d %H:%M:%S')}.{self.rng.randrange(10**9):09d} {where}] "

    def next_decoy(self) -> str:
        """Return the next line of DECOYS; jobs start at different ones, so that all of them are used."""
        self._decoy_number += 1
        return DECOYS[self._decoy_number % len(DECOYS)]

    def next_handled_exception(self) -> tuple[str, list[str]]:
        """Return the comment of a program on an exception that it caught, and the traceback that it logs."""
        self._exception_number += 1
        file, line, function, error, comment = HANDLED[self._exception_number % len(HANDLED)]
        trace = [
            "Traceback (most recent call last):",
            f'  File "/workspace/{file}", line {line}, in {function}',
            f"    return _{function}(*args)",
        ]
        return comment, [*trace, error]

    def ignored_exception(self) -> list[str]:
        """Return the lines of an exception that Python ignores."""
        return self.rng.choice(IGNORED).split("\n")

    def iterate_steps(self, count: int, every: int = 1) -> Iterator[int]:
        """Yield step numbers and advance the clock."""
        for number in range(every, count * every + 1, every):
            self.now += self.rng.uniform(0.4, 2.5)
            yield number

    def falling_loss(self, step: int) -> str:
        """Return a loss that falls with the step."""
        return f"{9.0 / (1 + step) ** 0.3 + self.rng.uniform(0, 0.05):.4f}"

    def add_training(self, write_line: Callable[[int, str], None], ranks: int, count: int, exceptions: int = 3) -> None:
        """Add steps of `ranks` ranks, with decoys in between and caught exceptions in the first half.

        `write_line` writes a line of a rank; a leading NUL marks a line of a traceback, without prefix. `exceptions` is
        the number of caught exceptions.
        """
        failing_steps = {1 + self.rng.randrange(max(1, count // 2)) for _ in range(exceptions)}
        for step in self.iterate_steps(count):
            for rank in range(ranks):
                write_line(
                    rank,
                    f"step {step}/{count} loss {self.falling_loss(step)} grad_norm {self.rng.uniform(0.3, 2):.3f} "
                    f"tokens/s {self.rng.randrange(9000, 9900)}",
                )
            if step % 3 == 1:
                write_line(self.rng.randrange(ranks), self.next_decoy())
            if step in failing_steps:
                rank = self.rng.randrange(ranks)
                comment, trace = self.next_handled_exception()
                write_line(rank, f"WARNING {comment}")
                for line in trace:
                    write_line(rank, "\0" + line)  # without the timestamp of a record

    def write(self, directory: Path) -> None:
        """Write one file as `<kind>-<variant>.log`, several into a directory of that name."""
        name = f"{self.kind}-{self.variant}"
        for file, lines in self.files.items():
            path = directory / f"{name}.log" if len(self.files) == 1 else directory / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes("".join(f"{line}\n" for line in lines).encode())
