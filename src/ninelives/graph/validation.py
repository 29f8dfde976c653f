"""What is wrong with a graph, found when it is built and said all at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ninelives.graph import edges, matching
from ninelives.graph.edges import Branch, Direct, FanIn, FanOut, Group, MultiSelection, Switch
from ninelives.graph.executor import Executor

Executors = Mapping[str, Executor]


def problems_of(start_id: str, executors: Executors, groups: tuple[Group, ...]) -> Iterator[str]:
    """Go over a graph; each problem names executors, edges and types."""
    for executor in executors.values():
        yield from executor.problems
    for group in groups:
        yield from _shape(group)
    yield from _duplicates(groups)
    yield from _unreachable(start_id, executors, groups)
    readable = {name: each for name, each in executors.items() if not each.problems}
    yield from _unfit_edges(readable, groups)
    yield from _unhandled_types(readable, groups)


def selection_problems(word: str, chosen: Iterable[str], executors: Executors) -> Iterator[str]:
    """Check the executors named by output_from= or intermediate_output_from=."""
    for name, count in Counter(chosen).items():
        if count > 1:
            yield f"{word} names executor {name!r} {count} times"
        if name not in executors:
            yield f"{word} names executor {name!r}, which is not in the graph"
        elif not executors[name].problems and not executors[name].workflow_output_types:
            yield (
                f"{word} names executor {name!r}, which declares no output; "
                "write WorkflowContext[..., T] in a handler"
            )


def _shape(group: Group) -> Iterator[str]:
    match group:
        case FanOut() | MultiSelection():
            kind = "fan-out" if isinstance(group, FanOut) else "multi-selection"
            if len(group.targets) < 2:
                listed = ", ".join(map(repr, group.targets)) or "no executor"
                yield f"{kind} from executor {group.source!r} to {listed} needs two targets or more"
        case FanIn():
            if len(group.sources) < 2:
                listed = ", ".join(map(repr, group.sources)) or "no executor"
                yield f"fan-in from {listed} to executor {group.target!r} needs two sources or more"
        case Switch():
            yield from _switch(group.source, group.branches)
        case Direct():
            pass


def _switch(source: str, branches: tuple[Branch, ...]) -> Iterator[str]:
    defaults = [place for place, each in enumerate(branches) if each.condition is None]
    where = f"switch-case of executor {source!r}"
    if len(branches) == len(defaults):
        yield f"{where} has no Case"
    if len(defaults) != 1:
        yield f"{where} has {len(defaults) or 'no'} Default; it needs one, as the last"
    elif defaults[0] != len(branches) - 1:
        yield f"{where} has its Default before a Case, which is never reached; put it last"


def _duplicates(groups: tuple[Group, ...]) -> Iterator[str]:
    pairs = Counter(pair for group in groups for pair in edges.pairs_of(group))
    for (source, target), count in pairs.items():
        if count > 1:
            yield f"edge {source!r} -> {target!r} is there {count} times"


def _unreachable(start_id: str, executors: Executors, groups: tuple[Group, ...]) -> Iterator[str]:
    following: dict[str, list[str]] = {}
    for group in groups:
        for source, target in edges.pairs_of(group):
            following.setdefault(source, []).append(target)
    reached: set[str] = set()
    ahead = [start_id]
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead += following.get(name, [])
    for name in executors:
        if name not in reached:
            yield f"no path leads from the start executor {start_id!r} to executor {name!r}"


def _unfit_edges(executors: Executors, groups: tuple[Group, ...]) -> Iterator[str]:
    """Edges along which nothing that the source declares can ever go."""
    for group in groups:
        for source, target in edges.pairs_of(group):
            if source not in executors or target not in executors:
                continue
            sent = executors[source].output_types
            if sent and not any(_handles(executors[target], each, group) for each in sent):
                handled = _spell(executors[target].input_types)
                yield (
                    f"edge {source!r} -> {target!r}: {source!r} sends {_spell(sent)}, "
                    f"{target!r} handles {handled}"
                    f"{' (a fan-in delivers a list)' if isinstance(group, FanIn) else ''}"
                )


def _unhandled_types(executors: Executors, groups: tuple[Group, ...]) -> Iterator[str]:
    """Declared types that nobody at the end of any of the source's edges handles."""
    for name, source in executors.items():
        outgoing = [group for group in groups if name in edges.sources_of(group)]
        ends = [(group, target) for group in outgoing for target in edges.targets_of(group)]
        if any(target not in executors for _, target in ends):
            continue  # what cannot be read is named already
        lost = [
            each
            for each in source.output_types
            if not any(_handles(executors[target], each, group) for group, target in ends)
        ]
        if not ends or len(lost) == len(source.output_types):
            continue  # a last executor; or each edge by itself is named already
        for each in lost:
            targets = ", ".join(repr(target) for _, target in ends)
            yield (
                f"executor {name!r} declares to send {matching.spell(each)}, "
                f"which none of its targets ({targets}) handles"
            )


def _handles(target: Executor, sent: object, group: Group) -> bool:
    received = matching.list_of(sent) if isinstance(group, FanIn) else sent
    return any(matching.assignable(received, each) for each in target.input_types)


def _spell(types: Iterable[object]) -> str:
    return ", ".join(map(matching.spell, types))
