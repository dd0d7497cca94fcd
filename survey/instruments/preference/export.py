"""The columns of preferences, and the two files that every export has in addition to the answers."""

from collections.abc import Iterable, Iterator
from datetime import UTC
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from survey.contracts.exports import AnswerColumn, Answered, AnswerExport, CountedAnswers
from survey.contracts.tables import TIME, ExtraFile, ValueColumn

from .labels import judgement_of
from .models import towards_a
from .verdicts import verdicts_of

if TYPE_CHECKING:
    from survey.models import Assignment, Study

    from .models import JudgeVerdict, ReplyJudgement

COMPARISON = "assignment.slot.item.comparison"
A_FIRST = Answered("judgement__a_first")
PLACE = Answered("judgement__place")
PLACES = Answered("judgement__places")


def _first_shown(a_first: bool) -> str:
    return "a" if a_first else "b"


def _outcome(verdict: "JudgeVerdict") -> str:
    towards = verdict.towards_a
    return "unreadable" if towards is None else "a" if towards > 0 else "b" if towards < 0 else "tie"


class Judged(NamedTuple):
    """What a person judged, and in which answer."""

    assignment: "Assignment"
    judgement: "ReplyJudgement"


PREFERENCES = (
    ValueColumn("prompt", "text", "Id of the prompt.", value=f"{COMPARISON}.question.external_id"),
    ValueColumn("category", "text", "The prompt's category.", value=f"{COMPARISON}.question.task.name"),
    ValueColumn("model_a", "text", "The model that wrote reply A.", value=f"{COMPARISON}.a.language_model.name"),
    ValueColumn("model_b", "text", "The model that wrote reply B.", value=f"{COMPARISON}.b.language_model.name"),
    ValueColumn("annotator", "text", "The respondent's pseudonym.", value="assignment.sitting.respondent.pseudonym"),
    ValueColumn(
        "rating_a",
        "number",
        "The rating towards A on the first question, -3.5 to 3.5.",
        value=lambda row: row.judgement.towards_a(row.judgement.place),
    ),
    ValueColumn(
        "first", "a or b", "Which reply was shown first.", value=lambda row: _first_shown(row.judgement.a_first)
    ),
    ValueColumn(
        "probability",
        "0 to 1",
        "The chance with which the item was asked, both phases together.",
        value="assignment.slot.drawn_probability",
    ),
    ValueColumn("stage", "number", "The stage, from 1.", whole=True, value="assignment.slot.stage.index"),
    ValueColumn(
        "role", "text", "What the slot was for: sampled, holdout, control or repeat.", value="assignment.slot.role"
    ),
    ValueColumn(
        "reply_a_key", "number", "Key of reply A in this installation.", whole=True, value=f"{COMPARISON}.a_id"
    ),
    ValueColumn(
        "reply_b_key", "number", "Key of reply B in this installation.", whole=True, value=f"{COMPARISON}.b_id"
    ),
)
# Of each verdict of a judge.
JUDGEMENTS = (
    ValueColumn("prompt", "text", "Id of the prompt.", value="a.question.external_id"),
    ValueColumn("model_a", "text", "The model that wrote reply A.", value="a.language_model.name"),
    ValueColumn("model_b", "text", "The model that wrote reply B.", value="b.language_model.name"),
    ValueColumn("judge", "text", "The language model that judged.", value="judge.name"),
    ValueColumn("template", "text", "How it was asked; empty for imported judgements."),
    ValueColumn("template_version", "text", "The version of these words."),
    ValueColumn("outcome", "text", "a, b, tie, or unreadable where no score could be read.", value=_outcome),
    ValueColumn("rating_a", "number", "The score towards A, -3.5 to 3.5.", value="towards_a"),
    ValueColumn("chance_a", "0 to 1", "The chance of A by the model's own probabilities, where it gave them."),
    ValueColumn(
        "first", "a or b", "Which reply stood first; empty where each was rated alone, or where it is not known."
    ),
    ValueColumn("reply", "text", "What the judge wrote."),
    ValueColumn(
        "judged_at", TIME, "When it was stored.", value=lambda verdict: verdict.created_at.astimezone(UTC).isoformat()
    ),
    ValueColumn("rules_version", "text", "Version of the rules that read the score; empty for imported judgements."),
)


def in_words(judgement: Any) -> str:
    """What a person answered, for someone who reads the sitting again."""
    if judgement.cannot_judge:
        said = "could not judge"
    else:
        said = ", ".join(f"{name}: {place} of 8" for name, place in judgement.places.items())
    return f"{said}; {judgement.reason}" if judgement.reason else said


def files(study: "Study | None", models: Iterable[str], answers: "Iterable[Assignment]") -> Iterator[ExtraFile]:
    yield ExtraFile.of("preferences.csv", PREFERENCES, _judged(answers))
    yield ExtraFile.of("judgements.csv", JUDGEMENTS, () if study is None else verdicts_of(study.bank_id, models))


def _judged(answers: "Iterable[Assignment]") -> Iterator[Judged]:
    """Those of people who could judge."""
    for answer in answers:
        judgement = judgement_of(answer)
        if judgement is not None and judgement.place is not None:
            yield Judged(answer, judgement)


class PreferenceExport(AnswerExport):
    """`models`: those of the study."""

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
    columns = (
        AnswerColumn("prompt_id", "text", "Id of the prompt.", of="question__external_id"),
        AnswerColumn("category", "text", "The prompt's category.", of="question__task__name"),
        AnswerColumn("model_a", "text", "The model that wrote reply A.", of="a__language_model__name"),
        AnswerColumn(
            "model_b",
            "text",
            "The model that wrote reply B; the same in a control that shows one reply twice.",
            of="b__language_model__name",
        ),
        AnswerColumn("first", "a or b", "Which of them was shown as reply 1.", of=A_FIRST, value=_first_shown),
        AnswerColumn(
            "cannot_judge",
            "0 or 1",
            "1: the person could not judge.",
            of=Answered("judgement__cannot_judge"),
            value=int,
        ),
        AnswerColumn(
            "place",
            "number",
            "The place on the first question as given, 1 to 8; 1: reply 1 is much better.",
            whole=True,
            of=PLACE,
        ),
        AnswerColumn("rating_a", "number", "The same towards A, -3.5 to 3.5.", of=(PLACE, A_FIRST), value=towards_a),
        AnswerColumn(
            "places",
            "JSON object",
            "The place on each question, as given.",
            of=PLACES,
            value=lambda places: places or None,
        ),
        AnswerColumn(
            "ratings_a",
            "JSON object",
            "The same towards A.",
            of=(PLACES, A_FIRST),
            value=lambda places, a_first: {name: towards_a(place, a_first) for name, place in places.items()} or None,
        ),
        AnswerColumn(
            "reason",
            "text",
            "Why, as it was written.",
            written=True,
            of=Answered("judgement__reason"),
            value=lambda reason: reason or None,
        ),
    )
    codebook_note = "Places 1 to 4 lean to the reply shown first, 5 to 8 to the second; ratings towards A do not."

    def __init__(self, study: "Study | None", models: Iterable[str]) -> None:
        self.study, self.models = study, models

    def extra_files(self, answers: CountedAnswers) -> Iterable[ExtraFile]:
        return files(self.study, self.models, answers)
