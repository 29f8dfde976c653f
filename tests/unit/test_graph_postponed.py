"""Annotations that are texts, because of `from __future__ import annotations`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Never

from ninelives.durable.context import WorkflowContext
from ninelives.graph import Executor, WorkflowBuilder, executor, handler

if TYPE_CHECKING:
    from decimal import Decimal


class Worker(Executor):
    @handler
    async def work(self, message: Later | None, ctx: WorkflowContext[list[Later], str]) -> None: ...


@executor
async def end(message: list[Later], ctx: WorkflowContext[Never, Later]) -> None: ...


@dataclass
class Later:
    number: int


class Missing(Executor):
    @handler
    async def work(self, message: Decimal, ctx: WorkflowContext) -> None: ...


def test_a_type_may_be_defined_after_the_class_that_handles_it() -> None:
    worker = Worker("worker")
    assert worker.input_types == (Later | None,)
    assert worker.output_types == (list[Later],)
    assert worker.workflow_output_types == (str,)
    assert worker.find_handler(Later(1)) is not None
    assert worker.find_handler(1) is None


def test_a_workflow_knows_the_types_of_postponed_annotations() -> None:
    worker = Worker("worker")
    workflow = WorkflowBuilder(start_executor=worker).add_edge(worker, end).build()
    assert workflow.registry.find("Later") is Later


def test_a_name_that_is_not_there_at_run_time_is_named_with_its_handler() -> None:
    (problem,) = Missing("m").problems
    assert problem.startswith("handler 'work' of executor 'm' (Missing): 'message': ")
    assert "the name 'Decimal'" in problem
    assert "not under TYPE_CHECKING" in problem


def test_a_type_inside_a_function_is_asked_for_with_a_way_out() -> None:
    @dataclass
    class Local:
        number: int

    @executor
    async def work(message: Local, ctx: WorkflowContext) -> None: ...

    @executor(input=Local)
    async def told(message: Local, ctx: WorkflowContext) -> None: ...

    assert "give the types to the decorator" in work.problems[0]
    assert told.input_types == (Local,)
