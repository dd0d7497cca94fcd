"""Real answers as evidence: only outcomes that a language model really had can be drawn and shown.

A model has one outcome for each question, so N questions give N (N - 1) pairs. Questions that it has not answered are
not part of the study. Nor are those to which its reply could not be read: such a reply is not right, and nobody knows
that it is wrong, so that people must not be shown it as incorrect.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bandit.candidates import Pairs, Pool, uniform_pool
from survey.figures.words import integer
from survey.models import LanguageModel, ModelAnswer, Question, Study
from survey.study_file import FieldPath, Note

from . import controls
from .models import Pair

if TYPE_CHECKING:
    from .options import BeliefUpdateOptions

OPTIONS: FieldPath = ("instrument", "options")
MAX_IDS_IN_MESSAGE = 5


class RealOutcomes:
    """What one language model answered to the questions of a study's bank."""

    def __init__(self, study: Study, *, language_model: str) -> None:
        self._study = study
        self.language_model = language_model

    @property
    def rows(self) -> Any:
        return ModelAnswer.objects.judged().filter(
            language_model__name=self.language_model, question__bank=self._study.bank_id
        )

    @cached_property
    def known(self) -> dict[int, tuple[int, bool]]:
        """Question to (stored answer, whether it is right), all by primary key. With those that are left out: a plan
        from before they could not be read may be drawn again."""
        return {question: (pk, correct) for question, pk, correct in self.rows.values_list("question", "pk", "correct")}

    def read_one(self, question: Question) -> bool | None:
        """Whether the model's answer to this question is right; None where it has none that could be read."""
        return self.rows.filter(question=question, unreadable=0).values_list("correct", flat=True).first()

    @cached_property
    def left_out(self) -> set[int]:
        """Questions, by primary key, that are no evidence since a reply could not be read. Stages that were planned
        with them keep them: their candidates count through the questions of their own plan."""
        return set(self.rows.filter(unreadable__gt=0).values_list("question", flat=True))

    def in_items(self) -> set[int]:
        """Those of `left_out` that stages planned before show as evidence."""
        names = ("answer", "answer_2", "answer_3")
        pairs = Pair.objects.filter(item__study__slug=self._study.slug)
        answers = {answer for row in pairs.values_list(*names).distinct() for answer in row}
        return {question for question in self.left_out if self.known[question][0] in answers}

    def usable(self, questions: list[Question]) -> list[Question]:
        return [question for question in questions if question.pk in self.known and question.pk not in self.left_out]

    def outcome_of(self, questions: Sequence[Question]) -> np.ndarray:
        """1 where the model was right; int8 (N,)."""
        return np.array([self.known[question.pk][1] for question in questions], dtype=np.int8)

    def facts(self) -> list[Any]:
        """What the draw depends on, by the bank's positions."""
        rows = self.rows.filter(unreadable=0).order_by("question__position")
        rows = rows.values_list("question__position", "correct")
        return [self.language_model, [[position, int(correct)] for position, correct in rows]]

    def pool(self, *, questions: Sequence[Question], size: int, rng: np.random.Generator, exclude: np.ndarray) -> Pool:
        """Uniform pairs with their real outcome."""
        return uniform_pool(
            n_questions=len(questions), size=size, rng=rng, exclude=exclude, outcome=self.outcome_of(questions)
        )

    def unrelated(self, *, questions: Sequence[Question], count: int, rng: np.random.Generator) -> Pairs:
        places = [(question.task.domain, question.task.name) for question in questions]
        return controls.unrelated_pairs(count=count, places=places, rng=rng, outcome=self.outcome_of(questions))


def problems(
    study: Study, options: "BeliefUpdateOptions", filtered: Sequence[Question]
) -> Iterator[tuple[FieldPath, str]]:
    """Which of these options are not possible, and why; `filtered` are the questions that the study's filters leave."""
    if options.evidence != "real":
        for name in ("language_model", "show_answer"):
            if getattr(options, name):
                yield (*OPTIONS, name), 'only evidence = "real" has it: set that, or remove this key'
        return
    if not options.language_model:
        yield (*OPTIONS, "evidence"), 'whose answers? name the model: language_model = "..."'
        return
    if not LanguageModel.objects.filter(name=options.language_model).exists():
        known = ", ".join(LanguageModel.objects.values_list("name", flat=True)[:10]) or "none"
        yield (
            (*OPTIONS, "language_model"),
            f"no language model is called {options.language_model!r}; there are: {known}; `hunch collect_answers` and "
            "`hunch import_answers` add one",
        )
        return
    yield from _of_answers(study, options, filtered)


def _of_answers(
    study: Study, options: "BeliefUpdateOptions", filtered: Sequence[Question]
) -> Iterator[tuple[FieldPath, str]]:
    outcomes = RealOutcomes(study, language_model=options.language_model)
    usable = outcomes.usable(list(filtered))
    if len(usable) < 2:
        yield (
            (*OPTIONS, "language_model"),
            f"{options.language_model} has answered {len(usable)} of the study's {len(filtered)} questions: collect "
            "its answers first (`hunch collect_answers`, `hunch import_answers`)"
            + f"; {len(outcomes.left_out)} of its replies could not be read"
            * bool(outcomes.left_out),
        )
        return
    if options.show_answer:
        # Collected answers are stored as they came, even if empty; imported ones may lack their text.
        imported = outcomes.rows.filter(response="", stated="", request_sha256="")
        silent = set(imported.values_list("question_id", flat=True))
        ids = [question.external_id for question in usable if question.pk in silent]
        if ids:
            yield (
                (*OPTIONS, "show_answer"),
                f"{len(ids)} answers of {options.language_model} were imported without the reply, which cannot be "
                f"shown: {', '.join(ids[:MAX_IDS_IN_MESSAGE])}; import them with a response column, or ask the model "
                "again (`hunch collect_answers`)",
            )


def remarks(study: Study, options: "BeliefUpdateOptions", filtered: Sequence[Question]) -> list[Note]:
    outcomes = RealOutcomes(study, language_model=options.language_model)
    usable = outcomes.usable(list(filtered))
    unanswered = [question.external_id for question in filtered if question.pk not in outcomes.known]
    right = int(outcomes.outcome_of(usable).sum())
    notes = [
        Note("", f"evidence is what {options.language_model} really answered: {right} of {len(usable)} questions right")
    ]
    if unanswered:
        message = f"{len(unanswered)} questions that {options.language_model} has not answered are left out: "
        notes.append(Note("", message + ", ".join(unanswered[:MAX_IDS_IN_MESSAGE])))
    left_out = [question for question in filtered if question.pk in outcomes.left_out]
    if left_out:
        message = f"{len(left_out)} questions with replies of {options.language_model} that could not be read are left "
        notes.append(
            Note("", message + "out: " + ", ".join(question.external_id for question in left_out[:MAX_IDS_IN_MESSAGE]))
        )
        planned = outcomes.in_items()
        before = [question.external_id for question in left_out if question.pk in planned]
        if before:
            message = f"{len(before)} of them are evidence in stages that were planned before, as incorrect answers: "
            notes.append(Note("", message + ", ".join(before[:MAX_IDS_IN_MESSAGE])))
    return notes


def in_words(*, language_model: str, universe_size: int, n_questions: int) -> str:
    return (
        f"all {integer(universe_size)} ordered pairs of this study's {integer(n_questions)} questions (evidence, "
        f"target), evidence with the outcome that {language_model} really had, each pair counted once"
    )
