"""Several names of one host: that of its pod, that of the machine, that of the file of its lines.

Two names stand together where a prefix stands within another (`[pod/train-0/main] node7:412:980 [0] NCCL INFO`), where
the lines of a file named after one name another, and where a process introduces itself behind a prefix. They are one
host if each of them stands with one other only, and they do not look alike. A name that stands with several hosts
gathers the lines of others.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field
from typing import Literal

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.ranks.places import is_address

Place = Literal["file", "outer prefix", "prefix", "text"]
_DIGITS = lazy_re(r"\d+")
PLACES: tuple[Place, ...] = ("file", "outer prefix", "prefix", "text")


@dataclass
class HostNames:
    """Which names stand together; after `resolve`, `canonical` and `gatherers`.

    `canonical` gives for a name the one that stands innermost, that of the machine. `gatherers` are no hosts of the
    lines that they stand before. `aliases` gives for the name of a machine its other names.
    """

    canonical: dict[str, str] = field(default_factory=dict)
    gatherers: set[str] = field(default_factory=set)
    aliases: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _renumbered: dict[str, bool] = field(default_factory=dict)
    _inner: dict[str, dict[Place, set[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))
    _outer: dict[str, dict[Place, set[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))

    def learn(self, outer: str, outer_place: Place, inner: str, inner_place: Place) -> None:
        """Add two names that stand together, the outer one first."""
        self._inner[outer][inner_place].add(inner)
        self._outer[inner][outer_place].add(outer)

    def resolve(self) -> None:
        """Find out which names are one host."""
        named_by_lines = {name for places in self._inner.values() for name in places.get("prefix", ())}
        self.gatherers = {
            name
            for name, places in self._inner.items()
            if len(places.get("prefix", ())) > 1 and name not in named_by_lines
        }
        unclear = {
            name
            for names in (self._inner, self._outer)
            for name, places in names.items()
            if self._has_several(name, places)
        }
        self.canonical = {}
        self._renumbered.clear()
        for name in sorted(self._inner):
            machine = self._innermost(name, unclear)
            if machine != name:
                self.canonical[name] = machine
                self.aliases[machine].add(name)

    def has_like(self, name: str, other: str) -> bool:
        """Is this name or another one of its host of the same kind as `other`, an address or none?"""
        return any(is_address(one) == is_address(other) for one in (name, *self.aliases.get(name, ())))

    def _has_several(self, name: str, places: dict[Place, set[str]]) -> bool:
        return any(len(names - self.gatherers - {name}) > 1 for names in places.values())

    def _is_beside(self, name: str, other: str) -> bool:
        """Do names differ in their numbers only? Then they are two machines of one scheme, unless one numbers anew."""
        scheme = _scheme(name)
        if scheme != _scheme(other) or _fills_with_zeros(name, other):
            return False
        if scheme not in self._renumbered:
            self._renumbered[scheme] = self._is_renumbered(scheme)
        return not self._renumbered[scheme]

    def _is_renumbered(self, scheme: str) -> bool:
        """Does each of several names stand with one of the scheme: `node0` with node36, `node1` with node37?"""
        pairs: list[set[str]] = []
        outer = set()
        for name, places in self._inner.items():
            others = {other for names in places.values() for other in names if other != name}
            if _scheme(name) == scheme and any(_scheme(other) == scheme for other in others):
                outer.add(name)
                pairs.append(others)
        inner = set().union(*pairs)
        return len(pairs) > 1 and len(inner) == len(pairs) == sum(map(len, pairs)) and inner.isdisjoint(outer)

    def _list_inner(self, name: str) -> set[str]:
        """Return the other names that stand in the innermost place within a name.

        A machine whose own lines have this name has no address there: Ray names those of workers on other machines.
        """
        inner = self._inner.get(name, {})
        is_own = any(name in names for names in inner.values())
        for place in reversed(PLACES):
            others = {one for one in inner.get(place, ()) if one != name and not (is_own and is_address(one))}
            if others:
                return others
        return set()

    def _innermost(self, name: str, unclear: set[str]) -> str:
        """Return the name that stands innermost, as far as each step is to the only one."""
        passed = {name}
        while name not in unclear and name not in self.gatherers:
            following = min(self._list_inner(name), default=name)
            if following in passed and following != name:  # each stands within the other: `trainer/0` is no host's name
                return min(name, following, key=lambda one: ("/" in one, one))
            if following in passed or following in unclear or self._is_beside(name, following):
                break
            passed.add(following)
            name = following
        return name


def _scheme(name: str) -> str:
    return _DIGITS.sub("#", name)


def _fills_with_zeros(name: str, other: str) -> bool:
    """Are numbers of one of them filled with zeros to more digits than the other has? Then their schemes differ."""
    numbers = zip(_DIGITS.findall(name), _DIGITS.findall(other), strict=True)
    return any(len(one) != len(two) and max(one, two, key=len).startswith("0") for one, two in numbers)
