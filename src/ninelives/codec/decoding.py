"""From typed JSON back to Python values, equal in value and in type.

Nothing is imported because stored bytes name it, nothing is unpickled, and nothing comes back as
a silent None: an unknown name, or a value that does not fit, is an error with its path.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import enum
import pathlib
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from ninelives import errors
from ninelives.codec import paths
from ninelives.codec.encoding import TAG, Plain
from ninelives.codec.paths import Refused
from ninelives.codec.registry import Registry

_json = msgspec.json.Decoder()
_MISSING = object()
# Data with neither of these holds no tag; the second is how hand-written data could hide one.
_TAG_BYTES, _ESCAPED = b'"$"', b"\\u0024"


def decode(data: bytes | msgspec.Raw, registry: Registry) -> object:
    """Bring an encoded value back.

    Raises:
        Undecodable: a type that is not registered, a missing field, or damaged data.
    """
    text = bytes(data)
    plain = parse(text)
    if _TAG_BYTES not in text and _ESCAPED not in text:
        return plain
    return _start(_Decoder(registry), plain, "$")


def decode_arguments(
    data: bytes | msgspec.Raw, registry: Registry
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Bring a call's arguments back.

    Raises:
        Undecodable: as `decode`.
    """
    match parse(data):
        case {"args": list() as args, "kwargs": dict() as kwargs}:
            decoder = _Decoder(registry)
            back = [_start(decoder, each, f"argument {at}") for at, each in enumerate(args, 1)]
            return tuple(back), {
                key: _start(decoder, each, f"argument {key}") for key, each in kwargs.items()
            }
        case _:
            raise errors.Undecodable("$", "damaged data: no arguments of a call")


def parse(data: bytes | msgspec.Raw) -> Plain:
    try:
        return _json.decode(data)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise errors.Undecodable("$", f"damaged data: {error}") from error


def _start(decoder: _Decoder, plain: Plain, start: str) -> object:
    try:
        return decoder.walk(plain)
    except Refused as refused:
        raise errors.Undecodable(refused.path(start), refused.why) from refused.__cause__
    except RecursionError:
        too_deep(start)


def too_deep(path: str) -> NoReturn:
    raise errors.Undecodable(path, "it is nested deeper than the stack that is left") from None


