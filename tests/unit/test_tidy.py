"""The house rules that no linter knows: sizes, names, and no trace of any one machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
FORBIDDEN_WORDS = {"manager", "helper", "helpers", "util", "utils", "impl"}
TEXT_SUFFIXES = {".py", ".md", ".toml", ".sql", ".sh", ".yml", ".yaml", ".json", ".html", ".js"}
PARTS = ("src", "tests", "examples", "docs", ".ci")

# A path of somebody's machine, or the address of a package registry or a mirror of one.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|Users|work|workspace|builds)/[\w.-]+")
REGISTRY = re.compile(r"https?://[^/\s]*(?:pypi|registry|mirror|artifactory|nexus)", re.IGNORECASE)

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def python_files() -> list[Path]:
    found = [path for part in PARTS for path in (ROOT / part).rglob("*.py")]
    return sorted(path for path in found if "__pycache__" not in path.parts)


def text_files() -> Iterator[Path]:
    for path in ROOT.iterdir():
        # In a worktree, .git is a file that says where the repository is.
        if path.is_file() and path.suffix != ".db" and path.name != ".git":
            yield path
    for part in PARTS:
        for path in (ROOT / part).rglob("*"):
            named = path.suffix in TEXT_SUFFIXES or path.parent.name == ".ci"
            if path.is_file() and named and "__pycache__" not in path.parts:
                yield path


def definitions(path: Path) -> Iterator[Definition]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, Definition):
            yield node


def words(name: str) -> set[str]:
    """Split `snake_case` and `CamelCase` into lower-case words."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def place(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_words_are_split_in_both_cases() -> None:
    assert words("LeaseManager") == {"lease", "manager"}
    assert words("sql_utils") == {"sql", "utils"}
    assert words("WorkflowImpl") == {"workflow", "impl"}


def test_no_file_is_longer_than_the_limit() -> None:
    lengths = {
        place(path): len(path.read_text(encoding="utf-8").splitlines()) for path in python_files()
    }
    assert {name: lines for name, lines in lengths.items() if lines > FILE_LINES_MAX} == {}


def test_no_function_is_longer_than_the_limit() -> None:
    long = [
        f"{place(path)}:{node.lineno} {node.name}"
        for path in python_files()
        for node in definitions(path)
        if not isinstance(node, ast.ClassDef)
        and (node.end_lineno or node.lineno) - node.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert long == []


def test_every_module_says_what_it_owns() -> None:
    silent = [
        place(path)
        for path in python_files()
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_nothing_is_named_by_a_word_that_says_nothing() -> None:
    files = [place(path) for path in python_files() if words(path.stem) & FORBIDDEN_WORDS]
    names = [
        f"{place(path)}:{node.lineno} {node.name}"
        for path in python_files()
        for node in definitions(path)
        if words(node.name) & FORBIDDEN_WORDS
    ]
    assert files + names == []


@pytest.mark.parametrize("trace", [MACHINE_PATH, REGISTRY], ids=lambda p: p.pattern)
def test_no_file_names_the_machine_or_the_registry_it_was_written_with(
    trace: re.Pattern[str],
) -> None:
    found = [
        f"{place(path)}:{number}: {line.strip()}"
        for path in text_files()
        for number, line in enumerate(
            path.read_text(encoding="utf-8", errors="replace").splitlines(), 1
        )
        if trace.search(line)
    ]
    assert found == []
