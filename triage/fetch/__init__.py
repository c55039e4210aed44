"""Fetch the logs of a job from log stores, Kubernetes, Slurm and W&B into files, which every other command reads.

Each source yields pieces of text with the name of the file that they belong to; `save` writes them below a directory.
"""

from __future__ import annotations

from triage.fetch.interface import Piece, Source, SourceQuery
from triage.fetch.save import FetchedFiles, save

__all__ = ["SOURCES", "FetchedFiles", "Piece", "Source", "SourceQuery", "find_source", "save"]

# Scheme of the address, module with a function `fetch`.
SOURCES = (
    ("loki", "loki"),
    ("loki+http", "loki"),
    ("elasticsearch", "elasticsearch"),
    ("elasticsearch+http", "elasticsearch"),
    ("opensearch", "elasticsearch"),
    ("opensearch+http", "elasticsearch"),
    ("cloudwatch", "cloudwatch"),
    ("kubectl", "kubectl"),
    ("slurm", "slurm"),
    ("wandb", "wandb"),
    ("wandb+http", "wandb"),
)


def find_source(scheme: str) -> Source | None:
    """Return the source of a scheme, or None."""
    import importlib

    module = dict(SOURCES).get(scheme)
    fetch: Source | None = importlib.import_module(f"triage.fetch.{module}").fetch if module else None
    return fetch
