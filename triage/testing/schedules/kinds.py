"""Which signatures are right for what: ids, or patterns with `*`. Several are equivalent for one fault."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

# A rank is behind and stands outside of all calls: nothing but its stack can say more.
BEHIND = frozenset(
    ("torch.lagging-rank", "torch.hang-outside-collectives", "torch.rank-never-joined", "torch.one-rank-diverged",
     "hang.collective", "hang.rank-*", "hang.outside-*", "hang.stalled-*", "hang.absent-*")
)  # fmt: skip
LEFT = BEHIND | {"launch.rank-left-early", "host.sigkill", "nccl.local-rank-left", "nccl.process-unreachable"}
# What the activity of the host says in addition, where the files show it.
ACTIVITIES = {
    "data": frozenset(("hang.dataloader", "data.worker-*", "data.uneven-inputs")),
    "lock": frozenset(("torch.thread-deadlock", "hang.lock*", "torch.gil-hang", "python.lock*")),
    "io": frozenset(("hang.io*", "storage.*", "host.nfs-stall", "hang.storage*")),
    "compile": frozenset(("torch.compile-skew", "hang.compile*", "launch.stale-build-lock")),
    "evaluation": frozenset(("hang.evaluation*", "torch.rank-conditional-collective")),
    "checkpoint": frozenset(("checkpoint.*", "hang.checkpoint*", "torch.rank-conditional-collective")),
}
ORDER = frozenset(("torch.collective-order-mismatch", "hang.order-*", "nccl.mismatched-collective",
                   "hccl.argument-mismatch", "hccl.heartbeat-operator-mismatch"))  # fmt: skip
SIZE = frozenset(("torch.collective-shape-mismatch", "nccl.message-truncated"))
TYPE = frozenset(("torch.collective-dtype-mismatch",))
EXTRA = frozenset(("torch.extra-collective", "torch.rank-conditional-collective", "hang.extra-*", "hang.skipped-*"))
GROUPS = frozenset(("torch.group-order-deadlock", "torch.wrong-process-group", "hang.cycle*", "hang.group-*"))
PAIR = frozenset(("*p2p*", "*send-recv*", "*unmatched*", "*peer*"))
STUCK = frozenset(("torch.stuck-in-collective", "hang.transfer*", "hang.device*"))
UNEVEN = frozenset(("data.uneven-inputs",))
# They say that ranks wait, and blame nobody.
SYMPTOMS = frozenset(
    ("torch.collective-timeout", "torch.collectives-failed", "torch.process-taken-down", "torch.flight-dump-signal",
     "torch.watchdog-failure-at-sequence", "hang.collective", "torch.heartbeat-timeout", "torch.watchdog-*",
     "hccl.notify-timeout")
)  # fmt: skip


def is_one_of(signature: str | None, kinds: Iterable[str]) -> bool:
    """Whether a signature is one of these kinds."""
    return signature is not None and any(fnmatchcase(signature, kind) for kind in kinds)
