"""The backtraces of tests/artifacts/backtraces, each in the log of a rank, are read as crashes."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from triage import ingest
from triage.base.options import Options
from triage.model.evidence import Evidence
from triage.pipeline.stages import read_job
from triage.stacks.parser import parse_stacks
from triage.stacks.signature import reduce_stacks

CORPUS = sorted((Path(__file__).parents[1] / "artifacts" / "backtraces").glob("*.txt"))
# In logs their sentence is the failure: a panic, an error and a message of the kernel, not a crash point.
BY_SENTENCE = {
    "rust-backtrace": "panicked at",
    "julia-stacktrace": "DomainError",
    "kernel-oops": "Oops: 0002",
    "gfortran": "received signal SIGSEGV",
    "script-lua": "attempt to index a nil value",
    "script-node": "Cannot read properties of undefined",
    "v8-check": "Fatal error in",
}
NO_FAILURE = ("perf-script",)  # the samples of a profile
# Behind a stamp alone each line of these is a record of its own: only their sentence is found.
UNREAD_BEHIND_A_STAMP = ("forrtl", "julia-signal", "macos-report", "xla-check")
IN_LOGS = [path.stem for path in CORPUS if path.stem not in (*BY_SENTENCE, *NO_FAILURE)]
PREFIXES = {
    "as it was printed": "",
    "a collector's stamp and a rank": "2026-11-21T10:00:05.123Z [rank{rank}]: ",
    "a stamp and torchrun's tee": "2026-11-21 10:00:05 [default{rank}]:",
    "a stamp alone": "2026-11-21 10:00:05 ",
}
INSIDE = ("gdb-rank-prefix", "c10-rank-prefix-and-colour")  # these say themselves which rank they are of


def with_prefix(path: Path, prefix: str, rank: int) -> list[str]:
    """Return the lines of a backtrace as they stand in the log of a rank."""
    lines = ["step 1 loss 2.0", *path.read_text("utf-8").rstrip().split("\n")]
    return [f"{prefix.format(rank=rank)}{line}\n" for line in lines]


def crashes(directory: Path) -> list[Evidence]:
    """Return the crashes and stacks in the job."""
    job = read_job([str(directory)], Options(), None)
    facts = (*job.extracted.facts, *job.result.facts)
    return [fact for fact in facts if fact.kind in ("crash", "terminate", "fatal-python", "stack")]


@pytest.fixture(scope="module", params=PREFIXES.values(), ids=PREFIXES.keys())
def facts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Evidence]]:
    """The facts of each sample, all read in one go: every one is the log of a rank, with a step before it."""
    directory = tmp_path_factory.mktemp("job")
    for rank, path in enumerate(CORPUS):
        (directory / f"rank{rank}.log").write_text("".join(with_prefix(path, request.param, rank)), "utf-8")
    by_sample: dict[str, list[Evidence]] = {path.stem: [] for path in CORPUS}
    for fact in crashes(directory):
        by_sample[CORPUS[int(Path(fact.source).stem.removeprefix("rank"))].stem].append(fact)
    return by_sample


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Evidence]]:
    """The same, two ranks in one file, a line of each in turn."""
    directory = tmp_path_factory.mktemp("job")
    by_sample: dict[str, list[Evidence]] = {path.stem: [] for path in CORPUS}
    both = [with_prefix(path, "[rank{rank}]: ", rank) for rank, path in enumerate(CORPUS)]
    for number in range(0, len(both), 2):
        lines = itertools.chain.from_iterable(itertools.zip_longest(*both[number : number + 2], fillvalue=""))
        (directory / f"job{number}.log").write_text("".join(lines), "utf-8")
    for fact in crashes(directory):
        if fact.origin.rank is not None:
            by_sample[CORPUS[fact.origin.rank].stem].append(fact)
    return by_sample


def has_crash_point(name: str, facts: dict[str, list[Evidence]]) -> bool:
    """Whether the crash point is the one that the text alone gives."""
    text = next(path for path in CORPUS if path.stem == name).read_text("utf-8")
    wanted = {crash.point for crash in map(reduce_stacks, parse_stacks(text)) if crash.key}
    return not wanted or bool(wanted & {fact.fields.get("crash_point", "") for fact in facts[name]} - {""})


@pytest.mark.parametrize("name", IN_LOGS)
def test_a_backtrace_in_a_log_is_found(
    name: str, facts: dict[str, list[Evidence]], request: pytest.FixtureRequest
) -> None:
    """The crash point is the one that the text alone gives, whatever prefix stands before every line."""
    if name in UNREAD_BEHIND_A_STAMP and "a stamp alone" in request.node.name:
        pytest.xfail("its lines are records of their own")
    assert has_crash_point(name, facts), facts[name]


@pytest.mark.parametrize("name", [name for name in IN_LOGS if name not in INSIDE])
def test_a_backtrace_between_the_lines_of_another_rank_is_found(name: str, mixed: dict[str, list[Evidence]]) -> None:
    """Two ranks die at once and their lines alternate: each has its own crash point."""
    assert has_crash_point(name, mixed), mixed[name]


JOURNAL = """\
Nov 04 10:00:00 node3 systemd-coredump[5150]: Process 5100 (python3) of user 1000 terminated abnormally with signal 11/SEGV, processing...
Nov 04 10:00:00 node3 systemd-coredump[5151]: Process 5101 (python3) of user 1000 terminated abnormally with signal 7/BUS, processing...
Nov 04 10:00:01 node3 systemd-coredump[5150]: [?] Process 5100 (python3) of user 1000 dumped core.
                                              \n"""  # noqa: E501
MODULES = "".join(
    f"                                              Module lib{n}.so from deb x-1.{n}.amd64\n" for n in range(80)
)
STACK = """\
                                              Stack trace of thread 5100:
                                              #0  0x00007fd21f0aa111 decode_png (libimage.so + 0x1f111)
                                              #1  0x00007fd21e029d90 __libc_start_call_main (libc.so.6 + 0x29d90)
