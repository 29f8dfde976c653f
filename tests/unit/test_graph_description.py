"""A graph as it is recorded, and what is said when it is another one later."""

from __future__ import annotations

import importlib.util
import json
import pathlib
from collections.abc import Callable

import pytest

from ninelives.durable.context import WorkflowContext
from ninelives.graph import Case, Default, Executor, Workflow, WorkflowBuilder, executor, handler
from ninelives.graph.description import differences

Make = Callable[[], Workflow]


class Planner(Executor):
    @handler
    async def plan(self, message: str, ctx: WorkflowContext[int, str]) -> None: ...


class Worker(Executor):
    @handler
    async def work(self, message: int, ctx: WorkflowContext[int, str]) -> None: ...


class Foreman(Worker):
    @handler
    async def more(self, message: bytes, ctx: WorkflowContext) -> None: ...


def is_large(number: int) -> bool:
    return number > 10


def is_small(number: int) -> bool:
    return number < 10


def first(number: int, ids: list[str]) -> list[str]:
    return ids[:1]


def pair(worker: str = "worker", kind: type[Executor] = Worker, **rest: object) -> Workflow:
    planner, target = Planner("planner"), kind(worker)
    builder = WorkflowBuilder(start_executor=planner, name="orders")
    return builder.add_edge(planner, target, **rest).build()  # type: ignore[arg-type]


def trio(order: str = "abc", **selection: object) -> Workflow:
    planner = Planner("planner")
    workers = {name: Worker(name) for name in "abc"}
    chosen = {word: [workers[each] for each in ids] for word, ids in selection.items()}  # type: ignore[attr-defined]
    builder = WorkflowBuilder(start_executor=planner, **chosen)  # type: ignore[arg-type]
    for name in order:
        builder.add_edge(planner, workers[name])
    return builder.build()


def switched(*names: str) -> Workflow:
    planner = Planner("planner")
    conditions = {"large": is_large, "small": is_small}
    cases = [Case(conditions[name], Worker(name)) for name in names]
    builder = WorkflowBuilder(start_executor=planner)
    return builder.add_switch_case_edge_group(planner, [*cases, Default(Worker("rest"))]).build()


def changes(recorded: Workflow, present: Workflow) -> tuple[str, ...]:
    """As the engine does it: one of the two has been through JSON."""
    return differences(json.loads(json.dumps(recorded.description())), present.description())


def test_the_same_graph_has_no_differences() -> None:
    for make in (pair, trio, lambda: switched("large", "small")):
        assert changes(make(), make()) == ()


def test_the_order_of_building_is_no_difference() -> None:
    assert trio("abc").description() == trio("cab").description()


def test_a_renamed_executor_is_one_missing_and_one_new_with_its_edge() -> None:
    assert changes(pair("worker"), pair("wrker")) == (
        "executor 'worker' (Worker) is missing now",
        "executor 'wrker' (Worker) is new",
        "edge 'planner' -> 'worker' is gone",
        "edge 'planner' -> 'wrker' is new",
    )


def test_another_class_is_named_and_types_handled_in_addition_do_not_count() -> None:
    assert changes(pair(), pair(kind=Foreman)) == (
        "executor 'worker' was class Worker, is Foreman",
    )


def test_a_type_that_is_not_handled_any_more_is_named() -> None:
    class Worker(Executor):
        @handler
        async def work(self, message: int | None, ctx: WorkflowContext) -> None: ...

    assert changes(pair(), pair(kind=Worker)) == (
        "executor 'worker' handled int, handles None | int now",
    )


