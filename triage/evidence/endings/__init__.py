"""Endings: what any program prints when it dies, recognised by the form of its last lines and by their unlikeness.

FORMS is the ordered list of forms, one module per family. They are tried only on the last lines of each writer.
"""

from __future__ import annotations

from triage.evidence.endings import (
    language_forms,
    launcher_forms,
    library_forms,
    native_forms,
    python_forms,
    status_forms,
)
from triage.evidence.endings.interface import Form

FORMS: tuple[Form, ...] = (
    *native_forms.FORMS,
    *python_forms.FORMS,
    *language_forms.FORMS,
    *library_forms.FORMS,
    *launcher_forms.FORMS,
    *status_forms.FORMS,
)

__all__ = ["FORMS", "Form"]
