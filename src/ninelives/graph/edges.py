"""The kinds of edges between executors, and where a message goes along them.

Nothing here runs handlers or keeps messages: groups are facts, routing is a function of the group
and the message. Conditions and selections see only messages that one of their targets handles.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

Condition = Callable[..., bool | Awaitable[bool]]
Selection = Callable[..., Sequence[str] | Awaitable[Sequence[str]]]
Able = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Direct:
    """One edge; with a condition, only messages for which it holds pass."""

    source: str
    target: str
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class FanOut:
    """Each message goes to all targets that handle its type."""

    source: str
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FanIn:
    """Messages wait until each source has sent one; then all of them arrive as one list."""

    sources: tuple[str, ...]
    target: str

    @property
    def id(self) -> str:
        """Names the buffer in the journal; quoted, so that no two groups share one."""
        return f"{', '.join(map(repr, self.sources))} -> {self.target!r}"


@dataclass(frozen=True, slots=True)
class Branch:
    """A case of a switch, or its default (without a condition)."""

    target: str
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Switch:
    """Each message goes to one target: that of the first branch that holds."""

    source: str
    branches: tuple[Branch, ...]


@dataclass(frozen=True, slots=True)
class MultiSelection:
    """Each message goes to those targets that a function selects."""

    source: str
    targets: tuple[str, ...]
    select: Selection


Group = Direct | FanOut | FanIn | Switch | MultiSelection


@dataclass(frozen=True, slots=True)
class Offer:
    """What becomes of one message at one group.

    `taken`: targets that get it. `unfit`: open to it, but without a handler. `astray`: chosen for
    it by the user's own function, but without a handler. `declined`: a target that handles it was
    closed to it, which is a legitimate end.
    """

    taken: tuple[str, ...] = ()
    unfit: tuple[str, ...] = ()
    astray: tuple[str, ...] = ()
    declined: bool = False


class SelectionInvalid(ValueError):  # noqa: N818 - named by the condition
    """A selection function named an executor that is not one of its targets."""


def sources_of(group: Group) -> tuple[str, ...]:
    return group.sources if isinstance(group, FanIn) else (group.source,)


def targets_of(group: Group) -> tuple[str, ...]:
    """The targets as written; a switch's each once, since branches may share one."""
    match group:
        case Direct() | FanIn():
            return (group.target,)
        case FanOut() | MultiSelection():
            return group.targets
        case Switch():
            return tuple(dict.fromkeys(branch.target for branch in group.branches))
        case _:
            assert_never(group)


def pairs_of(group: Group) -> tuple[tuple[str, str], ...]:
    """The edges of a group as (source, target)."""
    return tuple((source, target) for source in sources_of(group) for target in targets_of(group))


async def offer(group: Group, message: object, able: Able) -> Offer:
    """Decide where a message goes in one group; `able` says whether a target handles it.

    What a condition raises is raised, unless it judged a message that its target cannot handle
    anyway (then it counts as open).
    """
    match group:
        case Direct():
            return await _direct(group, message, able)
        case FanOut() | FanIn():
            return _split(targets_of(group), able)
        case Switch():
            if not any(map(able, targets_of(group))):
                return Offer(unfit=targets_of(group))
            return _chosen((await _first_branch(group, message),), able)
        case MultiSelection():
            if not any(map(able, group.targets)):
                return Offer(unfit=group.targets)
            return _chosen(await _selected(group, message), able)
        case _:
            assert_never(group)


def only(found: Offer, target: str) -> Offer:
    """An offer as it concerns one target; a target that was not chosen was closed."""
    taken, unfit, astray = (
        (target,) if target in part else () for part in (found.taken, found.unfit, found.astray)
    )
    return Offer(taken, unfit, astray, declined=not (taken or unfit or astray))


def ready(group: FanIn, sources: Sequence[str]) -> tuple[int, ...] | None:
    """Which buffered messages are due, given their sources in order of arrival.

    All of them, ordered by the sources as declared and then by arrival, once there is one from
    each source; else None.
    """
    if not set(group.sources) <= set(sources):
        return None
    places = {source: place for place, source in enumerate(group.sources)}
    return tuple(sorted(range(len(sources)), key=lambda index: places[sources[index]]))


async def _direct(group: Direct, message: object, able: Able) -> Offer:
    if able(group.target):
        if await _holds(group.condition, message):
            return Offer(taken=(group.target,))
        return Offer(declined=True)
    try:
        is_open = await _holds(group.condition, message)
    except Exception:  # noqa: BLE001 - the condition is written for another type of message
        is_open = True
    return Offer(unfit=(group.target,) if is_open else ())


async def _first_branch(group: Switch, message: object) -> str:
    for branch in group.branches:
        if await _holds(branch.condition, message):
            return branch.target
    raise AssertionError(group)  # validation requires a default


async def _selected(group: MultiSelection, message: object) -> tuple[str, ...]:
    found = group.select(message, list(group.targets))
    chosen = await found if inspect.isawaitable(found) else found
    if isinstance(chosen, str) or not set(chosen) <= set(group.targets):
        text = (
            f"the selection function of executor {group.source!r} chose {chosen!r}; "
            f"it returns a list of ids out of {', '.join(map(repr, group.targets))}"
        )
        raise SelectionInvalid(text)
    return tuple(dict.fromkeys(chosen))


async def _holds(condition: Condition | None, message: object) -> bool:
    if condition is None:
        return True
    found = condition(message)
    return bool(await found if inspect.isawaitable(found) else found)


def _split(targets: Sequence[str], able: Able) -> Offer:
    taken = tuple(target for target in targets if able(target))
    return Offer(taken=taken, unfit=tuple(each for each in targets if each not in taken))


def _chosen(targets: Sequence[str], able: Able) -> Offer:
    found = _split(targets, able)
    return Offer(taken=found.taken, astray=found.unfit, declined=not targets)
