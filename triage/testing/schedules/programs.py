"""Healthy training schedules: what each rank calls when nothing goes wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from triage.testing.schedules.meshes import Mesh, build_mesh, split_size
from triage.testing.schedules.model import Call, Kernel, Local, Program, Schedule, Step, Sync, Transfer

_Steps = list[Step]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What all ranks of a job agree on; drawn once."""

    steps: int
    layers: int
    numel: int
    dtype: str
    microbatches: int
    sync_every: int  # steps between two waits of the host, 0: it never waits
    is_batched: bool
    evaluates_every: int
    saves_every: int
    warms_up: bool


@dataclass(frozen=True, slots=True)
class Training:
    """A kind of training: the dimensions of its mesh, and what a rank calls in one step."""

    kind: str
    dimensions: tuple[str, ...]
    step: Callable[[int, Mesh, Recipe], _Steps]


def draw_schedule(kind: str, size: int, rng: random.Random) -> Schedule:
    """Return a healthy schedule. `size` is a power of two, at least 2 for each dimension of the kind."""
    training = next(one for one in TRAININGS if one.kind == kind)
    mesh = build_mesh(split_size(size, training.dimensions, rng), rng)
    recipe = Recipe(
        rng.randrange(3, 7),
        rng.randrange(2, 5),
        rng.choice((524288, 1048576, 4194304, 6553600)) + 64 * rng.randrange(100),
        rng.choice(("Float", "BFloat16", "BFloat16")),
        rng.randrange(2, 7),
        rng.choice((0, 1, 1, 2, 3)),
        rng.random() < 0.5,
        rng.choice((0, 2, 3)),
        rng.choice((0, 2, 3)),
        rng.random() < 0.7,
    )
    paces = [rng.uniform(0.01, 0.05) for _ in range(mesh.size)]
    programs = tuple(_program(training, rank, mesh, recipe, paces[rank]) for rank in range(mesh.size))
    depth = rng.choice((1, 4, 16, 1000, 1000, 1000))
    return Schedule(kind, mesh.groups, programs, depth, float(rng.choice((300, 480, 600, 600, 1800))))