"""


def test_a_crash_in_the_journal_is_that_of_its_process(tmp_path: Path) -> None:
    """The signal stands in other records, with modules and another process's record between; the pid is that of the
    process that died.
    """
    (tmp_path / "journal.log").write_text(JOURNAL + MODULES + STACK, "utf-8")
    crash = crashes(tmp_path)[0]
    assert (crash.fields["signal"], crash.fields["crash_kind"], crash.fields["frame"]) == (
        "SIGSEGV",
        "segv",
        "decode_png",
    )
    assert (crash.origin.host, crash.origin.pid) == ("node3", 5100)


@pytest.mark.parametrize(
    ("line", "signature"),
    [
        ("FatalError: A serious error (Segmentation fault) is detected by the operating system.", "crash.segfault"),
        ("FatalError: `Process abort signal` is detected by the operating system.", "crash.abort"),
    ],
)
def test_the_signal_behind_a_stack_is_the_crash(line: str, signature: str, tmp_path: Path) -> None:
    """PaddlePaddle states the signal behind the stack: it is known, and not an unknown last line."""
    stack = "C++ Traceback (most recent call last):\n------\n0   paddle::framework::SignalHandle(char const*, int)\n"
    (tmp_path / "workerlog.0").write_text(f"{stack}\n------\nError Message Summary:\n------\n{line}\n", "utf-8")
    root = ingest(tmp_path).root_cause
    assert root is not None
    assert root.signature == signature


@pytest.mark.parametrize("prefix", ["", "2026-11-21T10:00:05.123Z [rank{rank}]: "])
@pytest.mark.parametrize(("name", "sentence"), BY_SENTENCE.items())
def test_a_failure_that_is_known_by_its_sentence_is_found(
    name: str, sentence: str, prefix: str, tmp_path: Path
) -> None:
    """With and without a prefix before every line, a fact has the sentence above the stack."""
    path = next(path for path in CORPUS if path.stem == name)
    (tmp_path / "rank0.log").write_text("".join(with_prefix(path, prefix, 0)), "utf-8")
    job = read_job([str(tmp_path)], Options(), None)
    assert any(sentence in fact.text for fact in job.extracted.facts)


@pytest.mark.parametrize(("title", "ranks"), [("## Rank {rank}", [0, 1, 2]), ("## Node {rank}", [None] * 3)])
def test_titles_of_a_report_name_the_ranks_of_its_dumps(tmp_path: Path, title: str, ranks: list[int | None]) -> None:
    """A bug report in Markdown has a title and a fence above the dump of each rank."""
    parts = ["# It hangs\n\nWe dumped all ranks with py-spy:\n"]
    for rank in range(3):
        place = "read_shard (train.py:22)" if rank == 2 else "step (train.py:80)"
        dump = f'Process 7{rank}: python train.py\nPython v3.11.7 (/w)\n\nThread 7{rank} (idle): "MainThread"\n'
        parts.append(f"{title.format(rank=rank)}\n\n```\n{dump}    {place}\n    <module> (train.py:99)\n```\n")
    (tmp_path / "report.txt").write_text("\n".join(parts))
    facts = read_job([str(tmp_path)], Options(), None).result.facts
    assert [fact.origin.rank for fact in facts if fact.kind == "stack"] == ranks
