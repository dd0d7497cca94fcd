"""Asking language models a bank's questions: zero-shot, temperature 0, each question once, with a count of the costs.

A question may be asked several times at a higher temperature; the answer is then right in the share of its replies.

The work is a row (`AnswerCollection`), as for other long jobs: a worker claims it by a lease, it resumes after a crash,
and a person can stop it. What was collected stays, whatever happens later.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from predictors.endpoints import ChatReply, EndpointError
from predictors.errors import PredictorError, Stopped
from predictors.prompts import Template, shipped, template_of
from survey.exceptions import HunchError
from survey.models import AnswerCollection, Bank, LanguageModel, ModelAnswer, Question
from survey.services.base import leases
from survey.services.base.auditing import record
from survey.services.base.hashing import digest

from .answer_checking import kind_of
from .judging_again import judge
from .model_replies import LOCAL, replies_of

# Answers are written in parts, so that the database does not slow the collection down; a crash loses one part.
PART, PART_SECONDS = 100, 0.25
LOOK_AGAIN = 5.0  # seconds after which the lease is renewed and a stop is noticed although no reply came
# If this many questions in a row are refused, the questions are not the cause.
REFUSALS_IN_A_ROW = 5
MAX_MONEY = 100_000

PROMPT_VERSION = "1"
INSTRUCTIONS = {
    "letter": "Reply with the letter of the right option and nothing else.",
    "number": "Reply with the number alone, in digits.",
    "yes/no": "Reply with yes or no and nothing else.",
    "valid/invalid": "Reply with valid or invalid and nothing else.",
    "true/false": "Reply with true or false and nothing else.",
    "text": "Reply with the answer alone, in as few words as possible.",
}

Progress = Callable[[AnswerCollection], None]


# Of a reply, where nobody says otherwise: an answer with a key is short (the paper's 5), a free reply is not.
MAX_TOKENS, MAX_TOKENS_FREE = 5, 512


def has_keys(bank: Bank) -> bool:
    """Whether questions of the bank have a key, so that replies to them can be judged."""
    return bank.questions.exclude(answer="").filter(flag=Question.Flag.NONE).exists()


def template_for(collection: AnswerCollection) -> Template:
    """The words that a collection asks in: its own, which it keeps, or ours."""
    return template_of(collection.template or "short_answer", "answer")


def prompt_for(question: Question, template: Template | None = None) -> str:
    """What a language model is asked: the question as a reader sees it, and the form of the answer. A text without a
    key has no form, and is a prompt as it stands unless a template of one's own says otherwise."""
    own = template is not None and template.text != shipped("short_answer").text
    if not question.answer and not own:
        return question.plain
    form = INSTRUCTIONS[kind_of(question.answer)] if question.answer else ""
    return (template or shipped("short_answer")).filled(question=question.plain, form=form)


def request_digest(collection: AnswerCollection, prompt: str, template: Template) -> str:
    """Hash of all that an answer depends on: model, prompt with the question, what the template adds for the model,
    parameters. Each is asked once, or as often as the collection has it."""
    added = template.facts(collection.model)
    facts = [PROMPT_VERSION, collection.model, prompt, *added, collection.max_tokens]
    if collection.replies == 1 and not collection.temperature:
        return digest([*facts, 0])
    return digest([*facts, float(collection.temperature), collection.replies])


