"""Failures that no signature knows, gathered: fingerprints, assignment, suggestions, and patterns drawn from members.

It stands left of `diagnose`, which names the cluster of a failure that it cannot explain.
"""

from __future__ import annotations

from triage.clusters.assign import Clusters, Known
from triage.clusters.fingerprint import fingerprint, name
from triage.clusters.model import Assignment, Near

__all__ = ["Assignment", "Clusters", "Known", "Near", "fingerprint", "name"]
