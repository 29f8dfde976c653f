"""Puts a workflow together, checks it, and says all that is wrong with it at once.

Names and meanings are those of Microsoft Agent Framework's Python package, where it has them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self, cast

from ninelives import codec, errors
from ninelives.durable.prices import Price
from ninelives.graph import validation
from ninelives.graph.edges import (
    Branch,
    Condition,
    Direct,
    FanIn,
    FanOut,
    Group,
    MultiSelection,
    Selection,
    Switch,
)
from ninelives.graph.executor import Executor
from ninelives.graph.settings import Record, RunSettings
from ninelives.graph.workflow import Definition, Settings, Workflow

Outputs = Sequence[Executor] | Literal["all"] | None
Intermediates = Sequence[Executor] | Literal["all", "all_other"] | None


@dataclass(frozen=True, slots=True)
class Case:
    """A branch of a switch: taken if it is the first whose condition holds."""

    condition: Condition
    target: Executor


@dataclass(frozen=True, slots=True)
class Default:
    """The last branch of a switch: taken if no condition holds."""

    target: Executor


class WorkflowBuilder:
    """Collects executors and edges; `build()` makes the workflow.

    `name` identifies the workflow of recorded runs; without one it is the start executor's id.
    `output_from` and `intermediate_output_from` choose whose yields are shown as which; with
    neither, all are outputs, with one, those not named are hidden. `settings` may be a callable,
    called for each run that is admitted; `record="superstep"` is short for it in the settings.
    `prices` says by name what models cost that know no price of their own; it goes before theirs.
    """

    def __init__(  # noqa: PLR0913 - each is one setting, by name
        self,
        max_iterations: int | None = None,
        name: str | None = None,
        description: str | None = None,
        *,
        start_executor: Executor,
        output_from: Outputs = None,
        intermediate_output_from: Intermediates = None,
        record: Record = "operation",
        settings: Settings | None = None,
        prices: Mapping[str, Price] | None = None,
        checkpoint_storage: object = None,
    ) -> None:
        self._start = start_executor
        self._executors: dict[str, Executor] = {}
        self._groups: list[Group] = []
        self._problems: list[str] = []
        self._add(start_executor)
        self._name = name or start_executor.id
        self._text = description or ""
        self._max_iterations = max_iterations
        self._output_from = output_from
        self._intermediate_output_from = intermediate_output_from
        self._settings = _combined(settings, record)
        self._prices = dict(prices or {})
        self._problems += [
            f"prices={{{model!r}: ...}} is no Price"
            for model, price in self._prices.items()
            if not isinstance(cast("object", price), Price)
        ]
        if checkpoint_storage is not None:
            self._problems.append(
                "checkpoint_storage= is not taken here: the store is given to Runtime(...)"
            )
        if max_iterations is not None and max_iterations < 1:
            self._problems.append(f"max_iterations={max_iterations} allows no superstep at all")

    def add_edge(
        self, source: Executor, target: Executor, condition: Condition | None = None
    ) -> Self:
        """Messages of `source` go to `target`; only those for which `condition` holds."""
        self._groups.append(Direct(self._add(source), self._add(target), condition))
        return self

    def add_chain(self, executors: Sequence[Executor]) -> Self:
        """An edge from each executor to the next."""
        if len(executors) < 2:
            self._problems.append(f"a chain needs two executors or more, not {len(executors)}")
        for source, target in itertools.pairwise(executors):
            self.add_edge(source, target)
        return self

    def add_fan_out_edges(self, source: Executor, targets: Sequence[Executor]) -> Self:
        """Each message of `source` goes to all of `targets` that handle its type."""
        self._groups.append(FanOut(self._add(source), tuple(map(self._add, targets))))
        return self

    def add_fan_in_edges(self, sources: Sequence[Executor], target: Executor) -> Self:
        """Once each of `sources` has sent a message, `target` gets them all as one list."""
        self._groups.append(FanIn(tuple(map(self._add, sources)), self._add(target)))
        return self

    def add_switch_case_edge_group(self, source: Executor, cases: Sequence[Case | Default]) -> Self:
        """Each message of `source` goes to the first case that holds, else to the default."""
        branches = tuple(
            Branch(self._add(each.target), each.condition if isinstance(each, Case) else None)
            for each in cases
        )
        self._groups.append(Switch(self._add(source), branches))
        return self

    def add_multi_selection_edge_group(
        self, source: Executor, targets: Sequence[Executor], selection_func: Selection
    ) -> Self:
        """`selection_func(message, ids of targets)` returns the ids that get the message."""
        ids = tuple(map(self._add, targets))
        self._groups.append(MultiSelection(self._add(source), ids, selection_func))
        return self

    def build(self) -> Workflow:
        """Check the graph and make the workflow.

        Raises:
            WorkflowInvalid: with all problems that were found.
        """
        groups = tuple(self._groups)
        problems = [*self._problems]
        problems += validation.problems_of(self._start.id, self._executors, groups)
        outputs, intermediates = self._selected()
        problems += self._selection_problems(outputs, intermediates)
        registry, collisions = _registry(self._executors.values())
        problems += collisions
        if problems:
            raise errors.WorkflowInvalid(self._name, tuple(dict.fromkeys(problems)))
        explicit = outputs is not None or intermediates is not None
        return Workflow(
            Definition(
                name=self._name,
                start_id=self._start.id,
                executors=self._executors,
                edges=groups,
                registry=registry,
                settings=self._settings,
                text=self._text,
                max_iterations=self._max_iterations,
                outputs=frozenset(outputs or ()) if explicit else None,
                intermediates=frozenset(intermediates or ()),
                prices=self._prices,
            )
        )

    def _add(self, candidate: Executor) -> str:
        found = cast("object", candidate)
        if not isinstance(found, Executor):
            message = f"a {type(found).__name__} cannot be a node of a workflow; give an Executor"
            raise TypeError(message)
        name: str | None = getattr(found, "id", None)
        if name is None:
            message = f"{type(found).__name__} has no id; call super().__init__(id=...) in it"
            raise TypeError(message)
        known = self._executors.setdefault(name, found)
        if known is not found:
            self._problems.append(
                f"two executors have the id {name!r}: one of class {type(known).__name__}, "
                f"one of class {type(found).__name__}"
            )
        return name

    def _selected(self) -> tuple[list[str] | None, list[str] | None]:
        """The ids behind output_from= and intermediate_output_from=; None: not given."""
        capable = [
            name
            for name, each in self._executors.items()
            if not each.problems and each.workflow_output_types
        ]
        outputs = _ids(self._output_from, capable, ())
        return outputs, _ids(self._intermediate_output_from, capable, outputs or ())

    def _selection_problems(
        self, outputs: list[str] | None, intermediates: list[str] | None
    ) -> list[str]:
        chosen = {"output_from=": outputs or [], "intermediate_output_from=": intermediates or []}
        given = {
            "output_from=": (self._output_from, ("all",)),
            "intermediate_output_from=": (self._intermediate_output_from, ("all", "all_other")),
        }
        found = [
            f"{word} is {value!r}; write {' or '.join(map(repr, words))} or a list of executors"
            for word, (value, words) in given.items()
            if isinstance(value, str) and value not in words
        ]
        for word, ids in chosen.items():
            found += validation.selection_problems(word, ids, self._executors)
        found += [
            f"executor {name!r} is named as output and as intermediate output"
            for name in dict.fromkeys(outputs or ())
            if name in (intermediates or ())
        ]
        if (outputs, intermediates) != (None, None) and not any(chosen.values()):
            found.append("output_from= and intermediate_output_from= choose no executor at all")
        return found


def _ids(
    chosen: Sequence[Executor] | str | None, capable: Sequence[str], taken: Sequence[str]
) -> list[str] | None:
    if chosen is None:
        return None
    if isinstance(chosen, str):
        return [name for name in capable if chosen == "all" or name not in taken]
    return [each.id for each in chosen]


def _combined(settings: Settings | None, record: Record) -> Settings:
    """`record` is a shorthand: given here, it holds whatever the settings say."""
    if record == "operation":
        return settings if settings is not None else RunSettings()
    if settings is None or isinstance(settings, RunSettings):
        return dataclasses.replace(settings or RunSettings(), record=record)
    made = settings
    return lambda: dataclasses.replace(made(), record=record)


def _registry(executors: Iterable[Executor]) -> tuple[codec.Registry, list[str]]:
    """A registry of all types in the handlers' annotations, and what collides in it."""
    registry = codec.Registry(parent=codec.GLOBAL)
    problems: list[str] = []
    for executor in (each for each in executors if not each.problems):
        written = [annotation for each in executor.handlers for annotation in each.annotations]
        for annotation in dict.fromkeys(written):
            try:
                registry.register_annotation(annotation)
            except ValueError as error:
                problems.append(f"types of executor {executor.id!r}: {error}")
    return registry, problems
