"""The lean client against a local endpoint: what it sends, what it falls back to, what failures mean."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import socket
from typing import Any

import pytest
from aiohttp import web

from coaudit.judges import JudgeError
from coaudit.judges.clients import Message, Offer, Parameters, Question, Reply, dialect, openai
from coaudit.judges.clients.protocol import (
    ContextTooSmall,
    Fatal,
    Form,
    Overloaded,
    Refused,
    Rejected,
    Transient,
    UnknownModel,
)
from coaudit.judges.clients.select import client
from coaudit.judges.clients.select import endpoint as endpoint_of
from coaudit.judges.llm.prices import price_of
from tests.judges.endpoint import Endpoint

SCHEMA = {"type": "object", "properties": {"answer": {"enum": ["yes", "no"]}}}
CHOICE = Question((Message("user", "yes or no?"),), Form(choices=("yes", "no"), schema=SCHEMA))
OBJECT = Question((Message("user", "an object?"),), Form(schema=SCHEMA, max_tokens=500))


def ask(endpoint: Endpoint, model: str, question: Question = CHOICE, **given: Any) -> Reply:
    async def run() -> Reply:
        async with client(model, endpoint.url, Parameters(**given)) as complete:
            return await complete(question)

    return asyncio.run(run())


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-“key”"])
def test_a_key_that_no_header_holds_is_named_by_its_variable_alone(
    endpoint: Endpoint, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(Fatal, match="OPENAI_API_KEY must be one line of ASCII") as wrong:
        ask(endpoint, "openai/judge")
    assert "sk-" not in str(wrong.value)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-key\r\n")
    ask(endpoint, "openai/judge")
    assert endpoint.keys == ["Bearer sk-key"]


def offer(url: str, model: str = "openai/judge") -> Offer:
    async def run() -> Offer:
        async with client(model, url, Parameters()) as complete:
            return await complete.offer()

    return asyncio.run(run())


def rejecting(*words: str, status: int = 400) -> Any:
    """An endpoint's answer that rejects requests with certain fields."""

    def answer(body: dict[str, Any]) -> str | web.Response:
        for word in words:
            if word in json.dumps(body):
                return web.json_response({"error": {"message": f"{word} is not supported"}}, status=status)
        return "yes"

    return answer


def test_vllm_is_held_to_choices_and_others_to_a_schema(endpoint: Endpoint) -> None:
    ask(endpoint, "hosted_vllm/judge")
    ask(endpoint, "openai/judge")
    vllm, openai = endpoint.asked
    assert vllm["structured_outputs"] == {"choice": ["yes", "no"]}
    assert openai["response_format"]["json_schema"]["schema"] == SCHEMA
    assert vllm["model"] == openai["model"] == "judge"
    assert "guided_choice" not in json.dumps(vllm)


def test_parameters_are_sent(endpoint: Endpoint) -> None:
    ask(endpoint, "openai/judge", OBJECT, temperature=0.3, seed=7)
    (body,) = endpoint.asked
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.3, 7, 500)
    assert "logprobs" not in body


def test_an_endpoint_that_rejects_structure_is_asked_without_it_from_then_on(endpoint: Endpoint) -> None:
    endpoint.answer = rejecting("structured_outputs", "response_format")

    async def run() -> None:
        async with client("hosted_vllm/judge", endpoint.url, Parameters()) as complete:
            assert (await complete(CHOICE)).text == "yes"
            assert (await complete(CHOICE)).text == "yes"

    asyncio.run(run())
    assert endpoint.statuses == {400: 2, 200: 2}


def test_a_question_that_is_rejected_in_any_form_leaves_the_others_held_to_theirs(endpoint: Endpoint) -> None:
    def answer(body: dict[str, Any]) -> str | web.Response:
        if "poison" in json.dumps(body):
            return web.json_response({"error": {"message": "filtered", "code": "content_filter"}}, status=400)
        return "yes"

    async def run() -> None:
        async with client("hosted_vllm/judge", endpoint.url, Parameters()) as complete:
            with pytest.raises(Rejected, match="filtered"):
                await complete(Question((Message("user", "poison"),), CHOICE.form))
            await complete(CHOICE)

    endpoint.answer = answer
    asyncio.run(run())
    assert endpoint.asked[-1]["structured_outputs"] == {"choice": ["yes", "no"]}


