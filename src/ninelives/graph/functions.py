"""Functions as executors: `@executor` on a function with a message and a context."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any, overload

from ninelives.graph.executor import Declared, Executor, describe


class FunctionExecutor(Executor):
    """An executor whose one handler is a function."""

    def __init__(self, function: Callable[..., Any], id: str, declared: Declared) -> None:  # noqa: A002
        self.function = function
        self._declared = declared
        super().__init__(id=id)

    def _bind(self) -> None:
        self._handlers = (describe(_asynchronous(self.function), self._declared),)


def _asynchronous(function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):
        return function

    @functools.wraps(function)
    async def in_thread(message: object, ctx: object) -> None:
        await asyncio.to_thread(function, message, ctx)

    return in_thread


@overload
def executor(function: Callable[..., Any]) -> FunctionExecutor: ...


@overload
def executor(
    function: None = None,
    *,
    id: str | None = None,
    input: object = None,
    output: object = None,
    workflow_output: object = None,
) -> Callable[[Callable[..., Any]], FunctionExecutor]: ...


def executor(
    function: Callable[..., Any] | None = None,
    *,
    id: str | None = None,  # noqa: A002 - Agent Framework's names
    input: object = None,  # noqa: A002
    output: object = None,
    workflow_output: object = None,
) -> FunctionExecutor | Callable[[Callable[..., Any]], FunctionExecutor]:
    """Make an executor of a function `(message: T, ctx: WorkflowContext[...])`.

    `id` defaults to the function's name. A synchronous function runs in a thread; it can read
    messages, but durable operations are async.
    """
    declared = Declared(input, output, workflow_output)

    def make(made: Callable[..., Any]) -> FunctionExecutor:
        return FunctionExecutor(made, id or made.__name__, declared)

    return make if function is None else make(function)
