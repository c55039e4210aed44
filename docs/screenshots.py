"""Take the pictures of docs/web.md: every page, light and dark, of a service with recorded jobs.

`make screenshots` runs it. It needs Debian's chromium, Playwright and Pillow. With `--keep DIR` it writes all pictures
to this directory, also in the width of a phone.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from triage.service.work import analysis
from triage.service.work.job_files import make_upload_directories
from triage.settings import Settings
from triage.settings.sections import Source
from triage.store import Store
from triage.store.cause_work import WorkChange
from triage.testing.jobs import JobBuilder

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "samples"
TARGET = ROOT / "docs" / "img"
COLOURS, MOST_BYTES = 96, 150_000
DESK, PHONE = (1280, 860), (390, 844)
RUNS = 1024
# Recorded jobs and their names in the pictures.
JOBS = {
    "nccl_rank_missing_two_nodes": "llama-7b pretrain 41",
    "nccl_rank_lagging": "llama-7b pretrain 42",
    "skipped_collective_stacks_redirects": "llama-7b pretrain 43",
    "nccl_extra_collective": "moe-16e ablation 3",
    "segfault_faulthandler_tee": "moe-16e ablation 4",
    "dataloader_worker_killed_tee": "vit-l finetune 8",
    "memory_one_rank_fuller": "vit-l finetune 9",
    "disk_full_tee": "vit-l finetune 10",
    "env_nccl_algo_two_nodes": "llama-70b pretrain 2",
    "gpu_off_the_bus_two_nodes": "llama-70b pretrain 3",
    "gpu_double_bit_error": "llama-70b pretrain 4",
    "ib_port_error": "llama-70b pretrain 5",
    "ib_peer_was_killed": "llama-70b pretrain 6",
    "host_memory_kernel_two_nodes": "tokenize shard 17",
    "hccl_tls_mismatch": "pangu smoke 1",
    "exception_one_rank_tee": "rlhf reward 5",
    "exception_one_rank_twonode": "rlhf reward 6",
    "assertion_all_ranks_interleaved": "rlhf policy 2",
    "healthy_bar_twonode": "rlhf policy 3",
    "sigkill_perrank": "rlhf policy 4",
}
# By picture name: the address of the page, and the selector of its visible part (empty: the top of the page).
Addresses = dict[str, tuple[str, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--keep", type=Path, help="write the pictures to this directory instead of docs/img, also as on a phone"
    )
    keep: Path | None = parser.parse_args().keep
    target = keep or TARGET
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="triage-pictures-") as scratch:
        path = Path(scratch) / "triage.db"
        addresses, token = fill_store(path, Path(scratch))
        with run_server(path) as address, run_chromium() as browser:
            for dark in (False, True):
                for size, (width, height) in ({"": DESK, "-phone": PHONE} if keep else {"": DESK}).items():
                    take_pictures(
                        browser, address, token, addresses, target, dark, size, width, height, keep is not None
                    )


def take_pictures(
    browser: Browser,
    address: str,
    token: str,
    pages: Addresses,
    target: Path,
    dark: bool,
    size: str,
    width: int,
    height: int,
    whole: bool,
) -> None:
    """Take all pictures of one size and colour; with `whole` of entire pages instead of one screen."""
    context = browser.new_context(
        base_url=address, viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    context.set_default_timeout(120_000)
    page = context.new_page()
    for name, (where, part) in pages.items():
        if where == "/sign-in":
            context.clear_cookies()
        elif not context.cookies():
            context.request.post("/auth/token", form={"token": token, "next": "/status"}, headers={"Origin": address})
        page.goto(where)
        box = page.locator(part).first.bounding_box() if part else None
        data = page.screenshot(full_page=whole or box is not None, clip=box)
        save(data, target / f"{name}{size}-{'dark' if dark else 'light'}.png")
    context.close()


def fill_store(path: Path, scratch: Path) -> tuple[Addresses, str]:
    """Fill a store with jobs, feedback and tasks; return its pages and a curator's token."""
    make_upload_directories(scratch / "work")
    jobs = [(SAMPLES / "jobs" / job / "job", name) for job, name in JOBS.items()]
    jobs += [(copy_dumps(scratch / "dumps"), "moe-16e ablation 5")]
    jobs += [(write_large_job(scratch / "many"), "llama-405b pretrain 1")]
    jobs += [(job, job.name.replace("-", " ")) for job in write_pair(scratch / "pair")]
    with Store.open(path) as store:
        ids = {name: store_job(store, scratch, job, name) for job, name in jobs}
        add_feedback(store, ids)
        add_work(store)
        add_views(store)
        cluster = next(item.id for item in store.clusters.list_clusters() if item.name)
        running = add_tasks(store, ids)
        token = store.tokens.create("mira", ("read", "ingest", "curate"), actor="pictures")[0]
    shown = f"/incidents/{ids['llama-7b pretrain 41']}"
    pages = {
        "causes": ("/causes", ""),
        "cause": ("/causes/torch.rank-never-joined", ""),
        "incidents": ("/incidents", ""),
        "incident": (shown, ""),
        "chain": (shown, "#chain"),
        "ranks": (f"/incidents/{ids['llama-405b pretrain 1']}", "#ranks"),
        "timeline": (shown, "#time"),
        "evidence": (f"/incidents/{ids['vit-l finetune 8']}", "#evidence"),
        "collectives": (f"/incidents/{ids['moe-16e ablation 5']}", "#collectives"),
        "stack": (f"/incidents/{ids['moe-16e ablation 4']}", "#stack"),
        "environment": (f"/incidents/{ids['llama-70b pretrain 2']}", "#environment"),
        "comparison": (f"/incidents/{ids['summarizer 12']}/compare?healthy={ids['summarizer 11']}", ""),
        "host": ("/hosts/node2", ""),
        "views": ("/views", ""),
        "inbox": ("/inbox", ""),
        "cluster": (f"/clusters/{cluster}", ""),
        "promote": (f"/clusters/{cluster}/promote?signature=data.column-missing&title=A+shard+lacks+a+column", ""),
        "signatures": ("/signatures", ""),
        "signature": ("/signatures/torch.rank-never-joined", ""),
        "search": ("/search?q=shard+killed", ""),
        "upload": ("/upload", ""),
        "task": (f"/tasks/{running}", ""),
        "stats": ("/stats", ""),
        "audit": ("/audit", ""),
        "status": ("/status", ""),
        "sign-in": ("/sign-in", ""),
    }
    return pages, token


