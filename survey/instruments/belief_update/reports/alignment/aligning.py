"""Language models on trial in a study: do they perform the way this study's people expect?

Joins the pairs that a predictor scored for a stage, the study's own average beliefs, and what language models answered.
A pool is uniform over pairs and outcomes; where a stage draws from all pairs, such pairs are scored next to them. Those
that have a model's real outcome are a uniform sample of the pairs (x', x) that people would meet with this model, and
nothing has to be scored again.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import bandit
from bandit.fragility import Fragility
from survey.exceptions import StateRefused
from survey.models import Assignment, CandidateSet, LanguageModel, ModelAnswer, Question, Study
from survey.services.answers.conditions import read_condition
from survey.services.answers.counting import design_weights, study_answers
from survey.services.banks.eligibility import eligible_questions
from survey.services.base import files
from survey.services.base.seeds import generator
from survey.services.plans.candidates import SCORE, candidate_questions
from survey.services.results.estimates.study_estimates import estimate
from survey.services.results.people_and_models.unreadable_replies import (
    Unreadable,
    notes_on_unreadable,
    unreadable_by_model,
)

from ..rows import BeliefRows, belief_rows, belief_update_of
from .beliefs import MIN_ROWS, Answers, BeliefComparison, BeliefRegression, compare_beliefs, resampled_averages
from .deployment import (
    Deployed,
    Failure,
    ModelRows,
    Reversal,
    Rule,
    carried_by,
    compare_deployment,
    failures_of_generalization,
    known_beliefs,
    why_beliefs_decide_nothing,
)
from .domination import DeploymentGap, Domination, deployment_gaps, dominations, resampled_pairs
from .scores import PAPER_ALPHAS, AlignmentComparison, Averages, ModelDifference, ModelScore, Trial, averages_as_row

MAX_PAIRS = 5000
SAMPLES = 2000
MIN_PAIRS = 30
MAX_IDS_IN_MESSAGE = 5  # Questions, in a note.


@dataclass(frozen=True)
class DeploymentTable:
    """Human-deployed performance under one rule, with the beliefs it is based on; `note` says if it deploys nothing.
    `fragility`: which pairs carry the ranking, by the models' order in `models`."""

    rule: Rule
    beliefs: str
    models: tuple[Deployed, ...]
    reversals: tuple[Reversal, ...]
    note: str
    fragility: Fragility


@dataclass(frozen=True, eq=False)
class StudyAlignment:
    """The whole report. `predictor` made the predictions; `pairs` is how many candidates of the stage were used, and
    `pair_labels` names them. `unreadable`: by model, how many of its replies could not be read."""

    study: str
    predictor: str
    stage: int
    pairs: int
    averages: Averages
    pair_labels: tuple[str, ...]
    scores: tuple[ModelScore, ...]
    differences: tuple[ModelDifference, ...]
    beliefs: BeliefComparison | None
    deployment: tuple[DeploymentTable, ...]
    notes: tuple[str, ...]
    unreadable: Mapping[str, int]
    comparison: AlignmentComparison

    def as_json(self) -> dict[str, Any]:
        row = {name: value for name, value in vars(self).items() if name not in ("comparison", "pair_labels")}
        plain: dict[str, Any] = _plain(row)
        for table in plain["deployment"]:  # A table of its own, whose rows name the pairs.
            del table["fragility"]
        return plain


@dataclass(frozen=True)
class FailureLine:
    """One pair that misled people, with its texts. `low` and `high`: the 95 % interval of the gain over its answers;
    None for a single answer, or where all are equal."""

    llm: str
    evidence: Question
    target: Question
    gain: float
    answers: int
    low: float | None
    high: float | None


@dataclass(frozen=True, eq=False)
class RightEvidence:
    """The study's counted answers after a correct answer to the evidence that one model really gave, where it has
    answered the target too: the change of belief in points, how often the model is wrong on the target (0 or 1, or a
    fraction), the design's weights times how often it is right on the evidence, and whose answers they are; (n,)."""

    llm: str
    change: np.ndarray
    wrong: np.ndarray
    weight: np.ndarray
    respondent: np.ndarray


