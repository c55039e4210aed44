"""Members of communicators, as NCCL and HCCL number them."""

from __future__ import annotations

from triage.base.lazy_dataclass import dataclass
from triage.model.evidence import Origin


@dataclass(frozen=True, slots=True)
class CommunicatorMember:
    """A process with its rank in a communicator of `size`, which may be smaller than the job. `bus` is its GPU's."""

    source: str
    origin: Origin
    rank: int
    size: int
    bus: str = ""
