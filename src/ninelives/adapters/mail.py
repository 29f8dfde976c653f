"""Outbox messages as mail, by the standard library: one SMTP session, one message, no retries."""

from __future__ import annotations

import asyncio
import contextlib
import email.message
import email.policy
import email.utils
import hashlib
import smtplib
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass

from ninelives import codec, errors
from ninelives.adapters.webhook import close_under
from ninelives.engine import channels
from ninelives.store.outbox import Parcel

Compose = Callable[[object], email.message.EmailMessage]
FIELDS = frozenset({"to", "cc", "bcc", "reply_to", "subject", "text", "html"})


@dataclass(frozen=True, slots=True)
class Mail:
    """Sends the payload as a mail whose Message-ID is made from the key: the same each time.

    The payload has `to` (a text or a list), `subject`, `text`, and may have `html`, `cc`, `bcc`,
    `reply_to`; `compose` makes a message from any other payload. All recipients or none: if one
    is refused, nothing is sent. Codes 5xx are refusals for good, all else is tried again.
    """

    host: str
    sender: str
    port: int = 25
    login: tuple[str, str] | None = None
    starttls: bool = False
    tls: ssl.SSLContext | None = None
    implicit_tls: bool = False
    compose: Compose | None = None

    async def deliver(self, parcel: Parcel, deadline_seconds: float) -> None:
        """See `Sender.deliver`. At the deadline the connection is closed under the session."""
        session = _Session(self, self.message(parcel), deadline_seconds)
        timer = asyncio.get_running_loop().call_later(deadline_seconds, session.abort)
        try:
            await channels.in_thread(session.send)
        finally:
            timer.cancel()
            session.abort()

    def message(self, parcel: Parcel) -> email.message.EmailMessage:
        """The mail as it is sent, the same at each attempt.

        Raises:
            EffectRefused: the payload makes no mail.
        """
        payload = codec.plain(parcel.payload)
        try:
            message = self.compose(payload) if self.compose else _compose(payload)
            for header in ("From", "Date", "Message-ID"):
                del message[header]
            message["From"] = self.sender
            message["Date"] = email.utils.formatdate(parcel.queued_at / 1000)
            message["Message-ID"] = message_id(parcel.key, self.sender)
        except (ValueError, TypeError, KeyError) as error:
            raise errors.EffectRefused(f"the payload makes no mail: {error}") from error
        return message


def message_id(key: str, sender: str) -> str:
    """The Message-ID of a key: a digest, since keys hold characters that an id may not."""
    domain = email.utils.parseaddr(sender)[1].rpartition("@")[2] or "localhost"
    return f"<{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}@{domain}>"


def _compose(payload: object) -> email.message.EmailMessage:
    if not isinstance(payload, dict):
        raise TypeError(f"it is {type(payload).__name__}, not an object with `to` and `subject`")
    unknown = sorted(payload.keys() - FIELDS)
    if unknown:
        raise ValueError(f"it has {', '.join(unknown)}; known are {', '.join(sorted(FIELDS))}")
    message = email.message.EmailMessage()
    for name in ("to", "cc", "bcc", "reply_to"):
        value = payload.get(name)
        if value:
            listed = value if isinstance(value, list) else [value]
            message[name.replace("_", "-").title()] = ", ".join(str(each) for each in listed)
    message["Subject"] = str(payload.get("subject", ""))
    message.set_content(str(payload.get("text", "")))
    if payload.get("html"):
        message.add_alternative(str(payload["html"]), subtype="html")
        _fix_boundary(message)
    return message


def _fix_boundary(message: email.message.EmailMessage) -> None:
    """The library draws a random boundary; a mail that is sent again shall be the same."""
    parts = b"".join(bytes(part) for part in message.iter_parts())
    message.set_boundary(f"={hashlib.blake2b(parts, digest_size=16).hexdigest()}=")


class _Session:
    """One SMTP session, in a thread; `abort` ends it from outside."""

    def __init__(
        self, mail: Mail, message: email.message.EmailMessage, deadline_seconds: float
    ) -> None:
        self._mail = mail
        self._seconds = deadline_seconds
        self._aborted = threading.Event()
        fields = [str(value) for name in ("To", "Cc", "Bcc") for value in message.get_all(name, [])]
        self._recipients = [address for _, address in email.utils.getaddresses(fields) if address]
        if not self._recipients:
            raise errors.EffectRefused("the payload makes no mail: it has no recipient")
        del message["Bcc"]
        self._sender = email.utils.parseaddr(mail.sender)[1]
        self._utf8 = not all(each.isascii() for each in [self._sender, *self._recipients])
        policy = email.policy.SMTPUTF8 if self._utf8 else email.policy.SMTP
        self._data = message.as_bytes(policy=policy)
        self._smtp: smtplib.SMTP | None = None

    def send(self) -> None:
        """Send and judge the answers."""
        try:
            with contextlib.closing(self._connect()) as smtp:
                self._smtp = smtp
                if self._aborted.is_set():
                    raise TimeoutError
                self._introduce(smtp)
                self._transmit(smtp)
        except smtplib.SMTPResponseException as error:
            raise _answered(error.smtp_code, error.smtp_error) from error
        except (OSError, smtplib.SMTPException) as error:
            # smtplib says of a time limit that the connection was closed.
            late = isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError)
            if late or self._aborted.is_set():
                why = f"no answer within {self._seconds:g} seconds"
            else:
                why = f"{type(error).__name__}: {error}"
            raise errors.DeliveryFailed(why) from error

    def _connect(self) -> smtplib.SMTP:
        host, port = self._mail.host, self._mail.port
        if self._mail.implicit_tls:
            context = self._mail.tls or ssl.create_default_context()
            return smtplib.SMTP_SSL(host, port, timeout=self._seconds, context=context)
        return smtplib.SMTP(host, port, timeout=self._seconds)

    def _introduce(self, smtp: smtplib.SMTP) -> None:
        smtp.ehlo_or_helo_if_needed()
        if self._mail.starttls:
            smtp.starttls(context=self._mail.tls or ssl.create_default_context())
            smtp.ehlo_or_helo_if_needed()
        if self._mail.login is not None:
            smtp.login(*self._mail.login)

    def _transmit(self, smtp: smtplib.SMTP) -> None:
        """Every recipient is asked before anything is sent; the last 250 acknowledges."""
        options = ["SMTPUTF8", "BODY=8BITMIME"] if self._utf8 else []
        if self._utf8 and not smtp.has_extn("smtputf8"):
            raise errors.EffectRefused("the server takes no address beyond ASCII")
        self._expect(smtp.mail(self._sender, options))
        for recipient in self._recipients:
            code, said = smtp.rcpt(recipient)
            if code not in {250, 251}:
                raise _answered(code, f"{recipient}: {_text(said)}")
        self._expect(smtp.data(self._data))
        with contextlib.suppress(OSError, smtplib.SMTPException):
            smtp.quit()  # the mail is acknowledged, whatever becomes of the session

    def _expect(self, answer: tuple[int, bytes]) -> None:
        code, said = answer
        if not 200 <= code < 300:
            raise _answered(code, said)

    def abort(self) -> None:
        """End the session wherever it is; nothing happens if it has ended."""
        self._aborted.set()
        if self._smtp is not None:
            close_under(self._smtp.sock)


def _answered(code: int, said: bytes | str) -> Exception:
    reason = f"{code} {_text(said)}"
    return errors.EffectRefused(reason) if code >= 500 else errors.DeliveryFailed(reason)


def _text(said: bytes | str) -> str:
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else said
