"""The columns of comparisons, and the file that `token_comparison --answers` reads."""

import math
from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from survey.contracts.exports import AnswerColumn, Answered, AnswerExport, CountedAnswers
from survey.contracts.tables import ExtraFile, ValueColumn

from .labels import stated_of

if TYPE_CHECKING:
    from survey.models import Assignment

    from .models import TokenPair


class ComparisonRow(NamedTuple):
    """What one person said of a pair; or, without a person, draws of its context that nobody was asked about."""

    pair: "TokenPair"
    person: str
    other: int
    multiplicity: int
    percent_true: int | None
    log_g_other: float


ANSWERS = (
    ValueColumn("person", "text", "The respondent's pseudonym."),
    ValueColumn(
        "context",
        "text",
        "The context: id of its text, and its tokens.",
        value=lambda row: f"{row.pair.question.external_id}@{row.pair.context.position}",
    ),
    ValueColumn("text", "text", "Id of the text.", value="pair.question.external_id"),
    ValueColumn("other", "text", "Id of the other token.", value=lambda row: str(row.other)),
    ValueColumn("multiplicity", "number", "How often the generator drew it.", whole=True),
    ValueColumn("percent_true", "percentage points", "The chance that was given to the true token."),
    ValueColumn(
        "log_g_true",
        "number",
        "Natural logarithm of the generator's probability of the true token.",
        value="pair.context.log_g_true",
    ),
    ValueColumn("log_g_other", "number", "That of the other token."),
)


def answer_rows(assignments: Iterable["Assignment"]) -> Iterator[ComparisonRow]:
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
        person = assignment.sitting.respondent.pseudonym
        yield ComparisonRow(pair, person, pair.other_id, pair.multiplicity, stated.percent_true, pair.log_g_other)
    for key, pair in contexts.items():
        context = pair.context
        if context.same:
            yield ComparisonRow(pair, "", context.true_id, context.same, None, context.log_g_true)
        for other in context.others:
            if other.id not in answered[key]:
                yield ComparisonRow(pair, "", other.id, other.times, None, other.log_g)


class ComparisonExport(AnswerExport):
    first_look = MappingProxyType(
        {
            "true_token": "the true next token",
            "other_token": "the other one",
            "percent_true": "chance given to the true one",
            "reward": "points",
        }
    )
    columns = (
        AnswerColumn("passage_id", "text", "Id of the text.", of="question__external_id"),
        AnswerColumn("source", "text", "Source of the text.", of="question__task__name"),
        AnswerColumn(
            "context_tokens",
            "number",
            "Tokens of the context that was shown, from the text's beginning.",
            whole=True,
            of="context__position",
        ),
        AnswerColumn(
            "true_id", "number", "Id of the true next token by the tokenizer.", whole=True, of="context__true_id"
        ),
        AnswerColumn("true_token", "text", "The true next token.", of="context__true_text"),
        AnswerColumn("other_id", "number", "Id of the other token.", whole=True, of="other_id"),
        AnswerColumn("other_token", "text", "The other token.", of="other_text"),
        AnswerColumn(
            "multiplicity", "number", "How often the generator drew the other token.", whole=True, of="multiplicity"
        ),
        AnswerColumn(
            "draws", "number", "How many tokens the generator drew for this context.", whole=True, of="context__draws"
        ),
        AnswerColumn(
            "same",
            "number",
            "How many of these draws are the true token: they are never asked.",
            whole=True,
            of="context__same",
        ),
        AnswerColumn(
            "g_true",
            "number",
            "The generator's probability of the true token among those that people can read.",
            of="context__log_g_true",
            value=math.exp,
        ),
        AnswerColumn("g_other", "number", "That of the other token.", of="log_g_other", value=math.exp),
        AnswerColumn("tokenizer_sha256", "text", "Hash of the tokenizer.", of="context__tokenizer__sha256"),
        AnswerColumn("generator_sha256", "text", "Hash of the generator.", of="context__generator_sha256"),
        AnswerColumn(
            "true_side",
            "text",
            "left or right: where the true token stood.",
            of=Answered("stated_chance__true_is_left"),
            value=lambda is_left: "left" if is_left else "right",
        ),
        AnswerColumn(
            "percent_left",
            "percentage points",
            "The chance that was stated for the left token.",
            of=Answered("stated_chance__percent_left"),
        ),
        AnswerColumn(
            "percent_true",
            "percentage points",
            "The chance that the true token got by that.",
            of=(Answered("stated_chance__percent_left"), Answered("stated_chance__true_is_left")),
            value=lambda percent, is_left: percent if is_left else 100 - percent,
        ),
        AnswerColumn(
            "reward",
            "number",
            "Points for the answer, without the endowment.",
            of=Answered("stated_chance__reward"),
            value=float,
        ),
    )
    codebook_note = "Logarithms are natural. Probabilities of tokens are those among tokens that people can read."

    def extra_files(self, answers: CountedAnswers) -> Iterable[ExtraFile]:
        return (ExtraFile.of("comparisons.csv", ANSWERS, answer_rows(answers)),)
