"""What launchers print around the output of failed ranks on one console: prefixes, tables, exit lines, other ranks."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Sequence

from tests.clusters.hard_classes import HardClass
from triage.testing.composer.model import World

Cores = Sequence[tuple[int, str]]
Console = Callable[[World, Cores, HardClass, random.Random], list[str]]


def noise_before(world: World, rank: int, rng: random.Random) -> list[str]:
    """Return records, warnings and progress bars; sometimes the last bar has no end of line of its own."""
    step, host = rng.randrange(10, 90_000), world.host(rank)
    kinds = (
        f"{world.stamp(50, '%Y-%m-%d %H:%M:%S,%L')} INFO trainer: step {step} loss {rng.uniform(1, 9):.4f} lr 3.0e-04",
        _bar("Epoch 0", 40 + step % 50, rng),
        "\r" + "\r".join(_bar("Loading shards", share, rng) for share in (0, 25, 50, 100)),
        f"/opt/venv/lib/python{world.python}/site-packages/torch/utils/checkpoint.py:{rng.randrange(80, 700)}: "
        "UserWarning: torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly.\n"
        "  warnings.warn(",
        f"wandb: Tracking run with wandb version 0.{rng.randrange(15, 20)}.{rng.randrange(9)}",
        f"[{host}] batch {step}: {rng.uniform(90, 300):.1f} ms, {rng.randrange(3000, 60_000)} tokens/s",
        f"{{'loss': {rng.uniform(1, 5):.4f}, 'grad_norm': {rng.uniform(0, 3):.3f}, 'epoch': {rng.random():.2f}}}",
        f"INFO:{host}:{world.pids[rank]}: saved state of step {step} in {rng.uniform(1, 30):.1f} s",
    )
    return [line for text in rng.sample(kinds, rng.randrange(0, 4)) for line in text.split("\n")]


def _bar(name: str, share: int, rng: random.Random) -> str:
    return (
        f"{name}: {share:3d}%|{'█' * (share // 10)}{' ' * (10 - share // 10)}| {share * 5}/500 "
        f"[0{rng.randrange(9)}:{rng.randrange(10, 59)}<0{rng.randrange(9)}:{rng.randrange(10, 59)}, "
        f"{rng.uniform(1, 9):.2f}it/s]"
    )


def bare(world: World, cores: Cores, one: HardClass, rng: random.Random) -> list[str]:
    """The failures alone, sometimes right behind a progress bar."""
    lines = [line for _, core in cores for line in core.split("\n")]
    if rng.random() < 0.4:
        lines[0] = "\r" + _bar("Training", rng.randrange(1, 99), rng) + lines[0]
    return lines


def torch_tagged(world: World, cores: Cores, one: HardClass, rng: random.Random) -> list[str]:
    """Prefixes of torch's excepthook, and torchrun's table."""
    lines = [f"[rank{rank}]: {line}" if one.is_python else line for rank, core in cores for line in core.split("\n")]
    return [*lines, *_torchrun_table(world, cores, one, rng)]


def torchrun_tee(world: World, cores: Cores, one: HardClass, rng: random.Random) -> list[str]:
    """Prefixes of local ranks, with records of other ranks in between, and torchrun's table."""
    lines = []
    for rank, core in cores:
        for line in core.split("\n"):
            if rng.random() < 0.1:
                other = (world.local(rank) + 1) % world.per_node
                lines.append(f"[default{other}]:step {rng.randrange(9000)} loss {rng.uniform(1, 4):.4f}")
            lines.append(f"[default{world.local(rank)}]:{line}")
    return [*lines, *_torchrun_table(world, cores, one, rng)]


def _torchrun_table(world: World, cores: Cores, one: HardClass, rng: random.Random) -> list[str]:
    rank, site, stamp = (
        cores[0][0],
        f"/opt/venv/lib/python{world.python}/site-packages",
        world.stamp(99, "%m%d %H:%M:%S"),
    )
    api = "torch/distributed/elastic/multiprocessing/api.py:869]"
    head = f"E{stamp}.{rng.randrange(10**9):09d} {rng.randrange(100, 9999)} {api}"
    text = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    if one.status < 0:
        text = f"Signal {-one.status} ({_signal(one)}) received by PID {world.pids[rank]}"
    return [
        f"{head} failed (exitcode: {one.status}) local_rank: {world.local(rank)} (pid: {world.pids[rank]}) of binary: "
        "/opt/venv/bin/python",
        "Traceback (most recent call last):",
        '  File "/opt/venv/bin/torchrun", line 8, in <module>',
        "    sys.exit(main())",
        f'  File "{site}/torch/distributed/launcher/api.py", line 269, in launch_agent',
        "    raise ChildFailedError(",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "=" * 60,
        f"{world.script} FAILED",
        "-" * 60,
        "Failures:",
        "  <NO_OTHER_FAILURES>",
        "-" * 60,
        "Root Cause (first observed failure):",
        "[0]:",
        f"  time      : {world.stamp(99, '%Y-%m-%d_%H:%M:%S')}",
        f"  host      : {world.host(rank)}",
        f"  rank      : {rank} (local_rank: {world.local(rank)})",
        f"  exitcode  : {one.status} (pid: {world.pids[rank]})",
        "  error_file: <N/A>",
        f"  traceback : {text}",
        "=" * 60,
    ]


