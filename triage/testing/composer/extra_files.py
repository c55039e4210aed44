"""Files that lie beside the logs and must not matter: what people store with a job."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from triage.testing.composer.model import World

Make = Callable[[World, random.Random], str]


def _readme(world: World, rng: random.Random) -> str:
    return (
        f"# Training\n\n    torchrun --nproc-per-node {world.per_node} {world.script} --config config.yaml\n\n"
        "## Trouble\n\n- `CUDA out of memory`: halve `micro_batch_size`.\n"
        "- NCCL timeouts: ask the cluster team to look at the links.\n"
        "- `ModuleNotFoundError`: did you run `pip install -r requirements.txt`?\n"
        "- Segmentation fault: update the driver.\n"
    )


def _pip_freeze(world: World, rng: random.Random) -> str:
    packages = {
        "accelerate": "1.2.1", "datasets": "3.2.0", "einops": "0.8.0", "numpy": "1.26.4", "pyyaml": "6.0.2",
        "safetensors": "0.4.5", "tokenizers": "0.21.0", "tqdm": "4.67.1", "transformers": "4.47.1", "wandb": "0.19.1",
        "torch": world.torch,
    }  # fmt: skip
    if world.backend == "nccl":
        packages |= {"nvidia-nccl-cu12": world.nccl, "flash-attn": "2.7.2.post1"}
    return "".join(f"{name}=={version}\n" for name, version in sorted(packages.items()))


_RULE = "+-----------------------------------------+------------------------+----------------------+"
_TABLE_HEAD = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.90.07              Driver Version: 550.90.07      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
"""
_TABLE_END = """
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
"""


def _nvidia_smi(world: World, rng: random.Random) -> str:
    """Return the table of nvidia-smi some minutes before the job, on the first node."""
    table = world.stamp(-rng.uniform(60, 900), "%a %b %e %H:%M:%S %Y       \n") + _TABLE_HEAD
    for local in range(world.per_node):
        table += (
            f"|   {local}  NVIDIA H100 80GB HBM3          On  |   0000{world.bus(local).upper()}.0 Off |"
            "                    0 |\n"
            f"| N/A   {rng.randrange(26, 39)}C    P0              {rng.randrange(66, 79)}W /  700W |"
            "       1MiB /  81559MiB |      0%      Default |\n"
            "|                                         |                        |             Disabled |\n"
            f"{_RULE}\n"
        )
    return table + _TABLE_END


def _config(world: World, rng: random.Random) -> str:
    return (
        f"model:\n  hidden_size: {rng.choice((1024, 2048, 4096))}\n  layers: {rng.choice((12, 24, 32))}\n  dropout: "
        "0.0\n"
        f"data:\n  path: /data/tokens\n  workers: {rng.choice((0, 2, 4))}\noptimizer:\n  name: adamw\n  lr: 3.0e-4\n"
        f"  weight_decay: 0.1\nseed: {rng.randrange(1, 9999)}\nmicro_batch_size: {rng.choice((1, 2, 8))}\n"
    )


def _environment(world: World, rng: random.Random) -> str:
    """Return `env` of the shell from which the job was started."""
    return (
        "SHELL=/bin/bash\nHOME=/home/ml\nLANG=C.UTF-8\nTERM=xterm-256color\nPATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin\n"
        "VIRTUAL_ENV=/opt/venv\nHF_HOME=/data/hf\nWANDB_MODE=offline\nTOKENIZERS_PARALLELISM=false\n"
        f"PWD={world.script.rpartition('/')[0]}\n"
    )


def _run_script(world: World, rng: random.Random) -> str:
    head = "#!/bin/bash\nset -euo pipefail\nsource /opt/venv/bin/activate\n"
    return f"{head}exec ./launch.sh {world.script} --config config.yaml\n"


def _git(world: World, rng: random.Random) -> str:
    return f"commit {rng.getrandbits(160):040x}\n\n    Fix crash when a shard is empty\n\n M configs/base.yaml\n"


_FILES: tuple[tuple[str, Make], ...] = (
    ("README.md", _readme),
    ("requirements.txt", _pip_freeze),
    ("pip-freeze.txt", _pip_freeze),
    ("nvidia-smi-before.txt", _nvidia_smi),
    ("config.yaml", _config),
    ("env.txt", _environment),
    ("run.sh", _run_script),
    ("git-state.txt", _git),
)


def write_extra_files(world: World, rng: random.Random) -> Mapping[str, bytes]:
    """Return none to four files, in the job's directory or in one of their own."""
    folder = rng.choice(("", "", "code/", "meta/"))
    fitting = [(name, make) for name, make in _FILES if world.backend == "nccl" or make is not _nvidia_smi]
    chosen = rng.sample(fitting, rng.choice((0, 0, 1, 2, 4)))
    return {folder + name: make(world, rng).encode() for name, make in chosen}
