"""Messages as HTTP requests to a real server: what is sent, and what each answer means."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from ninelives import errors
from ninelives.adapters.webhook import Webhook, header_value
from ninelives.engine.channels import Backoff, Channel
from ninelives.engine.relay import Relay
from support import outboxes
from support.outboxes import Clock


async def post(server: HTTPServer, key: str = "r:a", payload: object = 1) -> None:
    hook = Webhook(server.url_for("/hook?x=1"), headers={"Authorization": "Bearer t"})
    await hook.deliver(outboxes.parcel(key, payload), 5)


async def test_the_request_carries_the_payload_and_the_key(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/hook").respond_with_data("", status=202)
    await post(httpserver, "r:a", {"name": "Zoë", "sum": [1, 2.5, None]})
    ((request, _),) = httpserver.log
    assert request.method == "POST"
    assert request.query_string == b"x=1"
    assert request.headers["Idempotency-Key"] == "r:a"
    assert request.headers["Authorization"] == "Bearer t"
    assert request.headers["Content-Type"] == "application/json"
    assert json.loads(request.data) == {"name": "Zoë", "sum": [1, 2.5, None]}


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
async def test_an_answer_that_may_change_is_tried_again(
    httpserver: HTTPServer, status: int
) -> None:
    headers = {"Retry-After": "7"}
    httpserver.expect_request("/hook").respond_with_data("busy", status=status, headers=headers)
    with pytest.raises(errors.DeliveryFailed, match=str(status)) as caught:
        await post(httpserver)
    assert caught.value.retry_after_seconds == 7
    assert len(httpserver.log) == 1  # nothing but the relay sends again


@pytest.mark.parametrize("status", [400, 401, 402, 404, 409, 410, 422])
async def test_a_refusal_is_for_good_and_says_why(httpserver: HTTPServer, status: int) -> None:
    httpserver.expect_request("/hook").respond_with_data("no such order", status=status)
    with pytest.raises(errors.EffectRefused, match="no such order"):
        await post(httpserver)
    assert len(httpserver.log) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(httpserver: HTTPServer, status: int) -> None:
    headers = {"Location": httpserver.url_for("/other")}
    httpserver.expect_request("/hook").respond_with_data("", status=status, headers=headers)
    with pytest.raises(errors.EffectRefused, match="/other"):
        await post(httpserver)
    assert len(httpserver.log) == 1


async def test_a_date_in_retry_after_leaves_the_back_off_as_it_is(httpserver: HTTPServer) -> None:
    headers = {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}
    httpserver.expect_request("/hook").respond_with_data("", status=503, headers=headers)
    with pytest.raises(errors.DeliveryFailed) as caught:
        await post(httpserver)
    assert caught.value.retry_after_seconds is None


async def test_a_server_that_does_not_answer_is_left_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hook = Webhook(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        with pytest.raises(errors.DeliveryFailed, match=r"no answer within 0\.2 seconds"):
            await hook.deliver(outboxes.parcel("r:a", 1), 0.2)


async def test_a_server_that_drips_its_answer_is_left_at_the_deadline_too() -> None:
    """Each byte comes within the socket's time limit; together they would take for ever."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n1")
        writer.write(b"HTTP/1.1 200 OK\r\nX: ")
        gone = asyncio.ensure_future(reader.read())
        while not (await asyncio.wait({gone}, timeout=0.02))[0]:
            writer.write(b"x")
        writer.close()
        await writer.wait_closed()
        left.set()

    left = asyncio.Event()
    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        with pytest.raises(errors.DeliveryFailed, match="no answer within"):
            await Webhook(f"http://127.0.0.1:{port}/").deliver(outboxes.parcel("r:a", 1), 0.3)
        await left.wait()


async def test_a_server_that_is_not_there_is_tried_again() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(errors.DeliveryFailed, match="Refused"):
        await Webhook(f"http://127.0.0.1:{port}/").deliver(outboxes.parcel("r:a", 1), 5)


async def test_a_connection_that_drops_after_the_request_is_tried_again_with_the_same_key(
    url: str, httpserver: HTTPServer
) -> None:
    """The answer is lost after the act: the receiver sees the key twice, and can tell by it."""

    def drop(request: Request) -> Response:
        sock = request.environ["werkzeug.socket"]
        sock.shutdown(socket.SHUT_RDWR)
        return Response()

    httpserver.expect_oneshot_request("/hook").respond_with_handler(drop)
    httpserver.expect_request("/hook").respond_with_data("")
    now = Clock()
    channel = Channel("c", Webhook(httpserver.url_for("/hook")), backoff=Backoff(wait_seconds=1))
    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "r", ["a"])
        relay = Relay(store, channel, now=now, fraction=lambda: 1.0)
        assert (await relay.once()).postponed == 1
        now.ms += 1_000
        assert (await relay.once()).delivered == 1
    keys = [request.headers["Idempotency-Key"] for request, _ in httpserver.log]
    assert keys == ["r:a", "r:a"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("r:a", "r:a"),
        ("r:a b", "r:a%20b"),
        ("r:a%20b", "r:a%2520b"),
        ("r:ü", "r:%C3%BC"),
        ("r:\r\nX-Evil: 1", "r:%0D%0AX-Evil:%201"),
    ],
)
async def test_a_key_fits_into_a_header_and_different_keys_stay_different(
    httpserver: HTTPServer, key: str, value: str
) -> None:
    httpserver.expect_request("/hook").respond_with_data("")
    assert header_value(key) == value
    await post(httpserver, key)
    ((request, _),) = httpserver.log
    assert request.headers["Idempotency-Key"] == value
    assert "X-Evil" not in request.headers


@pytest.mark.parametrize("url", ["ftp://host/", "host/path", "http://", ""])
def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(errors.ChannelsInvalid):
        Webhook(url)