def test_one_rejected_question_is_not_why_the_next_is_given_up_where_all_rejections_read_alike(
    endpoint: Endpoint,
) -> None:
    def answer(body: dict[str, Any]) -> str | web.Response:
        if any(word in json.dumps(body) for word in ("poison", "structured_outputs", "response_format")):
            return web.json_response({"error": {"message": "Bad request"}}, status=400)
        return "yes"

    async def run() -> None:
        async with client("hosted_vllm/judge", endpoint.url, Parameters()) as complete:
            with pytest.raises(Rejected, match="Bad request"):
                await complete(Question((Message("user", "poison"),), CHOICE.form))
            assert (await complete(CHOICE)).text == "yes"

    endpoint.answer = answer
    asyncio.run(run())


@pytest.mark.parametrize("field", ["logprobs", "temperature"])
def test_an_endpoint_that_rejects_a_parameter_is_asked_without_it(endpoint: Endpoint, field: str) -> None:
    endpoint.answer = rejecting(field)
    assert ask(endpoint, "openai/judge").text == "yes"
    assert field not in endpoint.asked[-1]
    assert "response_format" in endpoint.asked[-1]


def test_an_answer_without_our_temperature_says_so(endpoint: Endpoint) -> None:
    assert ask(endpoint, "openai/judge").left_out == ()
    endpoint.answer = rejecting("temperature")
    assert ask(endpoint, "openai/judge").left_out == ("temperature",)


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens is too large: 4096. This model supports at most 2048 completion tokens",
        "`max_completion_tokens` must be less than or equal to `2048`",
    ],
)
def test_an_answer_that_may_not_be_so_long_is_rejected_and_the_next_is_held_to_its_form(
    endpoint: Endpoint, text: str
) -> None:
    def answer(body: dict[str, Any]) -> str | web.Response:
        if body["max_tokens"] > 2048:
            return web.json_response({"error": {"message": text}}, status=400)
        return '{"answer": "yes"}'

    async def both() -> None:
        async with client("openai/judge", endpoint.url, Parameters()) as complete:
            with pytest.raises(Rejected, match="max_"):
                await complete(CHOICE.within(4096))
            await complete(CHOICE)

    endpoint.answer = answer
    asyncio.run(both())
    assert [body["response_format"]["type"] for body in endpoint.asked] == ["json_schema", "json_schema"]


def test_a_model_that_wants_max_completion_tokens_gets_it(endpoint: Endpoint) -> None:
    def answer(body: dict[str, Any]) -> str | web.Response:
        if "max_tokens" in body:
            text = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
            return web.json_response({"error": {"message": text}}, status=400)
        return "yes"

    endpoint.answer = answer
    assert ask(endpoint, "openai/judge").text == "yes"


def test_log_probabilities_usage_and_the_answering_model_are_read(endpoint: Endpoint) -> None:
    def answer(body: dict[str, Any]) -> web.Response:
        top = [{"token": "yes", "logprob": -0.1}, {"token": "no", "logprob": -2.4}]
        tokens = [{"token": "yes", "logprob": -0.1, "top_logprobs": top}]
        usage = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 8}}
        choice = {"message": {"content": "yes"}, "logprobs": {"content": tokens}, "finish_reason": "stop"}
        return web.json_response({"model": "judge-2026", "choices": [choice], "usage": usage})

    endpoint.answer = answer
    reply = ask(endpoint, "hosted_vllm/judge")
    assert (reply.model, reply.prompt_tokens, reply.cached_tokens) == ("judge-2026", 9, 8)
    assert reply.tokens[0].rivals == (("yes", -0.1), ("no", -2.4))


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (429, "slow down", Overloaded),
        (503, "loading", Overloaded),
        (400, "This model's maximum context length is 4096 tokens.", ContextTooSmall),
        (400, "bad request", Rejected),
        (404, "The model `judge` does not exist", UnknownModel),
        (429, "insufficient_quota", Fatal),
        (402, "Insufficient Balance", Fatal),
        (403, "Your key has no access", Fatal),
        (403, "Your chosen model requires moderation and your input was flagged", Refused),
        (302, "the endpoint redirects", Fatal),
    ],
)
def test_a_status_means_what_the_asker_can_do_about_it(
    endpoint: Endpoint, status: int, text: str, kind: type[Exception]
) -> None:
    endpoint.answer = lambda _: web.json_response({"error": {"message": text}}, status=status)
    with pytest.raises(kind, match=text[:15]):
        ask(endpoint, "openai/judge")


