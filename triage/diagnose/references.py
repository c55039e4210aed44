"""Errors that say only that another line has the reason: the exceptions of torch_npu and MindSpore around CANN's, and
those of programs that wait for others (`worker group failed, see the root cause above`).
"""

from __future__ import annotations

from triage.base.lazy_re import lazy_re
from triage.model import EndingDetail, Evidence

_REASON = r"(?:causes?|errors?|exceptions?|tracebacks?|stack ?traces?|reasons?)"
_REFERENCE = lazy_re(
    rf"(?i)\b(?:see|check|inspect|look (?:at|for)|refer to|find)\b[^.\n]{{0,40}}\b{_REASON}\b[^.\n]{{0,20}}\babove\b"
    rf"|\babove for\b[^.\n]{{0,20}}\b{_REASON}\b"
    rf"|\b(?:see|check|inspect|look at|refer to) the (?:above|previous|earlier|preceding) {_REASON}\b"
    r"|\binner error is reported as above|\bdetails refer to ['\"]?ascend error message"
    r"|\brectify the fault based on the error information in the (?:ascend )?log"
)
_LONGEST_TEXT = 1000


def states_exception(fact: Evidence) -> bool:
    """Whether a fact is an exception, or the last lines of a writer that state one."""
    return fact.kind == "exception" or (isinstance(fact.detail, EndingDetail) and fact.detail.form == "exception")


def is_reference(fact: Evidence) -> bool:
    """Whether an exception refers to another line for its reason."""
    return states_exception(fact) and _REFERENCE.search(fact.text[:_LONGEST_TEXT]) is not None
