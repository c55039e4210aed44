"""Terms of failing in any program's style and in several languages, for lines that are unlike all before.

Such terms count only in last lines. A term does not count in a name (`error_rate`, `--fail-fast`), with the value zero
or a negation (`0 failures`, `no errors`), in a condition or question, or where the line says that the program goes on.
"""

from __future__ import annotations

from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re
from triage.evidence.endings.terms_by_language import CJK_TERMS, TERMS_BY_LANGUAGE

_ENGLISH = (
    r"errors?|errored|err|fail(?:s|ed|ing|ure|ures)?|fatal(?:ly)?|faults?|faulted|abort(?:s|ed|ing)?|"
    r"abend(?:ed)?|crash(?:es|ed|ing)?|"
    r"kill(?:ed|ing)|die[ds]|dying|dead|panic(?:ked)?|exceptions?|unhandled|uncaught|unexpected(?:ly)?|"
    r"unreadable|unreachable|"
    r"unrecoverable|unavailable|unusable|unsupported|corrupt(?:ed|ion)?|broken|lost|loss of|collapsed?|vanished|"
    r"gone|missing|"
    r"missed|damaged|invalid|illegal|denied|refus(?:ed|es|ing)|reject(?:ed|s|ing)|revoked|expired|evacuated|"
    r"evicted|withdrawn|preempted|"
    r"removed|deleted|disconnected|unresponsive|stopped|(?<!early )stopping|stops?|halt(?:ed|ing)?|terminat(?:ed|ing)|"
    r"interrupted|cancell?ed|"
    r"quit(?:ting)?|quits|giv(?:es?|ing) up|gave up|bail(?:ing|ed)?(?: out)?|leaving|bye|exit(?:ing|ed)?|"
    r"shut(?:ting)? down|"
    r"oops|sorry|cannot|can't|couldn't|could not|unable|no such|not found|does not exist|did not|didn't|"
    r"not (?:allowed|permitted|ready|mounted|reachable|healthy|"
    r"initialized|supported|available|enough|respond\w*|known|defined|valid|finite|signed|unique|alive)|"
    r"timed? ?out|deadlock|data race|overflow|underflow|exhausted|"
    r"out of|no space left|no space on|full|"
    r"too (?:many|few|large|small|long|old)|mismatch|inconsistent|violat(?:ed|ion)|rolled back|down|stuck|hung|"
    r"exceed(?:s|ed)|over (?:its|the|their) (?:limit|quota|budget|capacity)|insufficient|suspended|superseded|"
    r"taken over|no longer|no (?:free|valid|matching|room|route|quorum|response|answer|reply)|disagrees?|starved|"
    r"overheated|tampered|untrusted|ambiguous|abnormal(?:ly)?|unsuccessful(?:ly)?|unclean|torn|scrambled|garbled|"
    r"mangled|half-written|drained|depleted|"
    r"overdrawn|used up|became (?:inf|nan)|diverged|conflict|forbidden|unauthori[sz]ed|truncated|incomplete|malformed|"
    r"poisoned|tripped|"
    r"only \d+ (?:of|out of) \d+|kicked|ejected|fenced|bad|wrong|undefined|unbound|division by zero"
)
_OTHERS = "|".join(TERMS_BY_LANGUAGE.values())
_TERM = lazy_re(rf"(?i)(?<![\w./=@-])(?P<term>{_ENGLISH}|{_OTHERS})(?![\w=]|-\w|\.\w|\(\))|(?P<cjk>{CJK_TERMS})")
# `training stops with KeyError: 'step'`, also behind characters of languages that are written without blanks.
_RAISED = lazy_re(r"(?<![A-Za-z0-9_./=@-])(?P<term>(?:\w{1,60}\.){0,4}[A-Z][a-z]\w{0,60}?(?:Error|Exception)): \S")
_NEGATION = lazy_re(
    r"(?i)(?:(?:(?<!rank )(?<!node )(?<!gpu )(?<!task )(?<!worker )(?<!process )(?<!device )\b0\b(?=[ =])|"
    r"\b(?:no|not|zero|without|never|non|none|nor|ohne|keine?|sans|sin|any|if|unless|when|before|until|"
    r"may|might|can|could|would|will|should|in case of|due to possible|avoid|ignore[sd]?|ignoring|"
    r"skip(?:ped|ping)?|handled|recovered from|nicht|max|max_?|fewer)\b)[ :=]{1,3}(?:\w+ ){0,2})$"
)
# What may come is no failure yet: `will result in indexing errors`.
_FORECAST = lazy_re(
    r"(?i)\b(?:will|would|may|might|can|could) (?:result in|lead to|end in|cause|produce|trigger|raise|give)\b"
    r"[^.;:]{0,40}$"
)
_SETTING = lazy_re(r"[A-Za-z]_\w{1,60}[\"']?\s?[:=]\s?[\"']?$")
_ZERO = lazy_re(
    r"(?i)^(?:[ \w]{0,16})?\s*(?:(?:[:=]|\bis\b|\bare\b)\s*\(?(?:no|false|ok|\[\]|\{\}|''|\"\"|-)|"
    r"(?:[:=]|\bis\b|\bare\b|\s)\s*\(?(?:0+(?:\.\d+)?%?|none|null|nil|-))(?![\w.])"
)
_RATE = lazy_re(
    r"(?i)^(?:[ _-](?:rate|count|budget|margin|bars?|tolerance|mode|policy|handler|handling|log|report)s?\b|"
    r"s?\s*[:=]\s*\d)"
)
_GOES_ON = masked_re(
    r"(?i)\bretry(?:ing)?\b|\bre-?tried\b|\btrying again\b|\bnext attempt\b|\battempt \d+ of \d+\b(?!.*giv)|"
    r"\bwill (?:retry|try|restart|continue|be)\b|"
    r"\bskip(?:ped|ping)?\b|\bignor(?:ed|ing)\b|\bcontinu(?:e|es|ed|ing)\b|\bfall(?:ing|s)? back\b|\bfallback\b|"
    r"\brespawn|"
    r"(?<!\bback-off )\brestart(?:ed|ing)\b|\bstarting it again\b|\brecovered\b|"
    r"\bgoing on\b|\bgoes on\b|\breconnect(?:ed|"
    r"ing)\b|\bresum(?:ed|ing)\b|"
    r"\bhandled\b|\breduc(?:ed|ing)\b|\bsucceeded\b|\bsuccess(?:ful|fully)?\b(?![\"']?\s?[=:]\s?[\"']?(?:0|false|no)\b)|"
    r"\bpassed\b|\bPASSED\b|\b[Tt]rying (?:port )?\d{2,5}\b|\b[Tt]rying (?:the )?(?:next|another)\b|"
    r"\bcounted as\b|\breplaced\b|"
    r"\?\s*$|\bstatus 0\b|\bcode 0\b|\bTODO\b|\bfixed in\b"
)
# No plan was built successfully, it could not be loaded successfully.
_NO_SUCCESS = masked_re(
    r"(?i)(?:\b(?:no|none|not|never|cannot|without|failed to)\b|n't\b)[^,.;:]{1,60}?\bsuccess(?:ful|fully)?\b"
)
_WARNS = masked_re(r"(?i)\bwarn(?:ing)?\b|\bWARN|\bWRN\b|\bdeprecat")
# What takes a term back in languages that are written without blanks: no, none, 0, and names of rates and counts.
_CJK_NONE_BEFORE = lazy_re(r"(?:无|無|没有|沒有|零|(?<![\d.])0\s?(?:个|個|次|件)?|ゼロ|없는)\s?$")
_CJK_NONE_BEHIND = lazy_re(
    r"\s?(?:率|数|數|なし|はありません|없음|없이|률|수)|\w{0,4}\s?[:：=]?\s?(?:0+(?:\.0+)?(?![\w.])|なし|无|無|없음)"
)
_SYMBOL = lazy_re(r"^(?:!{2,}|\*{3} (?!=)|<<< |✗|✘|❌|💥|☠|🔥|🛑|⛔|✖|‼|xxx )")
_QUOTED = lazy_re(r"`[^`\n]{1,400}`|«[^»\n]{1,200}»")
_REMARK = lazy_re(r"(?<=\S )\([^()\n]{0,200}\)")
# `rank 3: giving up`, `level=fatal msg="exiting" code=3`: the end, and no reason.
_ONLY_CLOSES = lazy_re(
    r"(?i)^(?:(?:\[[^\]\s]{1,60}\]:? )?(?:[^\s:]{1,80}(?: \d{1,7})?: ?){0,5}|"
    r"(?:.{0,400}[\s,{])?[\"']?(?:msg|message|event)[\"']? ?[=:] ?[\"'])"
    r"(?:giving up|gave up|refusing to start|cannot (?:continue|go on)|"
    r"(?:now )?(?:exit|abort|stopp|quitt|terminat)ing|leaving|shutting down|bailing out|bye)"
    r"(?: now)?(?:[\"'].*|\W{0,3})$"
)
# A launcher stops what is left.
_STOPS_PROCESS = lazy_re(
    r"\b(?:[Kk]illing|[Tt]erminating|[Ss]topping|Sending) (?:(?:the |all )?(?:remaining|other|left-?over) )?"
    r"(?:sub-?process|process|worker|rank|task)(?:es|s)?\b"
)
_LONGEST = 600
_DELIMITERS = "|;\t"
_TABLE_COLUMNS = 5
_SENTENCE_WORDS = 3


