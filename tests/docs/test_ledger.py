"""The ledger's page: its example gives what the page shows, command by command."""

from __future__ import annotations

import pathlib
import re
import shlex

from support.shell import Shell

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "ledger.md").read_text()


def test_the_example_says_what_the_page_shows(tmp_path: pathlib.Path) -> None:
    shell = Shell(tmp_path, {})
    source, session = re.findall(r"```(?:python|console)\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "letters.py").write_text(source)
    commands = re.findall(r"^\$ ninelives (.*)\n((?:[^$\n].*\n)*)", session, re.MULTILINE)
    assert len(commands) > 3
    for command, expected in commands:
        ended = shell(*shlex.split(command))
        said = ended.err.splitlines() if ended.code else ended.lines
        assert said == expected.splitlines(), command
