"""What people expect of language models next to what these do: the belief update's part in the reports that compare.

Two events. `right`: people state how likely a language model is right on the target question, and it is or is not. A
belief is about every model that shows the outcome which the person saw, as in figure 7. `changed`: the next person's
belief changes, which the study's predictor forecast before anybody was asked.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from survey.contracts.expectations import ComparedEvent, Expectations, Expecting, Forecast, ItemReader, Items
from survey.exceptions import StateRefused
from survey.models import Assignment, LanguageModel, ModelAnswer, Question, Slot, Study
from survey.services.answers.counting import ESTIMATED

from .label_queries import BATCH_SIZE
from .labels import beliefs_of
from .models import Pair

RIGHT = ComparedEvent(
    name="right",
    title="the language model is right on the target question",
    human="the stated belief after the evidence",
    machine="what the model really did",
    people_forecast=True,
)
CHANGED = ComparedEvent(
    name="changed",
    title="the next person’s belief changes",
    human="whether a person’s belief changed",
    machine="the chance that the predictor gave before the stage",
)
LONGEST = 120  # characters of a question in a list


class BeliefExpecting(Expecting):
    """`study`: whose answers; `threshold`: by how many points a belief must move to have changed; `only`: the language
    model that the study's items are about, empty where outcomes are hypothetical; `steps`: how many evidence
    questions an item has."""

    events = (RIGHT, CHANGED)

    def __init__(self, study: Study | None, *, threshold: int, only: str, steps: int = 1) -> None:
        self._known = study
        self._steps = steps
        self._threshold = threshold
        self._only = only

    @property
    def _study(self) -> Study:
        if self._known is None:
            raise RuntimeError("belief_update: what people expect is read of a study, and there is none")
        return self._known

    def obstacle(self, event: str) -> str:
        if event == RIGHT.name:
            graded = ModelAnswer.objects.graded().filter(question__bank=self._study.bank_id)
            if self._only:
                graded = graded.filter(language_model__name=self._only)
            return "" if graded.exists() else self._no_model()
        if self._steps > 1:
            return (
                f"{self._study.slug}: its items have several evidence questions, and a predictor forecasts what one of "
                "them changes"
            )
        scored = Slot.objects.filter(stage__study=self._study, role__in=ESTIMATED, score__isnull=False)
        return "" if scored.exists() else self._no_score()

    def _no_model(self) -> str:
        who = self._only or "no language model"
        return (
            f"{self._study.slug}: {who} has {'not ' if self._only else ''}answered questions of {self._study.bank}; "
            "`hunch collect_answers` and `hunch import_answers` bring answers"
        )

    def _no_score(self) -> str:
        return (
            f"{self._study.slug}: no predictor scored items before people were asked about them; a stage after the "
            "first one, planned with a predictor, has such scores"
        )

    def of(self, answers: Sequence[Assignment], weights: np.ndarray, *, event: str) -> Expectations:
        return self._right(answers, weights) if event == RIGHT.name else self._changed(answers, weights)

    def _right(self, answers: Sequence[Assignment], weights: np.ndarray) -> Expectations:
        pairs = [answer.slot.item.pair for answer in answers]
        targets, item = np.unique([pair.target_id for pair in pairs], return_inverse=True)
        readers = [
            reader for model in self._models() if (reader := _reader(model, self._study, pairs, targets)) is not None
        ]
        if not readers:
            raise StateRefused(self._no_model())
        beliefs = [beliefs_of(answer) for answer in answers]
        stated = np.array([belief.posterior for belief in beliefs], dtype=np.float64) / 100
        before = np.array([belief.prior for belief in beliefs], dtype=np.float64) / 100
        return Expectations(
            event=RIGHT,
            items=_questions(targets),
            item=item.reshape(-1),
            person=_people(answers),
            weight=weights,
            value=stated,
            readers=readers,
            forecasts=(Forecast("people, before the evidence", before),),
            written=self._study.bank.created_at.date(),
        )

    def _changed(self, answers: Sequence[Assignment], weights: np.ndarray) -> Expectations:
        items = {answer.slot.item_id: answer.slot.item for answer in answers}
        place = {key: index for index, key in enumerate(items)}
        chance = np.full(len(items), np.nan)
        for answer in answers:
            if answer.slot.score is not None:
                chance[place[answer.slot.item_id]] = min(max(answer.slot.score, 0.0), 1.0)
        if np.isnan(chance).all():
            raise StateRefused(self._no_score())
        threshold = self._threshold
        changed = [bool(beliefs_of(answer).changed(threshold)) for answer in answers]
        return Expectations(
            event=CHANGED,
            items=Items(
                labels=[item.key for item in items.values()],
                groups={
                    "outcome": np.array([_outcome(item.pair.outcome) for item in items.values()]),
                    "task": np.array([item.pair.target.task.name for item in items.values()]),
                },
            ),
            item=np.array([place[answer.slot.item_id] for answer in answers], dtype=np.int64),
            person=_people(answers),
            weight=weights,
            value=np.array(changed, dtype=np.float64),
            readers=(ItemReader("the study’s predictor", "predictor", chance),),
        )

    def _models(self) -> list[LanguageModel]:
        known = LanguageModel.objects.filter(answers__question__bank=self._study.bank_id).distinct().order_by("name")
        return [model for model in known if not self._only or model.name == self._only]


def _reader(model: LanguageModel, study: Study, pairs: Sequence[Pair], targets: np.ndarray) -> ItemReader | None:
    """The model's part; None where it has no answer that bears on a belief."""
    right = ModelAnswer.objects.filter(language_model=model, question__bank=study.bank_id).by_question()
    chance = np.array([right.get(int(key), np.nan) for key in targets])
    counts = np.array([_shows(right, pair) for pair in pairs])
    asked = np.array([pair.target_id in right for pair in pairs])
    return ItemReader(model.name, "model", chance, counts=counts) if (asked & (counts > 0)).any() else None


def _shows(right: Mapping[int, float], pair: Pair) -> float:
    """The chance that the model shows all outcomes that a person saw; 0 where it has not answered a question."""
    probability = 1.0 if pair.evidence_id is not None else 0.0
    for step in pair.steps:
        chance = right.get(step.question_id, np.nan)
        probability *= float(np.nan_to_num(chance if step.correct else 1 - chance))
    return probability


def _people(answers: Sequence[Assignment]) -> np.ndarray:
    return np.array([answer.sitting.respondent_id for answer in answers], dtype=np.int64)


def _outcome(right: bool | None) -> str:
    return "after a correct answer" if right else "after an incorrect answer"


def _questions(targets: np.ndarray) -> Items:
    by_key: dict[int, Question] = {}
    for start in range(0, len(targets), BATCH_SIZE):
        rows = Question.objects.filter(pk__in=targets[start : start + BATCH_SIZE].tolist()).select_related("task")
        by_key |= {question.pk: question for question in rows.order_by()}
    questions = [by_key[int(key)] for key in targets]
    texts = [question.plain for question in questions]
    return Items(
        labels=[question.external_id for question in questions],
        texts=[text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…" for text in texts],
        groups={"task": np.array([question.task.name for question in questions])},
    )
