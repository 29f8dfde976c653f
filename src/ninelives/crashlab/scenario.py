"""One scenario: real processes run a workflow, some of them are killed, others take it up."""

from __future__ import annotations

import asyncio
import json
import pathlib
import shlex
from dataclasses import dataclass, field

from ninelives import errors
from ninelives.crashlab import clients, processes
from ninelives.crashlab.clients import Reading
from ninelives.crashlab.plan import Kill, Moment, Plan, Point
from ninelives.crashlab.processes import Ended
from ninelives.log import projection
from ninelives.log.events import Event
from ninelives.log.projection import Report

PROCESSES_MAX = 20


@dataclass(frozen=True, slots=True)
class Work:
    """What is put to the test: a target and its input, in a folder.

    `campaign` begins the ids of its runs: the outside world has never heard of their keys.
    With `channels` a relay delivers the outbox when the run has ended, and is killed like it.
    """

    target: str
    text: str | None
    folder: pathlib.Path
    campaign: str
    channels: str | None = None

    def command(self, plan: Plan) -> str:
        """The one command that repeats a scenario."""
        words = ["ninelives", "crashtest", self.target]
        words += [] if self.text is None else ["--input", self.text]
        words += [] if self.channels is None else ["--channels", self.channels]
        return shlex.join([*words, "--at", plan.name])


@dataclass(frozen=True, slots=True)
class Pace:
    """The clean run's time in milliseconds: its process's start-up, and all of it."""

    startup: int = 0
    whole: int = 0

    def seconds(self, moment: Moment) -> float:
        """When a moment comes, after the start of a process."""
        return (self.startup + moment.fraction * (self.whole - self.startup)) / 1000


@dataclass(slots=True)
class Outcome:
    """What was seen of a scenario: by clients, in the store, and by the witness beside it."""

    plan: Plan
    command: str
    processes: list[Ended] = field(default_factory=list)
    watched: list[Event] = field(default_factory=list)
    watcher_trouble: str = ""
    reading: Reading = field(default_factory=Reading)
    unreadable: str = ""
    report: Report = field(default_factory=Report)
    sent: list[str] = field(default_factory=list)
    delivered: list[str] = field(default_factory=list)
    requests: int = 0
    billed: dict[int, int] = field(default_factory=dict)
    unrecorded: list[dict[str, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def code(self) -> int:
        """How the last process ended; the first failure, if the relay was not even begun."""
        return self.processes[-1].code

    @property
    def kills(self) -> int:
        return sum(process.killed for process in self.processes)

    @property
    def complaint(self) -> str:
        """The last lines that a process wrote for a person."""
        lines = [line for each in self.processes for line in each.errors.strip().splitlines()]
        return " ".join(lines[-2:])

    @property
    def pace(self) -> Pace:
        first = self.processes[0]
        startup = self.reading.late[0].at - first.began if self.reading.late else 0
        return Pace(max(startup, 0), first.ended - first.began)


def play(
    work: Work, plan: Plan, folder: pathlib.Path, *, pace: Pace, timeout_seconds: float
) -> Outcome:
    """Run to the end: processes that are killed by the plan, then one that is not."""
    outcome = Outcome(plan, work.command(plan))
    stage = _Stage(work, f"{work.campaign}-{plan.slug}", folder, pace, timeout_seconds)
    with clients.Watcher(stage.store, stage.run) as watcher:
        left = list(plan.kills)
        for words in stage.commands():
            if stage.follow_through(outcome, words, left) != 0:
                break
    outcome.watched, outcome.watcher_trouble = watcher.seen, watcher.trouble
    stage.look(outcome)
    return outcome


class _Stage:
    """A store, a witness and an audit file of their own, and processes that use them."""

    def __init__(
        self, work: Work, run: str, folder: pathlib.Path, pace: Pace, timeout_seconds: float
    ) -> None:
        self._work, self._folder, self._pace = work, folder, pace
        self.run, self.store = run, folder / "durable.db"
        self._timeout_seconds = timeout_seconds

    def commands(self) -> list[list[str]]:
        work, store = self._work, ["--store", clients.url_of(self.store)]
        given = [] if work.text is None else ["--input", work.text]
        commands = [["run", work.target, self.run, *given, *store]]
        if work.channels is not None:
            commands.append(["relay", "--once", "--channels", work.channels, *store])
        return commands

    def follow_through(self, outcome: Outcome, words: list[str], left: list[Kill]) -> int:
        """Repeat one command until it ends by itself; its exit code. Uses up kills of `left`."""
        while len(outcome.processes) < PROCESSES_MAX:
            ended = self._process(words, left[0] if left else None)
            outcome.processes.append(ended)
            if not ended.killed:
                return ended.code
            del left[:1]
        return processes.HUNG

    def _process(self, words: list[str], kill: Kill | None) -> Ended:
        probes = {
            "NINELIVES_WITNESS": str(self._folder / "witness.jsonl"),
            "NINELIVES_AUDIT": str(self._folder / "audit.jsonl"),
        }
        if isinstance(kill, Point):
            probes["NINELIVES_KILL_AT"] = kill.name
        else:
            probes["NINELIVES_COUNT"] = str(self._folder / f"counts-{words[0]}.json")
        return processes.ninelives(
            words,
            folder=self._work.folder,
            environment=probes,
            kill_after_seconds=self._pace.seconds(kill) if isinstance(kill, Moment) else None,
            timeout_seconds=self._timeout_seconds,
        )

    def look(self, outcome: Outcome) -> None:
        """Gather both records: the journal from the store, and what the witness saw."""
        try:
            outcome.reading = asyncio.run(clients.read(self.store, self.run))
        except errors.NineLivesError as error:
            outcome.unreadable = str(error)
        outcome.report = projection.fold(outcome.reading.late)
        acts = self._lines("witness.jsonl")
        outcome.sent = [act["name"] for act in acts if act["kind"] == "effect"]
        outcome.delivered = [act["name"] for act in acts if act["kind"] == "delivery"]
        outcome.requests = sum(act["kind"] == "model" for act in acts)
        answers = [act["name"].rsplit(":", 2) for act in acts if act["kind"] == "answer"]
        outcome.billed = {int(hold): int(tokens) for _, hold, tokens in answers}
        outcome.unrecorded = self._lines("audit.jsonl")
        for counts in self._folder.glob("counts-*.json"):
            for boundary, count in json.loads(counts.read_text()).items():
                outcome.counts[boundary] = max(count, outcome.counts.get(boundary, 0))

    def _lines(self, name: str) -> list[dict[str, str]]:
        path = self._folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
