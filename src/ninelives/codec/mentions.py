"""Walks annotations: the classes that they mention, and those that these classes' fields mention.

What cannot be resolved is passed over: a value of such a type is refused when it is encoded.
"""

from __future__ import annotations

import contextlib
import enum
import sys
import types
import typing
from collections.abc import Iterator

from ninelives.codec import kinds


def classes(annotation: object) -> Iterator[type]:
    """Each class once that can be recorded, in the order of mention."""
    seen: list[object] = []
    ahead = [annotation]
    while ahead:
        each = ahead.pop(0)
        if any(each is known for known in seen):
            continue
        seen.append(each)
        if isinstance(each, enum.Enum):  # within a Literal
            ahead.append(type(each))
        elif isinstance(each, type) and not typing.get_args(each):
            if each.__module__ != "builtins" and not kinds.obstacle(each):
                yield each
                ahead.extend(_field_types(each))
        else:
            ahead.extend(_parts(each))


def _parts(annotation: object) -> list[object]:
    """What a union, a generic alias, Annotated, a NewType or a type alias consists of."""
    parts: list[object] = list(typing.get_args(annotation))
    for name in ("__origin__", "__value__", "__supertype__", "__bound__", "__constraints__"):
        with contextlib.suppress(AttributeError, NameError):  # __value__ is evaluated late
            parts.append(getattr(annotation, name))
    if isinstance(annotation, list | tuple):  # the arguments of a Callable
        parts.extend(annotation)
    return parts


def _field_types(cls: type) -> list[object]:
    if issubclass(cls, enum.Enum):
        return []
    generic: list[object] = list(getattr(cls, "__orig_bases__", ()))
    if kinds.is_pydantic(cls):
        fields = cls.model_fields.values()  # type: ignore[attr-defined]
        return [*(each.annotation for each in fields), *generic]
    try:
        return [*typing.get_type_hints(cls, include_extras=True).values(), *generic]
    except Exception:  # noqa: BLE001 - evaluates the user's text: whatever it raises, we go on
        return [*_each_by_itself(cls), *generic]


def _each_by_itself(cls: type) -> Iterator[object]:
    """One name that is not there (as under TYPE_CHECKING) does not hide its neighbours."""
    for base in cls.__mro__:
        names = vars(sys.modules.get(base.__module__, typing))
        for name, written in vars(base).get("__annotations__", {}).items():
            alone = types.SimpleNamespace(__annotations__={name: written})
            with contextlib.suppress(Exception):
                yield from typing.get_type_hints(
                    alone, names, {base.__name__: base}, include_extras=True
                ).values()
