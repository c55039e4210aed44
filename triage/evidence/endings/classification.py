"""Which form a line has: the most telling one of FORMS, its logger's level, or a term of failing."""

from __future__ import annotations

import functools

from triage.base.digit_masks import translate_digits
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.base.signal_texts import SIGNAL_TEXTS
from triage.evidence.end_reports import reports_only_end
from triage.evidence.endings import FORMS
from triage.evidence.endings.failure_terms import find_failure_term, goes_on, only_closes, warns
from triage.evidence.endings.interface import (
    HINT,
    LEVEL_ERROR,
    LEVEL_FATAL,
    LONGEST_LINE,
    STATEMENT,
    STATUS,
    Points,
    Strength,
)
from triage.evidence.endings.logger_levels import read_level

_BOX = lazy_re(r"^[\s│┃|╭╮╰╯─━═║+]*(?=\S)|[\s│┃╭╮╰╯─━═║]+$")
# Lines that belong to a stack or a table of frames say nothing on their own.
_SUPPORT = lazy_re(
    r"^\s+(?:at |File \"|@ |from |#\d|\d+: |in |\^|~)|"
    r"^\s*(?:\[C\]: (?:in|at) |\S+:\d+: in (?:function|main chunk)\b|#\d+ |frame #\d|\[\s?\d+\] /|@\s+0x|goroutine \d|"
    r"Thread 0x|Current thread 0x|note: |help: |hint: |Extension modules|Image  +PC|"
    r"Exception raised from \S.* \(most recent call first\):$)"
)
# Help behind a message says nothing either, unless it stands in the same line.
_HELP = lazy_re(
    r"\b(?:For (?:more|debugging)|Please see|see https?:|FAQ page|To enable traceback|Set the environment variable)\b"
)
_NOISE = lazy_re(
    r"(?i)resource_tracker|leaked (?:semaphore|shared_memory)|_run_finalizers|sem_unlink|pymp-|Exception ignored in|"
    r"can only test a child process|destroy_process_group\(\) was not called|cleaning up|clean ?up noise|"
    r"\[Service thread\]|YOU CAN IGNORE THE BELOW|Enable tracemalloc|"
    r"Unable to register \w{1,20} factory: Attempting to register factory for plugin|"
    r"\band are newly initialized: |pip's dependency resolver does not|\bperf: interrupt took too long|"
    r"stopped: `max_\w+=\d+` reached|"
    # A warning at a place in a source; without one it was raised.
    r":\d+: \w*Warning: "
)
# The end of a process with its status, behind no more than prefixes and names: `srun: error: node7: task 3: Exited with
# exit code 1`, `[ERROR] [launch.py:325] ['python', 'a.py'] exits with return code = 1`, `failed (exitcode: 1)
# local_rank: 0`, `slurmstepd: error: *** STEP 1.0 ON node7 CANCELLED AT 2026-01-02T03:04:05 ***`.
_ONLY_STATUS = lazy_re(
    r"^(?:\[[^\]]{1,1500}\]:? ?){0,4}(?:[^\s:,;]{1,80}(?: [\d,-]{1,40})?: ){0,5}(?:[^\s:,;]{1,80} ){0,2}"
    r"(?:(?:[Ee]xit(?:ed|s|ing)?|[Ee]nded|[Tt]erminated) with (?:an? )?(?:(?:non-?zero|exit|return|status) ){0,2}"
    r"(?:code|status)(?: ?[=:])? ?-?0{0,2}[1-9]\d{0,9}\W{0,3}$|failed \(exitcode: -?\d{1,10}\) local_rank: \d|"
    r"\*{3} (?:STEP|JOB) \S{1,40} ON \S{1,200} CANCELLED AT )"
)
# What launchers print around the end of a process.
_OF_LAUNCHER = lazy_re(
    r"^(?:srun: (?:Terminating |Force Terminated |Job step aborted)|"
    r"(?:[\w.-]{1,40} (?:has )?detected that )?one or more processes exited |"
    r"the job to be terminated\. The first process |"
    rf"srun: error: \S{{1,200}}: tasks? [\d,-]{{1,40}}: (?:{'|'.join(SIGNAL_TEXTS)})(?: \(core dumped\))?$|"
    r"command terminated with exit code [1-9]|sagemaker-training-toolkit ERROR |"
    r"(?:g?make|ninja)(?:\[\d+\])?: \*\*\* \[[^\]]{1,200}\] Error [1-9]\d*$|parallel: This job failed:$|"
    # Snakemake, Nextflow and systemd.
    r"Error in rule \w{1,80}:$|Exiting because a job execution failed\.|\(one of the commands exited with non-zero |"
    r"Shutting down, this might take some time\.|"
    r"Error executing process > '|Process `[^`]{1,200}` terminated with an error exit status |"
    r"(?:systemd\[\d+\]: )?\S{1,100}\.service: (?:Main process exited, code=|Failed with result ')|"
    # Hydra, when it stops the rest of a job.
    r"\[(?:proxy|mpiexec)[:@][^\]]{1,200}\] \w{1,60} \([^)]{1,200}\): (?:assert \(!closed\) failed|"
    r"callback returned error status|demux engine error waiting for event|one of the processes terminated badly|"
    r"(?:launcher returned|process manager) error waiting for completion))"
)
# A sentence that announces what is quoted behind it: `I get the following error when I start it:`.
_ANNOUNCES = lazy_re(
    r"(?i:\b(?:following|below) (?:error|exception|log|message|output|traceback|warning)s?\b[^:]{0,80}[:.]?$)|"
    r"\b(?:I|[Ww]e) (?:get|got|see|saw|have|had|am getting|run|ran|encounter(?:ed)?|face) [^:]{1,160}:$"
)
# The patterns tell zero from other digits (`exit code 0`), and name files with a 9 (`solver.f90:12`).
_ALIKE = bytes.maketrans(b"2345678", b"1" * 7)


