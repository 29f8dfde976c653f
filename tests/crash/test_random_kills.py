"""Kills at random moments, from outside, over many runs: every run ends, nothing happens twice."""

from __future__ import annotations

import itertools
import json
import pathlib
import random
import signal
import subprocess
import sys

import pytest

from ninelives.testing.world import World

VICTIM = pathlib.Path(__file__).with_name("victim.py")
KILLS_MAX = 8  # a slow machine gets a run to its end all the same
KEYS = {"n:2", "n:1", "left", "right"}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_runs_that_are_killed_at_random_moments_end_as_if_they_had_not_been(
    tmp_path: pathlib.Path, seed: int
) -> None:
    chance = random.Random(seed)
    kills = 0
    with World() as world:
        for number in range(5):
            run = f"r{number}"
            command = [sys.executable, str(VICTIM), f"sqlite:///{tmp_path}/a.db", run, world.url]
            for attempt in itertools.count():
                seconds = 0.18 + chance.random() * 0.25 if attempt < KILLS_MAX else None
                with subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                ) as child:
                    try:
                        out, err = child.communicate(timeout=seconds)
                    except subprocess.TimeoutExpired:
                        child.send_signal(signal.SIGKILL)
                        child.communicate()
                        kills += 1
                        continue
                assert child.returncode == 0, err
                ended = json.loads(out)
                break
            assert ended["state"] == "completed", ended
            assert [each[:2] for each in ended["outputs"]] == ["2:", "1:", "['"]
            assert ended["seen"] == list(range(1, len(ended["seen"]) + 1))
        counts = world.counts()
    assert set(counts) == {f"r{n}:{key}" for n in range(5) for key in KEYS}
    assert {entry.received for entry in counts.values()} == {1}, f"seed {seed}, {kills} kills"
