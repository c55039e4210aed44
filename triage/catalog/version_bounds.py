"""Version bounds of signatures: one for NCCL 2.14 does not apply to a job whose log states 2.21.

A program whose version no log states excludes nothing. Of several stated versions, one within the bounds is enough.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from triage.base.lazy_re import lazy_re
from triage.catalog.model import Catalog, Signature

_BOUND = lazy_re(r"(==|!=|<=|>=|<|>)\s*(\d{1,18}(?:\.\d{1,18})*)")
_NUMBERS = lazy_re(r"\d{1,18}(?:\.\d{1,18})*")


def restrict_to_versions(catalog: Catalog, versions: Mapping[str, Collection[str]]) -> Catalog:
    """Return the catalog without the signatures that do not apply to these versions.

    `versions` maps the name of a program to the versions that the logs state.
    """
    applying = tuple(one for one in catalog.signatures if explain_version_mismatch(one, versions) is None)
    return catalog if len(applying) == len(catalog.signatures) else dataclasses.replace(catalog, signatures=applying)


def explain_version_mismatch(signature: Signature, versions: Mapping[str, Collection[str]]) -> str | None:
    """Say why the signature does not apply, as part of a sentence; None if it applies or no version is known."""
    for name, bounds in signature.applies_to.items():
        stated = sorted(versions.get(name, ()))
        if stated and not any(_satisfies_all(version, bounds) for version in stated):
            return f"it applies to {name} {bounds}, and this job has {name} {', '.join(stated)}"
    return None


def _satisfies_all(version: str, bounds: str) -> bool:
    number = _NUMBERS.search(version)
    if number is None:
        return True
    numbers = _version_numbers(number[0])
    return all(_satisfies(numbers, operator, _version_numbers(bound)) for operator, bound in _BOUND.findall(bounds))


def _version_numbers(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in number.split("."))


def _satisfies(version: tuple[int, ...], operator: str, bound: tuple[int, ...]) -> bool:
    """`==2.14` and `<=2.14` hold for 2.14.3 too: parts that a bound leaves out are open."""
    size = max(len(version), len(bound))
    left, right = version + (0,) * (size - len(version)), bound + (0,) * (size - len(bound))
    same = left == right or version[: len(bound)] == bound
    return {
        "==": same,
        "!=": not same,
        "<": left < right,
        "<=": left < right or same,
        ">": left > right,
        ">=": left >= right,
    }[operator]
