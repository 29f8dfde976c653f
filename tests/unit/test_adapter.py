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
from ninelives.durable.prices import Priced
from ninelives.durable.usage import ModelReply, ModelRequest, Remembers, Usage

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
        self.kept: dict[str, dict[str, object]] = {}

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
        kept = self.server.kept.get(self.path)
        if kept is not None:
            self.reply(200, kept)
        elif self.path.endswith("/models"):
            self.reply(200, {"object": "list", "data": []})
        else:
            self.reply(404, {"error": {"message": "not kept", "type": "a_type"}})

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


async def test_cached_and_reasoning_tokens_are_kept_apart(provider: Provider) -> None:
    provider.usage = {
        "prompt_tokens": 30,
        "completion_tokens": 40,
        "total_tokens": 70,
        "prompt_tokens_details": {"cached_tokens": 20},
        "completion_tokens_details": {"reasoning_tokens": 15},
    }
    assert (await ask(provider)).usage == Usage(
        input_tokens=30,
        output_tokens=40,
        total_tokens=70,
        cache_read_tokens=20,
        reasoning_tokens=15,
    )


async def test_the_usage_of_a_stored_answer_is_found_by_its_id(provider: Provider) -> None:
    model = models.resolve(f"openai:small@{provider.url}/v1")
    assert isinstance(model, Remembers)
    assert await model.usage_of("chat-1") is None
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    provider.kept["/v1/chat/completions/chat-1"] = provider.answer() | {"usage": usage}
    found = await model.usage_of("chat-1")
    assert found == Usage(input_tokens=3, output_tokens=4, total_tokens=7)


async def test_the_usage_of_a_stored_response_is_found_by_its_id(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    model = models.resolve("openai-responses:gpt-4o")
    provider.kept["/v1/responses/resp-1"] = {
        "id": "resp-1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "gpt-4o",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 30,
            "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 0},
            "output_tokens": 40,
            "output_tokens_details": {"reasoning_tokens": 15},
            "total_tokens": 70,
        },
    }
    assert isinstance(model, Remembers)
    assert await model.usage_of("resp-2") is None
    assert await model.usage_of("resp-1") == Usage(
        input_tokens=30,
        output_tokens=40,
        total_tokens=70,
        cache_read_tokens=20,
        reasoning_tokens=15,
    )


def test_published_prices_hold_for_the_provider_that_publishes_them(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.setenv("OLLAMA_URL", provider.url)
    million = Usage(input_tokens=1_000_000, output_tokens=0)
    published = models.resolve("openai:gpt-4o")
    assert isinstance(published, Priced)
    dear = published.cost(million)
    assert dear is not None
    assert 1_000_000 < dear < 20_000_000
    cached = published.cost(
        Usage(input_tokens=1_000_000, cache_read_tokens=900_000, output_tokens=0)
    )
    assert cached is not None
    assert 0 < cached < dear
    names = [f"openai:gpt-4o@{provider.url}/v1", "ollama:llama3.2", "openai:no-such-model"]
    for name in [*names, "openai:gpt-4o"]:
        if name == "openai:gpt-4o":
            monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")  # somebody else's server
        unpriced = models.resolve(name)
        assert isinstance(unpriced, Priced)
        assert unpriced.cost(million) is None, name


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
