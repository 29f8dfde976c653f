"""The oracle accepts what a killed run really left, and nothing that was tampered with."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from ninelives.crashlab import oracle, plan, scenario
from ninelives.crashlab.scenario import Outcome, Pace, Work
from ninelives.log import projection
from support.labflows import GOOD, write
from support.shell import Shell


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("flow")
    write(Shell(folder), GOOD)
    return folder


def played(folder: pathlib.Path, name: str) -> Outcome:
    which = plan.CLEAN if name == "clean" else plan.parse(name)
    work = Work("flow.py:flow", "2", folder, name.replace(":", "-"))
    store = folder / which.slug
    store.mkdir()
    return scenario.play(work, which, store, pace=Pace(), timeout_seconds=50)


@pytest.fixture(scope="module")
def clean(folder: pathlib.Path) -> Outcome:
    return played(folder, "clean")


@pytest.fixture(scope="module")
def killed(folder: pathlib.Path) -> Outcome:
    """Killed with a hold open, then again: an answer was paid for and never recorded."""
    return played(folder, "model_answered:2,effect_done:1")


def test_what_really_happened_is_accepted(clean: Outcome, killed: Outcome) -> None:
    assert oracle.judge_clean(clean) == []
    assert oracle.judge(clean, killed) == []
    assert [process.killed for process in killed.processes] == [True, True, False]
    assert len(killed.watched) == len(killed.reading.late) > 10
    assert len(killed.billed) == 3
    assert killed.reading.spending.held == 1000


def longer(outcome: Outcome) -> Outcome:
    return replace(outcome, watched=outcome.watched[:-1])


def shuffled(outcome: Outcome) -> Outcome:
    return replace(outcome, watched=outcome.watched[::-1])


def returned_to_less(outcome: Outcome) -> Outcome:
    return replace(outcome, reading=replace(outcome.reading, returned=outcome.reading.late[1:]))


def other_outputs(outcome: Outcome) -> Outcome:
    return replace(outcome, reading=replace(outcome.reading, outputs=["else"]))


def billed_more(outcome: Outcome) -> Outcome:
    return replace(outcome, billed={seq: tokens + 1 for seq, tokens in outcome.billed.items()})


def billed_unheld(outcome: Outcome) -> Outcome:
    return replace(outcome, billed=outcome.billed | {1: 30})


def booked_less(outcome: Outcome) -> Outcome:
    spending = replace(outcome.reading.spending, held=0)
    return replace(outcome, reading=replace(outcome.reading, spending=spending))


def sent_twice(outcome: Outcome) -> Outcome:
    return replace(outcome, sent=outcome.sent * 2)


def asked_more(outcome: Outcome) -> Outcome:
    return replace(outcome, requests=outcome.requests + 1)


def left_behind(outcome: Outcome) -> Outcome:
    first, *rest = outcome.processes
    return replace(outcome, processes=[replace(first, left=("sleep 99",)), *rest])


def lost_an_event(outcome: Outcome) -> Outcome:
    late = outcome.reading.late[:5] + outcome.reading.late[6:]
    tampered = replace(outcome, reading=replace(outcome.reading, late=late, returned=late))
    return replace(tampered, watched=late, report=projection.fold(late))


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (longer, "watched all along saw other events"),
        (shuffled, "watched all along saw other events"),
        (returned_to_less, "came back with its cursor"),
        (other_outputs, "a client gets other outputs"),
        (billed_more, "the provider has counted 31"),
        (billed_unheld, "bills 30 tokens of call 1, the budget none"),
        (booked_less, "0 tokens are held, its journal says 1000"),
        (sent_twice, "went out 2 times"),
        (asked_more, "model requests, the provider got"),
        (left_behind, "left behind: sleep 99"),
        (lost_an_event, "a hole or a repetition"),
    ],
)
def test_what_was_tampered_with_is_not(
    clean: Outcome, killed: Outcome, tamper: Callable[[Outcome], Outcome], words: str
) -> None:
    assert words in "\n".join(oracle.judge(clean, tamper(killed)))
