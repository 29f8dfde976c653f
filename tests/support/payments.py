"""A payment service in a process of its own, with every kind of trouble a real one gives.

python payments.py        prints its address

POST /pay       header Idempotency-Key: pays once per key that it remembers
GET /pay?key=K  200 if it remembers the key, else 404
GET /count?key=K  how often money moved under the key, whatever it remembers: the truth
POST /trouble   a JSON list: what happens to the next payments, in order
                ok, stall (pays, never answers), drop (pays, closes the connection),
                error_after (pays, answers 500), error_before (answers 500),
                forget (pays, and forgets the key)
"""

from __future__ import annotations

import collections
import json
import pathlib
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

moved: collections.Counter[str] = collections.Counter()
remembered: set[str] = set()
troubles: list[str] = []
lock = threading.Lock()


class Payments(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/trouble":
            troubles[:] = json.loads(body)
            self.answer(200, {})
            return
        key = self.headers["Idempotency-Key"]
        with lock:
            trouble = troubles.pop(0) if troubles else "ok"
            if trouble != "error_before" and key not in remembered:
                moved[key] += 1
            if trouble not in {"error_before", "forget"}:
                remembered.add(key)
        if trouble == "stall":
            threading.Event().wait(60)
        elif trouble == "drop":
            self.close_connection = True
            self.connection.close()
        elif trouble.startswith("error"):
            self.answer(500, {"error": "try again"})
        else:
            self.answer(200, {"paid": key})

    def do_GET(self) -> None:
        path = urllib.parse.urlsplit(self.path)
        key = urllib.parse.parse_qs(path.query)["key"][0]
        if path.path == "/count":
            self.answer(200, {"count": moved[key]})
        elif key in remembered:
            self.answer(200, {"paid": key})
        else:
            self.answer(404, {})

    def answer(self, status: int, document: dict[str, object]) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None: ...


class Service:
    """The service as a test's child."""

    def __enter__(self) -> Self:
        self.child = subprocess.Popen(
            [sys.executable, str(pathlib.Path(__file__))],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.child.stdout is not None
        self.url = self.child.stdout.readline().strip()
        return self

    def __exit__(self, *_: object) -> None:
        with self.child:
            self.child.kill()

    def trouble(self, *kinds: str) -> None:
        request = urllib.request.Request(f"{self.url}/trouble", json.dumps(kinds).encode())
        urllib.request.urlopen(request, timeout=10).close()

    def count(self, key: str) -> int:
        with urllib.request.urlopen(f"{self.url}/count?key={key}", timeout=10) as found:
            return int(json.load(found)["count"])


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Payments)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
