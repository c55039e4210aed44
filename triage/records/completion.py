"""Lines that say that something ended well: forms of words and statuses, not phrases of single programs.

`word`: a line says that something is done, without naming it. `program`: training, or a whole program, says that it is
finished. `process`: a process ended with status 0. `job`: a launcher, a scheduler or a container platform reports the
success of the job. After `program` and `job` the failures before them are over.
"""

from __future__ import annotations

import functools
from typing import Literal

from triage.base.digit_masks import ask_masked, ask_masked_text, translate_digits
from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re

Scope = Literal["", "word", "process", "program", "job"]

_LONGEST = 400  # characters of a line that are read
# Parts of all that is matched below. Most lines hold none.
_HINTS = (
    *("finish", "complet", "done", "succe", "exit", "status", "return", "conclud", "reached", "train_runtime"),
    *("normal", "bye", "ended", "is over", "the end", "passed", "test result"),
)
HINT = lazy_re(b"(?i)" + "|".join(_HINTS).encode())
_HINT_BYTES = tuple(hint.encode() for hint in _HINTS)

_TRAINING = (
    r"(?:pre-?)?train(?:ing|er)?|run|job|fine-?tun(?:e|ing)|experiment|trial|program|script|workload|sweep|"
    r"distillation|benchmark"
)
_ENDED = r"finished|completed?|done|succeeded|concluded|has ended|is over"
# Between what ended and its verb: words that make it a part of the training.
_PART = (
    r"(?:step|epoch|iter\w*|batch|stage|round|shard|pass|data\w*|set|samples?|config\w*|setup|init\w*|model|"
    r"compil\w*|warm\w*|prepar\w*|state|checkpoint\w*)"
)
FINISHED = masked_re(
    rf"(?i)\b(?:{_TRAINING})\b(?:(?!\b{_PART}\b).){{0,24}}?\b(?:{_ENDED})\b"
    rf"|\b(?:finished|completed|done|concluded)\b[ :,-]{{1,3}}(?:with )?(?:the )?(?:{_TRAINING})\b"
    r"|\b(?:rank|worker|process|node|task)[ :#-]{0,2}\d{1,6}\b\W{0,3}(?:is |has |was )?(?:finished|done|completed?)"
    r"(?=\W*$|\W+(?:training|run|in \d|after|with|at|exit)\b)"
    r"|\[after training is done\]|\btrain runtime\b"
    r"|\b(?:max|maximum|total|target|final|last)[ -]?(?:number of )?(?:steps?|epochs?|iterations?|iters|tokens)\b"
    r".{0,20}\breached\b"
    r"|\breached (?:the )?(?:max|maximum|total|target|final|last)[ -]?(?:number of )?"
    r"(?:steps?|epochs?|iterations?|iters|tokens)\b"
)
# The summary of a test runner that names no failure: pytest, ctest, cargo, jest.
_TESTS = masked_re(
    r"(?i)^=* ?(?!.*\b[1-9]\d{0,8} (?:failed|errors?)\b)(?:.{0,40}, )?\b[1-9]\d{0,8} passed\b.{0,80} in \d"
    r"|\b100% tests passed\b|^test result: ok\.|\bBUILD SUCCESS(?:FUL)?\b|^tests: +(?!.*failed)[1-9]\d{0,8} passed, "
)
# Forms without a subject: they count unless the line names something smaller than the job.
_SUBJECTLESS = masked_re(
    r"(?i)\b(?:finished|completed|exited|ended|terminated|done|closed) (?:successfully|normally|cleanly|ok)\b"
    r"|\bsuccessfully (?:finished|completed|trained|terminated|exited)\b"
    r"|\b(?:test|suite) concluded\b|\bexiting (?:the )?(?:program|normally|cleanly)\b"
    r"|(?:^|[:\]|>] )(?:all )?(?:done|finished|completed?|good ?bye|bye|the end)[.!]{0,3}$"
)
_SMALLER = masked_re(
    r"(?i)\b(?:health\w*|probe|check\w*|hook|monitor\w*|export\w*|nvidia-smi|prolog|epilog|prefetch\w*|"
    r"dataloader\w*|download\w*|upload\w*|load\w*|install\w*|sidecar|helper|subprocess|compil\w*|build\w*|tokeniz\w*|"
    r"preprocess\w*|warm-?up|eval\w*|valid\w*|init\w*|setup|preflight|git|pip|thread|watchdog|sav\w+|sync\w*|"
    r"metrics?|connect\w*|handshake|barrier|all-?reduce|broadcast|dump\w*|stag\w+|copy\w*|transfer\w*|epoch|step|"
    r"server|request|shard\w*|backup|cache|warmup|rendezvous|graph|kernel|autotun\w*|"
    r"\w{3,}ing [\w./() -]{1,80}: done)\b"
)
# A process of the machine, not of the job.
_OF_MACHINE = masked_re(r"(?i)\b(?:kernel|dockerd|containerd|kubelet|sshd|crond?|systemd(?:-\w+)?)(?:\[\d+\])?: ")
_ZERO = masked_re(
    r"(?i)(?:\b(?:exit(?:ed|s)?|end(?:ed|s)?|finish(?:ed|es)?|terminated|complete[ds]?|return(?:ed|s)?|stopped)"
    r"(?: normally| successfully)?(?: with)?(?: an?)?[ (]{1,2}(?:exit |return )?(?:code|status|value)[ :=]{1,3}"
    r"|\bexited (?:with )?|\bexit[ _-]?(?:code|status|value)?[ :=]{1,3}|\breturn[ _-]?(?:code|status|value)[ :=]{1,3}"
    r"|\brc ?= ?|\bexit_status[ :=]{1,10})"
    r"0(?!\.\d|[:/\dx%])(?! (?:errors?|warnings?|failures?|failed|of)\b)"
    r"|\bprocess \d+ (?:exits|exited) successfully\b"
)
# Slurm's accounts that do not say how a job ended: sacct's row of a step, a bad state of seff, the daemons' own work.
_NOT_OF_JOB = masked_re(
    r"^\s*\d+(?:_\d+)?\.\w+[\s|]|^\s*State: (?!COMPLETED\b)[A-Z_]{6,20}\b"
    r"|job_complete: (?:JobI[dD]=)?\d|\bdone with (?:job|step)\s*$|\bsending REQUEST_(?:STEP_)?COMPLETE"
)
_PROCESS_RANK = lazy_re(r"(?i)\b(?:rank|task)[ :#=]{0,2}(\d{1,6})\b")
_UNIT = masked_re(
    r"(?i)\b[\w@-]*(?:train|job|torch|worker|run-)[\w@-]*\.(?:service|scope): "
    r"(?:Deactivated|Succeeded|Main process exited, code=exited, status=0/SUCCESS)"
)
_JOB = masked_re(
    r"\bJobState=COMPLETED\b|\bCOMPLETED\b.{0,80}[\s|,]0:0\b|\bState\s{0,8}: COMPLETED\b"
    r"|\bExitCode=0:0\b.{0,80}\bCOMPLETED\b"
    r"|^Successfully completed\.?$|^Subject: Job \S{1,20} <?.{1,120}> Done$"
    r"|\bNormal termination \(return value 0\)"
    r"|^Training completed after \d{1,9} iterations at .{8,40} Total running time: "
    r"|(?i:\bphase[\"']?\s?[:=]\s?[\"']?succeeded\b)|\breason[\"']?: [\"']?Completed\b|\s0/\d{1,3} +Completed\b"
    r"|\bstatus[\"']?\s?[:=]\s?[\"']?SUCCEEDED\b|\bJOB_STATE_SUCCEEDED\b"
    r"|\bWorkerState\.SUCCEEDED\b|\bworker group successfully finished\b|\bsucceeded\b.{0,40}\bworker\b"
    r"|(?i:\b(?:job|run|training|workflow|pipeline|pod|application)[ _-]?(?:status|state|phase|result)[\"']?"
    r"\s?[:=]\s?[\"']?(?:succeeded|success|completed|finished)\b)"
    r"|(?i:\bjob ['\"<]?[\w.:/@-]{1,80}['\">]? (?:is |has )?"
    r"(?:succeeded|successfully completed|completed successfully)\b)"
    r"|(?i:\bjob (?:is |has )?(?:completed|finished|succeeded)\b"
    r"|\b(\d{1,6})/\1 (?:pods|workers|ranks|tasks) succeeded\b)"
    r"|(?i:\ball (?:\d{1,6} )?(?:processes|ranks|workers|tasks|nodes|pods|containers|replicas)\b.{0,24}"
    r"(?:\b(?:status|code) 0\b|\bsucceeded\b|\bsuccessfully\b|\bfinished\b|\bcompleted?\b|\bdone\b))"
)
_NEGATED = lazy_re(
    r"(?i)\b(?:not|never|will|would|until|till|when|if|once|before|after|unless|while|wait\w*|expect\w*|eta|"
    r"remaining|should|must|cannot|can't|isn't|hasn't|previous\w*|earlier)\b[^.;]{0,24}$"
)
_UNSUCCESSFUL = lazy_re(
    r"(?i)\A(?:,? {1,3}(?:but|however|although|except)\b"
    r"|.{0,40}?\b(?:with|due to|because of)\b.{0,24}?\b(?:(?<!\b0 )(?<!\bno )errors?|"
    r"fail\w*|exception|non-?zero|signal|"
    r"(?:exit )?(?:code|status) -?[1-9])|[\"']?\s?[:=]\s?[\"']?(?:false|no|none|null|0)\b|\s?\?)"
)
# Without one of these a line compares no numbers, and only tells 0 from others: it is read once for all others.
_SHARE_SIGNS = ("/", "%", "of")
_ZERO_OR_NOT = bytes.maketrans(b"23456789", b"1" * 8)
_SHARE = lazy_re(r"\b(\d{1,9}) ?(?:/|of) ?(\d{1,9})\b|\b(\d{1,3}(?:\.\d{1,6})?) ?%")


