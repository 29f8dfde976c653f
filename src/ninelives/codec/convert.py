"""Plain JSON in and out: input from a command line, and values for display."""

from __future__ import annotations

import contextlib
import datetime as dt
import enum
import json
import types
import typing
from collections.abc import Sequence

import msgspec

from ninelives.codec.decoding import parse
from ninelives.codec.encoding import TAG, Plain
from ninelives.codec.registry import is_pydantic


def from_json(text: str, annotations: Sequence[object]) -> object:
    """Decode plain JSON against the first annotation that it fits, strictly first.

    Raises:
        ValueError: it is no JSON, or fits none; says why for each.
    """
    try:
        plain = json.loads(text)
    except ValueError as error:
        message = f"it is not valid JSON ({error}); a text needs its quotes"
        raise ValueError(message) from None
    options = [option for each in annotations for option in _options(each)]
    reasons: list[str] = []
    for strict in (True, False):
        for option in options:
            try:
                return _convert(plain, option, strict=strict)
            except (ValueError, TypeError) as error:
                reasons.append(f"{getattr(option, '__name__', option)}: {error}")
    raise ValueError("; ".join(dict.fromkeys(reasons)) or "nothing is handled")


def _options(annotation: object) -> list[object]:
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        return [option for each in typing.get_args(annotation) for option in _options(each)]
    return [annotation]


def _convert(plain: Plain, annotation: typing.Any, *, strict: bool) -> object:  # noqa: ANN401
    if annotation is typing.Any or annotation is object:
        return plain
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return annotation(plain)
    if isinstance(annotation, type) and is_pydantic(annotation):
        return annotation.model_validate(plain, strict=strict or None)  # type: ignore[attr-defined]
    return msgspec.convert(plain, annotation, strict=strict)


def plain(data: bytes | msgspec.Raw) -> Plain:
    """A recorded value as plain JSON for display; needs no registry, and cannot go back."""
    return _display(parse(data))


def _display(value: Plain) -> Plain:
    if isinstance(value, list):
        return [_display(each) for each in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: _display(each) for key, each in value.items()}
    inner: typing.Any = value.get("v")
    match value[TAG]:
        case "dict" if isinstance(inner, list):
            return {_key(pair[0]): _display(pair[1]) for pair in inner}
        case "datetime":
            return inner[0] + (f" {inner[1]}" if inner[1] else "")
        case "time" | "path":
            return inner[0 if value[TAG] == "time" else 1]
        case "timedelta":
            return dt.timedelta(*inner).total_seconds()
        case _:
            return _display(inner)


def _key(value: Plain) -> str:
    shown = _display(value)
    with contextlib.suppress(TypeError):
        return shown if isinstance(shown, str) else json.dumps(shown)
    return str(shown)
