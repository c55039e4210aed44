"""Errors that say only that another line has the reason: the exceptions of torch_npu and MindSpore around CANN's."""

from __future__ import annotations

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Evidence

_REFERENCE = lazy_re(
    r"(?i)\binner error is reported as above|\bdetails refer to ['\"]?ascend error message"
    r"|\brectify the fault based on the error information in the (?:ascend )?log"
)
_LONGEST_TEXT = 1000


def is_reference(fact: Evidence) -> bool:
    """Whether an exception refers to another line for its reason."""
    return fact.kind == "exception" and _REFERENCE.search(fact.text[:_LONGEST_TEXT]) is not None
