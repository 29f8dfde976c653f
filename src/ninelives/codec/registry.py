"""Which types may come back from a journal, and under which names.

Loading never imports what stored bytes name: a type is known because a handler's annotation
mentions it or because it was registered. A rename is declared with an alias.
"""

from __future__ import annotations

import dataclasses
import enum
import typing
from collections.abc import Sequence
from typing import TypeVar, overload

import msgspec

T = TypeVar("T")


class Registry:
    """A two-way table of names and types; what it does not know it asks its parent."""

    def __init__(self, parent: Registry | None = None) -> None:
        self._parent = parent
        self._types: dict[str, type] = {}
        self._names: dict[type, str] = {}
        self._seen: set[int] = set()

    @overload
    def register(
        self, cls: type[T], *, name: str | None = None, aliases: Sequence[str] = ()
    ) -> type[T]: ...

    @overload
    def register(
        self, cls: None = None, *, name: str | None = None, aliases: Sequence[str] = ()
    ) -> typing.Callable[[type[T]], type[T]]: ...

    def register(
        self, cls: type[T] | None = None, *, name: str | None = None, aliases: Sequence[str] = ()
    ) -> type[T] | typing.Callable[[type[T]], type[T]]:
        """Let a class be recorded under `name` (default: its qualified name), also as decorator.

        `aliases` are names that older journals use for it.

        Raises:
            ValueError: the name belongs to another class.
        """
        if cls is None:
            return lambda decorated: self.register(decorated, name=name, aliases=aliases)
        chosen = name or cls.__qualname__.replace("<locals>.", "")
        for each in (chosen, *aliases):
            known = self._types.get(each)
            if known is not None and known is not cls:
                message = (
                    f"type name {each!r} belongs to {_place(known)} and cannot also name "
                    f"{_place(cls)}; register one of them with name="
                )
                raise ValueError(message)
            self._types[each] = cls
        self._names[cls] = chosen
        return cls

    def find(self, name: str) -> type | None:
        """The type behind a recorded name."""
        found = self._types.get(name)
        if found is None and self._parent is not None:
            return self._parent.find(name)
        return found

    def name_of(self, cls: type) -> str | None:
        """The name under which a class is recorded."""
        found = self._names.get(cls)
        if found is None and self._parent is not None:
            return self._parent.name_of(cls)
        return found

    def register_annotation(self, annotation: object) -> None:
        """Register every class that an annotation mentions, and those that its fields mention."""
        if isinstance(annotation, str | typing.ForwardRef) or id(annotation) in self._seen:
            return
        for argument in typing.get_args(annotation):
            self.register_annotation(argument)
        if isinstance(annotation, type) and is_recordable(annotation):
            self._seen.add(id(annotation))
            if self.name_of(annotation) is None:
                self.register(annotation)
            for field in _field_types(annotation):
                self.register_annotation(field)


def is_recordable(cls: type) -> bool:
    """Whether a class is of a kind that the codec can take apart and rebuild."""
    return (
        dataclasses.is_dataclass(cls)
        or issubclass(cls, enum.Enum | msgspec.Struct)
        or is_named_tuple(cls)
        or is_pydantic(cls)
    )


def is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_pydantic(cls: type) -> bool:
    """Told by its marks: pydantic itself need not be installed."""
    return hasattr(cls, "__pydantic_core_schema__") and hasattr(cls, "model_validate")


def _field_types(cls: type) -> list[object]:
    try:
        return list(typing.get_type_hints(cls).values())
    except (NameError, TypeError):
        return []  # a forward reference to a name that is not there: nothing to learn from it


def _place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


GLOBAL = Registry()
