"""The belief update as the core sees it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from django.db.models import QuerySet

from bandit.candidates import uniform_pool, universe_size
from predictors.hardness import MODELS
from predictors.training import columns_of
from survey.contracts.instruments import (
    CONTRACT,
    Booklets,
    Candidates,
    Demonstration,
    Instrument,
    LabelReading,
    Needs,
    OutcomeRow,
    Priority,
    StoredVerdicts,
)
from survey.contracts.item_rows import ItemRows
from survey.contracts.preparation import Preparation
from survey.contracts.reports import ReportEntry
from survey.contracts.screens import Points, Screen
from survey.figures import words
from survey.models import Assignment, Item, ModelAnswer, Question, Response
from survey.services.banks.answer_checking import RULES_VERSION, check_answer
from survey.services.banks.eligibility import filtered_questions
from survey.services.base.rights import STARTER_BANK
from survey.study_file import Note, StudyConfig

from . import (
    accuracy_pay,
    aids,
    export,
    gap_priority,
    label_queries,
    labels,
    people,
    real_evidence,
    screens,
    steps_in_file,
    variants,
)
from .analysis import composing
from .capabilities import BeliefControls, BeliefEstimates, BeliefPractice, BeliefSignals
from .expecting import BeliefExpecting
from .export import BeliefExport
from .labels import beliefs_of
from .learning import BeliefLearning
from .models import Belief, Explanation, Pair, TargetAnswer
from .options import BeliefUpdateOptions
from .pairing import BeliefPairs
from .priorities import StepPriority
from .screens import PRIOR
from .sequences import BeliefSequences

QUESTIONS = ("target", "evidence", "evidence_2", "evidence_3")
REPORTS = (
    ReportEntry(
        name="live",
        title="Beliefs so far",
        summary="Beliefs and their changes, shares by stage and stratum, AUC, lift, reliability, the rank curve.",
        opening="How beliefs and their changes look while answers come in. They show how the study runs; most are of "
        "the answers as they came, so take results from the estimates, which weigh by the design.",
        path="survey.instruments.belief_update.reports.live.report.LiveReport",
        while_it_runs=True,
    ),
    ReportEntry(
        name="alignment",
        title="Alignment of language models",
        summary="Whether language models perform as people expect: scores, differences, deployment, failures.",
        opening="Whether language models are right where people believe in them. Higher weighted accuracy and lower "
        "cross-entropy are better; human-deployed performance is how often people would use a model and it "
        "would be right.",
        path="survey.instruments.belief_update.reports.alignment.report.AlignmentReport",
    ),
    ReportEntry(
        name="arms",
        title="Alignment by condition",
        summary="What a condition, such as an aid next to the target, changes in alignment and deployment.",
        opening="What each level of a condition does to how well beliefs fit the language models. Each row of "
        "differences compares two levels: where its interval holds 0, chance may make it.",
        path="survey.instruments.belief_update.reports.arms.report.ArmsReport",
    ),
    ReportEntry(
        name="domination",
        title="Models that are better everywhere",
        summary="Which language models are right wherever others are, and whether people get less from them.",
        opening="Whether one language model is right wherever another one is, and whether people then get more from "
        'the better one. The verdict "reversed" marks pairs where people get less from it.',
        path="survey.instruments.belief_update.reports.alignment.domination_report.DominationReport",
    ),
    ReportEntry(
        name="human_calibration",
        title="Do people foresee others?",
        summary="Whether people foresee what people and language models get right, by regions of belief.",
        opening="How often answers are right where people believe more or less that they will be, for answers of "
        "other people and of language models. A line that rises from left to right means that people foresee "
        "who is right.",
        path="survey.instruments.belief_update.reports.calibration.report.CalibrationReport",
    ),
    ReportEntry(
        name="reasons",
        title="Reasons",
        summary="What people wrote about why their belief changed or stayed; a random sample of it to be coded.",
        opening="What people wrote when asked why their belief changed or stayed. The first table counts all reasons "
        "by what was shown and where the belief went; the texts below are those that you choose.",
        path="survey.instruments.belief_update.reports.reasons.report.ReasonsReport",
    ),
    ReportEntry(
        name="budget",
        title="Budget",
        summary="What the study as it is planned would find, how precisely, and what it costs; by simulation.",
        opening="What the study as it is planned would find, how precisely and at what cost, from simulated people. "
        "The first line says what is assumed: compare designs with each other, and take single numbers as a "
        "guide.",
        path="survey.instruments.belief_update.reports.budget.report.BudgetReport",
    ),
    ReportEntry(
        name="release",
        title="Data in the paper's columns",
        summary="The study in the columns of the paper's released data: training answers, majority labels, counts.",
        opening="The study's answers as files in the columns of the paper's released data. The table counts the rows "
        "that each stage gives to each file.",
        path="survey.instruments.belief_update.reports.release.report.ReleaseReport",
    ),
    ReportEntry(
        name="paper",
        title="The paper's tables and figures",
        summary="Tables 1 to 5 and figures 2 to 7 of the paper, of this study, with the paper's numbers next to them.",
        opening="The tables and figures of the paper, of this study's answers. Where the paper has a number it stands "
        "next to the study's; what cannot be made says what is missing.",
        path="survey.instruments.belief_update.reports.paper.report.PaperReport",
    ),
)
COMPOSITION = ReportEntry(
    name="composition",
    title="How evidence adds up",
    summary="Beliefs after several evidence questions: additivity in log-odds, order effects, weights of the steps.",
    opening="How several pieces of evidence add up to one belief. A slope of 1 means that their single changes add "
    "up, below 1 that people move by less than the sum; the weights say which step counts more.",
    path="survey.instruments.belief_update.reports.composition.report.CompositionReport",
)
COMPOSITION_LIVE = ReportEntry(
    name="composition_live",
    title="Beliefs in steps so far",
    summary="Answers by stage, items that have enough of them, and how beliefs move at each step.",
    opening="How beliefs move at each step while answers come in. These are the answers as they came; the report on "
    "how evidence adds up weighs them and takes out their noise.",
    path="survey.instruments.belief_update.reports.composition.live_report.StepsLiveReport",
    while_it_runs=True,
)
OF_STEPS = ("reasons",)  # The other reports are about one evidence question.


class BeliefUpdate(Instrument):
    """A prior, an answer of a language model to another question, and a posterior."""

    contract = CONTRACT
    name = "belief_update"
    title = "Belief update"
    options_model = BeliefUpdateOptions
    needs = Needs(answer_key=True, questions=2)
    rows = ItemRows(
        item="pair",
        questions=QUESTIONS,
        answers=("belief", "explanation", "target_answer"),
        labels=("belief",),
        shown=("answer", "answer_2", "answer_3", "aid"),
        hidden_of_questions=("reason", "extra", "flag_reason"),
        exported=(*(f"{name}__language_model" for name in ("answer", "answer_2", "answer_3")), "aid"),
        conflicts=(*QUESTIONS[1:], "target"),
        seen_first={PRIOR: 1},  # The evidence comes after the prior.
        outcomes_read_items=False,
    )
    simulated_kinds = composing.NAMES
    signals = BeliefSignals()
    budget_planner = "survey.instruments.belief_update.reports.budget.planner.BeliefBudget"
    demonstration = Demonstration(
        "demo.toml",
        "survey.services.banks.importing.load_starter_bank",
        bank=STARTER_BANK,
        reversal=Demonstration(
            "demo.toml",
            "survey.instruments.belief_update.reports.alignment.reversal.load_bank",
            "survey.instruments.belief_update.reports.alignment.reversal.verdict",
            bank=STARTER_BANK,
            predictor="same_task",
            pool=20_000,  # Few pairs are of one task, and those decide where the models are used.
        ),
    )

    @cached_property
    def pairing(self) -> BeliefPairs | None:
        return BeliefPairs(self.real) if self.sequences is None else None

    @cached_property
    def sequences(self) -> BeliefSequences | None:
        """The candidates where items have several evidence questions; None where they have one."""
        many = 1 if self._study is None else self.options.evidence_questions
        return BeliefSequences(many, self.real) if many > 1 else None

    @property
    def _pairs(self) -> BeliefPairs:
        return BeliefPairs(self.real)

    @cached_property
    def learning(self) -> BeliefLearning:
        return BeliefLearning(None if self._study is None else self.options.threshold)

    @cached_property
    def priority(self) -> Priority | None:
        if self._study is None or self.options.priority == "none":
            return None
        if self.sequences is None:
            return gap_priority.GapPriority(self.study, only=self.evidence_model)
        return StepPriority(self.options, self.sequences)

    @cached_property
    def practice(self) -> BeliefPractice:
        return BeliefPractice(
            lambda sitting: self.options_under(sitting.config, sitting.levels()),
            steps=1 if self.sequences is None else self.sequences.steps,
        )

    @cached_property
    def controls(self) -> BeliefControls:
        return BeliefControls(self._pairs, self.sequences)

    @cached_property
    def estimates(self) -> BeliefEstimates:
        return BeliefEstimates(None if self._study is None else self.options, self._pairs)

    @cached_property
    def expectations(self) -> BeliefExpecting:
        if self._study is None:
            return BeliefExpecting(None, threshold=0, only="")
        options = self.options
        return BeliefExpecting(
            self._study, threshold=options.threshold, only=self.evidence_model, steps=options.evidence_questions
        )

    @property
    def preparation(self) -> Preparation | None:
        return None if self._study is None else aids.preparation(self.study, self.options)

    @property
    def booklets(self) -> "BeliefBooklets":
        return BeliefBooklets(self)

    @property
    def label_reading(self) -> "BeliefLabelReading":
        return BeliefLabelReading(self)

    @property
    def verdicts(self) -> "EvidenceVerdicts":
        return EvidenceVerdicts(self)

    @property
    def export(self) -> BeliefExport:
        return BeliefExport(self)

    @cached_property
    def real(self) -> real_evidence.RealOutcomes | None:
        """What a language model really answered, if only real answers are evidence."""
        if self._study is None or not self.evidence_model:
            return None
        return real_evidence.RealOutcomes(self.study, language_model=self.evidence_model)

    @property
    def evidence_model(self) -> str:
        """The language model whose real outcomes the items show; empty if they show no real ones."""
        return self.options.language_model if self.options.evidence == "real" else ""

    def reports(self) -> Sequence[ReportEntry]:
        if self.sequences is not None:
            return [*(report for report in REPORTS if report.name in OF_STEPS), COMPOSITION, COMPOSITION_LIVE]
        return [*REPORTS, COMPOSITION, COMPOSITION_LIVE] if self._study is None else REPORTS

    def problems(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        for index, condition in enumerate(self.study.config.conditions):
            strangers = [level for level in condition.levels if level not in variants.ANSWERERS]
            if condition.factor == variants.ANSWERER and strangers:
                yield (
                    ("conditions", index, "levels"),
                    f"the factor {variants.ANSWERER} changes the words of the items; its levels are "
                    f"{', '.join(variants.ANSWERERS)}, not "
                    f"{', '.join(strangers)}",
                )
        if self.sequences is not None:
            yield from steps_in_file.problems(self.study, self.options)
        yield from self._gap_problems()
        if self._may_pay(self.study.config) and not self.study.config.panel.bonus_per_point:
            yield (
                ("panel", "bonus_per_point"),
                "pay_for_accuracy pays a point of it: say how many cents a point is worth",
            )
        filtered = filtered_questions(self.study)
        problems = list(real_evidence.problems(self.study, self.options, filtered))
        yield from problems or aids.problems(self.study, self.options, self.usable(filtered))

    def _gap_problems(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        if self.options.priority != "gap":
            return
        place = ("instrument", "options", "priority")
        if all(stage.design.kind in ("uniform", "test_set") for stage in self.study.config.stages):
            yield place, "no stage draws by it: give a later stage a design such as epsilon_greedy, or remove it"
        graded = ModelAnswer.objects.graded().filter(question__bank=self.study.bank_id)
        if self.evidence_model:
            graded = graded.filter(language_model__name=self.evidence_model)
        if not graded.exists():
            yield place, gap_priority.missing(self.study, self.evidence_model)

    def remarks(self) -> list[Note]:
        notes = [] if self.sequences is None else steps_in_file.remarks(self.study, self.options)
        config = self.study.config
        if self._may_pay(config):
            at_most = words.money(config.panel.bonus_per_point, config.panel.currency)
            notes = [*notes, Note("", f"pay_for_accuracy: of each sitting one belief is drawn, and may win {at_most}")]
        if not self.evidence_model:
            return notes
        filtered = filtered_questions(self.study)
        notes += real_evidence.remarks(self.study, self.options, filtered)
        return [*notes, *aids.remarks(self.study, self.options, self.usable(filtered))]

    def _may_pay(self, config: StudyConfig) -> bool:
        """Whether anybody is paid for being right, under whichever condition."""
        changes = [changed for condition in config.conditions for changed in condition.options.values()]
        return any(options.get("pay_for_accuracy") for options in (config.instrument.options, *changes))

    def usable(self, questions: list[Question]) -> list[Question]:
        return questions if self.real is None else self.real.usable(questions)

    def universe_fingerprint(self) -> Any:
        return None if self.real is None else self.real.facts()

    def universe_size(self, questions: Sequence[Question]) -> int:
        if self.sequences is not None:
            return self.sequences.universe_size(len(questions))
        every = universe_size(len(questions))
        return every if self.real is None else every // 2  # A model has one outcome for each question.

    def draw_candidates(
        self, *, questions: Sequence[Question], size: int, rng: np.random.Generator, exclude: Collection[str] = ()
    ) -> Candidates:
        if self.sequences is not None:
            return self.sequences.draw(questions=questions, size=size, rng=rng, exclude=exclude)
        pairing = self._pairs
        ranks = pairing.ranks_of(exclude, questions)
        if self.real is None:
            pool = uniform_pool(n_questions=len(questions), size=size, rng=rng, exclude=ranks)
        else:
            pool = self.real.pool(questions=questions, size=size, rng=rng, exclude=ranks)
        return Candidates(
            rows=pairing.rows_of_pairs(pool.pairs), universe_size=pool.universe_size, probability=pool.probability
        )

    def item_key(self, row: np.void, questions: Sequence[Question]) -> str:
        target = questions[row["target"]].position
        if row["evidence"] < 0:
            return f">{target}"
        if self.sequences is not None:
            return self.sequences.key(row, questions)
        return f"{questions[row['evidence']].position}:{int(row['outcome'])}>{target}"

    def create_typed_items(self, *, items: Sequence[Item], rows: np.ndarray, questions: Sequence[Question]) -> None:
        pairs = Pair.objects.bulk_create(
            [
                Pair(
                    item=item,
                    evidence=questions[row["evidence"]] if row["evidence"] >= 0 else None,
                    target=questions[row["target"]],
                    outcome=bool(row["outcome"]) if row["evidence"] >= 0 else None,
                    answer_id=self.real.known[questions[row["evidence"]].pk][0]
                    if self.real is not None and row["evidence"] >= 0
                    else None,
                    **self._further(row, questions),
                )
                for item, row in zip(items, rows, strict=True)
            ]
        )
        aids.create_aids(pairs, questions=questions, study=self.study, real=self.real)

    def _further(self, row: np.void, questions: Sequence[Question]) -> dict[str, Any]:
        """What a pair has of the second and the third evidence question."""
        columns: dict[str, Any] = {}
        for step in range(2, 1 if self.sequences is None else self.sequences.steps + 1):
            evidence, outcome = f"evidence_{step}", f"outcome_{step}"
            if row[evidence] >= 0:
                question = questions[row[evidence]]
                columns |= {evidence: question, outcome: bool(row[outcome])}
                if self.real is not None:
                    columns[f"answer_{step}_id"] = self.real.known[question.pk][0]
        return columns

    def next_screen(self, assignment: Assignment) -> Screen | None:
        return screens.next_screen(assignment, self.setting(assignment))

    def setting(self, assignment: Assignment) -> screens.Setting:
        """The form in which this person sees this item, by the study file that their sitting began with."""
        config = self.study.as_of(assignment.sitting.study_sha256)
        levels = assignment.levels() if config.conditions else {}
        # Most studies name nobody, and need no config in the language of the pages.
        name = assignment.sitting.shown_config.texts.answerer if config.texts.answerer is not None else None
        return variants.of_assignment(assignment, self.options_under(config, levels), levels, name)

    def save(self, *, response: Response, cleaned: Mapping[str, Any]) -> None:
        if response.screen == screens.EXPLANATION:
            Explanation.objects.create(response=response, text=cleaned["explanation"])
        elif response.screen == screens.OWN_ANSWER:
            target = response.assignment.slot.item.pair.target
            answer = TargetAnswer(response=response, text=cleaned["answer"], confidence=cleaned.get("confidence"))
            answer.correct = check_answer(answer.text, target.answer, question=target.text).correct
            answer.rules_version = RULES_VERSION
            answer.save(force_insert=True)
        else:
            facts = ("value", "direction", "entered_by", "first_value", "value_changes")
            belief = Belief(response=response, kind=response.screen, **{fact: cleaned[fact] for fact in facts})
            setting = self.setting(response.assignment)
            belief.variant = setting.variant(response.screen)
            if setting.evidence_order and response.assignment.slot.item.pair.evidence_id is not None:
                belief.place = screens.place_before(response.screen, setting)
            belief.save(force_insert=True)

    def score(self, response: Response) -> Points | None:
        """The point of the one belief that is drawn for its sitting, where the sitting's study file pays for it."""
        assignment = response.assignment
        sitting = assignment.sitting
        if not hasattr(response, "belief") or not self._may_pay(self.study.as_of(sitting.study_sha256)):
            return None
        if not self.options_for(assignment).pay_for_accuracy:
            return None
        draw = accuracy_pay.draw_for(
            sitting.public_id.hex, seed=assignment.slot.stage.seed, items=sitting.assignments.count()
        )
        pair = assignment.slot.item.pair
        beliefs = (PRIOR, *screens.screens_after(max(len(pair.steps), 1)))
        if (draw.position, draw.screen_among(beliefs)) != (assignment.position, response.screen):
            return None
        correct = None if self.real is None else self.real.read_one(pair.target)
        return accuracy_pay.points_of(response.belief.value, draw.numbers, correct=correct)

    def answer_values(self, assignment: Assignment) -> list[Any]:
        beliefs = beliefs_of(assignment)
        return [beliefs.prior, beliefs.posterior, *labels.further_values(assignment)]

    def answer_in_words(self, response: Response) -> str:
        return export.in_words(response)

    def simulated_person(self, *, seed: int, null: bool = False, kind: str = "bayes") -> people.BeliefPerson:
        return people.BeliefPerson(study=self.study, seed=seed, null=null, kind=kind)


