"""Near neighbours: functions that raise several sentences, some of which a release words anew (`neighbours.toml`)."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from triage.model.evidence import Evidence, Origin

FILE = Path(__file__).with_name("neighbours.toml")
RELEASES = FILE.with_name("releases.toml")
"""Sentences of two releases, written before the rules for them were; none is set aside."""
ONE_FUNCTION = FILE.with_name("one_function.toml")
"""Causes in one sentence each, in similar words."""


@dataclass(frozen=True)
class Sentence:
    """What one function raises in one release; `cause` has the place and the number of the cause."""

    cause: str
    place: str
    type: str
    text: str

    @property
    def is_set_aside(self) -> bool:
        """Whether nobody looks at it while rules are written. Half of the functions, by their places."""
        return hashlib.sha256(self.place.encode()).digest()[0] % 2 == 0

    def fact(self) -> Evidence:
        """Return the exception as it is extracted from a traceback."""
        file, _, function = self.place.partition(":")
        name = self.type.rpartition(".")[2]
        fields = {"type": name, "file": f"/job/{file}", "function": function, "code": f"raise {name}("}
        text = f"{self.type}: {self.text}"
        return Evidence("exception", "Python", text, Origin(), "x.log", 0, fields={**fields, "message": self.text})


@cache
def sentences(path: Path = FILE) -> tuple[Sentence, ...]:
    """Return all sentences, in the order of the file."""
    return tuple(_read(tomllib.loads(path.read_text(encoding="utf-8"))["function"]))


def _read(functions: list[dict[str, object]]) -> Iterator[Sentence]:
    for one in functions:
        for number, wordings in enumerate(one["causes"]):  # type: ignore[arg-type, var-annotated]
            for text in wordings:
                yield Sentence(f"{one['place']} {number}", str(one["place"]), str(one["type"]), text)
