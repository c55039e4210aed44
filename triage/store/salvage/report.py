"""What a salvage copied and what it lost."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class SalvageReport:
    """How many rows each table has in the new store, and sentences about what is lost."""

    rows: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
