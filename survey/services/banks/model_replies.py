"""Replies of a language model, behind a server or on disk, to prompts that a template made."""

from collections.abc import Callable, Iterator, Sequence

from predictors.endpoints import ChatCall, ChatReply, Endpoint, EndpointError
from predictors.pairs import report
from predictors.prompts import Template

LOCAL = "local:"

Beat = Callable[[int, int, str], bool]


def replies_of(
    model: str,
    prompts: Sequence[str],
    template: Template,
    beat: Beat,
    *,
    max_tokens: int,
    temperature: float = 0.0,
    concurrency: int = 8,
    top_logprobs: int | None = None,
    endpoint: Endpoint | None = None,
) -> Iterator[tuple[int, ChatReply | EndpointError]]:
    """The number of each prompt and its reply or error, as they come.

    A server's address and key come from the environment. `beat` is called between replies, and several times a second
    of a server, in the same thread.

    Raises:
        Stopped: `beat` returned False.
    """
    if model.startswith(LOCAL):
        return _made_here(model, prompts, template, beat, max_tokens=max_tokens)
    there = endpoint or Endpoint.from_environment(
        url_variable="HUNCH_LLM_URL", key_variable="HUNCH_LLM_KEY", concurrency=concurrency
    )
    calls = [
        ChatCall(
            model,
            template.chat(model, [prompt]),
            temperature=temperature,
            max_tokens=max_tokens,
            logprobs=top_logprobs is not None,
            top_logprobs=top_logprobs,
        )
        for prompt in prompts
    ]
    return there.each(calls, beat)


def _made_here(
    model: str, prompts: Sequence[str], template: Template, beat: Beat, *, max_tokens: int
) -> Iterator[tuple[int, ChatReply]]:
    from predictors.generation import generate

    asked = template.format_for(model)
    replies = generate(
        model.removeprefix(LOCAL), prompts, max_tokens=max_tokens, system=asked.system or "", layout=asked.format
    )
    for done, reply in enumerate(replies, start=1):
        yield reply
        report(beat, done, len(prompts), "answers made")
