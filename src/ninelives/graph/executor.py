"""The node of a workflow: an id, handlers of typed messages, hooks to keep state.

An instance is shared by all runs of its workflow, also concurrent ones; a run works on `fresh()`.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Self, TypeVar, cast, overload

from ninelives import errors
from ninelives.durable.context import WorkflowContext
from ninelives.durable.retries import ONCE, Retry
from ninelives.graph import matching, signatures
from ninelives.graph.signatures import Declared, Handler

F = TypeVar("F", bound=Callable[..., Awaitable[object]])
Handle = Callable[[object, WorkflowContext[object, object]], Awaitable[object]]

_MARK = "__ninelives_handler__"


@overload
def handler(func: F, /) -> F: ...
@overload
def handler(
    *, input: object = None, output: object = None, workflow_output: object = None
) -> Callable[[F], F]: ...
def handler(
    func: F | None = None,
    /,
    *,
    input: object = None,  # noqa: A002 - Agent Framework's name
    output: object = None,
    workflow_output: object = None,
) -> F | Callable[[F], F]:
    """Mark a method `async def (self, message: T, ctx: WorkflowContext[...])` as a handler.

    Types may be given here instead, also as text; then the annotations are not looked at, and
    what is not given counts as nothing sent and nothing yielded. They are read when the workflow
    is built, so a type may be defined after the class.
    """
    declared = Declared(input, output, workflow_output)

    def mark(method: F) -> F:
        setattr(method, _MARK, declared)
        return method

    return mark if func is None else mark(func)


class Executor:
    """A node with a fixed id. Subclasses have methods marked with @handler.

    Which handler gets a message: of those whose type fits, the most specific; of several such
    ones, the first in the class.
    """

    def __init__(self, id: str) -> None:  # noqa: A002 - Agent Framework's name
        given = cast("object", id)
        if not isinstance(given, str) or not given:
            message = f"an executor's id is a text that is not empty, not {given!r}"
            raise ValueError(message)
        self.id = id
        self._found: tuple[tuple[Handler, ...], tuple[str, ...]] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={getattr(self, 'id', None)!r})"

    retry: Retry = ONCE
    """How often a handler that raised is entered again; set it on a class or an instance."""

    @property
    def handlers(self) -> tuple[Handler, ...]:
        """The handlers in the order of the class (a base class's first).

        Raises:
            WorkflowInvalid: one of them cannot be used as it is written.
        """
        found, problems = self._read()
        if problems:
            raise errors.WorkflowInvalid(self.id, problems)
        return found

    @property
    def problems(self) -> tuple[str, ...]:
        """Why this executor cannot be part of a workflow; empty if it can."""
        return self._read()[1]

    @property
    def input_types(self) -> tuple[object, ...]:
        """The annotations of the handlers' messages."""
        return tuple(each.input for each in self.handlers)

    @property
    def output_types(self) -> tuple[object, ...]:
        """The types of messages that the handlers declare to send, each once."""
        return _members(each.output for each in self.handlers)

    @property
    def workflow_output_types(self) -> tuple[object, ...]:
        """The types of outputs that the handlers declare to yield, each once."""
        return _members(each.workflow_output for each in self.handlers)

    def find_handler(self, message: object) -> Handle | None:
        """The handler for a message, bound to this instance; None if there is none."""
        fitting = [each for each in self.handlers if matching.fits(message, each.input)]
        if not fitting:
            return None
        return self._bind(fitting[matching.most_specific([each.input for each in fitting])])

    def fresh(self) -> Self:
        """A shallow copy for one run. Its handlers are its own; objects in it are shared."""
        return copy.copy(self)

    async def on_checkpoint_save(self) -> dict[str, Any]:
        """Override to keep state: what is returned is recorded when the superstep commits."""
        return {}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        """Override to take back what `on_checkpoint_save` returned, in a run's fresh copy."""

    def _bind(self, found: Handler) -> Handle:
        bound: Handle = getattr(self, found.name)
        return bound

    def _read(self) -> tuple[tuple[Handler, ...], tuple[str, ...]]:
        """Handlers and problems, read once: late enough for types defined after the class."""
        if self._found is None:
            self._found = self._discover()
        return self._found

    def _discover(self) -> tuple[tuple[Handler, ...], tuple[str, ...]]:
        found: list[Handler] = []
        problems: list[str] = []
        where = f"executor {self.id!r} ({type(self).__name__})"
        for name, method, declared in _marked(type(self)):
            try:
                found.append(signatures.read_method(name, method, declared))
            except signatures.Unreadable as error:
                problems.append(f"handler {name!r} of {where}: {error}")
        if not found and not problems:
            problems.append(f"{where} has no handlers; mark a method with @handler")
        problems += (
            f"handlers {other.name!r} and {each.name!r} of {where} both take "
            f"{matching.spell(each.input)}"
            for index, each in enumerate(found)
            for other in found[:index]
            if each.input == other.input
        )
        return tuple(found), tuple(problems)


def _marked(cls: type[Executor]) -> list[tuple[str, Callable[..., object], Declared]]:
    names = dict.fromkeys(name for base in reversed(cls.__mro__) for name in vars(base))
    methods = [(name, getattr(cls, name, None)) for name in names]
    return [
        (name, method, getattr(method, _MARK))
        for name, method in methods
        if callable(method) and isinstance(getattr(method, _MARK, None), Declared)
    ]


def _members(found: Iterable[object]) -> tuple[object, ...]:
    return tuple(dict.fromkeys(each for one in found for each in matching.members(one)))
