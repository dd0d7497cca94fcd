"""Training and evaluating: plain data to `predictors`, files to the storage, results to rows.

Every result is written through the claim of a job step, in one transaction with its end.
"""

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import prefetch_related_objects
from django.utils import timezone

import bandit
from predictors import training as predictor_training
from predictors.errors import Stopped
from predictors.evaluation.metrics import losses_of
from predictors.hardness import PEOPLE
from survey.contracts import instruments
from survey.figures.words import short
from survey.models import (
    Assignment,
    CandidateSet,
    Evaluation,
    JobStep,
    PredictorRun,
    Slot,
    Stage,
    Study,
    Withdrawal,
)
from survey.services.answers import counting
from survey.services.answers.conditions import has_levels, in_words, relations_of
from survey.services.answers.counting import frozen_answers, subject_keys, training_examples
from survey.services.answers.majorities import has_majorities, majorities_among
from survey.services.base import files
from survey.services.base.locks import locked_stage
from survey.services.base.seeds import generator

from .claims import Claim
from .leaderboard import LEVELS, LOST, SOURCES
from .runs import main_run, runs_in_force

Progress = Callable[[int, int, str], bool]


def run_of(stage: Stage) -> PredictorRun:
    """The run that plans the stage after this one."""
    run = main_run(stage)
    if run is None:
        raise PredictorRun.DoesNotExist(f"{stage} has trained nothing")
    return run


def folders_of(run: PredictorRun) -> list[Path]:
    """A local folder for each member of a trained predictor, checked byte for byte."""
    return [files.folder_of(run.members[number]) for number in sorted(run.members, key=int)]


def _learning(study: Study) -> instruments.Learning:
    return instruments.learning_of(instruments.of_study(study))


# Training


def train_member(held: Claim) -> None:
    """Train one member on every frozen answer up to and including the stage that may train, and store its files.

    Without answers, or with answers of only one class, there is nothing to learn. That is a result, not a failure: the
    step is done and the run has no files.
    """
    step = held.step
    stage = step.stage
    study = stage.study
    run = stage.predictor_runs.get(job_steps=step)
    answers = training_examples(stage, held_out_through=run.held_out_through)
    inputs, labels = _learning(study).checked_examples(answers)
    frozen = counting.frozen(counting.frozen_stages(study, through=stage.index))
    held_out = frozen.count() - len(answers)
    if reason := nothing_to_learn(labels):
        held.heartbeat(0, 0, reason)
        held.finish({"nothing_to_learn": reason, "n_examples": len(labels), "held_out": held_out})
        return
    held.heartbeat(0, 0, f"{len(labels)} answers")
    columns, sources = _columns(run, answers)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "member"
        trained = predictor_training.train_member(
            run.name,
            run.params,
            run.seed,
            step.member,
            inputs,
            labels.tolist(),
            None,
            folder,
            held.heartbeat,
            columns,
        )
        stored = files.store_folder(folder)
    with transaction.atomic():
        # A withdrawal holds these locks until it ends. So each one is either visible here or will see our members.
        for number in sorted({answer.slot.stage_id for answer in answers}):
            locked_stage(number)
        held.lock()
        run = PredictorRun.objects.select_for_update(no_key=True).get(pk=run.pk)
        run.members = {**run.members, str(step.member): stored}
        run.example_count = trained["n_examples"]
        run.seconds += trained["seconds"]
        if len(run.members) == predictor_training.members_of(run.name, run.params):
            run.ready_at = timezone.now()
        run.save(update_fields=["members", "example_count", "seconds", "ready_at"])
        people = {answer.sitting.respondent_id for answer in answers}
        for withdrawal in Withdrawal.objects.filter(respondent__in=people):
            withdrawal.predictor_runs.add(run)  # The person left while we learnt from their answers.
        held.finish({**trained, "held_out": held_out, **({SOURCES: sources} if sources else {})})


