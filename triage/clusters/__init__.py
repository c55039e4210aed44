"""Clusters of failures that no signature knows: fingerprints, assignment, merge suggestions, patterns of members.

`diagnose` uses it to name the cluster of an unknown failure.
"""

from __future__ import annotations

from triage.clusters.assign import Clusters
from triage.clusters.fingerprint import fingerprint, name_cluster
from triage.clusters.known_key import KnownKey
from triage.clusters.model import Assignment, NearestCluster

__all__ = ["Assignment", "Clusters", "KnownKey", "NearestCluster", "fingerprint", "name_cluster"]
