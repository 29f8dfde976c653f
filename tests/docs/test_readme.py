"""The README's example is run as it stands, by the commands beside it."""

from __future__ import annotations

import pathlib
import re

import pytest

from support.shell import Shell

ROOT = pathlib.Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def shell(tmp_path: pathlib.Path) -> Shell:
    found = Shell(tmp_path, {})
    (tmp_path / "hello.py").write_text(blocks("python")[0])
    return found


def test_the_example_runs_by_its_commands(shell: Shell) -> None:
    first = shell("run", "hello.py:hello", "mail-1", "--input", '"the sea"')
    assert first.code == 0, first.err
    assert len(first.lines) == 1
    assert shell("report", "mail-1").code == 0
    assert (shell.folder / "mails.txt").read_text().startswith("mail-1:mail ")


@pytest.mark.parametrize(
    "boundary", ["effect_intended", "effect_done", "effect_recorded", "model_recorded"]
)
def test_the_example_survives_a_kill(shell: Shell, boundary: str) -> None:
    words = ("run", "hello.py:hello", "mail-1", "--input", '"the sea"')
    assert shell(*words, NINELIVES_KILL_AT=boundary).code == -9
    assert shell("resume", "mail-1").code == 0
    assert len((shell.folder / "mails.txt").read_text().splitlines()) == 1


def test_the_example_in_python_runs_as_it_stands(shell: Shell) -> None:
    import subprocess
    import sys

    script = blocks("python")[1]
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=shell.folder,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "run_completed" in done.stdout


def test_every_document_that_the_readme_links_is_there() -> None:
    for link in re.findall(r"\]\(([\w/.-]+)\)", README):
        assert (ROOT / link).exists(), link


def test_every_exit_code_of_the_readme_is_one_of_the_commands() -> None:
    from ninelives.cli import terminal

    table = dict(re.findall(r"^\| (\d) \| (\w+)", README, re.MULTILINE))
    for state in ("completed", "failed", "parked", "waiting", "cancelled"):
        assert table[str(terminal.EXIT_CODES[state])] == state
