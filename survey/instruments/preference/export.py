"""The columns of preferences, and the two files that every export has in addition to the answers."""

from collections.abc import Iterable, Iterator
from datetime import UTC
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from survey.contracts.exports import AnswerExport
from survey.contracts.tables import TIME, Column, ExtraFile

from .labels import judgement_of
from .quick_export import PreferenceQuickExport
from .verdicts import verdicts_of

if TYPE_CHECKING:
    from survey.models import Assignment, Study

COLUMNS = (
    Column("prompt_id", "text", "Id of the prompt."),
    Column("category", "text", "The prompt's category."),
    Column("model_a", "text", "The model that wrote reply A."),
    Column("model_b", "text", "The model that wrote reply B; the same in a control that shows one reply twice."),
    Column("first", "a or b", "Which of them was shown as reply 1."),
    Column("cannot_judge", "0 or 1", "1: the person could not judge."),
    Column(
        "place", "number", "The place on the first question as given, 1 to 8; 1: reply 1 is much better.", whole=True
    ),
    Column("rating_a", "number", "The same towards A, -3.5 to 3.5."),
    Column("places", "JSON object", "The place on each question, as given."),
    Column("ratings_a", "JSON object", "The same towards A."),
    Column("reason", "text", "Why, as it was written.", written=True),
)
PREFERENCES = (
    Column("prompt", "text", "Id of the prompt."),
    Column("category", "text", "The prompt's category."),
    Column("model_a", "text", "The model that wrote reply A."),
    Column("model_b", "text", "The model that wrote reply B."),
    Column("annotator", "text", "The respondent's pseudonym."),
    Column("rating_a", "number", "The rating towards A on the first question, -3.5 to 3.5."),
    Column("first", "a or b", "Which reply was shown first."),
    Column("probability", "0 to 1", "The chance with which the item was asked, both phases together."),
    Column("stage", "number", "The stage, from 1.", whole=True),
    Column("role", "text", "What the slot was for: sampled, holdout, control or repeat."),
    Column("reply_a_key", "number", "Key of reply A in this installation.", whole=True),
    Column("reply_b_key", "number", "Key of reply B in this installation.", whole=True),
)
JUDGEMENTS = (
    Column("prompt", "text", "Id of the prompt."),
    Column("model_a", "text", "The model that wrote reply A."),
    Column("model_b", "text", "The model that wrote reply B."),
    Column("judge", "text", "The language model that judged."),
    Column("template", "text", "How it was asked; empty for imported judgements."),
    Column("template_version", "text", "The version of these words."),
    Column("outcome", "text", "a, b, tie, or unreadable where no score could be read."),
    Column("rating_a", "number", "The score towards A, -3.5 to 3.5."),
    Column("chance_a", "0 to 1", "The chance of A by the model's own probabilities, where it gave them."),
    Column("first", "a or b", "Which reply stood first; empty where each was rated alone, or where it is not known."),
    Column("reply", "text", "What the judge wrote."),
    Column("judged_at", TIME, "When it was stored."),
    Column("rules_version", "text", "Version of the rules that read the score; empty for imported judgements."),
)


def values(assignment: "Assignment") -> list[Any]:
    comparison, judgement = assignment.slot.item.comparison, judgement_of(assignment)
    facts = [
        comparison.question.external_id,
        comparison.question.task.name,
        comparison.a.language_model.name,
        comparison.b.language_model.name,
    ]
    if judgement is None:
        return [*facts, *[None] * 7]
    place = judgement.place
    return [
        *facts,
        "a" if judgement.a_first else "b",
        int(judgement.cannot_judge),
        place,
        None if place is None else judgement.towards_a(place),
        judgement.places or None,
        {name: judgement.towards_a(place) for name, place in judgement.places.items()} or None,
        judgement.reason or None,
    ]


def in_words(assignment_judgement: Any) -> str:
    """What a person answered, for someone who reads the sitting again."""
    if assignment_judgement.cannot_judge:
        said = "could not judge"
    else:
        said = ", ".join(f"{name}: {place} of 8" for name, place in assignment_judgement.places.items())
    return f"{said}; {assignment_judgement.reason}" if assignment_judgement.reason else said


def files(study: "Study | None", models: Iterable[str], assignments: Iterable["Assignment"]) -> Iterator[ExtraFile]:
    yield ExtraFile("preferences.csv", PREFERENCES, _preferences(assignments))
    yield ExtraFile("judgements.csv", JUDGEMENTS, _judgements(study, models))


def _preferences(assignments: Iterable["Assignment"]) -> Iterator[list[Any]]:
    for assignment in assignments:
        comparison, judgement, slot = assignment.slot.item.comparison, judgement_of(assignment), assignment.slot
        if judgement is None or judgement.place is None:
            continue
        drawn = slot.inclusion_probability is not None and slot.pool_probability is not None
        yield [
            comparison.question.external_id,
            comparison.question.task.name,
            comparison.a.language_model.name,
            comparison.b.language_model.name,
            assignment.sitting.respondent.pseudonym,
            judgement.towards_a(judgement.place),
            "a" if judgement.a_first else "b",
            1 / slot.design_weight if drawn else None,
            slot.stage.index,
            slot.role,
            comparison.a_id,
            comparison.b_id,
        ]


def _judgements(study: "Study | None", models: Iterable[str]) -> Iterator[list[Any]]:
    if study is None:
        return
    for verdict in verdicts_of(study.bank_id, models):
        towards = verdict.towards_a
        outcome = "unreadable" if towards is None else "a" if towards > 0 else "b" if towards < 0 else "tie"
        yield [
            verdict.a.question.external_id,
            verdict.a.language_model.name,
            verdict.b.language_model.name,
            verdict.judge.name,
            verdict.template,
            verdict.template_version,
            outcome,
            towards,
            verdict.chance_a,
            verdict.first,
            verdict.reply,
            verdict.created_at.astimezone(UTC).isoformat(),
            verdict.rules_version,
        ]


class PreferenceExport(AnswerExport):
    """`models`: those of the study."""

    columns = COLUMNS
    first_look = MappingProxyType(
        {
            "model_a": "reply A by",
            "model_b": "reply B by",
            "first": "shown first",
            "place": "place, 1 to 8",
            "rating_a": "towards A",
            "reason": "why",
        }
    )
    codebook_note = "Places 1 to 4 lean to the reply shown first, 5 to 8 to the second; ratings towards A do not."

    def __init__(self, study: "Study | None", models: Iterable[str]) -> None:
        self.study, self.models = study, models

    def values(self, assignment: "Assignment") -> list[Any]:
        return values(assignment)

    def extra_files(self, assignments: Iterable["Assignment"]) -> Iterable[ExtraFile]:
        return files(self.study, self.models, assignments)

    @property
    def quick(self) -> PreferenceQuickExport:
        return PreferenceQuickExport()
