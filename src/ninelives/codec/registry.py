"""Which types may come back from a journal, and under which names.

Loading never imports what stored bytes name: a type is known because a handler's annotation
mentions it or because it was registered. A rename is declared with an alias.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, overload

from ninelives.codec import kinds, mentions

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered class; `kind` is None for an enumeration."""

    name: str
    kind: kinds.Kind | None


class Registry:
    """A two-way table of names and types; what it does not know it asks its parent."""

    def __init__(self, parent: Registry | None = None) -> None:
        self._parent = parent
        self._types: dict[str, type] = {}
        self._names: dict[type, str] = {}
        self._entries: dict[type, Entry] = {}
        self._lock = threading.Lock()

    @overload
    def register(
        self, cls: type[T], *, name: str | None = None, aliases: Sequence[str] = ()
    ) -> type[T]: ...

    @overload
    def register(
        self, cls: None = None, *, name: str | None = None, aliases: Sequence[str] = ()
    ) -> Callable[[type[T]], type[T]]: ...

    def register(
        self, cls: type[T] | None = None, *, name: str | None = None, aliases: Sequence[str] = ()
    ) -> type[T] | Callable[[type[T]], type[T]]:
        """Let a class be recorded under `name` (default: its qualified name), also as decorator.

        `aliases` are names that older journals use for it.

        Raises:
            ValueError: a name belongs to another class; nothing was registered.
            TypeError: the class is of no kind that can be recorded.
        """
        if cls is None:
            return lambda decorated: self.register(decorated, name=name, aliases=aliases)
        if why := kinds.obstacle(cls):
            message = f"{why}; @register stands above @dataclass and the like"
            raise TypeError(message)
        chosen = name or cls.__qualname__.replace("<locals>.", "")
        with self._lock:
            for each in (chosen, *aliases):
                self._refuse_if_taken(each, cls)
            self._types.update(dict.fromkeys((chosen, *aliases), cls))
            self._names[cls] = chosen
            self._entries = {}
        return cls

    def _refuse_if_taken(self, name: str, cls: type) -> None:
        known = self.find(name)
        if known is not None and known is not cls:
            message = (
                f"type name {name!r} belongs to {_place(known)} and cannot also name "
                f"{_place(cls)}; register one of them with name="
            )
            raise ValueError(message)

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

    def entry(self, cls: type) -> Entry | None:
        """How a registered class is recorded.

        Raises:
            ValueError: the parent has given its name to another class since.
        """
        found = self._entries.get(cls)
        if found is None:
            name = self.name_of(cls)
            if name is None:
                return None
            self._refuse_if_taken(name, cls)
            found = Entry(name, None if issubclass(cls, enum.Enum) else kinds.kind_of(cls))
            self._entries[cls] = found
        return found

    def register_annotation(self, annotation: object) -> None:
        """Register every class that an annotation mentions, and those that its fields mention.

        Raises:
            ValueError: two of them have the same name.
        """
        for cls in mentions.classes(annotation):
            if self.name_of(cls) is None:
                self.register(cls)


def _place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


GLOBAL = Registry()
