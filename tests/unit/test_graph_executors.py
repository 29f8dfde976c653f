"""How handlers are found and chosen; annotations here are evaluated at once."""

# No `from __future__ import annotations`: test_graph_postponed.py is for texts.

import asyncio
import threading
from dataclasses import dataclass
from typing import Any, Generic, Never, TypeVar, cast

import pytest

from ninelives import errors
from ninelives.durable.context import WorkflowContext
from ninelives.graph import Executor, FunctionExecutor, executor, handler

T = TypeVar("T")
NO_CONTEXT = cast("WorkflowContext[object, object]", None)


@dataclass
class Item:
    number: int


@dataclass
class Special(Item):
    pass


class Sorter(Executor):
    def __init__(self) -> None:
        super().__init__("sorter")
        self.seen: list[str] = []

    @handler
    async def anything(self, message: object, ctx: WorkflowContext) -> None:
        self.seen = [*self.seen, "anything"]

    @handler
    async def item(self, message: Item, ctx: WorkflowContext[int, str]) -> None:
        self.seen = [*self.seen, "item"]

    @handler
    async def special(self, message: Special, ctx: WorkflowContext[int | bytes]) -> None:
        self.seen = [*self.seen, "special"]

    @handler
    async def numbers(self, message: list[int], ctx: WorkflowContext[Never, Item]) -> None:
        self.seen = [*self.seen, "numbers"]

    @handler
    async def texts(self, message: list[str], ctx: WorkflowContext) -> None:
        self.seen = [*self.seen, "texts"]


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (Item(1), "item"),
        (Special(1), "special"),
        ([1], "numbers"),
        (["a"], "texts"),
        ([], "numbers"),
        ([1, "a"], "anything"),
        (None, "anything"),
    ],
)
async def test_the_most_specific_handler_gets_the_message(message: object, name: str) -> None:
    sorter = Sorter()
    handle = sorter.find_handler(message)
    assert handle is not None
    await handle(message, NO_CONTEXT)
    assert sorter.seen == [name]


def test_types_are_read_from_annotations() -> None:
    sorter = Sorter()
    assert sorter.input_types == (object, Item, Special, list[int], list[str])
    assert sorter.output_types == (int, bytes)
    assert sorter.workflow_output_types == (str, Item)


async def test_a_fresh_copy_handles_on_itself() -> None:
    shared = Sorter()
    shared.find_handler(Item(1))
    fresh = shared.fresh()
    handle = fresh.find_handler(Item(1))
    assert handle is not None
    await handle(Item(1), NO_CONTEXT)
    assert (shared.seen, fresh.seen) == ([], ["item"])


def test_a_message_of_no_handlers_type_finds_none() -> None:
    @executor
    async def take(message: int, ctx: WorkflowContext) -> None: ...

    assert take.find_handler("text") is None
    assert take.find_handler(True) is None
    assert take.find_handler(1) is not None


def test_a_subclass_has_the_handlers_of_its_bases_and_replaces_them_by_name() -> None:
    class Base(Executor):
        @handler
        async def one(self, message: int, ctx: WorkflowContext) -> None: ...

    class Derived(Base):
        @handler
        async def one(self, message: str, ctx: WorkflowContext) -> None: ...  # type: ignore[override]

        @handler
        async def two(self, message: bytes, ctx: WorkflowContext) -> None: ...

    assert Derived("d").input_types == (str, bytes)
    assert Base("b").input_types == (int,)


def test_types_given_to_the_decorator_replace_all_annotations() -> None:
    class Given(Executor):
        @handler(input=int | str, output="Item")
        async def take(self, message, ctx) -> None: ...

        @handler(input=bytes)
        async def raw(self, message: Any, ctx: WorkflowContext[float, float]) -> None: ...

    given = Given("given")
    assert given.input_types == (int | str, bytes)
    assert (given.output_types, given.workflow_output_types) == ((Item,), ())


def test_an_executor_needs_an_id() -> None:
    with pytest.raises(ValueError, match="an executor's id is a text"):
        Sorter.__mro__[1].__init__(Sorter(), "")  # type: ignore[misc]


# Each class has one mistake, and the words that say so.


class NoHandlers(Executor):
    pass


class NoMessageType(Executor):
    @handler
    async def take(self, message, ctx: WorkflowContext) -> None: ...


class NoContextType(Executor):
    @handler
    async def take(self, message: int, ctx) -> None: ...