@pytest.mark.parametrize(
    ("recorded", "present", "words"),
    [
        (
            lambda: pair(condition=is_large),
            lambda: pair(condition=is_small),
            "the condition of edge 'planner' -> 'worker' was is_large, is is_small",
        ),
        (
            lambda: pair(condition=is_large),
            pair,
            "the condition of edge 'planner' -> 'worker' was is_large, is none",
        ),
        (
            lambda: switched("large", "small"),
            lambda: switched("small", "large"),
            "switch-case 'planner' -> 'large', 'small', 'rest' is gone",
        ),
        (
            lambda: trio(output_from="a"),
            lambda: trio(output_from="bc"),
            "outputs came from 'a', come from 'b', 'c' now",
        ),
        (
            trio,
            lambda: trio(intermediate_output_from="a"),
            "outputs came from all executors, come from no executor now",
        ),
        (
            trio,
            lambda: trio(intermediate_output_from="a"),
            "intermediate outputs came from no executor, come from 'a' now",
        ),
    ],
)
def test_what_else_has_changed_is_named(recorded: Make, present: Make, words: str) -> None:
    assert words in changes(recorded(), present())


def test_cases_of_equal_targets_in_another_order_are_a_difference() -> None:
    def make(*conditions: Callable[[int], bool]) -> Workflow:
        planner, one, two = Planner("planner"), Worker("one"), Worker("two")
        cases = [Case(condition, one) for condition in conditions]
        builder = WorkflowBuilder(start_executor=planner)
        return builder.add_switch_case_edge_group(planner, [*cases, Default(two)]).build()

    (change,) = changes(make(is_large, is_small), make(is_small, is_large))
    assert change.startswith("the cases of switch-case 'planner' -> 'one', 'two' was is_large -> ")
    assert change.endswith("is is_small -> 'one'; is_large -> 'one'; default -> 'two'")


def test_fan_in_and_selection_are_named_by_their_ends() -> None:
    def make(select: Callable[..., list[str]], *, joined: bool) -> Workflow:
        planner, a, b = Planner("planner"), Worker("a"), Worker("b")
        end = executor(id="end", input=list[int])(is_large)
        builder = WorkflowBuilder(start_executor=planner)
        builder.add_multi_selection_edge_group(planner, [a, b], select)
        if joined:
            builder.add_fan_in_edges([a, b], end)
        return builder.build()

    assert changes(make(first, joined=True), make(sorted, joined=False)) == (
        "executor 'end' (function) is missing now",
        "fan-in 'a', 'b' -> 'end' is gone",
        "the selection function of multi-selection 'planner' -> 'a', 'b' was first, is sorted",
    )


def test_another_start_executor_is_named() -> None:
    def make(start: int) -> Workflow:
        nodes = [Worker("a"), Worker("b")]
        builder = WorkflowBuilder(start_executor=nodes[start])
        return builder.add_edge(nodes[0], nodes[1]).add_edge(nodes[1], nodes[0]).build()

    assert changes(make(0), make(1)) == ("the start executor was 'a', is 'b'",)


def test_a_function_may_get_another_name_as_long_as_its_id_stays() -> None:
    def make(function: Callable[..., object]) -> Workflow:
        return WorkflowBuilder(start_executor=executor(id="f", input=int)(function)).build()

    assert changes(make(is_large), make(is_small)) == ()


def test_a_record_without_a_graph_is_compared_without_an_error() -> None:
    found = differences({}, pair().description())
    assert "executor 'worker' (Worker) is new" in found


# -- the version of the code ----------------------------------------------------------------------


def load(path: pathlib.Path, source: str) -> Workflow:
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return WorkflowBuilder(start_executor=module.work).build()


SOURCE = """
from ninelives.graph import executor

@executor
async def work(message: int) -> None: ...
"""


def test_the_code_version_follows_what_is_written_not_where(tmp_path: pathlib.Path) -> None:
    here = load(tmp_path / "one" / "code_here.py", SOURCE).code_version()
    assert load(tmp_path / "two" / "code_there.py", SOURCE).code_version() == here
    assert load(tmp_path / "one" / "code_other.py", SOURCE + "\n").code_version() != here


def test_classes_have_a_code_version() -> None:
    assert pair().code_version() == pair().code_version()
    assert len(pair().code_version()) == 32