def test_the_limit_of_a_context_is_taken_from_the_message(endpoint: Endpoint) -> None:
    text = "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens."
    endpoint.answer = lambda _: web.json_response({"message": text}, status=400)
    with pytest.raises(ContextTooSmall) as small:
        ask(endpoint, "openai/judge")
    assert small.value.limit == 4096


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, '{"error": {"message": "the request exceeds the available context size", "n_ctx": 4096}}'),
        (500, '{"error": {"message": "the request exceeds the available context size", "n_ctx": 4096}}'),
        (400, "The input token count (9000) exceeds the maximum number of tokens allowed (4096)."),
        (400, "The input (9000 tokens) is longer than the model's context length (4096 tokens)."),
        (400, "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it"),
        (400, "This model's maximum context length is 4,096 tokens. Your messages have 9,000 tokens."),
        (400, "prompt is too long: 9000 tokens > 4096 maximum"),
        (400, "prompt is too long: 9,000 tokens > 4,096 maximum"),
        (400, "Prompt contains 9000 tokens, too large for model with 4096 maximum context length"),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9000 `inputs` tokens and 64 more"),
        (422, "`inputs` must have less than 4096 tokens. Given: 9000"),
        (413, "Request too large for model on tokens per minute (TPM): Limit 4096, Requested 9000"),
        (429, "Request too large for model on tokens per min (TPM): Limit 4096, Requested 9000."),
    ],
)
def test_a_question_that_is_too_long_is_known_in_the_words_of_any_server(
    endpoint: Endpoint, status: int, text: str
) -> None:
    endpoint.answer = lambda _: web.Response(text=text, status=status)
    with pytest.raises(ContextTooSmall) as small:
        ask(endpoint, "openai/judge")
    assert (small.value.limit, len(endpoint.asked)) == (4096, 1)


@pytest.mark.parametrize(
    "text",
    [
        '{"error": {"code": "context_window_exceeded", "message": "The request does not fit"}}',
        "This model's maximum context length is 128K tokens.",
    ],
)
def test_a_question_may_be_too_long_for_a_limit_that_is_not_told_in_tokens(
    endpoint: Endpoint, text: str
) -> None:
    endpoint.answer = lambda _: web.Response(text=text, status=400)
    with pytest.raises(ContextTooSmall) as small:
        ask(endpoint, "openai/judge")
    assert small.value.limit is None


def test_an_error_about_the_answers_length_does_not_say_that_the_question_is_too_long(
    endpoint: Endpoint,
) -> None:
    """Its `context_window` was taken for that, and all questions after it for too long as well."""
    text = (
        "`max_tokens` must be less than or equal to `32`, the maximum value is less than the `context_window`"
    )
    endpoint.answer = lambda _: web.Response(text=text, status=400)
    with pytest.raises(Rejected):
        ask(endpoint, "openai/judge")


def test_retry_after_is_read(endpoint: Endpoint) -> None:
    endpoint.answer = lambda _: web.Response(status=429, headers={"Retry-After": "7"})
    with pytest.raises(Overloaded) as overloaded:
        ask(endpoint, "openai/judge")
    assert overloaded.value.after == 7.0


@pytest.mark.parametrize("body", ["", '{"choices": [{"mess', "[]", '{"choices": []}', "null", "[" * 100_000])
def test_a_broken_body_is_asked_for_again(endpoint: Endpoint, body: str) -> None:
    endpoint.answer = lambda _: web.Response(text=body, content_type="application/json")
    with pytest.raises(Transient, match="broken"):
        ask(endpoint, "openai/judge")


def test_an_answer_without_choices_took_what_it_says(endpoint: Endpoint) -> None:
    usage = {"prompt_tokens": 60, "completion_tokens": 0}
    endpoint.answer = lambda _: web.json_response({"choices": [], "usage": usage})
    with pytest.raises(Transient, match="broken") as broken:
        ask(endpoint, "openai/judge")
    taken = broken.value.consumption
    assert taken is not None and taken.says_what_it_took
    assert (taken.prompt_tokens, taken.completion_tokens) == (60, 0)


