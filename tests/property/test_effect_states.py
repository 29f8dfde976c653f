"""The states of effects as a machine: any trouble, any death, any person, in any order.

The model is the outside world itself: it knows how often each key was applied. Whatever happens,
no key is applied twice, nothing that is confirmed was not applied, and the journal stays whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import shutil
import tempfile
from typing import Never

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ninelives import errors
from ninelives.durable.context import WorkflowContext
from ninelives.durable.effects import Absent, Applied, CannotTell
from ninelives.engine.runner import Status
from ninelives.engine.runtime import Runtime
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.executor import Executor, handler
from ninelives.graph.workflow import Workflow
from ninelives.log import invariants

KEYS = 3
TROUBLES = ["ok", "dies_before", "dies_after", "fails_before", "fails_after", "refuses", "odd"]
ANSWERS = ["truth", "cannot_tell", "raises", "not_final"]


class World:
    """What happens to the next sending, what the next question is answered, what was applied."""

    def __init__(self) -> None:
        self.applied: dict[str, int] = {}
        self.refused: set[str] = set()
        self.trouble = "ok"
        self.answer = "truth"

    async def send(self, *, key: str) -> object:
        trouble, self.trouble = self.trouble, "ok"
        if trouble == "dies_before":
            raise errors.OwnershipLost("killed by a test")
        if trouble == "fails_before":
            raise ConnectionError("not reached")
        if trouble == "refuses":
            self.refused.add(key)
            raise errors.EffectRefused("no")
        self.applied[key] = self.applied.get(key, 0) + 1
        if trouble == "dies_after":
            raise errors.OwnershipLost("killed by a test")
        if trouble == "fails_after":
            raise ConnectionError("answer lost")
        return object() if trouble == "odd" else key

    def reconcile(self, key: str) -> object:
        answer, self.answer = self.answer, "truth"
        if answer == "cannot_tell":
            return CannotTell("busy")
        if answer == "raises":
            raise TimeoutError("no answer")
        if key in self.applied:
            return Applied(key)
        return Absent(final=answer != "not_final")


class Sends(Executor):
    """Several effects in a row; a refusal or an unusable result is lived with."""

    def __init__(self, world: World) -> None:
        super().__init__(id="sends")
        self.world = world

    @handler
    async def go(self, number: int, ctx: WorkflowContext[Never, str]) -> None:
        for each in range(number):
            with contextlib.suppress(errors.EffectRefused):
                await ctx.effect(self.world.send, key=str(each), reconcile=self.world.reconcile)
        await ctx.yield_output("done")


class Effects(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.url = f"sqlite:///{self.folder}/a.db"
        self.world = World()
        self.begin()

    def begin(self) -> None:
        """A run that nobody has heard of yet."""
        self.number = getattr(self, "number", 0) + 1
        self.run = f"r{self.number}"
        self.status = Status("interrupted")
        self.admitted = False

    def workflow(self) -> Workflow:
        return WorkflowBuilder(name="sends", start_executor=Sends(self.world)).build()

    async def work(self) -> Status:
        async with Runtime(self.url, crashes_max=1000) as runtime:
            if self.admitted:
                run = await runtime.resume(self.run, self.workflow())
            else:
                run = await runtime.start(self.workflow(), KEYS, run_id=self.run)
                self.admitted = True
            with contextlib.suppress(errors.StaleEpoch):
                return await run.wait()
            return Status("interrupted")

    @precondition(lambda self: self.status.state == "completed")
    @rule()
    def another_run_begins(self) -> None:
        self.begin()

    @precondition(lambda self: self.status.state != "completed")
    @rule(trouble=st.sampled_from(TROUBLES), answer=st.sampled_from(ANSWERS))
    def a_process_works_on_it(self, trouble: str, answer: str) -> None:
        self.world.trouble, self.world.answer = trouble, answer
        self.status = asyncio.run(self.work())

    @precondition(lambda self: self.status.code == "OutcomeUnknown")
    @rule()
    def a_person_says_what_is_true(self) -> None:
        async def resolve() -> None:
            async with Runtime(self.url) as runtime:
                for number in range(KEYS):
                    key = f"{self.run}:{number}"
                    answer = Applied(key) if key in self.world.applied else Absent(final=True)
                    with contextlib.suppress(errors.EffectNotOpen):
                        await runtime.resolve(self.run, key, answer, by="me")

        asyncio.run(resolve())

    @invariant()
    def no_key_is_applied_twice(self) -> None:
        assert all(count == 1 for count in self.world.applied.values()), self.world.applied

    @invariant()
    def the_journal_is_whole_and_tells_the_truth(self) -> None:
        if not self.admitted:
            return

        async def look() -> None:
            async with Runtime(self.url) as runtime:
                run = await runtime.attach(self.run)
                journal = [event async for event in run.recorded()]
                assert await runtime.store.check() == []
            assert invariants.check(journal) == []
            for event in journal:
                if event.kind == "effect_ended" and event.fact.outcome == "confirmed":  # type: ignore[attr-defined]
                    assert event.fact.key in self.world.applied  # type: ignore[attr-defined]

        asyncio.run(look())

    @invariant()
    def what_has_completed_was_sent(self) -> None:
        if self.status.state == "completed":
            for number in range(KEYS):
                assert f"{self.run}:{number}" in self.world.applied.keys() | self.world.refused

    def teardown(self) -> None:
        shutil.rmtree(self.folder)


TestEffects = Effects.TestCase
TestEffects.settings = settings(max_examples=60, stateful_step_count=12, deadline=None)
