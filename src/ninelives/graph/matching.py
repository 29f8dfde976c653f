"""Types as handlers write them: does a value fit one, is one narrower than another.

Checked is what can be seen at run time: containers are looked into, `bool` is no `int`, an `int`
fits `float` (as type checkers hold it), arguments of other generic classes are not seen.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Annotated, Any, Literal, Never, NoReturn, Protocol, TypeVar, Union, cast

NOTHING: tuple[object, ...] = (Never, NoReturn)
_ANYTHING: tuple[object, ...] = (Any, object)
_NUMBERS: tuple[object, ...] = (int, float)
_CONTAINER_MODULES = {"builtins", "collections", "collections.abc"}


class Unresolvable(Exception):  # noqa: N818 - named by the condition
    """A text annotation names something that is not there at run time."""


def resolve(annotation: object, namespace: dict[str, Any]) -> object:
    """Evaluate text annotations (also nested ones) in a function's module.

    Raises:
        Unresolvable: with the name that is missing.
    """

    def holder() -> None: ...

    holder.__annotations__ = {"it": annotation}
    try:
        return cast("object", typing.get_type_hints(holder, namespace)["it"])
    except NameError as error:
        why = f"the name {error.name!r} in {annotation!r} is not defined in its module"
        raise Unresolvable(why) from None
    except Exception as error:
        raise Unresolvable(f"{annotation!r} cannot be evaluated: {error}") from error


def members(annotation: object) -> tuple[object, ...]:
    """The alternatives of a union, in order; nothing for Never."""
    plain = _plain(annotation)
    if plain in NOTHING:
        return ()
    if typing.get_origin(plain) in {Union, types.UnionType}:
        return tuple(
            dict.fromkeys(each for part in typing.get_args(plain) for each in members(part))
        )
    return (plain,)


def fits(value: object, annotation: object) -> bool:
    """Whether a value is of a type, as far as that can be seen."""
    if type(annotation) is type and annotation is not object:  # the common case, for speed
        return _is_instance(value, annotation)
    plain = _plain(annotation)
    if plain in _ANYTHING:
        return True
    origin, arguments = typing.get_origin(plain), typing.get_args(plain)
    if origin in {Union, types.UnionType}:
        return any(fits(value, each) for each in arguments)
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in arguments)
    if typing.is_typeddict(plain):
        return _fits_typed_dict(value, plain)
    if origin is None:
        return _is_instance(value, plain)
    return _is_instance(value, origin) and _contents_fit(value, origin, arguments)


def assignable(source: object, target: object, *, lenient: bool = True) -> bool:
    """Whether each value of `source` is one of `target`.

    `lenient` takes Any (and missing arguments: `list` is `list[Any]`) as fitting everywhere, as
    type checkers do; else Any fits only Any.
    """
    source, target = _plain(source), _plain(target)
    if target in _ANYTHING:
        return True
    if source is Any:
        return lenient
    if source == target:
        return True
    if typing.get_origin(source) in {Union, types.UnionType}:
        return all(assignable(each, target, lenient=lenient) for each in typing.get_args(source))
    if typing.get_origin(source) is Literal:
        return all(fits(each, target) for each in typing.get_args(source))
    if typing.get_origin(target) in {Union, types.UnionType}:
        return any(assignable(source, each, lenient=lenient) for each in typing.get_args(target))
    return _class_assignable(source, target, lenient=lenient)


def list_of(annotation: object) -> object:
    """`list[annotation]`, for a type that is known only at run time."""
    return types.GenericAlias(list, (annotation,))


def narrower(one: object, other: object) -> bool:
    """Whether `one` is strictly more specific than `other`."""
    return assignable(one, other, lenient=False) and not assignable(other, one, lenient=False)


def most_specific(annotations: list[object]) -> int:
    """The index of the first annotation than which no other is narrower."""
    for index, candidate in enumerate(annotations):
        if not any(narrower(other, candidate) for other in annotations):
            return index
    return 0


def flaw(annotation: object) -> str | None:
    """Why a message cannot be checked against a type at run time; None if it can."""
    plain = _plain(annotation)
    if isinstance(plain, TypeVar):
        return f"{plain} is a type variable, which stands for no type at run time"
    if typing.get_origin(plain) is Literal or plain is Ellipsis or plain in _ANYTHING:
        return None
    if plain in NOTHING:
        return None
    base = typing.get_origin(plain) or plain
    unchecked = getattr(base, "_is_protocol", False) and base is not Protocol
    if unchecked and not getattr(base, "_is_runtime_protocol", False):
        return f"{spell(base)} is a protocol without @runtime_checkable"
    if not isinstance(base, type) and base is not Union:
        return f"{plain!r} is no type"
    parts: tuple[object, ...] = typing.get_args(plain)
    return next((found for part in parts if (found := flaw(part))), None)


def spell(annotation: object) -> str:
    """A type in short words, the same in every process (a union's members are sorted)."""
    plain = _plain(annotation)
    if plain is types.NoneType:
        return "None"
    if plain is Ellipsis:
        return "..."
    origin, arguments = typing.get_origin(plain), typing.get_args(plain)
    if origin in {Union, types.UnionType}:
        return " | ".join(sorted(spell(each) for each in arguments))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin is not None:
        return f"{spell(origin)}[{', '.join(spell(each) for each in arguments)}]"
    name = getattr(plain, "__qualname__", None) or getattr(plain, "__name__", None)
    return name.rpartition("<locals>.")[2] if isinstance(name, str) else str(plain)


def _plain(annotation: object) -> object:
    """Look through Annotated, NewType, `type X = ...` and None."""
    if annotation is None:
        return types.NoneType
    if typing.get_origin(annotation) is Annotated:
        return _plain(typing.get_args(annotation)[0])
    if isinstance(annotation, typing.NewType):
        return _plain(annotation.__supertype__)
    if type(annotation).__name__ == "TypeAliasType":
        return _plain(getattr(annotation, "__value__", annotation))
    return annotation


def _is_instance(value: object, kind: object) -> bool:
    if isinstance(value, bool) and kind in _NUMBERS:
        return False
    if kind is float and isinstance(value, int):
        return True
    try:
        return isinstance(value, cast("type", kind))
    except TypeError:
        return False


def _is_subclass(source: object, target: object) -> bool:
    if source is bool and target in _NUMBERS:
        return False
    if source is int and target is float:
        return True
    try:
        return issubclass(cast("type", source), cast("type", target))
    except TypeError:
        return False


def _contents_fit(value: object, origin: object, arguments: tuple[object, ...]) -> bool:
    if origin is type:
        return any(_is_subclass(value, each) or each is Any for each in arguments)
    if getattr(origin, "__module__", "") not in _CONTAINER_MODULES:
        return True
    if isinstance(value, tuple) and origin is tuple:
        return _tuple_fits(cast("tuple[object, ...]", value), arguments)
    if isinstance(value, Mapping) and len(arguments) == 2:
        items = cast("Mapping[object, object]", value).items()
        return all(fits(key, arguments[0]) and fits(item, arguments[1]) for key, item in items)
    if isinstance(value, Collection) and len(arguments) == 1:
        return all(fits(item, arguments[0]) for item in cast("Collection[object]", value))
    return True


def _tuple_fits(value: tuple[object, ...], arguments: tuple[object, ...]) -> bool:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return all(fits(item, arguments[0]) for item in value)
    return len(value) == len(arguments) and all(map(fits, value, arguments))


def _fits_typed_dict(value: object, plain: object) -> bool:
    if not isinstance(value, dict):
        return False
    items = cast("dict[object, object]", value)
    hints = typing.get_type_hints(cast("type", plain))
    required = frozenset(cast("Iterable[str]", getattr(plain, "__required_keys__", ())))
    return required <= items.keys() <= hints.keys() and all(
        fits(items[name], hints[name]) for name in hints if name in items
    )


def _class_assignable(source: object, target: object, *, lenient: bool) -> bool:
    source_class = typing.get_origin(source) or source
    target_class = typing.get_origin(target) or target
    if not _is_subclass(source_class, target_class):
        return False
    wanted = typing.get_args(target)
    given = typing.get_args(source)
    if not wanted:
        return True
    if target_class is tuple and given:
        return _tuple_assignable(given, wanted, lenient=lenient)
    given = given or (Any,) * len(wanted)
    return all(
        assignable(one, other, lenient=lenient) for one, other in zip(given, wanted, strict=False)
    )


def _tuple_assignable(
    given: tuple[object, ...], wanted: tuple[object, ...], *, lenient: bool
) -> bool:
    compare: Callable[[object, object], bool] = lambda one, other: assignable(  # noqa: E731
        one, other, lenient=lenient
    )
    if wanted[-1] is Ellipsis:
        return all(compare(each, wanted[0]) for each in given if each is not Ellipsis)
    if given[-1] is Ellipsis or len(given) != len(wanted):
        return False
    return all(map(compare, given, wanted))