def test_a_broken_answer_that_does_not_tell_what_was_generated_took_nobody_knows_what(
    endpoint: Endpoint,
) -> None:
    choice = {"message": {"content": {"text": "yes"}}}
    usage = {"prompt_tokens": 60}
    endpoint.answer = lambda _: web.json_response({"choices": [choice], "usage": usage})
    with pytest.raises(Transient, match="broken") as broken:
        ask(endpoint, "openai/judge")
    assert broken.value.consumption is not None and not broken.value.consumption.says_what_it_took


def document(content: object = "yes", **said: Any) -> dict[str, Any]:
    """A 200 with these fields of the message, the choice or the document in place of usual ones."""
    answer = {"content": content} | {k: v for k, v in said.items() if k == "refusal"}
    choice = {
        "message": answer,
        "finish_reason": said.get("finish", "stop"),
        "logprobs": said.get("logprobs"),
    }
    return {"model": said.get("model", "judge"), "choices": [choice], "usage": said.get("usage")}


def logged(**token: object) -> dict[str, object]:
    """The log-probabilities of an answer of one token."""
    return {"content": [{"token": "yes", **token}]}


@pytest.mark.parametrize("finish", ["error", "abort"])
def test_an_answer_that_was_broken_off_is_no_answer_and_is_counted(endpoint: Endpoint, finish: str) -> None:
    usage = {"prompt_tokens": 60, "completion_tokens": 1}
    endpoint.answer = lambda _: web.json_response(document("no", finish=finish, usage=usage))
    with pytest.raises(Transient, match=f"broken off.*{finish}") as broken:
        ask(endpoint, "openai/judge")
    assert broken.value.consumption is not None and broken.value.consumption.says_what_it_took


@pytest.mark.parametrize("finish", ["model_length", "max_tokens"])
def test_an_answer_is_cut_off_whatever_a_server_calls_that(endpoint: Endpoint, finish: str) -> None:
    endpoint.answer = lambda _: web.json_response(document("no", finish=finish))
    assert ask(endpoint, "openai/judge").finish == "length"


@pytest.mark.parametrize(("native", "kind"), [("abort", Transient), ("ERROR", Transient), ("STOP", None)])
def test_an_answer_that_was_broken_off_is_none_where_litellm_calls_it_whole(
    native: str, kind: type[Exception] | None
) -> None:
    answer = document("no")
    answer["choices"][0]["provider_specific_fields"] = {"native_finish_reason": native}
    with pytest.raises(kind, match="broken off") if kind else contextlib.nullcontext():
        assert dialect.reply(json.dumps(answer), str).finish == "stop"


@pytest.mark.parametrize("token", [{}, {"logprob": float("nan")}, {"logprob": 0.9}, {"logprob": math.inf}])
def test_a_log_probability_that_is_none_is_not_one_of_certainty(
    endpoint: Endpoint, token: dict[str, object]
) -> None:
    body = json.dumps(document("yes", logprobs=logged(**token)))
    endpoint.answer = lambda _: web.Response(text=body, content_type="application/json")
    assert ask(endpoint, "openai/judge").tokens == ()


@pytest.mark.parametrize(
    "content", [5, ["yes", 5], [{"type": "text", "text": 5}], [{"type": "text"}], {"text": "yes"}]
)
def test_an_answer_whose_text_is_none_is_asked_for_again(endpoint: Endpoint, content: object) -> None:
    endpoint.answer = lambda _: web.json_response(document(content))
    with pytest.raises(Transient, match="broken"):
        ask(endpoint, "openai/judge")


@pytest.mark.parametrize(
    "said",
    [
        {"content": ["y", "es"]},
        {"model": {"a": 1}},
        {"refusal": False},
        {"refusal": {"a": 1}},
        {"finish": ["length"]},
        {"finish": 1},
        {"logprobs": [1]},
        {"logprobs": {"content": ["yes"]}},
        {"logprobs": logged(logprob=None)},
        {"logprobs": logged(logprob="abc")},
        {"logprobs": logged(logprob=-0.1, top_logprobs=[{"token": "yes"}])},
        {"usage": [1]},
        {"usage": {"prompt_tokens": "5"}},
        {"usage": {"prompt_tokens": -7}},
        {"usage": {"prompt_tokens": 2**80}},
        {"usage": {"completion_tokens": math.inf}},
        {"usage": {"completion_tokens": 5.5}},
        {"usage": {"prompt_tokens_details": [1]}},
    ],
)
def test_what_stands_beside_an_answer_in_another_form_costs_no_answer(
    endpoint: Endpoint, said: dict[str, Any]
) -> None:
    endpoint.answer = lambda _: web.json_response(document(**said))
    reply = ask(endpoint, "openai/judge")
    assert (reply.text, reply.tokens) == ("yes", ())
    assert reply.prompt_tokens == reply.cached_tokens == reply.completion_tokens == 0


