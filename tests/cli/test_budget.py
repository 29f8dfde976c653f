"""Budgets from the command line: look, limit, halt, and settle what nobody has reported."""

from __future__ import annotations

import pathlib

import pytest

from support.shell import Shell

FILE = """
import os
from ninelives import Budget, Executor, Price, RunSettings
from ninelives import WorkflowBuilder, WorkflowContext, handler
from ninelives.testing.scripted import ScriptedModel

class Clerk(Executor):
    @handler
    async def write(self, letters: int, ctx: WorkflowContext[None, str]) -> None:
        for number in range(letters):
            model = ScriptedModel("writer", missing_usage=os.environ.get("SILENT") == str(number))
            line = await ctx.model(model, f"Letter {number}.", reserve_tokens=100)
        await ctx.yield_output(line)

def settings():
    return RunSettings(tenant="acme", budget=Budget(tokens=int(os.environ.get("TOKENS", "1000"))))

office = WorkflowBuilder(
    name="office", start_executor=Clerk(id="clerk"), settings=settings,
    prices={"writer": Price(2, 10)},
).build()
"""
SPENT = 140  # microdollars: 20 tokens in and 10 out of one scripted call


@pytest.fixture
def office(shell: Shell) -> Shell:
    (shell.folder / "office.py").write_text(FILE)
    return shell


def write(office: Shell, run: str, letters: int, **extra: str):
    return office("run", "office.py:office", run, "--input", str(letters), **extra)


def shown(office: Shell, name: str) -> dict:
    return office("budget", "show", name, "--json").json()[0]


@pytest.fixture
def silent(office: Shell) -> Shell:
    """A run that has parked on its second call: the provider reported no usage for it."""
    assert write(office, "r", 3, SILENT="1").code == 3
    return office


def test_what_was_spent_is_listed_by_budget_in_tokens_and_money(office: Shell) -> None:
    assert write(office, "r", 2).code == 0
    lines = office("budget", "ls").lines
    assert [line.split()[:4] for line in lines[1:]] == [
        ["store", "60", "tokens", "$0.00028"],
        ["tenant:acme", "60", "tokens", "$0.00028"],
        ["workflow:office", "60", "tokens", "$0.00028"],
    ]
    for name in ("run:r", "tenant:acme", "workflow:office", "store"):
        total = shown(office, name)["spent"]["total"]
        assert total["calls"] == 2
        assert total["tokens"] == {"settled": 60, "held": 0, "unknown": 0}
        assert total["microdollars"]["settled"] == 2 * SPENT
    assert [
        each["name"] for each in office("budget", "ls", "--after", "store", "--json").json()
    ] == [
        "tenant:acme",
        "workflow:office",
    ]


def test_a_limit_set_by_command_parks_who_does_not_fit_and_names_what_raises_it(
    office: Shell,
) -> None:
    assert office("budget", "set", "tenant:acme", "--per", "day", "--tokens", "150").code == 0
    parked = write(office, "r", 4)
    assert parked.code == 3
    assert "BudgetExceeded: budget 'tenant:acme'" in parked.err
    assert "`ninelives budget set tenant:acme --per day --tokens N`" in parked.err
    assert (
        "  budget tenant:acme, today: 60 of 150 tokens, $0.00028; 2 calls"
        in office("show", "r").lines
    )
    raised = office(
        "budget", "set", "tenant:acme", "--per", "day", "--tokens", "1000", "--why", "paid"
    )
    assert raised.lines[1] == "  today: 60 of 1000 tokens, $0.00028; 2 calls"
    assert office("resume", "r").code == 0
    assert shown(office, "tenant:acme")["spent"]["total"]["calls"] == 4
    assert any(
        line.endswith("1000 tokens: paid") for line in office("budget", "show", "tenant:acme").lines
    )


def test_a_limit_that_is_not_named_stays_and_none_lifts_one(office: Shell) -> None:
    def limits(*words: str) -> list:
        assert office("budget", "set", "acme", *words).code == 0
        found = shown(office, "acme")["limits"]
        return [(each["per"], each["tokens_max"], each["microdollars_max"]) for each in found]

    assert limits("--tokens", "9", "--dollars", "0.1") == [("total", 9, 100_000)]
    assert limits("--tokens", "10") == [("total", 10, 100_000)]
    assert limits("--dollars", "1", "--per", "month") == [
        ("month", None, 1_000_000),
        ("total", 10, 100_000),
    ]
    assert limits("--tokens", "none") == [("month", None, 1_000_000), ("total", None, 100_000)]


def test_a_limit_in_money_counts_the_worst_case_of_a_reservation(office: Shell) -> None:
    assert office("budget", "set", "store", "--dollars", "0.0011").code == 0
    assert write(office, "first", 1).code == 0  # 100 tokens at $10 a million fit once
    parked = write(office, "second", 1)
    assert parked.code == 3
    assert "`ninelives budget set store --dollars X`" in parked.err
    assert shown(office, "store")["spent"]["total"]["microdollars"]["settled"] == SPENT


