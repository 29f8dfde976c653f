"""What a run is admitted with, and reading it back: input, graph, settings, address.

All of it is in the run's first event, so that any process can take the run up by its id alone.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from ninelives import clock, codec, errors
from ninelives.durable.context import Scalar
from ninelives.engine.target import Target
from ninelives.graph import matching
from ninelives.graph.settings import Budget, OnMissingUsage, RunSettings
from ninelives.graph.workflow import Workflow
from ninelives.ids import RunId
from ninelives.log import events
from ninelives.log.events import Draft
from ninelives.store.base import Admission, RunRow, Store
from ninelives.store.budgets import RunBudget

SHOWN_CHARACTERS_MAX = 80
Cause: TypeAlias = Literal["start", "resume", "take_over"]


class Settings(msgspec.Struct, frozen=True):
    """RunSettings as recorded at admission."""

    record: Literal["operation", "superstep"]
    tokens_max: int | None
    values: dict[str, Scalar]
    microdollars_max: int | None = None
    on_missing_usage: OnMissingUsage = "halt"
    tenant: str | None = None
    budgets: tuple[str, ...] = ()

    def budget(self, workflow: str) -> RunBudget:
        """What a run with these settings draws on."""
        tenant = () if self.tenant is None else (f"tenant:{self.tenant}",)
        return RunBudget(
            tokens_max=self.tokens_max,
            microdollars_max=self.microdollars_max,
            named=self.budgets,
            levels=(*tenant, f"workflow:{workflow}", "store"),
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a run was admitted with."""

    workflow: str
    value: msgspec.Raw
    graph: dict[str, object]
    settings: Settings
    target: Target | None


def encode_input(workflow: Workflow, value: object, bytes_max: int) -> msgspec.Raw:
    """Check and encode an input before anything is admitted.

    Raises:
        InputInvalid: the start executor does not handle such a value.
        Unencodable: it cannot be recorded, or is too large.
    """
    start = workflow.executors[workflow.start_id]
    if start.find_handler(value) is None:
        wanted = ", ".join(matching.spell(each) for each in workflow.input_types)
        given = "none was given" if value is None else f"it is of type {type(value).__name__}"
        raise errors.InputInvalid(workflow.start_id, f"{given}; handled: {wanted}")
    raw = msgspec.Raw(codec.encode(value, workflow.registry))
    if len(raw) > bytes_max:
        raise errors.Unencodable("input", f"it is {len(raw)} bytes, the limit is {bytes_max}")
    return raw


def prepare(
    run: RunId,
    workflow: Workflow,
    raw: msgspec.Raw,
    fingerprint: str,
    where: Target | None,
    at: int,
) -> Admission:
    """A run that is to exist. The workflow's settings are asked for here, and only here."""
    chosen = _settings(workflow)
    own = chosen.budget or Budget()
    settings = Settings(
        record=chosen.record,
        tokens_max=own.tokens,
        values=dict(chosen.values),
        microdollars_max=own.microdollars,
        on_missing_usage=own.on_missing_usage,
        tenant=chosen.tenant,
        budgets=tuple(chosen.budgets),
    )
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
        budget=settings.budget(workflow.name),
        admitted=Draft(fact=admitted, at=at, superstep=0),
        started=started(workflow, "start", at),
    )


def _settings(workflow: Workflow) -> RunSettings:
    try:
        return workflow.settings_for_admission()
    except errors.NineLivesError:
        raise
    except Exception as error:
        why = f"asking for them raised {type(error).__name__}: {error}; nothing was started"
        raise errors.SettingsInvalid(f"settings of workflow {workflow.name!r}", why) from error


def started(workflow: Workflow, cause: Cause, at: int) -> Draft:
    """The event by which this process takes ownership; the store gives epoch and attempt."""
    fact = events.IncarnationStarted(
        cause=cause,
        epoch=1,
        pid=os.getpid(),
        host=socket.gethostname(),
        process_started_at=clock.PROCESS_STARTED_AT,
        code_version=workflow.code_version(),
        attempt=1,
    )
    return Draft(fact=fact, at=at, superstep=0)


async def recorded(store: Store, run: RunId) -> Recorded:
    """Read back what a run was admitted with.

    Raises:
        RunNotFound: no such run.
    """
    first = (await store.events(run, after=0, limit=1))[0]
    assert isinstance(first.fact, events.RunAdmitted)
    return Recorded(
        workflow=first.fact.workflow,
        value=first.fact.input,
        graph=msgspec.json.decode(first.fact.graph, type=dict[str, object]),
        settings=msgspec.json.decode(first.fact.settings, type=Settings),
        target=msgspec.json.decode(first.fact.target, type=Target | None),
    )


async def refuse_other_work(
    store: Store, present: RunRow, workflow: str, fingerprint: str, given: msgspec.Raw
) -> None:
    """A used id is for the same work only.

    Raises:
        RunConflict: it was admitted with another workflow or input.
    """
    if present.workflow != workflow:
        raise errors.RunConflict(present.id, "workflow", present.workflow, workflow)
    if present.input_fingerprint != fingerprint:
        before = (await recorded(store, present.id)).value
        raise errors.RunConflict(present.id, "input", _short(before), _short(given))


def _short(value: msgspec.Raw) -> str:
    """An input as a person wrote it, cut where it gets long."""
    text = json.dumps(codec.plain(value), ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARACTERS_MAX else text[:SHOWN_CHARACTERS_MAX] + "..."
