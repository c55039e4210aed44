"""Dataclasses whose methods are made when they are first used.

The standard decorator writes and compiles the source of six methods for each class, 0.4 ms together. A command imports
150 such classes and makes objects of half of them, so this took a fifth of the time of a small job. Here the standard
decorator processes only the fields; the source of `__init__` is compiled for the first object, that of copies for the
first one, and the other methods need none. What uses dataclasses sees no difference: `fields`, `replace`, `asdict`,
default factories, `__post_init__`.

Modules that every `triage ingest` imports take `dataclass` from here (tests/test_start.py); elsewhere it does not pay.
A subclass must use the decorator of its base.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from operator import attrgetter
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass, replace as replace
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True) -> Any:
        """Make a class a dataclass, with those options of the standard decorator that are used here."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, slots=slots, eq=eq)
        # Who defines `__eq__` gets `__hash__ = None` from Python, which is no wish of the class.
        own = {name for name, value in vars(cls).items() if name != "__hash__" or value is not None}
        cls.__doc__ = cls.__doc__ or cls.__name__  # else the standard decorator writes a signature, which takes long
        made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
        methods = {"__init__": _InitAtFirstUse(made, frozen), "__repr__": _repr}
        methods |= _comparison(made, frozen) if eq else {}
        methods |= _FROZEN if frozen else {}
        methods |= _STATE if frozen and slots else {}
        for name, method in methods.items():
            if name not in own:
                setattr(made, name, method)
        return made

    def replace(item: Any, /, **changes: Any) -> Any:
        """Return what `dataclasses.replace` returns, in a third of the time for frozen classes with slots."""
        kind = type(item)
        copy = _COPIES.get(kind)
        if copy is None:
            copy = _COPIES[kind] = _build_copy(kind) or _standard_copy
        try:
            return copy(item, changes)
        except KeyError:  # no such field: the standard function says so
            return dataclasses.replace(item, **changes)


_COPIES: dict[type, Callable[[Any, Mapping[str, Any]], Any]] = {}


class _InitAtFirstUse:
    """Takes the place of `__init__` until that is first looked up."""

    def __init__(self, cls: type, frozen: bool) -> None:
        self._cls = cls
        self._frozen = frozen

    def __get__(self, instance: object, owner: type) -> Any:
        init = _build_init(self._cls, self._frozen)
        self._cls.__init__ = init  # type: ignore[misc]
        return init if instance is None else init.__get__(instance, owner)


def _build_init(cls: Any, frozen: bool) -> Any:
    """Return the `__init__` that the standard decorator would write."""
    unfrozen = _unfrozen_twin(cls) if frozen else None
    scope: dict[str, Any] = {"_set": object.__setattr__, "_missing": dataclasses.MISSING}
    scope |= {"_set_class": _SET_CLASS, "_unfrozen": unfrozen, "_class": cls}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    lines = []
    for field in dataclasses.fields(cls):
        name, default = field.name, f"_default_{field.name}"
        value, parameter = name, f"{name}={default}"
        if field.default is not dataclasses.MISSING:
            scope[default] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            scope[default] = field.default_factory
            value, parameter = f"{default}() if {name} is _missing else {name}", f"{name}=_missing"
        else:
            parameter = name
        parameters[bool(field.kw_only)].append(parameter)
        is_refused = frozen and unfrozen is None
        lines.append(f"_set(self, {name!r}, {value})" if is_refused else f"self.{name} = {value}")
    if unfrozen is not None:
        lines = ["_set_class(self, _unfrozen)", *lines, "self.__class__ = _class"]
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    keyword_only = ["*", *parameters[True]] if parameters[True] else []
    signature = ", ".join(["self", *parameters[False], *keyword_only])
    init = _compile(f"__init__({signature})", lines or ["pass"], scope)
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    init.__annotations__ = {field.name: field.type for field in dataclasses.fields(cls)} | {"return": None}
    return init


_SET_CLASS = object.__dict__["__class__"].__set__


def _unfrozen_twin(cls: type) -> type | None:
    """Return a class with the same slots that lets them be set: an object is of this class while it gets its values.

    To set a slot of a frozen object from outside takes five times as long. None for a class with another base than
    `object` or without slots: its objects cannot change to the twin and back.
    """
    slots = vars(cls).get("__slots__")
    return type(cls.__name__, (), {"__slots__": slots}) if cls.__bases__ == (object,) and slots else None


def _setter_of(cls: type, name: str) -> Callable[[Any, Any], None] | None:
    """Return what sets the slot of a field, also of a frozen object; None for a class without slots."""
    slot = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
    return slot.__set__ if isinstance(slot, MemberDescriptorType) else None


def _build_copy(cls: Any) -> Callable[[Any, Mapping[str, Any]], Any] | None:
    """Return a function that copies an object with some other values; None for classes that need more than that."""
    setters = {field.name: _setter_of(cls, field.name) for field in dataclasses.fields(cls) if field.init}
    is_plain = len(setters) == len(dataclasses.fields(cls)) and not hasattr(cls, "__post_init__")
    unfrozen = _unfrozen_twin(cls)
    if not is_plain or not all(setters.values()) or unfrozen is None:
        return None
    scope: dict[str, Any] = {"_new": object.__new__, "_class": cls, "_unfrozen": unfrozen, "_setters": setters}
    lines = [
        "new = _new(_unfrozen)",
        *(f"new.{name} = self.{name}" for name in setters),
        "new.__class__ = _class",
        "for name, value in changes.items(): _setters[name](new, value)",
        "return new",
    ]
    copy: Callable[[Any, Mapping[str, Any]], Any] = _compile("copy(self, changes)", lines, scope)
    return copy


def _compile(head: str, lines: list[str], scope: dict[str, Any]) -> Any:
    """Return the function with this head and these lines, which have only names of our own source."""
    exec(f"def {head}:\n " + "\n ".join(lines), scope)  # noqa: S102
    return scope[head.partition("(")[0]]


def _standard_copy(item: Any, changes: Mapping[str, Any]) -> Any:
    return dataclasses.replace(item, **changes)


def _values_of(fields: list[dataclasses.Field[Any]]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns the values of these fields."""
    names = [field.name for field in fields]
    if not names:
        return lambda _: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda self: (get(self),)


def _comparison(cls: Any, frozen: bool) -> dict[str, Any]:
    fields = dataclasses.fields(cls)
    values = _values_of([field for field in fields if field.compare])
    hashed = _values_of([field for field in fields if (field.compare if field.hash is None else field.hash)])

    def is_equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def compute_hash(self: Any) -> int:
        return hash(hashed(self))

    return {"__eq__": is_equal, "__hash__": compute_hash if frozen else None}


def _repr(self: Any) -> str:
    shown = (field.name for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    """Return what copies and pickles hold, since they cannot set attributes of a frozen object."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_FROZEN = {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
_STATE = {"__getstate__": _get_state, "__setstate__": _set_state}
