"""A real server with workers and a real browser, shared by all tests of the pages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import triage
from tests.service.conftest import ROOT, copy_flight_dumps, job_path, store_job
from triage.store import Store

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
ROLES = {
    "viewer": ("read",),
    "submitter": ("read", "ingest"),
    "curator": ("read", "ingest", "curate"),
    "admin": ("read", "ingest", "curate", "admin"),
}


@dataclass(frozen=True, slots=True)
class PageServer:
    """The address and the store of the server, and a token per role.

    `rich` are incidents with collectives, a stack and a different environment; `running` is a task without a worker.
    """

    address: str
    path: Path
    tokens: dict[str, str]
    rich: tuple[str, ...]
    running: str


@pytest.fixture(scope="session")
def page_server(store_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """`triage serve` in its own process, on a store with incidents and two clusters."""
    path = Path(shutil.copy(store_template, tmp_path_factory.mktemp("page_server") / "triage.db"))
    with Store.open(path) as store:
        store.incidents.add(triage.ingest(job_path("assertion_all_ranks_interleaved")))
        rich = tuple(
            store_job(store, path.parent, place, place.parent.name)
            for place in (
                copy_flight_dumps(path.with_name("dumps")),
                job_path("segfault_all_ranks_redirects"),
                job_path("env_detail_one_rank_perrank"),
            )
        )
        running = store.tasks.add("ingest", {"place": {"files": []}, "name": "a job"}, actor="tests").id
        assert store.tasks.claim("tests") is not None  # no worker has it, and it becomes stale only much later
        tokens = {
            role: store.tokens.create(f"{role} of the tests", scopes, actor="tests")[0]
            for role, scopes in ROLES.items()
        }
    environment = {
        **os.environ,
        "TRIAGE_STORE": str(path),
        "TRIAGE_TASKS_STALE": "600",
        "TRIAGE_WEB_REQUESTS_A_MINUTE": "100000",
        "TRIAGE_WEB_CHANGES_A_MINUTE": "10000",
        "TRIAGE_ROUTING_SUBSCRIPTIONS": '["webhook:team"]',
    }
    command = [sys.executable, "-m", "triage", "serve", "--port", "0", "--workers", "1"]
    log_path = path.with_name("log")  # a full pipe that nobody reads would stop the server
    with (
        log_path.open("w") as log,
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log) as process,
    ):
        try:
            yield PageServer(_read_address(process, log_path), path, tokens, rich, running)
        finally:
            process.terminate()
            process.wait(timeout=60)


def _read_address(process: subprocess.Popen[bytes], log_path: Path) -> str:
    """Wait for the address in the log."""
    while (match := re.search(r"http://127\.0\.0\.1:\d+", log_path.read_text())) is None:
        assert process.poll() is None, log_path.read_text()
        time.sleep(0.05)
    return match.group()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium."""
    if CHROMIUM is None:
        pytest.skip("no chromium is installed; `.ci/run` installs it: apt-get install chromium")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install 'triage-kb[dev]'"
    )
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser: Browser, page_server: PageServer) -> Iterator[Callable[..., Page]]:
    """Open pages, signed in with a role; at the end no script failed and the content policy blocked nothing."""
    contexts: list[BrowserContext] = []
    errors: list[str] = []

    def new_page(role: str | None = "curator", *, scripts: bool = True, dark: bool = False, width: int = 1240) -> Page:
        context = browser.new_context(
            base_url=page_server.address,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            accept_downloads=True,
        )
        contexts.append(context)
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "console",
            lambda message: (
                errors.append(message.text)
                if message.type == "error" and "Failed to load resource" not in message.text
                else None
            ),
        )
        if role is not None:
            answer = context.request.post(
                "/auth/token",
                form={"token": page_server.tokens[role], "next": "/status"},
                headers={"Origin": page_server.address},
            )
            assert answer.ok, answer.text()
        return page

    yield new_page
    for context in contexts:
        context.close()
    assert not errors


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded job that is not in the store, as an archive."""
    path = tmp_path_factory.mktemp("archive") / "skipped.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(job_path("exception_one_rank_twonode"), arcname="job")
    return path
