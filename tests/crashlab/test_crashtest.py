"""The crash lab passes what survives, and catches what does not, in words of the customer."""

from __future__ import annotations

import json
import pathlib

import pytest

from ninelives.crashlab import campaign
from support.shell import Shell

HEAD = """
import os, socket, uuid
from typing_extensions import Never
from ninelives import Absent, Applied, Executor, WorkflowBuilder, WorkflowContext, handler

def mail(text, *, key):
    with open("mails.txt", "a") as file:
        file.write(key + "\\n")
    return key

def mailed(key):
    sent = os.path.exists("mails.txt") and key + "\\n" in open("mails.txt").read()
    return Applied(key) if sent else Absent(final=True)

class Works(Executor):
    @handler
    async def go(self, number: int, ctx: WorkflowContext[int, str]) -> None:
        line = await ctx.model("scripted", f"line {number}")
        {body}
        await ctx.yield_output(f"{number}: {line}")
        if number > 1:
            await ctx.send_message(number - 1)

node = Works(id="works")
flow = WorkflowBuilder(name="works", start_executor=node).add_edge(node, node).build()
"""
GOOD = "await ctx.effect(mail, line, key=f'n:{number}', reconcile=mailed)"


@pytest.fixture
def shell(tmp_path: pathlib.Path) -> Shell:
    return Shell(tmp_path, {})


def write(shell: Shell, body: str) -> None:
    (shell.folder / "flow.py").write_text(HEAD.replace("{body}", body))


@pytest.mark.timeout(120)
def test_a_sound_workflow_survives_every_kill(shell: Shell) -> None:
    write(shell, GOOD)
    result = shell("crashtest", "flow.py:flow", "--input", "1", "--json")
    document = json.loads(result.lines[-1])
    assert result.code == 0, result
    assert document["survived"]
    assert document["kills"] > 20
    assert document["failed"] == document["clean"] == []


def test_a_key_from_a_random_value_is_caught(shell: Shell) -> None:
    write(shell, "await ctx.effect(mail, line, key=str(uuid.uuid4()))")
    result = shell("crashtest", "flow.py:flow", "--input", "1", "--sample", "9")
    assert result.code == 1
    text = "\n".join(result.lines)
    assert "would have gone wrong" in text
    assert "Divergence" in text
    assert "again: NINELIVES_KILL_AT=" in text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("open('log.txt', 'a').close()", "opens 'log.txt' for writing"),
        ("mail(line, key='k')", "opens 'mails.txt' for writing"),
        (
            "s = socket.socket(); s.connect_ex(('127.0.0.1', 9)); s.close()",
            "connects to ('127.0.0.1', 9)",
        ),
        ("__import__('subprocess').run(['true'])", "starts 'true'"),
    ],
)
def test_an_act_outside_of_any_operation_is_caught_with_its_line(
    shell: Shell, body: str, words: str
) -> None:
    write(shell, body)
    result = shell("crashtest", "flow.py:flow", "--input", "1", "--sample", "1")
    assert result.code == 1
    text = "\n".join(result.lines)
    assert words in text
    assert "executor 'works'" in text
    assert "flow.py:" in text


def test_an_act_inside_an_operation_is_nobodys_business(shell: Shell) -> None:
    write(shell, GOOD)
    result = shell("crashtest", "flow.py:flow", "--input", "1", "--sample", "1")
    assert result.code == 0, result


def test_a_workflow_that_fails_by_itself_is_not_killed(shell: Shell) -> None:
    write(shell, "raise ValueError('broken')")
    result = shell("crashtest", "flow.py:flow", "--input", "1")
    assert result.code == 1
    assert "without any kill" in result.lines[0]
    assert "broken" in "\n".join(result.lines)


def test_a_sample_gives_every_boundary_its_turn_before_any_gets_a_second() -> None:
    points = campaign.points_of({"a": 5, "b": 1, "c": 2}, sample=None)
    assert [point.name for point in points[:3]] == ["a:1", "b:1", "c:1"]
    assert [point.name for point in points[3:5]] == ["a:5", "c:2"]
    assert sorted(point.name for point in points) == sorted(
        ["a:1", "a:2", "a:3", "a:4", "a:5", "b:1", "c:1", "c:2"]
    )
    assert len(campaign.points_of({"a": 5, "b": 1}, sample=2)) == 2


BROKEN = {
    "a reply is forgotten": """
from ninelives.durable import replay
real = replay.Replay.find
def find(self, kind, branch, name, fingerprint):
    found = real(self, kind, branch, name, fingerprint)
    return replay.Found(found.place, None) if kind == "model" else found
replay.Replay.find = find
""",
    "a confirmed effect is sent again": """
from ninelives.durable import effects
async def known(delivery, effect, found):
    return await effects._dispatch(delivery, effect, found.record)
effects._known = known
""",
    "a settlement forgets its hold": """
from ninelives.store import booking
booking._end = lambda *_: None
""",
    "an output is published before its commit": """
from ninelives.durable import context
from ninelives.log import events
async def yield_output(self, output):
    raw = self._delivery.journal.encode(output, "output")
    await self._delivery.append(events.Output(value=raw))
context.WorkflowContext.yield_output = yield_output
""",
    "a handled message stays pending": """
from ninelives.store import apply
real = apply._apply
def forgetful(connection, run, seq, draft):
    if type(draft.fact).__name__ != "HandlerFinished":
        real(connection, run, seq, draft)
apply._apply = forgetful
""",
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("broken", list(BROKEN.values()), ids=list(BROKEN))
def test_a_deliberately_broken_engine_is_caught(shell: Shell, broken: str) -> None:
    write(shell, GOOD)
    flow = shell.folder / "flow.py"
    flow.write_text(flow.read_text() + broken)
    result = shell("crashtest", "flow.py:flow", "--input", "1", "--sample", "16")
    assert result.code == 1, result
