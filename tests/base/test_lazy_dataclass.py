"""triage.base.lazy_dataclass"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import field
from typing import Any, ClassVar

import pytest
from hypothesis import given, strategies as st

from triage.base.lazy_dataclass import dataclass, replace


def declare(decorate: Any) -> dict[str, Any]:
    """Return classes of the kinds that triage declares, made by one decorator."""

    @decorate(frozen=True, slots=True)
    class Frozen:
        """Doc."""

        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list, hash=False)
        d: float = field(default=0.5, compare=False, repr=False)
        KIND: ClassVar[str] = "kind"

        @property
        def double(self) -> int:
            return 2 * self.a

    @decorate
    class Plain:
        a: int
        b: int = 2
        c: dict[str, int] = field(default_factory=dict, kw_only=True)

        def __post_init__(self) -> None:
            self.b += self.a

    @decorate(slots=True, eq=False)
    class Identity:
        a: int

    @decorate(frozen=True)
    class Single:
        a: int

        def __repr__(self) -> str:
            return f"<{self.a}>"

    @decorate(frozen=True, slots=True)
    class Empty:
        pass

    @decorate(frozen=True, slots=True)
    class OwnEquality:
        a: int
        b: int = 0

        def __eq__(self, other: object) -> bool:
            return isinstance(other, OwnEquality) and other.a == self.a

    return {kind.__name__: kind for kind in (Frozen, Plain, Identity, Single, Empty, OwnEquality)}


LAZY, STANDARD = declare(dataclass), declare(dataclasses.dataclass)
CALLS = {
    "Frozen": [((1,), {}), ((1, "x"), {"c": [3]}), ((), {"a": 2, "d": 0.1}), ((1, "x", [], 2.0), {})],
    "Plain": [((1,), {}), ((1, 2), {"c": {"x": 1}}), ((), {"a": 5, "b": 6})],
    "Identity": [((1,), {}), ((2,), {})],
    "Single": [((1,), {}), ((2,), {})],
    "Empty": [((), {})],
    "OwnEquality": [((1,), {}), ((1, 2), {}), ((2,), {})],
}


def signature_of(kind: type) -> list[tuple[Any, ...]]:
    return [(one.name, one.kind, one.annotation) for one in inspect.signature(kind).parameters.values()]


def make_all(classes: dict[str, Any], name: str) -> list[Any]:
    return [classes[name](*positional, **named) for positional, named in CALLS[name]]


@pytest.mark.parametrize("name", CALLS)
def test_objects_are_those_of_the_standard_decorator(name: str) -> None:
    """Fields, text, dictionaries, signature and equality are those of the standard decorator."""
    ours, theirs = make_all(LAZY, name), make_all(STANDARD, name)
    assert list(map(repr, ours)) == [repr(one).replace("dataclasses.", "") for one in theirs]
    assert list(map(dataclasses.asdict, ours)) == list(map(dataclasses.asdict, theirs))
    assert [[one == other for other in ours] for one in ours] == [[one == other for other in theirs] for one in theirs]
    assert signature_of(LAZY[name]) == signature_of(STANDARD[name])
    assert [f.name for f in dataclasses.fields(LAZY[name])] == [f.name for f in dataclasses.fields(STANDARD[name])]
    assert LAZY[name].__match_args__ == STANDARD[name].__match_args__
    assert hasattr(LAZY[name], "__dict__") == hasattr(STANDARD[name], "__dict__")


@pytest.mark.parametrize("name", CALLS)
def test_hashes_are_those_of_the_standard_decorator(name: str) -> None:
    """What can be hashed has the hash of the standard decorator's class; the rest cannot be hashed."""
    for ours, theirs in zip(make_all(LAZY, name), make_all(STANDARD, name), strict=True):
        assert (type(ours).__hash__ is None) == (type(theirs).__hash__ is None)
        if name in ("Single", "Empty", "Frozen", "OwnEquality"):
            assert hash(ours) == hash(theirs)


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_are_refused(name: str) -> None:
    """Too many, unknown and missing arguments raise TypeError, before and after the first object was made."""
    for kind in (declare(dataclass)[name], LAZY[name]):
        for arguments, named in (((1, 2, 3, 4, 5), {}), ((), {"unknown": 1})):
            with pytest.raises(TypeError):
                kind(*arguments, **named)
        if name != "Empty":
            with pytest.raises(TypeError, match="'a'"):
                kind()


