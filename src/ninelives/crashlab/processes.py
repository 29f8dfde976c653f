"""Starts the processes under test, each a session of its own, and kills them from outside."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from ninelives import clock

GRACE_SECONDS = 1.0
POLL_SECONDS = 0.02
HUNG = -1000


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: its exit code, `-9` if it was killed, HUNG if it did not end in time.

    Times are milliseconds of the wall clock. `left` are the command lines of processes that it
    started and that lived on; they have been killed.
    """

    words: tuple[str, ...]
    pid: int
    code: int
    began: int
    ended: int
    printed: str
    errors: str
    left: tuple[str, ...] = ()

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


def ninelives(
    words: Sequence[str],
    *,
    folder: pathlib.Path,
    environment: Mapping[str, str],
    kill_after_seconds: float | None,
    timeout_seconds: float,
) -> Ended:
    """Run the command line to its end, or until it is killed after `kill_after_seconds`."""
    # Files, not pipes: a process left behind may keep a pipe open for ever.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = clock.now_ms()
        child = subprocess.Popen(  # noqa: S603 - our own command line
            [sys.executable, "-m", "ninelives.cli", *words],
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        code = _wait(child, kill_after_seconds, timeout_seconds)
        ended = clock.now_ms()
        left = _left_behind(child.pid)
        return Ended(tuple(words), child.pid, code, began, ended, _text(out), _text(err), left)


def _wait(
    child: subprocess.Popen[bytes], kill_after_seconds: float | None, timeout_seconds: float
) -> int:
    try:
        return child.wait(timeout_seconds if kill_after_seconds is None else kill_after_seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        code = child.wait()
        return HUNG if kill_after_seconds is None else code


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _left_behind(session: int) -> tuple[str, ...]:
    """Who lives on in a process's session after a moment of grace; nobody does after this."""
    deadline = clock.monotonic_seconds() + GRACE_SECONDS
    while living := _living(session):
        if clock.monotonic_seconds() > deadline:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(session, signal.SIGKILL)
            return tuple(living)
        clock.pause(POLL_SECONDS)
    return ()


def _living(group: int) -> list[str]:
    """The command lines of a process group's members; zombies have none and do not count."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return []
    table = pathlib.Path("/proc")
    if not (table / "self").exists():
        return ["a process (this system does not say which)"]
    found = []
    for folder in table.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, members = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            if int(members) == group and state != "Z":
                words = (folder / "cmdline").read_bytes().split(b"\0")
                found.append(" ".join(word.decode(errors="replace") for word in words if word))
    return found
