"""Tell what a launcher says about other processes from failures: it repeats that one of them ended, and not why."""

from __future__ import annotations

from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re
from triage.diagnose.references import states_exception
from triage.model import Evidence

_PROCESS = (
    r"(?:process(?:es)?|sub-?process(?:es)?|ranks?|workers?|tasks?|jobs?|child(?:ren)?|commands?|nodes?|containers?|pods?"
    r"|actors?|scripts?|replicas?)"
)
_ENDED = (
    r"(?:exit(?:s|ed)?|terminated?|die[sd]?|fail(?:s|ed)?|end(?:s|ed)?|return(?:s|ed)?|finish(?:es|ed)?|was killed)"
)
_REPORT = masked_re(
    rf"(?i)\b{_PROCESS}\b.{{0,300}}?\b{_ENDED}\b.{{0,60}}?\b(?:non-?zero|exit[ _-]?code|status|code|signal"
    r"|unexpected(?:ly)?"
    rf"|with (?:an? )?(?:exception|errors?|failures?))\b(?! ?[:=] ?[A-Za-z])"
    rf"|\b(?:one or more|some|\d{{1,7}}(?: of \d{{1,7}})?) (?:of the )?(?:remote |local |training )?{_PROCESS}"
    rf" (?:have |has )?{_ENDED}\b|\bexit[ _]?code[ :=]{{1,3}}-?[1-9]"
)
# What MPI's process managers print themselves; an assertion there fails when a process is gone.
_MANAGER = lazy_re(
    r"^\W{0,4}\[?(?:proxy:\d{1,7}:\d{1,7}|mpiexec)@[^\]\s]{1,80}\]|^\W{0,4}(?:PMIU?|HYDU?|PRTE|ORTE)_\w{1,60} ?\("
)
# Exceptions that a driver raises when the process of a worker is gone, whatever ended it.
_DEATH = lazy_re(
    r"(?:\w{1,80}\.){0,8}(?:Actor|Worker|Raylet|Node)\w{0,40}(?:Died|Crashed|Killed|Lost)\w{0,20}\b|ray\.\S*RayActorError\b"
)
# A driver that lists the errors of its workers names their ranks, too.
_OF_WORKERS = lazy_re(
    r"(?i)\bfailed (?:due to|because of|with) (?:\d{1,7} )?(?:worker|actor|child|remote|node|rank)s?'? "
    r"(?:error|failure)s?\b"
)
_LONGEST_REPORT = 1000
# The table of torchelastic.
_TABLE = "ChildFailedError"


def is_launcher_report(fact: Evidence) -> bool:
    """Whether a fact of no known rank says only that some process ended, or is of MPI's process manager."""
    origin = fact.origin
    if origin.rank is not None or origin.local_rank is not None:
        return False
    if fact.kind == "ending" and _MANAGER.search(fact.text[:_LONGEST_REPORT]):
        return True
    return states_exception(fact) and _REPORT.search(fact.text[:_LONGEST_REPORT]) is not None


def lists_worker_errors(fact: Evidence) -> bool:
    """Whether a fact is the list of a driver with the errors of its workers: what ended one of them says more."""
    return _OF_WORKERS.search(fact.text[:_LONGEST_REPORT]) is not None


def is_end_report(fact: Evidence) -> bool:
    """Whether a fact is a report of a launcher or a scheduler on the end of a process, of a known rank or none."""
    if fact.component == "torchelastic" and _TABLE in fact.text:
        return True
    if fact.kind == "exception":
        return _DEATH.match(fact.text) is not None
    if fact.kind == "message":
        return _REPORT.search(fact.text[:_LONGEST_REPORT]) is not None
    return fact.kind in ("exit", "scheduler")
