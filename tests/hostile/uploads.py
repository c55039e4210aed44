"""Send the corpus to a running service, and look at what it leaves behind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tests.hostile.build import build_job
from tests.hostile.model import HostileCase
from tests.service.server_process import ServerProcess, wait_for

SETTINGS = {
    "tasks_seconds": 300,
    "tasks_upload_files": 3000,
    "web_slow_seconds": 3,
    "web_changes_a_minute": 10_000,
    "web_requests_a_minute": 100_000,
}
"""Limits of a service that the reduced corpus fits into."""
BATCH = 8
LARGEST = 64 << 20
"""Bytes of a file that is sent; the holes of a terabyte stay here."""
ON_DISK = ("files: deep directories", "files: very many")
"""Cases of a file system, of which an upload has none."""


def send_corpus(server: ServerProcess, cases: Sequence[HostileCase], good: bytes) -> list[str]:
    """Upload each case; return what was wrong with the tasks, their diagnoses, or the answers of the service."""
    wrong = []
    cases = [case for case in cases if case.name not in ON_DISK]
    for start in range(0, len(cases), BATCH):
        batch = cases[start : start + BATCH]
        tasks = [send_job(server, case, good) for case in batch]
        if server.client.get("/api/v1/health").status_code != 200:
            wrong.append(f"the service is not healthy while it diagnoses {batch[0].name} and the next")
        ends = wait_for_tasks(server, tasks)
        wrong += [why for case, end in zip(batch, ends, strict=True) if (why := explain_end(server, case, end))]
    return wrong + [f"5xx: {line}" for line in server.read_log() if int(line.get("status", 0)) >= 500]


def send_job(server: ServerProcess, case: HostileCase, good: bytes) -> str:
    """Upload the files of a case. Returns the id of its task."""
    with build_job(case, good) as job:
        answer = server.client.post("/api/v1/uploads", files=read_files(job), data={"name": case.name[:200]})
    assert answer.status_code == 202, (case.name, answer.text)
    return str(answer.json()["id"])


def read_files(job: Path) -> list[tuple[str, tuple[str, bytes]]]:
    """Return the files of a job as a form; what is no file of this machine cannot be sent."""
    paths = [path for path in sorted(job.rglob("*")) if path.is_file() and not path.is_symlink()]
    sent = [path for path in paths if path.stat().st_size <= LARGEST]
    return [("file", (path.name.encode("ascii", "replace").decode(), path.read_bytes())) for path in sent]


def wait_for_tasks(server: ServerProcess, tasks: Sequence[str]) -> list[dict[str, object]]:
    """Return the tasks after their ends."""

    def ended() -> list[dict[str, object]] | None:
        rows = [server.client.get(f"/api/v1/tasks/{task}").json() for task in tasks]
        return rows if all(row["state"] in ("done", "failed", "cancelled") for row in rows) else None

    rows: list[dict[str, object]] = wait_for(ended)
    return rows


def explain_end(server: ServerProcess, case: HostileCase, end: dict[str, object]) -> str:
    """Return what is wrong with the end of a task; "" if the diagnosis is that of the good log."""
    result = end.get("result")
    if end["state"] != "done" or not isinstance(result, dict):
        return f"{case.name}: {end['state']}, {end.get('error')}"
    report = server.client.get(f"/api/v1/incidents/{result['incident']}").json()
    signature = (report.get("root_cause") or {}).get("signature")
    return "" if signature == "cuda.out-of-memory" else f"{case.name}: diagnosed as {signature}"


def measure_memory(pid: int) -> int:
    """Return the bytes that a process and its children hold now; shared pages count once."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    sizes = re.findall(r"(?m)^Pss: +(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text())
    return sum(int(size) * 1024 for size in sizes) + sum(measure_memory(int(child)) for child in children)
