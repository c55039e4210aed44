"""Rules that need no log: what a signature must contain, and how signatures may refer to each other."""

from __future__ import annotations

import string
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

from triage.catalog import skeleton
from triage.catalog.backtracking import list_group_names
from triage.catalog.graph import WEAK_SCOPE
from triage.catalog.match import all_leaves, positive_leaves
from triage.catalog.model import Leaf, Signature
from triage.catalog.problems import Problem, Remark
from triage.catalog.regex import PatternError, list_named_groups, verify_pattern
from triage.catalog.remediation import PLACEHOLDERS
from triage.catalog.schema import MAX_TITLE
from triage.catalog.slow_patterns import find_slow_text
from triage.catalog.yaml_document import KeyPath, Position, YamlDocument


def lint_signatures(
    signatures: Iterable[Signature], all_signatures: Mapping[str, Signature], documents: Mapping[str, YamlDocument]
) -> list[Problem]:
    """Problems of these signatures. `all_signatures` is their whole catalog by id, `documents` their files by path."""
    cycles = find_cycles(all_signatures)
    duplicates = _find_duplicates(all_signatures)
    problems = []
    for signature in signatures:
        document = documents.get(signature.path, YamlDocument())
        remarks = [
            *_check_texts(signature),
            *_check_path(signature),
            *_check_patterns(signature),
            *_check_edges(signature, all_signatures, cycles.get(signature.id, ()), document),
            *_check_samples(signature),
            *duplicates.get(signature.id, ()),
        ]
        problems += [
            Problem(severity, signature.path, *locate(document, signature, key_path), message, hint)
            for severity, key_path, message, hint in remarks
        ]
    return problems


def list_capture_names(signature: Signature) -> set[str]:
    """The names that the signature's patterns can capture."""
    return {name for leaf in positive_leaves(signature.match) for name in _list_leaf_captures(leaf)}


def _list_leaf_captures(leaf: Leaf) -> Iterator[str]:
    patterns = list(leaf.fields.values())
    if leaf.text and leaf.engine == "regex":
        yield from list_group_names(leaf.text)
    elif leaf.text:
        patterns.append(leaf.text)
    yield from (name for pattern in patterns for name, _ in list_named_groups(pattern))


def find_cycles(signatures: Mapping[str, Signature]) -> dict[str, list[str]]:
    """The signatures that cause themselves, with the shortest path back to each.

    Two that lead to each other are a cycle unless one edge stays on the rank and the other leaves it. Otherwise both
    can hold for the same ranks, and the diagnosis would drop one of them by the order of the ids. In a longer path,
    edges to other ranks do not count: there the order of time decides.
    """
    scopes = {
        (identifier, edge.signature): edge.scope
        for identifier, signature in signatures.items()
        for edge in signature.causal_edges
        if edge.signature in signatures
    }
    strong: dict[str, list[str]] = {identifier: [] for identifier in signatures}
    direct: dict[str, list[str]] = {}
    for (cause, effect), scope in scopes.items():
        if scope != WEAK_SCOPE:
            strong[cause].append(effect)
        back = scopes.get((effect, cause))
        if cause != effect and back is not None and {scope, back} != {"same-rank", WEAK_SCOPE}:
            direct.setdefault(cause, [effect, cause])
    return {identifier: path for identifier in signatures if (path := _find_path_back(identifier, strong))} | direct


def locate(document: YamlDocument, signature: Signature, key_path: KeyPath) -> Position:
    """Where a part of a signature stands; for a row of a table, where the row stands."""
    if signature.table:
        rows = document.value.get("rows") if isinstance(document.value, dict) else None
        codes = [str(row.get("code", "")).lower() for row in rows or () if isinstance(row, dict)]
        code = signature.id.removeprefix(f"{signature.table}-")
        return document.locate(("rows", codes.index(code)) if code in codes else ("rows",))
    return document.locate(key_path)


def find_positions(document: YamlDocument, within: KeyPath, text: str) -> Iterator[Position]:
    """The positions under `within` whose value is `text`."""
    for path, position in document.positions.items():
        if path[: len(within)] == within and _value_at(document.value, path) == text:
            yield position


def _value_at(value: object, path: KeyPath) -> object:
    for part in path:
        if isinstance(value, dict) or (isinstance(value, list) and isinstance(part, int) and part < len(value)):
            value = value.get(part) if isinstance(value, dict) else value[int(part)]
        else:
            return None
    return value


def _check_texts(signature: Signature) -> Iterator[Remark]:
    if len(signature.title) > MAX_TITLE:
        message = f"the title has {len(signature.title)} characters; at most {MAX_TITLE} fit"
        yield "error", ("title",), message, "shorten it"
    if signature.title == skeleton.PLACEHOLDER:
        yield "error", ("title",), "the title is still that of `triage catalog new`", "write what happened"
    if not signature.summary and signature.role != "noise":
        yield "error", ("remediation",), "remediation.summary is missing", "write one sentence that says what to do"
    if not signature.meaning and signature.role != "noise":
        yield "warning", (), "`meaning` is missing", "write one or two sentences that say what happened"
    place = ("remediation", "summary")
    try:
        names = {name for _, name, _, _ in string.Formatter().parse(signature.summary) if name is not None}
    except ValueError as error:
        yield "error", place, f"the summary has unbalanced braces: {error}", "write {{ and }} for plain braces"
        return
    known = list_capture_names(signature) | PLACEHOLDERS
    for name in sorted(names - known):
        message = f"the summary uses {{{name}}}, which no pattern captures"
        yield "error", place, message, _list_choices(known)


