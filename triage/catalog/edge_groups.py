"""Groups of edges for `leads_to`: effects that many signatures share, written once in `groups.yaml`.

The file lies in the directory of a catalog. A file of signatures knows the groups of its own directory; in a directory
that is not a complete catalog, also the shipped ones. `leads_to: [{group: peer-loss, scope: other-ranks}]` stands for
an edge to each member.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from triage.catalog import yaml_document
from triage.catalog.model import CausalEdge
from triage.catalog.problems import Problem
from triage.catalog.schema import GROUP, Edge, Id, Scope, Strict, parse_window
from triage.catalog.signature_files import ABOUT, GROUPS, find_shipped_directory
from triage.catalog.yaml_document import YamlDocument


class Member(Strict):
    """An effect of a group. Its own scope, if it has one, is stronger than the scope of the use."""

    signature: Id
    scope: Scope | None = None


class GroupsFile(Strict):
    """Groups of edges by name."""

    groups: dict[Annotated[str, Field(pattern=GROUP)], list[Member]]


Groups = Mapping[str, Sequence[Member]]


def find_groups(path: str | Path) -> Groups:
    """The groups that the signature file at this path may use."""
    home = Path(path).absolute().parent.parent
    own = read_groups(home / GROUPS)[0]
    shipped = find_shipped_directory()
    if shipped is None or shipped == home or (home / ABOUT).is_file():
        return own
    return {**read_groups(shipped / GROUPS)[0], **own}


def expand_edges(edges: Iterable[Edge], groups: Groups, owner: str = "") -> tuple[CausalEdge, ...]:
    """The edges of a file as they are in the catalog: groups expanded in place, windows in seconds.

    An edge that is written out is stronger than a member of a group, and an earlier group is stronger than a later one.
    The member that is the owner itself is left out. So are unknown groups; `list_unknown_groups` names them.
    """
    edges = list(edges)
    written = {owner, *(edge.signature for edge in edges if edge.signature is not None)}
    expanded: list[CausalEdge] = []
    for edge in edges:
        window = parse_window(edge.window)
        if edge.signature is not None:
            expanded.append(CausalEdge(edge.signature, edge.scope or "any-rank", window))
            continue
        for member in groups.get(edge.group or "", ()):
            if member.signature not in written:
                written.add(member.signature)
                expanded.append(CausalEdge(member.signature, member.scope or edge.scope or "any-rank", window))
    return tuple(expanded)


def list_unknown_groups(edges: Sequence[Edge], groups: Groups) -> list[tuple[int, str, str]]:
    """(index, message, hint) of each edge to a group that does not exist."""
    hint = f"one of {', '.join(sorted(groups))}" if groups else f"define it in {GROUPS} of the catalog's directory"
    return [
        (index, f"no group is called {edge.group}", hint)
        for index, edge in enumerate(edges)
        if edge.group is not None and edge.group not in groups
    ]


def check_groups(root: Path, known: Iterable[str]) -> list[Problem]:
    """Problems of the groups of a directory. `known` are the ids of its whole catalog."""
    path = root / GROUPS
    groups, problems = read_groups(path)
    document, ids = _read_document(path), set(known)
    unknown = [
        (document.locate(("groups", name, index)), member.signature)
        for name, members in groups.items()
        for index, member in enumerate(members)
        if member.signature not in ids
    ]
    hint = "fix the id, or add the file"
    return [
        *problems,
        *(Problem("error", str(path), *place, f"no signature has the id {name}", hint) for place, name in unknown),
    ]


def read_groups(path: Path) -> tuple[Groups, Sequence[Problem]]:
    """The groups of a file, and its errors. Empty if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return {}, ()
    return _read(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _read(path: Path, changed: int, size: int) -> tuple[Groups, Sequence[Problem]]:
    document = _read_document(path)
    problems = [Problem("error", str(path), *place, message, hint) for place, message, hint in document.remarks]
    try:
        return GroupsFile.model_validate(document.value).groups, problems
    except ValidationError as error:
        hint = "write `groups:`, below it names, and below each a list of `- {signature: ID, scope: SCOPE}`"
        for detail in error.errors(include_url=False):
            inner = ".".join(map(str, detail["loc"]))
            message = f"{inner}: {detail['msg']}" if inner else str(detail["msg"])
            problems.append(Problem("error", str(path), *document.locate(tuple(detail["loc"])), message, hint))
        return {}, problems


def _read_document(path: Path) -> YamlDocument:
    try:
        with path.open("rb") as file:
            return yaml_document.parse_yaml(file.read(yaml_document.MAX_BYTES).decode("utf-8-sig"))
    except (OSError, ValueError):
        return YamlDocument()