@dataclass(frozen=True, slots=True)
class LineForm:
    """The form of one line; `strength` is `unlike` where it has none."""

    name: str
    runtime: str
    strength: Strength
    weight: int
    points_to: Points = "line"


UNLIKE = LineForm("unlike", "any", "unlike", 0)
_ENDED = LineForm("ended with a status", "any", "weak", STATUS)
_CLOSED = LineForm("fatal level", "logger", "strong", STATUS)


def strip_box(text: str) -> str:
    """Return a line without the frame that rich draws around it."""
    return _BOX.sub("", text) if text[:1] in " │┃|╭╰╮─+" or text[-1:] in "│┃╮╯" else text.rstrip()


def classify(text: str, level: str = "") -> LineForm:
    """Return the form of a line without its prefix; `level` is that of its logger."""
    return _classify_alike(translate_digits(text[:LONGEST_LINE], _ALIKE), level)


@functools.lru_cache(maxsize=8192)
def _classify_alike(text: str, level: str) -> LineForm:
    """Classify all lines that differ only in digits that no pattern tells apart: many ranks print such lines."""
    line = strip_box(text)
    if not any(map(str.isalnum, line)) or _NOISE.search(line) or _ANNOUNCES.search(line):
        return UNLIKE
    if _ONLY_STATUS.match(line) or _OF_LAUNCHER.match(line) or reports_only_end(line):
        return _ENDED
    is_support = _SUPPORT.search(text) is not None
    is_help = _HELP.search(line) is not None
    best = UNLIKE
    is_low = level == "low" or warns(line)
    for form in () if is_support else FORMS:
        if form.weight > best.weight and not (is_help and form.strength != "strong") and form.pattern.search(line):
            if form.strength == "weak" and (goes_on(line) or (is_low and not form.any_level)):
                continue
            best = LineForm(form.name, form.runtime, form.strength, form.weight, form.points_to)
    by_level = _CLOSED if level == "fatal" and only_closes(line) else _of_level(level)
    if by_level.weight > best.weight and not (by_level.strength == "weak" and goes_on(line)):
        return by_level
    if best is UNLIKE and not (is_support or is_help or is_low) and (term := find_failure_term(line)):
        weight = STATEMENT if term[0].isalnum() and not only_closes(line) else HINT
        return LineForm("term of failing", "any", "weak", weight)
    return best


def classify_raw(raw: str, text: str) -> LineForm:
    """Return the form of a line: `raw` is the whole line, `text` what is behind its prefix."""
    return classify(text, read_level(raw))


def _of_level(level: str) -> LineForm:
    if level == "fatal":
        return LineForm("fatal level", "logger", "strong", LEVEL_FATAL)
    return LineForm("error level", "logger", "weak", LEVEL_ERROR) if level == "error" else UNLIKE
