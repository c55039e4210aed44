"""De-interleaving whole logs: one file a rank, byte for byte what it wrote. The heart is `route`: whose is each line."""

from __future__ import annotations

from triage.ranks.splitting.names import Written
from triage.ranks.splitting.run import Options, Result, split

__all__ = ["Options", "Result", "Written", "split"]
