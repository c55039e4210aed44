"""Extract only the sources that changed since an earlier run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from triage.model.evidence import Source

T = TypeVar("T")


class EarlierExtractions(Protocol[T]):
    """What sources gave in an earlier run, by their path. `conditions` are all that it depends on besides the bytes."""

    def find_extracted(self, path: str | None, conditions: str) -> T | None:
        """Return it if the file did not change."""

    def add_extracted(self, path: str | None, conditions: str, extracted: T) -> None:
        """Remember it for the next run."""


def with_earlier(
    earlier: EarlierExtractions[T] | None,
    sources: Sequence[Source],
    shared: Sequence[object],
    extract: Callable[[Sequence[int]], Iterator[T]],
) -> Iterator[T]:
    """Yield what each source gives, in order: from an earlier run, or as `extract` returns it for numbers of sources.

    `shared` are the conditions that all sources have in common.
    """
    if earlier is None:
        yield from extract(range(len(sources)))
        return
    conditions = [json.dumps([source.name, *shared]) for source in sources]
    known = [
        earlier.find_extracted(source.path, condition) for source, condition in zip(sources, conditions, strict=True)
    ]
    new = extract([number for number, extracted in enumerate(known) if extracted is None])
    for source, condition, extracted in zip(sources, conditions, known, strict=True):
        if extracted is None:
            extracted = next(new)
            earlier.add_extracted(source.path, condition, extracted)
        yield extracted
