"""Failures that no signature knows, grouped by their fingerprints.

The id of a group comes from the fingerprint alone, so the same failure has the same id in every job.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re
from triage.clusters import fingerprint
from triage.clusters.fingerprint import cluster_id
from triage.diagnose.endings import MatchedFacts, is_among, is_stated_ending, select_endings
from triage.diagnose.graph import is_status_ending
from triage.diagnose.headline import has_no_message
from triage.diagnose.references import is_reference
from triage.diagnose.survival import is_cut
from triage.evidence.exception_chains import WRAPPER_TYPES, is_wrapper
from triage.model import CrashDetail, Evidence, ExceptionDetail, ExitDetail

# Signals that end a process, and that no launcher sends to stop it.
_OF_NO_LAUNCHER = frozenset(("SIGUSR1", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGXCPU", "SIGXFSZ", "SIGSYS", "SIGTRAP"))
_KINDS = frozenset(("exception", "terminate", "fatal-python", "exit", "crash", "core"))
_ALL_KINDS = _KINDS | {"ending"}
# A library's error whose reason stands in the lines behind it.
_HEADS = lazy_re(r"(?i)\b(?:hccl|nccl|rccl|aclnn|acl|cann|mpi)\w{0,20} (?:function )?error\b")
_LONGEST_HEAD = 1000
_LONGEST_MESSAGE = 2000  # bytes of a fatal message before the stack of its process
# slurmstepd could not start the task: container, plugin, prolog or program.
_NOT_STARTED = masked_re(
    r"\berror: (?:pyxis: |spank: |execve\(\): |Failed to invoke (?:spank|task) plugin|"
    r"(?:run_command: |Could not run )slurm task_prolog )"
)
# The task then ends with the number of the error.
_EXEC_ERRORS = {2: "No such file or directory", 8: "Exec format error", 13: "Permission denied"}
_REACH = 600
"""So many bytes behind the error its reason may begin, with the prefixes of collectors."""


def group_unknown(
    facts: Sequence[Evidence], matched: MatchedFacts, explained_ranks: Collection[int | None] = ()
) -> dict[str, list[Evidence]]:
    """Return cluster id to the facts of failures that no signature matches.

    `explained_ranks` are the ranks of which a signature knows why they ended: how is no failure of its own.
    """
    known = matched.known
    if not [fact for index, fact in enumerate(facts) if fact.kind in _ALL_KINDS and index not in known]:
        return {}
    places = {_place(facts[index]) for index in known}
    reasons = [facts[index] for index in known if facts[index].kind == "message"]
    refusals = [facts[index] for index in known if _NOT_STARTED.search(facts[index].text[:_LONGEST_HEAD])]
    exits = [fact for fact in facts if isinstance(fact.detail, ExitDetail)]
    cut = {id(fact) for fact in facts if is_cut(fact) and (known or _stands_below_exit(fact, exits))}
    erring = {fact.origin.rank for fact in facts if fact.kind in _KINDS - {"exit"} and id(fact) not in cut}
    erring |= {*explained_ranks} - {None}
    failures = [
        fact
        for index, fact in enumerate(facts)
        if index not in known and fact.kind in _KINDS and id(fact) not in cut
        if _place(fact) not in places and _is_failure(fact, erring)
        if not has_known_reason(fact, reasons) and not _has_not_started(fact, refusals)
    ]
    failures = _without_known_checks(failures, reasons)
    inner = [fact for fact in failures if not is_wrapper_fact(fact)]
    endings = select_endings(facts, matched, inner)
    ended = {fact.origin.rank for fact in endings if not is_status_ending(fact)}
    if matched.causing or ended or any(fact.kind != "exit" for fact in inner):
        failures = inner  # another says why
    statuses = {_status(fact) for fact in facts if fact.origin.rank in ended} - {None}
    failures = [
        fact
        for fact in failures
        if fact.kind != "exit" or (_is_failure(fact, erring | ended) and _status(fact) not in statuses)
    ] + endings
    prints = [fingerprint(fact) for fact in failures]
    # `Caught ValueError in DataLoader worker process 3` stands next to the exception that was caught.
    anchored = {_place(fact) for fact, print_ in zip(failures, prints, strict=True) if print_.anchored}
    groups: dict[str, list[Evidence]] = {}
    for fact, print_ in zip(failures, prints, strict=True):
        if print_.anchored or _place(fact) not in anchored:
            groups.setdefault(cluster_id(print_.key), []).append(fact)
    lines = {(facts[index].source, facts[index].offset) for index in known}
    unknown = [fact for fact in facts if (fact.source, fact.offset) not in lines]
    for members in groups.values():
        members += _last_lines_beside(unknown, members)
    return groups


def _status(fact: Evidence) -> int | None:
    """Return the exit code of a process: others that end with it say nothing new beside the last lines of one."""
    return fact.detail.exit_code if isinstance(fact.detail, ExitDetail) and not fact.detail.signal else None


def _stands_below_exit(fact: Evidence, exits: Sequence[Evidence]) -> bool:
    """Whether a launcher reports above a traceback, in the same file, how a process ended: the launcher raised it."""
    return any(
        (other.source, other.origin.attempt) == (fact.source, fact.origin.attempt)
        and other.offset < fact.offset
        and fact.origin.rank in (None, other.origin.rank)
        for other in exits
    )


def is_wrapper_fact(fact: Evidence) -> bool:
    """Whether a fact is an exception that says only that a part of the job failed."""
    return isinstance(fact.detail, ExceptionDetail) and is_wrapper(fact.detail.type, fact.fields.get("message", ""))


def _last_lines_beside(facts: Sequence[Evidence], members: Sequence[Evidence]) -> list[Evidence]:
    """Return the endings whose lines hold failures without a message: they say more than a status or a stack."""
    if not all(map(has_no_message, members)):
        return []
    raised = {_first_line(fact) for fact in facts if fact.kind == "exception"}
    endings = [fact for fact in facts if is_stated_ending(fact) and _first_line(fact) not in raised]
    return [one for one in endings if one not in members and any(is_among(member, one) for member in members)]


def _first_line(fact: Evidence) -> str:
    return fact.text.strip().split("\n", 1)[0]


def has_known_reason(fact: Evidence, reasons: Sequence[Evidence]) -> bool:
    """Whether an exception only heads a library's error, and a signature knows the reason in the lines behind it; or
    refers to another line, and a signature knows one of its rank.
    """
    if is_reference(fact) and any(_is_of_same_writer(fact, reason) for reason in reasons):
        return True
    if fact.kind != "exception" or not _HEADS.search(fact.text[:_LONGEST_HEAD]):
        return False
    return any(
        reason.source == fact.source
        and reason.origin.rank in (fact.origin.rank, None)
        and 0 <= reason.offset - fact.end <= _REACH
        for reason in reasons
    )


def _without_known_checks(failures: list[Evidence], reasons: Sequence[Evidence]) -> list[Evidence]:
    """Return the failures without the stacks of failed checks below a message that a signature knows.

    Files of unknown ranks show equal messages once, so equal stacks stand below the same message.
    """
    known = {
        fingerprint(fact).key
        for fact in filter(_is_failed_check, failures)
        for reason in reasons
        if _is_of_same_writer(fact, reason) and 0 <= fact.offset - reason.end <= _LONGEST_MESSAGE
    }
    return [fact for fact in failures if not (_is_failed_check(fact) and fingerprint(fact).key in known)]


def _is_failed_check(fact: Evidence) -> bool:
    return isinstance(fact.detail, CrashDetail) and fact.detail.kind == "check"


def _has_not_started(fact: Evidence, refusals: Sequence[Evidence]) -> bool:
    """Whether srun reports the end of a task after slurmstepd reported that it could not start it.

    Where the exit code is the number of slurmstepd's error, the two lines may stand in any order: both write to stderr.
    """
    if (
        fact.kind != "exit"
        or fact.component != "slurm"
        or not isinstance(fact.detail, ExitDetail)
        or fact.detail.signal
    ):
        return False
    return any(
        refusal.source == fact.source
        and refusal.origin.attempt == fact.origin.attempt
        and (refusal.offset < fact.offset or _is_exec_error(fact.detail.exit_code, refusal))
        and (not refusal.origin.host or not fact.origin.host or refusal.origin.host == fact.origin.host)
        for refusal in refusals
    )


def _is_exec_error(code: int | None, refusal: Evidence) -> bool:
    """Whether slurmstepd could not execute the program because of the error with this number."""
    return code in _EXEC_ERRORS and "execve(): " in refusal.text and _EXEC_ERRORS[code] in refusal.text


def _is_of_same_writer(fact: Evidence, other: Evidence) -> bool:
    if fact.origin.rank is None:
        return fact.source == other.source
    return fact.origin.rank == other.origin.rank


def _place(fact: Evidence) -> tuple[str, int, int]:
    """Facts of one block share its end: when a signature knows one exception of a chain, the chain is known."""
    return (fact.source, fact.end, 0) if fact.kind == "exception" else (fact.source, fact.end, fact.offset)


def _is_failure(fact: Evidence, erring: set[int | None]) -> bool:
    """Whether the fact is a failure of its own; the end of a rank is not where the rank printed an error."""
    detail, rank = fact.detail, fact.origin.rank
    if isinstance(detail, ExitDetail):
        has_error = rank in erring or (None in erring and not detail.signal)
        is_own = detail.is_own_failure or detail.signal in _OF_NO_LAUNCHER
        return is_own and rank is not None and not has_error
    if isinstance(detail, ExceptionDetail):
        return not detail.secondary and detail.type not in WRAPPER_TYPES
    if fact.kind in ("crash", "core"):
        return isinstance(detail, CrashDetail) and bool(detail.kind)
    return True
