"""The paper's tables and figures of a study, from its frozen answers, its stored predictions and its leaderboard."""

from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from survey.exceptions import HunchError, StateRefused
from survey.models import PredictorRun, Stage, Study
from survey.services.answers.counting import design_weights, frozen_answers, frozen_stages
from survey.services.answers.majorities import ItemMajority, majorities_of
from survey.services.banks.eligibility import eligible_questions
from survey.services.base import files
from survey.services.base.seeds import generator
from survey.services.plans.candidates import SCORE, question_set_digest
from survey.services.stages.leaderboard import LeaderboardLine, leaderboard

from ..labels import beliefs_of
from .aligning import alignment_of, scored_pool
from .paper import (
    EXTREMES,
    METRICS,
    PARTS,
    FirstStage,
    PaperFigure,
    Piece,
    Ranked,
    ScoredPairs,
    figure_2,
    figure_3_left,
    figure_3_right,
    figure_5,
    group_table,
    model_tables,
    sentence,
    table_1,
    tried,
)
from .rows import belief_update_of

UNIFORM_PAIRS = 10_000
ALIGNMENT_SAMPLES = 500


def pieces_of(study: Study) -> list[Piece]:
    """Every piece; what the study does not have yet says what is missing."""
    belief_update_of(study)
    stages = frozen_stages(study)
    tables = _model_tables(study)
    first = cache(lambda: _first_stage(study, stages))
    return [
        tried("table1", "Table 1", lambda: _table_1(study, stages)),
        tables["table2"],
        tried("table3", "Table 3", lambda: _groups(study, stages, "table3")),
        tried("table4", "Table 4", lambda: _groups(study, stages, "table4")),
        tables["table5"],
        tried("figure2", "Figure 2", lambda: _figure_2(study)),
        tried("figure3_left", "Figure 3, left", lambda: figure_3_left(first())),
        tried("figure3_right", "Figure 3, right", lambda: _figure_3_right(study, stages)),
        tried("figure5", "Figure 5", lambda: figure_5(first())),
    ]


def _model_tables(study: Study) -> dict[str, Piece]:
    titles = {"table2": "Table 2", "table5": "Table 5"}
    try:
        scores = alignment_of(study, samples=ALIGNMENT_SAMPLES).scores
    except (HunchError, ValueError) as exc:
        said = str(exc)
        return {name: tried(name, title, lambda: sentence(said)) for name, title in titles.items()}
    made = dict(model_tables(scores))
    return {name: tried(name, title, partial(made.__getitem__, name)) for name, title in titles.items()}


def _test_stage(study: Study, stages: Sequence[Stage]) -> tuple[Stage, list[ItemMajority]]:
    """The last frozen test stage and its labelled items.

    Raises:
        StateRefused: there is none, or no item has a label.
    """
    tests = [stage for stage in stages if stage.config.design.kind == "test_set"]
    if not tests:
        raise StateRefused(f"{study.slug}: no test stage is frozen, and the paper's test labels are its majorities")
    labelled = [one for one in majorities_of(tests[-1]) if one.label is not None]
    if not labelled:
        raise StateRefused(f"{study.slug}: no item of test stage {tests[-1].index} has a majority label")
    return tests[-1], labelled


def _table_1(study: Study, stages: Sequence[Stage]) -> Piece:
    stage, _labelled = _test_stage(study, stages)
    lines = [line for line in leaderboard(study) if line.answers == "majorities" and line.evaluated_on == stage.index]
    if not lines:
        raise StateRefused(f"{study.slug}: no predictor has been judged by the majorities of stage {stage.index} yet")
    note = (
        f"Predictors of stage {lines[0].trained_after} on the {lines[0].n} items of test stage {stage.index}, each "
        f"once, by their majority labels; intervals are over items. {EXTREMES}"
    )
    return table_1({line.predictor: _figures(line) for line in lines}, note)


def _figures(line: LeaderboardLine) -> dict[tuple[str, str], PaperFigure]:
    found = {}
    for metric in METRICS:
        for part in PARTS:
            cell = line.figures[metric][part]
            found[metric, part] = PaperFigure(line.n or 0, cell.value, cell.low, cell.high)
    return found


