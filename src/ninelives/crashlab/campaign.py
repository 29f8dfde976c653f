"""A campaign: the clean run, then a kill at every arrival at every boundary, or a fair sample."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from ninelives import clock
from ninelives.crashlab import oracle
from ninelives.crashlab.scenario import Outcome, Point, Work, play

Tell = Callable[[int, int, "Verdict"], None]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A point, and what went wrong there."""

    point: Point
    problems: tuple[str, ...]
    command: str


@dataclass(slots=True)
class Result:
    """A whole campaign. `skipped` points were left out by the sample or the time limit."""

    clean: tuple[str, ...]
    verdicts: list[Verdict] = field(default_factory=list)
    kills: int = 0
    skipped: int = 0

    @property
    def failed(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.problems]

    @property
    def survived(self) -> bool:
        return not self.clean and not self.failed


def points_of(counts: dict[str, int], *, sample: int | None) -> list[Point]:
    """All arrivals, or a sample that gives every boundary its turn before any gets a second.

    Within a boundary the sample takes the first, the last, then those between.
    """
    by_boundary = [
        [Point(boundary, arrival) for arrival in _fairly(count)]
        for boundary, count in sorted(counts.items())
    ]
    ordered: list[Point] = []
    while any(by_boundary):
        ordered += [points.pop(0) for points in by_boundary if points]
    return ordered if sample is None else ordered[:sample]


def _fairly(count: int) -> list[int]:
    """1 to count: both ends first, then the middles of what is left."""
    order, spans = [1, count] if count > 1 else [1], [(1, count)]
    while spans:
        low, high = spans.pop(0)
        if high - low < 2:
            continue
        middle = (low + high) // 2
        order.append(middle)
        spans += [(low, middle), (middle, high)]
    return order


def run(
    work: Work,
    *,
    sample: int | None = None,
    jobs: int = 2,
    time_limit_seconds: float | None = None,
    timeout_seconds: float = 120.0,
    tell: Tell | None = None,
) -> Result:
    """Carry out a campaign. Each scenario has a store of its own in a temporary folder."""
    began = clock.monotonic_seconds()
    with tempfile.TemporaryDirectory(prefix="ninelives-crashtest-") as base:
        folder = pathlib.Path(base)
        clean = _play(work, Point(), folder, timeout_seconds)
        result = Result(tuple(oracle.judge_clean(clean)))
        if clean.codes != [0]:
            return result
        every = points_of(clean.counts, sample=None)
        points = points_of(clean.counts, sample=sample)
        result.skipped = len(every) - len(points)

        def one(point: Point) -> Verdict | None:
            spent = clock.monotonic_seconds() - began
            if time_limit_seconds is not None and spent > time_limit_seconds:
                return None
            outcome = _play(work, point, folder, timeout_seconds)
            problems = tuple(oracle.judge(clean, outcome))
            return Verdict(point, problems, outcome.command)

        with ThreadPoolExecutor(jobs) as pool:
            for done in as_completed([pool.submit(one, point) for point in points]):
                verdict = done.result()
                if verdict is None:
                    result.skipped += 1
                    continue
                result.kills += 1
                result.verdicts.append(verdict)
                if tell is not None:
                    tell(len(result.verdicts), len(points), verdict)
    result.verdicts.sort(key=lambda each: (each.point.boundary, each.point.arrival))
    return result


def _play(work: Work, point: Point, base: pathlib.Path, timeout_seconds: float) -> Outcome:
    folder = base / point.slug
    folder.mkdir()
    return play(work, point, folder, timeout_seconds=timeout_seconds)
