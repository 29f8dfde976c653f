"""Opens a store and starts, resumes and shows runs on it.

Start, resume and attach are three verbs. A start is durable before its id is returned; a resume
that finds nothing is an error, never a start; an ended run is never run again by any of them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Literal, Self, cast

from ninelives import clock, codec, errors, faults, ids
from ninelives.durable.delivery import StopSignal
from ninelives.durable.effects import Absent, Applied
from ninelives.durable.journal import VALUE_BYTES_MAX, Journal
from ninelives.durable.models import Terms
from ninelives.durable.usage import Model
from ninelives.engine import acts, admission, position, target
from ninelives.engine.budgets import Budgets
from ninelives.engine.run import Run, status_of
from ninelives.engine.runner import Runner, Status
from ninelives.engine.superstep import OnOutput
from ninelives.engine.target import Target
from ninelives.graph import description
from ninelives.graph.workflow import Workflow
from ninelives.ids import RunId
from ninelives.store.base import Claimed, OwnedElsewhere, Owner, RunRow, Store, Stuck
from ninelives.store.notes import Note
from ninelives.store.sqlite import SqliteStore

STORE_DEFAULT = "sqlite:///ninelives.db"
CRASHES_MAX = 5


class Runtime:
    """Durable runs on one store, worked on in this process.

    Use it as an asynchronous context manager; on leaving, runs under way stop in an orderly
    way at their next durable operation and stay resumable.
    """

    def __init__(
        self,
        store: str | None = None,
        *,
        models: Mapping[str, Model] | None = None,
        now: clock.Now = clock.now_ms,
        value_bytes_max: int = VALUE_BYTES_MAX,
        cold: bool = False,
        create: bool = True,
        crashes_max: int = CRASHES_MAX,
        on_output: OnOutput | None = None,
    ) -> None:
        """Without `store`, NINELIVES_STORE says where, else `ninelives.db` here.

        `create=False` refuses a store that does not exist yet.

        A run of which `crashes_max` processes in a row died without recording any progress is
        parked as stuck, not handed out for ever.

        `on_output` is called with each output of the runs worked on here, after its commit and
        before the next superstep begins; what it raises fails that run's process, not the run.
        `cold` forgets all memory after each superstep and reads it back: for tests.
        """
        self.store: Store = SqliteStore(
            store or os.environ.get("NINELIVES_STORE", STORE_DEFAULT), create=create
        )
        self._models = dict(models or {})
        self._now = now
        self.budgets = Budgets(self.store, self._models, now)
        self._value_bytes_max = value_bytes_max
        self._cold = cold
        self._crashes_max = crashes_max
        self._on_output = on_output
        self._stopping = StopSignal()
        self._tasks: set[asyncio.Task[Status]] = set()

    async def __aenter__(self) -> Self:
        await self.store.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.request_stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.store.close()

    def request_stop(self) -> None:
        """Stop in an orderly way: operations under way are finished and recorded."""
        self._stopping.request()

    # -- the three verbs ----------------------------------------------------------------------

    async def start(
        self,
        workflow: Workflow,
        value: object,
        *,
        run_id: str | None = None,
        target: Target | None = None,
        notes: Sequence[Note] = (),
    ) -> Run:
        """Admit a run (durable on return) and work on it; a used id attaches.

        With the same workflow and input, an interrupted run is taken up, one that lives
        elsewhere is followed, an ended, failed or parked one is only shown.

        `notes` are written in the transaction that admits the run; a start that attaches writes
        none.

        Raises:
            RunConflict: the id is in use for another workflow or input; nothing has changed.
            InputInvalid: the start executor does not handle such an input.
            Unencodable: the input cannot be recorded.
        """
        given = cast("object", workflow)
        if not isinstance(given, Workflow):
            message = f"start() takes a Workflow, not {given!r}; call .build() on a builder"
            raise TypeError(message)
        run = ids.new_run_id() if run_id is None else ids.run_id(run_id)
        raw = admission.encode_input(workflow, value, self._value_bytes_max)
        fingerprint = codec.fingerprint(value, workflow.registry)
        present = await self._find(run)
        if present is None:
            prepared = admission.prepare(run, workflow, raw, fingerprint, target, self._now())
            admitted = await self.store.admit(replace(prepared, notes=tuple(notes)))
            if isinstance(admitted, Owner):
                faults.reach(faults.Boundary.ADMITTED)
                return await self._work(
                    admitted, workflow, Run(run, self.store, workflow.registry, admitted_here=True)
                )
            present = admitted
        await admission.refuse_other_work(self.store, present, workflow.name, fingerprint, raw)
        if status_of(present).state != "interrupted":
            return Run(run, self.store, workflow.registry)
        try:
            return await self._claim(present, workflow, cause="resume", retry=False)
        except errors.RunOwned:
            return Run(run, self.store, workflow.registry)  # somebody was faster

    async def resume(
        self,
        run_id: str,
        workflow: Workflow | None = None,
        *,
        take_over: bool = False,
        force: bool = False,
        target: Target | None = None,
    ) -> Run:
        """Take up a run from its last checkpoint, wherever its former process died.

        A failed or parked run is tried again. `take_over` takes it from a living owner, whose
        writes are refused from then on. `force` tries a stuck run once more.
        Without `workflow`, the recorded target is loaded.

        Raises:
            RunNotFound: nothing to resume; nothing was started.
            RunEnded: it has completed or was cancelled.
            RunOwned: a living process owns it.
            GraphChanged: the workflow is not the one that the run was admitted with.
        """
        row = await self.store.run(ids.run_id(run_id))
        if row.state in {"completed", "cancelled"}:
            raise errors.RunEnded(row.id, row.state)
        where = target or (await admission.recorded(self.store, row.id)).target
        found = workflow or self._load(row.id, where)
        halted = await self.budgets.halted(row.id, found.prices)
        if row.state == "parked" and halted:
            return Run(row.id, self.store, found.registry, seq_at_start=row.seq)
        cause: Literal["resume", "take_over"] = "take_over" if take_over else "resume"
        retry = row.state in {"failed", "parked"}
        return await self._claim(row, found, cause=cause, retry=retry, force=force)

    async def attach(self, run_id: str, workflow: Workflow | None = None) -> Run:
        """A handle for reading only; `workflow` brings the types that outputs need.

        Raises:
            RunNotFound: no such run.
        """
        row = await self.store.run(ids.run_id(run_id))
        return Run(row.id, self.store, workflow.registry if workflow else codec.GLOBAL)

    async def runs(self, *, limit: int = 100, before: int | None = None) -> list[RunRow]:
        """Runs, newest first; `before` is the `number` of the last row of the page before."""
        return await self.store.runs(limit=limit, before=before)

    async def clear_halt(self, run_id: str, *, by: str = "", why: str = "") -> bool:
        """See `acts.clear_halt`."""
        return await acts.clear_halt(self.store, ids.run_id(run_id), self._now(), by=by, why=why)

    async def resolve(
        self, run_id: str, key: str, answer: Applied | Absent, *, by: str = ""
    ) -> None:
        """See `acts.resolve`."""
        await acts.resolve(self.store, ids.run_id(run_id), key, answer, self._now(), by=by)

    async def cancel(self, run_id: str, *, by: str = "") -> Status:
        """See `acts.cancel`."""
        return await acts.cancel(self.store, ids.run_id(run_id), self._now(), by=by)

    # -- admission and claims -------------------------------------------------------------------

    async def _find(self, run: RunId) -> RunRow | None:
        try:
            return await self.store.run(run)
        except errors.RunNotFound:
            return None

    async def _claim(
        self,
        row: RunRow,
        workflow: Workflow,
        *,
        cause: Literal["resume", "take_over"],
        retry: bool,
        force: bool = False,
    ) -> Run:
        recorded = await admission.recorded(self.store, row.id)
        if recorded.workflow != workflow.name:
            raise errors.RunConflict(row.id, "workflow", recorded.workflow, workflow.name)
        differences = description.differences(recorded.graph, workflow.description())
        if differences:
            raise errors.GraphChanged(row.id, differences)
        claimed = await self.store.claim(
            row.id,
            admission.started(workflow, cause, self._now()),
            take_over=cause == "take_over",
            retry=retry,
            deaths_max=None if force else self._crashes_max,
        )
        if isinstance(claimed, Stuck):
            return Run(row.id, self.store, workflow.registry, seq_at_start=row.seq)
        if isinstance(claimed, OwnedElsewhere):
            since = clock.iso(claimed.since)
            raise errors.RunOwned(row.id, claimed.pid, claimed.host, since)
        faults.reach(faults.Boundary.CLAIMED)
        return await self._work(
            claimed.owner,
            workflow,
            _taken_up(row, claimed, self.store, workflow),
            owner_dead=cause != "take_over",
        )

    def _load(self, run: RunId, where: Target | None) -> Workflow:
        if where is None:
            raise errors.TargetUnrecorded(run)
        return target.load(where)

    async def load_workflow(self, run_id: str) -> Workflow | None:
        """The workflow that a run records, for its types; None if it records none.

        Raises:
            RunNotFound: no such run.
        """
        where = (await admission.recorded(self.store, ids.run_id(run_id))).target
        return None if where is None else target.load(where)

    # -- work -----------------------------------------------------------------------------------

    async def _work(
        self, owner: Owner, workflow: Workflow, run: Run, *, owner_dead: bool = True
    ) -> Run:
        journal = Journal(
            store=self.store,
            owner=owner,
            registry=workflow.registry,
            now=self._now,
            code_version=workflow.code_version(),
            owner_dead=owner_dead,
            value_bytes_max=self._value_bytes_max,
        )

        async def restore() -> position.Position:
            checkpoint = await self.store.load(owner.run)
            journal.code_versions = {
                each.number: each.code_version for each in checkpoint.incarnations
            }
            return position.restore(checkpoint, workflow, journal)

        settings = (await admission.recorded(self.store, owner.run)).settings
        runner = Runner(
            position=await restore(),
            journal=journal,
            settings=settings.values,
            terms=Terms(
                models=self._models,
                prices=workflow.prices,
                count_reserved=settings.on_missing_usage == "count_reserved",
            ),
            coarse=settings.record == "superstep",
            stopping=self._stopping,
            reload=restore,
            cold=self._cold,
            on_output=self._on_output,
        )
        run.task = asyncio.create_task(runner.drive(), name=f"ninelives {owner.run}")
        self._tasks.add(run.task)
        run.task.add_done_callback(self._tasks.discard)
        run.task.add_done_callback(_seen)
        return run


def _seen(task: asyncio.Task[Status]) -> None:
    """Errors reach the caller through `wait`; a run nobody waits for is no lost exception."""
    if not task.cancelled():
        task.exception()


def _taken_up(row: RunRow, claimed: Claimed, store: Store, workflow: Workflow) -> Run:
    return Run(
        row.id,
        store,
        workflow.registry,
        seq_at_start=row.seq,
        orphaned_holds=claimed.orphaned,
    )
