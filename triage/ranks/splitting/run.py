"""`triage split`: sources are sampled, split in stretches by one or more processes, and their parts put together."""

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
from triage.ranks import conflicts, maps
from triage.ranks import layouts as of_source
from triage.ranks.files import origin_of
from triage.ranks.identity import JobMap
from triage.ranks.splitting import layout as layouts
from triage.ranks.splitting import merge, names, work
from triage.ranks.splitting.layout import Layout
from triage.ranks.splitting.opened import Kind
from triage.ranks.splitting.route import NOBODY, Key
from triage.ranks.splitting.sample import Sample, sampled, sampled_of
from triage.ranks.splitting.stretch import Tally
from triage.ranks.splitting.work import Job, Task
from triage.sources.interface import in_place

Report = Callable[[int, int], None]
"""Takes the bytes done and the bytes in all."""
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
_JOINING = 2  # files at once: the system copies them
_WORTH_PROCESSES = 64 << 20
_SAMPLED_LINES, _SAMPLED_OF_ONE = 60_000, 4_000


@dataclass(frozen=True, slots=True)
class Options:
    """`ranks`: only these are written. `keep_prefix`: nothing comes off the lines. `force`: an earlier split there is
    replaced.
    """

    ranks: frozenset[int] | None = None
    keep_prefix: bool = False
    force: bool = False
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """`lines` of the input are in `files`, but for `left_out`; `added` pieces come from lines that held the words of
    two writers.
    """

    files: tuple[names.Written, ...]
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
    progress: Report | None = None,
    aside: Callable[[str], bool] = lambda name: False,
) -> Result:
    """Write what every rank wrote, out of everything under `paths`, to a file each in `output`.

    `aside` says by its name what is no output of a job (programs, settings). Raises InputError when nothing can be read
    and OptionError
    when `output` cannot be used.
    """
    started = time.monotonic()
    warnings: list[Warning] = []
    found = sources.discover(paths)
    files = [file for file in found.files if not _lies_in(file.path, output)]
    skipped = sorted(file.name for file in files if aside(file.name))
    if skipped:
        warnings.append(
            Warning(
                "no-output", None, f"left out, because programs, settings and documents are no output: {_some(skipped)}"
            )
        )
    names.prepare(output, options.force)
    parts = Path(tempfile.mkdtemp(prefix=".parts-", dir=output))
    try:
        kept = [file for file in files if not aside(file.name)]
        splitting = _Splitting(options, parts, _advance(progress, sum(file.size for file in kept)), warnings)
        splitting.read(kept)
        result = splitting.finish(output, [*found.warnings])
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        hint = "give a directory with room for all lines, or fewer ranks with --rank"
        raise OptionError(f"cannot write to {output}: {error.strerror}", hint=hint) from None
    finally:
        shutil.rmtree(parts, ignore_errors=True)
    return Result(**result, seconds=round(time.monotonic() - started, 3))  # type: ignore[arg-type]


