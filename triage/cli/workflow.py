"""The files by which a step of a GitHub workflow tells more than its output: GITHUB_STEP_SUMMARY and GITHUB_OUTPUT.

Both are appended to, for other commands of the step may have written there; a summary above 1 MiB would be dropped
whole, with theirs.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from triage.base.errors import OptionError

if TYPE_CHECKING:
    from triage.model.diagnosis import Diagnosis


def tell(diagnosis: Diagnosis, link: str = "") -> None:
    """Write the summary and the outputs `verdict`, `signature`, `title`, `ranks` and `hosts`; outside of a workflow
    nothing.
    """
    from triage.render import github

    summary, outputs = os.environ.get("GITHUB_STEP_SUMMARY"), os.environ.get("GITHUB_OUTPUT")
    if summary:
        room = github.SUMMARY - _size(summary) - 1
        if room > 1000:
            _append(summary, github.summary(diagnosis, link=link, limit=room))
    if outputs:
        _append(outputs, "".join(_output(name, value) for name, value in values(diagnosis).items()))


def values(diagnosis: Diagnosis) -> dict[str, str]:
    """What later steps may want to ask for, each on one line."""
    from triage.render.safe import safe_line
    from triage.render.words import headline

    root = diagnosis.root_cause
    return {
        "verdict": diagnosis.verdict,
        "signature": (root.signature or root.cluster or "") if root is not None else "",
        "title": safe_line(headline(diagnosis)),
        "ranks": ",".join(map(str, root.ranks)) if root is not None else "",
        "hosts": ",".join(map(safe_line, root.hosts)) if root is not None else "",
    }


def _output(name: str, value: str) -> str:
    """With a delimiter that nobody can guess, so that no text of a log sets another output."""
    mark = f"triage-{secrets.token_hex(8)}"
    return f"{name}<<{mark}\n{value}\n{mark}\n"


def _size(path: str) -> int:
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
            hint="it is named by GITHUB_STEP_SUMMARY or GITHUB_OUTPUT; unset it",
        ) from None