def _columns(
    run: PredictorRun, answers: Sequence[Assignment], *, predicted: bool = False
) -> tuple[Mapping[str, Any] | None, dict[str, dict[str, Any]]]:
    """What a predictor reads in addition to the texts of these answers, for most nothing, and what that was made of. It
    does not read what people stated in answers that it predicts."""
    names = predictor_training.columns_of(run.name, run.params)
    if not names:
        return None, {}
    read = [name for name in names if not (predicted and name == PEOPLE)]
    columns, sources = _learning(run.stage.study).columns_and_sources(answers, read)
    return columns, {name: source._asdict() for name, source in sources.items()}


def _sources_of_training(run: PredictorRun) -> dict[str, list[dict[str, Any]]]:
    """By column: what it was made of when the run's members learnt, each once."""
    results = run.job_steps.filter(kind=JobStep.Kind.TRAIN).order_by("member").values_list("result", flat=True)
    all_sources: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        _add_sources(all_sources, result.get(SOURCES) or {})
    return all_sources


def _add_sources(all_sources: dict[str, list[dict[str, Any]]], sources: Mapping[str, dict[str, Any]]) -> None:
    for name, source in sources.items():
        if source not in all_sources.setdefault(name, []):
            all_sources[name].append(source)


def nothing_to_learn(labels: np.ndarray) -> str:
    """Why no predictor can be trained on these labels (n,); empty if one can."""
    classes = np.unique(labels)
    if len(classes) > 1:
        return ""
    if not len(labels):
        return "nothing to learn from: there are no answers"
    return f"nothing to learn from: the label of all {len(labels)} answers is {short(classes[0])}"


# Evaluating


@dataclass(frozen=True)
class Judged:
    """Answers of one role that predictors are evaluated on, and their weights (n,): None counts each once.

    `labels` (n,): the majority labels of a test stage's items, of each of which one answer stands here.
    """

    answers: Sequence[Assignment]
    weightings: Mapping[str, np.ndarray | None]
    labels: np.ndarray | None = None

    def take(self, mask: np.ndarray) -> "Judged":
        """Only these answers: a mask of shape (n,)."""
        return Judged(
            [answer for answer, is_kept in zip(self.answers, mask.tolist(), strict=True) if is_kept],
            {name: None if weights is None else weights[mask] for name, weights in self.weightings.items()},
            None if self.labels is None else self.labels[mask],
        )


def _by_level(part: Judged, stage: Stage) -> Iterator[tuple[str, np.ndarray]]:
    """Masks of all answers, called "", and of those under each level of the study's factors, called FACTOR=LEVEL."""
    yield "", np.ones(len(part.answers), dtype=bool)
    if part.labels is not None:  # A majority is of all levels together.
        return
    prefetch_related_objects(list(part.answers), *relations_of(stage.study))
    for condition in stage.study.config.conditions:
        for level in condition.levels:
            wanted = {condition.factor: level}
            under = np.array([has_levels(answer, wanted) for answer in part.answers], dtype=bool)
            if under.any():
                yield in_words(wanted), under


def _under(figures: dict[str, Any], level: str) -> dict[str, Any]:
    """The name under which a run's figures hold those of a level."""
    if not level:
        return figures
    own_figures: dict[str, Any] = figures.setdefault(LEVELS, {}).setdefault(level, {})
    return own_figures


