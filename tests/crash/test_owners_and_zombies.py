"""Two processes and one run: one owner, and a zombie that wakes writes nothing."""

from __future__ import annotations

import asyncio
import json
import pathlib
import signal
import subprocess
import sys

import pytest

from ninelives import errors
from ninelives.engine.runtime import Runtime
from ninelives.ids import RunId

HANGS = """
import asyncio, sys, threading
from typing_extensions import Never
from ninelives.durable.context import WorkflowContext
from ninelives.engine.runtime import Runtime
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.functions import executor

def node(value: int, ctx: WorkflowContext[Never, str]) -> None: ...

async def wait(value: int, ctx: WorkflowContext[Never, str]) -> None:
    print("handling", flush=True)
    await ctx.step(sys.stdin.readline, name="line")
    await ctx.yield_output("after")

workflow = WorkflowBuilder(name="hangs", start_executor=executor(id="wait")(wait)).build()

async def main() -> None:
    async with Runtime(sys.argv[1]) as runtime:
        run = await runtime.start(workflow, 1, run_id="r")
        print(await run.wait(), flush=True)

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.fixture
def script(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "hangs.py"
    path.write_text(HANGS)
    return path


def start(script: pathlib.Path, store: str) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, str(script), store],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "handling\n"
    return child


def test_a_second_resume_is_told_who_owns_the_run(
    tmp_path: pathlib.Path, script: pathlib.Path
) -> None:
    store = f"sqlite:///{tmp_path}/a.db"
    sys.path.insert(0, str(script.parent))
    import hangs  # type: ignore[import-not-found]

    async def resume() -> None:
        async with Runtime(store) as runtime:
            await runtime.resume("r", hangs.workflow)

    with start(script, store) as child:
        with pytest.raises(errors.RunOwned) as caught:
            asyncio.run(resume())
        child.kill()
    assert caught.value.pid == child.pid


def test_a_stopped_owner_that_wakes_after_a_take_over_writes_nothing(
    tmp_path: pathlib.Path, script: pathlib.Path
) -> None:
    store = f"sqlite:///{tmp_path}/a.db"
    sys.path.insert(0, str(script.parent))
    import hangs

    async def take_over() -> int:
        async with Runtime(store) as runtime:
            with pytest.raises(errors.RunOwned):  # stopped is alive
                await runtime.resume("r", hangs.workflow)
            run = await runtime.resume("r", hangs.workflow, take_over=True)
            assert run.owned_here
        return await seq()

    async def seq() -> int:
        async with Runtime(store) as runtime:
            return (await runtime.store.run(RunId("r"))).seq

    with start(script, store) as child:
        child.send_signal(signal.SIGSTOP)
        before = asyncio.run(take_over())
        child.send_signal(signal.SIGCONT)
        _, err = child.communicate("go on\n", timeout=30)
    assert child.returncode != 0
    assert "StaleEpoch" in err
    assert asyncio.run(seq()) == before


BUSY = """
import asyncio, json, sys, time
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.functions import executor
from ninelives.durable.context import WorkflowContext
from ninelives.engine.runtime import Runtime

async def work(value: int, ctx: WorkflowContext[int, int]) -> None:
    await ctx.send_message(value + 1)

node = executor(id="work")(work)
workflow = WorkflowBuilder(name="busy", start_executor=node).add_edge(node, node).build()

async def main() -> None:
    async with Runtime(sys.argv[1]) as runtime:
        print("ready", flush=True)
        sys.stdin.readline()
        run = await runtime.start(workflow, 0, run_id=sys.argv[2])
        await asyncio.sleep(2.0)
        runtime.request_stop()
        await run.wait()
        print((await runtime.store.run(run.id)).superstep)

asyncio.run(main())
"""


@pytest.mark.timeout(120)
def test_four_processes_that_write_to_one_file_all_get_their_share(
    tmp_path: pathlib.Path,
) -> None:
    script = tmp_path / "busy.py"
    script.write_text(BUSY)
    children = [
        subprocess.Popen(
            [sys.executable, str(script), f"sqlite:///{tmp_path}/a.db", f"r{n}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(4)
    ]
    for child in children:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    done = []
    for child in children:
        with child:
            out, err = child.communicate(timeout=60)
            assert child.returncode == 0, err
            done.append(int(out))
    share = sum(done) / 4
    assert min(done) >= share / 2, json.dumps(done)


STOPS = BUSY.replace("import asyncio, json", "import os, signal, asyncio, json").replace(
    "asyncio.run(main())",
    """from ninelives import faults
def stop(boundary):
    if boundary is faults.Boundary.COMMIT_BEFORE:
        print("stopping", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(60)  # the signal may reach another thread first
faults.observe(stop)
asyncio.run(main())""",
)


def test_a_process_that_is_stopped_inside_a_commit_is_named_to_those_who_wait(
    tmp_path: pathlib.Path,
) -> None:
    def start(name: str, text: str) -> subprocess.Popen[str]:
        (tmp_path / f"{name}.py").write_text(text)
        child = subprocess.Popen(
            [sys.executable, str(tmp_path / f"{name}.py"), f"sqlite:///{tmp_path}/a.db", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write("go\n")
        child.stdin.flush()
        assert child.stdout.readline() == "ready\n"
        return child

    with start("stops", STOPS) as stopped:
        assert stopped.stdout is not None
        assert stopped.stdout.readline() == "stopping\n"
        with start("waits", BUSY) as waiting:
            assert waiting.stderr is not None
            said = waiting.stderr.readline()
            stopped.kill()
            out, err = waiting.communicate(timeout=30)
            assert waiting.returncode == 0, err
    assert f"process {stopped.pid} holds the write lock" in said
    assert int(out) > 0
