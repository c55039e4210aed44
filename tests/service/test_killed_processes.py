"""Killed workers and servers lose no task and do no task twice."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.service.server_process import ServerProcess, run_server, wait_for
from triage.store import Store

JOBS = 3


def _upload_job(server: ServerProcess, number: int) -> str:
    """Upload a job with a failure of its own. Returns the id of the task."""
    text = (
        "starting\n[rank0]: Traceback (most recent call last):\n"
        f'[rank0]:   File "t.py", line 1, in <module>\n[rank0]: ValueError: job {number} broke\n'
    )
    answer = server.client.post(
        "/api/v1/uploads", files={"file": ("rank0.log", text * 200)}, data={"name": f"job {number}"}
    )
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def _is_any_running(server: ServerProcess, tasks: list[str]) -> bool:
    return any(server.client.get(f"/api/v1/tasks/{task}").json().get("state") == "running" for task in tasks)


def _are_all_done(server: ServerProcess, tasks: list[str]) -> bool:
    states = [server.client.get(f"/api/v1/tasks/{task}").json() for task in tasks]
    assert all(item["state"] in ("queued", "running", "done") for item in states), states
    return all(item["state"] == "done" for item in states)


def _check_incidents(path: Path, tasks: list[str]) -> None:
    """Check that each task is done, and that each job is one incident that was ingested once."""
    with Store.open(path) as store:
        assert [store.tasks.get(task).state for task in tasks] == ["done"] * len(tasks)
        incidents = {store.tasks.get(task).result["incident"] for task in tasks}  # type: ignore[index]
        assert len(incidents) == len(tasks)
        assert {store.incidents.get(one).incident.ingests for one in incidents} == {1}


def test_killed_worker_loses_nothing(tmp_path: Path) -> None:
    """After kill -9 of a worker another one does its task, and the server keeps answering."""
    path = tmp_path / "triage.db"
    with run_server(path, "--workers", "2", tasks_stale=1) as server:
        tasks = [_upload_job(server, number) for number in range(JOBS)]
        wait_for(lambda: _is_any_running(server, tasks))
        worker = server.children()[-1]
        os.kill(worker, signal.SIGKILL)
        assert server.client.get("/api/v1/health").status_code == 200
        wait_for(lambda: len(server.children()) == 3 and worker not in server.children())
        wait_for(lambda: _are_all_done(server, tasks))
    _check_incidents(path, tasks)


def test_killed_server_loses_nothing(tmp_path: Path) -> None:
    """After kill -9 of the server its processes end, and the next start does the remaining tasks."""
    path = tmp_path / "triage.db"
    server = ServerProcess(path, tasks_stale=1)
    tasks = [_upload_job(server, number) for number in range(JOBS)]
    wait_for(lambda: _is_any_running(server, tasks))
    server.kill()
    server.start()
    wait_for(lambda: _are_all_done(server, tasks))
    assert server.stop() == 0
    _check_incidents(path, tasks)


def test_stop_releases_the_running_task(tmp_path: Path) -> None:
    """After SIGTERM a running task waits again, and the attempt does not count."""
    path = tmp_path / "triage.db"
    server = ServerProcess(path)
    tasks = [_upload_job(server, number) for number in range(3)]
    wait_for(lambda: _is_any_running(server, tasks))
    assert server.stop() == 0
    with Store.open(path) as store:
        states = [store.tasks.get(task) for task in tasks]
        assert {task.state for task in states} <= {"queued", "done"}
        assert all(task.attempts == (1 if task.state == "done" else 0) for task in states)