def obstacle(study: Study) -> str:
    """Why this study has no alignment report yet, and what to do; empty if nothing seems to be missing."""
    try:
        scored_pool(study)
    except StateRefused as exc:
        return exc.message
    return "" if models_of(study) else _no_model(study)


def alignment_of(
    study: Study,
    *,
    alphas: Sequence[float] = PAPER_ALPHAS,
    threshold: float = 0.5,
    samples: int = SAMPLES,
    condition: Sequence[str] = (),
    answered: Sequence[Assignment] | None = None,
) -> StudyAlignment:
    """Alignment of every language model that has answered enough of the study's questions.

    `answered`: the study's counted answers under that condition, if they have been read already.

    `condition`: FACTOR=LEVEL, any number of times, to use only the beliefs under these levels. Predictions are always
    those that the study was planned by.

    Raises:
        StateRefused: no scored pool yet, no answers of people or models, or another instrument; says what to do.
    """
    ready = _ready(study, condition, samples, answered)
    comparison, trials, rng = ready.comparison, ready.trials, ready.rng
    names = [trial.name for trial in trials]
    unreadable = unreadable_of(study, names, ready.questions)
    differences = [
        comparison.difference(first, second, alphas, common=False)
        for place, first in enumerate(names)
        for second in names[place + 1 :]
    ]
    compared, regression, note = _regression(ready.answers, rng)
    return StudyAlignment(
        study=study.slug,
        predictor=str(ready.stored.predictor_run),
        stage=ready.stored.stage.index,
        pairs=len(ready.change),
        averages=comparison.averages,
        pair_labels=tuple(
            f"{ready.questions[evidence].external_id}:{outcome} > {ready.questions[target].external_id}"
            for evidence, outcome, target in zip(
                ready.pairs.evidence.tolist(), ready.pairs.outcome.tolist(), ready.pairs.target.tolist(), strict=True
            )
        ),
        scores=tuple(comparison.score(name, alphas) for name in names),
        differences=tuple(differences),
        beliefs=compared,
        deployment=tuple(_deployment(ready, regression, threshold, samples)),
        notes=(*ready.notes, *notes_on_unreadable(unreadable), *([note] if note else [])),
        unreadable={name: unreadable[name].replies for name in names},
        comparison=comparison,
    )


@dataclass(frozen=True, eq=False)
class _Ready:
    """Uniform pairs of a study with their predictions, the models' rows for them, and what people said."""

    stored: CandidateSet
    questions: Sequence[Question]
    pairs: Any
    change: np.ndarray
    trials: list[Trial]
    notes: list[str]
    answers: "_Answered"
    comparison: AlignmentComparison
    rng: np.random.Generator


def _ready(
    study: Study, condition: Sequence[str], samples: int, answered: Sequence[Assignment] | None = None
) -> _Ready:
    levels = read_condition(study, condition)
    stored = scored_pool(study)
    questions = candidate_questions(stored)
    if questions is None:
        raise StateRefused(f"{study.slug}: questions were flagged since stage {stored.stage.index} was scored")
    instrument = belief_update_of(study)
    rows = pool_rows(stored)
    if len(rows) > MAX_PAIRS:
        chosen = generator(stored.stage.seed, "alignment").choice(len(rows), MAX_PAIRS, replace=False)
        rows = rows[np.sort(chosen)]
    if instrument.pairing is None:
        raise StateRefused(f"{study.slug}: its items have several evidence questions; this is about items with one")
    pairs = instrument.pairing.pairs_of_rows(rows)
    change = rows[SCORE].astype(np.float64)
    trials, notes = _trials(study, questions, pairs)
    if flagged := [question.external_id for question in questions if question.flag]:
        notes.append(
            f"{len(flagged)} questions were flagged since stage {stored.stage.index} was planned with them, and still "
            f"count: {', '.join(flagged[:MAX_IDS_IN_MESSAGE])}"
        )
    answers = _answers(study, levels, answered)
    averages = _averages(study, condition)
    rng = generator(stored.stage.seed, "alignment resamples")
    draws = resampled_averages(_rows(answers), samples=samples, rng=rng)
    # Resampled respondents vary the averages around the study's estimates, which are weighted stage by stage.
    draws = np.clip(draws - draws.mean(axis=0) + averages_as_row(averages), 1e-6, 1 - 1e-6)
    comparison = AlignmentComparison(
        trials,
        change_if_correct=change,
        change_if_incorrect=change,
        averages=averages,
        averages_draws=draws,
        samples=samples,
        rng=rng,
    )
    return _Ready(stored, questions, pairs, change, trials, notes, answers, comparison, rng)


