"""Outbox messages as HTTP requests, by the standard library: one POST, one answer, no retries.

`http.client` is used because it does nothing by itself: it follows no redirect, repeats no
request and keeps no connection, so that each attempt is one the relay has decided on.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field

from ninelives import codec, errors
from ninelives.engine import channels
from ninelives.store.outbox import Parcel

RETRIED = frozenset({408, 429})
REASON_BYTES_MAX = 300
# Printable ASCII but for "%", which announces an encoded character.
_HEADER_SAFE = "".join(chr(code) for code in range(33, 127) if chr(code) != "%")


@dataclass(frozen=True, slots=True)
class Webhook:
    """POSTs the payload as plain JSON to `url`, with the key in the header `Idempotency-Key`.

    2xx is the acknowledgement. 408, 429 and 5xx are tried again (`Retry-After` in seconds is
    kept), and so is whatever breaks on the way. All else is a refusal for good, redirects
    included: they name another receiver than the one that was configured.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise errors.ChannelsInvalid(f"{self.url!r} is no address of http:// or https://")

    async def deliver(self, parcel: Parcel, deadline_seconds: float) -> None:
        """See `Sender.deliver`. At the deadline the connection is closed under the request."""
        request = _Request(self, parcel, deadline_seconds)
        timer = asyncio.get_running_loop().call_later(deadline_seconds, request.abort)
        try:
            await channels.in_thread(request.send)
        finally:
            timer.cancel()
            request.abort()


class _Request:
    """One request, in a thread; `abort` ends it from outside."""

    def __init__(self, hook: Webhook, parcel: Parcel, deadline_seconds: float) -> None:
        parts = urllib.parse.urlsplit(hook.url)
        assert parts.hostname is not None
        self._seconds = deadline_seconds
        self._path = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        self._body = json.dumps(codec.plain(parcel.payload), ensure_ascii=False).encode()
        self._headers = {
            "Content-Type": "application/json",
            "Connection": "close",
            **hook.headers,
            "Idempotency-Key": header_value(parcel.key),
        }
        self._connection: http.client.HTTPConnection
        if parts.scheme == "https":
            self._connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=deadline_seconds, context=hook.tls
            )
        else:
            self._connection = http.client.HTTPConnection(
                parts.hostname, parts.port, timeout=deadline_seconds
            )
        self._aborted = threading.Event()

    def send(self) -> None:
        """Send and judge the answer."""
        try:
            with contextlib.closing(self._connection):
                self._connection.connect()
                if self._aborted.is_set():
                    raise TimeoutError
                self._connection.request("POST", self._path, self._body, self._headers)
                with self._connection.getresponse() as response:
                    if self._aborted.is_set():
                        raise TimeoutError  # http.client takes a cut for the end of the headers
                    _judge(response)
        except (OSError, http.client.HTTPException) as error:
            if self._aborted.is_set() or isinstance(error, TimeoutError):
                why = f"no answer within {self._seconds:g} seconds"
            else:
                why = f"{type(error).__name__}: {error}"
            raise errors.DeliveryFailed(why) from error

    def abort(self) -> None:
        """End the request wherever it is; nothing happens if it has ended."""
        self._aborted.set()
        close_under(self._connection.sock)


def close_under(connection: socket.socket | None) -> None:
    """Wake whoever is blocked on a connection in another thread, below TLS."""
    if connection is not None:
        with contextlib.suppress(OSError):
            socket.socket.shutdown(connection, socket.SHUT_RDWR)


def header_value(key: str) -> str:
    """A key as a header's value: the same for ever, other keys differ; ASCII stays as it is."""
    return urllib.parse.quote(key, safe=_HEADER_SAFE)


def _judge(response: http.client.HTTPResponse) -> None:
    status = response.status
    if 200 <= status < 300:
        return
    reason = f"{status} {response.reason}"
    if status in RETRIED or status >= 500:
        raise errors.DeliveryFailed(reason, _seconds(response.getheader("Retry-After")))
    if 300 <= status < 400:
        raise errors.EffectRefused(f"{reason}: it says {response.getheader('Location')!r}")
    said = response.read1(REASON_BYTES_MAX).decode("utf-8", "replace").strip()
    raise errors.EffectRefused(f"{reason}: {said}" if said else reason)


def _seconds(text: str | None) -> float | None:
    """`Retry-After` as a number of seconds; a date is not read, the back-off stands."""
    return float(text) if text is not None and text.isascii() and text.isdecimal() else None
