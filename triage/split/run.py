"""Split the logs of a job: sample each source, split it in segments with worker processes, merge the parts per rank."""

from __future__ import annotations

import concurrent.futures
import errno
import os
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from triage import sources
from triage.base.errors import OptionError
from triage.model.evidence import Origin, Source, Warning
from triage.ranks import conflicts, layouts
from triage.ranks.file_names import find_root, parse_file_name
from triage.ranks.identity import JobMap
from triage.records import identity_lines
from triage.sources.interface import source_in_place
from triage.split import launcher_layout, merge, output_files, worker_pool
from triage.split.launcher_layout import LauncherLayout
from triage.split.router import WriterKey
from triage.split.sample import Sample, sample_file, sample_stream
from triage.split.segment import Tally
from triage.split.unwrapped_stream import Format
from triage.split.worker_pool import Job, Task

Progress = Callable[[int, int], None]
"""Called with the bytes done and the total bytes."""
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
_MERGE_THREADS = 2  # the kernel copies the bytes
_WORTH_PROCESSES = 64 << 20
_SAMPLED_LINES, _SAMPLED_PER_SOURCE = 60_000, 4_000


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a split.

    `ranks`: write only these. `keep_prefix`: leave the prefixes on the lines. `force`: replace an earlier split.
    """

    ranks: frozenset[int] | None = None
    keep_prefix: bool = False
    force: bool = False
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What a split wrote.

    All `lines` of the input are in `files`, except `left_out`. `added` counts the lines that the split made of lines
    with two writers, less the pieces that it joined.
    """

    files: tuple[output_files.OutputFile, ...]
    warnings: tuple[Warning, ...]
    lines: int
    left_out: int
    added: int
    bytes: int
    seconds: float


def split(
    paths: Sequence[str],
    output: Path,
    options: Options = Options(),
    progress: Progress | None = None,
    is_not_output: Callable[[str], bool] = lambda name: False,
) -> Result:
    """Split everything under `paths` into one file per rank in `output`.

    `is_not_output` tells by name which files no job wrote (programs, settings). Raises InputError when nothing can be
    read, and OptionError when `output` cannot be used.
    """
    started = time.monotonic()
    warnings: list[Warning] = []
    discovered = sources.discover(paths)
    files = [file for file in discovered.files if not _is_inside(file.path, output)]
    skipped = sorted(file.name for file in files if is_not_output(file.name))
    if skipped:
        message = f"skipped: programs, settings and documents are not job output: {_first_of(skipped)}"
        warnings.append(Warning("no-output", None, message))
    output_files.prepare_directory(output, options.force)
    parts = Path(tempfile.mkdtemp(prefix=".parts-", dir=output))
    try:
        logs = [file for file in files if not is_not_output(file.name)]
        run = _SplitRun(options, parts, _progress_counter(progress, sum(file.size for file in logs)), warnings)
        run.job.root = find_root(paths, {file.name for file in files})
        run.read(logs)
        return run.finish(output, discovered.warnings, started)
    except OSError as error:
        if error.errno not in _DISK_FULL:
            raise
        raise OptionError(
            f"cannot write to {output}: {error.strerror}",
            hint="use a directory with enough free space, or select fewer ranks with --rank",
        ) from None
    finally:
        shutil.rmtree(parts, ignore_errors=True)


