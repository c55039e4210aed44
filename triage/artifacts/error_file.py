"""torchelastic's error.json, written by `@record` in the process that raised.

`{"message": {"message": "Type: text", "extraInfo": {"py_callstack": "Traceback …", "timestamp": "1795230487"}}}`
(torch/distributed/elastic/multiprocessing/errors/error_handler.py); older versions store a plain string in `message`.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from triage import evidence
from triage.artifacts.interface import ArtifactError
from triage.model import Evidence, Source, SourceKind


class ErrorFile:
    kind: SourceKind = "error-file"
    max_bytes = 1 << 22

    def read(self, source: Source, data: bytes) -> list[Evidence]:
        try:
            message: Any = json.loads(data)["message"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ArtifactError(
                f"not a readable torchelastic error file ({type(error).__name__})", hint="look at the file itself"
            ) from error
        details = message.get("extraInfo", {}) if isinstance(message, dict) else {}
        details = details if isinstance(details, dict) else {}
        text = message.get("message", "") if isinstance(message, dict) else message
        stack = str(details.get("py_callstack") or text)
        return [
            dataclasses.replace(
                fact,
                source=source.name,
                offset=0,
                end=len(data),
                origin=dataclasses.replace(fact.origin, time=_number(details.get("timestamp"))),
            )
            for fact in evidence.from_text(stack)
            if fact.kind == "exception"
        ]


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if 0 <= number < 1 << 40 else None  # also false for nan