def _check_path(signature: Signature) -> Iterator[Remark]:
    path = PurePath(signature.path)
    expected = signature.table or signature.id
    if f"{path.parent.name}.{path.stem}" != expected:
        hint = f"move the file to {expected.replace('.', '/', 1)}.yaml, or change the id"
        yield "error", ("id",), f"the id {expected} does not match the file's path", hint


def _check_patterns(signature: Signature) -> Iterator[Remark]:
    for leaf in positive_leaves(signature.match):
        if leaf.text == skeleton.PATTERN:
            hint = "write the words of the message, as the log has them"
            yield "error", ("match",), f"the pattern is still that of `triage catalog new`: {leaf.text}", hint
        if leaf.text and "(?i" in leaf.text:
            yield "warning", ("match",), f"the pattern ignores case: {leaf.text}", "write the text as the log has it"
    yield from _check_engines(signature)
    known = list_capture_names(signature)
    if signature.blames is not None and signature.blames not in known:
        message = f"`blames` names {signature.blames}, which no pattern captures"
        yield "error", ("blames",), message, _list_choices(known)


def _check_engines(signature: Signature) -> Iterator[Remark]:
    """Patterns that name the engine regex: those that RE2 can run, and those that may take too long."""
    for leaf in all_leaves(signature.match):
        patterns = [pattern for pattern in (leaf.text, leaf.not_text) if pattern is not None]
        if leaf.engine != "regex":
            continue
        if all(map(_is_for_re2, patterns)):
            yield "error", ("match",), f"RE2 can run this pattern: {patterns[0]}", "leave `engine: regex` out"
        for pattern in patterns:
            if (text := find_slow_text(pattern)) is not None:
                message = f"the pattern takes too long on a text such as {text[:40]!r}…: {pattern}"
                yield "error", ("match",), message, "give repeats an upper bound, and let neighbours share no character"


def _is_for_re2(pattern: str) -> bool:
    try:
        verify_pattern(pattern)
    except PatternError:
        return False
    return True


def _check_edges(
    signature: Signature, known: Collection[str], cycle: Sequence[str], document: YamlDocument
) -> Iterator[Remark]:
    for edge in signature.causal_edges:
        place = _find_edge(document, edge.signature)
        if edge.signature == signature.id:
            yield "error", place, "a signature cannot lead to itself", "remove this edge"
        elif edge.signature not in known and len(place) > 1:  # an unknown member of a group is an error of its file
            yield "error", (*place, "signature"), f"no signature has the id {edge.signature}", "fix it, or add the file"
    if len(cycle) > 1:
        hint = "remove the weaker edge; or give one the scope same-rank and the other other-ranks, if both are true"
        message = f"the signature explains itself: {' -> '.join((signature.id, *cycle))}"
        yield "error", _find_edge(document, cycle[0]), message, hint


def _find_edge(document: YamlDocument, effect: str) -> KeyPath:
    """Where the edge to this signature is written; the place of all edges if a group brings it."""
    edges = document.value.get("leads_to") if isinstance(document.value, dict) else None
    named = [edge.get("signature") if isinstance(edge, dict) else None for edge in edges or ()]
    return ("leads_to", named.index(effect)) if effect in named else ("leads_to",)


def _check_samples(signature: Signature) -> Iterator[Remark]:
    if signature.match is not None and not signature.samples_match:
        yield "error", ("samples",), "samples.match is missing", "add a real line, as it stands in a log"
    known = list_capture_names(signature)
    for index, sample in enumerate(signature.samples_match):
        for name in sorted(set(sample.captures) - known):
            place = ("samples", "match", index, "captures")
            yield "error", place, f"no pattern captures {name}", _list_choices(known)


def _find_duplicates(signatures: Mapping[str, Signature]) -> dict[str, list[Remark]]:
    first_by_fingerprint: dict[str, str] = {}
    remarks: dict[str, list[Remark]] = {}
    for identifier, signature in sorted(signatures.items()):
        other = first_by_fingerprint.setdefault(signature.fingerprint, identifier)
        if other != identifier and signature.match is not None:
            message = f"{other} matches exactly the same"
            remarks[identifier] = [("warning", ("match",), message, "make their patterns different, or keep only one")]
    return remarks


def _find_path_back(start: str, edges: Mapping[str, Sequence[str]]) -> list[str]:
    """The shortest path from `start` to itself, without the start; empty if there is none."""
    came_from: dict[str, str] = {}
    pending = deque([start])
    while pending:
        current = pending.popleft()
        for target in edges[current]:
            if target not in came_from:
                came_from[target] = current
                pending.append(target)
            if target == start:
                path = [start]
                while came_from[path[0]] != start:
                    path.insert(0, came_from[path[0]])
                return path
    return []


def _list_choices(known: Collection[str]) -> str:
    return f"one of {', '.join(sorted(known))}" if known else "add a group (?P<name>…) to the pattern"
