"""Where a run stands between two supersteps: pending messages, state, executors' copies.

Built from a store's checkpoint after a crash, and moved on in memory by each commit; both ways
lead to the same position, which the cold tests show.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from ninelives.durable import replay, state
from ninelives.durable.journal import Journal
from ninelives.durable.replay import Record
from ninelives.durable.state import Scope
from ninelives.graph.executor import Executor
from ninelives.graph.workflow import Workflow
from ninelives.ids import Seq
from ninelives.log import events
from ninelives.log.events import Event
from ninelives.store.base import Checkpoint


@dataclass(frozen=True, slots=True)
class Pending:
    """A message that waits; `edge` is the fan-in group in whose buffer it lies, or empty."""

    seq: Seq
    source: str
    target: str
    value: msgspec.Raw
    edge: str = ""


@dataclass(frozen=True, slots=True)
class Due:
    """What is delivered in the next superstep: one message, or a full fan-in buffer."""

    id: Seq
    target: str
    parts: tuple[Pending, ...]
    listed: bool

    @property
    def messages(self) -> tuple[int, ...]:
        return tuple(part.seq for part in self.parts)

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.source for part in self.parts if part.source))

    def value(self, journal: Journal) -> object:
        values = [journal.decode(part.value) for part in self.parts]
        return values if self.listed else values[0]


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What one finished handler leaves for its superstep's commit."""

    delivery: int
    executor: str
    messages: list[int]
    outputs: list[msgspec.Raw]
    states: list[events.State]
    sent: list[events.Message]
    queued: list[events.OutboxQueued] = []


@dataclass(slots=True)
class Position:
    """A run between two supersteps. `superstep` is the number of the last committed one.

    `records` and `finished` are what the journal holds of the superstep under way.
    """

    workflow: Workflow
    superstep: int
    pending: list[Pending]
    scopes: dict[str, Scope]
    executors: dict[str, Executor] = field(default_factory=dict)
    records: dict[int, list[Record]] = field(default_factory=dict)
    finished: dict[int, Work] = field(default_factory=dict)
    retried: dict[int, events.HandlerRetried] = field(default_factory=dict)

    def due(self) -> list[Due]:
        """The deliveries of the next superstep, in the order of their messages."""
        single = [
            Due(each.seq, each.target, (each,), listed=False)
            for each in self.pending
            if not each.edge
        ]
        return sorted([*single, *self._full_buffers()], key=lambda due: due.id)

    def _full_buffers(self) -> list[Due]:
        buffers: dict[str, list[Pending]] = {}
        for each in self.pending:
            if each.edge:
                buffers.setdefault(each.edge, []).append(each)
        full = []
        for edge, buffered in buffers.items():
            indexes = self.workflow.collect(edge, [each.source for each in buffered])
            if indexes is not None:
                parts = tuple(buffered[index] for index in indexes)
                first = min(part.seq for part in parts)
                full.append(Due(first, parts[0].target, parts, listed=True))
        return full

    def scope(self, name: str, journal: Journal) -> Scope:
        """The state under `name`, empty if nothing was set yet."""
        found = self.scopes.get(name)
        if found is None:
            found = self.scopes[name] = Scope(journal.decode)
        return found

    async def executor(self, name: str, journal: Journal) -> Executor:
        """This run's own copy of an executor, restored from its state the first time."""
        if name not in self.executors:
            fresh = self.workflow.executors[name].fresh()
            if saves(fresh) and self.scope(name, journal).values:
                await fresh.on_checkpoint_restore(dict(self.scope(name, journal).values))
            self.executors[name] = fresh
        return self.executors[name]


def saves(executor: Executor) -> bool:
    """Whether an executor keeps state of its own through the checkpoint hooks."""
    return type(executor).on_checkpoint_save is not Executor.on_checkpoint_save


def restore(checkpoint: Checkpoint, workflow: Workflow, journal: Journal) -> Position:
    """Rebuild a run's position from its last checkpoint."""
    changes = [event.fact for event in checkpoint.state if isinstance(event.fact, events.State)]
    works = [msgspec.json.decode(data, type=Work) for _, data in checkpoint.finished]
    return Position(
        workflow=workflow,
        superstep=checkpoint.row.superstep,
        pending=[_pending(event, workflow) for event in checkpoint.pending],
        scopes=state.scopes(journal.decode, changes),
        records=replay.gather_records(checkpoint.since),
        finished={work.delivery: work for work in works},
        retried={
            event.fact.delivery: event.fact
            for event in checkpoint.since
            if isinstance(event.fact, events.HandlerRetried)
        },
    )


def _pending(event: Event, workflow: Workflow) -> Pending:
    match event.fact:
        case events.RunAdmitted(input=value):
            return Pending(event.seq, "", workflow.start_id, value)
        case events.Message() as sent:
            return Pending(event.seq, sent.source, sent.target, sent.value, sent.edge)
        case _:
            raise AssertionError(event)
