"""Judging replies by the rules, as they come and again where the rules have changed; and scores of replies, which an
instrument has stored, likewise.

A verdict that a planned study rests on stays as it is: people were shown it, or a draw or a predictor depended on it.
So does a verdict that was imported, and what people answered themselves. Where a reply that was not right turns out to
be unreadable, that alone is stored: it changes no verdict, and later stages of real evidence leave the question out.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from django.db import models, transaction

from survey.contracts import instruments
from survey.contracts.instruments import ScoresAgain
from survey.exceptions import StateRefused
from survey.figures.words import significant
from survey.models import Bank, Item, LanguageModel, ModelAnswer, Stage, Study
from survey.services.base.auditing import record
from survey.services.base.hashing import digest

from .answer_checking import RULES_VERSION, check_answer

if TYPE_CHECKING:
    from django.db.models import QuerySet

FIELDS = ("correct", "share_correct", "stated", "reason", "unreadable", "rules_version")


def judge(answer: ModelAnswer, responses: Sequence[str], *, key: str, question: str) -> None:
    """Set what the replies state, the share that is right, and how many could not be read."""
    verdicts = [check_answer(response, key, question=question) for response in responses]
    stated = Counter(verdict.stated for verdict in verdicts if verdict.is_readable)
    answer.stated = stated.most_common(1)[0][0] if stated else ""
    answer.reason = next((verdict.reason for verdict in verdicts if verdict.reason), "")
    answer.unreadable = sum(not verdict.is_readable for verdict in verdicts)
    answer.rules_version = RULES_VERSION
    answer.grade(sum(bool(verdict.correct) for verdict in verdicts) / len(verdicts))


@dataclass(frozen=True)
class ChangedVerdict:
    """An answer whose verdict another version of the rules changes; each share right is from 0 to 1. `studies`: those
    that rest on the model's answers, so that the verdict stays."""

    model: str
    question_id: str
    key: str
    reply: str
    before: float
    after: float
    unreadable: int
    studies: Sequence[str]

    def __str__(self) -> str:
        unreadable = f", {self.unreadable} unreadable" if self.unreadable else ""
        stays = f"; stays, since it is what {', '.join(self.studies)} rests on" if self.studies else ""
        return (
            f"{self.model} {self.question_id}: {significant(self.before)} to {significant(self.after)} right"
            f"{unreadable} (key {self.key!r}, reply {self.reply[:60]!r}){stays}"
        )


@dataclass
class JudgedAgain:
    """What judging a bank's replies again changes. `used`: answers that keep it, since `resting`, studies of this bank,
    rest on it; `unreadable` of them are now known as such. `studies`: all studies of the bank. `scores`: of judges, by
    instrument."""

    judged: int = 0
    used: int = 0
    unreadable: int = 0
    differences: list[ChangedVerdict] = field(default_factory=list)
    studies: list[str] = field(default_factory=list)
    resting: list[str] = field(default_factory=list)
    scores: dict[str, ScoresAgain] = field(default_factory=dict)

    @property
    def has_any(self) -> bool:
        """Whether something is judged or read again, be it with the same result."""
        return bool(self.judged or self.unreadable or any(again.read for again in self.scores.values()))

    @property
    def seen(self) -> str:
        """Hash of all that it says: a person confirms what was shown, and nothing that came since."""
        return digest([RULES_VERSION, asdict(self)])


