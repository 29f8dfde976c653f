"""One scenario: real processes run a workflow, one of them is killed, others take it up."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from ninelives import codec, errors
from ninelives.engine.runtime import Runtime
from ninelives.log import invariants, projection
from ninelives.log.events import Event, Output
from ninelives.log.projection import Report

RESUMES_MAX = 10


@dataclass(frozen=True, slots=True)
class Work:
    """What is put to the test: a target and its input, in a folder.

    `campaign` begins the ids of its runs: the outside world has never heard of their keys.
    """

    target: str
    text: str | None
    folder: pathlib.Path
    campaign: str


@dataclass(frozen=True, slots=True)
class Point:
    """Where the first process is killed; no boundary = nowhere."""

    boundary: str = ""
    arrival: int = 1

    @property
    def name(self) -> str:
        return f"{self.boundary}:{self.arrival}" if self.boundary else "clean"

    @property
    def slug(self) -> str:
        """The name as a part of ids and folders."""
        return self.name.replace(":", "-")


@dataclass(slots=True)
class Outcome:
    """What was seen of a scenario, from the journal and from the witness beside it."""

    point: Point
    command: str
    codes: list[int] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    errors: str = ""
    outputs: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    resumed: list[Event] = field(default_factory=list)
    report: Report = field(default_factory=Report)
    violations: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    requests: int = 0
    unrecorded: list[dict[str, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def play(work: Work, point: Point, folder: pathlib.Path, *, timeout_seconds: float) -> Outcome:
    """Run to the end: a first process that is killed at `point`, then one after the other."""
    stage = _Stage(work, f"{work.campaign}-{point.slug}", folder, timeout_seconds)
    outcome = Outcome(point, stage.repeat_command(point))
    armed = {"NINELIVES_KILL_AT": point.name} if point.boundary else {}
    given = [] if work.text is None else ["--input", work.text]
    stage.work(outcome, ["run", work.target, stage.run, *given], armed)
    while outcome.codes[-1] < 0 and len(outcome.codes) <= RESUMES_MAX:
        stage.work(outcome, ["run", work.target, stage.run, *given], {})
    stage.look(outcome)
    return outcome


class _Stage:
    """A store, a witness and an audit file of their own, and processes that use them."""

    def __init__(self, work: Work, run: str, folder: pathlib.Path, timeout_seconds: float) -> None:
        self._work = work
        self.run = run
        self._folder = folder
        self._timeout_seconds = timeout_seconds
        self._store = f"sqlite:///{folder}/durable.db"

    def repeat_command(self, point: Point) -> str:
        given = "" if self._work.text is None else f" --input '{self._work.text}'"
        killed = f"NINELIVES_KILL_AT={point.name} " if point.boundary else ""
        return f"{killed}ninelives run {self._work.target} {self.run}{given}"

    def work(self, outcome: Outcome, words: list[str], extra: Mapping[str, str]) -> None:
        done = self._ninelives(words, extra)
        outcome.codes.append(done.returncode)
        outcome.printed += done.stdout.splitlines()
        outcome.errors += done.stderr

    def look(self, outcome: Outcome) -> None:
        """Gather both records: the journal from the store, and what the witness saw."""
        try:
            asyncio.run(self._read(outcome))
        except errors.NineLivesError as error:
            outcome.errors += str(error)
        acts = self._lines("witness.jsonl")
        outcome.sent = [act["name"] for act in acts if act["kind"] == "effect"]
        outcome.requests = sum(act["kind"] == "model" for act in acts)
        outcome.unrecorded = self._lines("audit.jsonl")
        counts = self._folder / "counts.json"
        outcome.counts = json.loads(counts.read_text()) if counts.exists() else {}

    async def _read(self, outcome: Outcome) -> None:
        """What three clients see: one that comes late, one that comes back, one that reports."""
        async with Runtime(self._store, create=False) as runtime:
            run = await runtime.attach(self.run)
            outcome.outputs = [str(codec.plain(_value(e))) async for e in run.output_events()]
            outcome.events = [event async for event in run.recorded()]
            middle = len(outcome.events) // 2
            rest = [event async for event in run.watch(after=middle)]
            outcome.resumed = [*outcome.events[:middle], *rest]
            outcome.report = projection.fold(outcome.events)
            broken = [str(each) for each in invariants.check(outcome.events)]
            outcome.violations = [*broken, *await runtime.store.check()]

    def _ninelives(
        self, words: list[str], extra: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        probes = {
            "NINELIVES_WITNESS": str(self._folder / "witness.jsonl"),
            "NINELIVES_AUDIT": str(self._folder / "audit.jsonl"),
            "NINELIVES_COUNT": str(self._folder / "counts.json"),
        }
        if extra:
            del probes["NINELIVES_COUNT"]
        return subprocess.run(  # noqa: S603 - our own command line
            [sys.executable, "-m", "ninelives.cli", *words, "--store", self._store],
            cwd=self._work.folder,
            env={**os.environ, **probes, **extra},
            capture_output=True,
            text=True,
            timeout=self._timeout_seconds,
            check=False,
        )

    def _lines(self, name: str) -> list[dict[str, str]]:
        path = self._folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _value(event: Event) -> msgspec.Raw:
    assert isinstance(event.fact, Output)
    return event.fact.value