def dominations_of(study: Study) -> list[Domination]:
    """Every two language models on the study's questions that both have answered, the fewest exceptions first."""
    asked = {question.pk for question in eligible_questions(study)}
    answered: dict[str, dict[Hashable, float]] = {}
    for model in models_of(study):
        answered[model.name] = {key: value for key, value in _answered_by(model, study).items() if key in asked}
    return dominations(answered)


def deployment_gaps_of(
    study: Study, wanted: Sequence[Domination], *, threshold: float, samples: int, condition: Sequence[str] = ()
) -> tuple[list[DeploymentGap], list[str]]:
    """Human-deployed performance of the better model less the worse one's, by rule and beliefs, and notes.

    Raises:
        StateRefused: as `alignment_of`.
    """
    ready = _ready(study, condition, samples)
    _compared, regression, note = _regression(ready.answers, ready.rng)
    counts = resampled_pairs(len(ready.change), samples=samples, rng=ready.rng)
    answered = {model.name: _known_questions(model, study, ready.questions) for model in models_of(study)}
    by_name = {trial.name: trial for trial in ready.trials}
    gaps: list[DeploymentGap] = []
    for source, beliefs in _beliefs_of(ready, regression).items():
        both = []
        for pair in wanted:
            if pair.better in by_name and pair.worse in by_name:
                there = answered[pair.better] & answered[pair.worse]
                of_both = there[ready.pairs.evidence] & there[ready.pairs.target]
                both.append(
                    (
                        model_rows(by_name[pair.better], beliefs, of_both),
                        model_rows(by_name[pair.worse], beliefs, of_both),
                    )
                )
        for rule in rules_of(threshold):
            gaps += deployment_gaps(both, rule, source, counts=counts)
    return gaps, [*ready.notes, *([note] if note else [])]


def _known_questions(model: LanguageModel, study: Study, questions: Sequence[Question]) -> np.ndarray:
    """(N,) whether the model has answered each of the questions."""
    answered = _answered_by(model, study)
    return np.array([question.pk in answered for question in questions], dtype=bool)


def model_rows(trial: Trial, beliefs: Mapping[str, np.ndarray], rows: np.ndarray | bool = True) -> ModelRows:
    """A model's rows for deployment, by what people believe of it; `rows` (n,): only these pairs."""
    return ModelRows(trial.name, beliefs[trial.name], trial.correct, trial.answered & rows, trial.weight)


def rules_of(threshold: float) -> tuple[Rule, Rule]:
    """The two rules by which people may deploy a model."""
    return Rule("threshold", threshold), Rule("proportional")


def failures_of(study: Study, *, llm: str = "", task: str = "", condition: Sequence[str] = ()) -> list[FailureLine]:
    """Figure 4: pairs where a model answered the evidence right, people became more confident, and it then failed.

    Raises:
        StateRefused: no answers of people or models.
    """
    belief_update_of(study)
    return _failures(study, _answers(study, read_condition(study, condition)), llm=llm, task=task)


