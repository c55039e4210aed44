"""`triage serve --workers N`: tasks at the same time, and one that runs is stopped from outside."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.service.serving import Server, eventually, serving
from triage.store import Store

LINE = b"[rank0]: step 17 loss 2.3456 grad_norm 1.0 lr 3e-4 tokens/s 123456\n"
LONG = gzip.compress(LINE * 50_000) * 600  # 2 GB, which takes a while to read, in some MB


def _send(server: Server, name: str, content: bytes) -> str:
    answer = server.client.post("/api/v1/uploads", files={"file": (name, content)})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def _state(server: Server, task: str) -> str:
    return str(server.client.get(f"/api/v1/tasks/{task}").json()["state"])


def test_two_workers_work_at_once_and_a_running_task_is_cancelled(tmp_path: Path) -> None:
    """Two long tasks run beside each other. One is stopped: nothing of it is kept, its worker takes the next, the other
    goes on.
    """
    path = tmp_path / "triage.db"
    with serving(path, "--workers", "2") as server:
        first, second = (
            _send(server, f"{name}.log.gz", LONG + gzip.compress(name.encode())) for name in ("first", "second")
        )
        eventually(lambda: [_state(server, task) for task in (first, second)] == ["running", "running"])
        small = _send(
            server, "rank0.log", b"[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: nothing\n"
        )
        assert server.client.delete(f"/api/v1/tasks/{first}").json()["state"] in ("running", "cancelled")
        eventually(lambda: _state(server, first) == "cancelled")
        eventually(lambda: _state(server, small) == "done")
        assert _state(server, second) == "running"
        assert server.client.get("/api/v1/incidents").json()["total"] == 1
        server.client.delete(f"/api/v1/tasks/{second}")
        eventually(lambda: _state(server, second) == "cancelled")
    with Store.open(path) as store:
        owners = {store.tasks.get(task).owner for task in (first, second)}
        assert len(owners) == 2
        assert store.tasks.get(small).owner in owners
    assert list((tmp_path / "uploads" / "jobs").iterdir()) == []
