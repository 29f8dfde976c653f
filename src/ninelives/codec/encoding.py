"""From Python values to typed JSON.

What JSON has is written as it is; everything else is an object whose key `$` names its kind.
Types are taken exactly: a subclass that would come back as its base is refused, with the path to
the offending part, before anything is written.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import math
import pathlib
import uuid
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ninelives import errors
from ninelives.codec import kinds, paths
from ninelives.codec.paths import Refused
from ninelives.codec.registry import Entry, Registry

TAG = "$"
DEPTH_MAX = 200
INT_MAX = 2**63 - 1
DIGITS_BITS_MAX = 8192  # larger ints are written in hexadecimal: Python limits decimal digits
Plain = Any  # what JSON can hold

_json = msgspec.json.Encoder()
_sorted = msgspec.json.Encoder(order="sorted")


def encode(value: object, registry: Registry) -> bytes:
    """Encode a value as typed JSON.

    Raises:
        Unencodable: `path` leads from `$` to the part that cannot be recorded.
    """
    if type(value) is str and value.isascii():
        return _json.encode(value)
    return _written(tagged(value, registry))


def encode_arguments(
    args: Sequence[object], kwargs: Mapping[str, object], registry: Registry
) -> bytes:
    """Encode a call's arguments; paths start at `argument 1` or at `argument NAME`."""
    return _written(tagged_arguments(args, kwargs, registry))


def _written(plain: Plain) -> bytes:
    try:
        return _json.encode(plain)
    except RecursionError:
        why = "it is nested deeper than the stack that is left"
        raise errors.Unencodable("$", why) from None


def tagged(value: object, registry: Registry, *, canonical: bool = False) -> Plain:
    """The typed JSON of a value as plain lists, dicts and scalars.

    `canonical`: what two equal values may differ in (the order of pairs) is made the same.
    """
    return _start(_Encoder(registry, canonical=canonical), value, "$")


def tagged_arguments(
    args: Sequence[object],
    kwargs: Mapping[str, object],
    registry: Registry,
    *,
    canonical: bool = False,
) -> Plain:
    encoder = _Encoder(registry, canonical=canonical)
    for key in kwargs:
        if not _storable(key):
            raise errors.Unencodable(f"argument {key!r}", "its name is no valid text")
    return {
        "args": [_start(encoder, each, f"argument {at}") for at, each in enumerate(args, 1)],
        "kwargs": {key: _start(encoder, each, f"argument {key}") for key, each in kwargs.items()},
    }


def _start(encoder: _Encoder, value: object, start: str) -> Plain:
    try:
        return encoder.walk(value, 0)
    except Refused as refused:
        raise errors.Unencodable(refused.path(start), refused.why) from None
    except RecursionError:
        why = "it is nested deeper than the stack that is left"
        raise errors.Unencodable(start, why) from None


def _tag(name: str, value: Plain) -> Plain:
    return {TAG: name, "v": value}