def misleading(
    study: Study, answered: Sequence[Assignment] | None = None
) -> tuple[list[RightEvidence], list[FailureLine]]:
    """Both parts of figure 4: for each model the answers after evidence that it answered right, and all failures.
    `answered`: as for `alignment_of`.

    Raises:
        StateRefused: no answers of people or models.
    """
    belief_update_of(study)
    answers = _answers(study, {}, answered)
    beliefs = answers.beliefs
    right_evidence = []
    for model in models_of(study):
        model_answers = _answered_by(model, study)
        right = np.array([model_answers.get(key, 0.0) for key in beliefs.evidence.tolist()])
        correct = np.array([model_answers.get(key, np.nan) for key in beliefs.target.tolist()])
        chosen = (beliefs.outcome == 1) & (right > 0) & np.isfinite(correct)
        right_evidence.append(
            RightEvidence(
                llm=model.name,
                change=(beliefs.posterior - beliefs.prior)[chosen],
                wrong=1 - correct[chosen],
                weight=answers.weight[chosen] * right[chosen],
                respondent=answers.respondent[chosen],
            )
        )
    if not right_evidence:
        raise StateRefused(_no_model(study))
    return right_evidence, _failures(study, answers)


def _failures(study: Study, answers: "_Answered", *, llm: str = "", task: str = "") -> list[FailureLine]:
    beliefs = answers.beliefs
    shown_right = beliefs.outcome == 1
    keys = np.stack([beliefs.evidence[shown_right], beliefs.target[shown_right]], axis=1)
    pairs, place = np.unique(keys, axis=0, return_inverse=True)
    place = place.reshape(-1)
    change = (beliefs.posterior - beliefs.prior)[shown_right]
    count = np.bincount(place, minlength=len(pairs))
    gain = np.bincount(place, weights=change, minlength=len(pairs)) / count
    squares = np.bincount(place, weights=(change - gain[place]) ** 2, minlength=len(pairs))
    questions = Question.objects.select_related("task").in_bulk({*pairs[:, 0].tolist(), *pairs[:, 1].tolist()})
    lines = []
    for model in models_of(study, llm):
        answered = _answered_by(model, study)
        known = np.asarray([first in answered and second in answered for first, second in pairs.tolist()], dtype=bool)
        outcome = np.asarray([answered.get(first, 0.0) for first, _second in pairs.tolist()], dtype=np.float64)
        correct = np.asarray([answered.get(second, 1.0) for _first, second in pairs.tolist()], dtype=np.float64)
        failures: list[Failure] = failures_of_generalization(
            outcome=outcome, correct=correct, gain=gain, answers=count, known=known
        )
        for failure in failures:
            evidence, target = (questions[key] for key in pairs[failure.row].tolist())
            if not task or task in (evidence.task.name, target.task.name):
                ends = _interval_of_mean(failure.gain, float(squares[failure.row]), failure.answers)
                lines.append(FailureLine(model.name, evidence, target, failure.gain, failure.answers, *ends))
    return sorted(lines, key=lambda line: (-line.gain, -line.answers, line.llm))


def _answered_by(model: LanguageModel, study: Study) -> dict[int, float]:
    """How right the model is on each question of the study's bank, from 0 to 1, by primary key."""
    return ModelAnswer.objects.filter(language_model=model, question__bank=study.bank_id).by_question()


def unreadable_of(study: Study, models: Sequence[str], questions: Sequence[Question] = ()) -> dict[str, Unreadable]:
    """How many of the models' replies could not be read: to these questions, or to all of the bank's."""
    answers = ModelAnswer.objects.filter(language_model__name__in=models, question__bank=study.bank_id)
    return unreadable_by_model(answers, questions={question.pk for question in questions} or None)


def _interval_of_mean(mean: float, squares: float, n: int) -> tuple[float | None, float | None]:
    """Student's 95 % interval of the mean of n numbers with this sum of squared distances; none without a spread."""
    ends = bandit.student_interval(mean, (squares / (n - 1) / n) ** 0.5, n - 1) if n > 1 else None
    return ends or (None, None)


