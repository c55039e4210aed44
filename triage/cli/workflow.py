"""Write the files of a GitHub workflow step: GITHUB_STEP_SUMMARY and GITHUB_OUTPUT.

Both are appended to, because other commands of the step may have written there. GitHub drops a summary above 1 MiB as a
whole.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from triage.base.errors import OptionError
from triage.model.diagnosis import Diagnosis
from triage.render import github
from triage.render.phrases import headline
from triage.render.sanitize import sanitize_line


def write_workflow_files(diagnosis: Diagnosis, link: str = "") -> None:
    """Write the summary and the outputs `verdict`, `signature`, `title`, `ranks`, `hosts`; nothing elsewhere."""
    summary, outputs = os.environ.get("GITHUB_STEP_SUMMARY"), os.environ.get("GITHUB_OUTPUT")
    if summary:
        room = github.SUMMARY - _file_size(summary) - 1
        if room > 1000:
            _append(summary, github.summary(diagnosis, link=link, limit=room))
    if outputs:
        _append(outputs, "".join(_format_output(name, value) for name, value in output_values(diagnosis).items()))


def output_values(diagnosis: Diagnosis) -> dict[str, str]:
    """Return the outputs for later steps, each on one line."""
    root = diagnosis.root_cause
    return {
        "verdict": diagnosis.verdict,
        "signature": (root.signature or root.cluster or "") if root is not None else "",
        "title": sanitize_line(headline(diagnosis)),
        "ranks": ",".join(map(str, root.ranks)) if root is not None else "",
        "hosts": ",".join(map(sanitize_line, root.hosts)) if root is not None else "",
    }


def _format_output(name: str, value: str) -> str:
    """Return one output with a random delimiter, so that no log text can set another output."""
    delimiter = f"triage-{secrets.token_hex(8)}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def _file_size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _append(path: str, text: str) -> None:
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise OptionError(
            f"cannot write {path}: {error.strerror}",
            hint="GITHUB_STEP_SUMMARY or GITHUB_OUTPUT names this file; unset it",
        ) from None