def store_job(store: Store, scratch: Path, job: Path, name: str) -> str:
    """Store the job as a worker does, and return the incident's id."""
    source = job.parent.name if job.name == "job" else job.name
    settings = Settings(sources={source: Source(path=job, one=True)})
    out, here = scratch / "out", Path.cwd()
    try:
        analysis.analyse(
            settings, scratch / "work", {"place": {"source": source}, "name": name}, "picture", out, lambda _: None
        )
    finally:
        os.chdir(here)
    diagnosis, documents = analysis.read_result(out)
    with store.connections.write() as db:
        incident = store.incidents.add(diagnosis)
        for kind, document in documents.items():
            store.service_data.save_document(db, incident.id, kind, document)
    return incident.id


def copy_dumps(directory: Path) -> Path:
    """Copy the Flight Recorder dumps of a recorded hang, without its TRUTH.yaml."""
    directory.mkdir()
    for dump in (SAMPLES / "flight" / "never_joined").glob("fr_rank_?"):
        shutil.copy(dump, directory)
    return directory


def add_feedback(store: Store, ids: dict[str, str]) -> None:
    """Add feedback to incidents, and a name to a cluster."""
    for name, verdict, actor, because in (
        ("llama-7b pretrain 43", "agree", "mira", "evaluation ran on rank 0 only; all ranks call it now"),
        ("moe-16e ablation 5", "agree", "jonas", "the sampler of one rank ran dry; drop_last is set"),
        ("llama-70b pretrain 4", "agree", "mira", "node2 drained, the card was replaced"),
        ("vit-l finetune 9", "wrong", "jonas", "somebody's notebook had been left on that card"),
    ):
        store.feedback.add(ids[name], verdict, actor=actor, because=because)
    for cluster in store.clusters.list_clusters():
        if "tokens" in cluster.title:
            note = "The download of the shard broke off. Compare its size with the manifest."
            store.cluster_actions.name(cluster.id, "A shard without tokens", actor="mira", note=note)


def add_work(store: Store) -> None:
    """Give some causes a status, an assignee and a comment; one was fixed and came back."""
    march = datetime(2026, 3, 10, tzinfo=UTC).timestamp()
    for cause, change in (
        ("torch.rank-never-joined", WorkChange("fixed", "trainer 4.2", march, "mira", "https://tickets.example/381")),
        ("host.sigkill", WorkChange("fixed", "image 2026.10", assignee="jonas")),
        ("data.worker-killed", WorkChange("acknowledged", assignee="jonas")),
        ("crash.segfault", WorkChange(assignee="mira")),
    ):
        store.cause_work.change([cause], change, actor="mira")
    store.cause_work.comment(
        "torch.rank-never-joined", "Evaluation still runs on rank 0 in the old branch.", actor="mira"
    )