def scored_pool(study: Study) -> CandidateSet:
    """The candidate set scored last that has uniform pairs with the predictor's own scores: a pool, or what was drawn
    in addition to all pairs.

    Raises:
        StateRefused: there is none yet.
    """
    stored = (
        CandidateSet.objects.filter(stage__study=study, predictor_run__isnull=False)
        .select_related("stage", "predictor_run__stage__study")
        .order_by("-stage__index")
        .first()
    )
    if stored is None:
        raise StateRefused(
            f"{study.slug}: no stage has a uniform pool that a predictor has scored. It comes with a stage that draws "
            "by predicted change; `hunch alignment --sample FILE` reads predictions from a file"
        )
    stored.stage.study = study
    return stored


def pool_rows(stored: CandidateSet) -> np.ndarray:
    """The rows of `scored_pool`, uniform over pairs and outcomes, with the predictor's scores."""
    is_pool = stored.kind == CandidateSet.Kind.POOL
    return files.load_array(stored.file_sha256 if is_pool else stored.uniform_sha256)


def models_of(study: Study, name: str = "") -> list[LanguageModel]:
    """The language models that have answered questions of the study's bank; the one with this name, if it is given."""
    models = LanguageModel.objects.filter(answers__question__bank=study.bank_id).distinct().order_by("name")
    return list(models.filter(name=name) if name else models)


def _trials(study: Study, questions: Sequence[Question], pairs: Any) -> tuple[list[Trial], list[str]]:
    """A model's rows: pairs that show its real outcome, and whose target question it has answered. Where it answers
    in fractions, a pair counts by the chance that the model has the outcome that the pair shows."""
    place = {question.pk: index for index, question in enumerate(questions)}
    trials, notes = [], []
    shown_model = belief_update_of(study).evidence_model
    for model in models_of(study):
        if shown_model and model.name != shown_model:
            # Its pairs in the pool would be those where it did the same as the shown model: not a uniform sample.
            notes.append(f"{model.name}: left out; the study shows real outcomes of {shown_model} alone")
            continue
        values = np.full(len(questions), np.nan)
        for question, correct in _answered_by(model, study).items():
            if question in place:
                values[place[question]] = correct
        right = values[pairs.evidence]
        chance = np.nan_to_num(np.where(pairs.outcome == 1, right, 1 - right))
        answered = (chance > 0) & np.isfinite(values[pairs.target])
        missing = int(np.isnan(values).sum())
        if missing:
            notes.append(f"{model.name}: no answer to {missing} of the study's {len(questions)} questions")
        if answered.sum() < MIN_PAIRS:
            notes.append(f"{model.name}: left out; {int(answered.sum())} pairs are too few (at least {MIN_PAIRS})")
            continue
        trials.append(
            Trial(
                name=model.name,
                outcome=pairs.outcome.astype(np.float64),
                correct=np.where(answered, values[pairs.target], 0.0),
                answered=answered,
                weight=chance,
            )
        )
    if not trials:
        raise StateRefused(". ".join([_no_model(study), *(["; ".join(notes)] if notes else [])]))
    return trials, notes


def _no_model(study: Study) -> str:
    return (
        f"{study.slug}: no language model has answered enough of {study.bank}; `hunch collect_answers` or "
        "`hunch import_answers` brings answers"
    )


@dataclass(frozen=True, eq=False)
class _Answered:
    """The study's counted answers with evidence: beliefs, people, weights, predictions (NaN without)."""

    beliefs: BeliefRows
    respondent: np.ndarray
    weight: np.ndarray
    score: np.ndarray


def _answers(study: Study, levels: Mapping[str, str], answered: Sequence[Assignment] | None = None) -> _Answered:
    answers = study_answers(study, levels=levels) if answered is None else answered
    return _Answered(
        beliefs=belief_rows(answers),
        respondent=np.asarray([answer.sitting.respondent_id for answer in answers], dtype=np.int64),
        weight=design_weights(answers),
        score=np.asarray(
            [np.nan if answer.slot.score is None else answer.slot.score for answer in answers], dtype=np.float64
        ),
    )