def evaluate(held: Claim) -> None:
    """Evaluate the current predictors, which have seen only earlier answers, on this stage's answers.

    All use the same rows, and the difference from the main one is given. Sampled answers count by the design's weights
    and, separately, each once; holdout answers need no weights. Then the same under each level of the factors. A test
    stage's items also count once each, by their majority labels.
    """
    stage = held.step.stage
    runs = runs_in_force(stage)
    parts = _parts(stage, runs)
    work = len(runs) * sum(len(part.answers) for part in parts.values())
    done = 0
    metrics: dict[int, dict[str, Any]] = {run.pk: {} for run in runs}
    differences: dict[int, dict[str, Any]] = {run.pk: {} for run in runs[1:]}
    sources: dict[int, dict[str, list[dict[str, Any]]]] = {run.pk: {} for run in runs}

    def alive(within: int, _total: int, text: str) -> bool:
        return held.heartbeat(done + within, work, text)

    for name, part in parts.items():
        scores: dict[int, np.ndarray] = {}
        for run in runs:
            scores[run.pk], read = _scores(run, part, stage, alive)
            _add_sources(sources[run.pk], read)
            done += len(part.answers)
        labels = _labels(part, stage) if len(runs) > 1 else None
        for level, mask in _by_level(part, stage):
            judged = part.take(mask)
            for weighting, weights in judged.weightings.items():
                for run in runs:
                    if not alive(0, 0, f"{name} answers, {weighting}: {run.name}"):
                        raise Stopped
                    own, main = scores[run.pk][mask], scores[runs[0].pk][mask]
                    figures = _figures(judged, stage, weighting, weights, own)
                    if not figures:  # An instrument need not judge by majority labels.
                        continue
                    _under(metrics[run.pk], level)[weighting] = figures
                    if run.pk in differences:
                        compared = _figures(judged, stage, weighting, weights, own, main)
                        if labels is not None:
                            compared = {**compared, LOST: _lost(labels[mask], own, main, weights)}
                        _under(differences[run.pk], level)[weighting] = compared
    with transaction.atomic():
        held.lock()
        if parts:
            for run in runs:
                figures = {**metrics[run.pk], "difference": differences.get(run.pk, {})}
                for level, difference in differences.get(run.pk, {}).pop(LEVELS, {}).items():
                    figures[LEVELS][level]["difference"] = difference
                if sources[run.pk]:
                    figures[SOURCES] = {"training": _sources_of_training(run), "prediction": sources[run.pk]}
                Evaluation.objects.update_or_create(predictor_run=run, stage=stage, defaults={"metrics": figures})
        held.finish(
            {
                "predictors": [run.name for run in runs],
                "answers": {name: len(part.answers) for name, part in parts.items()},
            }
        )


def _parts(stage: Stage, runs: Sequence[PredictorRun]) -> dict[str, Judged]:
    """The stage's frozen answers by role; roles without answers are left out.

    In a holdout and a test set, answers on pairs that a predictor was trained on are left out, whichever order or
    outcome was shown: it may have learnt before they were drawn.
    """
    study = stage.study
    answers = _judgeable(frozen_answers(stage, roles=[*counting.TRAINED, Slot.Role.HOLDOUT]), study)
    held_out = [answer for answer in answers if answer.slot.role == Slot.Role.HOLDOUT]
    sampled = [answer for answer in answers if answer.slot.role != Slot.Role.HOLDOUT]
    is_test = stage.config.design.kind == "test_set"
    if held_out or (is_test and sampled):
        seen: set[frozenset[Any]] = set()
        for through in {run.held_out_through for run in runs}:
            seen |= counting.trained_subjects(runs[0].stage, held_out_through=through)
        held_out = _unseen(held_out, seen, study)
        sampled = _unseen(sampled, seen, study) if is_test else sampled
    parts = {}
    if sampled:
        parts["sampled"] = Judged(sampled, {"weighted": _weights(sampled), "naive": None})
    if held_out:
        parts["holdout"] = Judged(held_out, {"holdout": _weights(held_out)})
    if (majorities := _majorities(sampled, stage)) is not None:
        parts["majorities"] = majorities
    return parts


def _majorities(sampled: Sequence[Assignment], stage: Stage) -> Judged | None:
    """The labelled items of a test stage; None if it has none."""
    if not has_majorities(stage):
        return None
    labelled = [majority for majority in majorities_among(sampled, stage) if majority.label is not None]
    if not labelled:
        return None
    labels = np.array([majority.label for majority in labelled], dtype=np.float64)
    return Judged([majority.answer for majority in labelled], {"majority": None}, labels)


def _unseen(answers: Sequence[Assignment], seen: Collection[frozenset[Any]], study: Study) -> list[Assignment]:
    keys = subject_keys([answer.slot.item for answer in answers], study)
    return [answer for answer, key in zip(answers, keys, strict=True) if key not in seen]


