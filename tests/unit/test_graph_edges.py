"""Where a message goes: each kind of edge, types, conditions, targets named by the sender."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from ninelives import errors
from ninelives.durable.context import WorkflowContext
from ninelives.graph import Case, Default, Executor, Workflow, WorkflowBuilder, executor
from ninelives.graph.edges import SelectionInvalid
from ninelives.graph.workflow import Route
from support.graphs import routes


@dataclass
class Order:
    amount: int


def node(name: str, takes: object, sends: object = None) -> Executor:
    async def work(message: object, ctx: WorkflowContext) -> None: ...

    return executor(id=name, input=takes, output=sends)(work)


@pytest.fixture
def source() -> Executor:
    return node("source", str)


def ends(workflow: Workflow, message: object, target_id: str | None = None) -> list[str]:
    return [route.target for route in routes(workflow, "source", message, target_id)]


def large(order: Order) -> bool:
    return order.amount > 10


# -- direct edges ---------------------------------------------------------------------------------


def test_a_message_goes_along_every_open_edge_in_the_order_of_edges(source: Executor) -> None:
    one, two, three = (node(name, Order) for name in "abc")
    workflow = (
        WorkflowBuilder(start_executor=source)
        .add_edge(source, two)
        .add_edge(source, one, condition=large)
        .add_edge(source, three)
        .build()
    )
    assert ends(workflow, Order(20)) == ["b", "a", "c"]
    assert ends(workflow, Order(5)) == ["b", "c"]
    assert routes(workflow, "source", Order(5))[0] == Route("b", "")


def test_a_message_whose_conditions_are_all_false_goes_nowhere(source: Executor) -> None:
    builder = WorkflowBuilder(start_executor=source)
    workflow = builder.add_edge(source, node("a", Order), condition=large).build()
    assert ends(workflow, Order(1)) == []


def test_targets_that_do_not_handle_the_type_are_left_out(source: Executor) -> None:
    builder = WorkflowBuilder(start_executor=source).add_edge(source, node("orders", Order))
    workflow = builder.add_edge(source, node("texts", str)).build()
    assert ends(workflow, Order(1)) == ["orders"]
    assert ends(workflow, "text") == ["texts"]


def test_a_message_that_no_target_handles_is_an_error(source: Executor) -> None:
    builder = WorkflowBuilder(start_executor=source).add_edge(source, node("a", Order))
    workflow = builder.add_edge(source, node("b", str)).build()
    with pytest.raises(errors.MessageUnhandled) as caught:
        routes(workflow, "source", 5)
    assert (caught.value.targets, caught.value.message_type) == (("a", "b"), "int")


def test_a_message_of_an_executor_without_edges_is_an_error(source: Executor) -> None:
    with pytest.raises(errors.MessageUnhandled, match="no edge leaves it"):
        routes(WorkflowBuilder(start_executor=source).build(), "source", 5)


def test_a_condition_is_not_asked_about_types_that_its_target_does_not_handle(
    source: Executor,
) -> None:
    builder = WorkflowBuilder(start_executor=source)
    builder.add_edge(source, node("orders", Order), condition=large)  # fails for a text
    workflow = builder.add_edge(source, node("texts", str)).build()
    assert ends(workflow, "text") == ["texts"]


def test_a_condition_that_tells_types_apart_may_be_the_only_edge(source: Executor) -> None:
    def is_order(message: object) -> bool:
        return isinstance(message, Order)

    builder = WorkflowBuilder(start_executor=source)
    workflow = builder.add_edge(source, node("orders", Order), condition=is_order).build()
    assert ends(workflow, "text") == []


def test_a_condition_that_fails_on_a_foreign_type_does_not_hide_the_mistake(
    source: Executor,
) -> None:
    builder = WorkflowBuilder(start_executor=source)
    workflow = builder.add_edge(source, node("orders", Order), condition=large).build()
    with pytest.raises(errors.MessageUnhandled):
        routes(workflow, "source", "text")


def test_what_a_condition_raises_on_its_own_type_passes(source: Executor) -> None:
    def broken(order: Order) -> bool:
        return order.missing  # type: ignore[attr-defined,no-any-return]

    builder = WorkflowBuilder(start_executor=source)
    workflow = builder.add_edge(source, node("a", Order), condition=broken).build()
    with pytest.raises(AttributeError):
        routes(workflow, "source", Order(1))


def test_an_executor_that_declines_is_enough_to_end_a_message(source: Executor) -> None:
    builder = WorkflowBuilder(start_executor=source)
    builder.add_edge(source, node("orders", Order), condition=large)
    workflow = builder.add_edge(source, node("texts", str)).build()
    assert ends(workflow, Order(1)) == []


def test_a_self_loop_is_an_edge() -> None:
    loop = node("source", int, int)
    workflow = WorkflowBuilder(start_executor=loop).add_edge(loop, loop).build()
    assert ends(workflow, 1) == ["source"]


def test_conditions_may_be_asynchronous(source: Executor) -> None:
    async def at_once(order: Order) -> bool:
        return order.amount > 10

    async def waiting(order: Order) -> bool:
        await asyncio.sleep(0)
        return order.amount > 10

    def build(condition: Callable[[Order], object]) -> Workflow:
        builder = WorkflowBuilder(start_executor=source)
        return builder.add_edge(source, node("a", Order), condition=condition).build()  # type: ignore[arg-type]

    assert ends(build(at_once), Order(20)) == ["a"]
    assert ends(build(at_once), Order(2)) == []
    assert ends(build(waiting), Order(20)) == ["a"]
    assert ends(build(waiting), Order(2)) == []


# -- a target named by the sender -----------------------------------------------------------------


def test_a_named_target_alone_gets_the_message(source: Executor) -> None:
    builder = WorkflowBuilder(start_executor=source)
    workflow = builder.add_fan_out_edges(source, [node("a", Order), node("b", Order)]).build()
    assert ends(workflow, Order(1), "b") == ["b"]


@pytest.mark.parametrize("target", ["source", "stranger"])
def test_a_named_target_must_be_at_the_end_of_an_edge(source: Executor, target: str) -> None:
    builder = WorkflowBuilder(start_executor=source).add_edge(source, node("a", Order))
    with pytest.raises(errors.MessageUnhandled) as caught:
        routes(builder.build(), "source", Order(1), target)
    assert caught.value.targets == (target,)


def test_a_named_target_must_handle_the_message(source: Executor) -> None:
    builder = WorkflowBuilder(start_executor=source)
    workflow = builder.add_fan_out_edges(source, [node("a", Order), node("b", str)]).build()
    with pytest.raises(errors.MessageUnhandled):
        routes(workflow, "source", Order(1), "b")


def test_a_condition_holds_for_a_named_target_too(source: Executor) -> None:
    builder = WorkflowBuilder(start_executor=source)
    workflow = builder.add_edge(source, node("a", Order), condition=large).build()
    assert ends(workflow, Order(1), "a") == []


# -- fan-out, switch-case, multi-selection --------------------------------------------------------


def test_a_fan_out_reaches_all_targets_that_handle_the_type(source: Executor) -> None:
    targets = [node("a", Order), node("b", str), node("c", Order | str)]
    workflow = WorkflowBuilder(start_executor=source).add_fan_out_edges(source, targets).build()
    assert ends(workflow, Order(1)) == ["a", "c"]
    assert ends(workflow, "text") == ["b", "c"]


def switch(source: Executor, default: Executor | None = None) -> Workflow:
    big, huge = node("big", Order), node("huge", Order)
    cases = [
        Case(lambda order: order.amount > 1000, huge),
        Case(large, big),
        Case(lambda order: order.amount < 0, huge),
        Default(default or node("rest", Order)),
    ]
    return WorkflowBuilder(start_executor=source).add_switch_case_edge_group(source, cases).build()


@pytest.mark.parametrize(
    ("amount", "end"), [(5000, "huge"), (50, "big"), (5, "rest"), (-5, "huge")]
)
def test_a_switch_takes_the_first_case_that_holds(source: Executor, amount: int, end: str) -> None:
    assert ends(switch(source), Order(amount)) == [end]


def test_a_case_chosen_for_a_target_without_a_handler_is_an_error(source: Executor) -> None:
    workflow = switch(source, default=node("rest", str))
    with pytest.raises(errors.MessageUnhandled) as caught:
        routes(workflow, "source", Order(5))
    assert caught.value.targets == ("rest",)


def test_a_switch_of_which_no_target_handles_the_type_is_not_asked(source: Executor) -> None:
    with pytest.raises(errors.MessageUnhandled):
        routes(switch(source), "source", "text")


def selection(source: Executor, choose: Callable[[Order, list[str]], object]) -> Workflow:
    targets = [node("a", Order), node("b", Order), node("c", str)]
    builder = WorkflowBuilder(start_executor=source)
    return builder.add_multi_selection_edge_group(source, targets, choose).build()  # type: ignore[arg-type]


def test_a_selection_function_chooses_among_the_targets(source: Executor) -> None:
    assert ends(selection(source, lambda _, ids: ids[:2]), Order(1)) == ["a", "b"]
    assert ends(selection(source, lambda _, ids: [ids[1], ids[1]]), Order(1)) == ["b"]
    assert ends(selection(source, lambda _, ids: []), Order(1)) == []
    assert ends(selection(source, lambda _, ids: ids), Order(1)) == ["a", "b"]
    assert ends(selection(source, lambda _, ids: ["a"]), Order(1), "b") == []


def test_a_selection_of_a_target_without_a_handler_is_an_error(source: Executor) -> None:
    with pytest.raises(errors.MessageUnhandled):
        routes(selection(source, lambda _, ids: ["c"]), "source", Order(1))


@pytest.mark.parametrize("chosen", [["stranger"], "a"])
def test_a_selection_names_its_targets_in_a_list(source: Executor, chosen: object) -> None:
    with pytest.raises(SelectionInvalid, match="executor 'source' chose"):
        routes(selection(source, lambda _, ids: chosen), "source", Order(1))


# -- fan-in ---------------------------------------------------------------------------------------


@pytest.fixture
def joined(source: Executor) -> Workflow:
    one, two = node("one", str, Order), node("two", str, Order)
    builder = WorkflowBuilder(start_executor=source).add_fan_out_edges(source, [one, two])
    return builder.add_fan_in_edges([two, one], node("end", list[Order])).build()


def test_a_fan_in_is_a_route_into_its_buffer(joined: Workflow) -> None:
    (route,) = routes(joined, "one", Order(1))
    assert route == Route("end", "'two', 'one' -> 'end'")
    with pytest.raises(errors.MessageUnhandled):
        routes(joined, "one", "text")


@pytest.mark.parametrize(
    ("sources", "due"),
    [
        ([], None),
        (["one"], None),
        (["one", "one"], None),
        (["two", "one"], (0, 1)),
        (["one", "two"], (1, 0)),
        (["one", "two", "one", "two"], (1, 3, 0, 2)),
    ],
)
def test_a_fan_in_delivers_all_once_each_source_has_sent(
    joined: Workflow, sources: list[str], due: tuple[int, ...] | None
) -> None:
    edge = routes(joined, "one", Order(1))[0].edge
    assert joined.collect(edge, sources) == due
