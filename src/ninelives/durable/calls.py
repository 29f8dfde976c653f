"""Calling a user's function: its name, its fingerprint, threads for synchronous ones."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from ninelives import codec, errors
from ninelives.durable.delivery import Delivery

_inside: contextvars.ContextVar[str] = contextvars.ContextVar("ninelives_inside", default="")


def name_of(function: Callable[..., object]) -> str:
    """The name under which a function's calls are recorded.

    Raises:
        ValueError: it has none that would be the same in the next process.
    """
    if isinstance(function, functools.partial):
        return name_of(function.func)
    name = getattr(function, "__qualname__", None)
    if name is None:
        name = type(function).__qualname__
    name = str(name).replace("<locals>.", "")
    if name.endswith("<lambda>"):
        message = "a lambda has no name to be recorded under; pass name= or key="
        raise ValueError(message)
    return name


def fingerprint(
    delivery: Delivery, what: str, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> str:
    """Fingerprint a call's arguments.

    Raises:
        Unencodable: an argument cannot be recorded (bind clients into the function instead).
    """
    try:
        return codec.fingerprint_arguments(args, kwargs, delivery.journal.registry)
    except errors.Unencodable as error:
        raise errors.Unencodable(f"{what}: {error.path}", error.why) from None


async def invoke(
    function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> object:
    """Call an asynchronous function here, a synchronous one in a thread."""
    if is_async(function):
        result = function(*args, **kwargs)
    else:
        result = await asyncio.to_thread(function, *args, **kwargs)
    return await result if inspect.isawaitable(result) else result


def refuse_misfit(
    what: str,
    function: Callable[..., object],
    args: tuple[object, ...],
    given: Mapping[str, object],
) -> None:
    """Find a call that cannot begin while that is still certain.

    Raises:
        TypeError: the function does not take these arguments; it was not called.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # a builtin that does not tell
    try:
        signature.bind(*args, **given)
    except TypeError as error:
        message = f"{what}: {name_of(function)} does not take what it would get: {error}"
        raise TypeError(message) from None


def is_async(function: Callable[..., object]) -> bool:
    """Whether a function runs in the event loop; others run in a thread."""
    if isinstance(function, functools.partial):
        return is_async(function.func)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    )


@contextmanager
def nested(what: str) -> Generator[None]:
    """Mark that a user's function runs inside `what`, where durable operations are refused."""
    token = _inside.set(what)
    try:
        yield
    finally:
        _inside.reset(token)


def inside() -> str:
    """The recorded operation whose function is running, or empty."""
    return _inside.get()


def refuse_nested(operation: str) -> None:
    """Durable operations inside a recorded function would be skipped by its replay.

    Raises:
        RuntimeError: called inside one.
    """
    outer = _inside.get()
    if outer:
        message = f"{operation} inside {outer} would not be repeated on replay; call it outside"
        raise RuntimeError(message)
