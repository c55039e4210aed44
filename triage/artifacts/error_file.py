"""torchelastic's error.json, written by `@record` in the process that raised.

`{"message": {"message": "Type: text", "extraInfo": {"py_callstack": "Traceback …", "timestamp": "1795230487"}}}`
(torch/distributed/elastic/multiprocessing/errors/error_handler.py); older versions store a plain string in `message`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from triage import evidence
from triage.artifacts.interface import Artifact, ArtifactError, ReadResult, damaged_warning
from triage.model.evidence import Evidence


class ErrorFile:
    """Reads error files of torchelastic."""

    max_bytes = 1 << 22

    def read(self, artifacts: Sequence[Artifact]) -> ReadResult:
        """Return the exceptions of all files, and a warning for each that cannot be read."""
        result = ReadResult([], [])
        for artifact in artifacts:
            try:
                result.evidence.extend(extract_exceptions(artifact))
            except ArtifactError as error:
                result.warnings.append(damaged_warning(artifact.source, error))
        return result


def extract_exceptions(artifact: Artifact) -> list[Evidence]:
    """Return the exceptions of one error file. Raises ArtifactError for other files."""
    try:
        message: Any = json.loads(artifact.data)["message"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArtifactError(
            f"not a readable torchelastic error file ({type(error).__name__})", hint="look at the file itself"
        ) from error
    details = message.get("extraInfo", {}) if isinstance(message, dict) else {}
    details = details if isinstance(details, dict) else {}
    text = message.get("message", "") if isinstance(message, dict) else message
    stack = str(details.get("py_callstack") or text)
    time = _number(details.get("timestamp"))
    return [
        dataclasses.replace(
            fact,
            source=artifact.source.name,
            offset=0,
            end=len(artifact.data),
            origin=dataclasses.replace(fact.origin, time=time),
        )
        for fact in evidence.extract_text(stack)
        if fact.kind == "exception"
    ]


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if 0 <= number < 1 << 40 else None  # also false for nan
