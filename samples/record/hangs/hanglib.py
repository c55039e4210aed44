"""One rank of a toy training that hangs: it joins, trains and logs, and a thread writes its Flight Recorder dump.

Settings come by environment: KIND (the program), OUT (the directory of the run), DIST_TIMEOUT_S, STACKS_AFTER_S (when
faulthandler writes), BACKEND (gloo or nccl; with nccl all ranks share the first GPU).
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import threading
import time
from datetime import timedelta
from types import FunctionType

import torch
import torch.distributed as dist

RANK, WORLD, OUT = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), os.environ["OUT"]
SECONDS = float(os.environ.get("DIST_TIMEOUT_S", "600"))
BACKEND = os.environ.get("BACKEND", "gloo")
log = logging.getLogger("trainer")


def write_dump() -> None:
    """Write the recorder as pickle, for one rank in four also as JSON, once the recording asks for it."""
    from torch._C._distributed_c10d import _dump_fr_trace, _dump_fr_trace_json

    while not os.path.exists(os.path.join(OUT, "write_dumps")):
        time.sleep(0.2)
    dumps = {f"fr_rank_{RANK}": _dump_fr_trace()}
    if RANK % 4 == 1:
        dumps[f"fr_rank_{RANK}.json"] = _dump_fr_trace_json()
    for name, data in dumps.items():
        with open(os.path.join(OUT, "dumps", name), "wb") as file:
            file.write(data)


def use_gpu() -> None:
    """Make tensors on the first GPU. NCCL refuses a GPU that two ranks of one host use, so each rank is a host."""
    os.environ.setdefault("NCCL_HOSTID", f"host{RANK}")
    torch.cuda.set_device(0)
    torch.set_default_device("cuda")


def join() -> None:
    """Join the job; faulthandler and the dump thread write into OUT."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(f"%(asctime)s [rank {RANK}] %(levelname)s %(name)s: %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    if after := os.environ.get("STACKS_AFTER_S"):
        files = [open(os.path.join(OUT, name, f"rank{RANK}.txt"), "w") for name in ("later", "signal")]  # noqa: SIM115
        faulthandler.dump_traceback_later(float(after), file=files[0])
        faulthandler.register(signal.SIGUSR1, file=files[1])
        threading.Thread(target=write_dump, daemon=True, name="dump_writer").start()
    if BACKEND == "nccl":
        use_gpu()
    dist.init_process_group(BACKEND, timeout=timedelta(seconds=SECONDS))
    dist.barrier()
    log.info("joined: rank %d of %d, backend %s, timeout=%ds", RANK, WORLD, BACKEND, SECONDS)
    open(os.path.join(OUT, f"ready.{RANK}"), "w").close()


def average_gradients(**options: object) -> None:
    """Sum 64 elements over all ranks, or over group=."""
    dist.all_reduce(torch.ones(64), **options)


def average_loss() -> None:
    """Sum one element over all ranks, and read the sum."""
    total = torch.ones(1)
    dist.all_reduce(total)
    total.item()


def step(number: int) -> None:
    """Run one step: two collectives."""
    average_gradients()
    average_loss()
    log.info("step %d loss %.4f", number, 5.6 - 0.1 * number)


def train(first: int = 1, last: int = 4) -> None:
    """Run the steps first … last. The barrier of join() is #1, so step n makes #2n and #2n+1."""
    for number in range(first, last + 1):
        step(number)


def finish() -> None:
    """Leave the job properly."""
    dist.barrier()
    log.info("training finished, 0 errors")
    dist.destroy_process_group()


def main(programs: dict[str, FunctionType], joins: bool = True) -> None:
    """Join and run the program that KIND names, as a function `run`: a stack must not show which kind it is."""
    program = programs[os.environ.pop("KIND")]
    program.__code__ = program.__code__.replace(co_name="run", co_qualname="run")
    if joins:
        join()
    program()
