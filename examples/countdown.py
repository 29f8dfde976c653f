"""A countdown agent: for each number a model writes a checklist item, and somebody is notified.

    ninelives run examples/countdown.py:countdown launch-1 --input 20

Kill it where you like, and resume it: `ninelives resume launch-1`. It reads from the environment

    MODEL                    a model string; `scripted` is the built-in one, and the default when
                             no Ollama answers (OLLAMA_URL, OLLAMA_MODEL)
    TOKEN_BUDGET             40000; DEADLINE_SECONDS 30; RECORD=superstep for the coarse mode
    NOTIFY_URL, NOTIFY_FILE  where notifications go (a file `notifications.jsonl` by default)
    CRASH_AT_STEP, CRASH_IN_EFFECT_AT_STEP, CRASH_IN_MODEL_AT_STEP, STALL_AT_STEP
                             trouble, only in the process that admits the run
    MISSING_USAGE_AT_STEP    the scripted model reports no usage at that step
    SCRIPTED_DELAY_SECONDS, SCRIPTED_LOG
                             how long the scripted model takes; where it counts its requests

RECORD, the resolved MODEL and TOKEN_BUDGET are fixed when the run is admitted.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from ninelives import (
    Absent,
    Applied,
    Budget,
    CannotTell,
    Executor,
    RunSettings,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)
from ninelives.adapters import ollama
from ninelives.durable import models
from ninelives.durable.models import Model, ModelReply, ModelRequest
from ninelives.testing.scripted import ScriptedModel

STALL_SECONDS = 60.0
RESERVE_TOKENS = 400


@dataclass
class Tick:
    """The number that is next."""

    step: int


@dataclass
class WorkItem:
    """The number that is to be worked on."""

    step: int


class Planner(Executor):
    """Decides what is next: another item, or liftoff."""

    @handler
    async def begin(self, start: int, ctx: WorkflowContext[WorkItem, str]) -> None:
        await self.plan(Tick(start), ctx)

    @handler
    async def plan(self, tick: Tick, ctx: WorkflowContext[WorkItem, str]) -> None:
        if tick.step <= 0:
            await ctx.yield_output("0: liftoff")
        else:
            await ctx.send_message(WorkItem(tick.step))


class Worker(Executor):
    """Asks a model for a line, notifies, and reports."""

    @handler
    async def work(self, item: WorkItem, ctx: WorkflowContext[Tick, str]) -> None:
        trouble = Trouble(item.step, armed=ctx.incarnation == 1)
        line = await ctx.model(
            model(str(ctx.settings["model"]), trouble),
            f"Checklist item {item.step}.",
            deadline_seconds=float(os.environ.get("DEADLINE_SECONDS", "30")),
            reserve_tokens=RESERVE_TOKENS,
        )
        await ctx.effect(
            trouble.notify,
            line,
            key=f"step:{item.step}",
            reconcile=was_notified,
            idempotent_downstream="NOTIFY_URL" in os.environ,  # that receiver deduplicates
        )
        trouble.strike("CRASH_AT_STEP")
        await ctx.yield_output(f"{item.step}: {line}")
        await ctx.send_message(Tick(item.step - 1))


# -- the outside world ----------------------------------------------------------------------


def notify(text: str, *, key: str) -> str:
    """Tell the world, once per key as far as the receiver deduplicates."""
    url = os.environ.get("NOTIFY_URL")
    if url:
        headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
        body = json.dumps({"text": text}).encode()
        request = urllib.request.Request(url, body, headers, method="POST")
        with urllib.request.urlopen(request, timeout=30):
            return key
    line = json.dumps({"key": key, "text": text, "pid": os.getpid()}) + "\n"
    file = os.open(notify_file(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(file, line.encode())
        os.fsync(file)
    finally:
        os.close(file)
    return key


def was_notified(key: str) -> Applied | Absent | CannotTell:
    """Ask the world about a key."""
    url = os.environ.get("NOTIFY_URL")
    if url:
        return asked(url, key)
    path = notify_file()
    lines = path.read_text().splitlines() if path.exists() else []
    if any(json.loads(line)["key"] == key for line in lines):
        return Applied(key)
    return Absent(final=True)  # a line that a dead process did not write will never come


def asked(url: str, key: str) -> Applied | Absent | CannotTell:
    """What the receiver at NOTIFY_URL says of a key."""
    separator = "&" if "?" in url else "?"
    try:
        with urllib.request.urlopen(f"{url}{separator}key={urllib.parse.quote(key)}", timeout=30):
            return Applied(key)
    except urllib.error.HTTPError as error:
        error.close()
        return Absent() if error.code == 404 else CannotTell(f"it answered {error.code}")
    except OSError as error:
        return CannotTell(str(error))


def notify_file() -> Path:
    return Path(os.environ.get("NOTIFY_FILE", "notifications.jsonl"))


# -- trouble on demand ------------------------------------------------------------------------


class Trouble:
    """What is to go wrong at this step, if this is the process that admitted the run."""

    def __init__(self, step: int, *, armed: bool) -> None:
        self.step = step
        self.armed = armed

    def strikes(self, name: str) -> bool:
        return self.armed and os.environ.get(name) == str(self.step)

    def strike(self, name: str) -> None:
        if self.strikes(name):
            os.kill(os.getpid(), signal.SIGKILL)

    def notify(self, text: str, *, key: str) -> str:
        sent = notify(text, key=key)
        self.strike("CRASH_IN_EFFECT_AT_STEP")
        return sent


class DyingModel:
    """A model during whose request the process dies."""

    def __init__(self, inner: Model) -> None:
        self.name = inner.name
        self.inner = inner

    async def request(self, request: ModelRequest) -> ModelReply:
        under_way = asyncio.ensure_future(self.inner.request(request))
        await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGKILL)
        return await under_way


# -- what holds for the whole run -------------------------------------------------------------


def model(name: str, trouble: Trouble) -> Model:
    """The model behind the name that was fixed at admission, with this step's trouble."""
    if name.partition(":")[0] != "scripted":
        found = models.resolve(name)
    else:
        found = ScriptedModel(
            name,
            delay_seconds=float(os.environ.get("SCRIPTED_DELAY_SECONDS", "0")),
            log=os.environ.get("SCRIPTED_LOG"),
            missing_usage=os.environ.get("MISSING_USAGE_AT_STEP") == str(trouble.step),
            stall_seconds=STALL_SECONDS if trouble.strikes("STALL_AT_STEP") else 0.0,
        )
    return DyingModel(found) if trouble.strikes("CRASH_IN_MODEL_AT_STEP") else found


def chosen_model() -> str:
    """MODEL, else an Ollama that answers, else the scripted one; says which."""
    given = os.environ.get("MODEL")
    if given:
        return given
    address = ollama.url()
    if not ollama.ollama_answers(address):
        print(f"no Ollama answers at {address}: using the scripted model", file=sys.stderr)
        return "scripted"
    name = f"ollama:{os.environ.get('OLLAMA_MODEL', 'llama3.2')}"
    models.resolve(name)  # an Ollama that answers is meant: say what is missing to use it
    print(f"using {name} at {address}", file=sys.stderr)
    return name


def settings() -> RunSettings:
    """Asked once, when a run is admitted."""
    return RunSettings(
        record="superstep" if os.environ.get("RECORD") == "superstep" else "operation",
        budget=Budget(tokens=int(os.environ.get("TOKEN_BUDGET", "40000"))),
        values={"model": chosen_model()},
    )


planner, worker = Planner(id="planner"), Worker(id="worker")
countdown = (
    WorkflowBuilder(name="countdown", start_executor=planner, settings=settings)
    .add_edge(planner, worker)
    .add_edge(worker, planner)
    .build()
)