def add_views(store: Store) -> None:
    """Save filters under names, for one person and for everybody."""
    store.saved_views.save("Memory", "causes", {"domain": "cuda"}, actor="mira")
    store.saved_views.save("Pretraining", "incidents", {"q": "pretrain"}, actor="mira", is_shared=True)


def write_pair(directory: Path) -> list[Path]:
    """Write a healthy job, and the next one with another version of torch, which is slower and fails."""
    jobs = []
    for name, version, seconds in (("summarizer-11", "2.6.0", 3), ("summarizer-12", "2.7.1", 4)):
        job = JobBuilder(directory / name, layout="perrank", world_size=2)
        for rank in range(2):
            job.rank(rank).line(f"torch version {version}, NCCL_ALGO={'Ring' if seconds == 3 else 'Tree'}")
        for step in range(1, 41):
            job.clock += seconds
            for rank in range(2):
                job.rank(rank).line(
                    f"{job.timestamp('%Y-%m-%d %H:%M:%S')} INFO step {step}/40 loss {2.4 - step / 50:.3f}"
                )
        if seconds == 3:
            job.finish()
        else:
            job.rank(1).traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
        jobs.append(job.write())
    return jobs


def add_tasks(store: Store, ids: dict[str, str]) -> str:
    """Add finished uploads, a failed one, and a running one, whose id this returns."""
    for name in ("vit-l finetune 9", "llama-405b pretrain 1"):
        store.tasks.add("ingest", {"place": {"files": []}, "name": name}, actor="mira")
        claimed = store.tasks.claim("worker 0")
        assert claimed is not None
        with store.connections.write() as db:
            store.tasks.end(db, claimed, "done", result={"incident": ids[name], "new": True, "verdict": "known"})
    store.tasks.add("ingest", {"place": {"files": []}, "name": "rlhf reward 7"}, actor="jonas")
    failing = store.tasks.claim("worker 0")
    assert failing is not None
    error = {"code": "input", "message": "logs.tar.gz is damaged: it ends early", "hint": "send it again"}
    with store.connections.write() as db:
        store.tasks.end(db, failing, "failed", error=error)
    store.tasks.add("ingest", {"place": {"files": []}, "name": "llama-405b pretrain 2"}, actor="mira")
    running = store.tasks.claim("worker 0")
    assert running is not None
    store.tasks.beat(running, {"stage": "scan", "done": 640, "total": 1024})
    return running.id


def write_large_job(directory: Path) -> Path:
    """Write the logs of a job of 1,024 ranks: those of one host fall silent, the others wait for them."""
    job = JobBuilder(directory, layout="perrank", world_size=RUNS)
    start = job.clock
    silent = range(608, 616)  # one host
    for step in range(1, 4):
        for rank in range(RUNS):
            job.clock = start + 10 * step
            if rank not in silent or step < 3:
                job.rank(rank).step(step)
    for rank in range(RUNS):
        job.clock = start + 632 + rank % 7
        if rank not in silent:
            job.rank(rank).line(
                f"[rank{rank}]:[E{job.timestamp('%m%d %H:%M:%S')}.000000000 ProcessGroupNCCL.cpp:607] [Rank {rank}] "
                "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=44, OpType=ALLREDUCE, NumelIn=8192, "
                "NumelOut=8192, Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
            )
    return job.write()


@contextmanager
def run_server(path: Path) -> Iterator[str]:
    """Run `triage serve` on the store, and give its address."""
    environment = {**os.environ, "TRIAGE_STORE": str(path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "triage", "serve", "--port", "0", "--workers", "0"]
    log_path = path.with_name("log")
    with log_path.open("w") as log, subprocess.Popen(command, env=environment, stdout=log, stderr=log) as process:
        try:
            while (address := re.search(r"http://127\.0\.0\.1:\d+", log_path.read_text())) is None:
                if process.poll() is not None:
                    sys.exit(log_path.read_text())
                time.sleep(0.1)
            yield address.group()
        finally:
            process.terminate()
            process.wait(timeout=60)


@contextmanager
def run_chromium() -> Iterator[Browser]:
    """Run the browser without a window."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        sys.exit("chromium is not installed: run apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


def save(data: bytes, path: Path) -> None:
    """Write a picture with few colours, so that its file stays small."""
    from PIL import Image

    picture = Image.open(io.BytesIO(data)).convert("RGB")
    picture.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)
    if path.stat().st_size > MOST_BYTES:
        print(f"{path.name}: {path.stat().st_size:,} bytes is too large")


if __name__ == "__main__":
    main()