def test_an_answer_in_parts_is_its_texts(endpoint: Endpoint) -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Is it?"}]}
    parts = [thinking, {"type": "text", "text": "ye"}, {"type": "text", "text": "s"}]
    usage = {"prompt_tokens": 5.0, "completion_tokens": None, "prompt_tokens_details": None}
    endpoint.answer = lambda _: web.json_response(document(parts, usage=usage))
    reply = ask(endpoint, "openai/judge")
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("yes", 5, 0)


@pytest.mark.parametrize("field", ["content", "model", "refusal"])
def test_half_a_character_is_replaced_where_an_answer_is_read(endpoint: Endpoint, field: str) -> None:
    endpoint.answer = lambda _: web.json_response(document(**{field: "so \ud83d"}))
    reply = ask(endpoint, "openai/judge")
    assert "so ?" in (reply.text, reply.model, reply.refusal)


def test_half_a_character_is_replaced_where_an_error_is_read(endpoint: Endpoint) -> None:
    error = {"error": {"message": "no \ud83d", "code": "c\udfff"}}
    endpoint.answer = lambda _: web.json_response(error, status=403)
    with pytest.raises(Fatal, match=r"no \? \(c\?\)"):
        ask(endpoint, "openai/judge")


def test_an_answer_for_which_nothing_was_generated_is_asked_for_again(endpoint: Endpoint) -> None:
    usage = {"prompt_tokens": 90, "completion_tokens": 0}
    endpoint.answer = lambda _: web.json_response(document("", usage=usage))
    with pytest.raises(Transient, match="empty") as empty:
        ask(endpoint, "openai/judge")
    assert empty.value.consumption and empty.value.consumption.prompt_tokens == 90


@pytest.mark.parametrize(
    ("finish", "tokens"), [("content_filter", 0), ("length", 64), ("tool_calls", 9), ("stop", 5)]
)
def test_an_answer_without_words_is_one_and_what_it_took_is_read(
    endpoint: Endpoint, finish: str, tokens: int
) -> None:
    usage = {"prompt_tokens": 90, "completion_tokens": tokens}
    choice = {"message": {"content": None, "reasoning_content": "Let me see"}, "finish_reason": finish}
    endpoint.answer = lambda _: web.json_response({"choices": [choice], "usage": usage})
    reply = ask(endpoint, "openai/judge")
    assert (reply.text, reply.finish, reply.prompt_tokens) == ("", finish, 90)


def test_an_answer_that_does_not_come_in_time_is_asked_for_again(endpoint: Endpoint) -> None:
    endpoint.latency = 5

    async def run() -> None:
        async with client("openai/judge", endpoint.url, Parameters(), timeout=0.2) as complete:
            await complete(CHOICE)

    with pytest.raises(Overloaded, match="no answer within"):
        asyncio.run(run())


def test_a_host_whose_queue_of_connections_is_full_is_overloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "CONNECT_SECONDS", 0.2)

    async def run(url: str) -> None:
        async with client("openai/judge", url, Parameters(), timeout=20) as complete:
            await complete(CHOICE)

    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as waiting:
        for _ in range(3):  # more than its queue holds: the next is not answered at all
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        with pytest.raises(Overloaded, match="no connection within"):
            asyncio.run(run(f"http://127.0.0.1:{full.getsockname()[1]}/v1"))


def test_the_key_comes_from_the_environment_and_never_shows(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.key = "right"
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "sk-very-secret")
    with pytest.raises(Fatal) as refused:
        ask(endpoint, "hosted_vllm/judge")
    assert endpoint.keys == ["Bearer sk-very-secret"]
    assert "sk-very-secret" not in str(refused.value)
    assert "HOSTED_VLLM_API_KEY was not accepted" in str(refused.value)


@pytest.mark.long
def test_a_provider_whose_key_is_missing_ends_the_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)

    async def run() -> Reply:
        async with client("gpt-4o", None, Parameters()) as complete:
            return await complete(CHOICE)

    with pytest.raises(Fatal, match="OPENAI_API_KEY"):
        asyncio.run(run())