def srun(world: World, cores: Cores, one: HardClass, rng: random.Random) -> list[str]:
    """Output of `srun`, with and without labels of tasks, and its exit lines."""
    labels = rng.random() < 0.5
    lines = [f"{rank}: {line}" if labels else line for rank, core in cores for line in core.split("\n")]
    end = f"Exited with exit code {one.status}" if one.status > 0 else f"{_aborted(one)} (core dumped)"
    rank = cores[0][0]
    return [
        *lines,
        f"srun: error: {world.host(rank)}: task {rank}: {end}",
        f"srun: Terminating StepId={rng.randrange(10**5, 10**7)}.0",
        f"slurmstepd: error: *** STEP {rng.randrange(10**5, 10**7)}.0 ON {world.hosts[0]} CANCELLED AT "
        f"{world.stamp(120, '%Y-%m-%dT%H:%M:%S')} ***",
    ]


def srun_exit_only(world: World, cores: Cores, one: HardClass, rng: random.Random) -> list[str]:
    """Output of `srun` with one exit line for several tasks."""
    lines = [line for _, core in cores for line in core.split("\n")]
    end = f"Exited with exit code {one.status}" if one.status > 0 else _aborted(one)
    return [*lines, f"srun: error: {world.host(cores[0][0])}: tasks 0-{world.per_node - 1}: {end}"]


def pdsh(world: World, cores: Cores, one: HardClass, rng: random.Random) -> list[str]:
    """Prefixes of hosts, as pdsh and DeepSpeed's launcher write them."""
    first = rng.randrange(1, 64)
    number = first + world.node(cores[0][0])
    lines = [f"worker-{first + world.node(rank)}: {line}" for rank, core in cores for line in core.split("\n")]
    end = f"[{world.stamp(99, '%Y-%m-%d %H:%M:%S,%L')}] [ERROR] [launch.py:325:sigkill_handler] ['/opt/venv/bin/python'"
    return [
        *lines,
        f"worker-{number}: {end}, '-u', '{world.script}'] exits with return code = {one.status}",
        f"pdsh@login: worker-{number}: ssh exited with exit code {one.status % 256}",
    ]


def mpirun(world: World, cores: Cores, one: HardClass, rng: random.Random) -> list[str]:
    """Prefixes of mpirun's `--tag-output`, and its block at the end."""
    job, is_tagged = rng.randrange(1, 60_000), rng.random() < 0.7
    lines = [f"[1,{rank}]<stderr>:{line}" if is_tagged else line for rank, core in cores for line in core.split("\n")]
    rank = cores[0][0]
    end = f"Exit code:    {one.status}" if one.status > 0 else f"Signal: {-one.status}"
    return [
        *lines,
        "-" * 74,
        "mpirun detected that one or more processes exited with non-zero status, thus causing",
        "the job to be terminated. The first process to do so was:",
        "",
        f"  Process name: [[{job},1],{rank}]",
        f"  {end}",
        "-" * 74,
    ]


def container(world: World, cores: Cores, one: HardClass, rng: random.Random) -> list[str]:
    """A script in a container: what the shell and kubectl add."""
    lines = [line for _, core in cores for line in core.split("\n")]
    status = one.status if one.status > 0 else 128 - one.status
    if one.status < 0:
        lines.append(
            f"/entrypoint.sh: line {rng.randrange(20, 90)}: {world.pids[0]} {_aborted(one):<24}(core dumped) python"
        )
    return [*lines, f"command terminated with exit code {status}"]


def _signal(one: HardClass) -> str:
    return signal.Signals(-one.status).name


def _aborted(one: HardClass) -> str:
    return {6: "Aborted", 11: "Segmentation fault"}[-one.status]


CONSOLES: tuple[Console, ...] = (
    bare, bare, torch_tagged, torchrun_tee, srun, srun_exit_only, pdsh, mpirun, container,
)  # fmt: skip
