"""What the project was asked for first: every failure mode that its seeds tell has an entry that names the place."""

from __future__ import annotations

import pytest

from triage.catalog.model import Catalog

# Section of a seed to the signatures that it led to.
SEEDS: dict[str, tuple[str, ...]] = {
    "seed 000": ("config.determinism-incomplete", "config.env-mismatch"),
    "seed 001": (
        "torch.collective-order-mismatch",  # mismatched collectives
        "torch.wrong-process-group",
        "torch.collective-shape-mismatch",
        "cuda.memory-imbalance",  # memory of each rank
        "nccl.unhandled-cuda-error",  # the table: NCCL WARN Cuda failure
        "torch.collective-timeout",  # the table: Timed out
        "launch.device-mesh-mismatch",  # the table: Invalid device mesh
        "numeric.rank-divergence",  # tensors that should be equal
        "fsdp.no-wrap-policy",  # the check of what FSDP covers
        "hang.collective",
    ),
    "seed 002": ("hang.dataloader", "torch.flight-dump-signal"),
    "seed 003 D1": ("launch.env-missing",),
    "seed 003 D2": ("launch.split-rendezvous",),
    "seed 003 D3": ("launch.local-rank-misuse",),
    "seed 003 D4": ("launch.port-in-use",),
    "seed 003 D5": ("launch.accelerate-single-process",),
    "seed 003 D6": ("launch.deepspeed-hostfile",),
    "seed 003 D7": ("cuda.out-of-memory",),
    "seed 003 D8": ("ddp.unused-parameters",),
    "seed 003 D9": ("data.uneven-inputs",),
    "seed 003 D10": ("ddp.batchnorm-not-synced",),
    "seed 003 D11": ("numeric.batch-size-scaled",),
    "seed 003 D12": ("fsdp.no-wrap-policy",),
    "seed 003 D13": ("fsdp.sharding-strategy",),
    "seed 003 D14": ("fsdp.mixed-precision",),
    "seed 003 D15": ("checkpoint.full-state-dict-oom", "checkpoint.world-size-mismatch"),
    "seed 003 D16": ("deepspeed.zero-stage",),
    "seed 003 D17": ("deepspeed.config-overridden",),
    "seed 003 D18": ("deepspeed.backward-bypassed",),
    "seed 003 D19": ("torch.collective-order-mismatch",),
    "seed 003 D20": ("torch.one-rank-diverged",),
    "seed 003 D21": ("torch.rank-conditional-collective",),
    "seed 003 D22": ("data.set-epoch-missing",),
    "seed 003 D23": ("checkpoint.write-race",),
    "seed 004": (
        "launch.port-closed",  # the port of the rendezvous behind a firewall
        "launch.host-unresolvable",  # nodes that do not find each other
        "fabric.ib-nodes-not-connected",  # InfiniBand between the nodes
        "nccl.launch-blocking-hang",  # asynchronous CUDA errors
        "cuda.async-error-advice",
        "cuda.device-side-assert",
        "crash.segfault",  # cores and what rethrows in them
        "crash.abort",
        "crash.nccl-error-rethrown",
        "numeric.device-discrepancy",  # precision
    ),
}


@pytest.mark.parametrize("section", SEEDS)
def test_a_seed_is_covered(catalog: Catalog, section: str) -> None:
    """The signatures exist, and `origin` names the seed."""
    origins = {signature.id: [part.strip() for part in signature.origin.split(",")] for signature in catalog.signatures}
    assert {identifier for identifier in SEEDS[section] if section not in origins[identifier]} == set()


def test_every_named_seed_is_listed(catalog: Catalog) -> None:
    """The list above is complete in both directions."""
    named = {
        (part.strip(), signature.id)
        for signature in catalog.signatures
        for part in signature.origin.split(",")
        if "seed" in part
    }
    assert named == {(section, identifier) for section, identifiers in SEEDS.items() for identifier in identifiers}
