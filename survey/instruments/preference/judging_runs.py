"""Asking a language model to judge the replies of a study, and importing judgements that one has.

What was asked is stored as it comes, so that a run that was stopped goes on where it was. A verdict belongs to the two
replies: another study with the same replies has it too.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from django.db import transaction

from predictors.endpoints import ChatReply, Endpoint, EndpointError
from predictors.errors import PredictorError
from predictors.prompts import Template, names, read_template
from survey.exceptions import HunchError
from survey.input_tables.problems import Problems
from survey.input_tables.rows import read_rows
from survey.models import LanguageModel, ModelAnswer, Study
from survey.services.banks.eligibility import filtered_questions
from survey.services.banks.model_replies import LOCAL, replies_of
from survey.services.base.auditing import record
from survey.services.base.hashing import digest

from .judgement_rows import OUTCOMES, VerdictRow
from .judging_calls import (
    LETTERS,
    SCORE_RULES_VERSION,
    by_probabilities,
    calls_for,
    ranking_call,
    ranks_of,
    towards_first,
)
from .material import preference_of
from .models import MIDDLE, JudgeVerdict

ORDERS = ("both", "ab", "ba")
TEMPLATES = names("judge", "rate", "rank")
FARTHEST = 3.5  # of two replies, in a rating
PART = 25
REFUSALS_IN_A_ROW = 5
MILLION = Decimal(1_000_000)
TOP = 20
FIRST_WORDS = {1: "a", -1: "b", 0: ""}


@dataclass(frozen=True)
class JudgeRun:
    """What is to be asked of whom. Prices are for a million tokens."""

    study: Study
    model: str
    name: str = ""
    template: str = "score_first"
    orders: str = "both"
    question: str = ""
    limit: int | None = None
    logprobs: bool = False
    concurrency: int = 8
    price_in: Decimal | None = None
    price_out: Decimal | None = None
    cost_cap: Decimal | None = None


@dataclass
class JudgeResult:
    """What came of it. `stopped` says why it ended before the last item; empty if it did not."""

    judge: str
    wanted: int = 0
    known: int = 0
    stored: int = 0
    unreadable: int = 0
    refused: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: Decimal | None = None
    stopped: str = ""


@dataclass(frozen=True)
class _Call:
    """What is asked at once: pairs (a, b, which stood first), and the texts that are sent. `first` is empty where each
    reply is rated alone. listed: of a ranking, the replies in the order of their letters."""

    pairs: tuple[tuple[ModelAnswer, ModelAnswer, str], ...]
    texts: tuple[str, ...]
    digest: str
    listed: tuple[ModelAnswer, ...] = ()


def judge_replies(
    run: JudgeRun,
    *,
    progress: Callable[[JudgeResult], None] | None = None,
    endpoint: Endpoint | None = None,
    by: Any = None,
) -> JudgeResult:
    """Ask for every verdict that is not stored.

    Raises:
        HunchError: a field is wrong; the name has verdicts that were asked differently; or the model never answers.
    """
    template = _checked(run)
    instrument = preference_of(run.study)
    question = run.question or instrument.options.questions[0]
    if question not in instrument.options.questions:
        raise HunchError(f"--question: {question!r} is none of {', '.join(instrument.options.questions)}")
    calls = list(_calls(run, template, question))
    if not calls:
        raise HunchError(f"{run.study.slug}: there is no item to judge")
    judge = LanguageModel.named(run.name or run.model)
    result = JudgeResult(judge=judge.name, wanted=sum(len(call.pairs) for call in calls))
    todo = list(_not_stored(calls, judge, template, result))
    record(
        "judge_replies",
        run.study,
        by=by,
        via="command",
        model=run.model,
        template=template.name,
        template_sha256=template.digest,
        wanted=result.wanted,
    )
    if not todo:
        return result
    pending: list[JudgeVerdict] = []
    replies: dict[int, dict[int, ChatReply]] = {}
    in_a_row, first_refusal = 0, ""
    each = len(todo[0].texts)
    texts = [text for call in todo for text in call.texts]
    stream = replies_of(
        run.model,
        texts,
        template,
        lambda _done, _total, _what: bool(progress is None or progress(result) is None),
        max_tokens=template.max_tokens,
        concurrency=run.concurrency,
        top_logprobs=TOP if run.logprobs else None,
        endpoint=endpoint,
    )
    try:
        for number, reply in stream:
            place, part = divmod(number, each)
            if isinstance(reply, EndpointError):
                result.refused += 1
                in_a_row, first_refusal = in_a_row + 1, first_refusal or str(reply)
                if in_a_row >= REFUSALS_IN_A_ROW:
                    raise HunchError(
                        f"{run.model}: {in_a_row} items in a row were refused ({first_refusal}); what was judged "
                        "before is stored, run the same command again to go on"
                    )
                continue
            in_a_row = 0
            result.tokens_in += reply.usage.prompt_tokens
            result.tokens_out += reply.usage.completion_tokens
            replies.setdefault(place, {})[part] = reply
            if len(replies[place]) == each:
                part_replies = [part_reply for _part, part_reply in sorted(replies.pop(place).items())]
                verdicts = _verdicts(todo[place], judge, template, part_replies, logprobs=run.logprobs)
                pending += verdicts
                result.stored += len(verdicts)
                result.unreadable += sum(verdict.towards_a is None for verdict in verdicts)
            if len(pending) >= PART:
                _write(pending)
            result.cost = _cost(run, result)
            if progress is not None:
                progress(result)
            if run.cost_cap is not None and result.cost is not None and result.cost >= run.cost_cap:
                result.stopped = (
                    f"the cost cap of {run.cost_cap:f} is reached; raise it and run the command again to go on"
                )
                break
    finally:
        _write(pending)
        if close := getattr(stream, "close", None):
            close()
    return result


def _checked(run: JudgeRun) -> Template:
    if run.template not in TEMPLATES and not run.template.endswith(".toml"):
        raise HunchError(f"--template: {run.template!r} is none of {', '.join(TEMPLATES)}, and no .toml file")
    try:
        template = read_template(run.template, "judge", "rate", "rank")
    except PredictorError as exc:
        raise HunchError(f"--template: {str(exc).removeprefix('template: ')}") from exc
    if run.orders not in ORDERS:
        raise HunchError(f"--orders: {run.orders!r} is none of {', '.join(ORDERS)}")
    if not run.model.strip() or len(run.model) > 200 or len(run.name or run.model) > 120:
        raise HunchError(
            "model: give the server's name for it, or local:FOLDER; --name, at most 120 characters, for tables"
        )
    if run.limit is not None and run.limit < 1:
        raise HunchError(f"--items: {run.limit} is not 1 or more")
    if not 1 <= run.concurrency <= 256:
        raise HunchError(f"--concurrency: {run.concurrency} must lie between 1 and 256")
    if run.logprobs and (run.model.startswith(LOCAL) or template.use != "judge" or template.score == "last"):
        raise HunchError(
            "--logprobs: works with a server and a template such as score_first, which writes the number first"
        )
    if run.cost_cap is not None and (run.price_in is None or run.price_out is None):
        raise HunchError("--cost-cap: needs --price-in and --price-out, of a million tokens sent and returned")
    if any(
        price is not None and (not price.is_finite() or price < 0)
        for price in (run.price_in, run.price_out, run.cost_cap)
    ):
        raise HunchError("--price-in, --price-out, --cost-cap: give amounts of 0 or more")
    return template


def _calls(run: JudgeRun, template: Template, question: str) -> Iterator[_Call]:
    """Every pair of replies that people could be shown, in the order of prompts and models."""
    instrument = preference_of(run.study)
    answers = ModelAnswer.objects.filter(
        question__bank=run.study.bank_id, language_model__name__in=instrument.options.models
    ).exclude(response="")
    by_key = {answer.pk: answer for answer in answers.select_related("question")}
    orders = {"both": ("a", "b"), "ab": ("a",), "ba": ("b",)}[run.orders]
    added = template.facts(run.model)
    items = 0
    for prompt in instrument.usable(filtered_questions(run.study)):
        own = instrument.replies[prompt.pk]
        replies = [by_key[own[name]] for name in sorted(own)]
        pairs = [tuple(sorted(pair, key=lambda answer: answer.pk)) for pair in combinations(replies, 2)]
        pairs = pairs if run.limit is None else pairs[: run.limit - items]
        items += len(pairs)
        words = {"question": question, "prompt": prompt.plain}
        if template.use == "rank":
            if len(replies) > len(LETTERS):
                raise HunchError(
                    f"--template: {template.name} names replies by letters, at most {len(LETTERS)}; {len(replies)} "
                    f"models have a reply to {prompt.external_id}. Use a template that compares two."
                )
            if len(pairs) * 2 != len(replies) * (len(replies) - 1):
                return  # A ranking is of all replies to a prompt, so that a limit is rounded down.
            for order in orders:
                listed = _listed(replies, order)
                text = ranking_call(template, **words, replies=[answer.response for answer in listed])
                place = {answer.pk: number for number, answer in enumerate(listed)}
                both = tuple((a, b, "a" if place[a.pk] < place[b.pk] else "b") for a, b in pairs)
                facts = [template.name, template.version, run.model, False, *added, text]
                yield _Call(both, (text,), digest(facts), listed)
            continue
        for a, b in pairs:
            for first in ("",) if template.use == "rate" else orders:
                ordered = (b, a) if first == "b" else (a, b)
                texts = tuple(calls_for(template, **words, first=ordered[0].response, second=ordered[1].response))
                facts = [template.name, template.version, run.model, bool(run.logprobs), *added, *texts]
                yield _Call(((a, b, first),), texts, digest(facts))


def _listed(replies: Sequence[ModelAnswer], order: str) -> tuple[ModelAnswer, ...]:
    """The replies in an order that their prompt decides by chance, the same in each run; "b" reverses it."""
    seed = int(digest(["ranking", replies[0].question.external_id])[:12], 16)
    shuffled = [replies[place] for place in np.random.default_rng(seed).permutation(len(replies))]
    return tuple(shuffled if order == "a" else shuffled[::-1])


def _not_stored(
    calls: Sequence[_Call], judge: LanguageModel, template: Template, result: JudgeResult
) -> Iterator[_Call]:
    keys = {a.pk for call in calls for a, _b, _first in call.pairs}
    verdicts = JudgeVerdict.objects.filter(judge=judge, template=template.name)
    rows = verdicts.values_list("a", "b", "first", "request_sha256").iterator(5000)
    stored = {(a, b, first): request for a, b, first, request in rows if a in keys}
    for call in calls:
        requests = [stored.get((a.pk, b.pk, first)) for a, b, first in call.pairs]
        if any(request not in (None, call.digest) for request in requests):
            raise HunchError(
                f"{judge}: its verdicts on these replies were asked with other words, another model or another "
                "question; give this run a name of its own (--name)"
            )
        if None in requests:
            yield call
        else:
            result.known += len(call.pairs)


def _verdicts(
    call: _Call, judge: LanguageModel, template: Template, replies: Sequence[ChatReply], *, logprobs: bool
) -> list[JudgeVerdict]:
    """What the replies to a call say of each of its pairs."""
    texts = [reply.texts[0] if reply.texts else "" for reply in replies]
    ranks: dict[int, float] = {}
    towards, chance = None, None
    if template.use == "rank":
        read_ranks = ranks_of(texts[0], len(call.listed))
        if read_ranks is not None:
            # The best and the worst of all are as far apart as a rating can say.
            step = FARTHEST / (len(call.listed) - 1)
            ranks = {answer.pk: -rank * step for answer, rank in zip(call.listed, read_ranks, strict=True)}
    else:
        towards = towards_first(template, texts)
        listed = replies[0].top_logprobs if logprobs else None
        read = next((r for tokens in (listed or ())[:3] if (r := by_probabilities(tokens)) is not None), None)
        if read is not None:
            towards, chance = MIDDLE - read[0], 1 - read[1]  # Both towards the reply that stood first.
    verdicts = []
    for a, b, first in call.pairs:
        is_turned = first == "b"
        if ranks:
            towards_a: float | None = ranks[a.pk] - ranks[b.pk]
        else:
            towards_a = None if towards is None else -towards if is_turned else towards
        verdicts.append(
            JudgeVerdict(
                judge=judge,
                template=template.name,
                template_version=template.version,
                a=a,
                b=b,
                first=first,
                towards_a=towards_a,
                chance_a=None if chance is None else (1 - chance if is_turned else chance),
                reply="\n".join(texts),
                request_sha256=call.digest,
                rules_version=SCORE_RULES_VERSION,
            )
        )
    return verdicts


def _write(pending: list[JudgeVerdict]) -> None:
    JudgeVerdict.objects.bulk_create(pending, ignore_conflicts=True)  # Another run may have asked the same meanwhile.
    pending.clear()


def _cost(run: JudgeRun, result: JudgeResult) -> Decimal | None:
    if run.price_in is None or run.price_out is None:
        return None
    return (result.tokens_in * run.price_in + result.tokens_out * run.price_out) / MILLION


# Judgements that one has


def import_judgements(
    path: Path, study: Study, *, by: Any = None, say: Callable[[str], object] = lambda _note: None
) -> dict[str, int]:
    """Store judges' verdicts on the replies of a study; returns how many are new, by judge.

    Args:
        say: called with what is to be known of the file, before anything is stored.

    Raises:
        FileErrors: every problem with its line; nothing is written.
        HunchError: a verdict differs from one that is stored.
    """
    models = preference_of(study).options.models
    answers = ModelAnswer.objects.filter(question__bank=study.bank_id, language_model__name__in=models).exclude(
        response=""
    )
    replies = {
        (question, model): pk
        for pk, question, model in answers.values_list("pk", "question__external_id", "language_model__name")
    }
    rows = read_rows(VerdictRow, path, Problems(), limits=None)
    verdicts: list[tuple[str, JudgeVerdict]] = []
    for row in rows:
        pair = []
        for column, model in (("model_a", row.model_a), ("model_b", row.model_b)):
            if (row.prompt, model) in replies:
                pair.append(replies[row.prompt, model])
            else:
                what = "has no reply to this prompt" if model in models else "is none of the study's models"
                rows.wrong(row.line, column, f"{model[:60]!r} {what}: the pair is unknown")
        if len(pair) < 2:
            continue
        verdict = _imported(row, *pair)
        key = (row.judge, verdict.template, verdict.a_id, verdict.b_id, verdict.first)
        rows.once(row, "prompt", key, "the same judge judged these replies already")
        verdicts.append((row.judge, verdict))
    rows.refuse("" if verdicts else "holds no judgement: add at least one row")
    for note in rows.problems.notes:
        say(note)
    return _store_imported(verdicts, study, by=by)


def _imported(row: VerdictRow, a: int, b: int) -> JudgeVerdict:
    """The verdict on the replies with these primary keys, the lower one first."""
    turn = -1 if a > b else 1
    towards = row.rating_a
    if towards is None and row.outcome in OUTCOMES:
        towards = float(OUTCOMES[row.outcome])
    return JudgeVerdict(
        template=row.template,
        template_version=row.template_version,
        a_id=min(a, b),
        b_id=max(a, b),
        first=FIRST_WORDS[turn * row.first],
        towards_a=None if towards is None else turn * towards,
        chance_a=1 - row.chance_a if turn < 0 and row.chance_a is not None else row.chance_a,
    )


@transaction.atomic
def _store_imported(imported: Sequence[tuple[str, JudgeVerdict]], study: Study, *, by: Any) -> dict[str, int]:
    new: dict[str, int] = {}
    for name in dict.fromkeys(name for name, _verdict in imported):
        judge = LanguageModel.named(name)
        own = [verdict for judged_by, verdict in imported if judged_by == name]
        stored = {
            (verdict.template, verdict.a_id, verdict.b_id, verdict.first): verdict
            for verdict in JudgeVerdict.objects.select_for_update().filter(judge=judge, a__question__bank=study.bank_id)
        }
        fresh = []
        for verdict in own:
            verdict.judge = judge
            known = stored.get((verdict.template, verdict.a_id, verdict.b_id, verdict.first))
            if known is None:
                fresh.append(verdict)
            elif (known.towards_a, known.chance_a) != (verdict.towards_a, verdict.chance_a):
                raise HunchError(
                    f"{name}: a verdict differs from the one that is stored for the same replies; nothing was imported."
                    " Give it another name in the file (for instance with the date)"
                )
        JudgeVerdict.objects.bulk_create(fresh, batch_size=1000)
        new[name] = len(fresh)
    record("import_judgements", study, by=by, via="command", new=new)
    return new