def goes_on(line: str) -> bool:
    """Whether the line says that the program goes on, or asks."""
    return _GOES_ON.search(_NO_SUCCESS.sub(" ", line[:_LONGEST])) is not None


def warns(line: str) -> bool:
    """Whether the line only warns."""
    return _WARNS.search(line[:_LONGEST]) is not None


def stops_process(line: str) -> bool:
    """Whether the line says that a launcher stops a process that is left: after a failure, and for each of them."""
    return _STOPS_PROCESS.search(line[:_LONGEST]) is not None


def only_closes(line: str) -> bool:
    """Whether the line only says that its writer ends."""
    return _ONLY_CLOSES.match(line) is not None


def find_failure_term(line: str) -> str:
    """Return the first term of failing that counts in a line without its prefix; empty if there is none."""
    text = _REMARK.sub("()", _QUOTED.sub(" ", line[:_LONGEST]))
    if goes_on(text) or warns(text):
        return ""
    for sentence in _list_sentences(text):
        if term := _find_term(sentence):
            return term
    symbol = _SYMBOL.match(text)
    return symbol.group().strip() if symbol else ""


def _list_sentences(text: str) -> list[str]:
    """Return the cells of a row that are sentences, or the whole line: a name in a table says nothing."""
    for delimiter in _DELIMITERS:
        if text.count(delimiter) >= _TABLE_COLUMNS:
            return [cell for cell in text.split(delimiter) if len(cell.split()) >= _SENTENCE_WORDS]
    return [text]


def _find_term(text: str) -> str:
    for match in (*_TERM.finditer(text), *_RAISED.finditer(text)):
        before, behind = text[max(0, match.start() - 40) : match.start()], text[match.end() : match.end() + 40]
        if match.groupdict().get("cjk"):
            if not (_CJK_NONE_BEFORE.search(before) or _CJK_NONE_BEHIND.match(behind)):
                return match["cjk"]
        elif not (
            _NEGATION.search(before)
            or _FORECAST.search(before)
            or _SETTING.search(before)
            or _ZERO.match(behind)
            or _RATE.match(behind)
        ):
            return match["term"]
    return ""
