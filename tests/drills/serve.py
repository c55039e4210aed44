"""Faults while the service works: killed processes, stops, uploads that are cut, tasks without memory."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import httpx

from tests.drills.site import DrillSite
from tests.service.server_process import ServerProcess, is_running, wait_for
from triage.store import Store, maintenance

UPLOADS = 3
CUTS = 6
END_SECONDS = 60.0


def kill_server(site: DrillSite) -> None:
    """SIGKILL of the whole server while it receives and works: after a restart each accepted upload is done once."""
    with _run_server(site) as server:
        tasks = _upload_jobs(site, server)
        time.sleep(site.chance.uniform(0, 1.5))
        server.kill()
        site.faults += 1
        server.start()
        _check_tasks(site, server, tasks)
    _check_end(site)


def kill_process(site: DrillSite) -> None:
    """SIGKILL of a worker or of a process that answers: the others go on, and it comes back."""
    with _run_server(site) as server:
        tasks = _upload_jobs(site, server)
        for _ in range(2):
            time.sleep(site.chance.uniform(0, 0.7))
            victim = site.chance.choice(server.children())
            os.kill(victim, signal.SIGKILL)
            site.faults += 1
            with contextlib.suppress(AssertionError):
                wait_for(lambda victim=victim: not is_running(victim) and _is_healthy(server), END_SECONDS)  # type: ignore[misc]
            site.check(_is_healthy(server), "the server does not answer after the kill of one of its processes")
        _check_tasks(site, server, tasks)
    _check_end(site)


def stop_server(site: DrillSite) -> None:
    """SIGTERM at any moment: the server ends with status 0, and the next one does what is left."""
    with _run_server(site) as server:
        tasks = _upload_jobs(site, server)
        time.sleep(site.chance.uniform(0, 1.5))
        status = server.stop()
        site.faults += 1
        site.check(status == 0, f"the server ends with {status}")
        site.check_processes()
        server.start()
        _check_tasks(site, server, tasks)
    _check_end(site)


def cut_uploads(site: DrillSite) -> None:
    """Uploads whose connection is cut at any byte: no task, no part of a file; a whole one is accepted."""
    with _run_server(site) as server:
        request = _build_upload(server)
        for _ in range(CUTS):
            _send_part(server, request[: site.chance.randrange(1, len(request))])
            site.faults += 1
        tasks = _upload_jobs(site, server)
        _check_tasks(site, server, tasks)
        with Store.open(site.store) as store:
            site.check(
                sum(store.tasks.counts().values()) == len(tasks), f"tasks of cut uploads: {store.tasks.counts()}"
            )
    _check_end(site)


def limit_task_memory(site: DrillSite) -> None:
    """Tasks with too little memory fail with a reason, and leave nothing. A compiled catalog in the cache might fit."""
    cold = mock.patch.dict(os.environ, {"TRIAGE_CACHE": str(site.place / "cold")})
    with cold, _run_server(site, tasks_memory=256 << 20) as server:
        (task, *_) = _upload_jobs(site, server)
        wait_for(lambda: _read_state(server, task) in ("failed", "done"), END_SECONDS)
        site.faults += 1
        error = server.client.get(f"/api/v1/tasks/{task}").json()["error"]
        site.check(bool(error and error["hint"]), f"a task without memory gives no reason: {error}")
    _check_end(site)


@contextlib.contextmanager
def _run_server(site: DrillSite, **settings: object) -> Iterator[ServerProcess]:
    """Run a server whose processes carry the mark of the drill, and stop it at the end."""
    marked = {name: site.environment[name] for name in ("DRILL_MARK", "TMPDIR")}
    with mock.patch.dict(os.environ, marked):
        server = ServerProcess(site.store, "--workers", "2", tasks_stale=1, **settings)
        try:
            yield server
        finally:
            if server.process.poll() is None:
                site.check(server.stop() == 0, "the server does not stop with status 0")


def _job_text(number: int) -> str:
    failure = f'[rank0]:   File "t{number}.py", line 1, in <module>\n[rank0]: ValueError: job {number} broke\n'
    return ("starting\n[rank0]: Traceback (most recent call last):\n" + failure) * 200


def _upload_jobs(site: DrillSite, server: ServerProcess) -> list[str]:
    """Upload jobs; return the ids of their tasks, which the server has promised to do."""
    tasks = []
    for number in range(UPLOADS):
        form = {"files": {"file": ("rank0.log", _job_text(number))}, "data": {"name": f"job {number}"}}
        answer = server.client.post("/api/v1/uploads", **form)  # type: ignore[arg-type]
        site.check(answer.status_code == 202, f"an upload is refused: {answer.text}")
        if answer.status_code == 202:
            tasks.append(str(answer.json()["id"]))
    return tasks


def _build_upload(server: ServerProcess) -> bytes:
    """Return the bytes of an upload, of another job than the others."""
    form = {"files": {"file": ("rank0.log", _job_text(99))}, "data": {"name": "cut"}}
    request = httpx.Request("POST", f"{server.url}/api/v1/uploads", **form)  # type: ignore[arg-type]
    head = f"POST {request.url.raw_path.decode()} HTTP/1.1\r\n"
    lines = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    return (head + lines + "\r\n").encode() + request.read()


def _send_part(server: ServerProcess, data: bytes) -> None:
    """Send a part of a request, then reset the connection."""
    with socket.create_connection((httpx.URL(server.url).host, httpx.URL(server.url).port or 80), timeout=30) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(data)
        time.sleep(0.01)


def _is_healthy(server: ServerProcess) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return server.client.get("/api/v1/health").status_code == 200
    return False


def _read_state(server: ServerProcess, task: str) -> str:
    """Return the state of a task; nothing while the server does not answer."""
    with contextlib.suppress(httpx.TransportError):
        return str(server.client.get(f"/api/v1/tasks/{task}").json()["state"])
    return ""


def _check_tasks(site: DrillSite, server: ServerProcess, tasks: list[str]) -> None:
    """Each task must be done in the end, and each job be one incident that was ingested once."""
    with contextlib.suppress(AssertionError):
        wait_for(lambda: all(_read_state(server, task) in ("done", "failed") for task in tasks), END_SECONDS)
    states = {task: _read_state(server, task) for task in tasks}
    site.check(set(states.values()) == {"done"}, f"tasks are lost: {states}")
    with Store.open(site.store) as store:
        results = [store.tasks.get(task).result for task in tasks]
        incidents = {str(result["incident"]) for result in results if result}
        site.check(len(incidents) == len(tasks), f"{len(tasks)} uploads are {len(incidents)} incidents")
        ingests = {store.incidents.get(incident).incident.ingests for incident in incidents}
        site.check(ingests == {1}, f"a job was ingested {ingests} times")


def _check_end(site: DrillSite) -> None:
    """Nothing may be left but the incidents and the uploads: no process, no part of a file, no damage."""
    site.check_processes()
    _check_files(site)
    with Store.open(site.store) as store:
        site.losses += [f"store: {problem}" for problem in maintenance.check_store(store.connections)]
        digests = {row["digest"] for row in store.connections.read("SELECT digest FROM upload")}
    blobs = {path.name for path in (site.place / "uploads" / "blobs").rglob("*") if path.is_file()}
    site.check(blobs == digests, f"files without an upload: {blobs - digests}; without a file: {digests - blobs}")


def _check_files(site: DrillSite) -> None:
    uploads: Path = site.place / "uploads"
    site.check_files(uploads / "parts", uploads / "jobs")


DRILLS = (kill_server, kill_process, stop_server, cut_uploads, limit_task_memory)
