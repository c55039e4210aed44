"""Forms of any program that states how it ended: outcomes, flags, abnormal ends, used-up resources, cluster events."""

from __future__ import annotations

from triage.evidence.endings.interface import LEVEL_ERROR, MESSAGE, STATUS, Form, weak

_BEFORE = r"(?:^|[\s<{,;(\[])[\"']?"
_ASSIGNED = r"[\"']?\s{0,4}[=:]\s{0,8}[\"']?"
_AFTER = r"(?=[\"'\s,;.>})\]/]|$)"
_BAD = (
    r"ab(?:normal(?:ly)?|end(?:ed)?|ort(?:ed)?)|bad|broken|crashed|dead|down|err(?:or(?:ed)?)?|evicted|expired|"
    r"fail(?:ed|ure)?|fatal|fault(?:ed|y)?|gone|incomplete|interrupted|killed|ko|lost|ng|nok|not[ _-]ok|offline|"
    r"oom(?:[ _-]?killed)?|preempted|rejected|stalled|timed?[ _-]?out|unhealthy|unreachable|unsuccessful|vanished"
)
_RESOURCE = (
    r"(?:seats?|slots?|licen[cs]es?|credits?|quota|budget|allowance|nodes?|gpus?|devices?|ports?|handles?|leases?|"
    r"memory|room|capacity|(?:gpu|cpu|core|node)[ -]?(?:hours?|minutes?|seconds?))"
)

FORMS: tuple[Form, ...] = (
    weak(
        "bad outcome",
        "any",
        rf"(?i){_BEFORE}(?:result|resultat|ergebnis|resultado|outcome|status|state|verdict|disposition){_ASSIGNED}"
        rf"(?:{_BAD}){_AFTER}",
        "unit=kr6 result=ABNORMAL wall=02:38:23",
        STATUS + 2,
    ),
    weak(
        "flag of success that is not set",
        "any",
        rf"(?i){_BEFORE}(?:ok|success|successful|succeeded|healthy){_ASSIGNED}(?:0|false|no){_AFTER}",
        "run-summary success=false stage=mixer unit=6",
        STATUS + 2,
    ),
    weak(
        "abnormal end",
        "mainframe",
        r"\bABEND[= ][SU]?[\dA-F]{3,4}\b|\bCOMPLETION CODE ?[-:=] ?(?:SYSTEM|USER) ?= ?\w*[1-9A-F]\b",
        "IEF450I KRTRAIN STEP3 - ABEND=S322 U0000 REASON=00000000",
        MESSAGE,
    ),
    weak(
        "message of a severe level",
        "mainframe",
        r"^(?:\S{1,40} )?[A-Z]{3,4}\d{3,5}[SETU] [A-Z]",
        "CEE3204S The system detected a protection exception (System Completion Code=0C4).",
        MESSAGE,
    ),
    weak(
        "nothing left",
        "any",
        rf"(?i)\b(?:no|0|none)(?: of(?: the)? \d{{1,9}})?(?: \w{{1,20}})? {_RESOURCE} (?:is |are )?"
        rf"(?:left|remain(?:s|ing)?|available|free)\b|"
        rf"\b{_RESOURCE} (?:is |are )(?:all )?(?:taken|occupied|used up|in use|gone|spent)\b",
        "wallet empty: 0 of 4096 gpu-minutes left",
        MESSAGE,
    ),
    weak(
        "warning event of a cluster",
        "Kubernetes",
        r"(?:^|\s)Warning\s{1,20}\w{0,40}(?:Fail|BackOff|Evict|Kill|Unhealthy|NotReady|Insufficient|Exceed|Err|"
        r"Lost|Preempt|Taint)\w{0,40}\s|\b0/\d+ nodes are available\b",
        "Warning  FailedScheduling  94s  default-scheduler  0/12 nodes are available: 12 Insufficient cpu.",
        LEVEL_ERROR,
        any_level=True,
    ),
)
