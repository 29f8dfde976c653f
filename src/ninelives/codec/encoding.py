"""From Python values to typed JSON.

What JSON has is written as it is; everything else is an object whose key `$` names its kind.
Types are taken exactly: a subclass that would come back as its base is refused, with the path to
the offending part, before anything is written.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import math
import pathlib
import uuid
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ninelives import errors
from ninelives.codec.registry import Registry, is_named_tuple, is_pydantic

TAG = "$"
DEPTH_MAX = 200
INT_MAX = 2**63 - 1
Plain = Any  # what JSON can hold

_json = msgspec.json.Encoder()


def encode(value: object, registry: Registry) -> bytes:
    """Encode a value as typed JSON.

    Raises:
        Unencodable: `path` leads from `$` to the part that cannot be recorded.
    """
    return _json.encode(tagged(value, registry))


def encode_arguments(
    args: Sequence[object], kwargs: Mapping[str, object], registry: Registry
) -> bytes:
    """Encode a call's arguments; paths start at `argument 1` or at a keyword."""
    return _json.encode(tagged_arguments(args, kwargs, registry))


def tagged(value: object, registry: Registry, *, canonical: bool = False) -> Plain:
    """The typed JSON of a value as plain lists, dicts and scalars.

    `canonical`: where the order of a dict's pairs would be kept, it is made one and the same.
    """
    return _Encoder(registry, canonical=canonical).walk(value, "$", 0)


def tagged_arguments(
    args: Sequence[object],
    kwargs: Mapping[str, object],
    registry: Registry,
    *,
    canonical: bool = False,
) -> Plain:
    walk = _Encoder(registry, canonical=canonical).walk
    return {
        "args": [walk(each, f"argument {index + 1}", 0) for index, each in enumerate(args)],
        "kwargs": {key: walk(each, f"argument {key}", 0) for key, each in kwargs.items()},
    }


def _tag(name: str, value: Plain) -> Plain:
    return {TAG: name, "v": value}


class _Encoder:
    """One walk over one value."""

    __slots__ = ("_canonical", "_registry")

    def __init__(self, registry: Registry, *, canonical: bool) -> None:
        self._registry = registry
        self._canonical = canonical

    def walk(self, value: object, path: str, depth: int) -> Plain:
        cls = type(value)
        if cls is str:
            return _text(value)
        if cls is bool or value is None:
            return value
        if cls is int:
            return _integer(value)
        if depth > DEPTH_MAX:
            raise errors.Unencodable(path[:200], f"nested deeper than {DEPTH_MAX}, or in a circle")
        composed = _COMPOSED.get(cls)
        if composed is not None:
            return composed(self, value, path, depth + 1)
        scalar = _SCALARS.get(cls)
        if scalar is not None:
            return scalar(value)
        return self.walk_instance(value, cls, path, depth + 1)

    def walk_list(self, value: list[object], path: str, depth: int) -> Plain:
        return [self.walk(each, f"{path}[{index}]", depth) for index, each in enumerate(value)]

    def walk_tuple(self, value: tuple[object, ...], path: str, depth: int) -> Plain:
        return _tag("tuple", self.walk_list(list(value), path, depth))

    def walk_dict(self, value: dict[object, object], path: str, depth: int) -> Plain:
        if all(type(key) is str and key != TAG and _storable(key) for key in value):
            return {key: self.walk(each, f"{path}.{key}", depth) for key, each in value.items()}
        pairs = [
            [
                self.walk(key, f"{path} key {key!r}", depth),
                self.walk(each, f"{path}[{key!r}]", depth),
            ]
            for key, each in value.items()
        ]
        return _tag("dict", sorted(pairs, key=_json.encode) if self._canonical else pairs)

    def walk_set(self, value: set[object] | frozenset[object], path: str, depth: int) -> Plain:
        walked = [self.walk(each, f"{path}{{{each!r}}}", depth) for each in value]
        name = "set" if type(value) is set else "frozenset"
        return _tag(name, sorted(walked, key=_json.encode))

    def walk_instance(self, value: object, cls: type, path: str, depth: int) -> Plain:
        fields = _fields(value, cls)
        if fields is None:
            raise errors.Unencodable(path, _why_not(value, cls))
        name = self._registry.name_of(cls)
        if name is None:
            why = (
                f"type {cls.__module__}.{cls.__qualname__} is not registered; mention it in a "
                "handler's annotation, or decorate it with @ninelives.register"
            )
            raise errors.Unencodable(path, why)
        if isinstance(value, enum.Enum):
            return {TAG: "enum", "t": name, "v": self.walk(value.value, path, depth)}
        walked = {key: self.walk(each, f"{path}.{key}", depth) for key, each in fields.items()}
        return {TAG: "object", "t": name, "v": walked}


