"""From blocks to facts. SPEAKERS is the ordered list: the first that has something to say about a block is heard."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from triage.evidence import backtraces, launcher, message, native, pytests, python
from triage.evidence.interface import Speaker
from triage.evidence.redact import redact_all
from triage.model.evidence import Block, Evidence, Origin
from triage.ranks import maps
from triage.ranks.envelopes import in_json

SPEAKERS: tuple[Speaker, ...] = (
    launcher.read,
    python.read,
    native.read,
    backtraces.read,
    pytests.read,
    message.read,
)  # message takes whatever is left: last

# What the scan looks for besides the catalog's literals: the ways in which any failure announces itself.
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
    "SyntaxError: ",
    "IndentationError: ",
    "TabError: ",
    "srun: error: ",
    "slurmstepd: error: ",
    "*** JOB ",
    "NVRM: Xid",
    "restarting worker group",
    "will restart worker group",
    "#0  0x",
    "hread 0x",
    " (LWP ",
    " received signal SIG",
    "Stack trace (most",
    "frame #0: ",
    "C++ CapturedTraceback:",
    "), PID: ",
    "Check failure stack trace",
    ")[0x",
    ") [0x",
    "Native frames: (",
    ") at pc=0x",
    'Exception in thread "',
    ".java:",
    ".scala:",
    "stop reason = ",
    "PLEASE submit a bug report",
    "#0 0x",
    "The process died due",
    "Caught signal ",
    "terminated with signal",
    "Program received signal",
    "Stack trace of thread",
    "AddressSanitizer: ",
    "ThreadSanitizer: ",
    "*** Error in `",
    "crash reason:",
    "C++ Traceback (most recent",
    "========= Invalid __",
    " received at time=",
    "==== backtrace",
    "Stack dump:",
    " short test summary info ",
)
# Ray prints one of many equal lines of several workers, with how many they were.
REPEATED = "x across cluster]"
# Lines that place ranks: pid to rank, hosts, versions. They are no failures.
MAP_TRIGGERS: tuple[str, ...] = (*maps.TRIGGERS, "NCCL version 2", REPEATED)


def sought(literals: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the scan looks for, as it stands in plain text and in JSON, TRIGGERS first; and for each the literal that is
    meant.
    """
    return in_json(tuple(dict.fromkeys((*TRIGGERS, *MAP_TRIGGERS, *literals))))


def read(block: Block) -> list[Evidence]:
    """The facts in a block."""
    for speaker in SPEAKERS:
        facts = speaker(block)
        if facts:
            return facts
    return []


def seen_again(fact: Evidence, more: int) -> Evidence:
    """`fact`, counted for `more` further lines of its kind that the scan did not keep."""
    return dataclasses.replace(fact, count=fact.count + more)


def from_text(text: str, name: str = "sample") -> list[Evidence]:
    """The facts in a piece of log, every line of it looked at: for samples of signatures and for pasted text."""
    from triage.ranks.blocks import build
    from triage.ranks.layouts import layout_of
    from triage.ranks.text import Text

    data = text.encode("utf-8", "replace")
    hits = []
    position = 0
    for line in data.split(b"\n"):
        if line.strip():
            hits.append((position, position + len(line), ("",), 0))
        position += len(line) + 1
    source = Text(name, lambda offset, length: data[offset : offset + length], len(data), 1970, layout_of(data))
    return [fact for block, _ in build(source, hits) for fact in read(block)]


__all__ = [
    "MAP_TRIGGERS",
    "SPEAKERS",
    "TRIGGERS",
    "Block",
    "Evidence",
    "Origin",
    "from_text",
    "read",
    "redact_all",
    "seen_again",
    "sought",
]