class BeliefBooklets(Booklets):
    # Every pair of two usable questions is a candidate, with as many outcomes as every other.
    keys_are_exchangeable = True

    def __init__(self, instrument: BeliefUpdate) -> None:
        super().__init__(instrument.rows)
        self.instrument = instrument

    def conflict_keys(self, row: np.void) -> tuple[int, ...]:
        sequences = self.instrument.sequences
        names = ("evidence", "target") if sequences is None else sequences.question_names
        return tuple(int(row[name]) for name in names if row[name] >= 0)


class BeliefLabelReading(LabelReading):
    """With few objects: a large study would spend most of an estimate on making them."""

    def __init__(self, instrument: BeliefUpdate) -> None:
        super().__init__(instrument.rows)
        self.instrument = instrument

    def read(self, items: Sequence[Item], answers: Sequence[Assignment]) -> None:
        label_queries.read_pairs(items)
        label_queries.read_beliefs(answers)

    def first_outcome(self, answers: QuerySet[Assignment]) -> tuple[str, Iterable[OutcomeRow]]:
        return "changed", label_queries.changes(answers, threshold=self.instrument.options.threshold)


class EvidenceVerdicts(StoredVerdicts):
    def __init__(self, instrument: BeliefUpdate) -> None:
        self.instrument = instrument

    def rests_on(self, language_model: str) -> bool:
        instrument = self.instrument
        if language_model == instrument.evidence_model:
            return True
        by_all = instrument.options.priority == "gap" and not instrument.evidence_model
        predictor = instrument.study.config.predictor
        compared = () if predictor is None else predictor.compared
        return by_all or any(MODELS in columns_of(other.name, other.params) for other in compared)
