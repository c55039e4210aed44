"""`triage serve`: open the socket, and start the processes that answer requests and the workers."""

from __future__ import annotations

import logging
import os
import socket
from functools import partial

from pydantic import SecretStr

from triage.base.errors import OptionError
from triage.service import access
from triage.service.dependencies import cookie_secret
from triage.service.limits import HEADER_BYTES
from triage.service.log import LibraryLogHandler, ResponseCounts, write_event
from triage.service.store_condition import StoreCondition, check_condition
from triage.service.work.job_files import make_upload_directories, upload_directory
from triage.service.work.supervisor import ChildProcess, Supervisor
from triage.settings import Settings
from triage.store import Store

BACKLOG = 2048
KEEP_ALIVE_SECONDS = 15
SHUTDOWN_SECONDS = 10


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises OptionError and StoreError."""
    with Store.open(settings.store.path) as store:  # migrates it and makes the secret; closed before the fork
        access.check_settings(settings, store)
        settings = _with_secret(settings, store)
        is_sign_in_required = access.is_sign_in_required(settings, store)
        location = store.connections.location
        condition = StoreCondition("writable" if store.connections.writable else "read-only")
    _preload()  # before the socket is there: a node that starts beside others refuses what they can answer
    listener = open_listener(settings)
    host, port = listener.getsockname()[:2]
    can_write = condition.get() == "writable"
    if can_write:
        make_upload_directories(upload_directory(settings))
    processes = {"processes": settings.web.processes, "workers": settings.tasks.workers if can_write else 0}
    write_event("triage serves", address=f"http://{host}:{port}/", store=str(location), **processes)
    if not can_write:
        hint = "nothing can be uploaded or changed; make the store writable and start again"
        write_event("the store is read-only", store=str(location), hint=hint)
    if not is_sign_in_required:
        write_event("nobody needs to sign in", why="only this machine can reach it and no way to sign in is set up")
    try:
        check = ChildProcess("store check", partial(check_condition, location, condition, settings.store.check_seconds))
        children = _child_processes(settings, listener, condition)
        Supervisor(children, check if settings.store.check_seconds else None).run()
    finally:
        listener.close()
    write_event("triage has stopped")


def _with_secret(settings: Settings, store: Store) -> Settings:
    """Return settings with which all processes read the same cookies, if a read-only store cannot keep their key."""
    secret = cookie_secret(store).hex()  # a store that can be written keeps it from now on
    if store.connections.writable or settings.web.secret.get_secret_value():
        return settings
    web = settings.web.model_copy(update={"secret": SecretStr(secret)})
    return settings.model_copy(update={"web": web})


def _child_processes(settings: Settings, listener: socket.socket, condition: StoreCondition) -> list[ChildProcess]:
    counts = ResponseCounts(settings.web.processes)
    web = [
        ChildProcess(f"web {index}", partial(run_web_process, settings, listener, counts, index, condition))
        for index in range(settings.web.processes)
    ]
    workers = [
        ChildProcess(f"worker {index}", partial(run_worker, settings, condition))
        for index in range(settings.tasks.workers)
    ]
    return web + workers if condition.get() == "writable" else web


def open_listener(settings: Settings) -> socket.socket:
    """Return the listening socket. Raises OptionError."""
    web = settings.web
    listener = socket.socket(socket.AF_INET6 if ":" in web.host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((web.host, web.port))
        listener.listen(BACKLOG)
        listener.set_inheritable(True)
    except OSError as error:
        listener.close()
        raise OptionError(
            f"cannot listen on {web.host}, port {web.port}: {error.strerror}",
            hint="choose another address with --host or --port",
        ) from None
    return listener


def run_web_process(
    settings: Settings, listener: socket.socket, counts: ResponseCounts, index: int, condition: StoreCondition
) -> None:
    """Answer requests until the process is stopped."""
    import uvicorn

    from triage.service.app import create_app
    from triage.service.connection_limits import limited_protocol

    logging.basicConfig(level=logging.WARNING, handlers=[LibraryLogHandler()], force=True)
    counts.process_index = index
    config = uvicorn.Config(
        create_app(settings, response_counts=counts, condition=condition),
        # h11 is the only one that limits headers which do not end; RequestLimits answers 431 to complete ones.
        http=limited_protocol(settings.web),  # type: ignore[arg-type]
        h11_max_incomplete_event_size=2 * HEADER_BYTES,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=settings.web.connections,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[listener])


def run_worker(settings: Settings, condition: StoreCondition) -> None:
    """Do tasks until the process is stopped; none while the store is damaged."""
    from triage.service.work.worker import Worker

    os.nice(settings.tasks.nice)
    with Store.open(settings.store.path) as store:
        Worker(settings, store).run(lambda: condition.get() == "writable")


def _preload() -> None:
    """Import and compile once, before the fork, what the processes share."""
    import importlib

    for name in ("triage.service.app", "triage.service.work.worker", "triage.render.html", "uvicorn"):
        importlib.import_module(name)
    from triage.catalog.load import load
    from triage.service.pages.rendering import load_templates

    load_templates()
    load(strict=False)  # a new catalog is compiled into the cache, which takes seconds
