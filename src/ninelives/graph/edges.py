"""Edges: how a message that an executor sent finds its targets. Pure; nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

Condition: TypeAlias = Callable[[Any], bool]
Selection: TypeAlias = Callable[[Any, list[str]], list[str]]


@dataclass(frozen=True, slots=True)
class Direct:
    """One source, one target; open if there is no condition or it holds."""

    source: str
    target: str
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class FanOut:
    """One source, every target; `select` chooses among them (multi-selection)."""

    source: str
    targets: tuple[str, ...]
    select: Selection | None = None


@dataclass(frozen=True, slots=True)
class FanIn:
    """Several sources, one target, which gets a list once each source has sent."""

    sources: tuple[str, ...]
    target: str

    @property
    def id(self) -> str:
        """The name of its buffer in journals."""
        return f"{'+'.join(self.sources)}->{self.target}"


@dataclass(frozen=True, slots=True)
class Switch:
    """One source, the target of the first case that holds, else the default."""

    source: str
    cases: tuple[tuple[Condition, str], ...]
    default: str


Edge: TypeAlias = Direct | FanOut | FanIn | Switch


@dataclass(frozen=True, slots=True)
class Route:
    """Where a message goes: a target, and the fan-in buffer it lies in (or empty)."""

    target: str
    edge: str = ""


def sources(edge: Edge) -> tuple[str, ...]:
    return edge.sources if isinstance(edge, FanIn) else (edge.source,)


def targets(edge: Edge) -> tuple[str, ...]:
    """All executors that an edge can reach."""
    match edge:
        case Direct() | FanIn():
            return (edge.target,)
        case FanOut():
            return edge.targets
        case Switch():
            return (*dict.fromkeys(target for _, target in edge.cases), edge.default)
        case _:
            assert_never(edge)


def open_routes(edge: Edge, message: object) -> list[Route]:
    """Where an edge sends this message by its conditions, types not considered.

    Raises:
        ValueError: a selection names an executor that is not among its targets.
    """
    match edge:
        case Direct(condition=condition):
            return [Route(edge.target)] if condition is None or condition(message) else []
        case FanOut(select=None):
            return [Route(target) for target in edge.targets]
        case FanOut():
            return [Route(target) for target in _selected(edge, message)]
        case FanIn():
            return [Route(edge.target, edge.id)]
        case Switch():
            for condition, target in edge.cases:
                if condition(message):
                    return [Route(target)]
            return [Route(edge.default)]
        case _:
            assert_never(edge)


def _selected(edge: FanOut, message: object) -> list[str]:
    assert edge.select is not None
    chosen = list(edge.select(message, list(edge.targets)))
    unknown = [target for target in chosen if target not in edge.targets]
    if unknown:
        message_text = (
            f"the selection of edge {edge.source!r} chose {unknown}, which are not among its "
            f"targets {list(edge.targets)}"
        )
        raise ValueError(message_text)
    return list(dict.fromkeys(chosen))


def collect(edge: FanIn, arrived: Sequence[str]) -> tuple[int, ...] | None:
    """Which buffered messages are delivered now: all, once each source has one.

    The list is in the order in which the sources were declared, then of arrival.
    """
    if not set(edge.sources) <= set(arrived):
        return None
    order = {source: index for index, source in enumerate(edge.sources)}
    return tuple(sorted(range(len(arrived)), key=lambda index: (order[arrived[index]], index)))
