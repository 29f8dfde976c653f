"""How annotations and messages fit together: which handler takes a value, which edge can work."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence


def options(annotation: object) -> tuple[object, ...]:
    """The alternatives of a union, or the annotation alone; `Never` and None mean nothing."""
    if annotation is typing.Never or annotation is typing.NoReturn:
        return ()
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        return tuple(option for each in typing.get_args(annotation) for option in options(each))
    return (annotation,)


def _is_anything(annotation: object) -> bool:
    return annotation is typing.Any or annotation is object


def fits(value: object, annotation: object) -> bool:
    """Whether a value is an instance of an annotation; a bool is no int."""
    if _is_anything(annotation):
        return True
    if annotation is None or annotation is type(None):
        return value is None
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is None:
        return isinstance(annotation, type) and _is_instance(value, annotation)
    if origin in {typing.Union, types.UnionType}:
        return any(fits(value, each) for each in arguments)
    if origin is typing.Literal:
        return any(type(value) is type(each) and value == each for each in arguments)
    if origin is typing.Annotated:
        return fits(value, arguments[0])
    return isinstance(value, origin) and _parts_fit(value, arguments)


def _is_instance(value: object, cls: type) -> bool:
    if isinstance(value, bool):
        return issubclass(bool, cls) and cls is not int
    return isinstance(value, cls)


def _parts_fit(value: object, arguments: tuple[object, ...]) -> bool:
    if not arguments:
        return True
    if isinstance(value, Mapping):
        key, item = arguments[0], arguments[-1]
        return all(fits(k, key) and fits(v, item) for k, v in value.items())
    if isinstance(value, tuple):
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(fits(each, arguments[0]) for each in value)
        pairs = zip(value, arguments, strict=False)
        return len(value) == len(arguments) and all(fits(v, a) for v, a in pairs)
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return all(fits(each, arguments[0]) for each in value)
    return True


def specificity(annotation: object) -> int:
    """Orders handlers: a narrower annotation is asked first."""
    if _is_anything(annotation):
        return 0
    if typing.get_args(annotation):
        return 1_000_000
    return len(annotation.__mro__) if isinstance(annotation, type) else 1


def compatible(sent: object, handled: object) -> bool:
    """Whether a message declared as `sent` may be one that `handled` takes."""
    if _is_anything(sent) or _is_anything(handled) or sent == handled:
        return True
    source, target = typing.get_origin(sent) or sent, typing.get_origin(handled) or handled
    if not (isinstance(source, type) and isinstance(target, type)):
        return False
    if source is bool or target is bool:
        return source is target
    if not (issubclass(source, target) or issubclass(target, source)):
        return False
    given, wanted = typing.get_args(sent), typing.get_args(handled)
    if not given or not wanted or len(given) != len(wanted):
        return True
    return all(
        any(compatible(one, two) for one in options(g) for two in options(w)) or g is w
        for g, w in zip(given, wanted, strict=True)
    )


def shown(annotation: object) -> str:
    """An annotation as a person wrote it, stable over processes."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation.__qualname__.replace("<locals>.", "")
    return str(annotation).replace("typing.", "").replace("<locals>.", "")
