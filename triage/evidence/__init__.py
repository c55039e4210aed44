"""From blocks to facts. EXTRACTORS is the ordered list: the first that finds facts in a block decides."""

from __future__ import annotations

from collections.abc import Sequence

from triage.base.lazy_dataclass import replace
from triage.evidence import backtraces, launcher, message, native, python, ras
from triage.evidence.extractor import Extractor
from triage.evidence.redact import redact_all
from triage.model.evidence import Block, Evidence, Origin
from triage.ranks.log_wrappers import with_json_forms
from triage.records import identity_lines, npu_lines, pairing_lines, panics, ras_lines
from triage.stacks import beginnings

EXTRACTORS: tuple[Extractor, ...] = (
    ras.extract,
    launcher.extract,
    python.extract,
    native.extract,
    backtraces.extract,
    python.extract_failed_test,
    message.extract,
)  # message takes all other blocks: last

# How launchers announce that they start all ranks again; diagnose/attempts.py reads the lines.
RESTART_TRIGGERS: tuple[str, ...] = (
    "restarting worker group",
    "will restart worker group",
    "estarting training",
    "estarting the training",
    "estarting all workers",
    "estarting all processes",
    "elaunching training",
    "elaunching all ",
    "FailureDecision.RETRY",
    "[FailurePolicy] RETRY",
    "Attempting to restore trial",
    "Scheduled restart job, restart counter",
)
# What the scan looks for besides the catalog's literals: the ways in which any failure begins in a log.
TRIGGERS: tuple[str, ...] = (
    "Traceback (most recent call last)",
    "terminate called",
    "Fatal Python error: ",
    "exitcode  : ",
    "failed (exitcode: ",
    " closing signal SIG",
    " via signal SIG",
    "exits with return code = ",
    "NCCL WARN ",
    "Exited with exit code ",
    "Segmentation fault",
    "Process received signal",
    " terminated with the following error",
    "died from signal ",
    " exited on signal ",
    " noticed that process rank ",
    "Process name: ",
    " exit with status code ",
    " exit with exception. Error code: ",
    " exited with ",
    " exit status ",
    "MPI_ABORT was invoked on rank ",
    "BAD TERMINATION OF ONE OF YOUR APPLICATION",
    "MPI_Abort(MPI_COMM_WORLD, ",
    "SyntaxError: ",
    "IndentationError: ",
    "TabError: ",
    "srun: error: ",
    "slurmstepd: error: ",
    "*** JOB ",
    "NVRM: Xid",
    "Task run failed, ",
    "FFTS+ run failed, ",
    "| time out |",
    "| no connect |",
    npu_lines.FAILED,
    "HCCL_CONNECT_TIMEOUT set by",
    "HCCL_EXEC_TIMEOUT set by",
    *RESTART_TRIGGERS,
    *beginnings.TRIGGERS,
    *panics.TRIGGERS,
    " short test summary info ",
    *ras_lines.TRIGGERS,
)
# Ray prints one of many equal lines of several workers, with their number.
REPEATED = "x across cluster]"
# Lines that map pids and hosts to ranks, or state versions. They are no failures.
MAP_TRIGGERS: tuple[str, ...] = (
    *identity_lines.TRIGGERS,
    *pairing_lines.TRIGGERS,
    *npu_lines.TRIGGERS,
    "NCCL version 2",
    REPEATED,
)


def scan_literals(literals: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what the scan looks for, as in plain text and as in JSON, TRIGGERS first; and the literal of each."""
    return with_json_forms(tuple(dict.fromkeys((*TRIGGERS, *MAP_TRIGGERS, *literals))))


def extract(block: Block) -> list[Evidence]:
    """Return the facts in a block."""
    for extractor in EXTRACTORS:
        facts = extractor(block)
        if facts:
            return facts
    return []


def add_count(fact: Evidence, more: int) -> Evidence:
    """Return the fact with its count raised by `more` lines of its kind that the scan dropped."""
    return replace(fact, count=fact.count + more)


def extract_text(text: str, name: str = "sample") -> list[Evidence]:
    """Return the facts in a piece of log, from every line: for samples of signatures and for pasted text."""
    from triage.ranks.layouts import detect_layout
    from triage.records.blocks import build_blocks
    from triage.records.text import Text

    data = text.encode("utf-8", "replace")
    hits = []
    position = 0
    for line in data.split(b"\n"):
        if line.strip():
            hits.append((position, position + len(line), ("",), 0))
        position += len(line) + 1
    source = Text(name, lambda offset, length: data[offset : offset + length], len(data), 1970, detect_layout(data))
    return [fact for block, _ in build_blocks(source, hits) for fact in extract(block)]


__all__ = [
    "MAP_TRIGGERS",
    "EXTRACTORS",
    "TRIGGERS",
    "Block",
    "Evidence",
    "Origin",
    "extract_text",
    "extract",
    "redact_all",
    "add_count",
    "scan_literals",
]