def test_an_endpoint_says_what_it_offers_and_how_long_its_context_is(endpoint: Endpoint) -> None:
    endpoint.context = 8192
    assert offer(endpoint.url) == Offer(("judge",), 8192)


@pytest.mark.parametrize("said", ["abc", math.inf, math.nan, -5, 0, True, 0.5, [8192], 2**80])
def test_a_context_that_is_no_positive_whole_number_is_not_known(endpoint: Endpoint, said: Any) -> None:
    endpoint.context = said
    assert offer(endpoint.url) == Offer(("judge",), None)


def test_an_endpoint_that_is_not_there_is_said_to_be_unreachable() -> None:
    with pytest.raises(Fatal, match=r"http://127\.0\.0\.1:9/v1: cannot be reached"):
        offer("http://127.0.0.1:9/v1")


def test_names_say_who_is_asked_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_BASE", raising=False)
    hosted = endpoint_of("hosted_vllm/org/model", "http://here:8000/v1/")
    assert hosted is not None
    assert (hosted.model, hosted.base, hosted.flavour) == ("org/model", "http://here:8000/v1", "vllm")
    openai = endpoint_of("openai/gpt-4o", None)
    assert openai is not None and openai.base == "https://api.openai.com/v1"


def test_a_hosted_model_without_its_endpoint_is_told_what_is_missing() -> None:
    with pytest.raises(JudgeError, match="Give --api-base URL"):
        endpoint_of("hosted_vllm/x", None)
    with pytest.raises(JudgeError, match="must begin with http"):
        endpoint_of("hosted_vllm/x", "localhost:8000")
    with pytest.raises(JudgeError, match="'http://here/v1' has a query") as error:
        endpoint_of("openai/x", "http://here/v1?token=secret")
    assert "secret" not in str(error.value)


def test_prices_come_from_a_local_list() -> None:
    price = price_of("openai/gpt-4o-mini")
    assert price is not None
    assert price.of(1_000_000, 0, 1_000_000) == pytest.approx(0.15 + 0.60)
    assert price.of(1_000_000, 1_000_000, 0) == pytest.approx(0.075)
    assert price_of("no-such-model") is None


@pytest.fixture
def proxy(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """An endpoint that litellm asks, with its key."""
    monkeypatch.setenv("LITELLM_PROXY_API_KEY", "sk-proxy-secret")
    return endpoint


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_refusal_through_litellm_is_one_and_no_empty_answer(proxy: Endpoint) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    proxy.answer = lambda _: web.json_response(document(None, refusal="I won't say.", usage=usage))
    reply = ask(proxy, "litellm_proxy/judge")
    assert (reply.text, reply.refusal, reply.completion_tokens) == ("", "I won't say.", 4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_other_providers_are_asked_through_litellm(proxy: Endpoint) -> None:
    reply = ask(proxy, "litellm_proxy/judge")
    assert json.loads(reply.text)["answer"] in ("yes", "no")
    assert proxy.asked[0]["response_format"]["type"] == "json_schema"
    proxy.key = "another"
    with pytest.raises(Fatal) as refused:
        ask(proxy, "litellm_proxy/judge")
    assert "sk-proxy-secret" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("status", "text", "meaning"),
    [
        (403, "not for you", "not for you"),
        (402, "Insufficient Balance", "the account is out of credit"),
        (429, "insufficient_quota", "the account is out of credit"),
    ],
)
def test_who_is_not_let_in_or_cannot_pay_is_told_at_once_by_other_providers_too(
    proxy: Endpoint, status: int, text: str, meaning: str
) -> None:
    proxy.answer = lambda _: web.json_response({"error": {"message": text}}, status=status)
    with pytest.raises(Fatal, match=meaning):
        ask(proxy, "litellm_proxy/judge")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_question_that_moderation_flags_is_refused_by_other_providers_too_and_the_key_is_not(
    proxy: Endpoint,
) -> None:
    text = "Your chosen model requires moderation and your input was flagged"
    proxy.answer = lambda _: web.json_response({"error": {"message": text}}, status=403)
    with pytest.raises(Refused, match="your input was flagged"):
        ask(proxy, "litellm_proxy/judge")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_model_that_nobody_knows_is_refused_with_the_choices() -> None:
    with pytest.raises(JudgeError, match=r"unknown model 'gpt-99'.*hosted_vllm/NAME.*names like it: gpt"):
        client("gpt-99", None, Parameters())
