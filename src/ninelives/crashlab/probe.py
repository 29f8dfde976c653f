"""What a process under test does to itself, told by its environment.

NINELIVES_KILL_AT=BOUNDARY[:N]   dies at the N-th arrival at a boundary
NINELIVES_COUNT=FILE             writes how often each boundary was reached, at its end
NINELIVES_WITNESS=FILE           appends a fsynced line for every effect and model request that
goes out: the record that is held against the journal
NINELIVES_AUDIT=FILE             appends a line for every file opened for writing, socket
connected and process started by a handler's own code outside
of any recorded operation
"""

from __future__ import annotations

import atexit
import collections
import json
import os
import pathlib
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ninelives import errors, faults
from ninelives.durable import calls
from ninelives.durable.delivery import handling
from ninelives.testing.world import append_line

PACKAGE = str(pathlib.Path(__file__).parents[1])
STDLIB = str(pathlib.Path(os.__file__).parent)
KNOWN = tuple(boundary.value for boundary in faults.Boundary)
WRITES = frozenset("wax+")
Arguments: TypeAlias = tuple[object, ...]


def arm(environment: Mapping[str, str]) -> None:
    """Arm this process as its environment says; nothing is armed by default."""
    if count := environment.get("NINELIVES_COUNT"):
        _count(pathlib.Path(count))
    if kill := environment.get("NINELIVES_KILL_AT"):
        boundary, _, arrival = kill.partition(":")
        if boundary not in KNOWN or not (arrival or "1").isdecimal():
            raise errors.BoundaryUnknown(kill, KNOWN)
        faults.arm(faults.Boundary(boundary), int(arrival or 1))
    if witness := environment.get("NINELIVES_WITNESS"):
        path = pathlib.Path(witness)
        faults.witness(lambda kind, name: append_line(path, {"kind": kind, "name": name}))
    if audit := environment.get("NINELIVES_AUDIT"):
        _audit(pathlib.Path(audit), own=frozenset({audit, environment.get("NINELIVES_WITNESS")}))


def _count(path: pathlib.Path) -> None:
    counts: collections.Counter[str] = collections.Counter()

    def write() -> None:
        path.write_text(json.dumps(counts), "utf-8")

    faults.observe(lambda boundary: counts.update([boundary.value]))
    atexit.register(write)


def _audit(path: pathlib.Path, *, own: frozenset[str | None]) -> None:
    """Note what handlers do to the world behind the journal's back; `own` files are the lab's."""

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event not in _ACTS or not handling.get() or calls.inside():
            return
        if event == "open" and str(arguments[0]) in own:
            return
        what = _ACTS[event](arguments)
        if what:
            append_line(path, {"executor": handling.get(), "act": what, "line": _line()})

    sys.addaudithook(hook)


def _opened(arguments: Arguments) -> str:
    name, mode, flags = arguments
    writes = (
        bool(WRITES & set(mode))
        if isinstance(mode, str)
        else isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))
    )
    return f"opens {name!r} for writing" if writes else ""


def _does(words: str, index: int) -> Callable[[Arguments], str]:
    return lambda arguments: f"{words} {arguments[index]!r}"


_ACTS: dict[str, Callable[[Arguments], str]] = {
    "open": _opened,
    "socket.connect": _does("connects to", 1),
    "subprocess.Popen": _does("starts", 0),
    "os.system": _does("runs", 0),
    "os.remove": _does("removes", 0),
    "os.rename": _does("renames", 0),
}


def _line() -> str:
    """The user's line behind an act: the innermost that is neither ours nor a library's."""
    for frame in reversed(traceback.extract_stack()):
        ours = frame.filename.startswith((PACKAGE, STDLIB, "<"))
        if not ours and "site-packages" not in frame.filename:
            return f"{frame.filename}:{frame.lineno}: {frame.line}"
    return ""
