"""What a builder makes, and everything it finds wrong with a graph, said at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from ninelives import errors
from ninelives.durable.context import WorkflowContext
from ninelives.graph import (
    Budget,
    Case,
    Default,
    Executor,
    RunSettings,
    WorkflowBuilder,
    executor,
    handler,
)
from support.graphs import routes


def node(name: str, takes: object = int, sends: object = None, yields: object = None) -> Executor:
    async def work(message: object, ctx: WorkflowContext) -> None: ...

    return executor(id=name, input=takes, output=sends, workflow_output=yields)(work)


class Silent(Executor):
    pass


class Untyped(Executor):
    @handler
    async def work(self, message, ctx: WorkflowContext) -> None: ...


def starting(start: Executor | None = None, **settings: Any) -> WorkflowBuilder:
    return WorkflowBuilder(start_executor=start or node("a"), **settings)


def problems(builder: WorkflowBuilder) -> tuple[str, ...]:
    with pytest.raises(errors.WorkflowInvalid) as caught:
        builder.build()
    return caught.value.problems


def test_the_name_is_the_start_executors_id_unless_given() -> None:
    assert starting().build().name == "a"
    assert starting(name="orders", description="Sorts orders.").build().name == "orders"
    assert starting(description="Sorts orders.").build().text == "Sorts orders."


def test_a_workflow_of_one_executor_needs_no_edge() -> None:
    workflow = starting(max_iterations=7).build()
    assert (workflow.start_id, list(workflow.executors)) == ("a", ["a"])
    assert (workflow.input_types, workflow.max_iterations) == ((int,), 7)


def test_a_chain_joins_each_executor_to_the_next() -> None:
    a, b, c = node("a", int, int), node("b", int, int), node("c")
    workflow = starting(a).add_chain([a, b, c]).build()
    assert [routes(workflow, name, 1)[0].target for name in "ab"] == ["b", "c"]


Change = Callable[[WorkflowBuilder, Executor, Executor, Executor], object]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda build, a, b, c: build.add_edge(a, node("a")),
            "two executors have the id 'a': one of class FunctionExecutor, one of class Function",
        ),
        (
            lambda build, a, b, c: build.add_edge(a, b).add_edge(a, b, condition=bool),
            "edge 'a' -> 'b' is there 2 times",
        ),
        (
            lambda build, a, b, c: build.add_edge(a, b).add_fan_out_edges(a, [b, c]),
            "edge 'a' -> 'b' is there 2 times",
        ),
        (
            lambda build, a, b, c: build.add_edge(b, c),
            "no path leads from the start executor 'a' to executor 'c'",
        ),
        (
            lambda build, a, b, c: build.add_edge(a, Silent("s")),
            "executor 's' (Silent) has no handlers; mark a method with @handler",
        ),
        (
            lambda build, a, b, c: build.add_edge(a, Untyped("u")),
            "handler 'work' of executor 'u' (Untyped): parameter 'message' has no annot",
        ),
        (
            lambda build, a, b, c: build.add_edge(a, node("t", str | bytes)),
            "edge 'a' -> 't': 'a' sends int, 't' handles bytes | str",
        ),
        (
            lambda build, a, b, c: build.add_fan_out_edges(a, [b, c]).add_fan_in_edges(
                [b, c], node("t", int)
            ),
            "edge 'b' -> 't': 'b' sends int, 't' handles int (a fan-in delivers a list)",
        ),
        (
            lambda build, a, b, c: build.add_edge(a, node("m", int, int | str)).add_edge(
                build._executors["m"], c
            ),
            "executor 'm' declares to send str, which none of its targets ('c') handles",
        ),
        (
            lambda build, a, b, c: build.add_fan_out_edges(a, [b]),
            "fan-out from executor 'a' to 'b' needs two targets or more",
        ),
        (
            lambda build, a, b, c: build.add_multi_selection_edge_group(a, [b], len),
            "multi-selection from executor 'a' to 'b' needs two targets or more",
        ),
        (
            lambda build, a, b, c: build.add_fan_in_edges([a], node("t", list[int])),
            "fan-in from 'a' to executor 't' needs two sources or more",
        ),
        (
            lambda build, a, b, c: build.add_switch_case_edge_group(a, []),
            "switch-case of executor 'a' has no Case",
        ),
        (
            lambda build, a, b, c: build.add_switch_case_edge_group(a, [Case(bool, b)]),
            "switch-case of executor 'a' has no Default; it needs one, as the last",
        ),
        (
            lambda build, a, b, c: build.add_switch_case_edge_group(a, [Default(b), Case(bool, c)]),
            "switch-case of executor 'a' has its Default before a Case, which is never",
        ),
        (
            lambda build, a, b, c: build.add_chain([a]),
            "a chain needs two executors or more, not 1",
        ),
    ],
)
def test_a_mistake_in_the_graph_is_named(change: Change, words: str) -> None:
    a, b, c = (node(name, int, int) for name in "abc")
    builder = starting(a)
    change(builder, a, b, c)
    assert any(problem.startswith(words) for problem in problems(builder))


def test_all_problems_are_said_at_once() -> None:
    a = node("a", int, int)
    builder = starting(a, name="orders", checkpoint_storage=object(), max_iterations=0)
    builder.add_edge(a, Silent("s")).add_edge(a, node("t", str)).add_edge(node("x"), node("y"))
    found = problems(builder)
    assert len(found) == 6
    with pytest.raises(errors.WorkflowInvalid, match="workflow 'orders' cannot be built: "):
        builder.build()


def test_a_store_for_checkpoints_is_given_to_the_runtime() -> None:
    (problem,) = problems(starting(checkpoint_storage=object()))
    assert "the store is given to Runtime" in problem


@pytest.mark.parametrize("stranger", [object(), len, "worker"])
def test_only_executors_are_nodes(stranger: Any) -> None:
    with pytest.raises(TypeError, match="cannot be a node of a workflow"):
        starting().add_edge(node("a"), stranger)


def test_an_executor_that_did_not_call_its_base_is_told_so() -> None:
    class Hasty(Executor):
        def __init__(self) -> None:
            pass

    with pytest.raises(TypeError, match=r"Hasty has no id; call super\(\).__init__"):
        starting(Hasty())


def test_an_executor_may_declare_messages_that_it_has_no_edge_for() -> None:
    starting(node("a", int, str)).build()


def test_two_types_of_one_name_cannot_both_be_recorded() -> None:
    def make() -> type:
        @dataclass
        class Item:
            number: int

        return Item

    one, two = make(), make()
    builder = starting(node("a", one, two))
    (problem,) = problems(builder)
    assert problem.startswith("types of executor 'a': type name ")


# -- whose yields are shown -----------------------------------------------------------------------


def selected(**chosen: Any) -> dict[str, str | None]:
    a, b, c = node("a", int, int, str), node("b", int, None, str), node("c")
    by_name = {"a": a, "b": b, "c": c, "x": node("x", int, None, str)}
    given = {
        word: value if isinstance(value, str) else [by_name[each] for each in value]
        for word, value in chosen.items()
    }
    workflow = starting(a, **given).add_fan_out_edges(a, [b, c]).build()
    return {name: workflow.output_kind(name) for name in "abc"}


@pytest.mark.parametrize(
    ("chosen", "kinds"),
    [
        ({}, ("output", "output", "output")),
        ({"output_from": "all"}, ("output", "output", None)),
        ({"output_from": ["a"]}, ("output", None, None)),
        ({"intermediate_output_from": "all"}, ("intermediate", "intermediate", None)),
        ({"intermediate_output_from": "all_other"}, ("intermediate", "intermediate", None)),
        (
            {"output_from": ["b"], "intermediate_output_from": "all_other"},
            ("intermediate", "output", None),
        ),
        (
            {"output_from": ["a"], "intermediate_output_from": ["b"]},
            ("output", "intermediate", None),
        ),
        ({"output_from": [], "intermediate_output_from": ["b"]}, (None, "intermediate", None)),
    ],
)
def test_yields_are_outputs_or_intermediate_or_hidden(
    chosen: dict[str, Any], kinds: tuple[str | None, ...]
) -> None:
    assert tuple(selected(**chosen).values()) == kinds


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"output_from": ["x"]}, "output_from= names executor 'x', which is not in the graph"),
        ({"output_from": ["c"]}, "output_from= names executor 'c', which declares no output"),
        ({"output_from": ["a", "a"]}, "output_from= names executor 'a' 2 times"),
        ({"output_from": []}, "choose no executor at all"),
        ({"output_from": "every"}, "output_from= is 'every'; write 'all' or a list"),
        (
            {"output_from": ["a"], "intermediate_output_from": ["a"]},
            "executor 'a' is named as output and as intermediate output",
        ),
        (
            {"output_from": "all", "intermediate_output_from": "all"},
            "executor 'b' is named as output and as intermediate output",
        ),
    ],
)
def test_a_mistaken_selection_of_outputs_is_named(chosen: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.WorkflowInvalid) as caught:
        selected(**chosen)
    assert words in str(caught.value)


# -- settings -------------------------------------------------------------------------------------


def test_settings_are_a_value_or_made_for_each_admission() -> None:
    given = RunSettings(budget=Budget(5), values={"city": "Oslo"})
    assert starting(settings=given).build().settings_for_admission() is given
    budgets = iter([Budget(1), Budget(2)])
    workflow = starting(settings=lambda: RunSettings(budget=next(budgets))).build()
    made = [workflow.settings_for_admission().budget for _ in range(2)]
    assert made == [Budget(1), Budget(2)]
    assert starting().build().settings_for_admission() == RunSettings()


def test_record_is_short_for_it_in_the_settings() -> None:
    given = RunSettings(budget=Budget(5))
    for settings in (given, lambda: given):
        workflow = starting(settings=settings, record="superstep").build()
        assert workflow.settings_for_admission() == RunSettings("superstep", Budget(5))
    assert starting(record="superstep").build().settings_for_admission().record == "superstep"
    coarse = RunSettings(record="superstep")
    assert starting(settings=coarse).build().settings_for_admission() is coarse


def test_settings_of_another_type_are_refused_at_admission() -> None:
    with pytest.raises(errors.SettingsInvalid, match="gave a dict"):
        starting(settings=dict).build().settings_for_admission()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Budget(-1), "-1 is negative"),
        (lambda: Budget(True), "True is no whole number"),
        (lambda: Budget(1.5), "1.5 is no whole number"),  # type: ignore[arg-type]
        (lambda: RunSettings(record="step"), "'step' is not one of"),  # type: ignore[arg-type]
        (lambda: RunSettings(budget=5), "5 is no Budget"),  # type: ignore[arg-type]
        (lambda: RunSettings(values={"a": [1]}), "value 'a': it is a list"),  # type: ignore[dict-item]
        (lambda: RunSettings(values={1: "a"}), "the name 1 is no text"),  # type: ignore[dict-item]
        (lambda: RunSettings(values={"a": float("nan")}), "nan has no place in JSON"),
    ],
)
def test_settings_that_cannot_be_recorded_are_refused(
    make: Callable[[], object], words: str
) -> None:
    with pytest.raises(errors.SettingsInvalid, match=words):
        make()


def test_a_budget_of_nothing_and_no_budget_are_different() -> None:
    assert Budget(0).tokens == 0
    assert Budget(None).tokens is None


def test_settings_do_not_change_with_what_they_were_made_from() -> None:
    values: dict[str, Any] = {"city": "Oslo"}
    settings = RunSettings(values=values)
    values["city"] = "Rome"
    assert settings.values == {"city": "Oslo"}
