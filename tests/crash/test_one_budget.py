"""Many real processes draw on one budget at the same moment."""

from __future__ import annotations

import contextlib
import pathlib
import random
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ninelives.engine.runtime import Runtime

SPENDER = pathlib.Path(__file__).with_name("spender.py")


@contextlib.contextmanager
def spenders(
    url: str, log: pathlib.Path, count: int, calls: int
) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that stand ready and have not begun."""
    started = [
        subprocess.Popen(
            [sys.executable, str(SPENDER), url, f"r{number}", str(log), str(calls)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    try:
        for each in started:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        yield started
    finally:
        for each in started:
            each.kill()
            each.communicate()


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


async def limited(url: str, tokens: int) -> None:
    async with Runtime(url) as runtime:
        await runtime.budgets.set("tenant:acme", tokens=tokens)


@pytest.mark.timeout(180)
async def test_fifty_processes_on_one_budget_admit_exactly_what_fits(
    tmp_path: pathlib.Path,
) -> None:
    url, log = f"sqlite:///{tmp_path}/a.db", tmp_path / "requests.jsonl"
    await limited(url, 700)
    with spenders(url, log, 50, 1) as processes:
        for each in processes:
            go(each)
        ends = [each.communicate(timeout=120)[0].strip() for each in processes]
    # A call that has settled makes room: what is admitted depends on when, what is over never is.
    requests = len(log.read_text().splitlines())
    assert ends.count("completed") == requests
    assert ends.count("parked BudgetExceeded") == 50 - requests
    assert 7 <= requests <= (700 - 100) // 30 + 1
    async with Runtime(url) as runtime:
        spent = (await runtime.budgets.show("tenant:acme")).total
        assert (spent.calls, spent.settled, spent.held) == (requests, 30 * requests, 0)
        assert not await runtime.store.check()


@pytest.mark.timeout(180)
async def test_processes_that_are_killed_leave_what_they_reserved_counted(
    tmp_path: pathlib.Path,
) -> None:
    url, log = f"sqlite:///{tmp_path}/a.db", tmp_path / "requests.jsonl"
    await limited(url, 2000)
    with spenders(url, log, 12, 5) as processes:
        for each in processes:
            go(each)
        chosen = random.Random(7).sample(processes, 8)
        for each in chosen:
            while not log.exists() or len(log.read_text().splitlines()) < 12:
                pass
            each.send_signal(signal.SIGKILL)
        for each in processes:
            each.communicate(timeout=120)
    requests = len(log.read_text().splitlines())
    async with Runtime(url) as runtime:
        spent = (await runtime.budgets.show("tenant:acme")).total
        holds = await runtime.budgets.open_holds("tenant:acme")
        assert spent.committed <= 2000
        assert spent.held == 100 * len(holds)
        assert len(holds) <= 8
        assert not any(each.under_way for each in holds)
        # The provider's count, against the ledger's: settled ones and those that are held.
        assert spent.settled // 30 <= requests <= spent.settled // 30 + len(holds)
        assert spent.calls == spent.settled // 30 + len(holds)
        assert not await runtime.store.check()
