"""Opens a store and starts, resumes and shows runs on it.

Start, resume and attach are three verbs. A start is durable before its id is returned; a resume
that finds nothing is an error, never a start; an ended run is never run again by any of them.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self, cast

import msgspec

from ninelives import clock, codec, errors, faults, ids
from ninelives.durable.context import Scalar
from ninelives.durable.delivery import StopSignal
from ninelives.durable.effects import Absent, Applied
from ninelives.durable.journal import VALUE_BYTES_MAX, Journal
from ninelives.durable.usage import Model
from ninelives.engine import position, target
from ninelives.engine.run import Run, status_of
from ninelives.engine.runner import Runner, Status
from ninelives.engine.superstep import OnOutput
from ninelives.engine.target import Target
from ninelives.graph import description, matching
from ninelives.graph.workflow import Workflow
from ninelives.ids import RunId
from ninelives.log import events
from ninelives.log.events import Draft
from ninelives.store.base import Admission, Claimed, OwnedElsewhere, Owner, RunRow, Store, Stuck
from ninelives.store.sqlite import SqliteStore

STORE_DEFAULT = "sqlite:///ninelives.db"
SHOWN_CHARACTERS_MAX = 80
CRASHES_MAX = 5
_GLOBAL = codec.Registry()


class _Settings(msgspec.Struct, frozen=True):
    """RunSettings as recorded at admission."""

    record: Literal["operation", "superstep"]
    tokens_max: int | None
    values: dict[str, Scalar]


@dataclass(frozen=True, slots=True)
class _Recorded:
    """What a run was admitted with."""

    workflow: str
    value: msgspec.Raw
    graph: dict[str, object]
    settings: _Settings
    target: Target | None


class Runtime:
    """Durable runs on one store, worked on in this process.

    Use it as an asynchronous context manager; on leaving, runs under way stop in an orderly
    way at their next durable operation and stay resumable.
    """

    def __init__(
        self,
        store: str = STORE_DEFAULT,
        *,
        models: Mapping[str, Model] | None = None,
        now: clock.Now = clock.now_ms,
        value_bytes_max: int = VALUE_BYTES_MAX,
        cold: bool = False,
        create: bool = True,
        crashes_max: int = CRASHES_MAX,
        on_output: OnOutput | None = None,
    ) -> None:
        """`create=False` refuses a store that does not exist yet.

        A run of which `crashes_max` processes in a row died without recording any progress is
        parked as stuck, not handed out for ever.

        `on_output` is called with each output of the runs worked on here, after its commit and
        before the next superstep begins; what it raises fails that run's process, not the run.
        `cold` forgets all memory after each superstep and reads it back: for tests.
        """
        self.store: Store = SqliteStore(store, create=create)
        self._models = dict(models or {})
        self._now = now
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
    ) -> Run:
        """Admit a run (durable on return) and work on it; a used id attaches.

        With the same workflow and input, an interrupted run is taken up, one that lives
        elsewhere is followed, an ended, failed or parked one is only shown.

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
        raw = self._encode_input(workflow, value)
        fingerprint = codec.fingerprint(value, workflow.registry)
        present = await self._find(run)
        if present is None:
            admission = self._admission(run, workflow, raw, fingerprint, target)
            admitted = await self.store.admit(admission)
            if isinstance(admitted, Owner):
                faults.reach(faults.Boundary.ADMITTED)
                return await self._work(
                    admitted, workflow, Run(run, self.store, workflow.registry, admitted_here=True)
                )
            present = admitted
        await self._refuse_other_work(present, workflow.name, fingerprint, raw)
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
        found = workflow or self._load(row.id, target or (await self._recorded(row.id)).target)
        if row.state == "parked" and (await self.store.budget(row.id)).halted:
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
        return Run(row.id, self.store, workflow.registry if workflow else _GLOBAL)

    async def runs(self, *, limit: int = 100, before: int | None = None) -> list[RunRow]:
        """Runs, newest first; `before` is the `number` of the last row of the page before."""
        return await self.store.runs(limit=limit, before=before)

    async def clear_halt(self, run_id: str, *, by: str = "") -> bool:
        """Let a halted budget admit calls again; unknown holds stay counted.

        Returns whether it was halted. Raises RunNotFound.
        """
        run = ids.run_id(run_id)
        row = await self.store.run(run)
        if not (await self.store.budget(run)).halted:
            return False
        await self._act(row, events.HaltCleared(budget="run", by=by))
        return True

    async def resolve(
        self, run_id: str, key: str, answer: Applied | Absent, *, by: str = ""
    ) -> None:
        """Say what became of an effect whose outcome is unknown; `resume` acts on it.

        `key` is the full key, or the part behind the run's id.

        Raises:
            EffectNotOpen: the effect is not unknown (any more).
        """
        run = ids.run_id(run_id)
        row = await self.store.run(run)
        full = key if key.startswith(f"{run}:") else f"{run}:{key}"
        taken = await self.store.effect(full)
        if taken is None or taken.run != run or taken.state not in {"intended", "unknown"}:
            raise errors.EffectNotOpen(run, full, taken.state if taken else "not known")
        applied = isinstance(answer, Applied)
        result = codec.encode(answer.result, _GLOBAL) if isinstance(answer, Applied) else b"null"
        fact = events.EffectResolved(
            key=full,
            intent=taken.seq,
            answer="applied" if applied else "absent",
            result=msgspec.Raw(result),
            by=by,
        )
        await self._act(row, fact)

    async def cancel(self, run_id: str, *, by: str = "") -> Status:
        """End a run: at once if nobody works on it, else at its owner's next boundary.

        Effects under way are seen to their outcome. Returns the status afterwards.

        Raises:
            RunEnded: it has completed or was cancelled before.
        """
        row = await self.store.run(ids.run_id(run_id))
        await self._act(row, events.CancelRequested(by=by), unowned=events.RunCancelled(by=by))
        return status_of(await self.store.run(row.id))

    async def _act(
        self, row: RunRow, fact: events.Fact, *, unowned: events.Fact | None = None
    ) -> None:
        """Append a person's fact; `unowned` too if nobody living owns the run."""
        at = self._now()

        def draft(each: events.Fact) -> Draft:
            return Draft(fact=each, at=at, superstep=row.superstep)

        follows = [] if unowned is None else [draft(unowned)]
        await self.store.act(row.id, [draft(fact)], if_unowned=follows)

    async def _refuse_other_work(
        self, present: RunRow, workflow: str, fingerprint: str, given: msgspec.Raw
    ) -> None:
        if present.workflow != workflow:
            raise errors.RunConflict(present.id, "workflow", present.workflow, workflow)
        if present.input_fingerprint != fingerprint:
            recorded = (await self._recorded(present.id)).value
            raise errors.RunConflict(present.id, "input", _short(recorded), _short(given))

    # -- admission and claims -------------------------------------------------------------------

    async def _find(self, run: RunId) -> RunRow | None:
        try:
            return await self.store.run(run)
        except errors.RunNotFound:
            return None

    def _encode_input(self, workflow: Workflow, value: object) -> msgspec.Raw:
        start = workflow.executors[workflow.start_id]
        if start.find_handler(value) is None:
            wanted = ", ".join(matching.spell(each) for each in workflow.input_types)
            given = "none was given" if value is None else f"it is of type {type(value).__name__}"
            why = f"{given}; handled: {wanted}"
            raise errors.InputInvalid(workflow.start_id, why)
        raw = msgspec.Raw(codec.encode(value, workflow.registry))
        if len(raw) > self._value_bytes_max:
            why = f"it is {len(raw)} bytes, the limit is {self._value_bytes_max}"
            raise errors.Unencodable("input", why)
        return raw

    def _admission(
        self,
        run: RunId,
        workflow: Workflow,
        raw: msgspec.Raw,
        fingerprint: str,
        where: Target | None,
    ) -> Admission:
        chosen = workflow.settings_for_admission()
        tokens_max = chosen.budget.tokens if chosen.budget is not None else None
        settings = _Settings(chosen.record, tokens_max, dict(chosen.values))
        admitted = events.RunAdmitted(
            workflow=workflow.name,
            input=raw,
            input_fingerprint=fingerprint,
            graph=msgspec.Raw(msgspec.json.encode(workflow.description())),
            settings=msgspec.Raw(msgspec.json.encode(settings)),
            target=msgspec.Raw(msgspec.json.encode(where)),
        )
        return Admission(
            run=run,
            workflow=workflow.name,
            input_fingerprint=fingerprint,
            tokens_max=tokens_max,
            admitted=Draft(fact=admitted, at=self._now(), superstep=0),
            started=self._started(workflow, "start"),
        )

    def _started(self, workflow: Workflow, cause: Literal["start", "resume", "take_over"]) -> Draft:
        fact = events.IncarnationStarted(
            cause=cause,
            epoch=1,
            pid=os.getpid(),
            host=socket.gethostname(),
            process_started_at=clock.PROCESS_STARTED_AT,
            code_version=workflow.code_version(),
            attempt=1,
        )
        return Draft(fact=fact, at=self._now(), superstep=0)

    async def _claim(
        self,
        row: RunRow,
        workflow: Workflow,
        *,
        cause: Literal["resume", "take_over"],
        retry: bool,
        force: bool = False,
    ) -> Run:
        recorded = await self._recorded(row.id)
        if recorded.workflow != workflow.name:
            raise errors.RunConflict(row.id, "workflow", recorded.workflow, workflow.name)
        differences = description.differences(recorded.graph, workflow.description())
        if differences:
            raise errors.GraphChanged(row.id, differences)
        claimed = await self.store.claim(
            row.id,
            self._started(workflow, cause),
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

    async def _recorded(self, run: RunId) -> _Recorded:
        first = (await self.store.events(run, after=0, limit=1))[0]
        assert isinstance(first.fact, events.RunAdmitted)
        return _Recorded(
            workflow=first.fact.workflow,
            value=first.fact.input,
            graph=msgspec.json.decode(first.fact.graph, type=dict[str, object]),
            settings=msgspec.json.decode(first.fact.settings, type=_Settings),
            target=msgspec.json.decode(first.fact.target, type=Target | None),
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
        where = (await self._recorded(ids.run_id(run_id))).target
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

        settings = (await self._recorded(owner.run)).settings
        runner = Runner(
            position=await restore(),
            journal=journal,
            settings=settings.values,
            models=self._models,
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


def _short(value: msgspec.Raw) -> str:
    """An input as a person wrote it, cut where it gets long."""
    text = json.dumps(codec.plain(value), ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARACTERS_MAX else text[:SHOWN_CHARACTERS_MAX] + "..."
