"""From typed JSON back to Python values, equal in value and in type.

Nothing is imported because stored bytes name it, nothing is unpickled, and nothing comes back as
a silent None: an unknown name, or a value that does not fit, is an error with its path.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import pathlib
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any

import msgspec

from ninelives import errors
from ninelives.codec.encoding import TAG, Plain
from ninelives.codec.registry import Registry, is_named_tuple, is_pydantic

_json = msgspec.json.Decoder()
_MISSING = object()


def decode(data: bytes | msgspec.Raw, registry: Registry) -> object:
    """Bring an encoded value back.

    Raises:
        Undecodable: a type that is not registered, a missing field, or damaged data.
    """
    return _Decoder(registry).walk(parse(data), "$")


def decode_arguments(
    data: bytes | msgspec.Raw, registry: Registry
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Bring a call's arguments back."""
    plain = parse(data)
    walk = _Decoder(registry).walk
    args = [walk(each, f"argument {index + 1}") for index, each in enumerate(plain["args"])]
    return tuple(args), {
        key: walk(each, f"argument {key}") for key, each in plain["kwargs"].items()
    }


def parse(data: bytes | msgspec.Raw) -> Plain:
    try:
        return _json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise errors.Undecodable("$", f"damaged data: {error}") from error


class _Decoder:
    __slots__ = ("_registry",)

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def walk(self, plain: Plain, path: str) -> object:
        if isinstance(plain, list):
            return [self.walk(each, f"{path}[{index}]") for index, each in enumerate(plain)]
        if not isinstance(plain, dict):
            return plain
        tag = plain.get(TAG, _MISSING)
        if tag is _MISSING:
            return {key: self.walk(each, f"{path}.{key}") for key, each in plain.items()}
        try:
            return self._tagged(tag, plain, path)
        except errors.Undecodable:
            raise
        except Exception as error:
            raise errors.Undecodable(path, f"a damaged {tag!r}: {error}") from error

    def _tagged(self, tag: object, plain: dict[str, Plain], path: str) -> object:
        value = plain["v"]
        match tag:
            case "tuple":
                return tuple(self._items(value, path))
            case "set":
                return set(self._items(value, path))
            case "frozenset":
                return frozenset(self._items(value, path))
            case "dict":
                return {
                    self.walk(k, f"{path} key"): self.walk(v, f"{path}[{k!r}]") for k, v in value
                }
            case "enum" | "object":
                return self._instance(plain, path)
            case str() if tag in _SCALARS:
                return _SCALARS[tag](value)
            case _:
                raise errors.Undecodable(path, f"unknown tag {tag!r}")

    def _items(self, value: list[Plain], path: str) -> list[object]:
        return [self.walk(each, f"{path}[{index}]") for index, each in enumerate(value)]

    def _instance(self, plain: dict[str, Plain], path: str) -> object:
        name = plain["t"]
        cls = self._registry.find(name) if isinstance(name, str) else None
        if cls is None:
            why = (
                f"type {name!r} is not registered; mention it in a handler's annotation, register "
                "it, or declare the new name's alias"
            )
            raise errors.Undecodable(path, why)
        if plain[TAG] == "enum":
            value = self.walk(plain["v"], path)
            if issubclass(cls, enum.Enum):
                return cls(value)
            raise errors.Undecodable(path, f"type {name!r} is no enumeration any more")
        fields = {key: self.walk(each, f"{path}.{key}") for key, each in plain["v"].items()}
        return _rebuild(cls, fields, f"{path} ({name})")


def _rebuild(cls: type, fields: dict[str, object], path: str) -> object:
    if is_pydantic(cls):
        return _rebuild_pydantic(cls, fields)
    if issubclass(cls, msgspec.Struct):
        known = set(cls.__struct_fields__)
        return _construct(cls, {k: v for k, v in fields.items() if k in known}, path)
    if is_named_tuple(cls):
        known = set(cls._fields)  # type: ignore[attr-defined]
        return _construct(cls, {k: v for k, v in fields.items() if k in known}, path)
    if dataclasses.is_dataclass(cls):
        return _rebuild_dataclass(cls, fields, path)
    raise errors.Undecodable(path, "it is of no kind that can be rebuilt")


def _rebuild_dataclass(cls: type, fields: dict[str, object], path: str) -> object:
    declared = {each.name: each for each in dataclasses.fields(cls)}
    given = {k: v for k, v in fields.items() if k in declared and declared[k].init}
    built = _construct(cls, given, path)
    for name, each in declared.items():
        if not each.init and name in fields:
            object.__setattr__(built, name, fields[name])
    return built


def _rebuild_pydantic(cls: Any, fields: dict[str, object]) -> object:  # noqa: ANN401
    by_alias = {}
    for name, value in fields.items():
        field = cls.model_fields.get(name)
        alias = getattr(field, "validation_alias", None) or getattr(field, "alias", None)
        by_alias[alias if isinstance(alias, str) else name] = value
    ignores = cls.model_config.get("extra") == "forbid"
    known = {k: v for k, v in by_alias.items() if not ignores or k in _pydantic_names(cls)}
    return cls.model_validate(known)


def _pydantic_names(cls: Any) -> set[str]:  # noqa: ANN401
    names = set(cls.model_fields)
    for field in cls.model_fields.values():
        if isinstance(field.validation_alias, str):
            names.add(field.validation_alias)
    return names


def _construct(cls: Callable[..., object], fields: dict[str, object], path: str) -> object:
    try:
        return cls(**fields)
    except TypeError as error:
        why = f"it cannot be rebuilt: {error}; give new fields a default"
        raise errors.Undecodable(path, why) from error


def _bytes(value: str) -> bytes:
    return base64.b64decode(value, validate=True)


def _datetime(value: list[Any]) -> dt.datetime:
    text, zone, fold = value
    moment = dt.datetime.fromisoformat(text).replace(fold=fold)
    return moment.replace(tzinfo=zoneinfo.ZoneInfo(zone)) if zone else moment


_PATHS: dict[str, Callable[[str], pathlib.PurePath]] = {
    "PosixPath": pathlib.Path,
    "WindowsPath": pathlib.Path,
    "PurePosixPath": pathlib.PurePosixPath,
    "PureWindowsPath": pathlib.PureWindowsPath,
}
_SCALARS: dict[str, Callable[[Any], object]] = {
    "text": lambda value: _bytes(value).decode("utf-8", "surrogatepass"),
    "int": int,
    "float": float,
    "bytes": _bytes,
    "bytearray": lambda value: bytearray(_bytes(value)),
    "datetime": _datetime,
    "date": dt.date.fromisoformat,
    "time": lambda value: dt.time.fromisoformat(value[0]).replace(fold=value[1]),
    "timedelta": lambda value: dt.timedelta(*value),
    "decimal": decimal.Decimal,
    "uuid": uuid.UUID,
    "path": lambda value: _PATHS[value[0]](value[1]),
}
