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
from survey.models import LanguageModel, ModelAnswer, Question, Stage, Study
from survey.services.base import files
from survey.study_file import Note, Place

from . import controls

if TYPE_CHECKING:
    from .options import BeliefUpdateOptions

OPTIONS: Place = ("instrument", "options")
NAMED = 5


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
        """Question to (stored answer, whether it is right), all by primary key. With those that are left out: a plan of
        older code may be drawn again."""
        return {question: (pk, correct) for question, pk, correct in self.rows.values_list("question", "pk", "correct")}

    @cached_property
    def unreadable(self) -> dict[int, int]:
        """Questions with a reply that could not be read: position by primary key."""
        rows = self.rows.filter(unreadable__gt=0).order_by("question__position")
        return dict(rows.values_list("question", "question__position"))

    @cached_property
    def left_out(self) -> set[int]:
        """Questions, by primary key, that are no evidence since a reply could not be read.

        A study that older code planned with some of them keeps these. The rows of its candidates count through its
        questions, and the chances of what people answered are over all of them.
        """
        if not self.unreadable:
            return set()
        drawn = self._drawn_from()
        return {key for key, position in self.unreadable.items() if drawn is not None and position not in drawn}

    def _drawn_from(self) -> set[int] | None:
        """Positions of the questions that the study's planned stages were drawn from; None if that is not known."""
        positions: set[int] = set()
        for stage in Stage.objects.filter(study__slug=self._study.slug).exclude(state=Stage.State.DRAFT):
            try:
                positions.update(files.load_array(stage.manifest["questions"]["positions_sha256"]).tolist())
            except (KeyError, FileNotFoundError):
                return None
        return positions

    def usable(self, questions: list[Question]) -> list[Question]:
        return [question for question in questions if question.pk in self.known and question.pk not in self.left_out]

    def outcome_of(self, questions: Sequence[Question]) -> np.ndarray:
        """1 where the model was right; int8 (N,)."""
        return np.array([self.known[question.pk][1] for question in questions], dtype=np.int8)

    def facts(self) -> list[Any]:
        """What the draw depends on, by the bank's positions."""
        rows = self.rows.exclude(question__in=self.left_out).order_by("question__position")
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


def problems(study: Study, options: "BeliefUpdateOptions", filtered: Sequence[Question]) -> Iterator[tuple[Place, str]]:
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
            f"no language model is called {options.language_model!r}; there are: {known}; import_answers and "
            "collect_answers add one",
        )
        return
    yield from _of_answers(study, options, filtered)


def _of_answers(
    study: Study, options: "BeliefUpdateOptions", filtered: Sequence[Question]
) -> Iterator[tuple[Place, str]]:
    outcomes = RealOutcomes(study, language_model=options.language_model)
    usable = outcomes.usable(list(filtered))
    if len(usable) < 2:
        yield (
            (*OPTIONS, "language_model"),
            f"{options.language_model} has answered {len(usable)} of the study's {len(filtered)} questions: collect "
            "its answers first (import_answers, collect_answers)"
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
                f"shown: {', '.join(ids[:NAMED])}; import them with a response column, or collect_answers",
            )


def remarks(study: Study, options: "BeliefUpdateOptions", filtered: Sequence[Question]) -> list[Note]:
    outcomes = RealOutcomes(study, language_model=options.language_model)
    usable = outcomes.usable(list(filtered))
    unanswered = [question.external_id for question in filtered if question.pk not in outcomes.known]
    right = int(outcomes.outcome_of(usable).sum())
    found = [
        Note("", f"evidence is what {options.language_model} really answered: {right} of {len(usable)} questions right")
    ]
    if unanswered:
        message = f"{len(unanswered)} questions that {options.language_model} has not answered are left out: "
        found.append(Note("", message + ", ".join(unanswered[:NAMED])))
    unreadable = [question for question in filtered if question.pk in outcomes.unreadable]
    left_out = [question.external_id for question in unreadable if question.pk in outcomes.left_out]
    if left_out:
        message = f"{len(left_out)} questions with replies of {options.language_model} that could not be read are left "
        found.append(Note("", f"{message}out: {', '.join(left_out[:NAMED])}"))
    used = [question.external_id for question in unreadable if question.pk not in outcomes.left_out]
    if used:
        message = f"{len(used)} replies of {options.language_model} that could not be read count as incorrect, since a "
        message += "stage is planned with them; flag their questions to leave them out of later stages: "
        found.append(Note("", message + ", ".join(used[:NAMED])))
    return found


def in_words(*, language_model: str, universe_size: int, n_questions: int) -> str:
    return (
        f"all {universe_size:,} ordered pairs of this study's {n_questions:,} questions (evidence, target), evidence "
        f"with the outcome that {language_model} really had, each pair counted once"
    )
