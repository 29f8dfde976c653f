"""A real process is killed with SIGKILL at each boundary, and the run ends as if it had not been.

Two records are held against each other: the journal, and an outside world in its own process.
"""

from __future__ import annotations

import ast
import asyncio
import json
import pathlib
import signal
import subprocess
import sys

import pytest

from ninelives.engine.runtime import Runtime
from ninelives.faults import Boundary
from ninelives.testing.world import World
from support import facts

VICTIM = pathlib.Path(__file__).with_name("victim.py")
SOURCES = pathlib.Path(__file__).parents[2] / "src" / "ninelives"
KEYS = {"r:n:2", "r:n:1", "r:left", "r:right"}
# Those of a relay and of transactions are reached, and died at, in test_relay.py and
# test_transactions.py.
ELSEWHERE = ("relay_", "transaction_")
OF_A_RUN = [each for each in Boundary if not each.value.startswith(ELSEWHERE)]
RECONCILED = {Boundary.RECONCILE_ANSWERED, Boundary.CLAIMED}


def victim(store: str, world: World, *armed: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(VICTIM), store, "r", world.url, *armed]
    return subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)


def finish(store: str, world: World) -> dict[str, object]:
    ended = victim(store, world)
    assert ended.returncode == 0, ended.stderr
    result: dict[str, object] = json.loads(ended.stdout)
    return result


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """The outputs of a run that nobody killed."""
    with World() as world:
        ended = finish(f"sqlite:///{tmp_path_factory.mktemp('clean')}/a.db", world)
    outputs = ended["outputs"]
    assert isinstance(outputs, list)
    assert len(outputs) == 3
    return outputs


async def tokens(store: str) -> tuple[int, int, int]:
    async with Runtime(store) as runtime:
        budget = await facts.spent(runtime.store)
        return budget.settled, budget.held, budget.unknown


@pytest.mark.parametrize("arrival", [1, 2, 5])
@pytest.mark.parametrize("boundary", OF_A_RUN, ids=lambda each: each.value)
def test_a_kill_at_a_boundary_changes_nothing_that_anybody_sees(
    tmp_path: pathlib.Path, boundary: Boundary, arrival: int, clean: list[object]
) -> None:
    store = f"sqlite:///{tmp_path}/a.db"
    with World() as world:
        if boundary in RECONCILED:
            killed = victim(store, world, Boundary.EFFECT_DONE.value, "1")
            assert killed.returncode == -signal.SIGKILL
        killed = victim(store, world, boundary.value, str(arrival))
        assert killed.returncode in {0, -signal.SIGKILL}, killed.stderr
        if arrival == 1:
            assert killed.returncode == -signal.SIGKILL, "the boundary was not reached"
        ended = finish(store, world)
        counts = world.counts()
    assert ended["state"] == "completed", ended
    assert ended["outputs"] == clean
    seen = ended["seen"]
    assert isinstance(seen, list)
    assert seen == list(range(1, len(seen) + 1))
    assert set(counts) == KEYS
    assert {entry.received for entry in counts.values()} == {1}
    settled, held, unknown = asyncio.run(tokens(store))
    assert (settled, unknown) == (60, 0)
    assert held in ({0, 400} if boundary.value.startswith(("model", "commit")) else {0})


def test_each_boundary_has_exactly_one_place_in_the_code() -> None:
    found: list[str] = []
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "faults.reach":
                found += [ast.unparse(argument).rpartition(".")[2] for argument in node.args]
    # A reply and its settlement are recorded by one of two commits: with a halt or without.
    assert sorted(found) == sorted([boundary.name for boundary in Boundary])
