"""What leaves this machine with a key in it goes to the host that was named, and an answer has an end."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import escape
from typing import Any
from urllib.parse import quote, unquote

import pytest
from aiohttp import web

from coaudit.judges import JudgeError
from coaudit.judges.clients import Message, Parameters, Question, dialect, http
from coaudit.judges.clients.litellm import LiteLLMClient
from coaudit.judges.clients.protocol import Fatal, Form, Overloaded, Transient
from coaudit.judges.clients.select import client
from coaudit.schemas.url import shown_url, without_secrets

SECRET = "sk-very-secret-1234567890"
QUESTION = Question((Message("user", "A prompt that nobody else may see."),), Form(max_tokens=5))
KEYS = {
    "openai/judge": "OPENAI_API_KEY",
    "hosted_vllm/judge": "HOSTED_VLLM_API_KEY",
    "anthropic/claude-3-5-haiku-latest": "ANTHROPIC_API_KEY",
    "azure/judge": "AZURE_API_KEY",
    "litellm_proxy/judge": "LITELLM_PROXY_API_KEY",
}


@dataclass
class Echo:
    """A host that says a word about its key in every place, cut where it is or not."""

    place: str
    url: str = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        key = (request.headers.get("Authorization") or "").removeprefix("Bearer ")
        said = {"content": "Yes.", "refusal": None}
        document = {"model": "judge", "choices": [{"message": said}]}
        match self.place:
            case "models":
                document = {"data": [{"id": f"judge-{key}"}]}
                return web.json_response(document, status=200 if request.path.endswith("/models") else 404)
            case "text":
                return web.Response(text="x" * 70 + key)
            case "error":
                return web.json_response({"error": {"message": "x" * 290 + key}}, status=400)
            case "codec":
                why = "'ascii' codec can't encode character '\\u201c' in position 3"
                return web.json_response({"error": {"message": why}}, status=500)
            case "bare":
                said["content"] = f"Yes,{key.strip()}."
            case "models refused":
                return web.json_response({"error": {"message": "x" * 290 + key}}, status=401)
            case "page":
                return web.Response(text="\n<!doctype html><title>Chat</title>", content_type="text/html")
            case "location":
                return web.Response(status=302, headers={"Location": f"http://elsewhere.example/{key}"})
            case "logprob" | "token":
                token = {"token": "yes", "logprob": -0.5} | {self.place: key}
                choice = {"message": said, "logprobs": {"content": [token]}}
                return web.json_response({"choices": [choice]})
            case "model":
                document["model"] = key
            case place:
                said[place] = f"Yes, {key}."
        return web.json_response(document)


@dataclass
class Host:
    """A host that redirects, or answers without end, and what it was told."""

    goes_to: str = ""
    length: int = 0
    is_slow: bool = False
    url: str = ""
    heard: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.heard.append(f"{request.headers} {(await request.read()).decode('utf-8', 'replace')}")
        if self.goes_to:
            return web.Response(status=307, headers={"Location": f"{self.goes_to}{request.path}"})
        stream = web.StreamResponse(headers={"Content-Type": "application/json"})
        await stream.prepare(request)
        while self.is_slow:
            await stream.write(b" ")
            await asyncio.sleep(0.1)
        for _ in range(self.length >> 16):
            await stream.write(b" " * (1 << 16))
        return stream


@asynccontextmanager
async def serving(*hosts: Host | Echo) -> AsyncIterator[None]:
    runners = []
    for host in hosts:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{path:.*}", host.answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        runners.append(runner)
    try:
        yield
    finally:
        for runner in runners:
            await runner.cleanup()


async def refusal(model: str, url: str, timeout: float = 20.0) -> JudgeError:
    async with client(model, url, Parameters(), timeout) as complete:
        with pytest.raises(JudgeError) as refused:
            await complete(QUESTION)
    return refused.value


PLACES = ("content", "refusal", "model", "text", "error", "models", "models refused", "location", "token")


@pytest.mark.parametrize("place", PLACES)
def test_a_key_that_a_server_sends_back_is_in_nothing_that_is_kept(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(monkeypatch)
    seen = asyncio.run(echoed("openai/judge", place))
    assert SECRET[:6] not in seen and "***" in seen


async def test_a_key_in_place_of_a_number_is_left_out_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch)
    seen = await echoed("openai/judge", "logprob")
    assert SECRET[:6] not in seen and "tokens=()" in seen


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", ["content", "refusal", "model", "location"])
def test_a_key_that_comes_back_through_litellm_is_in_nothing_that_is_kept(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(monkeypatch)
    assert SECRET[:6] not in asyncio.run(echoed("litellm_proxy/judge", place))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("key", ["sk-a\nb", "sk-“key”"])
def test_a_key_that_no_header_holds_is_not_tried_again_through_litellm(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITELLM_PROXY_API_KEY", key)
    said = asyncio.run(echoed("litellm_proxy/judge", "content"))
    assert "litellm_proxy/judge: its key must be one line of ASCII" in said and "sk-" not in said


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_a_server_cannot_encode_is_not_our_key(monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch)
    said = asyncio.run(echoed("litellm_proxy/judge", "codec"))
    assert "'ascii' codec can't encode character" in said and "its key" not in said


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_space_around_a_key_is_none_of_what_is_blotted(monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch)
    monkeypatch.setenv("LITELLM_PROXY_API_KEY", f" {SECRET}")
    said = asyncio.run(echoed("litellm_proxy/judge", "bare"))
    assert SECRET[:6] not in said and "***" in said


async def echoed(model: str, place: str) -> str:
    """What is known of a host that echoes: its offer, its reply, or what went wrong."""
    host = Echo(place)
    async with serving(host), client(model, f"{host.url}/v1", Parameters(), 20.0) as complete:
        try:
            return f"{await complete.offer()} {await complete(QUESTION)}"
        except JudgeError as error:
            return str(error)


async def test_a_server_that_answers_with_pages_is_no_endpoint() -> None:
    """Each of its pages was taken for an answer cut short, and asked for again for a minute."""
    assert "answers with a page, not with a list of models" in await echoed("openai/judge", "page")


async def test_a_placeholder_for_a_key_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "EMPTY")
    assert "Yes, EMPTY." in await echoed("openai/judge", "content")


def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_API_VERSION", "2024-10-21")
    for variable in KEYS.values():
        monkeypatch.setenv(variable, SECRET)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", KEYS)
def test_a_redirect_takes_neither_key_nor_prompt_to_another_host(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(monkeypatch)

    async def run() -> tuple[Host, Host, JudgeError]:
        thief, named = Host(), Host()
        async with serving(thief, named):
            named.goes_to = thief.url
            return thief, named, await refusal(model, f"{named.url}/v1")

    thief, named, refused = asyncio.run(run())
    assert any(SECRET in heard for heard in named.heard), "the key went to the host that was named"
    assert not thief.heard
    assert isinstance(refused, Fatal) and "redirect" in str(refused)
    assert SECRET not in str(refused)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("azure/o3-mini", ("temperature",)),
        ("anthropic/claude-3-5-haiku-latest", ("seed",)),
        ("litellm_proxy/judge", ()),
    ],
)
async def test_what_litellm_drops_without_a_word_is_known(model: str, names: tuple[str, ...]) -> None:
    async with LiteLLMClient(model, None, Parameters(temperature=0.0, seed=3), 9.0) as client:
        assert client._left_out == names


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model", ["openai/judge", "anthropic/claude-3-5-haiku-latest", "litellm_proxy/judge"]
)
def test_an_answer_without_end_is_not_read_whole(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch)
    monkeypatch.setattr(http, "LARGEST_BODY", 1 << 20)

    async def run() -> JudgeError:
        host = Host(length=1 << 26)
        async with serving(host):
            return await refusal(model, f"{host.url}/v1")

    refused = asyncio.run(run())
    assert isinstance(refused, Transient) and "longer than 1 MiB" in str(refused)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["openai/judge", "litellm_proxy/judge"])
def test_an_answer_that_comes_byte_by_byte_has_no_more_time_than_another(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(monkeypatch)

    async def run() -> JudgeError:
        host = Host(is_slow=True)
        async with serving(host), asyncio.timeout(20):
            return await refusal(model, f"{host.url}/v1", timeout=1.0)

    refused = asyncio.run(run())
    assert isinstance(refused, Overloaded) and "no answer within 1 s" in str(refused)


def test_a_list_of_models_without_end_is_an_error_that_names_the_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment(monkeypatch)
    monkeypatch.setattr(http, "LARGEST_BODY", 1 << 20)

    async def run() -> None:
        host = Host(length=1 << 22)
        async with serving(host), client("openai/judge", f"{host.url}/v1", Parameters(), 20.0) as complete:
            with pytest.raises(Fatal, match=f"{host.url}/v1/models: the answer is longer than 1 MiB"):
                await complete.offer()

    asyncio.run(run())


def test_what_others_send_with_httpx_is_left_alone() -> None:
    async def run() -> tuple[int, int]:
        import httpx

        end, start = Host(length=1 << 17), Host()
        async with serving(end, start):
            start.goes_to = end.url
            with http.watch_requests():
                pass
            async with httpx.AsyncClient(follow_redirects=True) as mine:
                return (await mine.get(start.url)).status_code, len(end.heard)

    assert asyncio.run(run()) == (200, 1)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://me:pass@127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("https://host/v1?api-key=secret#part", "https://host/v1"),
        ("redis://:word@host:6379/0", "redis://host:6379/0"),
        ("http://[bad", "(not a URL)"),
        ("me:word@host/v1", "me:host/v1"),
    ],
)
def test_a_url_is_shown_without_what_may_be_a_secret(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("7", 7.0),
        ("-7", 0.0),
        ("nan", 0.0),
        ("Mon, 01 Jan 2001 00:00:00 -0000", 0.0),
        ("Mon, 01 Jan 2001 00:00:00 GMT", 0.0),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("Mon, 01 Jan 2001 00:00:00 +9999999999999999", None),
        ("soon", None),
        ("\udcff", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_a_number_or_a_date_with_or_without_a_zone(
    given: str | None, seconds: float | None
) -> None:
    assert http.retry_after(given) == seconds


@pytest.mark.parametrize("given", ["inf", "99999999", "Thu, 01 Jan 2150 00:00:00 -0000"])
def test_whatever_an_endpoint_asks_for_it_is_asked_again_within_a_minute(given: str) -> None:
    assert Overloaded("status 429", http.retry_after(given)).after == 60.0


def test_a_key_is_blotted_however_the_server_writes_it() -> None:
    key = "k-1/a+b==\"c&d<\\é'"
    once, twice = json.dumps(key)[1:-1], json.dumps(json.dumps(key))[3:-3]
    others = [
        once.replace("/", r"\/"),
        once.replace("&", r"\u0026"),
        json.dumps(key, ensure_ascii=False)[1:-1],
    ]
    for written in (key, once, twice, *others, quote(key), quote(key, safe=""), escape(key)):
        assert http.blot([key], "")(f"bad key: {written}!") == "bad key: ***!"
    assert http.blot([key], "")("k-1/a+b==") == "k-1/a+b=="


def test_what_a_client_sends_for_the_user_of_a_url_is_blotted(monkeypatch: pytest.MonkeyPatch) -> None:
    both, alone = "http://me:p%40ssword@127.0.0.1:8000/v1", "https://a-token@host/v1"
    headers = [b64encode(said).decode() for said in (b"me:p@ssword", b"a-token:")]
    said = f"Basic {headers[0]} p@ssword p%40ssword {both}"
    assert http.blot([], both)(said) == "Basic *** *** *** http://127.0.0.1:8000/v1"
    assert http.blot([], alone)(f"Basic {headers[1]} a-token") == "Basic *** ***"
    monkeypatch.setenv("HTTPS_PROXY", both)
    assert http.blot([], alone)(said) == "Basic *** *** *** http://127.0.0.1:8000/v1"
    monkeypatch.setenv("HTTPS_PROXY", both.removeprefix("http://"))
    assert http.blot([], alone)(f"Basic {headers[0]} p@ssword") == "Basic *** ***"


@pytest.mark.parametrize("password", ["p%C3%A9ssword", "p%E9ssword", "p%E2%82%ACssword"])
def test_what_a_client_sends_for_a_password_beyond_ascii_is_blotted(password: str) -> None:
    url = f"https://me:{password}@host/v1"
    known = unquote(password)
    # httpx writes UTF-8, aiohttp Latin-1, where it leaves as it is written what is no UTF-8.
    said = {
        "p%C3%A9ssword": [(known, "utf-8"), (known, "latin-1")],
        "p%E9ssword": [(known, "utf-8"), (password, "latin-1")],
        "p%E2%82%ACssword": [(known, "utf-8")],
    }[password]
    headers = [b64encode(f"me:{one}".encode(encoding)).decode() for one, encoding in said]
    assert {http.blot([], url)(header) for header in [*headers, password, known]} == {"***"}


def test_a_file_of_credentials_is_named_where_it_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/keys/judge.json")
    monkeypatch.setenv("GIGACHAT_CREDENTIALS", "c2VjcmV0LWtleQ==")
    given = LiteLLMClient("gemini/judge", None, Parameters(), 20.0)
    said = "no file /keys/judge.json, Basic c2VjcmV0LWtleQ=="
    assert given._blot(said) == "no file /keys/judge.json, Basic ***"


def test_a_password_as_short_as_a_word_leaves_answers_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:test@proxy:3128")
    blotted = http.blot(["late"], "http://user:label@host/v1")
    assert blotted('{"label": "late", "quote": "a test"}') == '{"label": "late", "quote": "a test"}'
    basic = b64encode(b"me:test").decode()
    assert blotted(f"http://me:test@proxy:3128 {basic}") == "http://proxy:3128 ***"


def test_a_message_that_quotes_a_url_loses_its_secrets() -> None:
    url = "http://me:hunter22@127.0.0.1:9/v1?key=abcdef"
    text: Any = without_secrets(f"cannot reach {url}: hunter22, key=abcdef", url)
    assert "hunter22" not in text and "abcdef" not in text and "127.0.0.1:9/v1" in text


@pytest.mark.parametrize("length", [1, dialect.MAX_NAME, dialect.MAX_NAME + 1, 3_000_000])
def test_the_name_of_a_model_has_an_end_since_each_rating_keeps_it(length: int) -> None:
    body = {"model": "m" * length, "choices": [{"message": {"content": "Yes."}}]}
    name = dialect.reply(json.dumps(body), http.blot((), "")).model
    assert name == ("m" * length if length <= dialect.MAX_NAME else "m" * (dialect.MAX_NAME - 1) + "…")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_an_error_of_litellms_is_told_without_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", SECRET)
    refused = asyncio.run(refusal("gemini/judge", f"http://me:{SECRET}@127.0.0.1:1/v1"))
    assert "credentials encoded in URL" in str(refused) and "\n" not in str(refused)
