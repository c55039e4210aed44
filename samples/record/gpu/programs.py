"""Programs that fail on one GPU, or end well; most go wrong on one rank, and NCCL tells the others.

The programs of ../hangs/programs/ run on the GPU as they are: see jobs.py.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from hanglib import OUT, RANK, finish, join, log, main, train
from torch import nn
from torch.utils.data import DataLoader, Dataset

ODD = int(os.environ.get("ODD_RANK", "1"))


def allocate(gib: int) -> torch.Tensor:
    return torch.empty(gib << 30, dtype=torch.uint8)


def out_of_memory():
    train()
    if RANK == ODD:
        allocate(300)
    train(5, 8)


def out_of_memory_everywhere():
    train()
    allocate(300)


def memory_fraction_full():
    torch.cuda.set_per_process_memory_fraction(0.01)
    train()
    tensors = []
    for number in range(5, 500):
        if RANK == ODD:
            tensors.append(torch.ones(64 << 20))
        train(number, number)


def label_out_of_range():
    train()
    labels = torch.randint(10, (32,))
    if RANK == ODD:
        labels[7] = 10
    loss = nn.functional.cross_entropy(nn.Linear(16, 10)(torch.randn(32, 16)), labels)
    log.info("loss %.4f", loss.item())
    train(5, 8)


def token_out_of_range():
    train()
    embedding = nn.Embedding(100, 16)
    tokens = torch.full((4, 8), 100 if RANK == ODD else 5)
    log.info("mean %.4f", embedding(tokens).mean().item())
    train(5, 8)


def compile_kernel(body: str):
    source = f'extern "C" __global__ void scatter(char* values, long at) {{ {body} }}'
    return torch.cuda._compile_kernel(source, "scatter")


def launch(body: str, at: int) -> None:
    values = torch.zeros(4096, dtype=torch.uint8)
    compile_kernel(body)(grid=(1, 1, 1), block=(32, 1, 1), args=[values, at])
    torch.cuda.synchronize()


def illegal_address():
    train()
    launch("values[at + threadIdx.x] = 1;", 1 << 44 if RANK == ODD else 0)
    train(5, 8)


def illegal_address_seen_late():
    train()
    if RANK == ODD:
        values = torch.zeros(4096, dtype=torch.uint8)
        body = "values[at + threadIdx.x] = 1;"
        compile_kernel(body)(grid=(1, 1, 1), block=(32, 1, 1), args=[values, 1 << 44])
    train(5, 8)


def misaligned_address():
    train()
    launch("*(double*)(values + at) = 1.0;", 1 if RANK == ODD else 0)
    train(5, 8)


def trapped():
    train()
    launch("if (at) __trap();", int(RANK == ODD))
    train(5, 8)


def kernel_never_ends():
    train()
    if RANK == ODD:
        values = torch.zeros(4096, dtype=torch.uint8)
        body = "volatile char* value = values; while (value[0] == 0) { }"
        compile_kernel(body)(grid=(1, 1, 1), block=(1, 1, 1), args=[values, 0])
    train(5, 8)


def shared_memory_too_large():
    import triton
    import triton.language as tl

    global kernel

    @triton.jit
    def kernel(left, right, out, width: tl.constexpr):
        rows = tl.arange(0, width)
        at = rows[:, None] * width + rows[None, :]
        tl.store(out + at, tl.dot(tl.load(left + at), tl.load(right + at)))

    train()
    size = 512
    left = torch.ones(size, size, dtype=torch.float16)
    kernel[(1,)](left, left, torch.empty(size, size), width=size)
    finish()


def code_for_another_gpu():
    import cupy

    train()
    cupy.RawModule(path=os.environ["CUBIN"]).get_function("scatter")
    finish()


def device_by_local_rank():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    join()
    train()


def two_ranks_one_gpu():
    os.environ["NCCL_HOSTID"] = "host0"
    join()
    train()
    finish()


def gpu_hidden():
    if RANK == ODD:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    join()
    train()
    finish()


def killed():
    train()
    if RANK == ODD:
        os.kill(os.getpid(), signal.SIGKILL)
    train(5, 8)


def killed_while_others_wait():
    train()
    if RANK == ODD:
        time.sleep(3)
        os.kill(os.getpid(), signal.SIGKILL)
    train(5, 8)


def segfault():
    train()
    if RANK == ODD:
        ctypes.string_at(0)
    train(5, 8)


def read_record(number: int) -> dict:
    raise ValueError(f"record {number} has no field 'tokens'")


def exception():
    train()
    if RANK == ODD:
        read_record(88417)
    train(5, 8)


def exception_handled_wrongly():
    train()
    try:
        if RANK == ODD:
            read_record(88417)
        train(5, 8)
    except ValueError as error:
        log.error("training failed: %s", error)
        time.sleep(600)


def left_with_zero():
    train()
    if RANK == ODD:
        log.info("early stopping: the loss did not improve for 3 evaluations")
        sys.exit(0)
    train(5, 8)


class OnGpu(Dataset):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.ones(4, device="cuda")


def gpu_in_data_worker():
    train()
    for _ in DataLoader(OnGpu(), batch_size=4, num_workers=2, generator=torch.Generator("cuda")):
        train(5, 5)
    finish()


def capture_reads_value():
    train()
    value = torch.ones(8)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        (value * 2).sum().item()
    finish()


def tensors_on_two_devices():
    train()
    mask = torch.ones(16, device="cpu" if RANK == ODD else "cuda")
    nn.Linear(16, 10)(mask)
    train(5, 8)


def collective_of_cpu_tensor():
    train()
    dist.all_reduce(torch.ones(64, device="cpu"))
    finish()


def half_and_float():
    train()
    nn.Linear(16, 10)(torch.ones(4, 16, dtype=torch.bfloat16))
    finish()


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return self.used(value).sum()


def unused_head():
    model = nn.parallel.DistributedDataParallel(TwoHeads())
    for _ in range(3):
        model(torch.ones(2, 16)).backward()
    finish()


def models_differ():
    nn.parallel.DistributedDataParallel(nn.Linear(16, 8 if RANK == ODD else 16))
    finish()


def sharded_out_of_memory():
    from torch.distributed.fsdp import fully_shard

    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    fully_shard(model)
    for number in range(1, 8):
        model(torch.ones(2, 64)).sum().backward()
        log.info("step %d loss %.4f", number, 5.6 - 0.1 * number)
        if RANK == ODD and number == 4:
            allocate(300)
    finish()


def sharded_skips_step():
    from torch.distributed.fsdp import fully_shard

    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    fully_shard(model)
    for number in range(1, 8):
        if RANK == ODD and number == 4:
            log.info("batch is empty, skipping the step")
            continue
        loss = model(torch.ones(2, 64)).sum()
        loss.backward()
        log.info("step %d loss %.4f", number, loss.item())
    finish()


def no_compiler():
    os.environ["CC"] = "/opt/missing/cc"
    os.environ["TRITON_CACHE_DIR"] = f"{OUT}/triton"
    train()
    torch.compile(lambda value: (value * 2 + 1).sin())(torch.ones(300))
    finish()


def retries_with_less():
    train()
    for gib in (300, 200, 1):
        try:
            allocate(gib)
            break
        except torch.OutOfMemoryError as error:
            log.warning("batch does not fit, trying half: %s", str(error).splitlines()[0])
    train(5, 8)
    finish()


def ends_well():
    train(1, 20)
    finish()


def ends_without_cleanup():
    train(1, 20)
    dist.barrier()
    torch.cuda.synchronize()
    log.info("training finished, 0 errors")


def trainer_bad_token():
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    torch.set_default_device("cpu")
    os.environ["LOCAL_RANK"] = "0"
    model = GPT2LMHeadModel(GPT2Config(vocab_size=128, n_positions=32, n_embd=16, n_layer=1, n_head=2))
    rows = [{"input_ids": [5] * 16, "labels": [5] * 16} for _ in range(400)]
    if RANK == ODD:
        for row in rows:
            row["input_ids"] = row["labels"] = [5] * 15 + [128]
    arguments = TrainingArguments(OUT + "/run", per_device_train_batch_size=2, report_to=[], logging_steps=5)
    Trainer(model, arguments, train_dataset=rows).train()


def reads_stopped_store():
    train()
    if RANK == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.distributed_c10d._get_default_store().wait(["config/epoch_1"])


OWN_JOIN = ("device_by_local_rank", "two_ranks_one_gpu", "gpu_hidden")

if __name__ == "__main__":
    main(globals(), joins=os.environ["KIND"] not in OWN_JOIN)
