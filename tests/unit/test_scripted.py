"""The scripted model: equal prompts, equal replies, documented counts, a log of its own."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from ninelives.durable import models
from ninelives.durable.usage import ModelRequest, Usage
from ninelives.testing.scripted import ScriptedModel, resolve


def request(prompt: str) -> ModelRequest:
    return ModelRequest(model="scripted", prompt=prompt)


async def test_the_same_prompt_gets_the_same_line_from_any_instance() -> None:
    first = await ScriptedModel().request(request("Checklist item 12."))
    second = await ScriptedModel().request(request("Checklist item 12."))
    other = await ScriptedModel().request(request("Checklist item 11."))
    assert first == second
    assert first.text != other.text
    assert "\n" not in first.text


async def test_it_reports_twenty_tokens_in_and_ten_out() -> None:
    reply = await ScriptedModel().request(request("a"))
    assert reply.usage == Usage(input_tokens=20, output_tokens=10, total_tokens=30)


async def test_missing_usage_is_none_beside_a_real_reply() -> None:
    reply = await ScriptedModel(missing_usage=True).request(request("a"))
    assert reply.usage is None
    assert reply.text


async def test_a_reply_of_ones_own_takes_the_place_of_the_script() -> None:
    reply = await ScriptedModel(reply=str.upper).request(request("abc"))
    assert reply.text == "ABC"


async def test_a_request_is_logged_before_the_wait(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    model = ScriptedModel(log=log, delay_seconds=3600)
    under_way = asyncio.ensure_future(model.request(request("a prompt")))
    await asyncio.sleep(0)
    assert json.loads(log.read_text(encoding="utf-8")) == {"prompt": "a prompt", "pid": os.getpid()}
    under_way.cancel()
    with pytest.raises(asyncio.CancelledError):
        await under_way


async def test_a_stall_comes_on_top_of_the_delay() -> None:
    model = ScriptedModel(delay_seconds=0.0, stall_seconds=3600)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(model.request(request("a")), 0.01)


async def test_the_environment_sets_the_delay_and_the_log_of_the_resolved_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_DELAY_SECONDS", "0.5")
    monkeypatch.setenv("SCRIPTED_LOG", str(tmp_path / "log"))
    model = resolve("scripted")
    assert (model.delay_seconds, model.log) == (0.5, tmp_path / "log")


@pytest.mark.parametrize("name", ["scripted", "scripted:slow"])
def test_its_name_leads_to_it_through_the_entry_point(name: str) -> None:
    model = models.resolve(name)
    assert isinstance(model, ScriptedModel)
    assert model.name == name
