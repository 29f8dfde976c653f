"""`demo`: the main job as a story, told by real processes and checked against the outside world."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import click

from ninelives.cli.terminal import say
from ninelives.testing.world import World

START, DANGEROUS = 20, 12
RUN = "launch-1"
PACKAGE = pathlib.Path(__file__).parents[1]


@dataclass
class Story:
    """Tells what happens, and remembers every promise that does not hold."""

    folder: pathlib.Path
    world: World
    broken: list[str] = field(default_factory=list)

    def ninelives(self, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a process of its own, showing its lines."""
        environment = {
            **os.environ,
            "MODEL": "scripted",
            "NOTIFY_URL": self.world.url,
            "SCRIPTED_LOG": str(self.folder / "requests.jsonl"),
            "NINELIVES_STORE": f"sqlite:///{self.folder}/durable.db",
            **extra,
        }
        shown = " ".join([f"{name}={value}" for name, value in extra.items()] + ["ninelives"])
        say(f"\n$ {shown} {' '.join(words).replace(str(example().parent), 'examples')}")
        done = subprocess.run(  # noqa: S603 - our own command line
            [sys.executable, "-m", "ninelives.cli", *words],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        say(done.stdout.rstrip("\n"))
        return done

    def promise(self, words: str, *, holds: bool) -> None:
        say(f"  {'ok    ' if holds else 'BROKEN'}  {words}")
        if not holds:
            self.broken.append(words)


@click.command()
def demo() -> None:
    """Kill a countdown agent in its most dangerous moment, and see it survive."""
    with tempfile.TemporaryDirectory(prefix="ninelives-") as folder, World() as world:
        story = Story(pathlib.Path(folder), world)
        _tell(story)
    if story.broken:
        say(f"\n{len(story.broken)} promises did not hold.")
        sys.exit(1)
    say("\nEvery promise held. Yours next: see README.md.")


def _tell(story: Story) -> None:
    say(f"An agent counts down from {START}. For each number it pays a model for a line and")
    say("notifies a customer. The customer's side is a process of its own, which counts.")
    say(f"\nAt number {DANGEROUS}, right after the customer was notified and before anything of")
    say("that step is committed, the process gets SIGKILL: no handler, no flush, no goodbye.")
    target = f"{example()}:countdown"
    words = ("run", target, RUN, "--input", str(START))
    first = story.ninelives(*words, CRASH_AT_STEP=str(DANGEROUS))
    say(f"\nThe process is dead (exit code {first.returncode}). Another one takes the run up:")
    second = story.ninelives("resume", RUN)
    story.ninelives("report", RUN)
    say("\nWhat was promised, and what the outside world saw:")
    _judge(story, first, second)


def _judge(
    story: Story,
    first: subprocess.CompletedProcess[str],
    second: subprocess.CompletedProcess[str],
) -> None:
    counts = story.world.counts()
    requests = (story.folder / "requests.jsonl").read_text().splitlines()
    prompts = [json.loads(line)["prompt"] for line in requests]
    numbers = [line.split(":")[0] for line in (first.stdout + second.stdout).splitlines()]
    story.promise("the first process was killed", holds=first.returncode == -signal.SIGKILL)
    story.promise("the second one completed the run", holds=second.returncode == 0)
    story.promise(
        f"{START + 1} outputs, in order, each once",
        holds=numbers == [str(n) for n in range(START, -1, -1)],
    )
    story.promise(
        f"{START} customers notified",
        holds=counts.keys() == {f"{RUN}:step:{n}" for n in range(1, START + 1)},
    )
    story.promise(
        "nobody was notified twice",
        holds=all(entry.received == 1 for entry in counts.values()),
    )
    story.promise(
        f"the model was paid {START} times, once for each number",
        holds=len(prompts) == len(set(prompts)) == START,
    )


def example() -> pathlib.Path:
    """The countdown: shipped inside the package, or in the checkout beside it."""
    shipped = PACKAGE / "_examples" / "countdown.py"
    return shipped if shipped.exists() else PACKAGE.parents[1] / "examples" / "countdown.py"
