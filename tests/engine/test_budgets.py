"""Budgets as runs meet them: tenants, windows, money, missing reports, evidence, persons."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Never

import pytest

from ninelives import errors
from ninelives.durable.context import WorkflowContext
from ninelives.durable.prices import Price
from ninelives.durable.usage import ModelReply, ModelRequest, Usage
from ninelives.engine.runtime import Runtime
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.executor import Executor, handler
from ninelives.graph.settings import Budget, RunSettings
from ninelives.graph.workflow import Workflow
from ninelives.log import events, invariants, projection
from support import crash, facts, worlds

DAY = 86_400_000
NOON = 1_764_590_400_000
Context = WorkflowContext[Never, str]


class Asks(Executor):
    """Asks a model `value` times, one after the other or all at once."""

    def __init__(self, model: object, *, at_once: bool = False) -> None:
        super().__init__(id="asks")
        self.model, self.at_once = model, at_once

    @handler
    async def ask(self, value: int, ctx: Context) -> None:
        async def one(number: int) -> str:
            return await ctx.model(self.model, f"q{number}", reserve_tokens=400)  # type: ignore[arg-type]

        if self.at_once:
            await ctx.gather(*[one(number) for number in range(value)])
        else:
            for number in range(value):
                await one(number)
        await ctx.yield_output("done")


def asking(
    model: object,
    settings: RunSettings | None = None,
    prices: dict[str, Price] | None = None,
    *,
    at_once: bool = False,
) -> Workflow:
    return WorkflowBuilder(
        name="asks",
        start_executor=Asks(model, at_once=at_once),
        settings=settings,
        prices=prices,
    ).build()


@dataclass
class Keeper:
    """A model whose provider leaves reports out, and keeps the answers when it is `asked`."""

    name: str = "keeper"
    kept: Usage | None = None
    asked: list[str] = field(default_factory=list)
    requests: int = 0

    async def request(self, request: ModelRequest) -> ModelReply:
        self.requests += 1
        return ModelReply(text="yes", usage=None, response_id=f"resp-{self.requests}")

    async def usage_of(self, response_id: str) -> Usage | None:
        self.asked.append(response_id)
        if self.kept is None:
            raise ConnectionError("not today")
        return self.kept


# -- levels and windows -------------------------------------------------------------------


async def test_a_tenants_day_is_full_and_the_next_day_goes_on_without_paying_again(
    url: str,
) -> None:
    model = worlds.Echo()
    workflow = asking(model, RunSettings(tenant="acme"))
    now = NOON
    async with Runtime(url, now=lambda: now) as runtime:
        await runtime.budgets.set("tenant:acme", per="day", tokens=460, by="me", why="a test")
        run = await runtime.start(workflow, 5, run_id="r")
        status = await run.wait()
        assert (status.state, status.code) == ("parked", "BudgetExceeded")
        assert "'tenant:acme': 90 of 460 tokens are committed today" in status.reason
        assert len(model.requests) == 3
        now = NOON + DAY
        run = await runtime.resume("r", workflow)
        assert (await run.wait()).state == "completed"
        assert len(model.requests) == 5
        found = await runtime.budgets.show("tenant:acme")
        assert (found.total.settled, found.spent["day"].settled) == (150, 60)


async def test_two_tenants_do_not_pay_for_each_other(url: str) -> None:
    async with Runtime(url) as runtime:
        await runtime.budgets.set("tenant:poor", tokens=0)
        for tenant, state in (("poor", "parked"), ("rich", "completed")):
            workflow = asking(worlds.Echo(), RunSettings(tenant=tenant))
            run = await runtime.start(workflow, 1, run_id=tenant)
            assert (await run.wait()).state == state


async def test_all_runs_of_a_workflow_and_of_the_store_draw_on_its_budget(url: str) -> None:
    async with Runtime(url) as runtime:
        for number in range(3):
            run = await runtime.start(asking(worlds.Echo()), 2, run_id=f"r{number}")
            await run.wait()
        for name in ("workflow:asks", "store"):
            assert (await runtime.budgets.show(name)).total.settled == 180


async def test_a_budget_that_is_named_and_not_there_refuses_the_run(url: str) -> None:
    workflow = asking(worlds.Echo(), RunSettings(budgets=["team:x"]))
    async with Runtime(url) as runtime:
        with pytest.raises(errors.BudgetUnknown, match="ninelives budget set team:x"):
            await runtime.start(workflow, 1, run_id="r")
        await runtime.budgets.set("team:x", tokens=10)
        run = await runtime.start(workflow, 1, run_id="r")
        assert (await run.wait()).code == "BudgetExceeded"


@pytest.mark.parametrize("name", ["", "run:", "tenant:", "a\nb", "x" * 301])
async def test_a_budget_without_a_proper_name_is_refused(url: str, name: str) -> None:
    async with Runtime(url) as runtime:
        with pytest.raises(errors.BudgetNameInvalid):
            await runtime.budgets.set(name, tokens=1)


async def test_a_limit_that_is_raised_lets_a_parked_run_go_on(url: str) -> None:
    model = worlds.Echo()
    workflow = asking(model, RunSettings(budget=Budget(tokens=460)))
    await crash.ran(url, workflow, 5)
    async with Runtime(url) as runtime:
        await runtime.budgets.set("run:r", tokens=1000, by="me", why="it is worth it")
    ended = await crash.resumed(url, workflow)
    assert ended.outputs == ["done"]
    assert len(model.requests) == 5
    (act,) = [each.fact for each in ended.events if isinstance(each.fact, events.BudgetSet)]
    assert (act.tokens_max, act.by, act.why) == (1000, "me", "it is worth it")


async def test_a_run_counts_in_total_only_and_only_while_it_lives(url: str) -> None:
    await crash.ran(url, asking(worlds.Echo()), 1)
    async with Runtime(url) as runtime:
        with pytest.raises(errors.SettingsInvalid, match="in total only"):
            await runtime.budgets.set("run:r", per="day", tokens=1)
        with pytest.raises(errors.RunEnded):
            await runtime.budgets.set("run:r", tokens=1)
        with pytest.raises(errors.RunNotFound):
            await runtime.budgets.set("run:nobody", tokens=1)


@pytest.mark.parametrize(("budget", "allowed"), [(0, False), (None, True)])
async def test_zero_allows_nothing_and_none_sets_no_limit(
    url: str, budget: int | None, allowed: bool
) -> None:
    workflow = asking(worlds.Echo(), RunSettings(budget=Budget(tokens=budget)))
    ended = await crash.ran(url, workflow, 1)
    assert (ended.status.state == "completed") == allowed


@pytest.mark.parametrize("tokens", [0, -1, True, 1.5, "400", None])
async def test_a_reservation_of_nothing_is_refused_before_anything_is_sent(
    url: str, tokens: object
) -> None:
    class Free(Executor):
        @handler
        async def ask(self, value: int, ctx: Context) -> None:
            await ctx.model(model, "q", reserve_tokens=tokens)  # type: ignore[arg-type]

    model = worlds.Echo()
    ended = await crash.ran(
        url, WorkflowBuilder(name="free", start_executor=Free(id="free")).build(), 1
    )
    assert (ended.status.state, ended.status.code) == ("failed", "ValueError")
    assert "reserve_tokens" in ended.status.reason
    assert not model.requests


async def test_a_batch_of_parallel_calls_admits_what_fits_and_not_one_more(url: str) -> None:
    model = worlds.Echo(before=lambda prompt: asyncio.sleep(0.05))
    settings = RunSettings(budget=Budget(tokens=2000))
    ended = await crash.ran(url, asking(model, settings, at_once=True), 50)
    assert ended.status.code == "BudgetExceeded"
    assert len(model.requests) == 5


async def test_a_halt_by_a_person_parks_every_run_and_replay_asks_for_no_admission(
    url: str,
) -> None:
    class Twice(Executor):
        @handler
        async def ask(self, value: int, ctx: Context) -> None:
            await ctx.yield_output(await ctx.model(model, "q1", reserve_tokens=400))
            bomb.here()

    model, bomb = worlds.Echo(), crash.Bomb()
    settings = RunSettings(tenant="acme")
    workflow = WorkflowBuilder(name="t", start_executor=Twice(id="t"), settings=settings).build()
    await crash.until_dead(url, workflow, 1)
    async with Runtime(url) as runtime:
        await runtime.budgets.halt("tenant:acme", by="me", why="the bill")
        run = await runtime.start(asking(model, settings), 1, run_id="other")
        status = await run.wait()
        assert (status.state, status.code) == ("parked", "BudgetHalted")
        assert "'tenant:acme' is halted: by me: the bill" in status.reason
    assert (await crash.resumed(url, workflow)).outputs == ["<q1>"]
    assert len(model.requests) == 1
    async with Runtime(url) as runtime:
        assert await runtime.budgets.clear_halt("tenant:acme", by="me", why="paid")
        assert not await runtime.budgets.clear_halt("tenant:acme")
    assert (await crash.resumed(url, asking(model, settings), run_id="other")).outputs == ["done"]


# -- money --------------------------------------------------------------------------------

PRICES = {"echo": Price(input="3", output=15)}  # 20 in, 10 out: 210 microdollars


async def test_money_is_counted_at_the_price_that_was_set(url: str) -> None:
    ended = await crash.ran(url, asking(worlds.Echo(), prices=PRICES), 3)
    assert projection.fold(ended.events).committed_microdollars == 630
    async with Runtime(url) as runtime:
        found = await runtime.budgets.show("store")
    assert (found.total.settled_microdollars, found.total.unpriced) == (630, 0)


async def test_a_budget_in_money_admits_what_its_reservation_can_cost(url: str) -> None:
    model = worlds.Echo()  # 400 tokens can cost $0.006
    settings = RunSettings(budget=Budget(dollars="0.0063"))
    ended = await crash.ran(url, asking(model, settings, PRICES), 9)
    assert ended.status.code == "BudgetExceeded"
    assert "$0.00042 of $0.0063 are committed" in ended.status.reason
    assert len(model.requests) == 2


async def test_a_model_without_a_price_is_refused_before_the_call_until_it_has_one(
    url: str,
) -> None:
    model = worlds.Echo()
    settings = RunSettings(budget=Budget(dollars=5))
    ended = await crash.ran(url, asking(model, settings), 1)
    assert (ended.status.state, ended.status.code) == ("parked", "ModelUnpriced")
    assert "'echo'" in ended.status.reason
    assert not model.requests
    free = asking(model, settings, {"echo": Price(0, 0)})
    assert (await crash.resumed(url, free)).outputs == ["done"]


async def test_without_a_budget_in_money_an_unpriced_call_is_made_and_shown_as_such(
    url: str,
) -> None:
    ended = await crash.ran(url, asking(worlds.Echo()), 2)
    assert projection.fold(ended.events).unpriced == 2


@pytest.mark.parametrize("dollars", ["-1", "x", "0.0000001", float("nan"), 1e300, True, "1e999999"])
def test_what_is_no_amount_of_money_is_refused(dollars: object) -> None:
    with pytest.raises(errors.SettingsInvalid, match="dollars of a budget"):
        Budget(dollars=dollars)  # type: ignore[arg-type]


def test_a_tenth_of_a_dollar_is_a_tenth() -> None:
    assert Budget(dollars=0.1).microdollars == 100_000
    assert Budget(dollars="0.000001").microdollars == 1


@pytest.mark.parametrize("prices", [{"echo": 3}, {"echo": None}])
def test_a_price_that_is_none_is_refused_at_build(prices: dict[str, Price]) -> None:
    with pytest.raises(errors.WorkflowInvalid, match="is no Price"):
        asking(worlds.Echo(), prices=prices)


# -- missing reports ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "usage",
    [
        None,
        Usage(),
        Usage(input_tokens="12", output_tokens=3),  # type: ignore[arg-type]
        Usage(input_tokens=12.5, output_tokens=3),  # type: ignore[arg-type]
        Usage(input_tokens=True, output_tokens=3),
        Usage(input_tokens=0, output_tokens=3),
        Usage(input_tokens=12, output_tokens=3, cache_read_tokens=13),
        Usage(input_tokens=12, output_tokens=3, reasoning_tokens=4),
        Usage(input_tokens=12, output_tokens=3, cache_read_tokens=-1),
        Usage(input_tokens=12, output_tokens=3, total_tokens={}),  # type: ignore[arg-type]
    ],
    ids=repr,
)
async def test_a_report_that_cannot_be_used_keeps_the_reply_and_halts(
    url: str, usage: Usage | None
) -> None:
    model = worlds.Echo(usage=usage)
    workflow = asking(model)
    ended = await crash.ran(url, workflow, 1)
    assert (ended.status.state, ended.status.code) == ("parked", "BudgetHalted")
    assert not invariants.check(ended.events)
    async with Runtime(url) as runtime:
        assert (await facts.spent(runtime.store)).unknown == 400
        assert await runtime.clear_halt("r", by="me", why="seen")
    ended = await crash.resumed(url, workflow)
    assert ended.outputs == ["done"]
    assert len(model.requests) == 1


async def test_reservations_may_be_counted_in_place_of_missing_reports(url: str) -> None:
    model = worlds.Echo(usage=None)
    settings = RunSettings(budget=Budget(tokens=1000, on_missing_usage="count_reserved"))
    ended = await crash.ran(url, asking(model, settings), 3)
    assert ended.status.code == "BudgetExceeded"
    assert len(model.requests) == 2
    assert ended.count("budget_halted") == 0
    assert not invariants.check(ended.events)


@pytest.mark.parametrize("answer", [None, "text", 7, ModelReply(text=None)])  # type: ignore[arg-type]
async def test_what_is_no_reply_leaves_the_call_unknown(url: str, answer: object) -> None:
    class Odd:
        name = "odd"

        async def request(self, request: ModelRequest) -> ModelReply:
            return answer  # type: ignore[return-value]

    ended = await crash.ran(url, asking(Odd()), 1)
    assert (ended.status.state, ended.status.code) == ("parked", "OutcomeUnknown")
    async with Runtime(url) as runtime:
        assert (await facts.spent(runtime.store)).unknown == 400


async def test_cached_and_reasoning_tokens_are_kept_apart_in_the_report(url: str) -> None:
    usage = Usage(
        input_tokens=100, output_tokens=50, cache_read_tokens=80, reasoning_tokens=30, tool_tokens=7
    )
    ended = await crash.ran(url, asking(worlds.Echo(usage=usage)), 2)
    reported = projection.fold(ended.events).reported
    assert (reported.input, reported.output) == (200, 100)
    assert (reported.cache_read, reported.reasoning, reported.tool) == (160, 60, 14)


# -- evidence and persons -----------------------------------------------------------------


async def test_a_halt_clears_itself_when_the_provider_knows_the_answer(url: str) -> None:
    model = Keeper(kept=worlds.REPORTED)
    ended = await crash.ran(url, asking(model, prices={"keeper": Price(3, 15)}), 2)
    assert ended.outputs == ["done"]
    assert model.asked == ["resp-1", "resp-2"]
    assert ended.count("budget_halted") == ended.count("halt_cleared") == 2
    assert projection.fold(ended.events).committed_microdollars == 420
    assert not invariants.check(ended.events)
    async with Runtime(url) as runtime:
        spent = await facts.spent(runtime.store)
        assert (spent.settled, spent.unknown) == (60, 0)
        assert not await runtime.store.check()


async def test_a_provider_that_did_not_know_is_asked_again_by_resume(url: str) -> None:
    model = Keeper()
    workflow = asking(model)
    ended = await crash.ran(url, workflow, 1)
    assert ended.status.code == "BudgetHalted"
    model.kept = worlds.REPORTED
    async with Runtime(url, models={"keeper": model}) as runtime:
        ended = await crash.ended(await runtime.resume("r", workflow))
    assert ended.outputs == ["done"]
    assert model.requests == 1
    (found,) = [each.fact for each in ended.events if isinstance(each.fact, events.HoldResolved)]
    assert (found.evidence, found.why, found.tokens) == ("provider", "response resp-1", 30)


async def test_a_provider_whose_record_lacks_the_report_too_leaves_the_halt(url: str) -> None:
    model = Keeper(kept=Usage(input_tokens=3))
    ended = await crash.ran(url, asking(model), 1)
    assert ended.status.code == "BudgetHalted"
    async with Runtime(url) as runtime:
        assert (await facts.spent(runtime.store)).unknown == 400


async def test_a_person_settles_and_clears_and_the_run_goes_on(url: str) -> None:
    model = worlds.Echo(usage=None)
    workflow = asking(model, RunSettings(tenant="acme"))
    await crash.ran(url, workflow, 1)
    async with Runtime(url) as runtime:
        (hold,) = await runtime.budgets.open_holds("tenant:acme")
        await runtime.budgets.settle(
            "r", hold.seq, tokens=55, dollars="0.01", by="me", why="invoice 7"
        )
        with pytest.raises(errors.HoldNotOpen, match="is settled"):
            await runtime.budgets.release("r", hold.seq)
        assert (await runtime.budgets.show("tenant:acme")).total.committed == 55
        assert (await runtime.budgets.show("run:r")).halted  # settling is not clearing
        await runtime.clear_halt("r", by="me")
    ended = await crash.resumed(url, workflow)
    assert ended.outputs == ["done"]
    assert not invariants.check(ended.events)
    (found,) = [each.fact for each in ended.events if isinstance(each.fact, events.HoldResolved)]
    assert (found.by, found.why, found.microdollars) == ("me", "invoice 7", 10_000)


async def test_a_halt_outlives_every_process_and_a_used_id_gets_no_fresh_allowance(
    url: str,
) -> None:
    model = worlds.Echo(usage=None)
    workflow = asking(model)
    await crash.ran(url, workflow, 2)
    for _ in range(3):
        assert (await crash.resumed(url, workflow)).status.code == "BudgetHalted"
        assert (await crash.ran(url, workflow, 2)).status.code == "BudgetHalted"
    assert len(model.requests) == 1
