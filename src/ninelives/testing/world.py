"""The outside world of a test: a small server that counts what reaches it, by idempotency key.

A process of its own, so that it outlives every process that a test kills, and its counts are an
independent record to hold a journal against. `python -m ninelives.testing.world --port 0` prints
its address. It has only the standard library.

    POST /any/path   header Idempotency-Key, JSON body: counted as received; applied only once
    GET /{key}       the key's counts and first payload, or 404 (percent-encode the key)
    GET /?key={key}  the same
    GET /            all keys with their counts

What it answers about a key holds for every request that was made before: it looks after those that
reached it earlier have been applied or have gone. So "unknown" is final here, once the sender is
dead; few real services can say that.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Self, TypeAlias, cast
from urllib.parse import parse_qs, quote, unquote, urlsplit

PATIENCE = 5.0
Connection: TypeAlias = "socket.socket | tuple[bytes, socket.socket]"  # as socketserver has it


@dataclass(frozen=True, slots=True)
class Entry:
    """What reached the world under one key; `payload` is the first one's and is never replaced."""

    key: str
    received: int
    applied: int
    payload: object = None

    def document(self) -> dict[str, object]:
        return {
            "key": self.key,
            "received": self.received,
            "applied": self.applied,
            "payload": self.payload,
        }


class Ledger:
    """The counts. A request is logged, then counted, then answered, one at a time."""

    def __init__(self, log: Path | None = None) -> None:
        self._entries: dict[str, Entry] = {}
        self._lock = threading.Lock()
        self._log = log

    def receive(self, key: str, payload: object) -> Entry:
        with self._lock:
            known = self._entries.get(key)
            entry = (
                Entry(key, 1, 1, payload)
                if known is None
                else Entry(key, known.received + 1, known.applied, known.payload)
            )
            if self._log is not None:
                append_line(self._log, {"key": key, "received": entry.received, "payload": payload})
            self._entries[key] = entry
            return entry

    def look_up(self, key: str) -> Entry | None:
        with self._lock:
            return self._entries.get(key)

    def everything(self) -> list[Entry]:
        with self._lock:
            return list(self._entries.values())