def _fields(value: object, cls: type) -> dict[str, object] | None:
    """An instance taken apart, or None if it is of no kind that can be rebuilt."""
    if isinstance(value, enum.Enum):
        return {}
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if dataclasses.is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if is_named_tuple(cls):
        return dict(zip(cls._fields, value, strict=True))  # type: ignore[attr-defined,call-overload]
    if is_pydantic(cls):
        names = cls.model_fields  # type: ignore[attr-defined]
        extra = getattr(value, "__pydantic_extra__", None) or {}
        return {**{name: getattr(value, name) for name in names}, **extra}
    return None


def _why_not(value: object, cls: type) -> str:
    for base in (dict, list, tuple, set, str, int, float, bytes):
        if isinstance(value, base):
            return (
                f"a {cls.__qualname__} would come back as a plain {base.__name__}; "
                f"convert it with {base.__name__}(...)"
            )
    if "Secret" in cls.__name__:
        return f"{cls.__qualname__} is a secret, and secrets are not state; read it anew"
    return (
        f"a {cls.__qualname__} cannot be recorded; record plain values and rebuild clients, "
        "locks and files in the code"
    )


def _storable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _text(value: Any) -> Plain:  # noqa: ANN401 - a str
    if value.isascii() or _storable(value):
        return value
    return _tag("text", base64.b64encode(value.encode("utf-8", "surrogatepass")).decode())


def _integer(value: Any) -> Plain:  # noqa: ANN401 - an int
    return value if -INT_MAX <= value <= INT_MAX else _tag("int", str(value))


def _float(value: float) -> Plain:
    return value if math.isfinite(value) else _tag("float", str(value))


def _datetime(value: dt.datetime) -> Plain:
    zone = value.tzinfo
    if isinstance(zone, zoneinfo.ZoneInfo) and zone.key:
        naive = value.replace(tzinfo=None, fold=0).isoformat()
        return _tag("datetime", [naive, zone.key, value.fold])
    if zone is not None and type(zone) is not dt.timezone:
        message = f"time zone {zone!r} cannot be recorded; use zoneinfo or dt.timezone"
        raise errors.Unencodable("$", message)
    return _tag("datetime", [value.replace(fold=0).isoformat(), "", value.fold])


def _time(value: dt.time) -> Plain:
    zone = value.tzinfo
    if zone is not None and type(zone) is not dt.timezone:
        raise errors.Unencodable("$", f"time zone {zone!r} of a bare time cannot be recorded")
    return _tag("time", [value.replace(fold=0).isoformat(), value.fold])


_SCALARS: dict[type, Callable[[Any], Plain]] = {
    float: _float,
    bytes: lambda value: _tag("bytes", base64.b64encode(value).decode()),
    bytearray: lambda value: _tag("bytearray", base64.b64encode(value).decode()),
    dt.datetime: _datetime,
    dt.date: lambda value: _tag("date", value.isoformat()),
    dt.time: _time,
    dt.timedelta: lambda value: _tag("timedelta", [value.days, value.seconds, value.microseconds]),
    decimal.Decimal: lambda value: _tag("decimal", str(value)),
    uuid.UUID: lambda value: _tag("uuid", str(value)),
    **{
        cls: (lambda value: _tag("path", [type(value).__name__, str(value)]))
        for cls in (
            pathlib.PurePosixPath,
            pathlib.PureWindowsPath,
            pathlib.PosixPath,
            pathlib.WindowsPath,
        )
    },
}
_COMPOSED: dict[type, Callable[[_Encoder, Any, str, int], Plain]] = {
    list: _Encoder.walk_list,
    tuple: _Encoder.walk_tuple,
    dict: _Encoder.walk_dict,
    set: _Encoder.walk_set,
    frozenset: _Encoder.walk_set,
}
