"""Which exception of a chain is the failure: not the wrapper that a framework raises from it, nor a failing clean-up.

The sentences that join a chain are CPython's (Lib/traceback.py). `direct cause`: the first one, unless it says less
than the second. `During handling`: the second one, unless it is a wrapper or a clean-up raised it.
"""

from __future__ import annotations

from collections.abc import Sequence

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.evidence.end_reports import reports_only_end
from triage.records.tracebacks import CHAINS

FRAME = lazy_re(r'\s*(?:\| )*File "(?P<file>[^"]+)", line (?P<line>\d{1,18})(?:, in (?P<function>.+))?')
# Exceptions that only wrap or repeat another one, or an order to end.
WRAPPER_TYPES = frozenset(
    (
        "KeyboardInterrupt",
        "SignalException",
        "ChildFailedError",
        "ProcessRaisedException",
        "ProcessExitedException",
        "SystemExit",
        "WorkerGroupFailureException",
        "WorkerGroupError",
        "TrainingFailedError",
        "CalledProcessError",
    )
)
_PART = r"(?:rank|task|worker|process|actor|child|stage|job|node|replica|trial)"
_ENDED = r"(?:failed|died|exited|crashed|raised|aborted|terminated|errored|stopped|ended|threw|is dead|was killed)"
# `rank 4 failed`, `worker data-3 (pid 411) exited with code 1 on node7`, `task 3 raised an exception`,
# `rank 0 failed, its worker wrote:`; not `task 3 failed to open x`, nor `rank 3 failed: disk full`.
_ONLY_ENDED = lazy_re(
    rf"(?i)(?:(?:the|a|an|one|some|\d{{1,5}}|remote|of|or|more|in|training)\s){{0,5}}{_PART}(?:\(?e?s\)?)?"
    rf"(?:[\s#=:]{{0,3}}[^\s,;]{{1,80}}(?:\s?\([^()]{{1,80}}\))?)?,?\s(?:has\s|have\s|unexpectedly\s){{0,2}}{_ENDED}\b"
    r"(?:\s(?:unexpectedly|remotely|an?\s(?:exception|error)|with\s(?:an?\s(?:exception|error)"
    r"|(?:exit\s?|return\s?|status\s?)?(?:code|status|signal)[\s:=]{1,2}[-\w]{1,20}|non-?zero\s(?:exit\s)?(?:code|status))"
    r"|[oi]n\s(?:rank|node|host|worker|process|stage|task|step)?\s?[\w.:-]{1,60})){0,3}"
    r"(?:[.!]|[,;]?(?:\s(?!to\b)\w{1,20}){0,6}:|[,;.]?\s(?:please\s)?(?:see|check|look at)\s[^:]{1,80})?$"
)
# torch: `Caught KeyError in DataLoader worker process 3.`
_CAUGHT = lazy_re(r"Caught [\w.]{1,80} in [^\n:]{1,120}\.$")
_ENDED_TYPE = lazy_re(
    r"(?:Rank|Task|Worker|Process|Actor|Child|Stage|Job|Node|Replica|Trial|Remote|Group){1,3}"
    r"(?:Failed|Died|Crashed|Failure|Error|Exception|Exited){1,2}$"
)
_LONGEST_LINE = 300
_CLEAN_UP = lazy_re(
    r"(?i)(?:^|[._])_{0,2}a?(?:close|flush|exit|cleanup|clean_up|shutdown|shut_down|teardown|tear_down|finali[sz]e|dispose"
    r"|del|destroy|stop)(?:$|_)"
)
_TERM = lazy_re(r"[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True)
class ChainedException:
    """An exception with the lines of its traceback; `link` is the sentence that joins it to the next, if any."""

    type: str
    message: str
    lines: Sequence[str]
    link: str = ""

    @property
    def is_wrapper(self) -> bool:
        """Whether it only says that some process or part of a job failed."""
        return self.type in WRAPPER_TYPES or is_wrapper(self.type, self.message)


def is_wrapper(type: str, message: str) -> bool:  # noqa: A002 - the field is called so
    """Whether an exception says no more than that a rank, a task, a worker or another part of a job failed."""
    line = message.strip().split("\n", 1)[0].rstrip()
    if not line:
        return not message.strip() and _ENDED_TYPE.match(type) is not None
    is_short = len(line) <= _LONGEST_LINE
    return is_short and (bool(_ONLY_ENDED.match(line) or _CAUGHT.match(line)) or reports_only_end(line))


def choose_failure(chain: Sequence[ChainedException]) -> int:
    """Return the index of the exception that says what failed. `chain` is in the order in which it is printed."""
    chosen = len(chain) - 1
    while chosen > 0 and _gives_way(chain[chosen], chain[chosen - 1]):
        chosen -= 1
    return chosen


def _gives_way(later: ChainedException, earlier: ChainedException) -> bool:
    """Whether the earlier of two joined exceptions is the failure."""
    if earlier.link not in CHAINS or not earlier.type:
        return False
    if earlier.is_wrapper:
        return later.is_wrapper and later.type not in WRAPPER_TYPES and earlier.type not in WRAPPER_TYPES
    if later.is_wrapper:
        return True
    if earlier.link == CHAINS[1]:
        return _has_sentence(earlier) or not _has_sentence(later)
    return any(_CLEAN_UP.search(function) for function in _functions(later) - _functions(earlier))


def _has_sentence(one: ChainedException) -> bool:
    """Whether the message says something: not `KeyError: 'width'`, which only names a key."""
    return len(_TERM.findall(one.message[:_LONGEST_LINE])) > 1


def _functions(one: ChainedException) -> set[str]:
    frames = (FRAME.match(line) for line in one.lines)
    return {frame["function"] for frame in frames if frame is not None and frame["function"]}