def _program(training: Training, rank: int, mesh: Mesh, recipe: Recipe, pace: float) -> Program:
    steps: _Steps = [Call("broadcast", 0, recipe.numel // 4, recipe.dtype, site="setup")] if recipe.warms_up else []
    for number in range(1, recipe.steps + 1):
        steps += [Local("data", pace), *training.step(rank, mesh, recipe)]
        if recipe.sync_every and number % recipe.sync_every == 0:
            steps.append(Sync("item"))
        if recipe.evaluates_every and number % recipe.evaluates_every == 0:
            steps += [Local("evaluation", pace * 3), Call("all_gather", 0, 8, site="evaluate"), Sync("item")]
        if recipe.saves_every and number % recipe.saves_every == 0:
            steps += _save(rank, pace)
    return (*steps, *_barrier("finish"), Sync("synchronize"))


def _save(rank: int, pace: float) -> _Steps:
    """Rank 0 writes the checkpoint while the others wait at the barrier."""
    writing: _Steps = [Local("checkpoint", pace * 20)] if rank == 0 else []
    return [*writing, *_barrier("save_checkpoint")]


def _barrier(site: str) -> _Steps:
    return [Call("all_reduce_barrier", 0, 1, site=site), Sync("synchronize")]


def _ddp(rank: int, mesh: Mesh, recipe: Recipe) -> _Steps:
    buckets: _Steps = [
        Call("all_reduce", 0, recipe.numel + 1024 * layer, holds_device=layer == recipe.layers - 1, site="backward")
        for layer in range(recipe.layers)
    ]
    return [Kernel(0.02), *buckets, Call("all_reduce", 0, 1, site="reduce_loss")]


def _fsdp(rank: int, mesh: Mesh, recipe: Recipe) -> _Steps:
    shards = [recipe.numel // mesh.size + 16 * layer for layer in range(recipe.layers)]
    steps: _Steps = [Kernel(0.02)]
    steps += [Call("_all_gather_base", 0, size, recipe.dtype, site="forward") for size in shards]
    for size in reversed(shards):
        steps.append(Call("_all_gather_base", 0, size, recipe.dtype, holds_device=False, site="backward"))
        steps.append(Call("_reduce_scatter_base", 0, size * mesh.size, recipe.dtype, False, site="backward"))
    return [*steps, Call("all_reduce", 0, 1, site="clip_grad_norm")]


def _hsdp(rank: int, mesh: Mesh, recipe: Recipe) -> _Steps:
    shard, replicate = mesh.members["shard"][rank], mesh.members["replicate"][rank]
    width = len(mesh.groups[shard].ranks)
    size = recipe.numel // width
    steps: _Steps = [Kernel(0.02)]
    steps += [Call("_all_gather_base", shard, size, recipe.dtype, site="forward")] * recipe.layers
    for _ in range(recipe.layers):
        steps.append(Call("_reduce_scatter_base", shard, size * width, recipe.dtype, site="backward"))
        steps.append(Call("all_reduce", replicate, size, recipe.dtype, holds_device=False, site="backward"))
    return [*steps, Call("all_reduce", 0, 1, site="clip_grad_norm")]


def _tensor_parallel(rank: int, mesh: Mesh, recipe: Recipe) -> _Steps:
    group, replicas = mesh.members["tp"][rank], mesh.members["dp"][rank]
    layer = Call("all_reduce", group, recipe.numel // 8, "BFloat16", site="forward")
    back = Call("all_reduce", group, recipe.numel // 8, "BFloat16", site="backward")
    steps: _Steps = [Kernel(0.02), *[layer] * (2 * recipe.layers)]
    for bucket in range(recipe.layers):
        steps += [back, back, Call("all_reduce", replicas, recipe.numel + bucket, holds_device=False, site="backward")]
    return [*steps, Call("all_reduce", replicas, 1, site="reduce_loss")]


def _mixture(rank: int, mesh: Mesh, recipe: Recipe) -> _Steps:
    experts, replicas = mesh.members["ep"][rank], mesh.members["dp"][rank]
    dispatch = Call("all_to_all", experts, recipe.numel // 16 + rank * 256, "BFloat16", site="dispatch")
    combine = Call("all_to_all", experts, recipe.numel // 16 + rank * 512, "BFloat16", site="combine")
    steps: _Steps = [Kernel(0.02)]
    for layer in range(recipe.layers):
        steps += [dispatch, combine, Call("all_reduce", replicas, recipe.numel + layer, site="backward")]
    return [*steps, Call("all_reduce", 0, 1, site="reduce_loss")]


def _pipeline(rank: int, mesh: Mesh, recipe: Recipe) -> _Steps:
    steps: _Steps = _one_forward_one_backward(rank, mesh, recipe)
    replicas = mesh.members["dp"][rank]
    steps += [Call("all_reduce", replicas, recipe.numel + bucket, site="backward") for bucket in range(2)]
    return steps


def _pipeline_3d(rank: int, mesh: Mesh, recipe: Recipe) -> _Steps:
    tensor = Call("all_reduce", mesh.members["tp"][rank], recipe.numel // 8, "BFloat16", site="forward")
    steps: _Steps = []
    for step in _pipeline(rank, mesh, recipe):
        steps += [step, tensor] if isinstance(step, Kernel) else [step]
    return [*steps, Call("all_reduce", 0, 1, site="clip_grad_norm")]


def _one_forward_one_backward(rank: int, mesh: Mesh, recipe: Recipe) -> _Steps:
    """Return the order of Megatron's schedule 1F1B for one rank."""
    group = mesh.members["pp"][rank]
    stages = mesh.groups[group].ranks
    stage = stages.index(rank)
    before = stages[stage - 1] if stage else None
    after = stages[stage + 1] if stage + 1 < len(stages) else None
    warmup = min(len(stages) - stage - 1, recipe.microbatches)
    steady = recipe.microbatches - warmup

    def exchange(*wanted: tuple[bool, int | None]) -> _Steps:
        transfers = [Transfer(is_send, peer, recipe.numel // 4) for is_send, peer in wanted if peer is not None]
        return _p2p(group, transfers, recipe)

    compute = Kernel(0.005)
    steps: _Steps = []
    for _ in range(warmup):
        steps += [*exchange((False, before)), compute, *exchange((True, after))]
    steps += exchange((False, before)) if steady else []
    for index in range(steady):
        steps += [compute, *exchange((True, after), (False, after)), compute]
        steps += exchange((True, before)) if index == steady - 1 else exchange((False, before), (True, before))
    for _ in range(warmup):
        steps += [*exchange((False, after)), compute, *exchange((True, before))]
    return steps


def _p2p(group: int, transfers: list[Transfer], recipe: Recipe) -> _Steps:
    if not transfers:
        return []
    if recipe.is_batched:
        return [Call("coalesced", group, 0, "BFloat16", transfers=tuple(transfers), site="p2p_communication")]
    return [
        Call("send" if one.is_send else "recv", group, one.numel, "BFloat16", True, (one,), "p2p_communication")
        for one in transfers
    ]


TRAININGS = (
    Training("ddp", ("dp",), _ddp),
    Training("fsdp", ("dp",), _fsdp),
    Training("hsdp", ("replicate", "shard"), _hsdp),
    Training("tensor", ("dp", "tp"), _tensor_parallel),
    Training("experts", ("dp", "ep"), _mixture),
    Training("pipeline", ("pp", "dp"), _pipeline),
    Training("pipeline3d", ("pp", "dp", "tp"), _pipeline_3d),
)
