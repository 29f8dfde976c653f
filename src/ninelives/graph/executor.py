"""Executors: nodes with a fixed id, whose handlers take typed messages.

A handler is an async method `(self, message: T, ctx: WorkflowContext[Out, WorkflowOut])` marked
with `@handler`; its annotations say what it takes, sends and yields.
"""

from __future__ import annotations

import copy
import inspect
import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias, TypeVar, overload

from ninelives.durable.context import WorkflowContext
from ninelives.graph import types

HandlerCall: TypeAlias = Callable[[Any, Any], Awaitable[None]]
F = TypeVar("F", bound=Callable[..., Awaitable[None]])
_MARK = "__ninelives_handler__"


@dataclass(frozen=True, slots=True)
class Declared:
    """Types given to the decorator instead of annotations; None = look at the annotations."""

    input: object = None
    output: object = None
    workflow_output: object = None


@dataclass(frozen=True, slots=True)
class Handler:
    """One handler: what it takes, may send and may yield."""

    name: str
    takes: object
    sends: tuple[object, ...]
    yields: tuple[object, ...]
    call: HandlerCall


@overload
def handler(function: F) -> F: ...


@overload
def handler(
    function: None = None,
    *,
    input: object = None,
    output: object = None,
    workflow_output: object = None,
) -> Callable[[F], F]: ...


def handler(
    function: F | None = None,
    *,
    input: object = None,  # noqa: A002 - Agent Framework's name
    output: object = None,
    workflow_output: object = None,
) -> F | Callable[[F], F]:
    """Mark a method as a handler; the keywords stand in for annotations."""

    def mark(marked: F) -> F:
        setattr(marked, _MARK, Declared(input, output, workflow_output))
        return marked

    return mark if function is None else mark(function)


class Executor:
    """A node of a workflow.

    One instance serves all runs of its workflow; each run works on a shallow copy of it. What
    shall survive a crash belongs into `ctx.local` or into the checkpoint hooks.
    """

    def __init__(self, id: str | None = None) -> None:  # noqa: A002 - Agent Framework's name
        """`id` names the node in journals for ever; default: the class's name."""
        self.id = type(self).__name__ if id is None else id
        self._bind()

    def _bind(self) -> None:
        found = [
            describe(getattr(self, name), declared)
            for name, declared in _marked(type(self)).items()
        ]
        self._handlers = tuple(sorted(found, key=lambda each: -types.specificity(each.takes)))

    @property
    def handlers(self) -> tuple[Handler, ...]:
        """All handlers, the most specific first."""
        return self._handlers

    @property
    def input_types(self) -> tuple[object, ...]:
        """What the handlers take."""
        return tuple(each.takes for each in self.handlers)

    def find_handler(self, message: object) -> HandlerCall | None:
        """The handler that takes this message, or None."""
        for each in self.handlers:
            if types.fits(message, each.takes):
                return each.call
        return None

    def fresh(self) -> Self:
        """A copy for one run: attributes that a handler assigns stay in that run."""
        copied = copy.copy(self)
        copied._bind()  # noqa: SLF001 - the copy's own methods
        return copied

    async def on_checkpoint_save(self) -> dict[str, Any]:
        """Override to keep attributes: called after each handler; changed keys are written."""
        return {}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        """Override to take attributes back: called once per process that works on the run."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r})"


def _marked(cls: type) -> Mapping[str, Declared]:
    marked: dict[str, Declared] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            declared = getattr(value, _MARK, None)
            if isinstance(declared, Declared):
                marked[name] = declared
    return marked


def describe(function: Callable[..., Any], declared: Declared) -> Handler:
    """Read a handler's types.

    Raises:
        TypeError: it is not async, lacks an annotation, or one cannot be resolved.
    """
    name = getattr(function, "__qualname__", repr(function)).replace("<locals>.", "")
    if not inspect.iscoroutinefunction(function):
        message = f"handler {name} must be an async function"
        raise TypeError(message)
    parameters = list(inspect.signature(function).parameters.values())
    if len(parameters) != 2:
        message = f"handler {name} must take a message and a context, nothing else"
        raise TypeError(message)
    hints = _hints(function, name)
    takes = declared.input if declared.input is not None else hints.get(parameters[0].name)
    if takes is None:
        message = (
            f"handler {name} has no annotation for its message {parameters[0].name!r}; "
            "annotate it, or use @handler(input=...)"
        )
        raise TypeError(message)
    sends, yields = _context_types(hints.get(parameters[1].name), name, parameters[1].name)
    described = Handler(name, takes, sends, yields, function)
    if declared.output is not None:
        described = replace(described, sends=types.options(declared.output))
    if declared.workflow_output is not None:
        described = replace(described, yields=types.options(declared.workflow_output))
    return described


def _hints(function: Callable[..., Any], name: str) -> dict[str, object]:
    inner = inspect.unwrap(function)
    closure = inspect.getclosurevars(inner)
    names: dict[str, object] = {**closure.nonlocals, **_locals_of_caller(inner)}
    try:
        return typing.get_type_hints(inner, localns=names)
    except NameError as error:
        message = (
            f"handler {name}: annotation {error.name!r} cannot be resolved; define or import it "
            "at module level, outside `if TYPE_CHECKING`"
        )
        raise TypeError(message) from error


def _locals_of_caller(function: Callable[..., Any]) -> dict[str, object]:
    """Names of the functions around a locally defined handler, while it is being built."""
    if "<locals>" not in function.__qualname__:
        return {}
    names: dict[str, object] = {}
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals is function.__globals__:
            names = {**frame.f_locals, **names}
        frame = frame.f_back
    return names


def _context_types(
    annotation: object, name: str, parameter: str
) -> tuple[tuple[object, ...], tuple[object, ...]]:
    origin = typing.get_origin(annotation) or annotation
    if origin is not WorkflowContext:
        message = (
            f"handler {name} has no context annotation for {parameter!r}; write "
            "WorkflowContext, WorkflowContext[Out] or WorkflowContext[Out, WorkflowOut]"
        )
        raise TypeError(message)
    sends, yields = (*typing.get_args(annotation), typing.Never, typing.Never)[:2]
    nothing = {None, type(None)}
    return (
        () if sends in nothing else types.options(sends),
        () if yields in nothing else types.options(yields),
    )
