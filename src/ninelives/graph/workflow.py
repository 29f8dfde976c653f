"""A built workflow: executors, edges, and the pure decisions about a message's way.

Immutable, without a trace of any run: one instance serves all runs of a process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, cast

from ninelives import codec, errors
from ninelives.durable.prices import Price
from ninelives.graph import description, edges
from ninelives.graph.edges import FanIn, Group, Offer
from ninelives.graph.executor import Executor
from ninelives.graph.settings import RunSettings

OutputKind = Literal["output", "intermediate"]
Settings = RunSettings | Callable[[], RunSettings]


@dataclass(frozen=True, slots=True)
class Route:
    """Where one message goes; `edge` is the fan-in group in whose buffer it waits, or empty."""

    target: str
    edge: str = ""


@dataclass(frozen=True, slots=True)
class Definition:
    """All that a workflow consists of. `outputs` None: all yields are outputs."""

    name: str
    start_id: str
    executors: Mapping[str, Executor]
    edges: tuple[Group, ...]
    registry: codec.Registry
    settings: Settings
    text: str = ""
    max_iterations: int | None = None
    outputs: frozenset[str] | None = None
    intermediates: frozenset[str] = frozenset()
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])


class Workflow:
    """Made by WorkflowBuilder.build(), run by Runtime.start()."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self.name = definition.name
        self.text = definition.text
        self.start_id = definition.start_id
        self.executors: Mapping[str, Executor] = MappingProxyType(dict(definition.executors))
        self.edges = definition.edges
        self.max_iterations = definition.max_iterations
        self.registry = definition.registry
        self.prices = definition.prices
        self._fan_ins = {each.id: each for each in self.edges if isinstance(each, FanIn)}
        # Read now: the files are most likely still those that were imported.
        self._code_version = description.code_version(self.executors.values())

    @property
    def input_types(self) -> tuple[object, ...]:
        """The annotations of the start executor's messages."""
        return self.executors[self.start_id].input_types

    def settings_for_admission(self) -> RunSettings:
        """The settings of a run that is admitted now; the only place that calls a callable.

        Raises:
            SettingsInvalid: the callable did not return RunSettings.
        """
        found = cast("object", self._definition.settings)
        if not isinstance(found, RunSettings):
            found = found() if callable(found) else found
        if not isinstance(found, RunSettings):
            why = f"settings= gave a {type(found).__name__}, not RunSettings"
            raise errors.SettingsInvalid(f"workflow {self.name!r}", why)
        return found

    def description(self) -> dict[str, object]:
        """The graph in JSON's terms, the same for the same graph in every process."""
        chosen = self._definition
        return description.describe(
            chosen.start_id, self.executors, chosen.edges, chosen.outputs, chosen.intermediates
        )

    def code_version(self) -> str:
        """A fingerprint of the source files of the executors' classes and functions."""
        return self._code_version

    async def route(
        self, source_id: str, message: object, target_id: str | None = None
    ) -> list[Route]:
        """Where a message goes, in the order of the edges; nowhere if conditions say so.

        Raises:
            MessageUnhandled: no executor at the end of an open edge handles it, or `target_id`
                is not at the end of an edge from the source. What a condition raises passes.
        """
        groups = [
            group
            for group in self.edges
            if source_id in edges.sources_of(group)
            and (target_id is None or target_id in edges.targets_of(group))
        ]
        offers = [(group, await self._offer(group, message, target_id)) for group in groups]
        routes = [
            Route(target, group.id if isinstance(group, FanIn) else "")
            for group, offer in offers
            for target in offer.taken
        ]
        if not routes:
            _refuse_silence(source_id, message, target_id, [offer for _, offer in offers])
        return routes

    def collect(self, edge_id: str, sources: Sequence[str]) -> tuple[int, ...] | None:
        """Which messages in a fan-in's buffer are due, given their sources in arrival order."""
        return edges.ready(self._fan_ins[edge_id], sources)

    def output_kind(self, executor_id: str) -> OutputKind | None:
        """What an executor's yields are; None: they are hidden."""
        outputs = self._definition.outputs
        if outputs is None or executor_id in outputs:
            return "output"
        return "intermediate" if executor_id in self._definition.intermediates else None

    async def _offer(self, group: Group, message: object, target_id: str | None) -> Offer:
        received = [message] if isinstance(group, FanIn) else message

        def able(target: str) -> bool:
            return self.executors[target].find_handler(received) is not None

        found = await edges.offer(group, message, able)
        return found if target_id is None else edges.only(found, target_id)


def _refuse_silence(
    source_id: str, message: object, target_id: str | None, offers: list[Offer]
) -> None:
    """A message may end only where a condition said so; anything else is a mistake."""
    unfit = [target for offer in offers for target in offer.unfit]
    astray = [target for offer in offers for target in offer.astray]
    declined = any(offer.declined for offer in offers)
    if not offers or astray or (unfit and not declined):
        named = [target_id] if target_id is not None else [*astray, *unfit]
        kind = type(message).__name__
        raise errors.MessageUnhandled(source_id, tuple(dict.fromkeys(named)), kind)
