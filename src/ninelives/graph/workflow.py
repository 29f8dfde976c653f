"""A workflow: a graph of executors with a stable name, built once and checked."""

from __future__ import annotations

import functools
import hashlib
import inspect
import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ninelives import codec, errors
from ninelives.graph import description, edges
from ninelives.graph.edges import Edge, FanIn, Route
from ninelives.graph.executor import Executor
from ninelives.graph.functions import FunctionExecutor
from ninelives.graph.settings import RunSettings

Selected = frozenset[str] | None


@dataclass(frozen=True, slots=True)
class OutputSelection:
    """Which executors' yields are outputs, which are intermediate; None = all are outputs."""

    outputs: Selected = None
    intermediate: frozenset[str] = frozenset()

    def kind(self, executor: str) -> Literal["output", "intermediate"] | None:
        if self.outputs is None or executor in self.outputs:
            return "output"
        return "intermediate" if executor in self.intermediate else None


class Workflow:
    """A definition; runs of it are made by a Runtime. Build it with WorkflowBuilder."""

    def __init__(
        self,
        *,
        name: str,
        start_id: str,
        executors: Mapping[str, Executor],
        edges: Sequence[Edge],
        selection: OutputSelection,
        settings: RunSettings | Callable[[], RunSettings],
        max_iterations: int | None,
        description: str,
    ) -> None:
        self.name = name
        self.start_id = start_id
        self.executors = executors
        self.edges = tuple(edges)
        self.selection = selection
        self.max_iterations = max_iterations
        self.text = description
        self.registry = _registry(executors)
        self._settings = settings

    @property
    def input_types(self) -> tuple[object, ...]:
        """What the start executor takes."""
        return self.executors[self.start_id].input_types

    def settings_for_admission(self) -> RunSettings:
        """The settings that a run admitted now is fixed to."""
        return self._settings() if callable(self._settings) else self._settings

    def output_kind(self, executor: str) -> Literal["output", "intermediate"] | None:
        """What a yield of this executor is; None = hidden from callers."""
        return self.selection.kind(executor)

    def route(self, source: str, message: object, target_id: str | None = None) -> list[Route]:
        """Where a message goes; empty if all conditions are against it.

        Raises:
            MessageUnhandled: an open edge leads only to executors that cannot handle it, or
                `target_id` is not at the end of an edge from `source`.
        """
        routes: list[Route] = []
        refused: list[str] = []
        leaving = [each for each in self.edges if source in edges.sources(each)]
        for edge in leaving:
            if target_id is not None and target_id not in edges.targets(edge):
                continue
            open_now = [
                route
                for route in edges.open_routes(edge, message)
                if target_id in {None, route.target}
            ]
            able = [route for route in open_now if self._handles(route, message)]
            routes += able
            refused += [route.target for route in open_now if route not in able]
        nowhere = target_id is not None and not any(
            target_id in edges.targets(each) for each in leaving
        )
        if nowhere or (refused and not routes):
            wanted = (target_id,) if nowhere and target_id else tuple(refused)
            raise errors.MessageUnhandled(source, wanted, type(message).__name__)
        return routes

    def _handles(self, route: Route, message: object) -> bool:
        value = [message] if route.edge else message
        return self.executors[route.target].find_handler(value) is not None

    def collect(self, edge_id: str, sources: Sequence[str]) -> tuple[int, ...] | None:
        """Which messages of a fan-in buffer are delivered now, as one list; None = not yet."""
        for edge in self.edges:
            if isinstance(edge, FanIn) and edge.id == edge_id:
                return edges.collect(edge, sources)
        raise AssertionError(edge_id)

    def description(self) -> dict[str, object]:
        """The graph as plain data: what must not change while runs are under way."""
        return description.describe(self)

    @functools.cache  # noqa: B019 - a workflow lives as long as its process
    def code_version(self) -> str:
        """A fingerprint of the source files that the executors are written in."""
        digest = hashlib.blake2b(digest_size=8)
        for file in sorted(_sources(self.executors)):
            digest.update(pathlib.Path(file).read_bytes())
        return digest.hexdigest()


def _registry(executors: Mapping[str, Executor]) -> codec.Registry:
    registry = codec.Registry(parent=codec.GLOBAL)
    for executor in executors.values():
        for handler in executor.handlers:
            for annotation in (handler.takes, *handler.sends, *handler.yields):
                registry.register_annotation(annotation)
    return registry


def _sources(executors: Mapping[str, Executor]) -> set[str]:
    files: set[str] = set()
    for executor in executors.values():
        code = executor.function if isinstance(executor, FunctionExecutor) else type(executor)
        try:
            file = inspect.getsourcefile(inspect.unwrap(code))
        except TypeError:
            continue  # defined at a prompt: there is no file to look at
        if file is not None and pathlib.Path(file).is_file():
            files.add(file)
    return files
