"""Parse a multipart/form-data upload as it comes: files go to disk, counted and hashed, never into memory."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from python_multipart import MultipartParser
from python_multipart.multipart import parse_options_header

from triage.service.errors import ServiceError
from triage.service.work import job_files
from triage.settings.sections import TaskSettings

MAX_FIELD_BYTES = 1000
MAX_PART_HEADER_BYTES = 8 << 10
FORM_OVERHEAD_BYTES = 1 << 20  # headers, boundaries and text fields
MAX_TEXT_FIELDS = 20
CLOSE = {"Connection": "close"}


@dataclass(slots=True)
class Part:
    """One part of the form, also while it comes."""

    header_name: str = ""
    header_value: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    header_bytes: int = 0
    name: str = ""
    filename: str | None = None
    text: bytearray = field(default_factory=bytearray)
    path: Path | None = None
    file: BinaryIO | None = None
    hash: Any = None
    bytes: int = 0


class MultipartUpload:
    """A form that is fed piece by piece. Raises ServiceError for an invalid, too large or too long form."""

    def __init__(self, tasks: TaskSettings, directory: Path, content_type: str) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary or len(boundary) > 200:
            raise ServiceError(415, "the body is not multipart/form-data", hint="send files as fields named `file`")
        self.files: list[Part] = []
        self.fields: dict[str, str] = {}
        self._limits = tasks
        self._directory = directory
        self._part = Part()
        self._part_count = 0
        self._bytes = 0
        self._has_ended = False
        callbacks: Any = {
            "on_part_begin": self._on_part_begin,
            "on_header_field": self._on_header_field,
            "on_header_value": self._on_header_value,
            "on_header_end": self._on_header_end,
            "on_headers_finished": self._on_headers_finished,
            "on_part_data": self._on_part_data,
            "on_part_end": self._on_part_end,
            "on_end": self._on_end,
        }
        self._parser = MultipartParser(boundary, callbacks)

    def feed(self, data: bytes) -> None:
        """Parse more of the body."""
        self._bytes += len(data)
        if self._bytes > self._limits.upload_bytes + FORM_OVERHEAD_BYTES:
            raise upload_too_large(self._limits)
        try:
            self._parser.write(data)
        except ValueError as error:
            raise ServiceError(400, f"the body is not multipart/form-data: {error}"[:300]) from None

    def close(self) -> None:
        """Raise ServiceError unless the form is complete."""
        if not self._has_ended:
            raise ServiceError(400, "the form is incomplete", hint="send it again")

    def delete_files(self) -> None:
        """Delete what came so far."""
        for part in (*self.files, self._part):
            if part.file is not None:
                part.file.close()
            if part.path is not None:
                part.path.unlink(missing_ok=True)

    def _on_part_begin(self) -> None:
        self._part = Part()
        self._part_count += 1
        if self._part_count > self._limits.upload_files + MAX_TEXT_FIELDS:
            raise ServiceError(413, f"an upload may have at most {self._limits.upload_files} files", headers=CLOSE)

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._part.header_name += data[start:end].decode("latin-1")
        self._count_header_bytes(end - start)

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._part.header_value += data[start:end].decode("latin-1")
        self._count_header_bytes(end - start)

    def _count_header_bytes(self, count: int) -> None:
        self._part.header_bytes += count
        if self._part.header_bytes > MAX_PART_HEADER_BYTES:
            raise ServiceError(400, "the headers of a part are too large")

    def _on_header_end(self) -> None:
        part = self._part
        part.headers[part.header_name.lower()] = part.header_value
        part.header_name = part.header_value = ""

    def _on_headers_finished(self) -> None:
        part = self._part
        _, options = parse_options_header(part.headers.get("content-disposition", ""))
        part.name = options.get(b"name", b"").decode("utf-8", "replace")
        if b"filename" in options:
            part.filename = options[b"filename"].decode("utf-8", "replace")
            part.path = job_files.partial_path(self._directory, f"form-{secrets.token_hex(12)}")
            part.file = open(part.path, "xb")  # noqa: SIM115 - closed when the part ends, or by delete_files
            part.hash = hashlib.sha256()

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        part, piece = self._part, data[start:end]
        if part.file is None:
            part.text += piece
            if len(part.text) > MAX_FIELD_BYTES:
                raise ServiceError(422, f"a text field may have at most {MAX_FIELD_BYTES} bytes", headers=CLOSE)
            return
        part.bytes += len(piece)
        if part.bytes > self._limits.upload_bytes:
            raise upload_too_large(self._limits)
        part.file.write(piece)
        part.hash.update(piece)

    def _on_part_end(self) -> None:
        part, self._part = self._part, Part()
        if part.file is not None:
            part.file.close()
            self.files.append(part)
        elif part.name in self.fields:
            raise ServiceError(422, "the form has a field twice")
        else:
            self.fields[part.name[:100]] = part.text.decode("utf-8", "replace")

    def _on_end(self) -> None:
        self._has_ended = True


def upload_too_large(limits: TaskSettings) -> ServiceError:
    """Return the error for an upload above the limit."""
    return ServiceError(413, f"an upload may have at most {limits.upload_bytes} bytes", headers=CLOSE)