def create_collection(
    *,
    bank: Bank,
    model: str,
    name: str = "",
    limit: int | None = None,
    seed: int = 0,
    max_tokens: int | None = None,
    replies: int = 1,
    temperature: float = 0,
    template: str = "",
    concurrency: int = 8,
    price_in: Decimal | None = None,
    price_out: Decimal | None = None,
    cost_cap: Decimal | None = None,
    hold: bool = False,
    by: Any = None,
    via: str = "command",
) -> AnswerCollection:
    """Set up a collection; nothing is asked yet.

    In a bank with keys the questions with a key are asked, and replies are judged. In a bank without any key, all texts
    are prompts, and replies are stored as they come.

    Args:
        max_tokens: the most of a reply; without it 5 where there are keys, else 512.
        template: the text of a template for answers, which the collection keeps; without it ours.
        hold: the caller runs it at once, so the workers leave it alone for a while.

    Raises:
        HunchError: a field is wrong, or the name has answers that were collected in a different way; says the fix.
    """
    judged = has_keys(bank)
    if max_tokens is None:
        max_tokens = MAX_TOKENS if judged else MAX_TOKENS_FREE
    _check(model=model, name=name, limit=limit, max_tokens=max_tokens, replies=replies, concurrency=concurrency)
    _check_chance(model=model, replies=replies, temperature=temperature)
    try:
        asked_by = template_of(template or "short_answer", "answer")
    except PredictorError as exc:
        raise HunchError(str(exc)) from exc
    prices = (price_in, price_out, cost_cap)
    if any(value is not None and (not value.is_finite() or not 0 <= value <= MAX_MONEY) for value in prices):
        raise HunchError(f"price and cost cap: give amounts between 0 and {MAX_MONEY:,}")
    if cost_cap is not None and (price_in is None or price_out is None):
        raise HunchError("cost cap: needs the prices of a million tokens sent and of a million tokens returned")
    with transaction.atomic():
        language_model = LanguageModel.named(name or model)
        collection = AnswerCollection(
            language_model=language_model,
            bank=bank,
            model=model,
            limit=limit,
            seed=seed,
            max_tokens=max_tokens,
            replies=replies,
            temperature=temperature,
            template=template,
            concurrency=concurrency,
            price_in=price_in,
            price_out=price_out,
            cost_cap=cost_cap,
            sent_at=timezone.now() if hold else None,
            created_by=by if getattr(by, "is_authenticated", False) else None,
        )
        _refuse_mixed_answers(collection)
        collection.wanted = len(questions_of(collection))
        collection.save()
        facts = {"template": asked_by.digest} if template else {}
        record(
            "collect_answers",
            collection,
            by=by,
            via=via,
            model=model,
            bank=str(bank),
            wanted=collection.wanted,
            **facts,
        )
    return collection


def _check_chance(*, model: str, replies: int, temperature: float) -> None:
    if not 0 <= temperature <= 2:
        raise HunchError(f"temperature: {temperature} must lie between 0 and 2")
    if model.startswith(LOCAL) and (temperature or replies > 1):
        raise HunchError("replies, temperature: a model on disk is asked once, at temperature 0; leave both out")
    if replies > 1 and not temperature:
        raise HunchError("replies: at temperature 0 every reply is the same; set a temperature, such as 1, or ask once")


def _check(*, model: str, name: str, limit: int | None, max_tokens: int, replies: int, concurrency: int) -> None:
    if not model.strip() or len(model) > 200:
        raise HunchError("model: give the server's name for it (at most 200 characters), or local:FOLDER")
    if len(name or model) > 120:
        raise HunchError("name: has more than 120 characters; give a shorter one")
    for field, value, most in (
        ("questions", limit, 10**9),
        ("max tokens", max_tokens, 4096),
        ("replies", replies, 100),
        ("concurrency", concurrency, 256),
    ):
        if value is not None and not 1 <= value <= most:
            raise HunchError(f"{field}: {value} must lie between 1 and {most}")


def _refuse_mixed_answers(collection: AnswerCollection) -> None:
    """One name must mean one way of asking: figures about a mixture would mean nothing."""
    question = questions_of(collection)[:1]
    stored = ModelAnswer.objects.filter(
        language_model=collection.language_model, question__bank=collection.bank
    ).select_related("question")
    template = template_for(collection)
    for answer in stored[:1]:
        if answer.request_sha256 != request_digest(collection, prompt_for(answer.question, template), template):
            how = "with another model, prompt or length" if answer.request_sha256 else "elsewhere and imported"
            raise HunchError(
                f"name: {collection.language_model} has answers to {collection.bank} that were collected {how}; "
                "give this collection a name of its own (--name)"
            )
    if not question:
        raise HunchError(f"bank: {collection.bank} has no question to ask")


def questions_of(collection: AnswerCollection) -> list[Question]:
    """The questions of a collection: those with a key and no flag, or a number of them, drawn with its seed. All texts
    without a flag where none has a key."""
    unflagged = collection.bank.questions.filter(flag=Question.Flag.NONE).order_by("position")
    questions = list(unflagged.exclude(answer="")) or list(unflagged)
    if collection.limit is None or collection.limit >= len(questions):
        return questions
    chosen = np.random.default_rng(collection.seed).choice(len(questions), collection.limit, replace=False)
    return [questions[index] for index in sorted(chosen.tolist())]


