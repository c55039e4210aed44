"""Thousands of small jobs in one process: what follows from the shipped catalog alone is built once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from triage import evidence
from triage.base.options import Options
from triage.catalog import near_misses
from triage.catalog.load import load
from triage.catalog.match import Matcher
from triage.diagnose import reason
from triage.pipeline import stages
from triage.scan import run

# Small jobs: compiling the literals for Hyperscan takes longer than all the rest. Both engines find the same lines.
OPTIONS = Options(engine="re2")


@contextmanager
def share_catalog() -> Iterator[None]:
    """Load the catalog, and build the indexes of its signatures, at the first job only."""
    load_once = functools.cache(lambda paths, strict: load(paths, strict=strict, with_samples=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "load", lambda paths, strict=True, **_: load_once(tuple(paths), strict))
        patch.setattr(evidence, "scan_literals", functools.cache(evidence.scan_literals))
        patch.setattr(run, "build", functools.cache(run.build))
        patch.setattr(reason, "find_matcher", _once_for_each(Matcher))
        patch.setattr(near_misses, "find_index", _once_for_each(near_misses.NearMissIndex))
        yield


def _once_for_each(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return `build` of a catalog or its signatures, called once for the same signatures.

    A job that states versions has a catalog of its own, but its signatures are those of the shipped one.
    """
    results: dict[tuple[int, ...], tuple[Any, Any]] = {}

    def build_once(argument: Any) -> Any:
        key = tuple(map(id, getattr(argument, "signatures", argument)))
        if key not in results:
            results[key] = (argument, build(argument))  # with the argument, so that the ids stay taken
        return results[key][1]

    return build_once
