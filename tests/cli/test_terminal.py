"""What a person at a terminal sees, and a pipe does not."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from support.shell import TARGET, Shell


def run_at_a_terminal(shell: Shell, *words: str) -> tuple[str, str]:
    """Run a command whose stderr is a terminal; returns stdout and what the terminal got."""
    outer, inner = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "ninelives.cli", *words],
        cwd=shell.folder,
        env=shell._env({}),
        stdout=subprocess.PIPE,
        stderr=inner,
        text=True,
    ) as child:
        os.close(inner)
        out, _ = child.communicate(timeout=50)
    seen = b""
    try:
        while part := os.read(outer, 65536):
            seen += part
    except OSError:
        pass  # the terminal is gone
    finally:
        os.close(outer)
    return out, seen.decode()


def test_a_long_wait_shows_where_it_is_on_a_terminal_and_not_in_a_pipe(shell: Shell) -> None:
    shell.environment["SCRIPTED_DELAY_SECONDS"] = "0.02"
    words = ("run", TARGET, "r", "--input", "5")
    out, seen = run_at_a_terminal(shell, *words)
    assert "superstep" in seen
    assert len(out.splitlines()) == 6
    piped = shell("run", TARGET, "r2", "--input", "5")
    assert piped.lines == out.splitlines()
    assert piped.err == ""


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_asking_for_help_costs_little(shell: Shell, words: list[str]) -> None:
    code = (
        "import sys\nfrom ninelives.cli import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "heavy = {'pydantic', 'pydantic_ai', 'apsw', 'msgspec', 'asyncio', 'httpx'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