def _judgeable(answers: Sequence[Assignment], study: Study) -> list[Assignment]:
    fit = _learning(study).learnable(answers)
    return [answer for answer, is_fit in zip(answers, fit.tolist(), strict=True) if is_fit]


def _weights(answers: Sequence[Assignment]) -> np.ndarray:
    """The answers' design weights divided by their mean, shape (n,)."""
    weights = counting.design_weights(answers)
    return weights / weights.mean()


def _scores(
    run: PredictorRun, part: Judged, stage: Stage, progress: Progress
) -> tuple[np.ndarray, Mapping[str, dict[str, Any]]]:
    """What a predictor expects of the answers (n,): as stored where it planned the stage from a pool that it scored,
    else from its files. And what the columns that it read were made of."""
    stored = [answer.slot.score for answer in part.answers]
    planned = CandidateSet.objects.filter(stage=stage, predictor_run=run, kind=CandidateSet.Kind.POOL).exists()
    if planned and None not in stored:
        return np.asarray(stored, dtype=np.float64), {}
    return scores_of(run, part.answers, stage.study, progress)


def scores_of(
    run: PredictorRun, answers: Sequence[Assignment], study: Study, progress: Progress
) -> tuple[np.ndarray, Mapping[str, dict[str, Any]]]:
    """What a trained predictor expects of the answers, computed from its files: the chances of label 1, float64 (n,).
    And what the columns that it read were made of.

    Raises:
        Stopped: `progress` returned False.
    """
    inputs, _labels = _learning(study).checked_examples(answers)
    columns, sources = _columns(run, answers, predicted=True)
    scores = predictor_training.score(folders_of(run), inputs, progress, columns=columns)
    return scores.astype(np.float64), sources


def _figures(
    part: Judged,
    stage: Stage,
    weighting: str,
    weights: np.ndarray | None,
    scores: np.ndarray,
    main: np.ndarray | None = None,
) -> dict[str, Any]:
    """The instrument's metrics, or their differences from the main predictor's. Every predictor is measured on the
    same resamples of respondents and items, whose answers are alike."""
    learning = _learning(stage.study)
    rng = generator(stage.seed, "evaluation", weighting)
    if part.labels is not None:
        if main is None:
            return learning.evaluate_majorities(part.answers, part.labels, scores, rng=rng)
        return learning.compare_majorities(part.answers, part.labels, scores, main, rng=rng)
    how: dict[str, Any] = {"weights": weights, "clusters": _clusters(part.answers), "rng": rng}
    if main is None:
        return learning.evaluate(part.answers, scores, **how)
    return learning.compare(part.answers, scores, main, **how)


def _labels(part: Judged, stage: Stage) -> np.ndarray | None:
    """The labels of the answers (n,), where some metric is a log score; None elsewhere."""
    learning = _learning(stage.study)
    if not any(metric.is_log_score for metric in learning.metrics):
        return None
    if part.labels is not None:
        return part.labels
    return np.asarray(learning.checked_examples(part.answers)[1], dtype=np.float64)


def _lost(labels: np.ndarray, scores: np.ndarray, main: np.ndarray, weights: np.ndarray | None) -> int | None:
    """How few answers decide which of two predictors has the better log score: without so many, found by influence and
    confirmed, the other one has it. An upper bound of the fewest; None where no such set was found."""
    losses = np.stack([losses_of(labels, scores), losses_of(labels, main)], axis=1)
    return bandit.fragile_means(values=-losses, weight=weights).neighbours[0].count


def _clusters(answers: Sequence[Assignment]) -> list[np.ndarray]:
    """The respondents of the answers (n,) and, where an item has several answers, the items (n,)."""
    people = np.asarray([answer.sitting.respondent_id for answer in answers])
    items = np.asarray([answer.slot.item_id for answer in answers])
    return [people, items] if len(np.unique(items)) < len(items) else [people]