@ask_masked
def has_hint(line: bytes) -> bool:
    """Whether `read_completion` may find something in a line; in one line this is faster than HINT."""
    lower = line.lower()
    return any(hint in lower for hint in _HINT_BYTES)


def read_completion(text: str) -> tuple[Scope, int | None]:
    """Return what a line says to have ended well, and the rank that it names for a process; an empty scope: nothing."""
    text = text[:_LONGEST].rstrip()
    if not has_hint_in_text(text):
        return "", None
    if any(sign in text for sign in _SHARE_SIGNS):
        return _read(text)
    scope, rank = _read(translate_digits(text, _ZERO_OR_NOT))
    stated = _PROCESS_RANK.search(text) if rank is not None else None
    return scope, int(stated[1]) if stated is not None else None


@ask_masked_text
def has_hint_in_text(text: str) -> bool:
    """The same of decoded text."""
    lower = text.lower()
    return any(hint in lower for hint in _HINTS)


@functools.lru_cache(maxsize=1024)
def _read(text: str) -> tuple[Scope, int | None]:
    """Read a line with a hint; the lines near an end are read for several purposes."""
    if _UNIT.search(text):
        return "job", None
    if _OF_MACHINE.search(text) or _NOT_OF_JOB.search(text):
        return "", None
    if _TESTS.search(text):
        return "program", None
    job = _JOB.search(text)
    if job is not None:
        return ("", None) if _is_denied(text, job.start(), job.end()) else ("job", None)
    plain = text.replace("_", " ")
    program = FINISHED.search(plain)
    if program is not None:
        return ("", None) if _is_denied(plain, program.start(), program.end()) else ("program", None)
    if _SMALLER.search(plain):
        return "", None
    if _ZERO.search(text):
        rank = _PROCESS_RANK.search(text)
        return "process", int(rank[1]) if rank else None
    bare = _SUBJECTLESS.search(plain)
    return ("", None) if bare is None or _is_denied(plain, bare.start(), bare.end()) else ("word", None)


def _is_denied(text: str, start: int, end: int) -> bool:
    """Whether the words around a form take it back: a condition, a failure, a part of the whole."""
    if text[start:end] == "[after training is done]":
        return False
    if start and _NEGATED.search(text[:start]):
        return True
    if _NEGATED.search(text[start:end].rsplit(" ", 1)[0]) or _UNSUCCESSFUL.search(text[end:]):
        return True
    share = _SHARE.search(text[start:])
    if share is None or "0/" in text[start:end]:  # the containers of a pod that are still ready
        return False
    return share[1] != share[2] if share[1] else float(share[3]) < 100.0
