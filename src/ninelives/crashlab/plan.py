"""What is killed when: each scenario's kills, drawn from a seed where they are not enumerated.

A kill is either at an arrival at a boundary (the process does it to itself: exact, repeatable)
or at a moment (from outside, after a fraction of the clean run's time). The draw of a moment is
repeatable; what the process was doing just then is not.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ninelives import errors, faults

KNOWN = tuple(boundary.value for boundary in faults.Boundary)
# What only a process that takes up a run reaches; the clean run has not counted them.
OF_RECOVERY = {faults.Boundary.CLAIMED.value: 1, faults.Boundary.RECONCILE_ANSWERED.value: 1}
MOMENT = re.compile(r"@(0(\.\d+)?|1(\.0+)?)")


@dataclass(frozen=True, slots=True)
class Point:
    """The `arrival`-th time that a process reaches a boundary (1 = the first)."""

    boundary: str
    arrival: int = 1

    @property
    def name(self) -> str:
        return f"{self.boundary}:{self.arrival}"


@dataclass(frozen=True, slots=True)
class Moment:
    """A fraction of the clean run's time, counted from the process's own start of work."""

    fraction: float

    @property
    def name(self) -> str:
        return f"@{self.fraction:.4f}"


Kill: TypeAlias = Point | Moment


@dataclass(frozen=True, slots=True)
class Plan:
    """A scenario: the first kill is for the first process, the next for who takes up the run."""

    kills: tuple[Kill, ...] = ()

    @property
    def name(self) -> str:
        return ",".join(kill.name for kill in self.kills) or "clean"

    @property
    def slug(self) -> str:
        """The name as a part of ids and folders."""
        return re.sub(r"[^a-z0-9_.-]", "-", self.name)

    @property
    def place(self) -> str:
        """Where its first process dies, for tables: a boundary, or any moment."""
        first = self.kills[0]
        return first.boundary if isinstance(first, Point) else "a random moment"


CLEAN = Plan()


def parse(text: str) -> Plan:
    """Read a plan as its `name` spells it.

    Raises:
        KillsInvalid: it names no boundary, or no moment.
        BoundaryUnknown: there is no such boundary.
    """
    return Plan(tuple(_kill(text, part.strip()) for part in text.split(",")))


def _kill(text: str, part: str) -> Kill:
    if part.startswith("@"):
        if not MOMENT.fullmatch(part):
            raise errors.KillsInvalid(text, f"{part!r} is no fraction from 0 to 1")
        return Moment(float(part[1:]))
    boundary, _, arrival = part.partition(":")
    if boundary not in KNOWN:
        raise errors.BoundaryUnknown(boundary, KNOWN)
    if not (arrival or "1").isdecimal() or int(arrival or 1) < 1:
        raise errors.KillsInvalid(text, f"{part!r} names no arrival")
    return Point(boundary, int(arrival or 1))


def at_boundaries(counts: Mapping[str, int]) -> list[Point]:
    """All arrivals, in an order that gives every boundary its turn before any gets a second.

    Within a boundary the first comes first, then the last, then those between.
    """
    by_boundary = [
        [Point(boundary, arrival) for arrival in _fairly(count)]
        for boundary, count in sorted(counts.items())
    ]
    ordered: list[Point] = []
    while any(by_boundary):
        ordered += [points.pop(0) for points in by_boundary if points]
    return ordered


def _fairly(count: int) -> Iterator[int]:
    """1 to count: both ends first, then the middles of what is left."""
    yield 1
    if count > 1:
        yield count
    spans = [(1, count)]
    while spans:
        low, high = spans.pop(0)
        if high - low < 2:
            continue
        middle = (low + high) // 2
        yield middle
        spans += [(low, middle), (middle, high)]


def draw(
    counts: Mapping[str, int], *, sample: int | None, moments: int, kills: int, seed: int
) -> list[Plan]:
    """The scenarios of a campaign: `sample` at boundaries (None: all), `moments` at random.

    Each has `kills` kills; those after the first are drawn. A recovery may end before its kill.
    """
    points = at_boundaries(counts)[:sample]
    reached = sorted({**counts, **OF_RECOVERY}.items())
    boundaries = [
        Plan((first, *(_again(reached, seed, first.name, turn) for turn in range(1, kills))))
        for first in points
    ]
    anywhen = [
        Plan(tuple(Moment(_fraction(seed, number, turn)) for turn in range(kills)))
        for number in range(moments)
    ]
    return boundaries + anywhen


def _again(reached: list[tuple[str, int]], seed: int, *place: object) -> Point:
    boundary, count = reached[int(_fraction(seed, *place) * len(reached))]
    return Point(boundary, 1 + int(_fraction(seed, "arrival", *place) * count))


def _fraction(*place: object) -> float:
    """A number from 0 up to 1 that a place in a campaign always gets, on any machine."""
    digest = hashlib.blake2b(repr(place).encode(), digest_size=4).digest()
    return int.from_bytes(digest) % 10_000 / 10_000
