"""Builds a workflow from executors and edges, and checks it.

Names and meanings are those of Microsoft Agent Framework's Python package, where it has them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

from ninelives import errors
from ninelives.graph import validation
from ninelives.graph.edges import Condition, Direct, Edge, FanIn, FanOut, Selection, Switch
from ninelives.graph.executor import Executor
from ninelives.graph.settings import Record, RunSettings
from ninelives.graph.workflow import OutputSelection, Workflow

OutputFrom = Sequence[Executor] | Literal["all"] | None
IntermediateFrom = Sequence[Executor] | Literal["all", "all_other"] | None


@dataclass(frozen=True, slots=True)
class Case:
    """One branch of a switch: `target` gets the message if `condition` is the first to hold."""

    condition: Condition
    target: Executor


@dataclass(frozen=True, slots=True)
class Default:
    """The branch of a switch that is taken when no case holds."""

    target: Executor


class WorkflowBuilder:
    """Collects executors and edges; `build` checks the whole and returns a Workflow."""

    def __init__(  # noqa: PLR0913 - Agent Framework's keywords, and three of ours
        self,
        max_iterations: int | None = None,
        name: str | None = None,
        description: str | None = None,
        *,
        start_executor: Executor,
        output_from: OutputFrom = None,
        intermediate_output_from: IntermediateFrom = None,
        record: Record | None = None,
        settings: RunSettings | Callable[[], RunSettings] | None = None,
        checkpoint_storage: object = None,
    ) -> None:
        """`name` identifies the workflow in journals: keep it (default: the start's id).

        `max_iterations` limits supersteps (None: no limit). `settings` are fixed at admission;
        a callable is asked once per run. `record` is a shorthand for one of them.
        """
        if checkpoint_storage is not None:
            message = "checkpoint_storage is not taken: the store is given to Runtime(...)"
            raise TypeError(message)
        self._name = name or start_executor.id
        self._description = description or ""
        self._max_iterations = max_iterations
        self._start = start_executor
        self._output_from = output_from
        self._intermediate_from = intermediate_output_from
        self._settings = _settings(settings, record)
        self._executors: dict[str, Executor] = {}
        self._edges: list[Edge] = []
        self._problems: list[str] = []
        self._add(start_executor)

    def _add(self, executor: Executor) -> str:
        present = self._executors.setdefault(executor.id, executor)
        if present is not executor:
            self._problems.append(
                f"two executors have the id {executor.id!r} ({type(present).__name__} and "
                f"{type(executor).__name__}); ids must differ"
            )
        return executor.id

    def add_edge(
        self, source: Executor, target: Executor, condition: Condition | None = None
    ) -> Self:
        """Send `source`'s messages to `target`, if `condition` (of the message) holds."""
        self._edges.append(Direct(self._add(source), self._add(target), condition))
        return self

    def add_chain(self, executors: Sequence[Executor]) -> Self:
        """Join executors one after the other."""
        if len(executors) < 2:
            self._problems.append("a chain needs at least two executors")
        for source, target in itertools.pairwise(executors):
            self.add_edge(source, target)
        return self

    def add_fan_out_edges(self, source: Executor, targets: Sequence[Executor]) -> Self:
        """Send each message to all targets that handle its type."""
        if len(targets) < 2:
            self._problems.append(f"the fan-out of {source.id!r} needs at least two targets")
        self._edges.append(FanOut(self._add(source), tuple(map(self._add, targets))))
        return self

    def add_fan_in_edges(self, sources: Sequence[Executor], target: Executor) -> Self:
        """Gather messages until each source has sent; `target` gets them as one list."""
        if len(sources) < 2:
            self._problems.append(f"the fan-in to {target.id!r} needs at least two sources")
        self._edges.append(FanIn(tuple(map(self._add, sources)), self._add(target)))
        return self

    def add_switch_case_edge_group(self, source: Executor, cases: Sequence[Case | Default]) -> Self:
        """Send each message to the first case that holds, else to the one default."""
        branches = [each for each in cases if isinstance(each, Case)]
        defaults = [each for each in cases if isinstance(each, Default)]
        if not branches or len(defaults) != 1:
            self._problems.append(
                f"the switch of {source.id!r} needs at least one Case and exactly one Default"
            )
            return self
        chosen = tuple((each.condition, self._add(each.target)) for each in branches)
        self._edges.append(Switch(self._add(source), chosen, self._add(defaults[0].target)))
        return self

    def add_multi_selection_edge_group(
        self, source: Executor, targets: Sequence[Executor], selection_func: Selection
    ) -> Self:
        """Send each message to the targets whose ids `selection_func(message, ids)` returns."""
        if not targets:
            self._problems.append(f"the selection of {source.id!r} needs targets")
        named = tuple(map(self._add, targets))
        self._edges.append(FanOut(self._add(source), named, selection_func))
        return self

    def build(self) -> Workflow:
        """Check the graph and return the workflow.

        Raises:
            WorkflowInvalid: with everything that is wrong, naming executors, edges, types.
        """
        found = validation.problems(self._start.id, self._executors, self._edges)
        selection = self._selection()
        everything = (*self._problems, *found)
        if everything:
            raise errors.WorkflowInvalid(self._name, everything)
        return Workflow(
            name=self._name,
            start_id=self._start.id,
            executors=dict(self._executors),
            edges=self._edges,
            selection=selection,
            settings=self._settings,
            max_iterations=self._max_iterations,
            description=self._description,
        )

    def _selection(self) -> OutputSelection:
        outputs, intermediate = self._output_from, self._intermediate_from
        if outputs is None and intermediate is None:
            return OutputSelection()
        yielding = frozenset(
            name
            for name, each in self._executors.items()
            if any(handler.yields for handler in each.handlers)
        )
        chosen = yielding if outputs == "all" else self._ids(outputs, "output_from")
        if intermediate in {"all", "all_other"}:
            return OutputSelection(chosen, yielding - chosen)
        between = self._ids(intermediate, "intermediate_output_from")
        for name in sorted(chosen & between):
            self._problems.append(f"executor {name!r} is selected as output and as intermediate")
        return OutputSelection(chosen, between)

    def _ids(self, chosen: Sequence[Executor] | str | None, what: str) -> frozenset[str]:
        ids = [] if chosen is None or isinstance(chosen, str) else [each.id for each in chosen]
        for name in ids:
            if name not in self._executors:
                self._problems.append(f"{what} names {name!r}, which is not in the workflow")
        return frozenset(ids)


def _settings(
    given: RunSettings | Callable[[], RunSettings] | None, record: Record | None
) -> RunSettings | Callable[[], RunSettings]:
    chosen = given or RunSettings()
    if record is None:
        return chosen
    if callable(chosen):
        asked = chosen
        return lambda: replace(asked(), record=record)
    return replace(chosen, record=record)
