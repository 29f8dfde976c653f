"""A campaign: the clean run, then a scenario for each plan, side by side."""

from __future__ import annotations

import pathlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from ninelives import clock
from ninelives.crashlab import oracle, plan
from ninelives.crashlab.plan import Plan
from ninelives.crashlab.scenario import Outcome, Pace, Work, play

Tell = Callable[[int, int, "Verdict"], None]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which scenarios to play: those of `plans` only, or what is drawn.

    `sample` scenarios at boundaries (None: all), `moments` at random moments; each with `kills`
    kills. All draws are made from `seed`.
    """

    plans: tuple[Plan, ...] = ()
    sample: int | None = None
    moments: int = 0
    kills: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """A scenario, how often its processes really died, and what went wrong."""

    plan: Plan
    problems: tuple[str, ...]
    command: str
    kills: int
    outcome: Outcome = field(repr=False)


@dataclass(slots=True)
class Result:
    """A whole campaign. `skipped` scenarios were left out by the sample or the time limit."""

    clean: tuple[str, ...]
    clean_outcome: Outcome = field(repr=False)
    seed: int = 0
    verdicts: list[Verdict] = field(default_factory=list)
    skipped: int = 0
    seconds: float = 0.0

    @property
    def kills(self) -> int:
        return sum(verdict.kills for verdict in self.verdicts)

    @property
    def failed(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.problems]

    @property
    def survived(self) -> bool:
        return not self.clean and not self.failed


def run(
    work: Work,
    choice: Choice,
    *,
    jobs: int = 2,
    time_limit_seconds: float | None = None,
    timeout_seconds: float = 120.0,
    tell: Tell | None = None,
) -> Result:
    """Carry out a campaign. Each scenario has a store of its own in a temporary folder."""
    began = clock.monotonic_seconds()
    with tempfile.TemporaryDirectory(prefix="ninelives-crashtest-") as base:
        lab = _Lab(work, pathlib.Path(base), timeout_seconds)
        clean = lab.play(plan.CLEAN, Pace())
        result = Result(tuple(oracle.judge_clean(clean)), clean, choice.seed)
        if clean.code == 0:
            plans = _chosen(choice, clean)
            result.skipped = _left_out(choice, clean)
            limit = None if time_limit_seconds is None else began + time_limit_seconds
            lab.play_all(plans, result, jobs=jobs, limit=limit, tell=tell)
    result.verdicts.sort(key=lambda verdict: verdict.plan.name)
    result.seconds = clock.monotonic_seconds() - began
    return result


def _chosen(choice: Choice, clean: Outcome) -> list[Plan]:
    drawn = choice.plans or plan.draw(
        clean.counts,
        sample=choice.sample,
        moments=choice.moments,
        kills=choice.kills,
        seed=choice.seed,
    )
    return list(dict.fromkeys(drawn))


def _left_out(choice: Choice, clean: Outcome) -> int:
    every = sum(clean.counts.values())
    return 0 if choice.plans or choice.sample is None else max(0, every - choice.sample)


class _Lab:
    """Plays scenarios in folders of their own, and removes what has been judged."""

    def __init__(self, work: Work, base: pathlib.Path, timeout_seconds: float) -> None:
        self._work, self._base, self._timeout_seconds = work, base, timeout_seconds

    def play(self, which: Plan, pace: Pace) -> Outcome:
        folder = self._base / which.slug
        folder.mkdir()
        try:
            return play(self._work, which, folder, pace=pace, timeout_seconds=self._timeout_seconds)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def play_all(
        self,
        plans: Sequence[Plan],
        result: Result,
        *,
        jobs: int,
        limit: float | None,
        tell: Tell | None,
    ) -> None:
        clean = result.clean_outcome

        def one(which: Plan) -> Verdict | None:
            if limit is not None and clock.monotonic_seconds() > limit:
                return None
            outcome = self.play(which, clean.pace)
            problems = tuple(oracle.judge(clean, outcome))
            return Verdict(which, problems, outcome.command, outcome.kills, outcome)

        with ThreadPoolExecutor(jobs) as pool:
            for done in as_completed([pool.submit(one, which) for which in plans]):
                verdict = done.result()
                if verdict is None:
                    result.skipped += 1
                    continue
                result.verdicts.append(verdict)
                if tell is not None:
                    tell(len(result.verdicts), len(plans), verdict)
