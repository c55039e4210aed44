"""`triage serve --workers N` does tasks in parallel, and a running task can be cancelled."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.service.server_process import ServerProcess, run_server, wait_for
from triage.store import Store

LINE = b"[rank0]: step 17 loss 2.3456 grad_norm 1.0 lr 3e-4 tokens/s 123456\n"
LONG = gzip.compress(LINE * 50_000) * 600  # 2 GB, which take a while to read, in a few MB


def _upload(server: ServerProcess, name: str, content: bytes) -> str:
    answer = server.client.post("/api/v1/uploads", files={"file": (name, content)})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def _state(server: ServerProcess, task: str) -> str:
    return str(server.client.get(f"/api/v1/tasks/{task}").json()["state"])


def test_two_workers_run_in_parallel_and_a_running_task_is_cancelled(tmp_path: Path) -> None:
    """Two long tasks run in parallel. One is cancelled and leaves nothing; its worker takes the next task."""
    path = tmp_path / "triage.db"
    with run_server(path, "--workers", "2") as server:
        first, second = (
            _upload(server, f"{name}.log.gz", LONG + gzip.compress(name.encode())) for name in ("first", "second")
        )
        wait_for(lambda: [_state(server, task) for task in (first, second)] == ["running", "running"])
        small = _upload(
            server, "rank0.log", b"[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: nothing\n"
        )
        assert server.client.delete(f"/api/v1/tasks/{first}").json()["state"] in ("running", "cancelled")
        wait_for(lambda: _state(server, first) == "cancelled")
        wait_for(lambda: _state(server, small) == "done")
        assert _state(server, second) == "running"
        assert server.client.get("/api/v1/incidents").json()["total"] == 1
        server.client.delete(f"/api/v1/tasks/{second}")
        wait_for(lambda: _state(server, second) == "cancelled")
    with Store.open(path) as store:
        owners = {store.tasks.get(task).owner for task in (first, second)}
        assert len(owners) == 2
        assert store.tasks.get(small).owner in owners
    assert list((tmp_path / "uploads" / "jobs").iterdir()) == []