def _groups(study: Study, stages: Sequence[Stage], name: str) -> Piece:
    stage, labelled = _test_stage(study, stages)
    if any(one.answer.slot.score is None for one in labelled):
        raise StateRefused(f"{study.slug}: the items of stage {stage.index} have no stored predictions")
    labels = np.array([one.label for one in labelled], dtype=np.float64)
    scores = np.array([one.answer.slot.score for one in labelled], dtype=np.float64)
    tasks = []
    for one in labelled:
        pair = one.answer.slot.item.pair
        tasks.append((pair.evidence.task.name if pair.evidence else "", pair.target.task.name))
    note = f"The predictor that planned test stage {stage.index}, on its {len(labelled)} items. {EXTREMES}"
    if name == "table3":
        groupings = [[(first, "") for first, _second in tasks], [("", second) for _first, second in tasks]]
        return group_table(
            name, "Table 3: AUC by the task generalized from, and to", labels, scores, groupings, note=note
        )
    return group_table(name, "Table 4: AUC by the pair of tasks", labels, scores, [tasks], note=note)


def _figure_2(study: Study) -> Piece:
    stored = scored_pool(study)
    if stored.questions_sha256 != question_set_digest(study):
        raise StateRefused(f"{study.slug}: questions were flagged since stage {stored.stage.index} was scored")
    questions = eligible_questions(study)
    rows = files.load_array(stored.file_sha256)
    if len(rows) > UNIFORM_PAIRS:
        chosen = generator(stored.stage.seed, "paper figure 2").choice(len(rows), UNIFORM_PAIRS, replace=False)
        rows = rows[np.sort(chosen)]
    found = {}
    for outcome in (0, 1):
        inside = rows[rows["outcome"] == outcome]

        def texts(place: int, inside: np.ndarray = inside) -> tuple[str, str]:
            return questions[int(inside["evidence"][place])].plain, questions[int(inside["target"][place])].plain

        found[outcome] = ScoredPairs(inside[SCORE].astype(np.float64), texts)
    note = (
        f"{len(rows)} pairs of the uniform pool of stage {stored.stage.index}, each under one outcome, scored by "
        f"{stored.predictor_run}. In brackets: 95 % intervals of the mean over such pairs."
    )
    return figure_2(found, note)


def _first_stage(study: Study, stages: Sequence[Stage]) -> FirstStage:
    if not stages:
        raise StateRefused(f"{study.slug}: the first stage is not frozen yet")
    answers = [one for one in frozen_answers(stages[0]) if beliefs_of(one).change is not None]
    if not answers:
        raise StateRefused(f"{study.slug}: the first stage has no answers that count")
    beliefs = [beliefs_of(one) for one in answers]
    return FirstStage(
        prior=np.array([one.prior for one in beliefs], dtype=np.float64),
        posterior=np.array([one.posterior for one in beliefs], dtype=np.float64),
        respondent=np.array([one.sitting.respondent_id for one in answers], dtype=np.int64),
        weight=design_weights(answers),
    )


def _figure_3_right(study: Study, stages: Sequence[Stage]) -> Piece:
    """The predictor after stage s on the answers of stage s + 1: it planned that stage, so its scores are stored."""
    threshold = belief_update_of(study).options.threshold
    lines = []
    for stage in stages:
        if stage.config.design.kind in ("uniform", "test_set"):
            continue
        answers = [one for one in frozen_answers(stage) if one.slot.score is not None]
        changed = [beliefs_of(one).changed(threshold) for one in answers]
        kept = [(one, label) for one, label in zip(answers, changed, strict=True) if label is not None]
        run = PredictorRun.objects.filter(candidate_sets__stage=stage).select_related("stage").first()
        if not kept or run is None:
            continue
        scores = np.array([one.slot.score for one, _label in kept], dtype=np.float64)
        if scores.min() < 0 or scores.max() > 1:  # Drawn by a number of the instrument's own, not by a probability.
            continue
        lines.append(
            Ranked(
                name=f"after stage {run.stage.index}, on stage {stage.index}",
                labels=np.array([label for _one, label in kept], dtype=np.float64),
                scores=scores,
                weights=design_weights([one for one, _label in kept]),
            )
        )
    if not lines:
        raise StateRefused(f"{study.slug}: no frozen stage was drawn by a predictor")
    note = "By the design's weights. In brackets: 95 % intervals of each point, answers taken as independent."
    return figure_3_right(lines, note)
