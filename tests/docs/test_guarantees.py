"""Every test that the guarantees name is there."""

from __future__ import annotations

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]


def test_each_row_names_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "guarantees.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    rows = [line for line in page.splitlines() if line.startswith("| ") and "`tests/" in line]
    assert len(named) == len(rows) > 30
    for file, name in named:
        text = (ROOT / file).read_text()
        assert re.search(rf"^(?:(?:async )?def )?{name}\b", text, re.MULTILINE), f"{file}::{name}"


def test_each_row_of_a_guarantee_names_its_test() -> None:
    page = (ROOT / "docs" / "guarantees.md").read_text()
    for line in page.splitlines():
        is_head = "shown by" in line or set(line) <= set("|- ")
        if line.startswith("|") and not is_head:
            assert "`tests/" in line, line
