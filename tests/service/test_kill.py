"""Whatever is killed in the middle of tasks: none is lost, none is done twice."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.service.serving import Server, eventually, serving
from triage.store import Store

JOBS = 3


def _send(server: Server, number: int) -> str:
    """Upload a job that fails in its own way; the task."""
    text = f'starting\n[rank0]: Traceback (most recent call last):\n[rank0]:   File "t.py", line 1, in <module>\n[rank0]: ValueError: job {number} broke\n'
    answer = server.client.post(
        "/api/v1/uploads", files={"file": ("rank0.log", text * 200)}, data={"name": f"job {number}"}
    )
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def _begun(server: Server, tasks: list[str]) -> bool:
    return any(server.client.get(f"/api/v1/tasks/{task}").json()["state"] == "running" for task in tasks)


def _all_done(server: Server, tasks: list[str]) -> bool:
    found = [server.client.get(f"/api/v1/tasks/{task}").json() for task in tasks]
    assert all(item["state"] in ("queued", "running", "done") for item in found), found
    return all(item["state"] == "done" for item in found)


def _proved(path: Path, tasks: list[str]) -> None:
    """Each task is done once, and each job is one incident that was seen once."""
    with Store.open(path) as store:
        assert [store.tasks.get(task).state for task in tasks] == ["done"] * len(tasks)
        incidents = {store.tasks.get(task).result["incident"] for task in tasks}  # type: ignore[index]
        assert len(incidents) == len(tasks)
        assert {store.incidents.get(one).incident.seen for one in incidents} == {1}


def test_killed_workers_lose_nothing(tmp_path: Path) -> None:
    """kill -9 of one of two workers while they work: its task is begun again; the server goes on answering."""
    path = tmp_path / "triage.db"
    with serving(path, "--workers", "2", tasks_stale=1) as server:
        tasks = [_send(server, number) for number in range(JOBS)]
        eventually(lambda: _begun(server, tasks))
        worker = server.children()[-1]
        os.kill(worker, signal.SIGKILL)
        assert server.client.get("/api/v1/health").status_code == 200
        eventually(lambda: len(server.children()) == 3 and worker not in server.children())
        eventually(lambda: _all_done(server, tasks))
    _proved(path, tasks)


def test_a_killed_server_loses_nothing(tmp_path: Path) -> None:
    """kill -9 of the server while tasks wait and one is done: its processes go with it, and the next start does the
    rest.
    """
    path = tmp_path / "triage.db"
    server = Server(path, tasks_stale=1)
    tasks = [_send(server, number) for number in range(JOBS)]
    eventually(lambda: _begun(server, tasks))
    server.kill()
    server.start()
    eventually(lambda: _all_done(server, tasks))
    assert server.stop() == 0
    _proved(path, tasks)


def test_a_stop_gives_the_task_back(tmp_path: Path) -> None:
    """SIGTERM ends everything soon; a task that was being done waits again, and the attempt does not count."""
    path = tmp_path / "triage.db"
    server = Server(path)
    tasks = [_send(server, number) for number in range(3)]
    eventually(lambda: _begun(server, tasks))
    assert server.stop() == 0
    with Store.open(path) as store:
        found = [store.tasks.get(task) for task in tasks]
        assert {task.state for task in found} <= {"queued", "done"}
        assert all(task.attempts == (1 if task.state == "done" else 0) for task in found)
