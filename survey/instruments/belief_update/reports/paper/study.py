"""The paper's tables and figures of a study, from its frozen answers, its stored predictions and its leaderboard."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from survey.contracts import instruments
from survey.exceptions import HunchError, StateRefused
from survey.figures import Figure
from survey.figures.words import counted
from survey.models import Assignment, PredictorRun, Stage, Study
from survey.services.answers.counting import (
    design_weights,
    frozen_answers,
    frozen_stages,
    study_answers,
    subject_keys,
    trained_subjects,
)
from survey.services.answers.majorities import ItemMajority, majorities_of
from survey.services.base import files
from survey.services.base.seeds import generator
from survey.services.plans.candidates import SCORE, candidate_questions
from survey.services.stages.leaderboard import LeaderboardLine, boards_of, leaderboard
from survey.services.stages.runs import runs_in_force

from ...labels import beliefs_of
from ..alignment.aligning import alignment_of, misleading, obstacle, pool_rows, scored_pool, unreadable_of
from ..calibration.calibrating import human_calibration
from ..rows import belief_update_of
from .figures_4_6_7 import MisleadingPair, Rises, SeenRight, figure_4, figure_6, figure_7
from .held_out import held_out_of, scored_by_all
from .pieces import (
    EXTREMES,
    METRICS,
    PARTS,
    FirstStage,
    Piece,
    Ranked,
    ScoredPairs,
    as_figure,
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

UNIFORM_PAIRS = 10_000
ALIGNMENT_SAMPLES = 500
POINTS = Rises(
    least=((-101, "any"), (1, "1 or more"), (5, "5 or more"), (10, "10 or more"), (20, "20 or more")),
    unit="by how many points the belief rose after the correct answer",
)


def pieces_of(study: Study, *, people_study: Study | None = None) -> list[Piece]:
    """Every piece; what the study does not have yet says what is missing.

    Args:
        people_study: the study in which people answer the questions themselves, for figure 7.
    """
    belief_update_of(study)
    stages = frozen_stages(study)
    answered = cache(lambda: study_answers(study))
    tables = _model_tables(study, answered)
    tested = cache(lambda: _test_stage(study, stages))
    first = cache(lambda: _first_stage(study, stages))
    uniform = cache(lambda: _uniform_pairs(study))
    return [
        tried("table1", "Table 1", lambda: _table_1(study, tested())),
        tables["table2"],
        tried("table3", "Table 3", lambda: _groups(tested(), "table3")),
        tried("table4", "Table 4", lambda: _groups(tested(), "table4")),
        tables["table5"],
        tried("figure2", "Figure 2", lambda: _figure_2(uniform())),
        tried("figure3_left", "Figure 3, left", lambda: figure_3_left(first())),
        tried("figure3_right", "Figure 3, right", lambda: _figure_3_right(study, stages)),
        tried("figure3_held_out", "Figure 3, right, on one held-out set", lambda: _figure_3_held_out(study)),
        tried("figure4", "Figure 4", lambda: _figure_4(study, answered())),
        tried("figure5", "Figure 5", lambda: figure_5(first())),
        tried("figure6", "Figure 6", lambda: _figure_6(uniform())),
        tried("figure7", "Figure 7", lambda: _figure_7(study, people_study, answered)),
    ]


def _model_tables(study: Study, answered: Callable[[], Sequence[Assignment]]) -> dict[str, Piece]:
    titles = {"table2": "Table 2", "table5": "Table 5"}
    try:
        without = obstacle(study)  # Before all answers are read.
        if without:
            raise StateRefused(without)
        alignment = alignment_of(study, samples=ALIGNMENT_SAMPLES, answered=answered())
    except (HunchError, ValueError) as exc:
        said = str(exc)
        return {name: tried(name, title, lambda: sentence(said)) for name, title in titles.items()}
    made = dict(model_tables(alignment.scores, alignment.unreadable))
    return {name: tried(name, title, partial(made.__getitem__, name)) for name, title in titles.items()}


Tested = tuple[Stage, list[ItemMajority], int]


def _test_stage(study: Study, stages: Sequence[Stage]) -> Tested:
    """The last frozen test stage and its labelled items, without those whose pair trained; how many these are.

    Raises:
        StateRefused: there is none, no item has a label, or the pair of each trained.
    """
    tests = [stage for stage in stages if stage.config.design.kind == "test_set"]
    if not tests:
        raise StateRefused(f"{study.slug}: no test stage is frozen, and the paper's test labels are its majorities")
    labelled = [majority for majority in majorities_of(tests[-1]) if majority.label is not None]
    if not labelled:
        raise StateRefused(f"{study.slug}: no item of test stage {tests[-1].index} has a majority label")
    seen: set[frozenset[Any]] = set()
    # All of them were trained after the same stage.
    for stage, through in {(run.stage, run.held_out_through) for run in runs_in_force(tests[-1])}:
        seen |= trained_subjects(stage, held_out_through=through)
    keys = subject_keys([majority.item for majority in labelled], study)
    unseen = [majority for majority, key in zip(labelled, keys, strict=True) if key not in seen]
    if not unseen:
        raise StateRefused(
            f"{study.slug}: the pair of each of the {len(labelled)} items of test stage {tests[-1].index} had answers "
            "that trained the predictors, so that nothing is left to judge them by"
        )
    return tests[-1], unseen, len(labelled) - len(unseen)


def _table_1(study: Study, tested: Tested) -> Piece:
    stage, _labelled, trained = tested
    judged = [line for line in leaderboard(study) if line.answers == "majorities" and line.evaluated_on == stage.index]
    lines, beside = boards_of(judged)  # The paper's task is text alone.
    if not lines:
        raise StateRefused(f"{study.slug}: no predictor has been judged by the majorities of stage {stage.index} yet")
    note = (
        f"Predictors of stage {lines[0].trained_after} on the {lines[0].n} items of test stage {stage.index}, each "
        f"once, by their majority labels; intervals are over items. {_trained(trained)}{EXTREMES}"
    )
    if beside:
        note += f" Predictors with columns next to the texts are on the leaderboard: {_named(beside)}."
    return table_1({line.predictor: _figures(line) for line in lines}, note)


def _named(lines: Sequence[LeaderboardLine]) -> str:
    return ", ".join(line.predictor for line in lines)


def _trained(items: int) -> str:
    return f"{items} more items are left out: answers to their pair trained. " if items else ""


def _figures(line: LeaderboardLine) -> dict[tuple[str, str], Figure]:
    figures = {}
    for metric in METRICS:
        for part in PARTS:
            cell = line.figures[metric][part]
            figures[metric, part] = as_figure(cell.value, (cell.low, cell.high), line.n or 0)
    return figures


def _groups(tested: Tested, name: str) -> Piece:
    stage, labelled, trained = tested
    if any(row.answer.slot.score is None for row in labelled):
        raise StateRefused(f"{stage.study.slug}: the items of stage {stage.index} have no stored predictions")
    labels = np.array([row.label for row in labelled], dtype=np.float64)
    scores = np.array([row.answer.slot.score for row in labelled], dtype=np.float64)
    tasks = []
    for majority in labelled:
        pair = majority.answer.slot.item.pair
        tasks.append((pair.evidence.task.name if pair.evidence else "", pair.target.task.name))
    items = f"{len(labelled)} items. {_trained(trained)}"
    note = f"The predictor that planned test stage {stage.index}, on its {items}{EXTREMES}"
    if name == "table3":
        groupings = [[(first, "") for first, _second in tasks], [("", second) for _first, second in tasks]]
        return group_table(
            name, "Table 3: AUC by the task generalized from, and to", labels, scores, groupings, note=note
        )
    return group_table(name, "Table 4: AUC by the pair of tasks", labels, scores, [tasks], note=note)


@dataclass(frozen=True, eq=False)
class _UniformPairs:
    """Uniform pairs with their predictions by outcome, under both or under one; `words` say which they are."""

    by_outcome: dict[int, ScoredPairs]
    words: str
    under_both: bool


def _uniform_pairs(study: Study) -> _UniformPairs:
    stored = scored_pool(study)
    questions = candidate_questions(stored)
    if questions is None:
        raise StateRefused(f"{study.slug}: questions were flagged since stage {stored.stage.index} was scored")
    if stored.both_outcomes_sha256:
        rows = files.load_array(stored.both_outcomes_sha256)
        words = (
            f"{counted(len(rows) // 2, 'uniform pair')}, each under both outcomes, scored by {stored.predictor_run}."
        )
    else:
        rows = pool_rows(stored)
        if len(rows) > UNIFORM_PAIRS:
            chosen = generator(stored.stage.seed, "paper figure 2").choice(len(rows), UNIFORM_PAIRS, replace=False)
            rows = rows[np.sort(chosen)]
        words = (
            f"{counted(len(rows), 'uniform pair')} of stage {stored.stage.index}, each under one outcome, scored by "
            f"{stored.predictor_run}. {_under_both(study)}"
        )
    by_outcome = {}
    for outcome in (0, 1):
        inside = rows[rows["outcome"] == outcome]

        def texts(place: int, inside: np.ndarray = inside) -> tuple[str, str]:
            return questions[int(inside["evidence"][place])].plain, questions[int(inside["target"][place])].plain

        by_outcome[outcome] = ScoredPairs(inside[SCORE].astype(np.float64), texts)
    return _UniformPairs(by_outcome, words, bool(stored.both_outcomes_sha256))


def _under_both(study: Study) -> str:
    """How the paper has it, and how to get that, where it is possible."""
    if belief_update_of(study).real is not None:
        return "The study shows what language models really answered, so that a pair has no other outcome."
    return (
        "The paper has 10,000 pairs, each under both outcomes: the job both_outcomes scores such pairs (`hunch jobs "
        "ask "
        f"both_outcomes {study.slug}`)."
    )


def _figure_2(uniform_pairs: _UniformPairs) -> Piece:
    note = f"{uniform_pairs.words} Intervals are of the mean over such pairs."
    return figure_2(uniform_pairs.by_outcome, note, same_pairs=uniform_pairs.under_both)


def _figure_6(uniform_pairs: _UniformPairs) -> Piece:
    return figure_6(
        uniform_pairs.by_outcome, f"{uniform_pairs.words} The prediction of one pair has no interval over pairs."
    )


def _figure_4(study: Study, answered: Sequence[Assignment]) -> Piece:
    seen, failures = misleading(study, answered)
    models = [SeenRight(line.llm, line.change, line.wrong, line.weight, line.respondent) for line in seen]
    pairs = [
        MisleadingPair(
            llm=failure.llm,
            texts=(failure.evidence.plain, failure.target.plain),
            tasks=(failure.evidence.task.name, failure.target.task.name),
            n=failure.answers,
            rise=Figure(failure.gain, failure.low, failure.high),
        )
        for failure in failures
    ]
    note = (
        "Answers after a correct answer on the evidence, of models that really gave it and have answered the target: "
        "how often they are wrong there, by the design's weights. The intervals are over people, or, of a pair, over "
        "its answers; the pairs are those that people saw, ordered by what they said, so that the rise of the first "
        "ones is too large."
    )
    counts = unreadable_of(study, [line.llm for line in seen])
    return figure_4(models, pairs, POINTS, note, {model: count.replies for model, count in counts.items()})


def _figure_7(study: Study, people_study: Study | None, answered: Callable[[], Sequence[Assignment]]) -> Piece:
    try:
        calibration, without = human_calibration(study, people_study=people_study, answered=answered()), ""
    except HunchError as exc:
        if people_study is None:
            raise
        calibration = human_calibration(study, people_study=None, answered=answered())
        without = f"No people: {exc.message}."
    if people_study is None:
        without = (
            "No people: name the study in which people answer these questions themselves (people_study), if there is "
            "one."
        )
    lines = [
        f"{calibration.beliefs} beliefs, {calibration.people} people answering. A belief counts where an "
        "answerer has the outcome "
        "that was shown and has answered the target too. Intervals are Student's, by respondent, question and "
        "answerer.",
        without,
        *(f"{note[0].upper()}{note[1:]}." for note in calibration.notes),
    ]
    return figure_7(calibration.lines, " ".join(filter(None, lines)), calibration.unreadable)


def _first_stage(study: Study, stages: Sequence[Stage]) -> FirstStage:
    if not stages:
        raise StateRefused(f"{study.slug}: the first stage is not frozen yet")
    answers = [
        frozen_answer for frozen_answer in frozen_answers(stages[0]) if beliefs_of(frozen_answer).change is not None
    ]
    if not answers:
        raise StateRefused(f"{study.slug}: the first stage has no answers that count")
    beliefs = [beliefs_of(answer) for answer in answers]
    return FirstStage(
        prior=np.array([belief.prior for belief in beliefs], dtype=np.float64),
        posterior=np.array([belief.posterior for belief in beliefs], dtype=np.float64),
        respondent=np.array([answer.sitting.respondent_id for answer in answers], dtype=np.int64),
        weight=design_weights(answers),
    )


def _figure_3_right(study: Study, stages: Sequence[Stage]) -> Piece:
    """The predictor after stage s on the answers of stage s + 1: it planned that stage, so its scores are stored."""
    threshold = belief_update_of(study).options.threshold
    lines = []
    for stage in stages:
        if stage.config.design.kind in ("uniform", "test_set"):
            continue
        answers = [frozen_answer for frozen_answer in frozen_answers(stage) if frozen_answer.slot.score is not None]
        changed = [beliefs_of(answer).changed(threshold) for answer in answers]
        labelled = [(answer, label) for answer, label in zip(answers, changed, strict=True) if label is not None]
        run = PredictorRun.objects.filter(candidate_sets__stage=stage).select_related("stage").first()
        if not labelled or run is None:
            continue
        scores = np.array([answer.slot.score for answer, _label in labelled], dtype=np.float64)
        if scores.min() < 0 or scores.max() > 1:  # Drawn by a number of the instrument's own, not by a probability.
            continue
        lines.append(
            Ranked(
                name=f"after stage {run.stage.index}, on stage {stage.index}",
                labels=np.array([label for _one, label in labelled], dtype=np.float64),
                scores=scores,
                weights=design_weights([answer for answer, _label in labelled]),
                respondent=np.array([answer.sitting.respondent_id for answer, _label in labelled], dtype=np.int64),
            )
        )
    if not lines:
        raise StateRefused(f"{study.slug}: no frozen stage was drawn by a predictor")
    note = "By the design's weights. Intervals are over people, so that answers of one person may depend on each other."
    return figure_3_right(lines, note)


def _figure_3_held_out(study: Study) -> Piece:
    """Every stage's predictor on the answers of all holdouts."""
    held_out = held_out_of(study)
    inside, scores = scored_by_all(held_out)
    answers = [answer for answer, is_in in zip(held_out.answers, inside.tolist(), strict=True) if is_in]
    _inputs, changed = instruments.learning_of(belief_update_of(study)).checked_examples(answers)
    labels = np.asarray(changed, dtype=np.float64)
    respondent = np.array([answer.sitting.respondent_id for answer in answers], dtype=np.int64)
    lines = [
        Ranked(f"after stage {run.stage.index}", labels, of_run, held_out.weights[inside], respondent)
        for run, of_run in zip(held_out.runs, scores, strict=True)
    ]
    note = (
        f"Every predictor on the same {counted(len(answers), 'held-out answer')}, whose pairs trained none of them, as "
        "the paper has it: the lines can be compared. Intervals are over people."
    )
    return figure_3_right(lines, note, "figure3_held_out", "Figure 3, right, on one held-out set")