def test_a_halt_by_command_stops_every_run_until_it_is_cleared(office: Shell) -> None:
    assert write(office, "before", 1).code == 0
    halted = office("budget", "halt", "workflow:office", "--by", "me", "--why", "odd bill")
    assert "ninelives budget clear-halt workflow:office" in halted.lines[0]
    parked = write(office, "r", 1)
    assert parked.code == 3
    assert "by me: odd bill" in parked.err
    assert "`ninelives budget clear-halt workflow:office`" in parked.err
    assert office("budget", "clear-halt", "workflow:office", "--by", "me").code == 0
    assert "nothing has changed" in office("budget", "clear-halt", "workflow:office").lines[0]
    assert office("resume", "r").code == 0
    acts = office("budget", "show", "workflow:office").lines
    assert any("me cleared the halt" in line for line in acts)
    assert any("halted by me: odd bill" in line for line in acts)


def test_a_halt_of_a_name_that_no_call_has_used_holds_and_says_so(office: Shell) -> None:
    assert office("budget", "set", "store", "--tokens", "none").code == 0
    halted = office("budget", "halt", "tenant:acme")
    assert halted.code == 0
    assert halted.err == "no call has drawn on 'tenant:acme' yet: is that its name?\n"
    assert write(office, "r", 1).code == 3


def test_a_hold_that_nobody_reported_is_listed_with_what_to_say(silent: Shell) -> None:
    lines = silent("budget", "show", "run:r").lines
    hold = shown(silent, "run:r")["open_holds"][0]["hold"]
    assert any(
        f"run r hold {hold}: 100 tokens, $0.001 of writer for clerk" in line for line in lines
    )
    assert f"`ninelives budget settle r {hold} --tokens N --why TEXT`" in lines[-1]


@pytest.mark.parametrize(
    ("words", "tokens", "cost"),
    [
        (("--tokens", "55", "--dollars", "0.0003"), 55, 300),
        (("--tokens", "55"), 55, 1000),
        (("--released",), 0, 0),
    ],
)
def test_a_person_says_what_a_call_has_cost(
    silent: Shell, words: tuple[str, ...], tokens: int, cost: int
) -> None:
    hold = str(shown(silent, "run:r")["open_holds"][0]["hold"])
    told = silent("budget", "settle", "r", hold, *words, "--by", "me", "--why", "their bill")
    assert told.code == 0
    assert told.lines[-1] == "still halted; next: `ninelives clear-halt r`"
    again = silent("budget", "settle", "r", hold, *words, "--why", "their bill")
    assert again.code == 2
    assert "HoldNotOpen" in again.err
    assert silent("clear-halt", "r").code == 0
    assert silent("resume", "r").code == 0
    ledger = silent.report("r")["ledger"]
    assert ledger["committed_tokens"] == 60 + tokens
    assert ledger["microdollars"]["committed"] == 2 * SPENT + cost
    assert ledger["resolved_calls"] == 1
    resolved = [e for e in silent("watch", "r", "--json").json() if e["kind"] == "hold_resolved"]
    assert [(e["data"]["by"], e["data"]["why"]) for e in resolved] == [("me", "their bill")]
    assert silent("verify").lines == ["1 runs checked, 0 violations"]


def test_a_provider_that_keeps_no_answers_leaves_the_hold_to_a_person(silent: Shell) -> None:
    asked = silent("budget", "settle", "r", "--ask")
    assert (asked.code, asked.lines) == (0, ["0 of 1 holds settled by evidence"])
    assert shown(silent, "run:r")["halted"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("settle", "r"), "--ask alone"),
        (("settle", "r", "5", "--tokens", "1", "--released"), "--ask alone"),
        (("settle", "r", "5", "--released"), "say --why"),
        (("settle", "r", "5", "--tokens", "1", "--why", " "), "say --why"),
        (("settle", "r", "--ask", "--dollars", "1"), "--ask alone"),
        (("settle", "r", "999", "--tokens", "1", "--why", "bill"), "HoldNotOpen"),
        (("settle", "r", "999", "--tokens", "-1"), "no number of tokens"),
        (("settle", "r", "999", "--tokens", "none"), "--ask alone"),
        (("set", "tenant:acme"), "none lifts a limit"),
        (("set", "tenant:acme", "--dollars", "many"), "'many'"),
        (("set", "run:r", "--per", "day", "--tokens", "1"), "counts in total only"),
        (("show", "tenant:absent"), "BudgetUnknown"),
        (("show", "run:absent"), "absent"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    silent: Shell, words: tuple[str, ...], why: str
) -> None:
    before = silent("budget", "show", "run:r", "--json").lines
    refused = silent("budget", *words)
    assert refused.code == 2
    assert why in refused.err
    assert silent("budget", "show", "run:r", "--json").lines == before


def test_looking_at_budgets_makes_no_store(office: Shell) -> None:
    for words in (("ls",), ("show", "store"), ("halt", "store")):
        assert office("budget", *words).code == 2
    assert not list(pathlib.Path(office.folder).glob("*.db"))
