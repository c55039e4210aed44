"""An eviction that names no host, joined with the host on which no rank lost a peer."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage

EVICTED = "Warning  Evicted  61s  kubelet  The node was low on resource: memory. Threshold quantity: 100Mi.\n"
LOST = "RuntimeError: [third_party/gloo/gloo/transport/tcp/pair.cc:537] Connection closed by peer [10.0.0.1]:2947\n"


@pytest.mark.parametrize(("losing", "ranks"), [((0,), (2, 3)), ((0, 1), (2, 3)), ((0, 3), ())])
def test_the_host_without_a_lost_peer_was_evicted(
    losing: tuple[int, ...], ranks: tuple[int, ...], tmp_path: Path
) -> None:
    """Where ranks of all hosts lost a peer, nobody knows which pod it was."""
    for rank in range(4):
        start = f"host=node{rank // 2} rank={rank} local_rank={rank % 2} world_size=4\n"
        text = start + f"[rank{rank}]: step 4\n" + (f"[rank{rank}]: {LOST}" if rank in losing else "")
        (tmp_path / f"rank_{rank}.log").write_text(text, encoding="utf-8")
    (tmp_path / "events.txt").write_text(EVICTED, encoding="utf-8")
    root = triage.ingest(tmp_path).root_cause
    assert root is not None
    assert root.signature == "host.pod-evicted"
    assert root.ranks == ranks
