"""Failures that no signature knows, gathered: fingerprints, assignment, suggestions, and patterns drawn from members."""

from __future__ import annotations

from triage.clusters.assign import Clusters, Known
from triage.clusters.fingerprint import fingerprint
from triage.clusters.model import Assignment, Fingerprint, Near

__all__ = ["Assignment", "Clusters", "Fingerprint", "Known", "Near", "fingerprint"]
