"""Named SQL statements, read once from `sql/<dialect>/*.sql`.

A statement starts at a line `-- name --`; comment lines below it stay with it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib import resources

_NAME = re.compile(r"^-- (\w+) --$", re.MULTILINE)


@functools.cache
def load(dialect: str) -> Mapping[str, str]:
    """All statements of a dialect by name."""
    folder = resources.files("ninelives.store").joinpath("sql", dialect)
    statements: dict[str, str] = {}
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        parts = _NAME.split(file.read_text("utf-8"))
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            assert name not in statements, name
            statements[name] = _without_comments(body)
    return statements


def _without_comments(body: str) -> str:
    lines = [line for line in body.splitlines() if not line.startswith("--")]
    return "\n".join(lines).strip()
