"""Find the rank and the line where a multi-rank training job began to fail.

    import triage
    diagnosis = triage.ingest("job_logs/")
    print(diagnosis.verdict, diagnosis.root_cause)

docs/python.md is the page on it.

Importing this package is cheap: the stages are imported by the first call that needs them.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # what checkers take for typing.TYPE_CHECKING, without the time its import takes
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor
    from typing import Any

    from triage.api import incident, search, signature, similar
    from triage.model.diagnosis import Diagnosis, Explanation
    from triage.pipeline import Options, Progress

__version__ = "0.1.0"
__all__ = [
    "Diagnosis",
    "Options",
    "Progress",
    "TriageError",
    "__version__",
    "explain",
    "incident",
    "ingest",
    "search",
    "signature",
    "similar",
]

_LAZY = {
    "Diagnosis": "triage.model.diagnosis",
    "Options": "triage.pipeline",
    "Progress": "triage.pipeline",
    "TriageError": "triage.base.errors",
    "incident": "triage.api",
    "search": "triage.api",
    "signature": "triage.api",
    "similar": "triage.api",
}


def ingest(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    options: Options | None = None,
    progress: Callable[[Progress], None] | None = None,
    *,
    store: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
) -> Diagnosis:
    """Diagnose one job from the files, directories or archives it left behind.

    Several paths are one job. With `store`, the file of a store, the diagnosis is kept there. `executor` does the long
    work elsewhere, like `Client.get_executor()` of Dask; its workers have triage and open the same paths. Raises
    `TriageError` when the paths cannot be used at all; a damaged file inside a readable job is a warning of the
    diagnosis.
    """
    from triage import pipeline

    chosen = options or pipeline.Options()
    if executor is not None:
        from dataclasses import replace

        from triage.base.executor_work import ExecutorWorkers

        chosen = replace(chosen, cluster=ExecutorWorkers(executor))
    diagnosis = pipeline.ingest(_names(paths), chosen, progress)
    if store is None:
        return diagnosis
    from triage import api

    return api.remember(diagnosis, store)


def explain(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], signature_id: str, options: Options | None = None
) -> Explanation:
    """Say why the signature did or did not decide about this job."""
    from triage import pipeline

    return pipeline.explain(_names(paths), signature_id, options or pipeline.Options())


def _names(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    return [os.fspath(path) for path in paths]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'triage' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