class _Decoder:
    __slots__ = ("_registry",)

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def walk(self, plain: Plain) -> object:
        cls = type(plain)
        if cls is list:
            return self.items(plain)
        if cls is not dict:
            return plain
        tag = plain.get(TAG, _MISSING)
        if tag is _MISSING:
            return self.fields(plain)
        try:
            read = _SCALARS.get(tag) if type(tag) is str else None
            if read is not None:
                return read(plain["v"])
            return self.composed(tag, plain)
        except (Refused, RecursionError):
            raise
        except Exception as error:
            why = f"a damaged {tag!r}: {type(error).__name__}: {error}"
            raise Refused(why) from error

    def items(self, plain: list[Plain]) -> list[object]:
        walked: list[object] = []
        try:
            for each in plain:
                walked.append(self.walk(each))  # noqa: PERF401 - its length is the path
        except Refused as refused:
            raise refused.within(f"[{len(walked)}]")  # noqa: B904 - it keeps its cause
        return walked

    def fields(self, plain: dict[str, Plain]) -> dict[str, object]:
        walked: dict[str, object] = {}
        key = ""
        try:
            for key, each in plain.items():
                walked[key] = self.walk(each)
        except Refused as refused:
            raise refused.within(paths.field(key))  # noqa: B904
        return walked

    def composed(self, tag: object, plain: dict[str, Plain]) -> object:
        match tag:
            case "object":
                return self.instance(plain)
            case "enum":
                return self.member(plain)
            case "tuple":
                return tuple(self.items(plain["v"]))
            case "set":
                return set(self.items(plain["v"]))
            case "frozenset":
                return frozenset(self.items(plain["v"]))
            case "dict":
                return dict(self.pair(key, each) for key, each in plain["v"])
            case _:
                raise Refused(f"unknown tag {tag!r}")

    def pair(self, key: Plain, plain: Plain) -> tuple[object, object]:
        walked = self.walk(key)
        try:
            return walked, self.walk(plain)
        except Refused as refused:
            raise refused.within(paths.item(walked))  # noqa: B904

    def member(self, plain: dict[str, Plain]) -> object:
        cls, value = self.type_of(plain), self.walk(plain["v"])
        if not issubclass(cls, enum.Enum):
            raise Refused(f"type {plain['t']!r} is no enumeration any more")
        try:
            found = cls(value)
        except ValueError:
            found = None
        # `_missing_` may offer another member: that would be a value which nobody recorded.
        if found is None or found.value != value:
            raise Refused(f"{value!r} is no {plain['t']} any more; keep its old values")
        return found

    def instance(self, plain: dict[str, Plain]) -> object:
        cls, name = self.type_of(plain), plain["t"]
        entry = self._registry.entry(cls)
        if entry is None or entry.kind is None:
            raise Refused(f"type {name!r} is an enumeration now, the recorded value is not")
        kind, fields = entry.kind, self.fields(plain["v"])
        if not kind.open and not fields.keys() <= kind.fields:
            fields = {key: each for key, each in fields.items() if key in kind.fields}
        if missing := kind.required - fields.keys():
            listed = ", ".join(sorted(missing))
            raise Refused(f"{name} was recorded without {listed}; give new fields a default")
        try:
            built = kind.rebuild(fields)
        except RecursionError:
            raise
        except Exception as error:
            why = f"{name} cannot be rebuilt: {type(error).__name__}: {error}"
            raise Refused(why) from error
        if kind.were_set is not None:
            were_set = set(plain.get("set", fields)) & fields.keys()
            object.__setattr__(built, "__pydantic_fields_set__", were_set)
        return built

    def type_of(self, plain: dict[str, Plain]) -> type:
        name = plain["t"]
        cls = self._registry.find(name) if isinstance(name, str) else None
        if cls is not None:
            return cls
        raise Refused(
            f"type {name!r} is not registered; mention it in a handler's annotation, register "
            "it, or declare the new name's alias"
        )


def _bytes(value: str) -> bytes:
    return base64.b64decode(value, validate=True)


def text(value: str) -> str:
    return _bytes(value).decode("utf-8", "surrogatepass")


def _int(value: str) -> int:
    return int(value, 16 if "x" in value else 10)


def _float(value: str) -> float:
    return {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}[value]


def _datetime(value: list[Any]) -> dt.datetime:
    written, key, fold, *label = value
    moment = dt.datetime.fromisoformat(written).replace(fold=fold)
    zone = _zone(moment.utcoffset(), key, *label)
    return moment.replace(tzinfo=zone) if zone else moment


def _time(value: list[Any]) -> dt.time:
    written, fold, *named = value
    moment = dt.time.fromisoformat(written).replace(fold=fold)
    zone = _zone(moment.utcoffset(), *named) if named else None
    return moment.replace(tzinfo=zone) if zone else moment


def _zone(offset: dt.timedelta | None, key: str, label: str = "") -> dt.tzinfo | None:
    """The zone that the text alone does not give back."""
    if key:
        return zoneinfo.ZoneInfo(key)
    return dt.timezone(offset, label) if label and offset is not None else None


def _path(value: list[Any]) -> pathlib.PurePath:
    name, written = value
    return _PATHS[name](text(written["v"]) if isinstance(written, dict) else written)


_PATHS: dict[str, Callable[[str], pathlib.PurePath]] = {
    "PosixPath": pathlib.Path,
    "WindowsPath": pathlib.Path,
    "PurePosixPath": pathlib.PurePosixPath,
    "PureWindowsPath": pathlib.PureWindowsPath,
}
_SCALARS: dict[str, Callable[[Any], object]] = {
    "text": text,
    "int": _int,
    "float": _float,
    "bytes": _bytes,
    "bytearray": lambda value: bytearray(_bytes(value)),
    "datetime": _datetime,
    "date": dt.date.fromisoformat,
    "time": _time,
    "timedelta": lambda value: dt.timedelta(*value),
    "decimal": decimal.Decimal,
    "uuid": uuid.UUID,
    "unset": lambda _: msgspec.UNSET,
    "path": _path,
}