def run_collection(collection_id: int, *, progress: Progress | None = None) -> AnswerCollection | None:
    """Ask what is not answered yet, until the end, the cost cap, a stop or an error. None if another worker has it."""
    collection = leases.claim(AnswerCollection.objects.all(), collection_id, error="")
    if collection is None:
        return None
    held = leases.Hold(collection)
    try:
        state, error = _Run(held, progress).run()
    except Stopped:  # The lease was lost, and its new holder goes on.
        return None
    except (HunchError, PredictorError) as exc:
        state, error = AnswerCollection.State.FAILED, str(exc)
    except KeyboardInterrupt:  # A person at the terminal stopped it: no worker may go on spending.
        held.end(AnswerCollection.State.STOPPED)
        raise
    except BaseException:
        # The next claim goes on. After a lost database or a time limit the row must not stay locked for a minute.
        held.let_lapse()
        raise
    held.end(state, error=error[:4000])
    collection.refresh_from_db()
    return collection


@dataclass(frozen=True)
class _Asked:
    """A question, with its prompt and the request's hash."""

    question: Question
    prompt: str
    digest: str


class _Run:
    """The work under one claim."""

    def __init__(self, held: leases.Hold[AnswerCollection], progress: Progress | None) -> None:
        self.held = held
        self.collection = held.row
        self.template = template_for(held.row)
        self.progress = progress
        self.pending: list[ModelAnswer] = []
        self.tokens_in = self.tokens_out = 0
        self.refused = 0
        self.skipped: set[int] = set()  # Questions of which a reply was refused.
        self.replies: dict[int, list[str]] = {}  # Those that came of questions that wait for more.
        self.in_a_row = 0
        self.first_refusal = ""
        self.flushed = time.monotonic()

    def run(self) -> tuple[AnswerCollection.State, str]:
        """Ask; return the state to end in, and a message about it."""
        todo = self._todo()
        self._flush()
        if not todo:
            return AnswerCollection.State.DONE, ""
        each = self.collection.replies
        prompts = [request.prompt for request in todo for _ in range(each)]
        replies = replies_of(
            self.collection.model,
            prompts,
            self.template,
            self._beat,
            max_tokens=self.collection.max_tokens,
            temperature=float(self.collection.temperature),
            concurrency=self.collection.concurrency,
        )
        try:
            for index, reply in replies:
                if isinstance(reply, EndpointError):
                    self._refuse(todo[index // each].question, reply)
                else:
                    self._keep(todo[index // each], reply)
                if self._over_the_cap():
                    return (
                        AnswerCollection.State.STOPPED,
                        f"the cost cap of {self.collection.cost_cap:f} is reached; raise it and collect again to go on",
                    )
        except Stopped:
            if not self.collection.stop_requested:
                raise
            return AnswerCollection.State.STOPPED, "stopped by a person; collect again to go on"
        finally:
            if close := getattr(replies, "close", None):
                close()
            self._flush()
        if self.refused:
            return (
                AnswerCollection.State.DONE,
                f"{self.refused} questions were refused and have no answer; the first: {self.first_refusal}",
            )
        return AnswerCollection.State.DONE, ""

    def _beat(self, done: int, total: int, text: str) -> bool:
        """Write the replies that came, if it is time to; False if a person wants the collection to end.

        Replies are written together: each waits a moment for others. If no more come, a later call writes them.
        """
        since = time.monotonic() - self.flushed
        if len(self.pending) >= PART or since > (PART_SECONDS if self.pending else LOOK_AGAIN):
            self._flush()
        return not self.collection.stop_requested

    def _todo(self) -> list[_Asked]:
        """Questions without an answer yet. An answer to the same request for another bank or name is used again."""
        questions = questions_of(self.collection)
        answered = set(
            ModelAnswer.objects.filter(
                language_model=self.collection.language_model, question__bank=self.collection.bank
            ).values_list("question_id", flat=True)
        )
        self.collection.wanted = len(questions)
        self.collection.answered = sum(question.pk in answered for question in questions)
        left = []
        for question in questions:
            if question.pk not in answered:
                prompt = prompt_for(question, self.template)
                left.append(_Asked(question, prompt, request_digest(self.collection, prompt, self.template)))
        known: dict[str, list[str]] = {}
        for start in range(0, len(left), 500):
            digests = [request.digest for request in left[start : start + 500]]
            part = ModelAnswer.objects.filter(request_sha256__in=digests)
            rows = part.values_list("request_sha256", "response", "replies")
            known.update({sha256: replies or [response] for sha256, response, replies in rows})
        todo = []
        for request in left:
            if request.digest in known:
                self._store(request, known[request.digest])
            else:
                todo.append(request)
        return todo

    def _store(self, asked: _Asked, responses: Sequence[str]) -> None:
        """An answer of one reply or of several: what most of them state, and the share that is right."""
        key, text = asked.question.answer, asked.question.text
        # PostgreSQL cannot store the character 0.
        cleaned = [response.replace("\0", "\N{REPLACEMENT CHARACTER}") for response in responses]
        answer = ModelAnswer(
            language_model=self.collection.language_model,
            question=asked.question,
            response=cleaned[0],
            replies=cleaned if len(cleaned) > 1 else [],
            request_sha256=asked.digest,
        )
        if key:
            judge(answer, responses, key=key, question=text)
        self.pending.append(answer)

    def _keep(self, asked: _Asked, reply: ChatReply) -> None:
        self.in_a_row = 0
        self.tokens_in += reply.usage.prompt_tokens
        self.tokens_out += reply.usage.completion_tokens
        came = self.replies.setdefault(asked.question.pk, [])
        came.append(reply.texts[0])
        if len(came) == self.collection.replies:
            self._store(asked, self.replies.pop(asked.question.pk))

    def _refuse(self, question: Question, error: EndpointError) -> None:
        """Note a refused question: a server may refuse a single one (a content filter). Any other error ends the run.

        Raises:
            EndpointError: the error.
        """
        if not error.permanent or error.status not in (400, 422):
            raise error
        if question.pk in self.skipped:
            return
        self.skipped.add(question.pk)
        self.refused += 1
        self.in_a_row += 1
        self.first_refusal = self.first_refusal or f"{question.external_id}: {error}"
        if self.in_a_row >= REFUSALS_IN_A_ROW:
            raise error

    def _over_the_cap(self) -> bool:
        cap, cost = self.collection.cost_cap, self._cost()
        return cap is not None and cost is not None and cost >= float(cap)

    def _cost(self) -> float | None:
        """The cost so far, including what is not written yet; None without prices."""
        now = self.collection
        if now.price_in is None or now.price_out is None:
            return None
        tokens = now.price_in * (now.tokens_in + self.tokens_in) + now.price_out * (now.tokens_out + self.tokens_out)
        return float(tokens) / 1e6

    def _flush(self) -> None:
        """Write the replies that came, with the tokens they cost, and renew the lease.

        Raises:
            Stopped: another worker has the collection.
        """
        part, self.pending = self.pending, []
        with transaction.atomic():
            is_ours = self.held.renew(
                wanted=self.collection.wanted,
                answered=self.collection.answered + len(part),
                refused=self.refused,
                tokens_in=F("tokens_in") + self.tokens_in,
                tokens_out=F("tokens_out") + self.tokens_out,
            )
            # It is paid for, so it is stored even if the claim is lost: the same request has the same answer.
            ModelAnswer.objects.bulk_create(part, ignore_conflicts=True)
        self.tokens_in = self.tokens_out = 0
        self.flushed = time.monotonic()
        if not is_ours:
            raise Stopped
        self.collection.refresh_from_db()
        if self.progress is not None:
            self.progress(self.collection)


def request_stop(collection: AnswerCollection, *, by: Any) -> None:
    """Ask a collection to end after the requests that are under way."""
    changed = AnswerCollection.objects.filter(
        pk=collection.pk, state__in=[AnswerCollection.State.QUEUED, AnswerCollection.State.RUNNING]
    ).update(stop_requested=True)
    if changed:
        record("stop_collection", collection, by=by, via="admin")


def resume(collection: AnswerCollection, *, by: Any) -> None:
    """Queue a collection again that has stopped or failed, or ended with refused questions."""
    ended = (AnswerCollection.State.STOPPED, AnswerCollection.State.FAILED, AnswerCollection.State.DONE)
    changed = AnswerCollection.objects.filter(pk=collection.pk, state__in=ended).update(
        state=AnswerCollection.State.QUEUED, stop_requested=False, error="", sent_at=None, finished_at=None
    )
    if changed:
        record("resume_collection", collection, by=by, via="admin")


def due_collections() -> list[AnswerCollection]:
    """Collections that need a task and got none lately: queued ones, and running ones whose lease is over."""
    return leases.due(AnswerCollection.objects.all())
