"""Messages as mail to a real SMTP server: what arrives, and what each answer means."""

from __future__ import annotations

import email
import email.message
import email.policy
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from ninelives import errors
from ninelives.adapters.mail import Mail, message_id
from ninelives.engine.channels import Channel
from ninelives.engine.relay import Relay
from support import outboxes
from support.outboxes import Clock

PAYLOAD = {"to": "Ann <ann@example.org>", "subject": "Grüße", "text": "Hello Ann\n"}


@dataclass
class Postbox:
    """What a server has taken; `answers` are given instead of its own, by command."""

    mails: list[tuple[Envelope, email.message.EmailMessage]] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)

    async def handle_MAIL(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.mail_from = address
        return self.answers.get("MAIL", "250 OK")

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        answer = self.answers.get(address, "250 OK")
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        content = envelope.content
        assert isinstance(content, bytes)
        parsed = email.message_from_bytes(content, policy=email.policy.SMTPUTF8)
        self.mails.append((envelope, parsed))
        return self.answers.get("DATA", "250 taken")


@pytest.fixture
def box() -> Postbox:
    return Postbox()


@pytest.fixture
def port(box: Postbox) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
    controller = Controller(box, hostname="127.0.0.1", port=number, enable_SMTPUTF8=True)
    controller.start()
    yield number
    controller.stop()


async def send(port: int, payload: object = PAYLOAD, key: str = "r:a") -> None:
    mail = Mail("127.0.0.1", "Shop <shop@example.com>", port)
    await mail.deliver(outboxes.parcel(key, payload), 5)


async def test_the_mail_arrives_with_what_the_payload_says(box: Postbox, port: int) -> None:
    await send(port, PAYLOAD | {"cc": ["bob@example.org"], "bcc": "eve@example.org"})
    ((envelope, mail),) = box.mails
    assert envelope.mail_from == "shop@example.com"
    assert envelope.rcpt_tos == ["ann@example.org", "bob@example.org", "eve@example.org"]
    assert mail["Subject"] == "Grüße"
    assert mail["From"] == "Shop <shop@example.com>"
    assert mail["Bcc"] is None
    assert mail["Message-ID"] == message_id("r:a", "shop@example.com")
    assert mail["Date"].startswith("Tue, 14 Nov 2023")  # when it was queued, at each attempt
    assert mail.get_content().strip() == "Hello Ann"


async def test_a_mail_that_is_sent_again_is_the_same_to_the_byte(box: Postbox, port: int) -> None:
    payload = PAYLOAD | {"html": "<b>Hello</b>"}
    await send(port, payload)
    await send(port, payload)
    await send(port, payload, key="r:b")
    first, second, other = (envelope.content for envelope, _ in box.mails)
    assert first == second != other
    kinds = [part.get_content_type() for part in box.mails[0][1].iter_parts()]
    assert kinds == ["text/plain", "text/html"]


async def test_an_address_beyond_ascii_is_taken_by_a_server_that_can(
    box: Postbox, port: int
) -> None:
    await send(port, PAYLOAD | {"to": "jürgen@example.org"})
    assert box.mails[0][0].rcpt_tos == ["jürgen@example.org"]


@pytest.mark.parametrize("command", ["MAIL", "ann@example.org", "DATA"])
@pytest.mark.parametrize(
    ("answer", "error"),
    [("550 never", errors.EffectRefused), ("451 later", errors.DeliveryFailed)],
)
async def test_5xx_is_a_refusal_for_good_and_4xx_is_tried_again(
    box: Postbox, port: int, command: str, answer: str, error: type[Exception]
) -> None:
    box.answers[command] = answer
    with pytest.raises(error, match=answer[4:]):
        await send(port)


async def test_if_one_recipient_is_refused_nobody_gets_it(box: Postbox, port: int) -> None:
    box.answers["bob@example.org"] = "550 no such user"
    with pytest.raises(errors.EffectRefused, match=r"bob@example\.org"):
        await send(port, PAYLOAD | {"cc": "bob@example.org"})
    assert box.mails == []


@pytest.mark.parametrize(
    "payload",
    [
        "text",
        {"subject": "nobody"},
        PAYLOAD | {"subjet": "typo"},
        PAYLOAD | {"subject": "a\r\nBcc: eve@example.org"},
        PAYLOAD | {"to": "ann@example.org\r\nBcc: eve@example.org"},
    ],
)
async def test_a_payload_that_makes_no_mail_is_refused_before_anything_is_sent(
    box: Postbox, port: int, payload: object
) -> None:
    with pytest.raises(errors.EffectRefused, match="makes no mail"):
        await send(port, payload)
    assert box.mails == []


async def test_a_message_of_ones_own_making_gets_the_same_message_id(
    box: Postbox, port: int
) -> None:
    def compose(payload: object) -> email.message.EmailMessage:
        message = email.message.EmailMessage()
        message["To"], message["Subject"] = "ann@example.org", f"order {payload}"
        message["Message-ID"] = "<random@example.com>"
        message.set_content("x")
        return message

    mail = Mail("127.0.0.1", "shop@example.com", port, compose=compose)
    await mail.deliver(outboxes.parcel("r:a", 3), 5)
    assert box.mails[0][1]["Subject"] == "order 3"
    assert box.mails[0][1]["Message-ID"] == message_id("r:a", "shop@example.com")


async def test_a_server_that_is_silent_is_left_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mail = Mail("127.0.0.1", "shop@example.com", silent.getsockname()[1])
        with pytest.raises(errors.DeliveryFailed, match="no answer within"):
            await mail.deliver(outboxes.parcel("r:a", PAYLOAD), 0.2)


async def test_a_relay_sends_mail_and_buries_what_is_refused(
    url: str, box: Postbox, port: int
) -> None:
    box.answers["bob@example.org"] = "550 no such user"
    channel = Channel("c", Mail("127.0.0.1", "shop@example.com", port))
    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "a", [1], payload=PAYLOAD)
        await outboxes.fill(store, "b", [1], payload=PAYLOAD | {"to": "bob@example.org"})
        tally = await Relay(store, channel, now=Clock(), fraction=lambda: 1.0).once()
        assert (tally.delivered, tally.dead) == (1, 1)
        assert "no such user" in (await outboxes.letter(store, "dead")).message
    assert len(box.mails) == 1