class _SplitRun:
    """One run of `split`: reads the sources into parts, then merges the parts into files."""

    def __init__(self, options: Options, parts: Path, advance: Callable[[int], None], warnings: list[Warning]) -> None:
        self.options = options
        self.parts = parts
        self.advance = advance
        self.warnings = warnings
        self.job = JobMap()
        self.tallies: list[tuple[str, Tally]] = []
        self.year = time.gmtime().tm_year

    def read(self, files: Iterable[sources.File]) -> None:
        """Split plain files first, with all workers; then packed ones, one after the other."""
        all_files = list(files)
        plain = [
            (file, source)
            for file in all_files
            if file.kind == "text" and (source := source_in_place(file)) is not None
        ]
        most = min(_SAMPLED_PER_SOURCE, max(100, _SAMPLED_LINES // max(1, len(plain))))
        sampled: dict[str, tuple[Format, LauncherLayout]] = {}
        for _, source in plain:
            sample = sample_file(source.path or "", source.size or 0, most)
            sampled[source.name] = sample.format, self._learn(source.name, sample)
        self.job.resolve()
        tasks = [task for _, source in plain for task in self._tasks(source, *sampled[source.name])]
        workers = self._workers() if sum(task.size for task in tasks) >= _WORTH_PROCESSES else 1
        for task, tally in worker_pool.run(tasks, self._job(), workers, self.advance):
            self._add(task.source, tally)
        plain_names = {file.name for file, _ in plain}
        for file in all_files:
            if file.name not in plain_names:
                self._split_packed(file)

    def _workers(self) -> int:
        return max(1, self.options.workers or os.cpu_count() or 1)

    def _learn(self, name: str, sample: Sample) -> LauncherLayout:
        """Detect the layout of a source, and learn which ranks its sampled lines name."""
        layout, sampled_layers = launcher_layout.detect_layout(sample.lines, sample.longest)
        self.job.learn(name, Origin())
        identity_lines.learn_from_head(self.job, name, sample.first, layouts.Layout(layout.table))
        tagged = [launcher_layout.parse_layers(head, layout.table) for head in sample.tagged]
        for layers in [*sampled_layers, *tagged]:
            self.job.learn(name, launcher_layout.origin_of_layers(layers))
        return layout

    def _tasks(self, source: Source, format: Format, layout: LauncherLayout) -> list[Task]:  # noqa: A002
        size = source.size or 0
        sole_writer = self._sole_writer(source.name, layout)
        if format:
            return [Task(source.name, source.path or "", 0, size, layout, sole_writer, format)]
        count = self._workers() if size >= _WORTH_PROCESSES and sole_writer is None else 1
        return worker_pool.cut_segments(source.name, source.path or "", size, count, layout, sole_writer)

    def _sole_writer(self, name: str, layout: LauncherLayout) -> WriterKey | None:
        """Return the rank that the file name states, unless several ranks write to the file."""
        stated = self.job.sources[name]
        if layout.writers > 1 or self.job.has_several_ranks(name) or (stated.rank, stated.local_rank) == (None, None):
            return None
        rank = self.job.complete(name, stated).rank
        return WriterKey(rank=rank) if rank is not None else WriterKey(local_rank=stated.local_rank, host=stated.host)

    def _split_packed(self, file: sources.File) -> None:
        """Split a compressed file, or every member of an archive."""
        for source, stream in sources.streams(file, sources.Limits(), self.warnings.append):
            if source.kind not in ("text", "empty"):
                self.warnings.append(Warning("no-text", source.name, f"skipped: not text but {source.kind}"))
            if source.kind != "text" or stream is None:
                continue
            sample = sample_stream(stream)
            layout = self._learn(source.name, sample)
            self.job.resolve()
            task = Task(source.name, "", 0, None, layout, self._sole_writer(source.name, layout), sample.format)
            self._add(
                source.name, worker_pool.split_stream(task, stream, self._job(), len(self.tallies), lambda count: None)
            )
        self.advance(file.size)

    def _job(self) -> Job:
        return Job(self.parts, self.job, self.options.keep_prefix, self.options.ranks)

    def _add(self, source: str, tally: Tally) -> None:
        for origin in tally.learned:
            self.job.learn(source, origin)
        self.tallies.append((source, tally))

    def finish(self, output: Path, warnings: Sequence[Warning], started: float) -> Result:
        """Assign each part to a rank's file, merge the parts, and account for every line."""
        streams: dict[str, dict[tuple[str, WriterKey], list[Path]]] = defaultdict(lambda: defaultdict(list))
        counts: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        ranks: dict[str, int | None] = {}
        left_out = sum(tally.left_out for _, tally in self.tallies)
        stated = {(source, key.rank) for source, tally in self.tallies for key in tally.keys if key.rank is not None}
        for source, tally in self.tallies:
            for key, path, size, lines in tally.parts:
                rank, name = output_files.assign_file(key, source, self.job, stated)
                if self.options.ranks is not None and rank not in self.options.ranks:
                    left_out += lines
                    continue
                ranks[name] = rank
                if size:
                    streams[name][(source, key)].append(Path(path))
                counts[name] = (counts[name][0] + lines, counts[name][1] + size)
        self._warn(self._merge_all(output, streams), left_out)
        files = tuple(
            output_files.OutputFile(
                name, ranks[name], *counts[name], tuple(sorted({source for source, _ in streams[name]}))
            )
            for name in sorted(counts, key=output_files.sort_key)
        )
        output_files.write_index(output, files)
        tallies = [tally for _, tally in self.tallies]
        return Result(
            files=files,
            warnings=tuple(dict.fromkeys([*warnings, *self.warnings])),
            lines=sum(tally.lines for tally in tallies),
            left_out=left_out,
            added=sum(tally.second_writers - tally.joined_pieces + tally.unwrapped for tally in tallies),
            bytes=sum(tally.bytes for tally in tallies),
            seconds=round(time.monotonic() - started, 3),
        )

    def _merge_all(self, output: Path, streams: dict[str, dict[tuple[str, WriterKey], list[Path]]]) -> list[str]:
        """Write every file. Return those whose sources could not be ordered by time."""

        def merge_file(name: str) -> bool:
            parts = [
                merge.Stream(source, parse_file_name(source).attempt, place, tuple(paths))
                for place, ((source, _), paths) in enumerate(streams[name].items())
            ]
            return merge.merge_streams(parts, output / name, self.year)

        with concurrent.futures.ThreadPoolExecutor(_MERGE_THREADS) as pool:
            is_merged = dict(zip(streams, pool.map(merge_file, streams), strict=True))
        return [name for name in sorted(is_merged, key=output_files.sort_key) if not is_merged[name]]

    def _warn(self, unmerged: Sequence[str], left_out: int) -> None:
        """Warn about changed and left out lines, sources without timestamps, and contradicting ranks."""
        tallies = [tally for _, tally in self.tallies]
        no_fields = -sum(tally.unwrapped for tally in tallies if tally.unwrapped < 0)
        counted = (
            ("glued", sum(tally.second_writers for tally in tallies), "with two writers: split at the second prefix"),
            ("partial-lines", sum(tally.joined_pieces for tally in tallies), "joined to the line that they continue"),
            ("record-fields", no_fields, "dropped: record fields of a journal export, not output"),
            ("long-lines", sum(tally.long_lines for tally in tallies), "too long: only the start was parsed"),
        )
        self.warnings += [Warning(code, None, _lines(count, what)) for code, count, what in counted if count]
        if unmerged:
            message = f"{_first_of(unmerged)}: no timestamps to merge by, so the sources follow one after the other"
            self.warnings.append(Warning("no-clock", None, message))
        if left_out:
            self.warnings.append(Warning("left-out", None, _lines(left_out, "left out: no rank in --rank wrote them")))
        # Missing ranks do not matter here.
        self.warnings += [item for item in conflicts.find_conflicts(self.job) if item.code == "identity-conflict"]
        differing = sorted({item for tally in tallies for item in tally.differing})
        if differing:
            pairs = [f"`{prefix}` of rank {rank} precedes lines of rank {inner}" for prefix, rank, inner in differing]
            message = f"prefix and line name different ranks; the line decides: {_first_of(pairs)}"
            self.warnings.append(Warning("identity-conflict", None, message))


def _progress_counter(progress: Progress | None, total: int) -> Callable[[int], None]:
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, total)

    return advance


def _is_inside(path: str, directory: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(directory))


def _lines(count: int, what: str) -> str:
    return f"{count:,} {'line' if count == 1 else 'lines'} {what}"


def _first_of(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
