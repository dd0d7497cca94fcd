"""The belief update as the registry sees it."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bandit.candidates import Pairs, rank_of, uniform_pool, universe_size
from bandit.roles import NO_EVIDENCE, REPEAT, UNRELATED_EVIDENCE
from predictors import evaluation
from predictors.pairs import Pair as PredictorPair
from survey.contracts.instruments import BeliefRows, Candidates, Estimands, ExtraFile, Instrument, Screen
from survey.models import Assignment, Item, Question, Response, Sitting, Study
from survey.services.banks.answer_checking import check_answer
from survey.services.banks.eligibility import filtered_questions, word_counts

from . import controls, estimands, export, labels, people, practice, real_evidence, screens, settings
from .labels import beliefs_of
from .models import Belief, Explanation, Pair, TargetAnswer
from .options import BY_CONDITION, OLDER, BeliefUpdateOptions

# A row without evidence, a control, has -1 for evidence and outcome.
ROW = np.dtype([("evidence", "<i4"), ("target", "<i4"), ("outcome", "i1")])
KEY = re.compile(r"^(\d+):([01])>(\d+)$")


class BeliefUpdate(Instrument):
    """`real`: what a language model really answered, where only that is evidence."""

    name = "belief_update"
    title = "Belief update"
    options_model = BeliefUpdateOptions
    needs_answer_key = True
    fewest_questions = 2
    predicts = True
    control_kinds = (NO_EVIDENCE, UNRELATED_EVIDENCE, REPEAT)
    pairs_questions = True
    condition_options = BY_CONDITION
    older_options = OLDER
    offers_practice = True
    columns = export.COLUMNS

    def __init__(self, real: real_evidence.RealOutcomes | None = None) -> None:
        self.real = real

    def for_study(self, study: Study) -> "BeliefUpdate":
        name = self.evidence_model(study)
        if not name:
            return self
        return BeliefUpdate(real_evidence.RealOutcomes(language_model=name, bank_id=study.bank_id))

    def evidence_model(self, study: Study) -> str:
        options = self.options(study)
        return options.language_model if options.evidence == "real" else ""

    def problems(self, study: Study) -> Iterator[tuple[tuple[str | int, ...], str]]:
        for index, condition in enumerate(study.config.conditions):
            strangers = [level for level in condition.levels if level not in settings.ANSWERERS]
            if condition.factor == settings.ANSWERER and strangers:
                yield (
                    ("conditions", index, "levels"),
                    f"the factor {settings.ANSWERER} changes the words of the items; its levels are "
                    f"{', '.join(settings.ANSWERERS)}, not "
                    f"{', '.join(strangers)}",
                )
        yield from real_evidence.problems(study, self.options(study), filtered_questions(study))

    def remarks(self, study: Study) -> list[str]:
        if not self.evidence_model(study):
            return []
        return real_evidence.remarks(study, self.options(study), filtered_questions(study))

    def usable(self, questions: list[Question]) -> list[Question]:
        return questions if self.real is None else self.real.usable(questions)

    def drawn_by(self) -> Any:
        return None if self.real is None else self.real.facts()

    def universe_size(self, n_questions: int) -> int:
        return universe_size(n_questions) if self.real is None else real_evidence.universe_size(n_questions)

    def draw_candidates(
        self, *, questions: Sequence[Question], size: int, rng: np.random.Generator, leave_out: Collection[str] = ()
    ) -> Candidates:
        exclude = self.ranks_of(leave_out, questions)
        if self.real is None:
            pool = uniform_pool(n_questions=len(questions), size=size, rng=rng, exclude=exclude)
        else:
            pool = self.real.pool(questions=questions, size=size, rng=rng, exclude=exclude)
        return Candidates(
            rows=self.rows_of_pairs(pool.pairs), universe_size=pool.universe_size, probability=pool.probability
        )

    def draw_controls(
        self, *, kind: str, count: int, questions: Sequence[Question], rng: np.random.Generator
    ) -> np.ndarray:
        rows = np.full(count, -1, dtype=ROW)
        if kind == NO_EVIDENCE:
            rows["target"] = controls.targets(count=count, n_questions=len(questions), rng=rng)
            return rows
        if kind != UNRELATED_EVIDENCE:
            return super().draw_controls(kind=kind, count=count, questions=questions, rng=rng)
        if self.real is not None:
            return self.rows_of_pairs(self.real.unrelated(questions=questions, count=count, rng=rng))
        places = [(question.task.domain, question.task.name) for question in questions]
        return self.rows_of_pairs(controls.unrelated_pairs(count=count, places=places, rng=rng))

    def rows_of_pairs(self, pairs: Pairs) -> np.ndarray:
        rows = np.empty(len(pairs), dtype=ROW)
        rows["evidence"], rows["target"], rows["outcome"] = pairs.evidence, pairs.target, pairs.outcome
        return rows

    def pairs_of_rows(self, rows: np.ndarray) -> Pairs:
        return Pairs(evidence=rows["evidence"], target=rows["target"], outcome=rows["outcome"])

    def outcome_of_evidence(self, questions: Sequence[Question]) -> np.ndarray | None:
        return None if self.real is None else self.real.outcome_of(questions)

    def ranks_of(self, keys: Collection[str], questions: Sequence[Question]) -> np.ndarray:
        index = {question.position: place for place, question in enumerate(questions)}
        found = []
        for match in filter(None, map(KEY.match, keys)):
            evidence, outcome, target = map(int, match.groups())
            if evidence in index and target in index:
                found.append((index[evidence], index[target], outcome))
        columns = np.array(found, dtype=np.int64).reshape(-1, 3).T
        pairs = Pairs(evidence=columns[0], target=columns[1], outcome=columns[2])
        ranks = np.unique(rank_of(pairs, len(questions)))
        happened = self.outcome_of_evidence(questions)
        return ranks if happened is None else ranks[happened[ranks // 2 // (len(questions) - 1)] == ranks % 2]

    def item_key(self, row: np.void, questions: Sequence[Question]) -> str:
        target = questions[row["target"]].position
        if row["evidence"] < 0:
            return f">{target}"
        return f"{questions[row['evidence']].position}:{int(row['outcome'])}>{target}"

    def conflict_keys(self, row: np.void) -> tuple[int, ...]:
        return tuple(int(row[name]) for name in ("evidence", "target") if row[name] >= 0)

    def conflict_keys_of(self, items: Sequence[Item]) -> list[tuple[int, ...]]:
        pairs = Pair.objects.in_bulk([item.pk for item in items])
        return [
            tuple(key for key in (pairs[item.pk].evidence_id, pairs[item.pk].target_id) if key is not None)
            for item in items
        ]

    def questions_of(self, items: Sequence[Item]) -> list[tuple[Question, ...]]:
        pairs = Pair.objects.select_related("target", "evidence").in_bulk([item.pk for item in items])
        both = [(pairs[item.pk].target, pairs[item.pk].evidence) for item in items]
        return [tuple(question for question in pair if question is not None) for pair in both]

    def create_typed_items(self, *, items: Sequence[Item], rows: np.ndarray, questions: Sequence[Question]) -> None:
        Pair.objects.bulk_create(
            [
                Pair(
                    item=item,
                    evidence=questions[row["evidence"]] if row["evidence"] >= 0 else None,
                    target=questions[row["target"]],
                    outcome=bool(row["outcome"]) if row["evidence"] >= 0 else None,
                    answer_id=self.real.known[questions[row["evidence"]].pk][0]
                    if self.real is not None and row["evidence"] >= 0
                    else None,
                )
                for item, row in zip(items, rows, strict=True)
            ]
        )

    def predictor_inputs(self, *, rows: np.ndarray, questions: Sequence[Question]) -> Sequence[PredictorPair]:
        plain = [question.plain for question in questions]
        tasks = [question.task.name for question in questions]
        return [
            PredictorPair(plain[e], plain[t], tasks[e], tasks[t], int(outcome))
            for e, t, outcome in zip(
                rows["evidence"].tolist(), rows["target"].tolist(), rows["outcome"].tolist(), strict=True
            )
        ]

    def next_screen(self, assignment: Assignment) -> Screen | None:
        return screens.next_screen(assignment, self.setting(assignment, assignment.slot.stage.study))

    def setting(self, assignment: Assignment, study: Study) -> screens.Setting:
        """In which form this person sees this item, by the study file that their sitting began with."""
        config = study.as_of(assignment.sitting.study_sha256)
        levels = assignment.levels() if config.conditions else {}
        return settings.of_assignment(assignment, self.options_under(config, levels), levels)

    def save(self, *, response: Response, cleaned: Mapping[str, Any]) -> None:
        if response.screen == screens.EXPLANATION:
            Explanation.objects.create(response=response, text=cleaned["explanation"])
        elif response.screen == screens.OWN_ANSWER:
            target = Pair.objects.select_related("target").get(item_id=response.assignment.slot.item_id).target
            TargetAnswer.objects.create(
                response=response,
                text=cleaned["answer"],
                correct=check_answer(cleaned["answer"], target.answer, question=target.text).correct,
                confidence=cleaned.get("confidence"),
            )
        else:
            study = response.assignment.slot.stage.study
            facts = ("value", "direction", "entered_by", "first_value", "value_changes")
            Belief.objects.create(
                response=response,
                kind=response.screen,
                variant=self.setting(response.assignment, study).variant(response.screen),
                **{fact: cleaned[fact] for fact in facts},
            )

    def examples(self, assignments: Sequence[Assignment], study: Study) -> tuple[Sequence[PredictorPair], np.ndarray]:
        learnt = [(pair, changed) for _index, pair, changed in self._learnable(assignments, study)]
        return [pair for pair, _changed in learnt], np.asarray([changed for _pair, changed in learnt], dtype=np.float64)

    def learnable(self, assignments: Sequence[Assignment], study: Study) -> np.ndarray:
        fit = np.zeros(len(assignments), dtype=bool)
        fit[[index for index, _pair, _changed in self._learnable(assignments, study)]] = True
        return fit

    def evaluate(
        self,
        assignments: Sequence[Assignment],
        scores: np.ndarray,
        study: Study,
        *,
        weights: np.ndarray | None,
        clusters: np.ndarray,
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """Negative log likelihood and AUC, overall and by the outcome of the evidence, with intervals."""
        pairs, labels = self.examples(assignments, study)
        parts = evaluation.parts_by_outcome([pair.outcome for pair in pairs])
        return dict(
            evaluation.evaluate_with_intervals(labels, scores, parts, sample_weight=weights, cluster=clusters, rng=rng)
        )

    def compare(
        self,
        assignments: Sequence[Assignment],
        scores: np.ndarray,
        others: np.ndarray,
        study: Study,
        *,
        weights: np.ndarray | None,
        clusters: np.ndarray,
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        pairs, labels = self.examples(assignments, study)
        parts = evaluation.parts_by_outcome([pair.outcome for pair in pairs])
        found = evaluation.paired_difference(
            labels, scores, others, parts, sample_weight=weights, cluster=clusters, rng=rng
        )
        return {metric: dict(by_part) for metric, by_part in found.items()}

    def _learnable(self, assignments: Sequence[Assignment], study: Study) -> Iterator[tuple[int, PredictorPair, int]]:
        """Place, pair and label of every complete assignment that showed evidence; a re-asking control has none."""
        threshold = self.options(study).threshold
        for index, assignment in enumerate(assignments):
            pair = assignment.slot.item.pair
            changed = beliefs_of(assignment).changed(threshold)
            if pair.evidence is None or changed is None:
                continue
            texts = (pair.evidence.plain, pair.target.plain)
            tasks = (pair.evidence.task.name, pair.target.task.name)
            yield index, PredictorPair(*texts, *tasks, int(bool(pair.outcome))), int(changed)

    def answer_values(self, assignment: Assignment) -> list[Any]:
        beliefs = beliefs_of(assignment)
        return [beliefs.prior, beliefs.posterior, *labels.further_values(assignment)]

    def export_values(self, assignment: Assignment, study: Study) -> list[Any]:
        return export.values(assignment, self.options(study).threshold, self.setting(assignment, study))

    def word_counts(self, items: Collection[int]) -> dict[int, int]:
        pairs = list(Pair.objects.filter(pk__in=items).values_list("pk", "target", "evidence"))
        words = word_counts({key for _item, *asked in pairs for key in asked if key is not None})
        return {item: words[target] + words.get(evidence or 0, 0) for item, target, evidence in pairs}

    def stated_values(self, sittings: Collection[int]) -> Iterable[tuple[int, str, int]]:
        stated = Belief.objects.filter(response__assignment__sitting__in=sittings).order_by()
        return stated.values_list("response__assignment__sitting", "kind", "value").iterator()

    def prefetch(self) -> Sequence[str]:
        return (
            "responses__belief",
            "responses__explanation",
            "responses__target_answer",
            "slot__item__pair__evidence__task",
            "slot__item__pair__target__task",
            "slot__item__pair__answer__language_model",
        )

    def label_relations(self) -> Sequence[str]:
        return ("responses__belief", "slot__item__pair__evidence__task", "slot__item__pair__target__task")

    def extra_files(self, assignments: Iterable[Assignment], study: Study) -> Iterable[ExtraFile]:
        return (export.paper_file(assignments, self.options(study).threshold),)

    def outcomes(self, assignments: Sequence[Assignment], study: Study) -> dict[str, np.ndarray]:
        """`changed`: 1 where the belief changed by more than the threshold."""
        threshold = self.options(study).threshold
        changed = [bool(beliefs_of(assignment).changed(threshold)) for assignment in assignments]
        return {"changed": np.asarray(changed, dtype=np.float64)}

    def estimand(self, *, universe_size: int, n_questions: int) -> str:
        if self.real is not None:
            return real_evidence.in_words(
                language_model=self.real.language_model, universe_size=universe_size, n_questions=n_questions
            )
        return estimands.in_words(universe_size=universe_size, n_questions=n_questions)

    def estimands(
        self, assignments: Sequence[Assignment], study: Study, *, thresholds: Sequence[int] = ()
    ) -> Estimands:
        return estimands.of_answers(assignments, thresholds or self.default_thresholds(study))

    def default_thresholds(self, study: Study) -> tuple[int, ...]:
        own = self.options(study).threshold
        return (own, *(threshold for threshold in estimands.THRESHOLDS if threshold != own))

    def beliefs(self, assignments: Sequence[Assignment]) -> BeliefRows:
        return estimands.belief_rows(assignments)

    def divisions(self, items: Sequence[Item]) -> dict[str, np.ndarray]:
        return estimands.divisions(items)

    def item_features(self, items: Sequence[Item]) -> np.ndarray:
        return estimands.item_features(items)

    def candidate_features(self, *, rows: np.ndarray, questions: Sequence[Question]) -> np.ndarray:
        return estimands.candidate_features(rows, questions)

    def practice_problems(self, example: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        return practice.problems(example)

    def practice_screen(
        self, *, sitting: Sitting, example: Mapping[str, str], given: Sequence[Mapping[str, Any]]
    ) -> Screen | None:
        options = self.options_under(sitting.config, sitting.levels())
        return practice.next_screen(settings.of_practice(sitting, options), example=example, given=given)

    def practice_summary(self, *, given: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        return practice.summary(given)

    def simulated_person(self, *, study: Study, seed: int, null: bool = False) -> people.BeliefPerson:
        return people.BeliefPerson(study=study, seed=seed, null=null)