def _rows(answers: _Answered, keep: np.ndarray | None = None) -> Answers:
    beliefs = answers.beliefs
    keep = np.ones(len(answers.weight), dtype=bool) if keep is None else keep
    _pairs, pair = np.unique(np.stack([beliefs.evidence, beliefs.target], axis=1), axis=0, return_inverse=True)
    return Answers(
        prior=beliefs.prior / 100,
        posterior=beliefs.posterior / 100,
        outcome=beliefs.outcome.astype(np.int64),
        change=np.nan_to_num(answers.score),
        target=beliefs.target.astype(np.int64),
        task=beliefs.target_task.astype(np.int64),
        respondent=answers.respondent,
        pair=pair.reshape(-1).astype(np.int64),
        weight=answers.weight / answers.weight.mean(),
    ).take(keep)


def _averages(study: Study, condition: Sequence[str]) -> Averages:
    """The study's own design-weighted estimates."""
    figures = {figure.name: figure.combined for figure in estimate(study, condition=condition).figures}
    values = {}
    for name in ("prior", "posterior_correct", "posterior_incorrect"):
        own_figure = figures.get(name)
        if own_figure is None:
            raise StateRefused(
                f"{study.slug}: no estimate of the mean {name.replace('_', ' ')} yet: `hunch estimate {study.slug}`"
            )
        values[name] = float(np.clip(own_figure.value / 100, 1e-6, 1 - 1e-6))
    return Averages(**values)


def _regression(
    answers: _Answered, rng: np.random.Generator
) -> tuple[BeliefComparison | None, BeliefRegression | None, str]:
    """The comparison of mixture and regression, and the regression; from answers whose change was predicted before
    they were given."""
    predicted = _rows(answers, np.isfinite(answers.score))
    if len(predicted) < 2 * MIN_ROWS:
        return None, None, f"{len(predicted)} answers with a prediction are too few for beliefs by regression"
    try:
        return compare_beliefs(predicted, rng=rng), BeliefRegression.fit(predicted), ""
    except ValueError as exc:
        return None, None, f"no beliefs by regression: {exc}"


def _beliefs_of(ready: _Ready, regression: BeliefRegression | None) -> dict[str, dict[str, np.ndarray]]:
    """The beliefs about every pair by where they come from and by model."""
    comparison, pairs = ready.comparison, ready.pairs
    beliefs = {"mixture": {trial.name: comparison.belief(trial.name) for trial in ready.trials}}
    if regression is not None:
        target = np.asarray([question.pk for question in ready.questions], dtype=np.int64)[pairs.target]
        task = np.asarray([question.task_id for question in ready.questions], dtype=np.int64)[pairs.target]
        predicted = regression.predict(outcome=pairs.outcome, change=ready.change, target=target, task=task)
        beliefs["regression"] = {trial.name: predicted for trial in ready.trials}
    return beliefs


def _deployment(
    ready: _Ready, regression: BeliefRegression | None, threshold: float, samples: int
) -> list[DeploymentTable]:
    tables = []
    for source, by_model in _beliefs_of(ready, regression).items():
        for rule in rules_of(threshold):
            rows = [model_rows(trial, by_model) for trial in ready.trials]
            figures, reversals = compare_deployment(rows, rule, rng=ready.rng, samples=samples)
            note = why_beliefs_decide_nothing(known_beliefs(rows), rule)
            carried = carried_by(rows, rule)
            tables.append(DeploymentTable(rule, source, tuple(figures), tuple(reversals), note, carried))
    return tables


def _plain(value: Any) -> Any:
    """As JSON: arrays as lists, data classes as objects, NaN as null."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(inner) for name, inner in asdict(value).items()}
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(inner) for inner in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value
