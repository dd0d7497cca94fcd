"""Texts read by a server that lists the log-probabilities of a prompt's tokens. Needs httpx and numpy alone."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np

from predictors.endpoints import Endpoint, EndpointError, PromptTokens
from predictors.errors import PredictorError
from predictors.pairs import Progress

from .text_reading import NO_DETAIL, Detail, Distributions, Text, TextReading, make_tokens, without_gaps

_NO_LISTING = (
    "the server does not list the log-probabilities of a prompt (a completion with echo and logprobs), so it cannot "
    "read texts. Take one that does, such as vLLM, or a model on disk: local:FOLDER"
)


class CompletionReader:
    """A model behind an OpenAI-compatible server.

    The server cuts a text as it likes and says how each token looks, so its tokenizer is known by the model's name
    alone. A token for the beginning of a text that the server puts there is left out of the reading; where it puts
    none, the first token is not read and is NaN.
    """

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        self.model = model
        self._endpoint = endpoint
        self.tokenizer = hashlib.sha256(f"endpoint tokens {model}".encode()).hexdigest()
        self.source = hashlib.sha256(f"endpoint {endpoint.base_url} {model}".encode()).hexdigest()

    cutter = ""  # It names no ids.
    vocabulary_size = None

    def unknown_tokens(self, texts: Sequence[Text]) -> None:
        """A server does not say which tokens its model has no name for."""

    def each(
        self, texts: Sequence[Text], *, detail: Detail = NO_DETAIL, progress: Progress | None = None
    ) -> Iterator[tuple[int, TextReading]]:
        """As in `TextReader`.

        Raises:
            EndpointError: the server cannot be reached, refuses a text, or lists no log-probabilities of it. The
                readings that came before are whole.
        """
        if detail.samples or detail.boundary or detail.among is not None:
            raise PredictorError(
                "samples: a server lists its likeliest tokens alone, and not all of what it expected, so that nothing "
                "can be drawn from it; leave --samples out, or take a model on disk: local:FOLDER."
            )
        answers = self._endpoint.prompt_tokens(
            model=self.model, texts=[text.text for text in texts], top=max(1, detail.top), progress=progress
        )
        with closing(answers):
            for number, answer in answers:
                if isinstance(answer, EndpointError):
                    if "log-probabilities of the prompt" in str(answer):
                        raise EndpointError(f"model: {self.model}: {_NO_LISTING}.", permanent=True) from answer
                    raise EndpointError(
                        f"model: {self.model}, text {texts[number].id}: {answer}",
                        permanent=answer.permanent,
                        status=answer.status,
                    )
                yield number, self._reading(texts[number], answer, top=detail.top)

    def _reading(self, text: Text, listed: PromptTokens, *, top: int) -> TextReading:
        places = places_of(text.text, listed.strings)
        if places is None:
            raise EndpointError(f"model: {self.model}, text {text.id}: {_NO_LISTING}.", permanent=True)
        first, spans = places
        values = [
            math.nan if log_probability is None else log_probability
            for log_probability in listed.log_probabilities[first : first + len(spans)]
        ]
        if any(math.isnan(value) for value in values[1:]):
            raise EndpointError(
                f"model: {self.model}, text {text.id}: the server gives none for a token inside the text.",
                permanent=True,
            )
        starts = np.array([start for start, _end in spans], dtype=np.int64)
        ends = np.array([end for _start, end in spans], dtype=np.int64)
        starts, ends = without_gaps(starts, ends, len(text.text))
        return TextReading(
            make_tokens(starts, ends, values),
            self.tokenizer,
            distributions=self._likeliest(text, listed, first, len(spans), top) if top else None,
        )

    def _likeliest(self, text: Text, listed: PromptTokens, first: int, count: int, top: int) -> Distributions:
        """What the server lists as likeliest at each token. It does not say all that it expected, so that the
        entropy is not known."""
        if not listed.likeliest:
            raise EndpointError(
                f"model: {self.model}, text {text.id}: the server lists no likeliest tokens of a prompt; leave --top "
                "out, or take a model on disk: local:FOLDER.",
                permanent=True,
            )
        rows = [row[:top] for row in listed.likeliest[first : first + count]]
        return Distributions(np.full(count, np.nan), rows, [[] for _row in rows])


def places_of(text: str, strings: Sequence[str]) -> tuple[int, list[tuple[int, int]]] | None:
    """Where the listed tokens stand in the text: the first that does (those before begin a text), and start and end of
    each. None where they do not spell the text.

    A token that is part of a character is listed as "bytes:..." or by the sign for an unknown character; it gets the
    characters up to the next token that can be read.
    """
    for first in range(min(2, len(strings))):
        if (spans := _spelled(text, strings[first:])) is not None:
            return first, spans
    return None


def _spelled(text: str, strings: Sequence[str]) -> list[tuple[int, int]] | None:
    spans: list[tuple[int, int]] = []
    unread = 0  # Tokens at the end of `spans` whose characters are not known yet.
    reached = 0
    for token in strings:
        if reached >= len(text):
            break
        partial = token.startswith("bytes:") or "\N{REPLACEMENT CHARACTER}" in token or not token
        if text.startswith(token, reached) and token:
            start = reached
        elif partial:
            spans.append((reached, reached))
            unread += 1
            continue
        elif unread:
            start = text.find(token, reached + 1, reached + unread + len(token))
        else:
            start = -1
        if start < 0:
            return None
        if unread:
            spans[-unread:] = [(reached, start)] * unread
            unread = 0
        reached = start + len(token)
        spans.append((start, reached))
    if unread:
        spans[-unread:] = [(reached, len(text))] * unread
        reached = len(text)
    return spans if reached == len(text) and spans else None
