"""State as a handler sees it: what was committed when its superstep began, and its own writes.

Values are encoded when they are set, so that a later change to the object changes nothing that
is recorded. What `get` returns of a list, dict or set is a copy; to change it, set it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from ninelives.log import events

Encode = Callable[[object, str], msgspec.Raw]
Decode = Callable[[msgspec.Raw], object]
_ABSENT = object()


@dataclass(slots=True)
class Scope:
    """The values under one scope ("" = shared, else an executor's own), decoded as needed."""

    decode: Decode
    values: dict[str, object] = field(default_factory=dict)

    def apply(self, change: events.State) -> None:
        """Make one recorded change."""
        match change.change:
            case "set":
                self.values[change.key] = self.decode(change.value)
            case "append":
                items = self.decode(change.value)
                assert isinstance(items, list)
                present = self.values.setdefault(change.key, [])
                assert isinstance(present, list)
                present.extend(items)
            case "delete":
                self.values.pop(change.key, None)


@dataclass(slots=True)
class View:
    """One handler's reading and writing of one scope."""

    name: str
    encode: Encode
    base: Scope
    changes: list[events.State] = field(default_factory=list)
    _own: dict[str, object] = field(default_factory=dict)
    _added: dict[str, list[object]] = field(default_factory=dict)

    def get(self, key: str, default: object = None) -> object:
        """The value under `key`, or `default`."""
        value = self._own.get(key, _ABSENT)
        if value is _ABSENT:
            value = self.base.values.get(key, _ABSENT)
        if key in self._added:
            before = [] if value is _ABSENT else value
            assert isinstance(before, list)
            return [*before, *self._added[key]]
        if value is _ABSENT or value is None:
            return default if value is _ABSENT else None
        return value.copy() if isinstance(value, list | dict | set) else value

    def set(self, key: str, value: object) -> None:
        """Put `value` under `key` when the superstep commits.

        Raises:
            Unencodable: the value cannot be recorded; nothing has changed.
        """
        raw = self.encode(value, f"state[{key!r}]")
        self._change(key, "set", raw)
        self._own[key] = self.base.decode(raw)
        self._added.pop(key, None)

    def append(self, key: str, item: object) -> None:
        """Add one item to the list under `key`: only the item is written, whatever the length.

        Raises:
            Unencodable: as `set`.
            TypeError: there is something else than a list under `key`.
        """
        present = self._own.get(key, self.base.values.get(key, []))
        if present is not None and not isinstance(present, list):
            message = f"state[{key!r}] holds a {type(present).__name__}, not a list"
            raise TypeError(message)
        raw = self.encode([item], f"state[{key!r}]")
        self._change(key, "append", raw)
        items = self.base.decode(raw)
        assert isinstance(items, list)
        self._added.setdefault(key, []).extend(items)

    def delete(self, key: str) -> None:
        """Remove `key`; nothing happens if it is not there."""
        self._change(key, "delete", msgspec.Raw(b"null"))
        self._own[key] = _ABSENT
        self._added.pop(key, None)

    def keys(self) -> list[str]:
        """All keys, sorted."""
        names = self.base.values.keys() | self._own.keys() | self._added.keys()
        return sorted(
            name for name in names if self._own.get(name) is not _ABSENT or name in self._added
        )

    def _change(self, key: str, change: str, raw: msgspec.Raw) -> None:
        self.changes.append(
            events.State(scope=self.name, key=key, change=change, value=raw)  # type: ignore[arg-type]
        )


def scopes(decode: Decode, changes: Iterable[events.State]) -> dict[str, Scope]:
    """Build the state of a run from its recorded changes."""
    built: dict[str, Scope] = {}
    for change in changes:
        built.setdefault(change.scope, Scope(decode)).apply(change)
    return built
