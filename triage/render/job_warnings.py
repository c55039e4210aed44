"""The warnings of a report, without repetitions."""

from __future__ import annotations

from triage.base.lazy_re import lazy_re
from triage.model import Diagnosis
from triage.render import phrases

_HANDLED = lazy_re(r"(?s)(.*) (did not end the job\b.*)")  # a warning about a failure that was handled


def merge_warnings(diagnosis: Diagnosis) -> list[tuple[list[str], str, str]]:
    """Return (sources, message, code): equal warnings about several sources share an entry.

    Handled failures with the same reason share an entry. Silent ranks are left out if the timeline shows them.
    """
    in_timeline = any(phrases.is_last_line_text(what) for _, _, what in phrases.merge_moments(diagnosis))
    merged: dict[tuple[str, str], tuple[list[str], dict[str, None]]] = {}
    for item in diagnosis.warnings:
        if item.code == "fell-silent" and in_timeline:
            continue
        failure, reason = match.groups() if (match := _HANDLED.fullmatch(item.message)) else ("", item.message)
        sources, failures = merged.setdefault((reason, item.code), ([], {}))
        failures[failure] = None
        source = phrases.relative_source(item.source, diagnosis) if item.source is not None else None
        if source is not None and source not in sources:
            sources.append(source)
    return [
        (sources, f"{phrases.shorten_list(list(failures), most=1)} {text}".strip(), code)
        for (text, code), (sources, failures) in merged.items()
    ]
