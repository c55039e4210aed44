"""Kubernetes: `kubectl://NAMESPACE/job/NAME`, by the program kubectl with your own credentials."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from triage.base.errors import InputError, OptionError
from triage.fetch.interface import Piece, SourceQuery
from triage.fetch.programs import run_program

# The label by which the pods of each kind of job are found.
LABELS: Mapping[str, str] = {
    "job": "job-name",
    "pytorchjob": "training.kubeflow.org/job-name",
    "mpijob": "training.kubeflow.org/job-name",
    "jobset": "jobset.sigs.k8s.io/jobset-name",
    "rayjob": "ray.io/cluster",
}


def fetch(query: SourceQuery) -> Iterator[Piece]:
    """Yield the description of the pods, and a file for each container, also for its run before a restart."""
    kind, _, name = query.path.partition("/")
    if kind not in LABELS or not name:
        raise OptionError(
            f"{query.path!r} names no job", hint=f"write kubectl://NAMESPACE/KIND/NAME; KIND is {', '.join(LABELS)}"
        )
    selector = query.parameters.get("selector") or f"{LABELS[kind]}={name}"
    context = ["--context", query.parameters["context"]] if query.parameters.get("context") else []
    kubectl = ["kubectl", *context, "--namespace", query.host]
    pods: Any = json.loads(run_program([*kubectl, "get", "pods", "--selector", selector, "--output", "json"]))
    if not pods.get("items"):
        raise InputError(
            f"namespace {query.host} has no pods with {selector}", hint="their logs went with them if the TTL is over"
        )
    yield _read("pods.txt", [*kubectl, "describe", "pods", "--selector", selector])
    for pod in pods["items"]:
        yield from _containers(kubectl, pod)


def _containers(kubectl: list[str], pod: Mapping[str, Any]) -> Iterator[Piece]:
    name, status = str(pod["metadata"]["name"]), pod.get("status") or {}
    for state in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        container = str(state["name"])
        command = [*kubectl, "logs", name, "--container", container, "--timestamps"]
        if state.get("restartCount"):
            yield _read(f"{name}-{container}-previous.log", [*command, "--previous"])
        yield _read(f"{name}-{container}.log", command)


def _read(name: str, command: list[str]) -> Piece:
    """Return the output of a command as a file, or why there is none: a container may not have started."""
    try:
        return Piece(name, run_program(command))
    except InputError as error:
        return Piece(name, "", error.message)
