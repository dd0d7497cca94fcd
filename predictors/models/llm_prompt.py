"""Prompting a chat model with a few examples (section 4): nothing is trained, a server is asked about every pair.

Imports httpx (through `predictors.endpoints`) and scikit-learn.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from predictors.endpoints import REFUSED, ChatCall, ChatReply, Endpoint, EndpointError
from predictors.errors import PredictorError
from predictors.features import TrainingData
from predictors.models.base import SettingsEstimator, both_classes
from predictors.pairs import Pair, Progress, report
from predictors.prompts import Template, template_of
from predictors.settings import LlmPromptSettings

STATE_FILE = "llm_prompt.json"
MODEL_VARIABLE = "HUNCH_LLM_MODEL"

_CUT = " […] "
# Tokens also come with the marks that two kinds of tokenisers write for a blank.
_BLANKS = " \t\r\n▁Ġ"
_READABLE = re.compile(r"""[\s*_"'`(\[]*(?:answer\s*:?)?[\s*_"'`(\[]*([01])[\s*_"'`)\].]*""", re.IGNORECASE)
# The protocol allows 20; some servers refuse more than 5.
_LISTED = (20, 5)
_MIN_PROBABILITY = 1e-6
_REMEMBERED = 100_000


class Example(NamedTuple):
    """A training row as it stands in the prompt; label 1 where the belief changed."""

    pair: Pair
    label: int


class LlmPrompt(SettingsEstimator, settings=LlmPromptSettings):
    """P(change) as a chat model sees it after `shots` examples. Reads pairs alone.

    Exact inference: P(1) / (P(0) + P(1)), from the log-probabilities that the server lists for the first token of the
    reply. Where it lists none ("auto"), or with "samples": Monte Carlo. Of n readable replies k say 1, and the
    probability is (k + 1/2) / (n + 1), the posterior mean under Jeffreys' prior, so that five equal replies do not
    count as certainty; with `average="plain"` it is k / n, as in the paper, a millionth away from 0 and 1. The words
    are those of the template as it stood at `fit`, which are saved. The samples are the server's chance: asking again
    gives another number, though a pair that was answered is not asked again by the same object. The server's address
    and key come from the environment, and neither is saved.
    """

    def fit(
        self, rows: Sequence[Any], labels: Any, sample_weight: Any = None, progress: Progress | None = None
    ) -> Self:
        """Choose the examples from n pairs with n labels (0, 1 or fractions) and n weights. No server is asked.

        Raises:
            PredictorError: unusable data or settings, or no model is named.
        """
        data = self.training_data(rows, labels, sample_weight)
        settings: LlmPromptSettings = self.settings()
        template = template_of(settings.template, "change")
        model = settings.model or os.environ.get(MODEL_VARIABLE, "").strip()
        if not model:
            raise PredictorError(
                f"model: none is named; set the parameter `model`, or {MODEL_VARIABLE} in the environment, to the name "
                "of a chat model that the server has."
            )
        rng = np.random.Generator(np.random.PCG64(self.random_state))
        examples = _choose_examples(data, settings.shots, rng, balanced=settings.examples == "balanced")
        share = float(np.average(data.labels, weights=data.weights))
        # What always saying the training share costs a row: nothing is optimised that would have a loss of its own.
        loss = -(share * math.log(share) + (1 - share) * math.log(1 - share))
        self._set_state(model, template, examples, loss, len(data.rows))
        report(progress, 1, 1, f"chose {len(examples)} examples of {len(data.rows)} rows")
        return self

    def predict_proba(self, rows: Sequence[Any], progress: Progress | None = None) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2): belief kept, belief changed. Equal pairs are asked about once.

        `progress` counts pairs. What was answered before an error or a stop is kept for the next call.

        Raises:
            PredictorError: no address in the environment, or replies that cannot be read; the message names the pair.
            EndpointError: the server refused, or did not answer after several tries. Stopped: progress said so.
        """
        check_is_fitted(self)
        settings: LlmPromptSettings = self.settings()
        pairs: list[Pair] = self.checked_rows(rows)
        if not pairs:
            return np.empty((0, 2))
        endpoint = Endpoint.from_environment(
            url_variable=settings.url_variable,
            key_variable=settings.key_variable,
            concurrency=settings.concurrency,
            timeout=settings.timeout,
        )
        keys = [self._key(endpoint, settings, pair) for pair in pairs]
        answers = {key: self._answers[key] for key in keys if key in self._answers}
        todo = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in answers}
        order = list(todo)

        def keep(index: int, probability: float) -> None:
            answers[order[index]] = self._answers[order[index]] = probability
            if len(self._answers) > _REMEMBERED:
                self._answers.popitem(last=False)

        prompt = _Prompt(self.template_, self.model_, self.examples_, settings.max_characters)
        _Asking(endpoint, settings, prompt, list(todo.values()), keep, progress).run()
        changed = np.array([answers[key] for key in keys])
        return both_classes(changed)

    def save_files(self, folder: Path) -> None:
        """Write parameters and examples into `folder`; called by `artifacts.save`."""
        check_is_fitted(self)
        state = {
            "params": self.get_params(),
            "model": self.model_,
            "template": self.template_.text,
            "examples": [[*example.pair, example.label] for example in self.examples_],
            "loss": self.loss_,
            "n_examples": self.n_examples_,
        }
        (folder / STATE_FILE).write_text(json.dumps(state, indent=1), encoding="utf-8")

    @classmethod
    def load_files(cls, folder: Path) -> Self:
        """Read back what `save_files` wrote; called by `artifacts.load`."""
        state = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
        estimator = cls(**state["params"])
        examples = [Example(Pair(*row[:-1]), row[-1]) for row in state["examples"]]
        template = template_of(state.get("template", "forecast"), "change")  # Older ones had its words alone.
        estimator._set_state(state["model"], template, examples, state["loss"], state["n_examples"])
        return estimator

    def _set_state(self, model: str, template: Template, examples: list[Example], loss: float, n_examples: int) -> None:
        self.model_ = model
        self.template_ = template
        self.examples_ = examples
        self.classes_ = np.array([0, 1])
        self.loss_ = loss
        self.n_iter_ = 0
        self.n_examples_ = n_examples
        self._answers: OrderedDict[bytes, float] = OrderedDict()

    def _key(self, endpoint: Endpoint, settings: LlmPromptSettings, pair: Pair) -> bytes:
        """Of all that an answer depends on, and short: a study asks about a great many pairs."""
        how = [settings.mode, settings.samples, settings.temperature, settings.max_tokens, settings.max_characters]
        what = [
            endpoint.base_url,
            self.model_,
            self.template_.digest,
            settings.average,
            *how,
            pair.evidence_text,
            pair.target_text,
            pair.outcome,
        ]
        return hashlib.blake2b(json.dumps(what).encode(), digest_size=16).digest()


class _Prompt:
    """What a model is sent about a pair: the template's opening once, examples with their labels, the pair."""

    def __init__(self, template: Template, model: str, examples: Sequence[Example], max_characters: int) -> None:
        self.template = template
        self.model = model
        self.max_characters = max_characters
        self.examples = [turn for pair, label in examples for turn in (self._question(pair), str(label))]

    def about(self, pair: Pair) -> list[dict[str, str]]:
        first, *others = [*self.examples, self._question(pair)]
        # The opening stands in the first question: not every model's chat takes a system message.
        opening = f"{self.template.opening}\n\n" if self.template.opening else ""
        return self.template.chat(self.model, [opening + first, *others])

    def _question(self, pair: Pair) -> str:
        evidence, target = (_shortened(text, self.max_characters) for text in (pair.evidence_text, pair.target_text))
        return self.template.about(evidence, target, pair.outcome)


class _Asking:
    """One pass over pairs that are all different; `deliver` gets the number of each pair and its probability."""

    def __init__(
        self,
        endpoint: Endpoint,
        settings: LlmPromptSettings,
        prompt: _Prompt,
        pairs: Sequence[Pair],
        deliver: Callable[[int, float], None],
        progress: Progress | None,
    ) -> None:
        self.endpoint = endpoint
        self.settings = settings
        self.prompt = prompt
        self.model = prompt.model
        self.pairs = pairs
        self.deliver = deliver
        self.progress = progress
        self.done = 0
        self.unreadable = 0

    def run(self) -> None:
        """Ask about every pair."""
        rest = list(range(len(self.pairs)))
        if rest and self.settings.mode != "samples":
            rest = self._exact(rest)
            if rest and self.settings.mode == "exact":
                raise PredictorError(
                    f"mode: the server listed neither 0 nor 1 among the likeliest first tokens for {len(rest)} pairs, "
                    f"the first about {_about(self.pairs[rest[0]])}; use 'auto' or 'samples'."
                )
        if rest:
            self._sampled(rest)

    def _exact(self, indices: list[int]) -> list[int]:
        """Take the probabilities that tokens' likelihoods give; returns the pairs for which they give none.

        The first pair alone shows whether the server lists tokens at all.
        """
        without: list[int] = []

        def take(index: int, reply: ChatReply) -> None:
            probability = changed_probability(reply)
            if probability is None:
                without.append(index)
            else:
                self._finish(index, probability)

        first, *others = indices
        for listed in _LISTED:
            try:
                [reply] = self.endpoint.map([self._exact_call(first, listed)], self._report)
            except EndpointError as exc:
                # Said again where it matters: in sampling, if it was not the list of tokens that was refused.
                if exc.status not in REFUSED or (self.settings.mode == "exact" and listed == _LISTED[-1]):
                    raise
                continue
            if reply.top_logprobs is None:
                return indices
            take(first, reply)
            self._ask([(index, self._exact_call(index, listed)) for index in others], take)
            return sorted(without)
        return indices

    def _sampled(self, indices: list[int]) -> None:
        """Monte Carlo: all samples of a pair in one request where the server gives as many, else in one each.

        The first pair alone shows which.
        """
        texts: dict[int, list[str]] = {index: [] for index in indices}
        first, *others = indices
        wanted = self.settings.samples
        try:
            [reply] = self.endpoint.map([self._sample_call(first, wanted)], self._report)
            texts[first] += reply.texts
        except EndpointError as exc:
            if exc.status not in REFUSED or wanted == 1:
                raise
        missing = max(0, wanted - len(texts[first]))
        plan = [(first, 1)] * missing
        for index in others:
            plan += [(index, 1)] * wanted if missing else [(index, wanted)]
        left = Counter(index for index, _ in plan)

        def take(index: int, reply: ChatReply) -> None:
            texts[index] += reply.texts
            left[index] -= 1
            if not left[index]:
                self._finish(index, self._share_of_ones(index, texts.pop(index)))

        if not missing:
            self._finish(first, self._share_of_ones(first, texts.pop(first)))
        self._ask([(index, self._sample_call(index, count)) for index, count in plan], take)

    def _share_of_ones(self, index: int, texts: Sequence[str]) -> float:
        said = [parse_reply(text) for text in texts]
        readable = [value for value in said if value is not None]
        self.unreadable += len(said) - len(readable)
        if not readable:
            raise PredictorError(
                f"model: none of the {len(said)} replies of {self.model} about {_about(self.pairs[index])} is 0 or 1; "
                f"the first is {_beginning(texts[0])!r}. Raise max_tokens if it was cut off, or use another model."
            )
        if self.settings.average == "plain":
            return min(max(sum(readable) / len(readable), _MIN_PROBABILITY), 1 - _MIN_PROBABILITY)
        return (sum(readable) + 0.5) / (len(readable) + 1)

    def _ask(self, calls: list[tuple[int, ChatCall]], take: Callable[[int, ChatReply], None]) -> None:
        with closing(self.endpoint.each([call for _, call in calls], self._report)) as answers:
            for number, answer in answers:
                index = calls[number][0]
                if not isinstance(answer, EndpointError):
                    take(index, answer)
                elif answer.status in REFUSED:
                    message = f"{answer} It was asked about {_about(self.pairs[index])}."
                    raise EndpointError(message, permanent=True, status=answer.status)
                else:
                    raise answer

    def _finish(self, index: int, probability: float) -> None:
        self.done += 1
        self.deliver(index, probability)

    def _report(self, done: int, total: int, text: str) -> None:
        """Progress counts pairs, whatever the number of requests."""
        asking = f"asking {self.model}: {self.endpoint.usage.total_tokens:,} tokens"
        unreadable = f", {self.unreadable} replies unreadable" if self.unreadable else ""
        report(self.progress, self.done, len(self.pairs), asking + unreadable)

    def _exact_call(self, index: int, listed: int) -> ChatCall:
        # At temperature 1 the listed likelihoods are the model's own, also on servers that scale them by it.
        return ChatCall(
            self.model,
            self.prompt.about(self.pairs[index]),
            temperature=1.0,
            max_tokens=1,
            logprobs=True,
            top_logprobs=listed,
        )

    def _sample_call(self, index: int, count: int) -> ChatCall:
        settings = self.settings
        return ChatCall(
            self.model,
            self.prompt.about(self.pairs[index]),
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
            n=count,
        )


def changed_probability(reply: ChatReply) -> float | None:
    """P(1) / (P(0) + P(1)) from the likeliest first tokens of a reply, variants such as " 1" summed.

    An answer that is not listed counts as much as the least likely token that is, or as what the listed ones leave
    over, whichever is smaller. The result keeps a millionth away from 0 and 1. None where neither answer is listed.
    """
    first = reply.top_logprobs[0] if reply.top_logprobs else ()
    likelihoods = {"0": 0.0, "1": 0.0}
    for token, logprob in first:
        answer = token.strip(_BLANKS)
        if answer in likelihoods:
            likelihoods[answer] += math.exp(logprob)
    if not any(likelihoods.values()):
        return None
    listed = [math.exp(logprob) for _, logprob in first]
    unlisted = max(0.0, min(*listed, 1 - sum(listed)))
    unchanged, changed = (likelihoods[answer] or unlisted for answer in ("0", "1"))
    return min(max(changed / (unchanged + changed), _MIN_PROBABILITY), 1 - _MIN_PROBABILITY)


def parse_reply(text: str) -> int | None:
    """0 or 1 where a reply is that digit, perhaps marked or after "Answer:"; None where it says anything else."""
    match = _READABLE.fullmatch(text)
    return int(match[1]) if match else None


def _choose_examples(data: TrainingData, shots: int, rng: np.random.Generator, *, balanced: bool) -> list[Example]:
    """Up to `shots` different pairs, drawn with chances as their weights: as many of each class as there are, or as the
    classes come.

    A label that is a fraction stands for two weighted rows, so such a row may come as either class.
    """
    waiting = {
        label: iter(_in_random_order(data.weights * share, rng))
        for label, share in ((0, 1 - data.labels), (1, data.labels))
    }
    if not balanced:
        # A class comes as often as its rows weigh: each draw takes it by what is left of both.
        share = float(np.average(data.labels, weights=data.weights))
    label = int(rng.integers(2)) if balanced else int(rng.random() < share)
    chosen: dict[Pair, int] = {}
    while waiting and len(chosen) < shots:
        if label in waiting:
            new = (data.rows[row] for row in waiting[label] if data.rows[row] not in chosen)
            pair = next(new, None)
            if pair is None:
                del waiting[label]
            else:
                chosen[pair] = label
        label = 1 - label if balanced or label not in waiting else int(rng.random() < share)
    examples = [Example(pair, label) for pair, label in chosen.items()]
    return [examples[place] for place in rng.permutation(len(examples))]


def _in_random_order(weights: NDArray[np.float64], rng: np.random.Generator) -> list[int]:
    """The rows of weight above 0 as drawn one after another without replacement (the Gumbel trick)."""
    rows = np.flatnonzero(weights > 0)
    keys = np.log(weights[rows]) + rng.gumbel(size=len(rows))
    return rows[np.argsort(-keys)].tolist()


def _shortened(text: str, max_characters: int) -> str:
    """The text, without its middle where it is too long: what is asked often stands at its end."""
    if len(text) <= max_characters:
        return text
    length = max_characters - len(_CUT)
    return text[: length - length // 3] + _CUT + text[len(text) - length // 3 :]


def _about(pair: Pair) -> str:
    outcome = "correct" if pair.outcome else "incorrect"
    evidence, target = _beginning(pair.evidence_text), _beginning(pair.target_text)
    return f"the pair of {evidence!r} ({outcome}) and {target!r}"


def _beginning(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else words[:60] + "…"
