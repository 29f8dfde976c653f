"""A graph as plain data, and in words what differs between two of them."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING

from ninelives.graph import types
from ninelives.graph.edges import Direct, Edge, FanIn, FanOut, Switch
from ninelives.graph.functions import FunctionExecutor

if TYPE_CHECKING:
    from ninelives.graph.executor import Executor
    from ninelives.graph.workflow import Workflow


def describe(workflow: Workflow) -> dict[str, object]:
    """Everything that shapes the graph: executors, what they take, edges, selection."""
    selection = workflow.selection
    return {
        "start": workflow.start_id,
        "executors": {
            name: {"class": _class(each), "takes": sorted(map(types.shown, each.input_types))}
            for name, each in sorted(workflow.executors.items())
        },
        "edges": sorted(_edge(each) for each in workflow.edges),
        "outputs": None if selection.outputs is None else sorted(selection.outputs),
        "intermediate": sorted(selection.intermediate),
    }


def _class(executor: Executor) -> str:
    if isinstance(executor, FunctionExecutor):
        return f"function {executor.function.__name__}"
    return type(executor).__qualname__.replace("<locals>.", "")


def _edge(edge: Edge) -> str:
    match edge:
        case Direct(condition=None):
            return f"{edge.source!r} -> {edge.target!r}"
        case Direct(condition=condition):
            return f"{edge.source!r} -> {edge.target!r} if {_name(condition)}"
        case FanOut(select=None):
            return f"{edge.source!r} -> all of {list(edge.targets)}"
        case FanOut(select=select):
            return f"{edge.source!r} -> some of {list(edge.targets)} by {_name(select)}"
        case FanIn():
            return f"{list(edge.sources)} -> list for {edge.target!r}"
        case Switch():
            cases = [f"{target!r} if {_name(condition)}" for condition, target in edge.cases]
            return f"{edge.source!r} -> {', '.join(cases)}, else {edge.default!r}"
        case _:
            typing.assert_never(edge)


def _name(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def differences(recorded: dict[str, object], present: dict[str, object]) -> tuple[str, ...]:
    """What is not as it was recorded, in words that name executors and edges."""
    found: list[str] = []
    if recorded.get("start") != present.get("start"):
        found.append(f"the start executor was {recorded.get('start')!r}, is {present['start']!r}")
    found += _executor_differences(_table(recorded), _table(present))
    before, now = _edges(recorded), _edges(present)
    found += [f"edge {edge} is gone" for edge in before if edge not in now]
    found += [f"edge {edge} is new" for edge in now if edge not in before]
    for what in ("outputs", "intermediate"):
        was, now_is = recorded.get(what), present.get(what)
        if was != now_is:
            found.append(f"the selection of {what} was {was}, is {now_is}")
    return tuple(found)


def _executor_differences(
    before: dict[str, dict[str, object]], now: dict[str, dict[str, object]]
) -> list[str]:
    found = [
        f"executor {name!r} ({before[name]['class']}) is missing now"
        for name in before
        if name not in now
    ]
    found += [
        f"executor {name!r} ({now[name]['class']}) is new" for name in now if name not in before
    ]
    for name in before.keys() & now.keys():
        for what in ("class", "takes"):
            if before[name].get(what) != now[name].get(what):
                found.append(
                    f"executor {name!r}: {what} was {before[name].get(what)}, "
                    f"is {now[name].get(what)}"
                )
    return sorted(found)


def _table(described: dict[str, object]) -> dict[str, dict[str, object]]:
    return typing.cast("dict[str, dict[str, object]]", described.get("executors", {}))


def _edges(described: dict[str, object]) -> list[str]:
    return typing.cast("list[str]", described.get("edges", []))
