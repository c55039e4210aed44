"""Captures of names: they must survive blanks, colons and quotes, which paths, messages and names of tasks have."""

from __future__ import annotations

from collections.abc import Iterator

from triage.base.lazy_re import lazy_re
from triage.catalog.check_context import EvidenceReader, list_samples
from triage.catalog.match import evaluate_signature
from triage.catalog.model import Signature
from triage.catalog.problems import Remark

# Captures whose values people or programs choose freely.
NAMES = frozenset(
    (
        *("argument", "assertion", "attribute", "directory", "file", "filename", "job", "key", "message", "module"),
        *("name", "option", "parameter", "path", "shard", "target", "task", "text"),
    )
)
_LETTERS = lazy_re(r"[A-Za-z]{3,}")


def check_captures(signature: Signature, to_evidence: EvidenceReader) -> Iterator[Remark]:
    """Write other characters into the names of the samples that stand in quotes or end the line."""
    if signature.table or signature.status == "deprecated":
        return
    reported: set[str] = set()
    for key_path, sample in list_samples(signature):
        if key_path[1] != "match" or sample.kind is not None:
            continue
        for name, value in sample.captures.items():
            if name not in NAMES or name in reported or sample.text.count(value) != 1:
                continue
            for variants in _change(sample.text, value):
                values = [_capture(signature, to_evidence, name, text) for _, text in variants]
                if any(got == changed for got, (changed, _) in zip(values, variants, strict=True)):
                    continue
                reported.add(name)
                got = "no match" if values[0] is None else f"{values[0]!r} is captured"
                message = f"the capture {name} does not survive {variants[0][0]!r}: {got}"
                hint = f"let the group run to the closing quote or bracket, such as '(?P<{name}>.+?)'"
                yield "warning", key_path, message, hint
                break


def _capture(signature: Signature, to_evidence: EvidenceReader, name: str, text: str) -> str | None:
    """Return what a signature captures of a text; None if it does not match, empty if the group took no part."""
    match = evaluate_signature(signature, to_evidence(text))
    return None if match is None else match.captures.get(name, "")


def _change(text: str, value: str) -> Iterator[list[tuple[str, str]]]:
    """Yield (value, text) with other characters in a value that is enclosed in quotes or brackets.

    Each list has the same characters at several places, of which one must do: a directory or suffix may be what the
    pattern asks for.
    """
    start = text.index(value)
    before, after = text[:start], text[start + len(value) :]
    halves = [(value[: run.start() + 1], value[run.start() + 1 :]) for run in _LETTERS.finditer(value)]
    if not halves or not before or not after:
        return
    if (before[-1], after[0]) in {("'", "'"), ('"', '"'), ("`", "`"), ("[", "]")}:
        for inserted in (" b", ":c"):
            yield [(first + inserted + rest, before + first + inserted + rest + after) for first, rest in halves]
    if (before[-1], after[0]) == ("'", "'"):  # so Python writes a text with an apostrophe
        yield [(f"{first}'s{rest}", f'{before[:-1]}"{first}\'s{rest}"{after[1:]}') for first, rest in halves]