class OtherContext(Executor):
    @handler
    async def take(self, message: int, ctx: dict[str, int]) -> None: ...


class ThreeTypes(Executor):
    @handler
    async def take(self, message: int, ctx: WorkflowContext[int, int, int]) -> None: ...  # type: ignore[type-arg]


class Synchronous(Executor):
    @handler  # type: ignore[type-var]
    def take(self, message: int, ctx: WorkflowContext) -> None: ...


class OneParameter(Executor):
    @handler
    async def take(self, message: int) -> None: ...


class Twice(Executor):
    @handler
    async def one(self, message: int, ctx: WorkflowContext) -> None: ...

    @handler
    async def two(self, message: int, ctx: WorkflowContext) -> None: ...


class Open(Executor, Generic[T]):
    @handler
    async def take(self, message: T, ctx: WorkflowContext) -> None: ...


class OutputOnly(Executor):
    @handler(output=int)
    async def take(self, message: int, ctx: WorkflowContext) -> None: ...


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (NoHandlers, "executor 'x' (NoHandlers) has no handlers; mark a method with @handler"),
        (
            NoMessageType,
            "handler 'take' of executor 'x' (NoMessageType): parameter 'message' has no annot",
        ),
        (NoContextType, "parameter 'ctx' has no annotation WorkflowContext[...]"),
        (OtherContext, "parameter 'ctx' is dict[str, int], not a WorkflowContext"),
        (ThreeTypes, "WorkflowContext has 3 types in it; write at most two"),
        (Synchronous, "it is not asynchronous; write `async def`"),
        (OneParameter, "it takes 2 parameters; write (self, message, ctx)"),
        (Twice, "handlers 'one' and 'two' of executor 'x' (Twice) both take int"),
        (Open, "is a type variable"),
        (OutputOnly, "none as input="),
    ],
)
def test_a_handler_that_cannot_be_used_is_named_with_what_is_wrong(
    kind: type[Executor], words: str
) -> None:
    (problem,) = kind("x").problems
    assert words in problem
    with pytest.raises(errors.WorkflowInvalid, match="executor 'x'"):
        kind("x").find_handler(1)


# -- functions ----------------------------------------------------------------------------------


async def test_a_synchronous_function_runs_in_a_thread() -> None:
    where: list[int] = []

    @executor
    def work(message: int) -> None:
        where.append(threading.get_ident())

    handle = work.find_handler(1)
    assert handle is not None
    await handle(1, NO_CONTEXT)
    assert where != [threading.get_ident()]


async def test_a_function_may_do_without_a_context() -> None:
    seen: list[int] = []

    @executor(id="named")
    async def work(message: int) -> None:
        await asyncio.sleep(0)
        seen.append(message)

    handle = work.fresh().find_handler(7)
    assert handle is not None
    await handle(7, NO_CONTEXT)
    assert (work.id, seen) == ("named", [7])


async def test_an_object_with_an_asynchronous_call_is_a_function() -> None:
    class Adder:
        total = 0

        async def __call__(self, message: int, ctx: WorkflowContext[int]) -> None:
            self.total += message

    adder = Adder()
    node = FunctionExecutor(adder, "adder")
    handle = node.find_handler(2)
    assert handle is not None
    await handle(2, NO_CONTEXT)
    assert (adder.total, node.output_types) == (2, (int,))


def test_a_functions_id_is_its_name() -> None:
    @executor
    async def double(message: int, ctx: WorkflowContext[int]) -> None: ...

    assert (double.id, double.input_types, double.output_types) == ("double", (int,), (int,))


def test_types_given_for_a_function_replace_single_annotations() -> None:
    @executor(workflow_output=str)
    async def work(message: int, ctx: WorkflowContext[bytes]) -> None: ...

    @executor(input=int, output=str)
    async def bare(message, ctx): ...

    assert (work.output_types, work.workflow_output_types) == ((bytes,), (str,))
    assert (bare.input_types, bare.output_types) == ((int,), (str,))


def test_a_synchronous_function_that_declares_to_send_is_refused() -> None:
    @executor
    def work(message: int, ctx: WorkflowContext[int]) -> None: ...

    (problem,) = work.problems
    assert problem.startswith("function 'work' of executor 'work': it is synchronous")


def test_a_static_method_is_no_function_for_an_executor() -> None:
    with pytest.raises(TypeError, match="use @handler"):
        executor(staticmethod(len))
