"""Reads a handler's types from its signature, or from what its decorator was given."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Never, cast

from ninelives.durable.context import WorkflowContext
from ninelives.graph import matching


class Unreadable(Exception):  # noqa: N818 - named by the condition
    """A handler cannot be used as it is written; the text says why."""


@dataclass(frozen=True, slots=True)
class Declared:
    """Types given to a decorator; None where nothing was given."""

    input: object = None
    output: object = None
    workflow_output: object = None

    @property
    def given(self) -> bool:
        return (self.input, self.output, self.workflow_output) != (None, None, None)


@dataclass(frozen=True, slots=True)
class Handler:
    """What one handler takes, sends and yields, as annotations; Never: nothing."""

    name: str
    input: object
    output: object
    workflow_output: object
    takes_context: bool = True

    @property
    def annotations(self) -> tuple[object, ...]:
        return (self.input, self.output, self.workflow_output)


def read_method(name: str, function: Callable[..., object], declared: Declared) -> Handler:
    """Read a method marked with @handler. Any type given there replaces all annotations.

    Raises:
        Unreadable: the signature, an annotation or its kind of function does not do.
    """
    plain = inspect.unwrap(function)
    parameters = list(inspect.signature(plain).parameters.values())
    if len(parameters) != 3:
        raise Unreadable(f"it takes {len(parameters)} parameters; write (self, message, ctx)")
    if not inspect.iscoroutinefunction(plain):
        raise Unreadable("it is not asynchronous; write `async def`")
    if declared.given:
        if declared.input is None:
            raise Unreadable("types are given to @handler, but none as input=")
        return _handler(name, plain, declared, (Never, Never))
    message = _message_of(plain, parameters[1])
    return _handler(name, plain, message, _context_of(plain, parameters[2], strict=True))


def read_function(name: str, function: Callable[..., object], declared: Declared) -> Handler:
    """Read a function under @executor. A type given there replaces that one annotation.

    Raises:
        Unreadable: as `read_method`; or it is synchronous and declares that it sends.
    """
    plain = inspect.unwrap(function)
    parameters = list(inspect.signature(plain).parameters.values())
    if len(parameters) not in {1, 2}:
        count = len(parameters)
        raise Unreadable(f"it takes {count} parameters; write (message) or (message, ctx)")
    message = declared if declared.input is not None else _message_of(plain, parameters[0])
    known = Declared(message.input, declared.output, declared.workflow_output)
    written: tuple[object, object] = (Never, Never)
    if len(parameters) == 2:
        written = _context_of(plain, parameters[1], strict=declared.input is None)
    found = _handler(name, plain, known, written, takes_context=len(parameters) == 2)
    sends = found.output is not Never or found.workflow_output is not Never
    if sends and not is_asynchronous(function):
        raise Unreadable(
            "it is synchronous, so it cannot await what it declares to send or yield; "
            "write `async def`"
        )
    return found


def is_asynchronous(function: Callable[..., object]) -> bool:
    """Also told for an object with an asynchronous `__call__`."""
    plain = inspect.unwrap(function)
    called = getattr(type(cast("object", plain)), "__call__", None)  # noqa: B004 - it is looked at, not tested
    return inspect.iscoroutinefunction(plain) or inspect.iscoroutinefunction(called)


def _handler(
    name: str,
    function: Callable[..., object],
    declared: Declared,
    written: tuple[object, object],
    *,
    takes_context: bool = True,
) -> Handler:
    """Put together what was declared, or else `written` for the context."""
    sent, yielded = declared.output, declared.workflow_output
    handler = Handler(
        name,
        _resolve(function, "message", declared.input),
        written[0] if sent is None else _resolve(function, "output", sent),
        written[1] if yielded is None else _resolve(function, "output", yielded),
        takes_context=takes_context,
    )
    for part, annotation in zip(("message", "output", "output"), handler.annotations, strict=True):
        why = matching.flaw(annotation)
        if why is not None:
            raise Unreadable(f"its {part} type {matching.spell(annotation)} does not do: {why}")
    return handler


def _message_of(function: Callable[..., object], parameter: inspect.Parameter) -> Declared:
    if parameter.annotation is inspect.Parameter.empty:
        raise Unreadable(f"parameter {parameter.name!r} has no annotation for the message's type")
    return Declared(input=_resolve(function, parameter.name, parameter.annotation))


def _context_of(
    function: Callable[..., object], parameter: inspect.Parameter, *, strict: bool
) -> tuple[object, object]:
    """What WorkflowContext[Out, WorkflowOut] says; missing arguments are Never."""
    if parameter.annotation is inspect.Parameter.empty:
        if not strict:
            return Never, Never
        raise Unreadable(f"parameter {parameter.name!r} has no annotation WorkflowContext[...]")
    annotation = _resolve(function, parameter.name, parameter.annotation)
    base = typing.get_origin(annotation) or annotation
    if not (isinstance(base, type) and issubclass(base, WorkflowContext)):
        written = matching.spell(annotation)
        raise Unreadable(f"parameter {parameter.name!r} is {written}, not a WorkflowContext")
    arguments: tuple[object, ...] = typing.get_args(annotation)
    if len(arguments) > 2:
        raise Unreadable(
            f"WorkflowContext has {len(arguments)} types in it; write at most two: "
            "what is sent, and what is yielded"
        )
    sent, yielded = (*arguments, Never, Never)[:2]
    return _never(sent), _never(yielded)


def _never(annotation: object) -> object:
    return Never if annotation in matching.NOTHING else annotation


def _resolve(function: Callable[..., object], what: str, annotation: object) -> object:
    namespace = cast("dict[str, Any]", getattr(function, "__globals__", {}))
    try:
        return matching.resolve(annotation, namespace)
    except matching.Unresolvable as error:
        raise Unreadable(
            f"{what!r}: {error}; define or import it there (not under TYPE_CHECKING, not inside "
            "a function), or give the types to the decorator"
        ) from error
