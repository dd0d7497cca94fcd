"""The report `token_comparison` of a study: people's loss and perplexity, beside models whose loss is known."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from django.db.models import Count, Sum

from survey.contracts import instruments
from survey.contracts.reports import Argument, Findings, Given, Report
from survey.exceptions import HunchError, StateRefused
from survey.instruments.token_comparison.analysis.checking import CheckModel
from survey.instruments.token_comparison.analysis.estimating import Answers, Comparisons, log_odds_of_percent
from survey.instruments.token_comparison.chances import chance_of_any, chance_of_one, drawn_of
from survey.instruments.token_comparison.labels import stated_of
from survey.instruments.token_comparison.models import PreparedContext, StatedChance
from survey.instruments.token_comparison.options import ComparisonOptions
from survey.instruments.token_comparison.preparing import contexts_of, readings_of
from survey.models import Question, Sitting
from survey.services.answers.conditions import read_condition
from survey.services.answers.counting import counting, study_answers
from survey.services.banks.eligibility import eligible_questions
from survey.services.base.seeds import generator

from .findings import CONTEXTS, DRAWS, LOSSES, Material, findings, work_out

if TYPE_CHECKING:
    from survey.contracts.tables import Column
    from survey.models import Assignment, Study


class TokenComparisonReport(Report):
    arguments: ClassVar[Sequence[Argument]] = (
        Argument("condition", "only answers under FACTOR=LEVEL", many=True),
        Argument("by", "person: each person alone too", choices=lambda _study: ("person",)),
    )
    exported: ClassVar[Mapping[str, "Sequence[Column]"]] = {"losses": LOSSES, "draws": DRAWS, "contexts": CONTEXTS}

    def obstacle(self, study: "Study") -> str:
        if counting(study.main_stages()).exists():
            return ""
        return f"no comparison of {study.slug} is answered yet: open a stage"

    def make(self, study: "Study", given: Given) -> Findings:
        by = given.one("by")
        if by not in ("", "person"):
            raise HunchError(f"by: {by!r} is not person; leave it out or write person")
        options: ComparisonOptions = instruments.of_study(study).options
        answers = study_answers(study, levels=read_condition(study, given["condition"]))
        table = StudyTable(study, options, answers)
        if not len(table.answered):
            raise StateRefused(self.obstacle(study) or f"nothing of {study.slug} is answered under this condition")
        persons = table.persons() if by else None
        material = Material(
            comparisons=table.comparisons,
            answers=table.answers(),
            models=table.models,
            contexts=table.names,
            texts=table.texts,
            ratios=options.ratios,
            persons=persons,
        )
        figures = work_out(material, rng=generator(study.config.seed, "token comparison report"))
        if figures is None:
            raise StateRefused(f"no context of {study.slug} has an answer")
        c = table.comparisons
        floor, sittings = floor_of(study, options)
        return findings(
            material,
            figures,
            title="Comparisons of next tokens",
            lines=[
                f"{len(set(table.people)):,} people, {len(table.people):,} answers, {c.contexts} contexts in "
                f"{len(table.texts)} texts; {round(float(c.same.sum())):,} of {round(float(c.draws.sum())):,} draws "
                "are the true token itself and were not asked",
                f"{floor:,} of {sittings:,} completed sittings ended at 0 points or below, which pay no bonus",
            ],
            notes=[
                *table.notes,
                *(
                    ["a bonus that cannot fall below 0 rewards risk near 0: raise the option endowment"]
                    if floor
                    else []
                ),
            ],
            data={
                "answers": len(table.people),
                "respondents": len(set(table.people)),
                "texts": len(table.texts),
                "generator": options.generator,
                "generator_sha256": table.generator_sha256,
                "tokenizer_sha256": table.tokenizer_sha256,
                "floor_reached": floor,
                "sittings": sittings,
            },
        )


def floor_of(study: "Study", options: ComparisonOptions) -> tuple[int, int]:
    """In how many completed sittings endowment and rewards came to 0 or less, and how many there are."""
    rows = (
        StatedChance.objects.filter(
            response__assignment__sitting__stage__study=study,
            response__assignment__sitting__state=Sitting.State.COMPLETE,
        )
        .order_by()
        .values("response__assignment__sitting")
        .annotate(sum=Sum("reward"), n=Count("pk"))
        .values_list("sum", flat=True)
    )
    sums = [float(one) for one in rows]
    return sum(one + options.endowment <= 0 for one in sums), len(sums)


class StudyTable:
    """All contexts of a study that could have been asked, with its answers, as arrays.

    Contexts whose draws are all the true token enter with the estimate 1 although nobody was asked. A context is
    weighted by 1 / the chance that the study asks anything about it, a comparison within it is as likely as another.
    """

    def __init__(self, study: "Study", options: ComparisonOptions, answers: "Sequence[Assignment]") -> None:
        questions = eligible_questions(study)
        there = contexts_of(options, _with_all(study, questions))
        self.notes: list[str] = []
        self.people: list[int] = []
        self._names: dict[int, str] = {}
        of_answer: list[tuple[int, int, int]] = []
        given: list[tuple[tuple[int, int], int, int]] = []
        for answer in answers:
            stated = stated_of(answer)
            if stated is None:
                continue
            pair = answer.slot.item.token_pair
            given.append(((pair.context_id, pair.other_id), answer.sitting.respondent_id, stated.percent_true))
            self._names[answer.sitting.respondent_id] = answer.sitting.respondent.pseudonym
        question_of = {
            context.pk: question for question in _with_all(study, questions) for context in there.get(question.pk, ())
        }
        contexts = {context.pk: context for own in there.values() for context in own}
        universe = sum(len(context.drawn) for context in contexts.values())
        drawn = drawn_of(study)
        asked = {key[0] for key, _person, _percent in given}
        chosen = [one for one in contexts.values() if one.pk in asked or not one.drawn]
        self.chosen = chosen
        self.shown = [question_of[one.pk].plain[: one.end] for one in chosen]
        place = {one.pk: number for number, one in enumerate(chosen)}
        items = [(place[one.pk], other) for one in chosen for other in one.others]
        number_of = {(chosen[at].pk, other.id): number for number, (at, other) in enumerate(items)}
        for key, person, percent in given:
            of_answer.append((number_of[key], person, percent))
            self.people.append(person)
        texts = list(dict.fromkeys(question_of[one.pk].external_id for one in chosen))
        text_number = {name: number for number, name in enumerate(texts)}
        own = np.array([len(one.drawn) for one in chosen], dtype=np.int64)
        weight = np.ones(len(chosen))
        if universe and drawn:
            chance = np.where(own > 0, chance_of_any(universe, drawn, own), 1.0)
            weight = 1 / np.maximum(chance, 1e-12)
        item_chance = chance_of_one(universe, drawn) if universe and drawn else 1.0
        self.texts = texts
        self.names = [f"{question_of[one.pk].external_id}@{one.position}" for one in chosen]
        self.comparisons = Comparisons(
            text=np.array([text_number[question_of[one.pk].external_id] for one in chosen], dtype=np.int64),
            log_g_true=np.array([one.log_g_true for one in chosen], dtype=np.float64),
            draws=np.array([one.draws for one in chosen], dtype=np.float64),
            same=np.array([one.same for one in chosen], dtype=np.float64),
            weight=weight,
            context=np.array([at for at, _other in items], dtype=np.int64),
            multiplicity=np.array([other.times for _at, other in items], dtype=np.float64),
            log_g_other=np.array([other.log_g for _at, other in items], dtype=np.float64),
            item_weight=np.full(len(items), 1 / max(item_chance, 1e-12)),
        )
        self.answered = np.array(of_answer, dtype=np.int64).reshape(-1, 3)
        self.models = self._models(study, chosen, items)
        self.generator_sha256 = chosen[0].generator_sha256 if chosen else ""
        self.tokenizer_sha256 = chosen[0].tokenizer.sha256 if chosen else ""
        left = len(items) - len(np.unique(self.answered[:, 0]))
        if left:
            self.notes.append(
                f"{left:,} of {len(items):,} comparisons have no answer and are weighted for within their contexts"
            )
        if others := len(contexts) - len(chosen):
            self.notes.append(f"{others} contexts have no answer at all and are left out")

    def answers(self, person: int | None = None) -> Answers:
        """All answers, or those of one person."""
        rows = self.answered if person is None else self.answered[self.answered[:, 1] == person]
        return Answers(rows[:, 0], rows[:, 1], log_odds_of_percent(rows[:, 2].astype(np.float64)))

    def persons(self) -> dict[str, tuple[Comparisons, Answers, Sequence[CheckModel]]]:
        """The same contexts with each person's answers, by pseudonym."""
        return {
            self._names[person]: (self.comparisons, self.answers(person), self.models)
            for person in sorted(set(self.people), key=lambda one: self._names[one])
        }

    def _models(
        self, study: "Study", chosen: Sequence[PreparedContext], items: Sequence[tuple[int, object]]
    ) -> list[CheckModel]:
        found = []
        for model in study.config.models:
            read = readings_of(model, chosen)
            if len(read) < len(chosen):
                self.notes.append(
                    f"{model.name}: left out of the checks, since it has not read all contexts; run hunch "
                    f"token_comparison {study.slug} --prepare"
                )
                continue
            true = np.array([read[one.pk][0] for one in chosen], dtype=np.float64)
            others = np.array(
                [read[chosen[at].pk][1].get(getattr(other, "id", -1), np.nan) for at, other in items], dtype=np.float64
            )
            lost = int((~np.isfinite(true)).sum())
            if lost:
                self.notes.append(f"{model.name}: gives {lost} true tokens no probability; its check leaves them out")
            found.append(CheckModel(model.name, true, others))
        return found


def _with_all(study: "Study", questions: Sequence[Question]) -> list[Question]:
    """The study's questions, and those flagged since that have items."""
    known = {question.pk for question in questions}
    keys = study.items.order_by().values_list("token_pair__question", flat=True).distinct()
    further = [key for key in keys if key is not None and key not in known]
    return [*questions, *Question.objects.filter(pk__in=further).order_by("position")]
