"""Faults in which an operation of the model raises: shapes, dtypes, devices, unused parameters."""

from __future__ import annotations

import random

from triage.testing.composer.faults.error_texts import version
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.faults.uncaught import (
    Call,
    Prelude,
    all_ranks,
    end_job,
    format_traceback,
    load_until,
    module_calls,
    site_packages,
    train_until,
    training_calls,
    uncaught,
)
from triage.testing.composer.model import Story, World
from triage.testing.composer.parts import start, steps

_UNUSED = (
    "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error "
    "indicates that your module has parameters that were not used in producing loss. You can enable unused parameter "
    "detection by passing the keyword argument `find_unused_parameters=True` to "
    "`torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs participate in "
    "calculating loss. \nIf you already have done the above, then the distributed data parallel module wasn't able to "
    "locate the output tensors in the return value of your module's `forward` function. Please include the loss "
    "function and the structure of the return value of `forward` of your module when reporting this issue (e.g. list, "
    "dict, iterable).\nParameter indices which did not receive grad for rank {rank}: {indices}\n In addition, "
    "you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL to print out information "
    "about which particular parameters did not receive gradient on this rank as part of this error"
)


def tensor_shape(world: World, rng: random.Random) -> Story:
    """A matrix product or a reshape gets a wrong shape, on one rank (an odd batch) or on all (a wrong model)."""
    rows, width, wanted = rng.choice((8, 32, 4096)), rng.choice((768, 1024, 2048)), rng.choice((512, 1536, 4096))
    odd = rows * width + rng.randrange(1, 8)
    view = Call(
        world.script.replace(".py", "_model.py"), rng.randrange(30, 90), "forward", "x = x.view(batch, heads, -1)"
    )
    calls, error = rng.choice((
        (
            module_calls(world, "linear.py", 125, "return F.linear(input, self.weight, self.bias)"),
            f"RuntimeError: mat1 and mat2 shapes cannot be multiplied ({rows}x{width} and {wanted}x{wanted * 4})",
        ),
        ((view,), f"RuntimeError: shape '[{rows}, 12, -1]' is invalid for input of size {odd}"),
    ))  # fmt: skip
    text = format_traceback(world, training_calls(world, rng, "logits = model(tokens)", *calls), error)
    return _on_one_or_all(world, rng, text, "torch.tensor-shape-error")


def dtype_error(world: World, rng: random.Random) -> Story:
    """Operands have different dtypes, on one rank or on all."""
    low = rng.choice(("Half", "BFloat16"))
    linear = "return F.linear(input, self.weight, self.bias)"
    source, error = rng.choice((
        (linear, f"mat1 and mat2 must have the same dtype, but got Float and {low}"),
        (linear, f"expected scalar type {low} but found Float"),
        ("scores = torch.baddbmm(mask, query, key)", f"expected scalar type Float but found {low}"),
    ))  # fmt: skip
    calls = module_calls(world, "linear.py", 117, source)
    if "baddbmm" in source:
        calls = (Call(world.script.replace(".py", "_attention.py"), rng.randrange(40, 200), "forward", source),)
    text = format_traceback(
        world, training_calls(world, rng, "loss = model(tokens).mean()", *calls), f"RuntimeError: {error}"
    )
    return _on_one_or_all(world, rng, text, "torch.dtype-error")


def _on_one_or_all(world: World, rng: random.Random, text: str, root: str) -> Story:
    """Return the story of this traceback in a late step on one rank, or in the first step on all."""
    if rng.random() < 0.5:
        before = train_until(world, rng)
        return end_job(world, rng, before, [uncaught(world, rng.randrange(world.size), before.at, text)], [root])
    before = load_until(world, rng)
    causes = [uncaught(world, rank, at, text) for rank, at in all_ranks(world, rng, before.at)]
    return end_job(world, rng, before, causes, [root])


def device_mix(world: World, rng: random.Random) -> Story:
    """A tensor was made on `cuda:0`, so all ranks fail but those whose device it is."""
    before = load_until(world, rng)
    calls = training_calls(world, rng, "scores = queries @ self.anchors.T")
    causes = []
    for rank in world.ranks:
        if not world.local(rank):
            continue
        mine = f"cuda:{world.local(rank)}"
        error = (
            f"got mat2 is on cuda:0, different from other tensors on {mine} (when checking argument in method "
            if version(world.torch) >= (2, 8)
            else f"found at least two devices, {mine} and cuda:0! (when checking argument for argument mat2 in method "
        )
        text = format_traceback(
            world, calls, f"RuntimeError: Expected all tensors to be on the same device, but {error}wrapper_CUDA_mm)"
        )
        causes.append(uncaught(world, rank, before.at + rng.uniform(0, 0.3), text))
    return end_job(world, rng, before, causes, ["torch.device-mix"])


def unused_parameters(world: World, rng: random.Random) -> Story:
    """A part of the model takes no part in the loss, which DDP says in the second step, on all ranks."""
    lines = (*start(world, rng), *steps(world, rng, 10, 1))
    before = Prelude(lines, 11.4, 2)
    wrapper, first = f"{site_packages(world)}/torch/nn/parallel/distributed.py", rng.randrange(3, 140)
    calls = training_calls(
        world, rng, "logits = model(tokens)",
        *module_calls(world, "module.py", 0, "")[:2],
        Call(wrapper, 1639, "forward", "inputs, kwargs = self._pre_forward(*inputs, **kwargs)"),
        Call(wrapper, 1528, "_pre_forward",
             "if torch.is_grad_enabled() and self.reducer._rebuild_buckets():"),
    )  # fmt: skip
    causes = []
    for rank, at in all_ranks(world, rng, before.at, 0.4):
        error = _UNUSED.format(rank=rank, indices=" ".join(str(first + offset) for offset in range(2)))
        causes.append(uncaught(world, rank, at, format_traceback(world, calls, error), names_rank=True))
    return end_job(world, rng, before, causes, ["ddp.unused-parameters"])


FAULTS = (
    Fault("tensor-shape", tensor_shape),
    Fault("tensor-dtype", dtype_error),
    Fault("device-mix", device_mix, backends=("nccl",), least_per_node=2),
    Fault("unused-parameters", unused_parameters),
)
