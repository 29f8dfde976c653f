"""Functions as executors: `@executor` makes a node of one function."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import cast, overload

from ninelives.durable.context import WorkflowContext
from ninelives.graph import signatures
from ninelives.graph.executor import Executor, Handle
from ninelives.graph.signatures import Declared, Handler

Function = Callable[..., object]


class FunctionExecutor(Executor):
    """An executor with one handler: a function (message) or (message, ctx).

    A synchronous function runs in a thread. What it returns is not looked at: messages are sent
    and outputs yielded through the context, which only an asynchronous function can await.
    """

    def __init__(
        self,
        func: Function,
        id: str | None = None,  # noqa: A002 - Agent Framework's name
        *,
        input: object = None,  # noqa: A002 - Agent Framework's name
        output: object = None,
        workflow_output: object = None,
    ) -> None:
        given = cast("object", func)
        if isinstance(given, staticmethod | classmethod) or not callable(given):
            kind = type(func).__name__
            message = (
                f"@executor takes a function, not a {kind}; "
                "in a class, derive from Executor and use @handler"
            )
            raise TypeError(message)
        super().__init__(id or str(getattr(func, "__name__", "")))
        self.function = func
        self._declared = Declared(input, output, workflow_output)

    def _discover(self) -> tuple[tuple[Handler, ...], tuple[str, ...]]:
        name = getattr(self.function, "__name__", self.id)
        try:
            return (signatures.read_function(name, self.function, self._declared),), ()
        except signatures.Unreadable as error:
            return (), (f"function {name!r} of executor {self.id!r}: {error}",)

    def _bind(self, found: Handler) -> Handle:
        function = self.function
        asynchronous = signatures.is_asynchronous(function)

        async def handle(message: object, ctx: WorkflowContext[object, object]) -> object:
            arguments = (message, ctx) if found.takes_context else (message,)
            if asynchronous:
                return await cast("Awaitable[object]", function(*arguments))
            result = await asyncio.to_thread(function, *arguments)
            return await result if inspect.isawaitable(result) else result

        return handle


@overload
def executor(func: Function, /) -> FunctionExecutor: ...
@overload
def executor(
    *,
    id: str | None = None,
    input: object = None,
    output: object = None,
    workflow_output: object = None,
) -> Callable[[Function], FunctionExecutor]: ...
def executor(
    func: Function | None = None,
    /,
    *,
    id: str | None = None,  # noqa: A002 - Agent Framework's name
    input: object = None,  # noqa: A002 - Agent Framework's name
    output: object = None,
    workflow_output: object = None,
) -> FunctionExecutor | Callable[[Function], FunctionExecutor]:
    """Make an executor of a function; its id is the function's name if none is given.

    A type given here replaces that one annotation.
    """

    def make(function: Function) -> FunctionExecutor:
        return FunctionExecutor(
            function, id, input=input, output=output, workflow_output=workflow_output
        )

    return make if func is None else make(func)
