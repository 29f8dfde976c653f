"""The command line as a person uses it: real processes in a folder of their own."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "countdown.py"
TARGET = f"{EXAMPLE}:countdown"


@dataclass(frozen=True)
class Result:
    """What a command printed and how it ended."""

    code: int
    lines: list[str]
    err: str

    def json(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.lines]


@dataclass
class Shell:
    """Runs `ninelives` in a folder, with nothing of anybody's environment but what is given."""

    folder: pathlib.Path
    environment: dict[str, str] = field(default_factory=lambda: {"MODEL": "scripted"})

    def start(self, *words: str, **extra: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "ninelives.cli", *words],
            cwd=self.folder,
            env=self._env(extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words: str, **extra: str) -> Result:
        with self.start(*words, **extra) as child:
            out, err = child.communicate(timeout=50)
        return Result(child.returncode, out.splitlines(), err)

    def report(self, run: str) -> dict[str, dict[str, object]]:
        document: dict[str, dict[str, object]] = json.loads(
            "".join(self("report", run, "--json").lines)
        )
        return document

    def file(self, name: str) -> list[dict[str, object]]:
        path = self.folder / name
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def _env(self, extra: Mapping[str, str]) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {**kept, **self.environment, **extra}
