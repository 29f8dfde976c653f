"""Signals to processes that only look on: they leave at once, and the run goes on without them."""

from __future__ import annotations

import signal
import subprocess

import pytest

from support.shell import TARGET, Shell

RUN = ("run", TARGET, "r", "--input", "3")
BOTH = pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)


def slow_owner(shell: Shell) -> subprocess.Popen[str]:
    """A process that works on the run for longer than a test is ready to wait."""
    owner = shell.start(*RUN, STALL_AT_STEP="2", DEADLINE_SECONDS="100")
    assert owner.stdout is not None
    owner.stdout.readline()
    return owner


@BOTH
def test_a_follower_leaves_at_once_and_the_run_goes_on(
    shell: Shell, number: signal.Signals, code: int
) -> None:
    with slow_owner(shell) as owner:
        try:
            follower = shell.start(*RUN)
            with follower:
                assert follower.stdout is not None
                follower.stdout.readline()
                follower.send_signal(number)
                _, err = follower.communicate(timeout=20)
            assert follower.returncode == code
            assert "no longer following run 'r'" in err
            assert "stopping" not in err  # the run is not
            assert shell("show", "r", "--json").json()[0]["status"] == "running"
        finally:
            owner.kill()


def test_ctrl_c_ends_a_watch_with_130_and_not_as_a_failure(shell: Shell) -> None:
    with slow_owner(shell) as owner:
        try:
            watcher = shell.start("watch", "r", "--json")
            with watcher:
                assert watcher.stdout is not None
                watcher.stdout.readline()
                watcher.send_signal(signal.SIGINT)
                _, err = watcher.communicate(timeout=20)
            assert watcher.returncode == 130
            assert "Traceback" not in err
        finally:
            owner.kill()
