"""What every command shares: the store's option, exit codes, errors, lines of output."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import re
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final, NoReturn, ParamSpec, TypeVar

import click
import msgspec
from click.core import ParameterSource

from ninelives import clock, codec, errors
from ninelives.engine.runner import Status
from ninelives.engine.runtime import STORE_DEFAULT
from ninelives.ids import Seq

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")

EXIT_CODES: Final = {
    "completed": 0,
    "running": 0,
    "failed": 1,
    "interrupted": 1,
    "parked": 3,
    "waiting": 4,
    "cancelled": 5,
}


def store_option(function: F) -> F:
    """`--store URL`, then NINELIVES_STORE, then a file in the working directory."""
    decorate = click.option(
        "--store",
        default=lambda: os.environ.get("NINELIVES_STORE", STORE_DEFAULT),
        show_default=f"$NINELIVES_STORE, else {STORE_DEFAULT}",
        metavar="URL",
        help="Where the journals are: sqlite:///file.db or sqlite:////absolute/file.db.",
    )
    return decorate(function)


def json_option(function: F) -> F:
    """`--json`: one object per line, for machines."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")(
        function
    )


def asynchronous(function: Callable[P, Coroutine[None, None, int]]) -> Callable[P, None]:
    """Run a command's coroutine; its result is the exit code, its errors are lines."""

    @functools.wraps(function)
    def command(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            sys.exit(asyncio.run(function(*args, **kwargs)))
        except errors.NineLivesError as error:
            fail(error)
        except BrokenPipeError:
            # The reader has gone. Python would flush stdout once more at its exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(141)

    return command


def fail(error: errors.NineLivesError) -> NoReturn:
    """Say what went wrong, with its code, and leave with 2 if nothing was changed, else 1."""
    complain(f"error: {error.code}: {error}")
    sys.exit(2 if isinstance(error, errors.UsageError) else 1)


def complain(text: str) -> None:
    """A line for the person, not for the pipe."""
    print(text, file=sys.stderr, flush=True)


def say(text: str) -> None:
    """A line of the product, flushed."""
    print(text, flush=True)


def say_json(value: object) -> None:
    say(json.dumps(value, ensure_ascii=False))


def say_output(seq: Seq, raw: msgspec.Raw, *, as_json: bool) -> None:
    """An output as a line: text as it is, other values as JSON."""
    value = codec.plain(raw)
    if as_json:
        say_json({"output": value, "seq": seq})
    else:
        say(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def leave(run_id: str, status: Status, *, signalled: int = 0) -> int:
    """Say why a run is not completed and what to do next; returns the exit code."""
    match status.state:
        case "parked":
            complain(f"parked: {status.code}: {status.reason}")
            complain(f"next: {next_step(run_id, status)}")
        case "failed":
            complain(f"failed: {status.code}: {status.reason}")
            complain(f"next: {next_step(run_id, status)}")
        case "interrupted":
            complain(f"stopped; go on with {command('resume', run_id)}")
        case _:
            pass
    return signalled or EXIT_CODES[status.state]


def command(*words: str) -> str:
    """A command to type next, with the store that was named for this one."""
    context = click.get_current_context(silent=True)
    source = context.get_parameter_source("store") if context is not None else None
    store = ""
    if context is not None and source is ParameterSource.COMMANDLINE:
        store = f" --store {context.params['store']}"
    return f"`ninelives {' '.join(words)}{store}`"


def next_step(run_id: str, status: Status) -> str:
    """What a person on call does about a run that has failed or parked."""
    resume = command("resume", run_id)
    match status.code if status.state == "parked" else "Failed":
        case "Failed":
            traceback = command("show", run_id, "--traceback")
            return f"mend the cause ({traceback} shows where), then {resume}"
        case "BudgetHalted" | "BudgetExceeded" | "ModelUnpriced" as code:
            return f"{_about_budget(run_id, code, status.reason)}, then {resume}"
        case "OutcomeUnknown" | "DeadlineExceeded":
            return (
                f"find out what happened; {command('show', run_id)} says how to tell it; "
                f"then {resume} (which alone asks the other side again)"
            )
        case "Divergence":
            return f"restore the code that recorded the run, then {resume}"
        case "Stuck":
            return f"find what kills it; {command('resume', run_id, '--force')} tries once more"
        case _:
            return f"{resume} tries again"


def _about_budget(run_id: str, code: str, reason: str) -> str:
    """What lets the budget that a refusal names (else the run's own) admit calls again."""
    found = re.match(r"budget (['\"])(.+?)\1", reason)
    name = found.group(2) if found else f"run:{run_id}"
    shown = command("budget", "show", name)
    if code == "ModelUnpriced":
        return "give the model a price (0 if it is free)"
    if code == "BudgetExceeded":
        return f"{shown}; raise it ({command('budget', 'set', name, *_limit_of(reason))})"
    if name != f"run:{run_id}":
        return f"{shown}; {command('budget', 'clear-halt', name)} when it may go on"
    return f"{shown} says what is not known; {command('clear-halt', run_id)}"


def _limit_of(reason: str) -> list[str]:
    """The options that raise the limit which a refusal has met."""
    windows = (("day", " today,"), ("month", " this month,"))
    per = [word for name, said in windows if said in reason for word in ("--per", name)]
    return [*per, *(["--dollars", "X"] if " of $" in reason else ["--tokens", "N"])]


def ago(at_ms: int) -> str:
    """How long ago a label is."""
    seconds = max(0, (clock.now_ms() - at_ms) // 1000)
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
