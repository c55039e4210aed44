"""Learn from the lines of a job what they say of all of it: versions, addresses, world sizes, ranks and hosts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from triage import evidence
from triage.base.digit_masks import ask_masked, ask_masked_text, list_masks, split_lines
from triage.base.lazy_dataclass import dataclass, replace
from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re
from triage.evidence.extracted import ExtractedJob
from triage.model import Evidence
from triage.ranks.identity import JobMap, short_host
from triage.records import identity_lines, npu_lines, pairing_lines

# NCCL says at the start which address its host has.
_ADDRESS = lazy_re(
    r"([\w.-]+):\d+:\d+ \[\d+\] NCCL INFO (?:Bootstrap|NET/\w+) ?: Using [^\n<]*?(\d{1,3}(?:\.\d{1,3}){3})<"
)
_ADDRESS_HINT = ": Using "
_COLLECTIVE = lazy_re(r"WorkNCCL\(SeqNum=(\d{1,18}), OpType=(\w+).*?ran for (\d{1,18}) milliseconds", re.S)
# Name, what a text must hold in lower case, and where the version stands.
_VERSIONS = (
    ("nccl", ("nccl version",), lazy_re(r"NCCL version (\d+(?:\.\d+)+)")),
    (
        "torch",
        ("torch",),
        # `In PyTorch 1.1.0 and later` is advice and states no version of this job.
        lazy_re(
            r"(?i)(?<!\bin )(?<!\bsince )(?<!\bas of )(?<!\bbefore )(?<!\buntil )(?<!\bafter )(?<!\bfrom )(?<!\bthan )"
            r"\b(?:py)?torch(?: version)?[ =:]+v?(\d+\.\d+\.\d+[\w.+]*)"
            r"(?![\w.+]| (?:and|or) (?:later|newer|above|earlier|older)\b)"
        ),
    ),
    ("cuda", ("cuda",), lazy_re(r"\+cuda(\d+\.\d+)|(?i:cuda version[ =:]+)(\d+\.\d+)")),
    (
        "driver",
        ("driver version", "kernel module"),
        lazy_re(
            r"Driver Version: (\d{3}\.\d+(?:\.\d+)?)"
            r"|NVIDIA UNIX \S+ (?:Open )?Kernel Module[^\n]{0,20}?  (\d{3}\.\d+(?:\.\d+)?)"
        ),
    ),
    ("cann", ("cann",), lazy_re(r"(?i)\bcann(?:[-_ ]toolkit)?(?:[-_ ]version)?[ =:_]+v?(\d+\.\d+(?:\.\w+)?)")),
    ("slurm", ("slurm",), lazy_re(r"\b(?:slurm(?:-wlm|d|stepd)?|SLURM)(?: version)?[ =:]+v?(2\d\.\d\d\.\d+)")),
)
# torch ends the text of an error of NCCL with the version.
_VERSION_OF_ERROR = masked_re(r"(?i)\b(?:error|exited|invalid (?:argument|usage))\b[^\n]*, NCCL version 2")
_STATING_HINTS = ("version", "clients joined", "orld")
_NO_FAILURES = tuple(trigger for trigger in evidence.MAP_TRIGGERS if trigger != evidence.REPEATED)
_HINTS_OF_NO_FAILURE = tuple(trigger.rstrip("0123456789") for trigger in _NO_FAILURES)


def find_stating_lines(head: bytes) -> str:
    """Return the lines that may state what `learn_from_text` and `learn_addresses` read."""
    may_state = {mask for mask in list_masks(head) if _may_state.of_mask(mask)}
    lines = (head[start : start + len(mask)] for mask, start in split_lines(head) if mask in may_state)
    return b"\n".join(lines).decode("utf-8", "replace")


@ask_masked
def _may_state(line: bytes) -> bool:
    text = line.decode("utf-8", "replace")
    lower = text.lower()
    versions = (hint for _, hints, _ in _VERSIONS for hint in hints)
    return any(hint in lower for hint in versions) or _ADDRESS_HINT in text or identity_lines.may_identify(text)


def learn_addresses(job: JobMap, text: str) -> None:
    """Learn which address a host has, as NCCL states it at the start."""
    lines = "\n".join(line for line in text.split("\n") if _ADDRESS_HINT in line)  # the pattern is slow on others
    for match in _ADDRESS.finditer(lines):
        job.addresses[match[2]].add(short_host(match[1]))


def learn_from_fact(result: ExtractedJob, fact: Evidence) -> None:
    """Learn from a fact who wrote it, and what its text states."""
    origin = fact.origin
    if fact.kind == "exit" and fact.component == "slurm" and origin.rank is not None and origin.host is not None:
        # A task of srun may be a launcher, which is no rank: what ranks say of their hosts is more direct.
        result.job.learn_host_of_rank(origin.rank, origin.host)
        origin = replace(origin, host=None)
    if fact.rank_basis == "stated" and origin.rank is not None:
        result.job.ranks.add(origin.rank)  # another rank quotes it: the source says nothing of its host
    else:
        result.job.learn(fact.source, origin)
    look = _look_at_fact(fact.text)
    is_of_one = fact.kind != "ending"  # other processes may have written the lines around it
    if look.may_name_npu and is_of_one:
        process = npu_lines.read_npu_process(fact.source, fact.origin, fact.text)
        result.job.npus |= {process} if process is not None else set()
    if look.may_pair and is_of_one:
        for pairing in pairing_lines.read_pairings(fact.origin, fact.text):
            pairing_lines.learn_pairing(result.job, fact.source, pairing)
    if look.may_identify and is_of_one:
        event = identity_lines.learn_from_line(result.job, fact.source, fact.origin, fact.text)
        result.shared_events += [(event, fact.source, fact.origin)] if event else []
    elif look.may_state:
        learn_from_text(result, fact.source, fact.text)
    work = _COLLECTIVE.search(fact.text) if look.may_be_collective else None
    if work is not None and fact.origin.time is not None:
        entered = replace(fact.origin, time=fact.origin.time - int(work[3]) / 1000)
        result.shared_events.append((f"collective {work[1]} {work[2]}", fact.source, entered))


@dataclass(frozen=True, slots=True)
class _FactLook:
    """What the text of a fact may say, by all but its digits."""

    may_name_npu: bool
    may_pair: bool
    may_identify: bool
    may_state: bool
    may_be_collective: bool
    may_map: bool


@ask_masked_text
def _look_at_fact(text: str) -> _FactLook:
    def has(triggers: Sequence[str]) -> bool:
        return any(trigger in text for trigger in triggers)

    return _FactLook(
        has(npu_lines.HINTS),
        has(pairing_lines.TRIGGERS),
        has(identity_lines.TRIGGERS),
        has(_STATING_HINTS),
        "WorkNCCL(" in text,
        has(_HINTS_OF_NO_FAILURE),
    )


def learn_from_text(result: ExtractedJob, source: str, text: str) -> None:
    """Learn the versions of programs, the size of the job, and ranks in printed environments."""
    identity_lines.learn_from_text(result.job, source, text)
    lower = text.lower()
    for name, hints, pattern in _VERSIONS:
        if not any(hint in lower for hint in hints):
            continue
        # The patterns are slow on lines without a hint.
        lines = (line for line in text.split("\n") if any(hint in line.lower() for hint in hints))
        match = next(filter(None, map(pattern.search, lines)), None)
        if match is not None:
            version = next(group for group in match.groups() if group)
            result.versions.setdefault(name, version)
            result.stated_versions.setdefault(name, set()).add(version)


def is_identity_line(fact: Evidence) -> bool:
    """Does a fact only state who is who, or a version, and no failure?"""
    # When each rank asked for a group of HCCL is a fact of its own.
    if fact.kind != "message" or "Entry-Hccl" in fact.text:
        return False
    is_of_map = _look_at_fact(fact.text).may_map and any(trigger in fact.text for trigger in _NO_FAILURES)
    return is_of_map and not _VERSION_OF_ERROR.search(fact.text)
