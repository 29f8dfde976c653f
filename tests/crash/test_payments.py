"""Every trouble of a payment service, at every moment of death: never two payments per key."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

from support.payments import Service
from support.shell import Result, Shell

FLOW = """
import json, os, urllib.error, urllib.parse, urllib.request
from typing_extensions import Never
from ninelives import Absent, Applied, CannotTell
from ninelives import Executor, WorkflowBuilder, WorkflowContext, handler

URL = os.environ["PAYMENTS"]

def pay(amount, *, key):
    request = urllib.request.Request(f"{URL}/pay", b"{}", {"Idempotency-Key": key})
    with urllib.request.urlopen(request, timeout=1.5) as answer:
        return json.load(answer)

def paid(key):
    address = f"{URL}/pay?key={urllib.parse.quote(key)}"
    try:
        with urllib.request.urlopen(address, timeout=10) as found:
            return Applied(json.load(found))
    except urllib.error.HTTPError as error:
        error.close()
        return Absent() if error.code == 404 else CannotTell(str(error))

class Pays(Executor):
    @handler
    async def go(self, amount: int, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.effect(
            pay, amount, key="order",
            reconcile=paid if "RECONCILE" in os.environ else None,
            idempotent_downstream="DEDUPLICATES" in os.environ,
            deadline_seconds=0.3,
        )
        await ctx.yield_output("paid")

flow = WorkflowBuilder(name="pays", start_executor=Pays(id="pays")).build()
"""
TROUBLES = ["ok", "stall", "drop", "error_after", "error_before", "forget"]
DEATHS = ["", "effect_intended", "effect_done", "effect_recorded", "commit_after:2"]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service() as started:
        yield started


@pytest.fixture
def shell(tmp_path: pathlib.Path, service: Service) -> Shell:
    (tmp_path / "flow.py").write_text(FLOW)
    return Shell(tmp_path, {"PAYMENTS": service.url})


def drive(shell: Shell, death: str, key: str, **known: str) -> Result:
    """Run until it neither dies nor can go on by itself; a person resumes twice."""
    killed = {"NINELIVES_KILL_AT": death} if death else {}
    run = key.partition(":")[0]
    shell("run", "flow.py:flow", run, "--input", "1", **known, **killed)
    result = shell("resume", run, **known)
    return shell("resume", run, **known) if result.code in {1, 3} else result


@pytest.mark.parametrize("reconciled", [True, False], ids=["asked", "silent"])
@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_money_moves_once_or_a_person_decides(
    shell: Shell, service: Service, trouble: str, death: str, reconciled: bool
) -> None:
    run = f"{trouble}-{death.replace(':', '-')}-{reconciled}"
    key = f"{run}:order"
    known = {"RECONCILE": "1"} if reconciled else {}
    service.trouble(trouble)
    result = drive(shell, death, key, **known)
    assert service.count(key) <= 1
    if result.code == 3:
        assert "unknown" in result.err
        answer = "--applied" if service.count(key) else "--absent"
        service.trouble()
        assert shell("resolve", run, "order", answer).code == 0
        result = shell("resume", run, **known)
    ended = result.code == 0 or "is completed" in result.err
    assert ended, result
    assert service.count(key) == 1
    assert shell("outputs", run).lines == ["paid"]
    assert shell("verify").code == 0


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("trouble", ["ok", "drop", "error_after", "error_before"])
def test_a_service_that_deduplicates_needs_no_person(
    shell: Shell, service: Service, trouble: str, death: str
) -> None:
    run = f"{trouble}-{death.replace(':', '-')}-dedup"
    key = f"{run}:order"
    service.trouble(trouble)
    result = drive(shell, death, key, DEDUPLICATES="1")
    assert result.code == 0 or "is completed" in result.err, result
    assert service.count(key) == 1
