"""`triage watch`: follow a running job and report failures when they occur."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triage.base.errors import InputError
from triage.cli import options, progress, streams

if TYPE_CHECKING:
    import threading

    from triage.base.options import Options
    from triage.cli.notify import WatchNotifier
    from triage.model.watch import Episode, WatchEvent
    from triage.watch.follow import Follower
    from triage.watch.hook import Hook
    from triage.watch.loop import Watch

Exec = Annotated[
    str | None,
    typer.Option(
        "--exec", metavar="CMD", help="Run this for every event, with its JSON on standard input.", show_default=False
    ),
]
Stall = Annotated[float, typer.Option("--stall", min=2, metavar="N", help="No progress for N usual steps is a stall.")]
StallLeast = Annotated[
    str, typer.Option("--stall-least", metavar="TIME", help="Minimum time of a stall, because of checkpoints.")
]
Idle = Annotated[
    str, typer.Option("--idle", metavar="TIME", help="No new lines for this time: report how the job ended.")
]
StopAfter = Annotated[
    str | None,
    typer.Option("--stop-after", metavar="TIME", help="Exit after this time without new lines.", show_default=False),
]
StateFile = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="FILE",
        help="File that remembers what was reported. Default: in the user's state directory.",
        show_default=False,
    ),
]
NoStore = Annotated[bool, typer.Option("--no-store", help="Do not store the diagnosis when the job is over.")]

_FIRST_RUN = """\
Failures, silent ranks and stalls of the job appear here; Ctrl-C ends the watch, not the job.
`--exec CMD` runs a command for each, `--notify` posts to the routes of the settings."""


def watch(
    paths: options.Paths,
    format: options.PlainFormat = "text",  # noqa: A002
    command: Exec = None,
    stall: Stall = 30.0,
    stall_least: StallLeast = "3m",
    idle: Idle = "15m",
    poll: Annotated[str, typer.Option("--poll", metavar="TIME", help="How often to look for new lines.")] = "0.25s",
    stop_after: StopAfter = None,
    state: StateFile = None,
    no_state: Annotated[bool, typer.Option("--no-state", help="Remember nothing for a restart.")] = False,
    catalog: options.Catalogs = None,
    exact: options.Exact = False,
    store: options.StoreFile = None,
    no_store: NoStore = False,
    notify: options.Notify = False,
    label: options.Labels = None,
    quiet: options.Quiet = False,
) -> None:
    """Follow the logs of a running job; report failures, silent ranks and stalls.

    Reads the existing lines, then new ones: new files, rotated files, restarts. A failure is reported within two
    seconds and revised at most twice. Problems without an error are reported too: ranks that stop while others
    continue, steps that become slow, no progress. When no file grows any more and nothing shows that the job finished,
    the last lines are diagnosed, and an unknown end is reported once.

    \b
    Examples:
      triage watch job_logs/
      triage watch job_logs/ --exec 'notify-the-team --stdin'
      triage watch /shared/logs/run-42 --format json --stop-after 2h
      triage watch job.log --stall 100 --stall-least 20m

    Exit status: 0 ended by Ctrl-C, SIGTERM or --stop-after; 2 unusable input or options.
    """
    from triage.watch import state_file
    from triage.watch.follow import Follower
    from triage.watch.hook import Hook
    from triage.watch.loop import Watch
    from triage.watch.pace import Limits, PaceMonitor

    interval = options.parse_duration(poll, "--poll") or 0.25
    max_idle = options.parse_duration(stop_after, "--stop-after")
    idle_after = min(options.parse_duration(idle, "--idle") or 0.0, max_idle or math.inf)
    limits = Limits(stall, options.parse_duration(stall_least, "--stall-least") or 0.0)
    follower = Follower(_check_paths(paths, quiet), _options(catalog, exact, label))
    watched = Watch(follower, PaceMonitor(limits, poll=2 * interval), idle_after=idle_after)
    state_path = None if no_state else state or state_file.default_path(paths)
    _explain_first_run(state_path, quiet)
    _restore(watched, follower, state_path)
    reporter = _Reporter(watched, format, state_path, Hook(command, _warn) if command else None)
    with contextlib.ExitStack() as stack:
        stop = stack.enter_context(options.stop_on_signal())
        if notify:
            from triage.cli.notify import watch_notifier

            reporter.notifier = stack.enter_context(watch_notifier(paths, store, no_store))
        _follow(watched, reporter, stop, interval, max_idle, quiet)
        reporter.finish(store, no_store)


def _options(catalog: Sequence[Path] | None, exact: bool, labels: Sequence[str] | None) -> Options:
    from triage.base.options import Options
    from triage.evidence.job_facts import parse_labels

    return Options(catalogs=tuple(catalog or ()), reuse=not exact, labels=parse_labels(labels or ()))


def _restore(watched: Watch, follower: Follower, state_path: Path | None) -> None:
    """Go on where the last watch of these paths stopped."""
    from triage.watch import state_file

    if state_path is not None:
        follower.find_files(watched.clock())
        watched.restore(state_file.load(state_path, follower.files))


def _explain_first_run(state_path: Path | None, quiet: bool) -> None:
    if (state_path is None or not state_path.exists()) and streams.shows_progress(quiet):
        typer.echo(_FIRST_RUN, err=True)


def _check_paths(paths: Sequence[str], quiet: bool) -> Sequence[str]:
    """Return the paths; say which do not exist yet. Raises InputError where the directory does not exist either."""
    for path in paths:
        if os.path.lexists(path):
            continue
        directory = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(directory):
            raise InputError(
                f"{path} does not exist, nor does the directory {directory}",
                hint="check the path; `triage watch` waits for logs in a directory that is there",
            )
        if not quiet:
            _warn(f"{path} does not exist yet: waiting for it")
    return paths


class _Reporter:
    """Prints events, passes them to the hook and the notifier, and saves the state of the watch."""

    def __init__(
        self,
        watched: Watch,
        format: options.PlainFormat,  # noqa: A002
        state_path: Path | None,
        hook: Hook | None,
    ) -> None:
        self.notifier: WatchNotifier | None = None
        self._watched = watched
        self._format = format
        self._state_path = state_path
        self._hook = hook
        self._episode: Episode | None = None

    def report(self, events: list[WatchEvent]) -> None:
        """Report new events and a changed pace episode."""
        if events:  # a watch that is killed while it reports will repeat the report, as the same message
            self._save_state(event.attempt for event in events if event.diagnosis is not None)
        for event in events:
            self._report_event(event)
        episode = self._watched.episode
        if self.notifier is not None and episode is not None and episode is not self._episode:
            self.notifier.notify_pace(episode)
        self._episode = episode
        if events:
            self._save_state()

    def finish(self, store: str | None, no_store: bool) -> None:
        """Wait for the hook and store the diagnosis of the job."""
        from triage.cli.ingest_job import store_and_compare
        from triage.render import environment

        if self._hook is not None:
            self._hook.wait()
        diagnosis, audit, announced = self._watched.last, self._watched.last_audit, self._watched.policy.announced
        if diagnosis is None or audit is None or no_store:
            return
        settings = environment.as_document(audit)
        if self.notifier is not None and announced:
            attempt = max(announced)
            self.notifier.store(diagnosis, settings, attempt, announced[attempt].first_at)
        else:
            store_and_compare(diagnosis, store, settings)

    def _report_event(self, event: WatchEvent) -> None:
        from triage.render import watch as rendering

        as_json = self._format == "json"
        typer.echo(rendering.as_json(event) if as_json else rendering.as_text(event), nl=False)
        if self._hook is not None:
            self._hook(rendering.as_json(event))
        if self.notifier is not None and event.diagnosis is not None:
            first_at = self._watched.policy.announced[event.attempt].first_at
            self.notifier.notify_failure(event.diagnosis, event.attempt, first_at)

    def _save_state(self, unconfirmed: Iterable[int] = ()) -> None:
        from triage.watch import state_file

        try:
            if self._state_path is not None:
                state_file.save(self._state_path, self._watched.follower.files, self._watched.state(unconfirmed))
        except InputError as error:  # the reports matter more than the state
            _warn(f"{error}; {error.hint}")
            self._state_path = None


def _warn(message: str) -> None:
    typer.echo(f"warning: {message}", err=True)


def _follow(
    watched: Watch,
    reporter: _Reporter,
    stop: threading.Event,
    interval: float,
    max_idle: float | None,
    quiet: bool,
) -> None:
    """Look for new lines until a signal comes, or until there were none for `max_idle` seconds."""
    with progress.status_line(quiet) as show:
        while not stop.wait(interval):
            reporter.report(watched.step())
            show(_format_status(watched))
            if max_idle is not None and watched.idle >= max_idle:
                break
    reporter.report(watched.end())


def _format_status(watched: Watch) -> str:
    """Return how many files are followed, how much of them is read yet, and the pace of the job."""
    from triage.render.phrases import format_bytes, format_count

    files = watched.follower.files.values()
    if not files:
        return "waiting for text files"
    done, size = (sum(getattr(file, name) for file in files) for name in ("position", "size"))
    count = format_count(len(files), "file")
    if any(file.is_behind for file in files):
        return f"reading {count}: {format_bytes(done)} of {format_bytes(size)}, {min(done / max(size, 1), 1.0):.0%}"
    usual = watched.pace.usual
    step = f", step {watched.pace.front}, {usual:.1f} s each" if usual is not None else ""
    return f"watching {count}, {format_bytes(done)}{step}"