@pytest.mark.parametrize(("name", "is_frozen"), [("Frozen", True), ("Single", True), ("Plain", False)])
def test_frozen_objects_cannot_change(name: str, is_frozen: bool) -> None:
    """Setting and deleting raise FrozenInstanceError, which is an AttributeError, exactly for frozen classes."""
    made = LAZY[name](1)
    if not is_frozen:
        made.a = 3
        del made.a
        return
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
        made.a = 3
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'a'"):
        del made.a


@dataclass(frozen=True, slots=True)
class _Node:
    value: int
    inner: tuple[_Node, ...] = ()


@given(st.recursive(st.builds(_Node, st.integers()), lambda inner: st.builds(_Node, st.integers(), st.tuples(inner))))
def test_copies_are_equal(node: _Node) -> None:
    """Copies, deep copies, pickles and replacements of frozen objects are equal to them."""
    assert copy.copy(node) == copy.deepcopy(node) == pickle.loads(pickle.dumps(node)) == node  # noqa: S301
    assert dataclasses.replace(node) == node
    assert dataclasses.replace(node, value=node.value + 1) != node


@pytest.mark.parametrize("name", CALLS)
def test_replacing_gives_what_the_standard_function_gives(name: str) -> None:
    """A copy with other values is that of `dataclasses.replace`, for classes of both decorators; so is the refusal."""
    for classes in (LAZY, STANDARD):
        for one in make_all(classes, name):
            changes = {"a": 7} if name != "Empty" else {}
            assert repr(replace(one, **changes)) == repr(dataclasses.replace(one, **changes))
            with pytest.raises(TypeError, match="unknown"):
                replace(one, unknown=1)


def test_default_factories_make_a_value_for_each_object() -> None:
    """Two objects do not share what a default factory made."""
    first, second = LAZY["Frozen"](1), LAZY["Frozen"](1)
    first.c.append(1)
    assert second.c == []


def test_an_empty_class_inherits_and_is_inherited() -> None:
    """A class may inherit from one without fields, and from one with them, whose fields come first."""

    class Base:
        __slots__ = ()

    @dataclass(frozen=True, slots=True)
    class First(Base):
        a: int

    @dataclass(frozen=True, slots=True)
    class Second(First):
        b: int = 1

    assert Second(1) == Second(1, 1) != First(1)
    assert First(1) == First(1)
    assert repr(Second(1)).endswith("Second(a=1, b=1)")


def test_nothing_is_compiled_before_the_first_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """The class has no `__init__` of its own until one is needed; then it has the one that was compiled."""
    made = declare(dataclass)["Frozen"]
    assert not inspect.isfunction(vars(made)["__init__"])
    made(1)
    assert inspect.isfunction(vars(made)["__init__"])


def test_an_object_is_of_its_class_once_it_is_made() -> None:
    """A frozen one too, whose values are set while it is of another class; one of a subclass as well."""

    @dataclass(frozen=True, slots=True)
    class Place:
        line: int

        def __post_init__(self) -> None:
            assert type(self) is Place or type(self) is Named

    @dataclass(frozen=True, slots=True)
    class Named(Place):
        name: str = ""

    for one in (Place(3), Named(3, "a"), replace(Named(1, "b"), name="a"), copy.copy(Place(3))):
        assert type(one) in (Place, Named)
        with pytest.raises(dataclasses.FrozenInstanceError):
            one.line = 4  # type: ignore[misc]