class _Encoder:
    """One walk over one value. Paths cost nothing: a refusal collects them on its way up."""

    __slots__ = ("_canonical", "_registry")

    def __init__(self, registry: Registry, *, canonical: bool) -> None:
        self._registry = registry
        self._canonical = canonical

    def walk(self, value: object, depth: int) -> Plain:
        cls = type(value)
        if cls is str:
            return value if value.isascii() else _text(value)  # type: ignore[attr-defined]
        if cls is bool or value is None:
            return value
        if cls is int:
            return _integer(value)
        scalar = _SCALARS.get(cls)
        if scalar is not None:
            return scalar(value)
        if depth > DEPTH_MAX:
            raise Refused(f"nested deeper than {DEPTH_MAX}, or in a circle")
        composed = _COMPOSED.get(cls, _Encoder.walk_instance)
        return composed(self, value, depth + 1)

    def walk_list(self, value: Sequence[object], depth: int) -> list[Plain]:
        walked: list[Plain] = []
        try:
            for each in value:
                walked.append(self.walk(each, depth))  # noqa: PERF401 - its length is the path
        except Refused as refused:
            raise refused.within(f"[{len(walked)}]") from None
        return walked

    def walk_tuple(self, value: tuple[object, ...], depth: int) -> Plain:
        return _tag("tuple", self.walk_list(value, depth))

    def walk_dict(self, value: dict[object, object], depth: int) -> Plain:
        for key in value:
            if type(key) is not str or key == TAG or not _storable(key):
                return self.walk_pairs(value, depth)
        return self.walk_fields(value, depth)  # type: ignore[arg-type]

    def walk_fields(self, fields: dict[str, object], depth: int) -> dict[str, Plain]:
        walked: dict[str, Plain] = {}
        key = ""
        try:
            for key, each in fields.items():
                walked[key] = self.walk(each, depth)
        except Refused as refused:
            raise refused.within(paths.field(key)) from None
        return walked

    def walk_pairs(self, value: dict[object, object], depth: int) -> Plain:
        pairs: list[Plain] = []
        key: object = None
        try:
            for key, each in value.items():
                pairs.append([self.walk(key, depth), self.walk(each, depth)])
        except Refused as refused:
            raise refused.within(paths.item(key)) from None
        return _tag("dict", sorted(pairs, key=_sorted.encode) if self._canonical else pairs)

    def walk_set(self, value: set[object] | frozenset[object], depth: int) -> Plain:
        try:
            walked = [self.walk(each, depth) for each in value]
        except Refused as refused:
            raise refused.within("{}") from None
        name = "set" if type(value) is set else "frozenset"
        return _tag(name, sorted(walked, key=_sorted.encode))

    def walk_instance(self, value: object, depth: int) -> Plain:
        entry = self._entry(type(value))
        if entry.kind is None:
            return {TAG: "enum", "t": entry.name, "v": self.walk(_enum_value(value), depth)}
        try:
            fields = entry.kind.take_apart(value)
        except (AttributeError, ValueError) as error:  # a field that was never set
            raise Refused(f"it cannot be taken apart: {error}") from None
        if entry.kind.open and not all(map(_storable, fields)):
            raise Refused("a field's name is no valid text")
        made: dict[str, Plain] = {
            TAG: "object",
            "t": entry.name,
            "v": self.walk_fields(fields, depth),
        }
        if entry.kind.were_set is not None and not self._canonical:
            were_set = entry.kind.were_set(value)
            if len(were_set) < len(fields):
                made["set"] = sorted(were_set)
        return made

    def _entry(self, cls: type) -> Entry:
        try:
            entry = self._registry.entry(cls)
        except ValueError as error:
            raise Refused(str(error)) from None
        if entry is not None:
            return entry
        raise Refused(
            kinds.obstacle(cls)
            or f"type {cls.__module__}.{cls.__qualname__} is not registered; mention it in a "
            "handler's annotation, or decorate it with @ninelives.register"
        )


def _enum_value(value: Any) -> object:  # noqa: ANN401 - a member of an enumeration
    found: object = value.value
    try:
        back = type(value)(found)
    except ValueError:
        back = None
    if (back is not value and back != value) or found != found:  # noqa: PLR0124 - a NaN
        raise Refused(f"{value!r} cannot be found by its value")
    return found


def _storable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _text(value: Any) -> Plain:  # noqa: ANN401 - a str
    if _storable(value):
        return value
    return _tag("text", base64.b64encode(value.encode("utf-8", "surrogatepass")).decode())


def _integer(value: Any) -> Plain:  # noqa: ANN401 - an int
    if -INT_MAX <= value <= INT_MAX:
        return value
    return _tag("int", str(value) if value.bit_length() <= DIGITS_BITS_MAX else hex(value))


def _float(value: float) -> Plain:
    return value if math.isfinite(value) else _tag("float", str(value))


def _zone(zone: dt.tzinfo | None) -> list[str]:
    """What a zone has beside the offset in the text: its key, or a label of its own."""
    if zone is None or zone is dt.UTC:
        return []
    if type(zone) is zoneinfo.ZoneInfo and zone.key:
        return [zone.key]
    if type(zone) is dt.timezone:
        label, offset = zone.tzname(None), zone.utcoffset(None)
        return [] if label == dt.timezone(offset).tzname(None) else ["", label]
    raise Refused(f"a time zone of type {type(zone).__qualname__} cannot be recorded; use zoneinfo")


def _datetime(value: dt.datetime) -> Plain:
    key, *label = _zone(value.tzinfo) or [""]
    kept = value.replace(tzinfo=None, fold=0) if key else value.replace(fold=0)
    return _tag("datetime", [kept.isoformat(), key, value.fold, *label])


def _time(value: dt.time) -> Plain:
    zone = _zone(value.tzinfo)
    kept = value.replace(tzinfo=None, fold=0) if any(zone[:1]) else value.replace(fold=0)
    return _tag("time", [kept.isoformat(), value.fold, *zone])


def _path(value: pathlib.PurePath) -> Plain:
    return _tag("path", [type(value).__name__, _text(str(value))])


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
    type(msgspec.UNSET): lambda _: _tag("unset", None),
    pathlib.PurePosixPath: _path,
    pathlib.PureWindowsPath: _path,
    pathlib.PosixPath: _path,
    pathlib.WindowsPath: _path,
}
_COMPOSED: dict[type, Callable[[_Encoder, Any, int], Plain]] = {
    list: _Encoder.walk_list,
    tuple: _Encoder.walk_tuple,
    dict: _Encoder.walk_dict,
    set: _Encoder.walk_set,
    frozenset: _Encoder.walk_set,
}
