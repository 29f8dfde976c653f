"""What durability costs here: ninelives against this disk's bare fsynced commits, in one run.

    python benchmarks/throughput.py [--folder FOLDER] [--json]

R is the number of bare commits a second: SQLite in WAL mode, synchronous=FULL, one 300-byte row
each, one connection. The other figures are given as they are and as multiples of R. The folder
(default: the working directory) decides which disk is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pathlib
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable

import apsw

from ninelives import Executor, Runtime, WorkflowBuilder, WorkflowContext, handler
from ninelives.durable.models import ModelReply, ModelRequest, Usage

SUPERSTEPS, STEPS, RUNS, EACH, CALLS, COMMITS = 2000, 2000, 100, 20, 500, 3000


class Counter(Executor):
    """One message, one state key and one output per superstep."""

    @handler
    async def count(self, number: int, ctx: WorkflowContext[int, str]) -> None:
        ctx.local.set("number", number)
        await ctx.yield_output(str(number))
        if number > 1:
            await ctx.send_message(number - 1)


class Steps(Executor):
    """Distinct durable steps, one after the other."""

    @handler
    async def work(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        for n in range(number):
            await ctx.step(double, n)


async def double(number: int) -> str:
    return f"the result of {number}"


class Calls(Executor):
    """Model calls that are answered at once."""

    @handler
    async def ask(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        for n in range(number):
            await ctx.model(AtOnce(), f"question {n}", reserve_tokens=1)


class AtOnce:
    name = "at-once"

    async def request(self, request: ModelRequest) -> ModelReply:  # noqa: ARG002 - the protocol's
        return ModelReply(text="yes", usage=Usage(input_tokens=1, output_tokens=1))


def bare_commits(folder: str) -> float:
    """R."""
    connection = apsw.Connection(f"{folder}/bare.db")
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "FULL")
    connection.execute("CREATE TABLE rows (data BLOB)")
    began = time.perf_counter()
    for _ in range(COMMITS):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows VALUES (?)", (b"x" * 300,))
        connection.execute("COMMIT")
    rate = COMMITS / (time.perf_counter() - began)
    connection.close()
    return rate


async def rate(folder: str, executor: Executor, number: int, *, runs: int, work: int) -> float:
    """Units of work per second over `runs` runs at once."""
    workflow = WorkflowBuilder(name="benchmark", start_executor=executor)
    built = workflow.add_edge(executor, executor).build()
    async with Runtime(f"sqlite:///{folder}/{executor.id}-{runs}.db") as runtime:
        began = time.perf_counter()
        started = [await runtime.start(built, number) for _ in range(runs)]
        for run in started:
            assert (await run.wait()).state == "completed"
        return work / (time.perf_counter() - began)


def measure(folder: str) -> dict[str, float]:
    """All figures, in one run: R before and after."""
    many = RUNS * EACH
    figures: dict[str, Callable[[], Awaitable[float]]] = {
        "one run: supersteps": lambda: rate(
            folder, Counter(id="a"), SUPERSTEPS, runs=1, work=SUPERSTEPS
        ),
        "one run: steps": lambda: rate(folder, Steps(id="b"), STEPS, runs=1, work=STEPS),
        "one run: model calls": lambda: rate(folder, Calls(id="c"), CALLS, runs=1, work=CALLS),
        "100 runs: supersteps": lambda: rate(folder, Counter(id="d"), EACH, runs=RUNS, work=many),
        "100 runs: steps": lambda: rate(folder, Steps(id="e"), EACH, runs=RUNS, work=many),
    }
    before = bare_commits(folder)
    measured = {name: asyncio.run(figure()) for name, figure in figures.items()}  # type: ignore[arg-type]
    pathlib.Path(folder, "bare.db").unlink()
    return {"R: bare commits": statistics.mean([before, bare_commits(folder)]), **measured}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default=".")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measured = measure(folder)
    base = measured["R: bare commits"]
    if options.json:
        print(
            json.dumps({name: {"per_second": v, "of_R": v / base} for name, v in measured.items()})
        )
        return
    for name, value in measured.items():
        print(f"{name:<24} {value:>10,.0f} /s   {value / base:>5.2f} R")


if __name__ == "__main__":
    main()
