"""Kills are drawn from a seed, named in one word, and read back from it."""

from __future__ import annotations

import pytest

from ninelives import errors
from ninelives.crashlab import plan
from ninelives.crashlab.plan import Moment, Plan, Point

COUNTS = {"admitted": 1, "commit_before": 9, "effect_done": 3}


def test_a_name_is_read_back_as_the_plan_that_it_names() -> None:
    for each in plan.draw(COUNTS, sample=None, moments=20, kills=3, seed=7):
        assert plan.parse(each.name) == each


def test_the_same_seed_draws_the_same_and_another_draws_others() -> None:
    def drawn(seed: int) -> list[str]:
        plans = plan.draw(COUNTS, sample=4, moments=9, kills=2, seed=seed)
        return [each.name for each in plans]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert len(set(drawn(1))) == 13


def test_every_scenario_has_as_many_kills_as_were_asked_for() -> None:
    plans = plan.draw(COUNTS, sample=None, moments=5, kills=3, seed=0)
    assert {len(each.kills) for each in plans} == {3}
    assert sum(isinstance(each.kills[0], Moment) for each in plans) == 5
    assert len(plans) == sum(COUNTS.values()) + 5


def test_moments_spread_over_the_whole_run() -> None:
    plans = plan.draw({}, sample=None, moments=200, kills=1, seed=3)
    fractions = [kill.fraction for each in plans for kill in each.kills if isinstance(kill, Moment)]
    assert min(fractions) < 0.05
    assert max(fractions) > 0.95
    assert all(0 <= each < 1 for each in fractions)


def test_an_arrival_may_be_left_out() -> None:
    assert plan.parse("claimed, @0.5") == Plan((Point("claimed"), Moment(0.5)))


@pytest.mark.parametrize("text", ["@2", "@", "@half", "claimed:0", "claimed:x"])
def test_what_is_no_kill_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(errors.KillsInvalid, match="BOUNDARY:N"):
        plan.parse(text)


def test_an_unknown_boundary_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(errors.BoundaryUnknown, match="effect_done"):
        plan.parse("efect_done:1")


def test_a_sample_gives_every_boundary_its_turn_before_any_gets_a_second() -> None:
    points = plan.at_boundaries({"a": 5, "b": 1, "c": 2})
    assert [point.name for point in points[:3]] == ["a:1", "b:1", "c:1"]
    assert [point.name for point in points[3:5]] == ["a:5", "c:2"]
    assert sorted(point.name for point in points) == sorted(
        ["a:1", "a:2", "a:3", "a:4", "a:5", "b:1", "c:1", "c:2"]
    )
    drawn = plan.draw({"a": 5, "b": 1}, sample=2, moments=0, kills=1, seed=0)
    assert [each.name for each in drawn] == ["a:1", "b:1"]