def append_line(path: Path, document: dict[str, object]) -> None:
    """Append one line of JSON and wait until it is on the disk.

    One write to a file opened for appending: lines of several processes never mix.
    """
    line = json.dumps(document, ensure_ascii=False) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line.encode("utf-8", "surrogatepass"))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class WorldServer(ThreadingHTTPServer):
    """The server, with the ledger that its requests write to."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, ledger: Ledger) -> None:
        super().__init__(("127.0.0.1", port), WorldRequest)
        self.ledger = ledger
        self._under_way: dict[object, int] = {}
        self._arrived = 0
        self._ended = threading.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def process_request(self, request: Connection, client_address: object) -> None:
        """Number a connection in the order in which it came."""
        with self._ended:
            self._arrived += 1
            self._under_way[request] = self._arrived
        super().process_request(request, client_address)

    def shutdown_request(self, request: Connection) -> None:
        self.settled(request)
        super().shutdown_request(request)

    def settled(self, request: object) -> None:
        """Say that a connection's request has done all that it will do."""
        with self._ended:
            self._under_way.pop(request, None)
            self._ended.notify_all()

    def await_earlier(self, request: object) -> None:
        """Wait for the requests that came before, but not for ever: one may never be sent."""
        with self._ended:
            mine = self._under_way.pop(request, self._arrived + 1)
            self._ended.notify_all()  # two that ask do not wait for each other
            self._ended.wait_for(
                lambda: all(other > mine for other in self._under_way.values()), timeout=PATIENCE
            )

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent about a client that was killed amid a request, as clients here are."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class WorldRequest(BaseHTTPRequestHandler):
    """One request to the world."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        key = self.headers.get("Idempotency-Key", "")
        if not key:
            self._answer(400, {"error": "the header Idempotency-Key is missing"})
            return
        try:
            payload: object = json.loads(body) if body else None
        except ValueError:
            self._answer(400, {"error": "the body is no JSON"})
            return
        entry = self._ledger.receive(key, payload)
        self._server.settled(self.request)
        self._answer(200, entry.document())

    def do_GET(self) -> None:
        self._server.await_earlier(self.request)
        address = urlsplit(self.path)
        asked = parse_qs(address.query).get("key", [""])[0] or unquote(address.path[1:])
        if not asked:
            entries = self._ledger.everything()
            self._answer(200, {"keys": [entry.document() for entry in entries]})
            return
        entry = self._ledger.look_up(asked)
        if entry is None:
            self._answer(404, {"error": "unknown key", "key": asked})
            return
        self._answer(200, entry.document())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Print nothing: stdout has the address, stderr has faults."""

    @property
    def _server(self) -> WorldServer:
        assert isinstance(self.server, WorldServer)
        return self.server

    @property
    def _ledger(self) -> Ledger:
        return self._server.ledger

    def _answer(self, status: int, document: dict[str, object]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class World:
    """The outside world as a child process, for tests and for the demo.

    with World() as world:
        ...                                  # give world.url to what is tested
        assert world.counts() == {"launch-1:step:20": Entry(...)}

    The child ends with `stop()`, at the end of the `with` block, or when this process dies.
    """

    def __init__(self, *, log: Path | None = None) -> None:
        self.url = ""
        self._log = log
        self._child: subprocess.Popen[str] | None = None

    def start(self) -> Self:
        """Start the child; returns once it accepts requests."""
        command = [sys.executable, "-m", __name__, "--port", "0", "--until-stdin-closes"]
        if self._log is not None:
            command += ["--log", str(self._log)]
        self._child = subprocess.Popen(  # noqa: S603 - our own module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._child.stdout is not None
        self.url = self._child.stdout.readline().strip()
        if not self.url:
            self.stop()
            raise RuntimeError("the outside world did not start; its fault is on stderr")
        return self

    def stop(self) -> None:
        """End the child and wait for it; its counts are gone then (its log file is not)."""
        child, self._child = self._child, None
        if child is None:
            return
        child.terminate()
        child.communicate()

    def counts(self) -> dict[str, Entry]:
        """Everything that reached the world so far, by key, in the order of first arrival."""
        _, document = self._get("/")
        listed = cast("list[dict[str, object]]", document["keys"])
        return {found.key: found for found in map(_entry, listed)}

    def look_up(self, key: str) -> Entry | None:
        """Ask for one key, as a reconcile would."""
        status, document = self._get("/" + quote(key, safe=""))
        return _entry(document) if status == 200 else None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _get(self, path: str) -> tuple[int, dict[str, object]]:
        # Not urllib: a proxy that the environment names must not come between.
        with contextlib.closing(HTTPConnection(urlsplit(self.url).netloc, timeout=10)) as client:
            client.request("GET", path)
            answer = client.getresponse()
            return answer.status, json.loads(answer.read())


def _entry(document: dict[str, object]) -> Entry:
    return Entry(
        key=str(document["key"]),
        received=int(str(document["received"])),
        applied=int(str(document["applied"])),
        payload=document["payload"],
    )


def _shut_down_at_end_of(stream: IO[str], server: WorldServer) -> None:
    """The parent holds the other end: it closes when the parent dies, even by SIGKILL."""
    stream.read()
    server.shutdown()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m ninelives.testing.world",
        description="An outside world that counts requests by idempotency key.",
    )
    parser.add_argument("--port", type=int, default=0, help="0 (the default): any free port")
    parser.add_argument("--log", type=Path, help="append a line for each request to this file")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end with the parent")
    options = parser.parse_args(arguments)
    ledger = Ledger(options.log)
    with contextlib.suppress(KeyboardInterrupt), WorldServer(options.port, ledger) as server:
        print(server.url, flush=True)
        if options.until_stdin_closes:
            watch = (sys.stdin, server)
            threading.Thread(target=_shut_down_at_end_of, args=watch, daemon=True).start()
        server.serve_forever(poll_interval=0.1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
