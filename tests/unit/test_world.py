"""The outside world counts by key, in a process of its own, and ends with its parent."""

from __future__ import annotations

import contextlib
import json
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from ninelives.testing.world import Entry, World, append_line

KEY = "launch-1:step:12"


@pytest.fixture
def world() -> Iterator[World]:
    with World() as started:
        yield started


def ask(
    world: World, method: str, path: str, *, key: str | None = None, body: str | None = None
) -> tuple[int, dict[str, object]]:
    client = HTTPConnection(urlsplit(world.url).netloc, timeout=10)
    try:
        headers = {"Idempotency-Key": key} if key else {}
        client.request(method, path, body=body, headers=headers)
        answer = client.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        client.close()


def test_a_key_is_applied_once_however_often_it_is_received(world: World) -> None:
    for text in ("first", "second"):
        status, document = ask(world, "POST", "/notify", key=KEY, body=json.dumps({"text": text}))
        assert status == 200
    assert document == {
        "key": KEY,
        "received": 2,
        "applied": 1,
        "payload": {"text": "first"},
    }
    assert world.counts() == {KEY: Entry(KEY, 2, 1, {"text": "first"})}


def test_a_key_is_looked_up_after_the_requests_that_came_before(world: World) -> None:
    netloc = urlsplit(world.url).netloc
    slow, asks = HTTPConnection(netloc, timeout=10), HTTPConnection(netloc, timeout=10)
    with contextlib.closing(slow), contextlib.closing(asks):
        slow.putrequest("POST", "/")
        slow.putheader("Idempotency-Key", KEY)
        slow.putheader("Content-Length", "2")
        slow.endheaders()
        asks.request("GET", "/" + quote(KEY))
        assert select.select([asks.sock], [], [], 0.2)[0] == []
        slow.send(b"{}")
        assert asks.getresponse().status == 200


def test_a_sender_that_went_away_is_not_waited_for(world: World) -> None:
    dead = HTTPConnection(urlsplit(world.url).netloc, timeout=10)
    dead.connect()
    dead.close()
    assert world.look_up(KEY) is None


@pytest.mark.parametrize("path", [quote(KEY, safe=""), quote(KEY), f"?key={quote(KEY, safe='')}"])
def test_a_key_is_found_by_path_and_by_query(world: World, path: str) -> None:
    assert ask(world, "GET", f"/{path}")[0] == 404
    ask(world, "POST", "/", key=KEY, body="{}")
    status, document = ask(world, "GET", f"/{path}")
    assert (status, document["key"], document["received"]) == (200, KEY, 1)


def test_a_key_may_hold_slashes_and_letters_of_any_script(world: World) -> None:
    key = "run/1:schritt:zw%C3%B6lf"
    ask(world, "POST", "/", key=key, body="1")
    found = world.look_up(key)
    assert found is not None
    assert found.payload == 1
    assert world.look_up("run/1") is None


def test_a_request_without_key_or_without_json_is_refused_and_not_counted(world: World) -> None:
    assert ask(world, "POST", "/", body="{}")[0] == 400
    assert ask(world, "POST", "/", key=KEY, body="{")[0] == 400
    assert world.counts() == {}


def test_requests_at_once_are_each_counted(world: World) -> None:
    def post() -> None:
        for _ in range(10):
            ask(world, "POST", "/", key=KEY, body="{}")

    threads = [threading.Thread(target=post) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert world.counts()[KEY].received == 80
    assert world.counts()[KEY].applied == 1


def test_the_log_has_a_line_for_each_request_and_outlives_the_world(tmp_path: Path) -> None:
    log = tmp_path / "world.jsonl"
    with World(log=log) as world:
        for _ in range(2):
            ask(world, "POST", "/", key=KEY, body='{"text": "a"}')
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [(line["key"], line["received"]) for line in lines] == [(KEY, 1), (KEY, 2)]


def test_the_address_is_the_only_line_on_stdout_and_interrupt_ends_it_cleanly() -> None:
    command = [sys.executable, "-m", "ninelives.testing.world", "--port", "0"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with child:
        assert child.stdout is not None
        address = child.stdout.readline().strip()
        assert urlsplit(address).hostname == "127.0.0.1"
        assert urlsplit(address).port
        child.send_signal(signal.SIGINT)
        out, err = child.communicate()
    assert (child.returncode, out, err) == (0, "", "")


def test_the_world_ends_when_its_parent_is_killed() -> None:
    script = (
        "import os, signal\n"
        "from ninelives.testing.world import World\n"
        "world = World().start()\n"
        "print(world.url, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    # The world inherits stderr, so `run` waits until both are gone.
    command = [sys.executable, "-c", script]
    parent = subprocess.run(command, capture_output=True, timeout=30, check=False)
    assert parent.returncode == -signal.SIGKILL
    client = HTTPConnection(urlsplit(parent.stdout.decode().strip()).netloc, timeout=10)
    with pytest.raises(ConnectionRefusedError):
        client.connect()


def test_stopping_twice_is_no_error() -> None:
    world = World().start()
    world.stop()
    world.stop()


def test_appended_lines_of_several_threads_never_mix(tmp_path: Path) -> None:
    log = tmp_path / "lines.jsonl"

    def write(letter: str) -> None:
        for _ in range(20):
            append_line(log, {"text": letter * 3000})

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts = [json.loads(line)["text"] for line in log.read_text(encoding="utf-8").splitlines()]
    assert len(texts) == 60
    assert all(len(set(text)) == 1 for text in texts)
