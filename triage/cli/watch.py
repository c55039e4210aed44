"""`triage watch`: follow a job that runs, and say what fails the moment it shows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triage.cli import options

if TYPE_CHECKING:
    from triage.cli.notify import Telling
    from triage.model.watch import Episode, News
    from triage.watch.loop import Watch


def watch(
    paths: options.Paths,
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write events; JSON is one line each.")
    ] = options.PlainFormat.text,
    run: Annotated[
        str | None,
        typer.Option(
            "--exec",
            metavar="CMD",
            help="Run this for every event, with its JSON on standard input.",
            show_default=False,
        ),
    ] = None,
    stall: Annotated[
        float, typer.Option("--stall", min=2, metavar="N", help="No progress for N times the usual step is a stall.")
    ] = 30.0,
    stall_least: Annotated[
        str,
        typer.Option("--stall-least", metavar="TIME", help="But never sooner than this: checkpoints take their time."),
    ] = "3m",
    poll: Annotated[str, typer.Option("--poll", metavar="TIME", help="How often to look.")] = "0.25s",
    stop_after: Annotated[
        str | None,
        typer.Option(
            "--stop-after", metavar="TIME", help="End when nothing was written for so long.", show_default=False
        ),
    ] = None,
    memory: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FILE",
            help="Where to remember what was said. Default: the user's state directory.",
            show_default=False,
        ),
    ] = None,
    no_memory: Annotated[bool, typer.Option("--no-state", help="Remember nothing over a restart.")] = False,
    catalog: options.Catalogs = None,
    store: options.StoreFile = None,
    no_store: Annotated[
        bool, typer.Option("--no-store", help="Remember nothing of a failure when it is over.")
    ] = False,
    notify: options.Notify = False,
    quiet: options.Quiet = False,
) -> None:
    """Follow the logs of a job that runs; say failures, silent ranks and stalls when they show.

    Reads what is there, then what is added: new files, rotated ones, restarts. A failure is said within two seconds and
    revised at most twice. Before any error: ranks that stop while others go on, steps that become slow, no progress.

    \b
    Examples:
      triage watch job_logs/
      triage watch job_logs/ --notify
      triage watch job_logs/ --exec 'notify-the-team --stdin'
      triage watch /shared/logs/run-42 --format json --stop-after 2h
      triage watch job.log --stall 100 --stall-least 20m

    Exit status: 0 it was ended (Ctrl-C, SIGTERM, --stop-after); 2 the input or the options cannot be used.
    """
    from triage.base.errors import InputError
    from triage.base.options import Options
    from triage.cli.ingest import remembered
    from triage.cli.notify import telling as notifying
    from triage.watch import memory as kept
    from triage.watch.follow import Follower
    from triage.watch.hook import Hook
    from triage.watch.loop import Watch
    from triage.watch.pace import Limits, Pace

    pause = options.seconds(poll, "--poll") or 0.25
    watched = Watch(
        Follower(paths, Options(catalogs=tuple(catalog or ()))),
        Pace(Limits(stall, options.seconds(stall_least, "--stall-least") or 0.0), poll=2 * pause),
    )
    place = None if no_memory else memory or kept.place(paths)
    if place is not None:
        watched.follower.find(watched.clock())
        watched.recall(kept.load(place, watched.follower.files))

    def warn(sentence: str) -> None:
        typer.echo(f"warning: {sentence}", err=True)

    hook = Hook(run, warn) if run else None
    telling: Telling | None = None
    episode: Episode | None = None

    def tell(events: list[News]) -> None:
        from triage.render import watch as render

        nonlocal episode
        if events:  # a watch that is killed while it tells tells it again, as the same message
            keep(event.attempt for event in events if event.diagnosis is not None)
        for event in events:
            typer.echo(render.json(event) if format is options.PlainFormat.json else render.text(event), nl=False)
            if hook:
                hook(render.json(event))
            if telling is not None and event.diagnosis is not None:
                telling.tell(event.diagnosis, event.attempt, watched.policy.said[event.attempt].first)
        if watched.episode is not episode and telling is not None and watched.episode is not None:
            telling.pace(watched.episode)
        episode = watched.episode
        if events:
            keep()

    def keep(unsure: Iterable[int] = ()) -> None:
        nonlocal place
        try:
            if place is not None:
                kept.save(place, watched.follower.files, watched.memory(unsure))
        except InputError as error:  # what is to be told matters more
            warn(f"{error}; {error.hint}")
            place = None

    with contextlib.ExitStack() as stack:
        if notify:
            telling = stack.enter_context(notifying(paths, store, no_store))
        _follow(watched, tell, pause, options.seconds(stop_after, "--stop-after"), quiet)
        if hook:
            hook.wait()
        if watched.last is None or no_store:
            return
        attempt = max(watched.policy.said, default=None)
        if telling is not None and attempt is not None:
            telling.keep(watched.last, attempt, watched.policy.said[attempt].first)
        else:
            remembered(watched.last, store)


def _follow(
    watched: Watch, tell: Callable[[list[News]], None], pause: float, patience: float | None, quiet: bool
) -> None:
    """Look again and again until a signal, or until nothing was written for `patience` seconds."""
    import signal
    import threading

    from triage.cli import progress

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with progress.status(quiet) as say:
        while not stop.wait(pause):
            tell(watched.step())
            say(_status(watched))
            if patience is not None and watched.idle >= patience:
                break
    tell(watched.end())


def _status(watched: Watch) -> str:
    files = watched.follower.files.values()
    size = sum(file.place for file in files) / 1e6
    usual = watched.pace.usual
    step = f", step {watched.pace.front} at {usual:.1f} s each" if usual is not None else ""
    return f"watching {len(files):,} files, {size:,.0f} MB{step}"
