"""The crash lab passes what survives, and catches what does not, in words of the customer."""

from __future__ import annotations

import json
import pathlib
import shlex

import pytest

from support.labflows import GOOD, write
from support.shell import Shell


@pytest.fixture
def shell(tmp_path: pathlib.Path) -> Shell:
    return Shell(tmp_path, {})


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
    assert "again: ninelives crashtest flow.py:flow --input 1 --at " in text


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


def test_kills_at_random_moments_and_of_the_recovery_survive(shell: Shell) -> None:
    write(shell, GOOD)
    drawn = ("--sample", "4", "--random", "3", "--seed", "5", "--kills", "2")
    result = shell("crashtest", "flow.py:flow", "--input", "1", "--json", *drawn)
    document = json.loads(result.lines[-1])
    assert result.code == 0, result
    assert (document["scenarios"], document["seed"]) == (7, 5)
    assert document["kills"] > 7


def test_the_command_of_a_failure_repeats_it(shell: Shell) -> None:
    write(shell, "await ctx.effect(mail, line, key=str(uuid.uuid4()))")
    at = ("--at", "effect_done:1", "--at", "admitted:1")
    result = shell("crashtest", "flow.py:flow", "--input", "1", "--json", *at)
    document = json.loads(result.lines[-1])
    [failed] = document["failed"]
    assert document["scenarios"] == 2
    words = shlex.split(failed["command"])
    assert words[:2] == ["ninelives", "crashtest"]
    assert words[-2:] == ["--at", "effect_done:1"]
    again = json.loads(shell(*words[1:], "--json").lines[-1])
    assert again["failed"][0]["point"] == "effect_done:1"


def test_a_process_that_a_handler_leaves_behind_is_caught_and_ended(shell: Shell) -> None:
    write(shell, "await ctx.step(__import__('subprocess').Popen, ['sleep', '977'], name='s')\n")
    result = shell("crashtest", "flow.py:flow", "--input", "1", "--sample", "0")
    assert result.code == 1
    assert "a process was left behind: sleep 977" in "\n".join(result.lines)


def test_kills_that_cannot_be_read_are_refused(shell: Shell) -> None:
    write(shell, GOOD)
    result = shell("crashtest", "flow.py:flow", "--input", "1", "--at", "@7")
    assert result.code == 2
    assert "KillsInvalid" in result.err


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
