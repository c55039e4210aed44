"""Sort the files of a job: logs go to the scan, artifacts are set apart, programs and documents are skipped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from triage import artifacts, sources
from triage.artifacts.interface import Artifact, StreamReader
from triage.base.errors import InputError
from triage.base.lazy_re import lazy_re
from triage.model.evidence import Source, Warning
from triage.scan.interface import ScanResult
from triage.sources.interface import source_in_place

_LEADING_PREFIX = lazy_re(rb"\[[A-Za-z_.-]*:?\d+\]:(?: ?\[rank\d+\]:)?")
_WRITER_MARKS = lazy_re(
    rb"\[[A-Za-z_.-]*:?\d+\]:|\[rank\d+\]|^ *\d+: |\[\d+,\d+\]|[Rr]ank:? ?\d+|\(?pid[:= ]+\d+"
    rb"|:\d+:\d+ \[\d+\]|process \d+|PCI:[\da-f:.]+"
)


# Programs, settings and documents quote failures that did not happen: `raise RuntimeError("CUDA out of memory")`.
_NOT_OUTPUT = lazy_re(
    r"\.(?:py|pyi|ipynb|c|cc|cpp|cxx|cu|cuh|h|hpp|go|rs|java|js|ts|css|html?"
    r"|sh|bash|ya?ml|toml|ini|cfg|md|rst|tex|diff|patch)$",
    re.I,
)
_IN_EVERY_SHELL = (b"PATH=", b"PWD=")  # what every shell has in its environment
_COLLECTION_REPORT = "!/COLLECTED.md"
_NOT_COLLECTED = lazy_re(r"- \S*/(?P<piece>[^\s/]+): (?P<why>.+)")
_MOST_NAMED = 5
_EDGE_BYTES = 1 << 16


def writer_key(line: bytes) -> bytes:
    """Return the part of a line that differs between writers; a storm keeps some lines of each. Must be cheap."""
    prefix = _LEADING_PREFIX.match(line)
    return prefix.group() if prefix else b"\0".join(_WRITER_MARKS.findall(line)[:3])


@dataclass(frozen=True, slots=True)
class _Container:
    """One file for the scan."""

    file: sources.File
    intake: Intake
    plain: Source | None

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def size(self) -> int:
        return self.file.size

    def streams(self) -> Iterator[tuple[Source, BinaryIO | None]]:
        for source, stream in sources.streams(self.file, sources.Limits(), self.intake.warnings.append):
            if source.name.endswith(_COLLECTION_REPORT) and stream is not None:
                report = stream.read(_EDGE_BYTES).decode("utf-8", "replace")
                self.intake.warnings.extend(warnings_of_collection(report, source.name))
                continue
            content = _content(source, stream) if source.kind not in ("text", "empty") else None
            if self.intake.skip(source.name, content):
                continue
            if source.kind == "text" and stream is not None:
                yield source, stream
            elif content is not None:
                self.intake.artifacts.append(content)
                yield source, None


def warnings_of_collection(text: str, name: str) -> list[Warning]:
    """Return a warning for each piece that `triage collect` could not get; a node without nvidia-smi lacks nothing."""
    reasons: Counter[tuple[str, str]] = Counter()
    for line in text.partition("\n# What it could not get\n")[2].splitlines():
        match = _NOT_COLLECTED.fullmatch(line)
        if match is not None and not match["why"].endswith(("-smi is not installed", "since the processes began")):
            reasons[match["piece"], match["why"]] += 1
    warnings = []
    for (piece, why), count in sorted(reasons.items())[:_MOST_NAMED]:
        processes = f" of {count} processes" if count > 1 else ""
        warnings.append(Warning("not-collected", name, f"`triage collect` could not get {piece}{processes}: {why}"))
    return warnings


class Intake:
    """The files of a job, sorted into logs, artifacts and what is skipped.

    `artifacts` and `warnings` fill up while the scan reads the containers.
    """

    def __init__(self, files: Sequence[sources.File], paths: Sequence[str] = ()) -> None:
        self._named_by_user = frozenset(paths)
        self.warnings: list[Warning] = []
        self.artifacts: list[Artifact] = []
        self._skipped: set[str] = set()
        self.files = [file for file in files if file.kind == "environment" or not self.skip(file.name)]
        if self._skipped and all(file.kind in ("empty", "binary", "elf") for file in self.files):
            hint = "Give the directory that holds the job's stdout and stderr, or name one of these files."
            raise InputError(
                "only programs, settings or documents here, no logs", hint=hint, path=", ".join(paths[:3]) or None
            )

    def containers(self) -> list[_Container]:
        """Return one container for each file, to be scanned."""
        return [_Container(file, self, source_in_place(file) if file.kind == "text" else None) for file in self.files]

    def skip(self, name: str, content: Artifact | None = None) -> bool:
        """Skip a file that people write, not jobs, by its name, and return whether it is skipped.

        A path that the user named is read whatever it is, and so is a whole environment (`export -p > env.sh`).
        """
        if name in self._named_by_user or _NOT_OUTPUT.search(name.removesuffix(".gz")) is None:
            return False
        if content is not None and _is_whole_environment(content):
            return False
        self._skipped.add(name)
        return True

    def all_warnings(self) -> list[Warning]:
        """Return the warnings once everything is read, with one for all skipped files."""
        if not self._skipped:
            return self.warnings
        first = ", ".join(sorted(self._skipped)[:_MOST_NAMED])
        left_out = len(self._skipped) - _MOST_NAMED
        more = f" and {left_out} more" if left_out > 0 else ""
        message = (
            f"skipped, because programs, settings and documents are not logs: {first}{more}; name a file to read it"
        )
        return [*self.warnings, Warning("no-output", None, message)]

    def warn_unreadable(self, name: str, error: OSError) -> None:
        """Warn that a file could not be read to its end."""
        self.warnings.append(Warning("unreadable", name, f"could not be read to its end: {error.strerror or error}"))

    def identity(self, scanned: Sequence[tuple[Source, ScanResult]]) -> list[str]:
        """Return what makes a job the same job: sizes and edges of its texts, whatever the files are called."""
        texts = [f"{scan.size} {hash_of(scan.head)} {hash_of(scan.tail)}" for _, scan in scanned]
        return sorted(texts + [hash_of(artifact.data[:_EDGE_BYTES]) for artifact in self.artifacts])


def _is_whole_environment(content: Artifact) -> bool:
    return content.source.kind == "environment" and all(variable in content.data for variable in _IN_EVERY_SHELL)


def hash_of(data: bytes) -> str:
    """Return 16 hexadecimal digits of the SHA-256 of the data."""
    import hashlib

    return hashlib.sha256(data).hexdigest()[:16]


def _content(source: Source, stream: BinaryIO | None) -> Artifact:
    reader = artifacts.find_reader(source)
    if reader is None:
        return Artifact(source, b"")
    if stream is not None and isinstance(reader, StreamReader):
        return reader.read_stream(source, stream)
    if stream is not None:
        return Artifact(source, stream.read(reader.max_bytes))
    most = min(reader.max_bytes, _EDGE_BYTES) if getattr(reader, "reads_in_place", False) else reader.max_bytes
    with open(source.path or "", "rb") as file:
        return Artifact(source, file.read(most))
