"""What failed on one host or one of its devices: counts, devices, and the causes with the work on them.

A device (a PCI address or a number) means something only together with its host, so it is looked up where the root
cause has that host alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from triage.model.store import Cause
from triage.ranks.pci_addresses import format_pci_address
from triage.store import codec
from triage.store.cause_work import CauseWork, Comment
from triage.store.causes import CauseFilter, Causes
from triage.store.interface import Connections
from triage.store.search import StatsRow

MOST_DEVICES, MOST_CAUSES = 50, 100


@dataclass(frozen=True, slots=True)
class HostHistory:
    """The failures of a host or of one of its devices.

    `incidents` counts them, `first_at` and `last_at` are the times of the first and the last one, 0 without any. The
    causes are those of the host, with all of their failures; `comments` are (cause, comment), the latest first.
    """

    host: str
    device: str | None
    incidents: int
    first_at: float
    last_at: float
    devices: tuple[StatsRow, ...]
    causes: tuple[Cause, ...]
    comments: tuple[tuple[str, Comment], ...]


def read_history(
    connections: Connections,
    causes: Causes,
    work: CauseWork,
    host: str,
    device: str | None = None,
    *,
    now: float | None = None,
) -> HostHistory:
    """Return the failures whose root cause is on a host, or on one of its devices."""
    alone = codec.json_list([host])
    where = "i.num IN (SELECT incident FROM host WHERE name = ? AND blamed = 1)"
    values = [host]
    if device is not None:
        where = f"{where} AND i.device IN (?, ?) AND i.hosts = ?"
        values = [host, device, format_pci_address(device), alone]
    row = connections.read(
        "SELECT count(*) AS n, coalesce(min(i.at), 0) AS first, coalesce(max(i.at), 0) AS last FROM incident i "
        f"WHERE {where}",
        values,
    )[0]
    devices = connections.read(
        "SELECT i.device AS name, count(*) AS n, min(i.at) AS first, max(i.at) AS last FROM incident i "
        "WHERE i.num IN (SELECT incident FROM host WHERE name = ? AND blamed = 1) AND i.hosts = ? "
        "AND i.device IS NOT NULL GROUP BY i.device ORDER BY n DESC, name LIMIT ?",
        (host, alone, MOST_DEVICES),
    )
    roots = connections.read(
        "SELECT DISTINCT coalesce(i.signature, k.cluster) AS cause FROM incident i LEFT JOIN cluster_key k "
        f"ON k.key = i.key WHERE {where}",
        values,
    )
    chosen = {root["cause"] for root in roots}
    page = causes.list_causes(CauseFilter(host=host), order="last", limit=MOST_CAUSES, now=now)
    listed = tuple(cause for cause in page.causes if cause.id in chosen)
    comments = work.list_all_comments(cause.id for cause in listed)
    return HostHistory(
        host,
        device,
        int(row["n"]),
        row["first"],
        row["last"],
        tuple(StatsRow(item["name"], item["n"], item["first"], item["last"]) for item in devices),
        listed,
        tuple(sorted(comments, key=lambda item: -item[1].at)),
    )
