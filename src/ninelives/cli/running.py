"""`run` and `resume`: work on a run in this process and print its outputs as they commit."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import signal
import sys
from collections.abc import Coroutine, Generator

import click
import msgspec

from ninelives import codec, errors
from ninelives.cli import terminal
from ninelives.crashlab import probe
from ninelives.engine import target as targets
from ninelives.engine.run import Run
from ninelives.engine.runner import Status
from ninelives.engine.runtime import Runtime
from ninelives.engine.superstep import OnOutput
from ninelives.graph import matching
from ninelives.graph.workflow import Workflow
from ninelives.ids import RunId, Seq
from ninelives.log import events


@click.command()
@click.argument("target")
@click.argument("run_id")
@click.option("--input", "text", metavar="JSON", help="The input, for the start executor's types.")
@terminal.json_option
@terminal.store_option
@terminal.asynchronous
async def run(target: str, run_id: str, text: str | None, as_json: bool, store: str) -> int:  # noqa: FBT001
    """Start the run RUN_ID of the workflow TARGET (module:attribute or path.py:attribute).

    A RUN_ID that is in use for the same work is taken up where it was interrupted, followed if
    another process works on it, and shown if it has ended.
    """
    probe.arm(os.environ)
    where = targets.parse(target, folder=pathlib.Path.cwd())
    workflow = targets.load(where)
    value = _input(workflow, text)
    async with Runtime(store, on_output=_printer(as_json=as_json)) as runtime:
        with _signals(runtime) as received:
            found = await runtime.start(workflow, value, run_id=run_id, target=where)
            return await _follow(found, received, as_json=as_json)


@click.command()
@click.argument("run_id")
@click.option("--take-over", is_flag=True, help="Take it from a living process, e.g. a hung one.")
@click.option("--force", is_flag=True, help="Try a stuck run once more.")
@click.option("--target", help="Where the workflow lives now, if it has moved.")
@terminal.json_option
@terminal.store_option
@terminal.asynchronous
async def resume(
    run_id: str,
    take_over: bool,  # noqa: FBT001
    force: bool,  # noqa: FBT001
    target: str | None,
    as_json: bool,  # noqa: FBT001
    store: str,
) -> int:
    """Take up RUN_ID from its last checkpoint. A failed or parked run is tried again."""
    probe.arm(os.environ)
    where = None if target is None else targets.parse(target, folder=pathlib.Path.cwd())
    printer = _printer(as_json=as_json)
    async with Runtime(store, create=False, on_output=printer) as runtime:
        with _signals(runtime) as received:
            found = await runtime.resume(run_id, take_over=take_over, force=force, target=where)
            return await _follow(found, received, as_json=as_json)


def _input(workflow: Workflow, text: str | None) -> object:
    if text is None:
        wanted = ", ".join(matching.spell(each) for each in workflow.input_types)
        why = f"no --input was given; handled: {wanted} (as JSON, a text in its quotes)"
        if None not in workflow.input_types and type(None) not in workflow.input_types:
            raise errors.InputInvalid(workflow.start_id, why)
        return None
    try:
        return codec.from_json(text, workflow.input_types)
    except ValueError as error:
        raise errors.InputInvalid(workflow.start_id, str(error)) from None


async def _follow(run: Run, received: _Received, *, as_json: bool) -> int:
    """Print outputs from where this process begins, until nobody works on the run."""
    for hold in run.orphaned_holds:
        terminal.complain(
            f"orphaned hold: {hold.tokens} tokens of executor {hold.executor!r}, superstep "
            f"{hold.superstep} (event {hold.seq}): its process died; it stays counted"
        )
    if run.owned_here:
        status = await _progress(run) if sys.stderr.isatty() else await run.wait()
        signalled = received.exit_code if status.state == "interrupted" else 0
        return terminal.leave(run.id, status, signalled=signalled)
    if await received.before(_print_outputs(run, as_json=as_json)):
        terminal.complain(f"no longer following run {run.id!r}; it is not stopped by this")
        return received.exit_code
    return terminal.leave(run.id, await run.status())


def _printer(*, as_json: bool) -> OnOutput:
    """Prints the outputs of a run that is worked on here, each before the next superstep."""

    def show(_run: RunId, seq: Seq, value: msgspec.Raw) -> None:
        if sys.stderr.isatty():
            _clear_line()
        terminal.say_output(seq, value, as_json=as_json)

    return show


async def _print_outputs(run: Run, *, as_json: bool) -> None:
    """Print the outputs of a run that others work on, or nobody any more."""
    async for event in run.watch(after=run.seq_at_start):
        if isinstance(event.fact, events.Output):
            terminal.say_output(event.seq, event.fact.value, as_json=as_json)


async def _progress(run: Run) -> Status:
    """Keep one line on the terminal that says where the run is."""
    async for event in run.watch(after=run.seq_at_start):
        sys.stderr.write(f"\r\x1b[K{run.id}: superstep {event.superstep}, {event.kind} ")
        sys.stderr.flush()
    _clear_line()
    return await run.wait()


def _clear_line() -> None:
    sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()


class _Received:
    """The signal that asked this process to stop, if one did; `reading`: nothing is under way."""

    def __init__(self) -> None:
        self.number = 0
        self.reading = False
        self._arrived = asyncio.Event()

    @property
    def exit_code(self) -> int:
        return 128 + self.number if self.number else 0

    def note(self, number: int) -> None:
        self.number = number
        self._arrived.set()

    async def before(self, reading: Coroutine[None, None, None]) -> bool:
        """Read until the end or a signal, whichever is first; whether it was a signal.

        Only for what records nothing: the reading is cancelled wherever it is.
        """
        self.reading = True
        task = asyncio.ensure_future(reading)
        arrived = asyncio.ensure_future(self._arrived.wait())
        try:
            await asyncio.wait({task, arrived}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
                return False
            return True
        finally:
            task.cancel()
            arrived.cancel()
            await asyncio.gather(task, arrived, return_exceptions=True)


@contextlib.contextmanager
def _signals(runtime: Runtime) -> Generator[_Received]:
    """The first SIGINT or SIGTERM stops in an orderly way, the second at once."""
    loop = asyncio.get_running_loop()
    received = _Received()

    def stop(number: int) -> None:
        if received.number:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        received.note(number)
        if not received.reading:
            terminal.complain("stopping after the operation under way; once more to stop at once")
        runtime.request_stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    try:
        yield received
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
