"""Build job directories, for tests of triage and of programs that use it.

    job = JobBuilder(tmp_path, layout="tee", world_size=4)
    job.steps(5)
    job.rank(3).traceback("ValueError: no tokens", [("train.py", 30, "main")])
    job.elastic_table({3: 1})
    diagnosis = triage.ingest(job.write())

Layouts, as `torchrun` or a shell leaves them behind:

- `tee`: one console.log, `[default3]:` before each line of a rank (`torchrun --tee 3`);
- `redirects`: launcher.log and logs/none_run/attempt_0/3/{stdout,stderr}.log (`torchrun --redirects 3 --log-dir logs`);
- `perrank`: out/rank3.log, no launcher (a loop in a shell);
- `plain`: one job.log without prefixes, all output in one file.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

Layout = Literal["tee", "redirects", "perrank", "plain"]
Frame = tuple[str, int, str]
"""File, line and function of a frame, outermost first."""

_CONSOLE = {"tee": "console.log", "redirects": "launcher.log", "perrank": "launcher.log", "plain": "job.log"}
_SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
_START = 1795228200.0  # 2026-11-21 02:30:00 UTC


class JobBuilder:
    """Builds the files of one job on one host. Each output of a rank or the launcher moves the clock by a second.

    `write` creates `directory`. `tagged`: tracebacks have the prefix `[rank3]: ` of c10d's excepthook, as since torch
    2.2.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        layout: Layout = "tee",
        world_size: int = 4,
        host: str = "node1",
        tagged: bool = True,
    ) -> None:
        self.directory = Path(directory)
        self.layout = layout
        self.world_size = world_size
        self.host = host
        self.tagged = tagged
        self.clock = _START
        self.attempt = 0
        self._files: dict[str, list[str]] = {}

    def console(self, *lines: str) -> Self:
        """Write unchanged lines of the launcher (or of an unknown writer)."""
        return self._append(_CONSOLE[self.layout], "", lines)

    def rank(self, rank: int) -> RankWriter:
        """Return a writer for this rank."""
        return RankWriter(self, rank)

    def steps(self, count: int, *, first: int = 1, ranks: Sequence[int] | None = None) -> Self:
        """Write `count` training steps of every rank, or of each of `ranks`."""
        for number in range(first, first + count):
            for rank in range(self.world_size) if ranks is None else ranks:
                self.rank(rank).step(number)
        return self

    def finish(self) -> Self:
        """Write the last line of every rank."""
        for rank in range(self.world_size):
            self.rank(rank).log("training finished after 12.0 s, 0 errors")
        return self

    def restart(self) -> Self:
        """Restart all ranks by the agent: what follows is another attempt."""
        self.attempt += 1
        left = f"{3 - self.attempt}/3 attempts left; will restart worker group"
        where = f"{self._glog('I')} torch/distributed/elastic/agent/server/api.py:952]"
        return self.console(f"{where} [default] Worker group FAILED. {left}")

    def elastic_table(self, exits: Mapping[int, int], *, error_files: Mapping[int, str] = {}) -> Self:
        """Write the final table of torchelastic: exit codes by rank (negative: signals), the first failure first."""
        entries = [
            self._entry(number, rank, code, error_files.get(rank, "<N/A>"))
            for number, (rank, code) in enumerate(exits.items())
        ]
        first, *others = entries
        return self.console(
            *(self._failed_line(rank, code) for rank, code in [*exits.items()][:1]),
            "Traceback (most recent call last):",
            '  File "/opt/venv/bin/torchrun", line 8, in <module>',
            "    sys.exit(main())",
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
            "=" * 60,
            "train.py FAILED",
            "-" * 60,
            "Failures:",
            *([line for entry in others for line in entry] or ["  <NO_OTHER_FAILURES>"]),
            "-" * 60,
            "Root Cause (first observed failure):",
            *first,
            "=" * 60,
        )  # fmt: skip

    def write(self) -> Path:
        """Write the files and return the directory."""
        for name, lines in self._files.items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return self.directory

    def timestamp(self, form: str = "%Y-%m-%d %H:%M:%S") -> str:
        """Return the time of the clock, in UTC."""
        return time.strftime(form, time.gmtime(self.clock))

    def _entry(self, number: int, rank: int, code: int, error_file: str) -> list[str]:
        name = f" ({_SIGNALS[-code]})" if -code in _SIGNALS else ""
        traceback = (
            f"Signal {-code}{name} received by PID {1000 + rank}"
            if code < 0
            else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
        )
        return [
            f"[{number}]:",
            f"  time      : {self.timestamp('%Y-%m-%d_%H:%M:%S')}",
            f"  host      : {self.host}",
            f"  rank      : {rank} (local_rank: {rank})",
            f"  exitcode  : {code} (pid: {1000 + rank}){' ' + name if name else ''}",
            f"  error_file: {error_file}",
            f"  traceback : {traceback}",
        ]  # fmt: skip

    def _failed_line(self, rank: int, code: int) -> str:
        where = f"{self._glog('E')} torch/distributed/elastic/multiprocessing/api.py:1002]"
        process = f"local_rank: {rank} (pid: {1000 + rank}) of binary: /usr/bin/python3"
        return f"{where} failed (exitcode: {code}) {process}"

    def _glog(self, level: str) -> str:
        return f"{level}{self.timestamp('%m%d %H:%M:%S')}.000000 900"

    def _append(self, name: str, prefix: str, lines: Sequence[str]) -> Self:
        self._files.setdefault(name, []).extend(prefix + line for line in lines)
        self.clock += 1
        return self


class RankWriter:
    """Writes as one rank; every method returns the writer."""

    def __init__(self, job: JobBuilder, rank: int) -> None:
        self._job = job
        self._rank = rank

    def line(self, *lines: str, stream: Literal["stdout", "stderr"] = "stderr") -> Self:
        """Write lines with only the prefix of the layout; a text of several lines is split."""
        separate = [part for line in lines for part in line.split("\n")]
        name, prefix = _CONSOLE[self._job.layout], ""
        if self._job.layout == "tee":
            prefix = f"[default{self._rank}]:"
        elif self._job.layout == "perrank":
            name = f"out/rank{self._rank}.log"
        elif self._job.layout == "redirects":
            name = f"logs/none_run/attempt_{self._job.attempt}/{self._rank}/{stream}.log"
        self._job._append(name, prefix, separate)
        return self

    def log(self, message: str) -> Self:
        """Write a record of the program's logger, with a timestamp and the rank."""
        rank = f"[rank {self._rank}] "
        return self.line(f"{self._job.timestamp()},000 {rank}INFO trainer: {message}", stream="stdout")

    def step(self, number: int) -> Self:
        """Write a training step."""
        return self.log(f"step {number} loss {5 / (number + 1):.4f} tokens/s 4096")

    def traceback(
        self, error: str, frames: Sequence[Frame] = (("/workspace/train.py", 30, "main"),), *, heading: str = ""
    ) -> Self:
        """Write an uncaught exception; `error` is like `ValueError: why`, also with several lines.

        `heading` is a line before the traceback.
        """
        tag = f"[rank{self._rank}]: " if self._job.tagged else ""
        lines = [*([heading] if heading else []), "Traceback (most recent call last):"]
        for file, number, function in frames:
            lines += [f'  File "{file}", line {number}, in {function}', f"    {function}_body()"]
        return self.line(*(tag + line for line in [*lines, *error.split("\n")]))


__all__ = ["Frame", "JobBuilder", "Layout", "RankWriter"]
