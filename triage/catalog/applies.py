"""Bounds on versions: a signature of NCCL 2.14 says nothing about a job whose log states 2.21.

What no log states excludes nothing. Where a job states several versions of one thing, one that fits is enough.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from triage.base.lazy_re import lazy_re
from triage.catalog.model import Catalog, Signature

_BOUND = lazy_re(r"(==|!=|<=|>=|<|>)\s*(\d+(?:\.\d+)*)")
_NUMBERS = lazy_re(r"\d+(?:\.\d+)*")


def within(catalog: Catalog, seen: Mapping[str, Collection[str]]) -> Catalog:
    """The catalog without the signatures that do not apply to these versions (name of the thing to those that the logs
    state).
    """
    kept = tuple(signature for signature in catalog.signatures if outside(signature, seen) is None)
    return catalog if len(kept) == len(catalog.signatures) else dataclasses.replace(catalog, signatures=kept)


def outside(signature: Signature, seen: Mapping[str, Collection[str]]) -> str | None:
    """Why the signature does not apply, in words that a sentence can take; None if it does, or nobody knows."""
    for name, bounds in signature.applies_to.items():
        stated = sorted(seen.get(name, ()))
        if stated and not any(_fits(version, bounds) for version in stated):
            return f"it applies to {name} {bounds}, and this job has {name} {', '.join(stated)}"
    return None


def _fits(version: str, bounds: str) -> bool:
    number = _NUMBERS.search(version)
    if number is None:
        return True
    found = _parts(number[0])
    return all(_holds(found, operator, _parts(wanted)) for operator, wanted in _BOUND.findall(bounds))


def _parts(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in number.split("."))


def _holds(found: tuple[int, ...], operator: str, wanted: tuple[int, ...]) -> bool:
    """`==2.14` holds for 2.14.3 too: what a bound does not say is open."""
    if operator in ("==", "!="):
        same = found[: len(wanted)] == wanted or (
            len(found) < len(wanted) and found + (0,) * (len(wanted) - len(found)) == wanted
        )
        return same == (operator == "==")
    size = max(len(found), len(wanted))
    left, right = found + (0,) * (size - len(found)), wanted + (0,) * (size - len(wanted))
    return {
        "<": left < right,
        "<=": left <= right or found[: len(wanted)] == wanted,
        ">": left > right,
        ">=": left >= right,
    }[operator]