def judge_again(bank: Bank, *, write: bool, seen: str = "", by: Any = None, via: str = "command") -> JudgedAgain:
    """Judge a bank's stored replies that older rules judged, and read judges' scores of them again; without `write`
    only say what would change.

    Raises:
        InstrumentMissing: a planned study's instrument is not installed, so that nobody knows what it rests on.
        StateRefused: `seen`, the hash of what somebody confirmed, is not what would change now; nothing is written.
    """
    result = JudgedAgain(studies=[study.slug for study in Study.objects.filter(bank=bank).order_by("slug")])
    with transaction.atomic():
        answers = waiting_answers(bank).select_related("question", "language_model")
        answers = answers.order_by("language_model__name", "question__position")
        if write:
            answers = answers.select_for_update(of=("self",))
        fixed = _studies_by_model(bank)
        changed, unreadable, resting = [], [], set[str]()
        for answer in answers:
            studies = sorted(fixed.get(answer.language_model_id, ()))
            resting.update(studies)
            before, known = _share_right(answer), answer.unreadable
            judge(
                answer, answer.replies or [answer.response], key=answer.question.answer, question=answer.question.text
            )
            after = _share_right(answer)
            result.judged += not studies
            result.used += bool(studies)
            if before != after:
                own = (answer.question.external_id, answer.question.answer, answer.response)
                result.differences.append(
                    ChangedVerdict(answer.language_model.name, *own, before, after, answer.unreadable, studies)
                )
            if not studies:
                changed.append(answer)
            elif before == after and answer.unreadable > known:
                unreadable.append(answer)
        result.resting, result.unreadable = sorted(resting), len(unreadable)
        for name in instruments.names():
            of_kind = instruments.kind(name)().verdicts
            scores = None if of_kind is None else of_kind.read_scores_again(bank, write=write)
            if scores is not None and (scores.read or scores.left):
                result.scores[name] = scores
        if seen and seen != result.seen:
            raise StateRefused("what would change is not what was shown any more: look at it again")
        if write and result.has_any:
            ModelAnswer.objects.bulk_update(changed, FIELDS, batch_size=500)
            ModelAnswer.objects.bulk_update(unreadable, ("unreadable",), batch_size=500)
            verdicts = sum(not difference.studies for difference in result.differences)
            detail = {"rules": RULES_VERSION, "judged": result.judged, "kept": result.used, "changed": verdicts}
            detail |= {"resting": result.resting, "unreadable": result.unreadable, "scores": _counts(result.scores)}
            record("judge_again", bank, by=by, via=via, studies=result.studies, **detail)
    return result


def waiting_answers(bank: Bank) -> "QuerySet[ModelAnswer]":
    """The answers that older rules judged, not those that were imported with a verdict."""
    return ModelAnswer.objects.filter(question__bank=bank).exclude(rules_version__in=("", RULES_VERSION))


def _counts(scores: Mapping[str, ScoresAgain]) -> dict[str, dict[str, int | str]]:
    return {
        name: {"rules": again.rules, "read": again.read, "left": again.left, "changed": len(again.differences)}
        for name, again in scores.items()
    }


def _share_right(answer: ModelAnswer) -> float:
    return float(bool(answer.correct)) if answer.share_correct is None else answer.share_correct


def _studies_by_model(bank: Bank) -> dict[int, set[str]]:
    """By language model, the studies that rest on its answers: one stands in an item, or the instrument says that their
    verdicts decide what is drawn or learnt. All of a model's answers stay then, since a draw depended on all."""
    studies: dict[int, set[str]] = {}
    for relation, item in _relations_of_items():
        name = relation.field.name
        pairs = relation.related_model._default_manager.filter(**{f"{name}__question__bank": bank})
        for model, slug in pairs.values_list(f"{name}__language_model", f"{item}__study__slug").distinct():
            studies.setdefault(model, set()).add(slug)
    models_of_bank = list(LanguageModel.objects.filter(answers__question__bank=bank).distinct())
    for study in Study.objects.filter(bank=bank):
        # An amendment may have taken out what an earlier stage was drawn by.
        files = {stage.manifest.get("study_file_sha256", "") for stage in study.stages.exclude(state=Stage.State.DRAFT)}
        under = [instruments.of_study(study.under(sha256)) for sha256 in sorted(files | {""})] if files else []
        drawing = [instrument.verdicts for instrument in under if instrument.verdicts is not None]
        for model in models_of_bank:
            if any(verdicts.rests_on(model.name) for verdicts in drawing):
                studies.setdefault(model.pk, set()).add(study.slug)
    return studies


def _relations_of_items() -> Iterator[tuple[models.ForeignObjectRel, str]]:
    """Fields through which instruments' rows of items point at answers, and the rows' field of the item; instruments
    are not named here."""
    for relation in ModelAnswer._meta.get_fields(include_hidden=True):
        if isinstance(relation, models.ForeignObjectRel):
            for own in relation.related_model._meta.concrete_fields:
                if getattr(own, "related_model", None) is Item:
                    yield relation, own.name
