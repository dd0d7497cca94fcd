"""The columns of comparisons, and the file that `token_comparison --answers` reads."""

import math
from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from survey.contracts.exports import AnswerExport
from survey.contracts.tables import Column, ExtraFile

from .labels import stated_of

if TYPE_CHECKING:
    from survey.models import Assignment

    from .models import TokenPair

COLUMNS = (
    Column("passage_id", "text", "Id of the text."),
    Column("source", "text", "Source of the text."),
    Column("context_tokens", "number", "Tokens of the context that was shown, from the text's beginning.", whole=True),
    Column("true_id", "number", "Id of the true next token by the tokenizer.", whole=True),
    Column("true_token", "text", "The true next token."),
    Column("other_id", "number", "Id of the other token.", whole=True),
    Column("other_token", "text", "The other token."),
    Column("multiplicity", "number", "How often the generator drew the other token.", whole=True),
    Column("draws", "number", "How many tokens the generator drew for this context.", whole=True),
    Column("same", "number", "How many of these draws are the true token: they are never asked.", whole=True),
    Column("g_true", "number", "The generator's probability of the true token among those that people can read."),
    Column("g_other", "number", "That of the other token."),
    Column("tokenizer_sha256", "text", "Hash of the tokenizer."),
    Column("generator_sha256", "text", "Hash of the generator."),
    Column("true_side", "text", "left or right: where the true token stood."),
    Column("percent_left", "percentage points", "The chance that was stated for the left token."),
    Column("percent_true", "percentage points", "The chance that the true token got by that."),
    Column("reward", "number", "Points for the answer, without the endowment."),
)
ANSWERS = (
    Column("person", "text", "The respondent's pseudonym."),
    Column("context", "text", "The context: id of its text, and its tokens."),
    Column("text", "text", "Id of the text."),
    Column("other", "text", "Id of the other token."),
    Column("multiplicity", "number", "How often the generator drew it.", whole=True),
    Column("percent_true", "percentage points", "The chance that was given to the true token."),
    Column("log_g_true", "number", "Natural logarithm of the generator's probability of the true token."),
    Column("log_g_other", "number", "That of the other token."),
)


def values(assignment: "Assignment") -> list[Any]:
    pair = assignment.slot.item.token_pair
    context = pair.context
    facts = [
        pair.question.external_id,
        pair.question.task.name,
        context.position,
        context.true_id,
        context.true_text,
        pair.other_id,
        pair.other_text,
        pair.multiplicity,
        context.draws,
        context.same,
        math.exp(context.log_g_true),
        math.exp(pair.log_g_other),
        context.tokenizer.sha256,
        context.generator_sha256,
    ]
    stated = stated_of(assignment)
    if stated is None:
        return [*facts, *[None] * 4]
    side = "left" if stated.true_is_left else "right"
    return [*facts, side, stated.percent_left, stated.percent_true, float(stated.reward)]


def name_of(pair: "TokenPair") -> str:
    """A context's name in tables."""
    return f"{pair.question.external_id}@{pair.context.position}"


def answer_rows(assignments: Iterable["Assignment"]) -> Iterator[Sequence[Any]]:
    """One row per answer; then a row for the draws of each context that nobody was asked about: those that are the true
    token, and comparisons without an answer."""
    contexts: dict[int, TokenPair] = {}
    answered: dict[int, set[int]] = {}
    for assignment in assignments:
        stated = stated_of(assignment)
        if stated is None:
            continue
        pair = assignment.slot.item.token_pair
        contexts.setdefault(pair.context_id, pair)
        answered.setdefault(pair.context_id, set()).add(pair.other_id)
        yield [
            assignment.sitting.respondent.pseudonym,
            name_of(pair),
            pair.question.external_id,
            str(pair.other_id),
            pair.multiplicity,
            stated.percent_true,
            pair.context.log_g_true,
            pair.log_g_other,
        ]
    for key, pair in contexts.items():
        context, text = pair.context, pair.question.external_id
        if context.same:
            log = context.log_g_true
            yield ["", name_of(pair), text, str(context.true_id), context.same, None, log, log]
        for other in context.others:
            if other.id not in answered[key]:
                yield ["", name_of(pair), text, str(other.id), other.times, None, context.log_g_true, other.log_g]


class ComparisonExport(AnswerExport):
    columns = COLUMNS
    first_look = MappingProxyType(
        {
            "true_token": "the true next token",
            "other_token": "the other one",
            "percent_true": "chance given to the true one",
            "reward": "points",
        }
    )
    codebook_note = "Logarithms are natural. Probabilities of tokens are those among tokens that people can read."

    def values(self, assignment: "Assignment") -> list[Any]:
        return values(assignment)

    def extra_files(self, assignments: "Iterable[Assignment]") -> Iterable[ExtraFile]:
        return (ExtraFile("comparisons.csv", ANSWERS, answer_rows(assignments)),)