class _Splitting:
    def __init__(self, options: Options, parts: Path, advance: Callable[[int], None], warnings: list[Warning]) -> None:
        self.options = options
        self.parts = parts
        self.advance = advance
        self.warnings = warnings
        self.job = JobMap()
        self.tallies: list[tuple[str, int, Tally]] = []
        self.year = time.gmtime().tm_year

    def read(self, files: Iterable[sources.File]) -> None:
        """Plain files first, by all workers; then what must be unpacked, one after the other."""
        given = list(files)
        plain = [(file, source) for file in given if file.kind == "text" and (source := in_place(file)) is not None]
        most = min(_SAMPLED_OF_ONE, max(100, _SAMPLED_LINES // max(1, len(plain))))
        seen: dict[str, tuple[Kind, Layout]] = {}
        for _, source in plain:
            sample = sampled(source.path or "", source.size or 0, most)
            seen[source.name] = sample.kind, self._learn(source.name, sample)
        self.job.settle()
        tasks = [task for _, source in plain for task in self._tasks(source, *seen[source.name])]
        workers = max(1, self.options.workers or os.cpu_count() or 1)
        for task, tally in work.run(
            tasks, self._job(), workers if sum(task.size for task in tasks) >= _WORTH_PROCESSES else 1, self.advance
        ):
            self._take(task.source, tally)
        inside = {file.name for file, _ in plain}
        for file in given:
            if file.name not in inside:
                self._unpack(file)

    def _learn(self, name: str, sample: Sample) -> Layout:
        layout, told = layouts.learn(sample.lines, sample.longest)
        self.job.learn(name, Origin())
        maps.take_head(self.job, name, sample.first, of_source.Layout(layout.table))
        for found in [*told, *(layouts.layers(head, layout.table) for head in sample.tagged)]:
            self.job.learn(name, layouts.origin_of_layers(found))
        return layout

    def _tasks(self, source: Source, kind: Kind, layout: Layout) -> list[Task]:
        size = source.size or 0
        whole = self._whole(source.name, layout)
        count = max(1, self.options.workers or os.cpu_count() or 1) if size >= _WORTH_PROCESSES and whole is None else 1
        if kind:
            return [Task(source.name, source.path or "", 0, size, layout, whole, kind)]
        return work.stretches(source.name, source.path or "", size, count, layout, whole)

    def _whole(self, name: str, layout: Layout) -> Key | None:
        """The writer whose file this is by its name, unless many write there."""
        named = self.job.sources[name]
        if layout.writers > 1 or self.job.of_several(name) or (named.rank is None and named.local_rank is None):
            return None
        rank = self.job.complete(name, named).rank
        return Key(rank=rank) if rank is not None else Key(local_rank=named.local_rank, host=named.host)

    def _unpack(self, file: sources.File) -> None:
        for source, stream in sources.streams(file, sources.Limits(), self.warnings.append):
            if source.kind not in ("text", "empty"):
                self.warnings.append(
                    Warning("no-text", source.name, f"left out, because it is no text but {source.kind}")
                )
            if source.kind != "text" or stream is None:
                continue
            sample = sampled_of(stream)
            layout = self._learn(source.name, sample)
            self.job.settle()
            task = Task(source.name, "", 0, None, layout, self._whole(source.name, layout), sample.kind)
            tally = work.one(task, stream, self._job(), len(self.tallies), lambda count: None)
            self._take(source.name, tally)
        self.advance(file.size)

    def _job(self) -> Job:
        return Job(self.parts, self.job, self.options.keep_prefix, self.options.ranks)

    def _take(self, source: str, tally: Tally) -> None:
        for origin in tally.learned:
            self.job.learn(source, origin)
        self.tallies.append((source, len(self.tallies), tally))

    def finish(self, output: Path, warnings: list[Warning]) -> dict[str, object]:
        """Name the parts, put them together, and account for every line."""
        streams: dict[str, dict[tuple[str, Key], list[Path]]] = defaultdict(lambda: defaultdict(list))
        counts: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        ranks: dict[str, int | None] = {}
        left_out = sum(tally.left_out for _, _, tally in self.tallies)
        told = {(source, key.rank) for source, _, tally in self.tallies for key in tally.keys if key.rank is not None}
        for source, _, tally in self.tallies:
            for key, path, size, lines in tally.parts:
                rank, name = names.of(key, source, self.job, told)
                if self.options.ranks is not None and rank not in self.options.ranks:
                    left_out += lines
                    continue
                ranks[name] = rank
                if size:
                    streams[name][(source, key)].append(Path(path))
                counts[name] = (counts[name][0] + lines, counts[name][1] + size)
        with concurrent.futures.ThreadPoolExecutor(_JOINING) as pool:
            merged = dict(
                zip(streams, pool.map(lambda name: self._join(output / name, streams[name]), streams), strict=True)
            )
        unmerged = [name for name in sorted(merged, key=names.order) if not merged[name]]
        self._remark(unmerged, left_out)
        self._contradictions()
        files = tuple(
            names.Written(name, ranks[name], *counts[name], tuple(sorted({source for source, _ in streams[name]})))
            for name in sorted(counts, key=names.order)
        )
        names.write_index(output, files)
        return {
            "files": files,
            "warnings": tuple(dict.fromkeys([*warnings, *self.warnings])),
            "lines": sum(tally.lines for _, _, tally in self.tallies),
            "left_out": left_out,
            "added": sum(tally.glued - tally.joined + tally.opened for _, _, tally in self.tallies),
            "bytes": sum(tally.bytes for _, _, tally in self.tallies),
        }

    def _join(self, target: Path, own: dict[tuple[str, Key], list[Path]]) -> bool:
        """Put one file together. False where no clock orders its sources."""
        told = [
            merge.Stream(source, origin_of(source).attempt, place, tuple(paths))
            for place, ((source, _), paths) in enumerate(own.items())
        ]
        return merge.join(told, target, self.year)

    def _remark(self, unmerged: Sequence[str], left_out: int) -> None:
        glued, joined, cut = (
            sum(getattr(tally, what) for _, _, tally in self.tallies) for what in ("glued", "joined", "cut")
        )
        if glued:
            self.warnings.append(
                Warning(
                    "glued",
                    None,
                    f"{glued:,} lines held the words of two writers and were cut where the second's prefix stands",
                )
            )
        if joined:
            self.warnings.append(
                Warning(
                    "partial-lines",
                    None,
                    f"{joined:,} pieces of lines that a container runtime or a launcher had cut were joined",
                )
            )
        opened = sum(tally.opened for _, _, tally in self.tallies if tally.opened < 0)
        if opened:
            self.warnings.append(
                Warning(
                    "record-fields",
                    None,
                    f"{-opened:,} lines of journal exports hold fields of records, not what was written",
                )
            )
        if cut:
            self.warnings.append(
                Warning("long-lines", None, f"{cut:,} lines are so long that only their beginning was looked at")
            )
        if unmerged:
            message = f"no clock orders the sources of {_some(unmerged)}: their lines stand one source after the other"
            self.warnings.append(Warning("no-clock", None, message))
        if left_out:
            self.warnings.append(
                Warning("left-out", None, f"{left_out:,} lines are of other ranks than --rank names, or of nobody")
            )

    def _contradictions(self) -> None:
        """Who is called by two names; that ranks are missing is no matter here."""
        self.warnings += [remark for remark in conflicts.remarks(self.job) if remark.code == "identity-conflict"]
        differing = sorted({found for _, _, tally in self.tallies for found in tally.differing})
        if differing:
            told = _some([f"`{prefix}` of rank {rank} says rank {said}" for prefix, rank, said in differing])
            message = f"behind some prefixes lines call themselves another rank and went to its file: {told}"
            self.warnings.append(Warning("identity-conflict", None, message))


def _advance(progress: Report | None, total: int) -> Callable[[int], None]:
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, total)

    return advance


def _lies_in(path: str, directory: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(directory))


def _some(found: Sequence[str], most: int = 5) -> str:
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")


__all__ = ["NOBODY", "OptionError", "Options", "Result", "split"]
