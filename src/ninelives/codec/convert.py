"""Plain JSON in and out: input from a command line, and values for display."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import enum
import json
import pathlib
import types
import typing
from collections.abc import Callable, Sequence

import msgspec

from ninelives.codec import decoding, kinds
from ninelives.codec.encoding import DEPTH_MAX, TAG, Plain

_NATIVE: tuple[object, ...] = (str, int, float, bool, type(None))

# A recorded level takes up to four of JSON: an object, its fields, a tag, its value.
JSON_DEPTH_MAX = 4 * DEPTH_MAX


def from_json(text_or_value: object, annotations: Sequence[object]) -> object:
    """Decode plain JSON against the annotation that it fits best.

    A text is JSON to be parsed, anything else has been parsed. Tried are, each over all
    annotations in their order: the very type; a strict fit that drops no field; a strict fit;
    a fit by conversion, such as a number from a text.

    Raises:
        ValueError: it is no JSON, or fits none; says why for each.
    """
    plain = _parsed(text_or_value) if isinstance(text_or_value, str | bytes) else text_or_value
    options = [option for each in annotations for option in _options(each)]
    for option in options:
        if option is type(plain) and option in _NATIVE:
            return plain
    reasons: list[str] = []
    for fits, strict in ((_names_all, True), (_anything, True), (_anything, False)):
        for option in options:
            if not fits(option, plain):
                continue
            try:
                return _convert(plain, option, strict=strict)
            except (ValueError, TypeError, RecursionError) as error:
                reasons.append(f"{getattr(option, '__name__', option)}: {error}")
    raise ValueError("; ".join(dict.fromkeys(reasons)) or "nothing is handled")


def _parsed(text: str | bytes) -> Plain:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        message = "it is nested too deep"
    except ValueError as error:
        message = f"it is not valid JSON ({error}); a text needs its quotes"
    raise ValueError(message) from None


def _refuse_constant(name: str) -> typing.NoReturn:
    message = f"{name} is no number of JSON"
    raise ValueError(message)


def _options(annotation: object) -> list[object]:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated and _is_union(typing.get_args(annotation)[0]):
        return _options(typing.get_args(annotation)[0])
    if _is_union(annotation):
        return [option for each in typing.get_args(annotation) for option in _options(each)]
    return [types.NoneType if annotation is None else annotation]


def _is_union(annotation: object) -> bool:
    return typing.get_origin(annotation) in {typing.Union, types.UnionType}


def _anything(_option: object, _plain: Plain) -> bool:
    return True


def _names_all(option: object, plain: Plain) -> bool:
    """Whether a class has a field for each key: another class may fit better."""
    cls = typing.get_origin(option) or option
    if not isinstance(cls, type) or not isinstance(plain, dict):
        return True
    if kinds.is_pydantic(cls):
        return _names_all_of_model(cls, plain)
    if issubclass(cls, msgspec.Struct):
        return plain.keys() <= set(cls.__struct_encode_fields__)
    if dataclasses.is_dataclass(cls):
        return plain.keys() <= {each.name for each in dataclasses.fields(cls)}
    return True


def _names_all_of_model(cls: typing.Any, plain: dict[str, Plain]) -> bool:  # noqa: ANN401
    names: set[object] = set()
    for name, each in cls.model_fields.items():
        if not isinstance(each.validation_alias, str | None):
            return True  # it takes a choice of names, or a path
        names |= {name, each.validation_alias}
    return cls.model_config.get("extra") == "allow" or plain.keys() <= names


def _convert(plain: Plain, annotation: typing.Any, *, strict: bool) -> object:  # noqa: ANN401
    if annotation is typing.Any or annotation is object:
        return plain
    if isinstance(annotation, type):
        if issubclass(annotation, enum.Enum):
            return annotation(plain)
        if kinds.is_pydantic(annotation):
            return annotation.model_validate(plain, strict=strict or None)  # type: ignore[attr-defined]

    def custom(wanted: typing.Any, given: Plain) -> object:  # noqa: ANN401 - within the annotation
        if wanted is object:
            return given
        if isinstance(wanted, type) and kinds.is_pydantic(wanted):
            return wanted.model_validate(given, strict=strict or None)  # type: ignore[attr-defined]
        if wanted in _PATHS and isinstance(given, str):
            return wanted(given)
        message = f"{getattr(wanted, '__name__', wanted)} cannot be read from JSON"
        raise ValueError(message)

    return msgspec.convert(plain, annotation, strict=strict, dec_hook=custom)


_PATHS = {
    pathlib.Path,
    pathlib.PurePath,
    pathlib.PosixPath,
    pathlib.WindowsPath,
    pathlib.PurePosixPath,
    pathlib.PureWindowsPath,
}


def plain(data: bytes | msgspec.Raw) -> Plain:
    """A recorded value as plain JSON for display; needs no registry, and cannot go back.

    Damaged parts are shown as they are recorded.

    Raises:
        Undecodable: it is no JSON at all, or is nested without an end.
    """
    parsed = decoding.parse(data)
    if _is_endless(parsed):
        return decoding.too_deep("$")
    try:
        return _display(parsed)
    except RecursionError:
        return decoding.too_deep("$")


def _is_endless(value: Plain) -> bool:
    """Whether JSON is nested deeper than anything that `encode` writes.

    Asked without recursion: how deep that may go differs between Python's versions.
    """
    level, depth = [value] if isinstance(value, dict | list) else [], 0
    while level and depth <= JSON_DEPTH_MAX:
        inside = [each.values() if isinstance(each, dict) else each for each in level]
        level = [each for part in inside for each in part if isinstance(each, dict | list)]
        depth += 1
    return bool(level)


def _display(value: Plain) -> Plain:
    if isinstance(value, list):
        return [_display(each) for each in value]
    if not isinstance(value, dict):
        return value
    tag = value.get(TAG)
    if isinstance(tag, str) and "v" in value:
        show = _SHOWN.get(tag, _display)
        with contextlib.suppress(ValueError, TypeError, LookupError, AttributeError, OverflowError):
            return show(value["v"])
    return {key: _display(each) for key, each in value.items()}


def _pairs(pairs: list[Plain]) -> Plain:
    shown = {_key(key): _display(each) for key, each in pairs}
    if len(shown) == len(pairs):
        return shown
    return [[_display(key), _display(each)] for key, each in pairs]  # as 1 beside "1"


def _key(value: Plain) -> str:
    shown = _display(value)
    return shown if isinstance(shown, str) else json.dumps(shown)


def _text(value: str) -> str:
    return decoding.text(value).encode("utf-8", "backslashreplace").decode()


def _moment(value: list[Plain]) -> str:
    return f"{value[0]} {value[1]}" if value[1] else str(value[0])


def _path(value: list[Plain]) -> Plain:
    return _display(value[1])


_SHOWN: dict[str, Callable[[Plain], Plain]] = {
    "dict": _pairs,
    "text": _text,
    "float": lambda value: {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[value],
    "datetime": _moment,
    "time": lambda value: " ".join(filter(None, (value[0], *value[2:]))),
    "timedelta": lambda value: dt.timedelta(*value).total_seconds(),
    "path": _path,
}
