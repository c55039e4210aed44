"""Shared by the tests of the catalog: a signature file as text, and evidence without a log."""

from __future__ import annotations

from pathlib import Path

from triage.catalog import read
from triage.catalog.model import Signature
from triage.catalog.problems import Problem
from triage.model.evidence import Evidence, Origin

GLOO = r"""
id: gloo.peer-closed
revision: 1
title: A peer closed its connection
status: stable
role: symptom
severity: error
match:
  any:
    - text: 'gloo/transport.*Connection closed by peer \[(?P<peer>[^\]]+)\]'
    - text: 'Read error \[(?P<peer>[^\]]+)\](:\d+)?: Connection reset by peer'
  none:
    - text: 'during shutdown'
meaning: The other side left.
remediation:
  action: fix-code
  summary: Another rank has left. Look at the rank behind {peer} first.
samples:
  match:
    - {text: "gloo/transport/tcp/pair.cc:534 Connection closed by peer [10.0.0.1:29]", captures: {peer: "10.0.0.1:29"}}
  no_match:
    - {text: "Connection closed by localRank 1", why: NCCL says so when it is torn down}
"""


def evidence(text: str, kind: str = "message", component: str = "", **fields: str) -> Evidence:
    """Evidence without a log."""
    return Evidence(kind, component, text, Origin(), "test.log", 0, fields=fields)


def to_evidence(text: str) -> list[Evidence]:
    """A stand-in for the extractors: the whole text is one message."""
    return [evidence(text)]


def parse_signature(text: str, name: str) -> tuple[Signature | None, list[Problem]]:
    """Parse the text of a file called `name` that has one signature (None if it is unusable), and all its errors."""
    signatures, problems = read.parse_signatures(text, name)
    return next(iter(signatures), None), problems


def signature(match: str, identifier: str = "test.case", **keys: str) -> Signature:
    """A signature with this YAML as `match`, read like a file."""
    lines = [f"id: {identifier}", "revision: 1", "title: A case", "role: either", "severity: error"]
    lines += [
        f"status: {keys.pop('status', 'stable')}",
        "match:",
        *("  " + line for line in match.strip("\n").splitlines()),
    ]
    lines += [f"{key}: {value}" for key, value in keys.items()]
    parsed, problems = parse_signature("\n".join(lines), f"{identifier}.yaml")
    assert parsed is not None, problems
    return parsed


def write(root: Path, identifier: str = "gloo.peer-closed", text: str = GLOO) -> Path:
    """Write the file of a signature at its path below `root`."""
    domain, slug = identifier.split(".")
    path = root / domain / f"{slug}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace("gloo.peer-closed", identifier, 1), encoding="utf-8")
    return path


def shipped(root: Path, version: str = "2026.11.1", healthy: str = "step 1 loss 2\n") -> Path:
    """Make an empty directory of shipped signatures."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "catalog.yaml").write_text(f"version: {version}\n", encoding="utf-8")
    (root / "healthy.txt").write_text(healthy, encoding="utf-8")
    return root
