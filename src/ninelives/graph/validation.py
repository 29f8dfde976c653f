"""What is wrong with a graph, all of it at once, in words that name executors, edges and types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ninelives.graph import edges, types
from ninelives.graph.edges import Edge, FanIn
from ninelives.graph.executor import Executor


def problems(
    start_id: str, executors: Mapping[str, Executor], graph: Sequence[Edge]
) -> tuple[str, ...]:
    """Everything that keeps a graph from being built."""
    return (
        *_without_handlers(executors),
        *_duplicates(graph),
        *_unreachable(start_id, executors, graph),
        *_unhandled(executors, graph),
    )


def _without_handlers(executors: Mapping[str, Executor]) -> list[str]:
    return [
        f"executor {name!r} ({type(each).__name__}) has no @handler"
        for name, each in executors.items()
        if not each.handlers
    ]


def _duplicates(graph: Sequence[Edge]) -> list[str]:
    seen: set[tuple[str, str]] = set()
    found: list[str] = []
    for edge in graph:
        for source in edges.sources(edge):
            for target in edges.targets(edge):
                if (source, target) in seen:
                    found.append(f"there are two edges {source!r} -> {target!r}; keep one")
                seen.add((source, target))
    return found


def _unreachable(
    start_id: str, executors: Mapping[str, Executor], graph: Sequence[Edge]
) -> list[str]:
    reached, waiting = {start_id}, [start_id]
    while waiting:
        name = waiting.pop()
        for edge in graph:
            if name in edges.sources(edge):
                new = [target for target in edges.targets(edge) if target not in reached]
                reached.update(new)
                waiting += new
    return [
        f"executor {name!r} cannot be reached from the start executor {start_id!r}"
        for name in executors
        if name not in reached
    ]


def _unhandled(executors: Mapping[str, Executor], graph: Sequence[Edge]) -> list[str]:
    """Message types that a source declares and nobody at the end of its edges takes."""
    found: list[str] = []
    for name, executor in executors.items():
        leaving = [edge for edge in graph if name in edges.sources(edge)]
        sent = [kind for each in executor.handlers for kind in each.sends]
        found += [
            _nobody(name, kind, executors, leaving)
            for kind in dict.fromkeys(sent)
            if leaving and not any(_takes(executors, edge, kind) for edge in leaving)
        ]
        found += [
            _idle(name, sent, executors, edge)
            for edge in leaving
            if sent and not any(_takes(executors, edge, kind) for kind in sent)
        ]
    return list(dict.fromkeys(found))


def _takes(executors: Mapping[str, Executor], edge: Edge, kind: object) -> bool:
    wanted: object = list[kind] if isinstance(edge, FanIn) else kind  # type: ignore[valid-type]
    return any(
        types.compatible(wanted, option)
        for target in edges.targets(edge)
        for handler in executors[target].handlers
        for option in types.options(handler.takes)
    )


def _nobody(
    name: str, kind: object, executors: Mapping[str, Executor], leaving: Sequence[Edge]
) -> str:
    takers = [target for edge in leaving for target in edges.targets(edge)]
    return (
        f"executor {name!r} sends {types.shown(kind)}, which no target handles "
        f"({_handled(executors, takers)})"
    )


def _idle(name: str, sent: Sequence[object], executors: Mapping[str, Executor], edge: Edge) -> str:
    shown = ", ".join(types.shown(kind) for kind in sent)
    listed = " as a list" if isinstance(edge, FanIn) else ""
    takers = list(edges.targets(edge))
    return (
        f"edge {name!r} -> {', '.join(map(repr, takers))} can carry nothing: {name!r} sends "
        f"{shown}{listed}, ({_handled(executors, takers)})"
    )


def _handled(executors: Mapping[str, Executor], names: Sequence[str]) -> str:
    return "; ".join(
        f"{name!r} takes {', '.join(types.shown(each) for each in executors[name].input_types)}"
        for name in dict.fromkeys(names)
    )
