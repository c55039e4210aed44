"""Collect what a diagnosis needs on a node while the job hangs: limited in time and size, without secrets."""

from triage.collect.bundle import CollectedBundle, collect

__all__ = ["CollectedBundle", "collect"]
