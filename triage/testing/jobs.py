"""A builder of job directories, for tests of triage and of what is built on it.

    job = JobBuilder(tmp_path, layout="tee", world_size=4)
    job.steps(5)
    job.rank(3).traceback("ValueError: no tokens", [("train.py", 30, "main")])
    job.elastic_table({3: 1})
    diagnosis = triage.ingest(job.write())

Layouts, each as `torchrun` or a shell leaves it behind:

- `tee`: one console.log, `[default3]:` before each line of a rank (`torchrun --tee 3`);
- `redirects`: launcher.log and logs/none_run/attempt_0/3/{stdout,stderr}.log (`torchrun --redirects 3 --log-dir logs`);
- `perrank`: out/rank3.log, no launcher (a loop in a shell);
- `plain`: one job.log without prefixes, all output run together.
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
    """The files of one job on one host, written by `write`. Each output of a rank or of the launcher moves the clock by
    a second.

    `directory` is made by `write`. `tagged`: whether c10d's excepthook puts `[rank3]: ` before tracebacks, as torch
    does since 2.2.
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
        """Lines of the launcher (or of nobody), as given."""
        return self._append(_CONSOLE[self.layout], "", lines)

    def rank(self, rank: int) -> RankWriter:
        """What writes as this rank."""
        return RankWriter(self, rank)

    def steps(self, count: int, *, first: int = 1, ranks: Sequence[int] | None = None) -> Self:
        """Every rank (or each of `ranks`) reports `count` steps of training."""
        for number in range(first, first + count):
            for rank in range(self.world_size) if ranks is None else ranks:
                self.rank(rank).step(number)
        return self

    def finish(self) -> Self:
        """Every rank says that it is done."""
        for rank in range(self.world_size):
            self.rank(rank).log("training finished after 12.0 s, 0 errors")
        return self

    def restart(self) -> Self:
        """The agent starts all ranks again: what follows is another attempt."""
        self.attempt += 1
        left = f"{3 - self.attempt}/3 attempts left; will restart worker group"
        return self.console(
            f"{self._glog('I')} torch/distributed/elastic/agent/server/api.py:952] [default] Worker group FAILED. {left}"
        )

    def elastic_table(self, exits: Mapping[int, int], *, error_files: Mapping[int, str] = {}) -> Self:
        """torchelastic's last words: rank to exit code (negative: the signal), the first observed failure first."""
        entries = [
            self._entry(number, rank, code, error_files.get(rank, "<N/A>"))
            for number, (rank, code) in enumerate(exits.items())
        ]
        first, *others = entries
        return self.console(
            *(f"{self._glog('E')} torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: {code}) local_rank: {rank} (pid: {1000 + rank}) of binary: /usr/bin/python3" for rank, code in [*exits.items()][:1]),
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
        """Write the files and give the directory."""
        for name, lines in self._files.items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return self.directory

    def stamp(self, form: str = "%Y-%m-%d %H:%M:%S") -> str:
        """The clock, in UTC."""
        return time.strftime(form, time.gmtime(self.clock))

    def _entry(self, number: int, rank: int, code: int, error_file: str) -> list[str]:
        name = f" ({_SIGNALS[-code]})" if -code in _SIGNALS else ""
        said = (
            f"Signal {-code}{name} received by PID {1000 + rank}"
            if code < 0
            else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
        )
        return [
            f"[{number}]:",
            f"  time      : {self.stamp('%Y-%m-%d_%H:%M:%S')}",
            f"  host      : {self.host}",
            f"  rank      : {rank} (local_rank: {rank})",
            f"  exitcode  : {code} (pid: {1000 + rank}){' ' + name if name else ''}",
            f"  error_file: {error_file}",
            f"  traceback : {said}",
        ]  # fmt: skip

    def _glog(self, level: str) -> str:
        return f"{level}{self.stamp('%m%d %H:%M:%S')}.000000 900"

    def _append(self, name: str, prefix: str, lines: Sequence[str]) -> Self:
        self._files.setdefault(name, []).extend(prefix + line for line in lines)
        self.clock += 1
        return self


class RankWriter:
    """Writes as one rank; every method gives the writer back."""

    def __init__(self, job: JobBuilder, rank: int) -> None:
        self._job = job
        self._rank = rank

    def line(self, *lines: str, stream: Literal["stdout", "stderr"] = "stderr") -> Self:
        """Lines as given, with no more than the layout's prefix; a text of several lines is parted."""
        parted = [part for line in lines for part in line.split("\n")]
        name, prefix = _CONSOLE[self._job.layout], ""
        if self._job.layout == "tee":
            prefix = f"[default{self._rank}]:"
        elif self._job.layout == "perrank":
            name = f"out/rank{self._rank}.log"
        elif self._job.layout == "redirects":
            name = f"logs/none_run/attempt_{self._job.attempt}/{self._rank}/{stream}.log"
        self._job._append(name, prefix, parted)
        return self

    def log(self, message: str) -> Self:
        """A record of the program's logger, with a stamp; it names the rank where the layout does not."""
        rank = f"[rank {self._rank}] "
        return self.line(f"{self._job.stamp()},000 {rank}INFO trainer: {message}", stream="stdout")

    def step(self, number: int) -> Self:
        """A step of training."""
        return self.log(f"step {number} loss {5 / (number + 1):.4f} tokens/s 4096")

    def traceback(
        self, error: str, frames: Sequence[Frame] = (("/workspace/train.py", 30, "main"),), *, headed: str = ""
    ) -> Self:
        """An uncaught exception, `error` like `ValueError: why` (of any number of lines); `headed` stands on a line
        before it.
        """
        tag = f"[rank{self._rank}]: " if self._job.tagged else ""
        lines = [*([headed] if headed else []), "Traceback (most recent call last):"]
        for file, number, function in frames:
            lines += [f'  File "{file}", line {number}, in {function}', f"    {function}_body()"]
        return self.line(*(tag + line for line in [*lines, *error.split("\n")]))


__all__ = ["Frame", "JobBuilder", "Layout", "RankWriter"]
