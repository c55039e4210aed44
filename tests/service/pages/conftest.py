"""A real server with workers, and a real browser: one of each for all tests of the pages."""

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
from tests.service.conftest import ROOT, dumps, job, keep
from triage.store import Store

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
ROLES = {
    "viewer": ("read",),
    "submitter": ("read", "ingest"),
    "curator": ("read", "ingest", "curate"),
    "admin": ("read", "ingest", "curate", "admin"),
}


@dataclass(frozen=True, slots=True)
class Served:
    """The address of the server, its store, a token of each role; incidents with calls, with a stack, with an
    environment that differs;
    a task that nobody works on.
    """

    address: str
    path: Path
    tokens: dict[str, str]
    rich: tuple[str, ...]
    running: str


@pytest.fixture(scope="session")
def served(stored: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`triage serve` in a process of its own, on a store with incidents and two clusters."""
    path = Path(shutil.copy(stored, tmp_path_factory.mktemp("served") / "triage.db"))
    with Store.open(path) as store:
        store.incidents.add(triage.ingest(job("assertion_all_ranks_interleaved")))
        rich = tuple(
            keep(store, path.parent, place, place.parent.name)
            for place in (
                dumps(path.with_name("dumps")),
                job("segfault_all_ranks_redirects"),
                job("env_detail_one_rank_perrank"),
            )
        )
        running = store.tasks.add("ingest", {"place": {"files": []}, "name": "a job"}, actor="tests").id
        assert store.tasks.claim("tests") is not None  # by nobody who works on it, and stale only much later
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
    }
    command = [sys.executable, "-m", "triage", "serve", "--port", "0", "--workers", "1"]
    said = path.with_name("log")  # a pipe that nobody reads would stop the server when it is full
    with said.open("w") as log, subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log) as process:
        try:
            yield Served(_address(process, said), path, tokens, rich, running)
        finally:
            process.terminate()
            process.wait(timeout=60)


def _address(process: subprocess.Popen[bytes], said: Path) -> str:
    """Where it listens, as soon as it says so."""
    while (found := re.search(r"http://127\.0\.0\.1:\d+", said.read_text())) is None:
        assert process.poll() is None, said.read_text()
        time.sleep(0.05)
    return found.group()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, without a window."""
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
def visit(browser: Browser, served: Served) -> Iterator[Callable[..., Page]]:
    """A page signed in with a role; at the end no script may have failed and the policy may have blocked nothing."""
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def opened(role: str | None = "curator", *, scripts: bool = True, dark: bool = False, width: int = 1240) -> Page:
        context = browser.new_context(
            base_url=served.address,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            accept_downloads=True,
        )
        contexts.append(context)
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "console",
            lambda said: (
                wrong.append(said.text) if said.type == "error" and "Failed to load resource" not in said.text else None
            ),
        )
        if role is not None:
            answer = context.request.post(
                "/auth/token",
                form={"token": served.tokens[role], "next": "/status"},
                headers={"Origin": served.address},
            )
            assert answer.ok, answer.text()
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not wrong


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded job that the store has not seen, as people send it."""
    path = tmp_path_factory.mktemp("archive") / "skipped.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(job("exception_one_rank_twonode"), arcname="job")
    return path
