"""The adapter to Pydantic AI, against a small server that speaks OpenAI's chat interface."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ninelives import errors
from ninelives.adapters import ollama
from ninelives.durable import models
from ninelives.durable.usage import ModelReply, ModelRequest, Usage

ABSENT = object()


class Provider(ThreadingHTTPServer):
    """Answers as it is told, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ProviderRequest)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.status = 200
        self.usage: object = ABSENT
        self.drop = False
        self.requests: list[tuple[str, dict[str, object]]] = []

    def answer(self) -> dict[str, object]:
        if self.status != 200:
            return {"error": {"message": "not today", "type": "a_type", "code": "a_code"}}
        message = {"role": "assistant", "content": "Check the valves."}
        document: dict[str, object] = {
            "id": "chat-1",
            "object": "chat.completion",
            "created": 1,
            "model": "small",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        }
        return document if self.usage is ABSENT else {**document, "usage": self.usage}


class ProviderRequest(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, json.loads(body)))
        if self.server.drop:
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.reply(self.server.status, self.server.answer())

    def do_GET(self) -> None:
        self.reply(200, {"object": "list", "data": []})

    def reply(self, status: int, document: dict[str, object]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


async def ask(provider: Provider, **fields: object) -> ModelReply:
    model = models.resolve(f"openai:small@{provider.url}/v1")
    return await model.request(ModelRequest(model=model.name, prompt="Item 12?", **fields))


async def test_text_usage_and_id_come_back(provider: Provider) -> None:
    provider.usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert await ask(provider) == ModelReply(
        text="Check the valves.",
        usage=Usage(input_tokens=3, output_tokens=4, total_tokens=7),
        response_id="chat-1",
    )


async def test_prompt_system_and_limit_are_sent_once(provider: Provider) -> None:
    await ask(provider, system="Be brief.", max_output_tokens=12)
    ((path, sent),) = provider.requests
    assert path == "/v1/chat/completions"
    assert sent["model"] == "small"
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Item 12?"},
    ]
    assert sent["max_tokens"] == 12


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (ABSENT, None),
        (None, None),
        (
            {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
            Usage(input_tokens=0, output_tokens=0, total_tokens=0),
        ),
        (
            {"completion_tokens": 4, "total_tokens": 4},
            Usage(input_tokens=None, output_tokens=4, total_tokens=4),
        ),
        (
            {"prompt_tokens": 3, "completion_tokens": None, "total_tokens": 3},
            Usage(input_tokens=3, output_tokens=None, total_tokens=3),
        ),
        (
            {"prompt_tokens": 3, "completion_tokens": 4},
            Usage(input_tokens=3, output_tokens=4, total_tokens=None),
        ),
        (
            {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 99},
            Usage(input_tokens=3, output_tokens=4, total_tokens=99),
        ),
        ({}, Usage()),
    ],
    ids=["absent", "null", "zero", "no input", "null output", "no total", "other total", "empty"],
)
async def test_the_reply_is_kept_and_what_was_not_reported_is_none_and_zero_is_zero(
    provider: Provider, reported: object, expected: Usage | None
) -> None:
    provider.usage = reported
    reply = await ask(provider)
    assert reply.text == "Check the valves."
    assert reply.usage == expected


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 429])
async def test_a_status_of_class_4xx_is_a_certain_refusal_and_not_tried_again(
    provider: Provider, status: int
) -> None:
    provider.status = status
    with pytest.raises(errors.ModelRefused, match="not today"):
        await ask(provider)
    assert len(provider.requests) == 1


@pytest.mark.parametrize("status", [408, 500, 502, 503])
async def test_a_status_that_leaves_the_outcome_unknown_is_no_refusal_and_not_tried_again(
    provider: Provider, status: int
) -> None:
    provider.status = status
    with pytest.raises(Exception, match=str(status)) as raised:
        await ask(provider)
    assert not isinstance(raised.value, errors.NineLivesError)
    assert len(provider.requests) == 1


async def test_a_dropped_connection_is_no_refusal_and_not_tried_again(provider: Provider) -> None:
    provider.drop = True
    with pytest.raises(Exception, match=r"[Cc]onnection") as raised:
        await ask(provider)
    assert not isinstance(raised.value, errors.NineLivesError)
    assert len(provider.requests) == 1


async def test_one_model_serves_request_after_request(provider: Provider) -> None:
    model = models.resolve(f"openai:small@{provider.url}/v1")
    for _ in range(2):
        await model.request(ModelRequest(model=model.name, prompt="again"))
    assert len(provider.requests) == 2


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_ollama_is_asked_under_v1_at_the_given_address(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setenv("OLLAMA_URL", provider.url + suffix)
    model = models.resolve("ollama:llama3.2")
    await model.request(ModelRequest(model=model.name, prompt="hello"))
    ((path, sent),) = provider.requests
    assert (path, sent["model"]) == ("/v1/chat/completions", "llama3.2")


async def test_ollama_base_url_is_honoured_too(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", f"{provider.url}/v1")
    model = models.resolve("ollama:llama3.2")
    await model.request(ModelRequest(model=model.name, prompt="hello"))
    assert len(provider.requests) == 1


def test_a_server_that_answers_is_found_and_a_closed_port_is_not(provider: Provider) -> None:
    assert ollama.ollama_answers(provider.url)
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        assert not ollama.ollama_answers(f"http://127.0.0.1:{reserved.getsockname()[1]}")
    assert not ollama.ollama_answers("file:///etc/hostname")
    assert not ollama.ollama_answers("nonsense")


def test_ollama_is_on_this_machine_unless_said_otherwise() -> None:
    assert ollama.url({}) == "http://127.0.0.1:11434"
    assert ollama.url({"OLLAMA_URL": "box:11434"}) == "http://box:11434"
    both = {"OLLAMA_URL": "http://a", "OLLAMA_BASE_URL": "http://b/v1"}
    assert ollama.url(both) == "http://a"


@pytest.mark.parametrize("name", ["nobody:model", "no-such-thing", "openai:gpt-4o"])
def test_a_model_that_cannot_be_used_says_why(name: str) -> None:
    with pytest.raises(errors.ModelUnavailable) as raised:
        models.resolve(name)
    assert name in str(raised.value)


def test_without_the_extra_the_error_says_what_to_install() -> None:
    code = (
        "import sys\n"
        "sys.modules['pydantic_ai'] = None\n"
        "from ninelives.durable import models\n"
        "from ninelives import errors\n"
        "try:\n"
        "    models.resolve('ollama:llama3.2')\n"
        "except errors.ModelUnavailable as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'ninelives[agents]'" in done.stdout
