"""`triage serve`: checks the settings, opens the socket, and keeps the processes alive that answer and that work."""

from __future__ import annotations

import logging
import os
import socket
from functools import partial

from triage.base.errors import OptionError
from triage.service import access, log
from triage.service.counters import Counters
from triage.service.work.supervise import Child, Supervisor
from triage.settings import Settings
from triage.store import Store

BACKLOG = 2048
GRACE = 10


def run(settings: Settings) -> None:
    """Serve; returns when SIGTERM or SIGINT asked for it and all has come to its end. Raises OptionError, StoreError."""
    with Store.open(settings.store.path) as store:  # migrates, makes the secret; a fork must not find it open
        access.check(settings, store)
        store.beside.secret("cookies")
        open_to_all = not access.sign_in_needed(settings, store)
        where = store.connections.path
    listening = bound(settings)
    host, port = listening.getsockname()[:2]
    _preload()
    from triage.service.work.files import ready, uploads

    ready(uploads(settings))
    log.say(
        "triage serves",
        address=f"http://{host}:{port}/",
        store=str(where),
        processes=settings.web.processes,
        workers=settings.tasks.workers,
    )
    if open_to_all:
        log.say("nobody needs to sign in", why="it listens on this machine alone and no way to sign in is set up")
    counters = Counters(settings.web.processes)
    children = [
        Child(f"web {number}", partial(answer, settings, listening, counters, number))
        for number in range(settings.web.processes)
    ]
    children += [Child(f"worker {number}", lambda: work(settings)) for number in range(settings.tasks.workers)]
    try:
        Supervisor(children).run()
    finally:
        listening.close()
    log.say("triage has stopped")


def bound(settings: Settings) -> socket.socket:
    """The socket, listening."""
    web = settings.web
    family = socket.AF_INET6 if ":" in web.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((web.host, web.port))
        made.listen(BACKLOG)
        made.set_inheritable(True)
    except OSError as error:
        made.close()
        raise OptionError(
            f"cannot listen to {web.host}, port {web.port}: {error.strerror}",
            hint="choose another with --port or --host",
        ) from None
    return made


def answer(settings: Settings, listening: socket.socket, counters: Counters, place: int) -> None:
    """The life of a process that answers requests."""
    import uvicorn

    from triage.service.app import create_app
    from triage.service.protocol import guarded

    logging.basicConfig(level=logging.WARNING, handlers=[_Lines()], force=True)
    counters.place = place
    app = create_app(settings, counters=counters)
    config = uvicorn.Config(
        app,
        http=guarded(settings.web.slow_seconds),
        ws="none",
        loop="auto",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        limit_concurrency=settings.web.connections,
        backlog=BACKLOG,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=GRACE,
    )
    uvicorn.Server(config).run(sockets=[listening])


def work(settings: Settings) -> None:
    """The life of a process that does tasks."""
    from triage.service.work.worker import Worker

    os.nice(settings.tasks.nice)
    with Store.open(settings.store.path) as store:
        Worker(settings, store).run()


def _preload() -> None:
    """What the processes share is imported once, before they are forked."""
    import importlib

    for name in (
        "triage.service.app",
        "triage.service.protocol",
        "triage.service.work.worker",
        "triage.render.html",
        "uvicorn",
    ):
        importlib.import_module(name)
    from triage.catalog.load import load

    load(strict=False)  # compiles it into the cache if it is new, which takes seconds


class _Lines(logging.Handler):
    """What libraries log, as lines of our log."""

    def emit(self, record: logging.LogRecord) -> None:
        more = {"trace": self.format(record)[-4000:]} if record.exc_info else {}
        log.say("log", level=record.levelname.lower(), logger=record.name, message=record.getMessage()[:2000], **more)
