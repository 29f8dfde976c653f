"""A disk that loses power: SQLite's own file calls, each noted, and what is left of them.

`Disk` is a SQLite VFS over the real one. A run on it goes on undisturbed; every act on a file is
noted with every sync. From that log `Plate` makes, for any moment of the run, the folder that a
power loss at this moment would have left: what was synced, and of the rest whatever a seed draws
(nothing, all, some sectors, some of them garbage). One run so gives a power loss at each act.

What is assumed of the hardware: it keeps what it has acknowledged (fsync does not lie), it leaves
alone the bytes beside those that are written, and names in a folder become durable in order.
"""

from __future__ import annotations

import ctypes
import errno
import os
import pathlib
import random
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import apsw

SECTOR = 512
Kind = Literal["made", "removed", "written", "cut", "synced", "folder", "told"]
Asked = Literal["read", "write", "sync", "truncate", "open", "delete"]
Trouble = Callable[[Asked, str], None]
_OpenFolder = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int))


@dataclass(frozen=True, slots=True)
class Act:
    """One act on a file (by its name in the folder), or something that the world was told."""

    kind: Kind
    file: str = ""
    at: int = 0
    data: bytes = b""
    said: object = None


class Disk(apsw.VFS):
    """The default VFS of this process while `mounted`; `trouble` may raise in place of an act."""

    def __init__(self, trouble: Trouble | None = None) -> None:
        self.acts: list[Act] = []
        self.trouble: Trouble = trouble or (lambda _asked, _file: None)
        self._lock = threading.Lock()
        self._here = threading.local()
        super().__init__(f"disk {id(self):x}", base="unix", makedefault=True)

    def note(self, act: Act) -> None:
        with self._lock:
            self.acts.append(act)

    def tell(self, said: object) -> None:
        """Note that somebody relies on this from now on."""
        self.note(Act("told", said=said))

    def folder_opened(self) -> None:
        """SQLite opens a folder for one purpose: this call of its will sync it."""
        self._here.folder = True

    def note_folder(self) -> None:
        if self._here.__dict__.pop("folder", False):
            self.note(Act("folder"))

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None:
            return super().xOpen(name, flags)
        self.trouble("open", path)
        is_new = flags[0] & apsw.SQLITE_OPEN_CREATE and not pathlib.Path(path).exists()
        file = _File(self, path, name, flags)
        if is_new:
            self.note(Act("made", pathlib.Path(path).name))
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.trouble("delete", filename)
        self.note(Act("removed", pathlib.Path(filename).name))
        super().xDelete(filename, syncdir)
        self.note_folder()


class _File(apsw.VFSFile):
    """A file on the disk. An act is noted before it happens, a sync after."""

    def __init__(
        self, disk: Disk, path: str, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        super().__init__("unix", name, flags)
        self._disk = disk
        self._name = pathlib.Path(path).name

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk.trouble("read", self._name)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.trouble("write", self._name)
        self._disk.note(Act("written", self._name, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._disk.trouble("truncate", self._name)
        self._disk.note(Act("cut", self._name, newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self._disk.trouble("sync", self._name)
        super().xSync(flags)
        self._disk.note(Act("synced", self._name))
        self._disk.note_folder()


@contextmanager
def mounted(trouble: Trouble | None = None) -> Generator[Disk]:
    """Every SQLite file that this process opens meanwhile lies on such a disk."""
    disk = Disk(trouble)
    opens_folder = _OpenFolder(disk.xGetSystemCall("openDirectory"))

    @_OpenFolder
    def synced(name: bytes, descriptor: object) -> int:
        disk.folder_opened()
        return int(opens_folder(name, descriptor))

    disk.xSetSystemCall("openDirectory", ctypes.cast(synced, ctypes.c_void_p).value)
    try:
        yield disk
    finally:
        disk.xSetSystemCall("openDirectory", 0)
        disk.unregister()


@dataclass
class _Content:
    """A file's durable bytes, and the acts on it that no sync has followed."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[Act] = field(default_factory=list)

    def sync(self) -> None:
        for act in self.pending:
            _put(self.durable, act)
        self.pending.clear()


class Plate:
    """What the disk holds, act by act, and what a power loss would leave of it."""

    def __init__(self) -> None:
        self._live: dict[str, _Content] = {}
        self._durable: dict[str, _Content] = {}
        self._names: list[tuple[str, _Content | None]] = []

    def take(self, act: Act) -> None:
        match act.kind:
            case "made":
                self._live[act.file] = _Content()
                self._names.append((act.file, self._live[act.file]))
            case "removed":
                if self._live.pop(act.file, None) is not None:
                    self._names.append((act.file, None))
            case "written" | "cut":
                self._live[act.file].pending.append(act)
            case "synced":
                self._live[act.file].sync()
            case "folder":
                self._durable = dict(self._live)
                self._names.clear()
            case "told":
                pass

    def after_power_loss(self, chance: random.Random) -> dict[str, bytes]:
        """The files that are there when the power is back."""
        names = dict(self._durable)
        for name, content in self._names[: chance.randint(0, len(self._names))]:
            if content is None:
                names.pop(name, None)
            else:
                names[name] = content
        how = chance.choice([_nothing, _everything, _some_sectors, _a_prefix])
        return {name: how(content, chance) for name, content in names.items()}


def _nothing(content: _Content, _chance: random.Random) -> bytes:
    return bytes(content.durable)


def _everything(content: _Content, _chance: random.Random) -> bytes:
    return _kept(content, content.pending)


def _a_prefix(content: _Content, chance: random.Random) -> bytes:
    return _kept(content, content.pending[: chance.randint(0, len(content.pending))])


def _some_sectors(content: _Content, chance: random.Random) -> bytes:
    kept: list[Act] = []
    for act in content.pending:
        if act.kind == "cut":
            kept += [act] * chance.randint(0, 1)
            continue
        for piece in _sectors(act):
            fate = chance.random()
            if fate < 0.1:
                kept.append(Act("written", act.file, piece.at, chance.randbytes(len(piece.data))))
            elif fate < 0.5:
                kept.append(piece)
    return _kept(content, kept)


def _sectors(act: Act) -> Generator[Act]:
    start, end = act.at, act.at + len(act.data)
    while start < end:
        stop = min(end, (start // SECTOR + 1) * SECTOR)
        yield Act("written", act.file, start, act.data[start - act.at : stop - act.at])
        start = stop


def _kept(content: _Content, acts: list[Act]) -> bytes:
    found = bytearray(content.durable)
    for act in acts:
        _put(found, act)
    return bytes(found)


def _put(content: bytearray, act: Act) -> None:
    if act.kind == "cut":
        del content[act.at :]
        return
    content.extend(bytes(max(0, act.at - len(content))))
    content[act.at : act.at + len(act.data)] = act.data


def failing(asked: Asked, number: int, error: type[apsw.Error]) -> Trouble:
    """The `number`-th such act of the process fails, as the operating system would report it."""
    left = [number]

    def trouble(now: Asked, _file: str) -> None:
        if now != asked:
            return
        left[0] -= 1
        if left[0] == 0:
            raise error(os.strerror(errno.EIO))

    return trouble
