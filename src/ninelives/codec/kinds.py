"""The kinds of classes that can be taken apart into fields and rebuilt from them.

Rebuilding gives the recorded values back as they were: a class's own `__post_init__` or validators
run, but what they would make of a value that has been through them before does not count.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Callable
from typing import Any

import msgspec

Fields = dict[str, object]
_BASES = (dict, list, tuple, set, frozenset, str, int, float, bytes, bytearray)


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """How one class is taken apart and rebuilt; `rebuild` gets all `required` fields.

    `open`: it keeps fields that its class does not name. `were_set` is None where a class does
    not tell fields that were given from those that took their default.
    """

    fields: frozenset[str]
    required: frozenset[str]
    take_apart: Callable[[Any], Fields]
    rebuild: Callable[[Fields], object]
    open: bool = False
    were_set: Callable[[Any], frozenset[str]] | None = None


def kind_of(cls: type) -> Kind:
    """Find the kind of a class that has no `obstacle` and is no enumeration."""
    if is_pydantic(cls):
        return _model(cls)
    if issubclass(cls, msgspec.Struct):
        return _struct(cls)
    if is_named_tuple(cls):
        return _named_tuple(cls)
    return _dataclass(cls)


def obstacle(cls: type) -> str:
    """Why instances of a class cannot be recorded; empty if they can."""
    if issubclass(cls, enum.Enum) or is_named_tuple(cls):
        return ""
    for base in _BASES:
        if issubclass(cls, base):
            return (
                f"a {cls.__qualname__} would come back as a plain {base.__name__}; "
                f"convert it with {base.__name__}(...)"
            )
    if any("INITVAR" in str(getattr(each, "_field_type", "")) for each in _declared(cls)):
        return f"{cls.__qualname__} has an InitVar, which is not kept; make it a field"
    if dataclasses.is_dataclass(cls) or issubclass(cls, msgspec.Struct) or is_pydantic(cls):
        return ""
    if hasattr(cls, "get_secret_value"):
        return f"{cls.__qualname__} is a secret, and secrets are not state; read it anew"
    called = "type" if issubclass(cls, type) else cls.__name__
    advice = _ADVICE.get(called, "record plain values and rebuild clients, locks and files")
    return f"a {cls.__qualname__} cannot be recorded; {advice}"


_ADVICE = {
    "deque": "convert it with list(...)",
    "range": "convert it with list(...)",
    "generator": "convert it with list(...)",
    "memoryview": "convert it with bytes(...)",
    "complex": "record its two parts",
    "Fraction": "record its two parts",
    "coroutine": "await it first",
    "type": "record its name",
    "function": "record its name",
}


def is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_pydantic(cls: type) -> bool:
    """Told by its marks: pydantic itself need not be installed."""
    return hasattr(cls, "__pydantic_core_schema__") and hasattr(cls, "model_validate")


def _declared(cls: Any) -> list[Any]:  # noqa: ANN401 - a dataclass, its fields
    """All declarations of a dataclass, with those that `dataclasses.fields` leaves out."""
    return list(getattr(cls, "__dataclass_fields__", {}).values())


def _reader(names: tuple[str, ...]) -> Callable[[Any], Fields]:
    return lambda value: {name: getattr(value, name) for name in names}


def _put_back(built: object, fields: Fields, names: tuple[str, ...]) -> object:
    for name, value in fields.items():
        object.__setattr__(built, name, value)
    for name in names:
        getattr(built, name)  # one that neither the record nor `__post_init__` gave is an error
    return built


def _dataclass(cls: Any) -> Kind:  # noqa: ANN401
    declared = dataclasses.fields(cls)
    names = tuple(each.name for each in declared)
    given = frozenset(each.name for each in declared if each.init)
    runs_more = hasattr(cls, "__post_init__") or len(given) < len(names)

    def construct(fields: Fields) -> object:
        built = cls(**{name: value for name, value in fields.items() if name in given})
        return _put_back(built, fields, names) if runs_more else built

    def bypass(fields: Fields) -> object:
        defaults = {each.name: _default(each) for each in declared if each.name not in fields}
        return _put_back(cls.__new__(cls), defaults | fields, names)

    return Kind(
        fields=frozenset(names),
        required=frozenset(each.name for each in declared if each.init and not _optional(each)),
        take_apart=_reader(names),
        rebuild=construct if _takes(cls, given) else bypass,
    )


def _optional(field: Any) -> bool:  # noqa: ANN401 - a dataclass' field
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


def _default(field: Any) -> object:  # noqa: ANN401
    if field.default is not dataclasses.MISSING:
        return field.default
    return field.default_factory()


def _takes(cls: Any, names: frozenset[str]) -> bool:  # noqa: ANN401
    """Whether `__init__` takes exactly the fields: a class may have written its own."""
    try:
        _, *parameters = inspect.signature(cls.__init__).parameters
    except ValueError:  # it is written in C
        return False
    return frozenset(parameters) == names


def _struct(cls: Any) -> Kind:  # noqa: ANN401
    names: tuple[str, ...] = cls.__struct_fields__
    runs_more = hasattr(cls, "__post_init__")

    def rebuild(fields: Fields) -> object:
        built = cls(**fields)
        if runs_more:
            for name, value in fields.items():
                msgspec.structs.force_setattr(built, name, value)
        return built

    return Kind(
        fields=frozenset(names),
        required=frozenset(each.name for each in msgspec.structs.fields(cls) if each.required),
        take_apart=_reader(names),
        rebuild=rebuild,
    )


def _named_tuple(cls: Any) -> Kind:  # noqa: ANN401
    names: tuple[str, ...] = cls._fields

    def take_apart(value: Any) -> Fields:  # noqa: ANN401
        if getattr(value, "__dict__", None):
            message = f"a {cls.__qualname__} with attributes beside its fields cannot be recorded"
            raise ValueError(message)
        return dict(zip(names, tuple.__iter__(value), strict=True))

    return Kind(
        fields=frozenset(names),
        required=frozenset(names) - frozenset(cls._field_defaults),
        take_apart=take_apart,
        rebuild=lambda fields: cls(**fields),
    )


def _model(cls: Any) -> Kind:  # noqa: ANN401 - a pydantic model
    declared = cls.model_fields
    read = _reader(tuple(declared))
    validate = _validation(cls)

    def take_apart(value: Any) -> Fields:  # noqa: ANN401
        extra = value.__pydantic_extra__
        return {**read(value), **extra} if extra else read(value)

    def rebuild(fields: Fields) -> object:
        built = validate(fields)
        if type(built) is not cls:
            message = f"a validator made a {type(built).__qualname__} of it"
            raise ValueError(message)
        held = built.__dict__
        held.update({name: value for name, value in fields.items() if _stays(name, value, held)})
        return built

    return Kind(
        fields=frozenset(declared),
        required=frozenset(name for name, each in declared.items() if each.is_required()),
        take_apart=take_apart,
        rebuild=rebuild,
        open=cls.model_config.get("extra") == "allow",
        were_set=lambda value: frozenset(value.__pydantic_fields_set__),
    )


def _validation(cls: Any) -> Callable[[Fields], Any]:  # noqa: ANN401
    if getattr(cls, "__pydantic_root_model__", False):
        return lambda fields: cls.model_validate(fields["root"])
    if "by_name" in inspect.signature(cls.model_validate).parameters:
        return lambda fields: cls.model_validate(fields, by_name=True, by_alias=False)
    aliases = {name: each.validation_alias for name, each in cls.model_fields.items()}
    keys = {name: each for name, each in aliases.items() if isinstance(each, str)}
    return lambda fields: cls.model_validate({keys.get(k, k): v for k, v in fields.items()})


def _stays(name: str, recorded: object, held: Fields) -> bool:
    """Whether the recorded value counts, and not what validation made of it.

    It does if they are equal (1 and 1.0), or if a validator changed it within its type (it had
    done so before). It does not if the field's type has changed since, say from str to int.
    """
    if name not in held:
        return False
    current = held[name]
    if type(recorded) is type(current) and not isinstance(recorded, list | dict | set | tuple):
        return True
    return bool(recorded == current)
