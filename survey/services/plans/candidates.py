"""What a stage may draw from: a uniform pool or all existing items, with the predictor's scores.

A pool is stored row by row in one content-addressed file. "All items" are not listed: what the instrument's `pairing`
made of their scores is stored, and it draws from them.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bandit
from bandit.designs import Design, items_in
from bandit.draws import Stratum
from bandit.errors import DesignError
from survey.contracts import instruments
from survey.exceptions import PlanRefused
from survey.models import CandidateSet, PredictorRun, Question, Slot, Stage, Study
from survey.services.banks.eligibility import eligible_questions
from survey.services.base import files
from survey.services.base.hashing import digest
from survey.services.base.seeds import derive, generator

SCORE = "score"
DISAGREEMENT = "disagreement"
PRIORITY = "priority"
RANK = "rank"


def drawable_questions(stage: Stage) -> list[Question]:
    """
    Raises:
        PlanRefused: no question is left, or one lacks the key that the instrument needs.
    """
    study = stage.study
    instrument = instruments.of_study(study)
    questions = eligible_questions(study)
    if len(questions) < instrument.needs.questions:
        raise PlanRefused(
            f"the study's [questions] leave {len(questions)} of the bank's questions, and {instrument.name} needs "
            f"{instrument.needs.questions}: loosen the filters"
        )
    if instrument.needs.answer_key:
        keyless = [question.external_id for question in questions if not question.answer.strip()]
        if keyless:
            raise PlanRefused(
                f"{len(keyless)} questions have no answer key, which {instrument.name} needs: "
                f"{', '.join(keyless[:5])}; add keys in a new version of the bank or exclude the questions"
            )
    return questions


def question_set_digest(study: Study) -> str:
    """Hash of what decides on the questions to draw from: the bank, the study's filters and the present flags."""
    flagged = study.bank.questions.exclude(flag=Question.Flag.NONE).order_by("position")
    facts = [
        study.bank.sha256,
        study.config.questions.model_dump(mode="json"),
        list(flagged.values_list("position", flat=True)),
    ]
    own = instruments.of_study(study).universe_fingerprint()
    return digest(facts if own is None else [*facts, own])


def planned_questions(stage: Stage) -> list[Question]:
    """The questions that a planned stage was drawn from, in their order, whatever was flagged or became known since.

    Raises:
        KeyError: a plan from before its manifest had them.
        FileNotFoundError: their list is not in the storage.
        ValueError: the list has changed.
    """
    positions = files.load_array(stage.manifest["questions"]["positions_sha256"])
    by_position = {question.position: question for question in stage.study.bank.questions.select_related("task")}
    return [by_position[place] for place in positions.tolist() if place in by_position]


def candidate_questions(stored: CandidateSet) -> list[Question] | None:
    """The questions through which the rows of a candidate set count. None where nobody knows them any more: the stage
    is not planned, and questions were flagged since its candidates were drawn."""
    stage = stored.stage
    if stage.state != Stage.State.DRAFT:
        with suppress(KeyError, FileNotFoundError):
            return planned_questions(stage)
    return eligible_questions(stage.study) if stored.questions_sha256 == question_set_digest(stage.study) else None


def planned_before(stage: Stage) -> set[str]:
    """Keys of the items that may not be drawn: in a test set, all that an earlier stage of the study planned.

    It uses the plans, since answers can be withdrawn and a plan must be the same when it is drawn again.
    """
    if stage.config.design.kind != "test_set":
        return set()
    earlier = Slot.objects.filter(stage__in=stage.study.main_stages().filter(index__lt=stage.index))
    return set(earlier.values_list("item__key", flat=True))


def draw_candidates(stage: Stage, questions: Sequence[Question]) -> instruments.Candidates:
    """The stage's uniform candidate set. The same seed and questions give the same set on every machine.

    Raises:
        PlanRefused: nothing is left to draw from.
    """
    try:
        return instruments.of_study(stage.study).draw_candidates(
            questions=questions,
            size=stage.study.config.candidates.size,
            rng=generator(stage.seed, "candidates"),
            exclude=planned_before(stage),
        )
    except DesignError as exc:
        raise PlanRefused(f"stage {stage.index} has no candidates: {exc}") from exc


def store_candidates(
    stage: Stage,
    candidates: instruments.Candidates,
    *,
    questions_sha256: str,
    scores: np.ndarray | None = None,
    disagreement: np.ndarray | None = None,
    priority: np.ndarray | None = None,
    predictor_run: PredictorRun | None = None,
) -> CandidateSet:
    """Store a pool (with its scores and priority, if there are any) as one file, and the row that names it."""
    rows = candidates.rows
    if scores is not None:
        rows = with_column(rows, SCORE, scores)
    if disagreement is not None:
        rows = with_column(rows, DISAGREEMENT, disagreement)
    if priority is not None:
        rows = with_column(rows, PRIORITY, priority)
    return _stored(
        stage,
        scored=scores is not None or priority is not None,
        kind=CandidateSet.Kind.POOL,
        size=len(rows),
        universe_size=candidates.universe_size,
        # The pool is drawn from what is not left out, so the size over the chance says how much that is.
        excluded=candidates.universe_size - round(len(rows) / candidates.probability),
        probability=candidates.probability,
        predictor_run=predictor_run,
        file_sha256=files.store_array(rows),
        questions_sha256=questions_sha256,
    )


def store_everything(
    stage: Stage,
    everything: "Everything",
    *,
    questions_sha256: str,
    drawn: np.ndarray | None = None,
    uniform: np.ndarray | None = None,
    fidelity: Mapping[str, Any] | None = None,
    predictor_run: PredictorRun | None = None,
) -> CandidateSet:
    """The row for "all items", with the files of the scores that cut them into strata.

    `drawn`: the rows that the stage's seed draws, with the predictor's own scores. `uniform`: uniform rows with theirs.
    """
    shortlist = everything.shortlist
    return _stored(
        stage,
        scored=predictor_run is not None,
        kind=CandidateSet.Kind.EXHAUSTIVE,
        size=everything.universe_size - everything.excluded,
        universe_size=everything.universe_size,
        excluded=everything.excluded,
        probability=1.0,
        predictor_run=predictor_run,
        file_sha256="" if everything.scores is None else files.store_array(everything.scores),
        shortlist_sha256="" if shortlist is None else files.store_array(shortlist),
        drawn_sha256="" if drawn is None else files.store_array(drawn),
        uniform_sha256="" if uniform is None else files.store_array(uniform),
        fidelity=dict(fidelity or {}),
        questions_sha256=questions_sha256,
    )


def _stored(stage: Stage, *, scored: bool, **values: Any) -> CandidateSet:
    """Scored candidates replace unscored ones, but unscored ones never replace scored ones."""
    # What an earlier predictor made of pairs under both outcomes is not this one's.
    values = {"seed": derive(stage.seed, "candidates"), "both_outcomes_sha256": "", **values}
    if scored:
        stored, _created = CandidateSet.objects.update_or_create(stage=stage, defaults=values)
    else:
        stored, _created = CandidateSet.objects.get_or_create(stage=stage, defaults=values)
    return stored


def candidates_are_outdated(stage: Stage) -> bool:
    """Whether a flag was set or removed since the candidates were drawn: their rows then mean other questions."""
    stored = CandidateSet.objects.filter(stage=stage).first()
    return stored is not None and stored.questions_sha256 != question_set_digest(stage.study)


@dataclass(frozen=True, eq=False)
class ListedPool:
    """A listed candidate set: its rows, which may hold scores, and each item's chance of being in it."""

    rows: np.ndarray
    probability: float


@dataclass(frozen=True, eq=False)
class Everything:
    """All items except `exclude` (keys), and the scores that cut them: none, all scores, or these and a shortlist.

    `scores`: as the instrument's `pairing` made them. `shortlist`: a structured array of ranks (increasing) and the
    predictor's own scores. `drawn`: what the predictor gave the items that are drawn, by key.
    """

    universe_size: int
    exclude: frozenset[str] = frozenset()
    excluded: int = 0
    scores: np.ndarray | None = None
    shortlist: np.ndarray | None = None
    drawn: Mapping[str, float] | None = None


@dataclass(frozen=True, eq=False)
class DrawnSlots:
    """n sampled slots in the order of the draw: rows without scores, and one entry a slot in every array.

    `score` is NaN if the predictor gave none. `replicates` is how many slots each drawn item has.
    """

    rows: np.ndarray
    stratum: NDArray[np.int8]
    inclusion_probability: NDArray[np.float64]
    pool_probability: float
    strata: tuple[Stratum, ...]
    replicate: NDArray[np.int16]
    score: NDArray[np.float64]
    replicates: int


def load_source(stored: CandidateSet, *, exclude: set[str], questions: Sequence[Question]) -> ListedPool | Everything:
    """The source that a stored candidate set draws from.

    Raises:
        ValueError: a stored file has changed.
        FileNotFoundError: a file is not in the storage.
    """
    if stored.kind == CandidateSet.Kind.POOL:
        return ListedPool(rows=files.load_array(stored.file_sha256), probability=stored.probability)
    instrument = instruments.of_study(stored.stage.study)
    drawn = files.load_array(stored.drawn_sha256) if stored.drawn_sha256 else None
    return Everything(
        universe_size=stored.universe_size,
        exclude=frozenset(exclude),
        excluded=stored.excluded,
        scores=files.load_array(stored.file_sha256) if stored.file_sha256 else None,
        shortlist=files.load_array(stored.shortlist_sha256) if stored.shortlist_sha256 else None,
        drawn=None if drawn is None else {instrument.item_key(row, questions): float(row[SCORE]) for row in drawn},
    )


def draw_slots(
    source: ListedPool | Everything,
    *,
    design: Design,
    n: int,
    seed: int,
    instrument: instruments.Instrument,
    questions: Sequence[Question],
    responses_per_item: int,
    progress: instruments.BlockProgress | None = None,
) -> DrawnSlots:
    """Draw a stage's sampled slots. The same source, design and seed give the same slots on every machine.

    Args:
        progress: called after each part of a draw from all items, which may take minutes.

    Raises:
        DesignError: the design does not fit the candidates; the message has the sizes.
    """
    rng = generator(seed, "draw")
    if isinstance(source, ListedPool):
        return _from_pool(source, design, n, rng, responses_per_item)
    if source.scores is None:
        return _uniformly(source, design, n, rng, instrument, questions, responses_per_item)
    return _from_everything(source, source.scores, design, n, rng, instrument, questions, responses_per_item, progress)


def with_column(rows: np.ndarray, name: str, column: np.ndarray) -> np.ndarray:
    """The rows with one more field of float32."""
    from numpy.lib import recfunctions  # Late: it loads all of numpy's masked arrays.

    extended: np.ndarray = recfunctions.append_fields(rows, name, column.astype("<f4"), usemask=False)
    return extended


def plain_rows(rows: np.ndarray) -> np.ndarray:
    """Rows without the scores of the predictor or the instrument."""
    said = [name for name in (SCORE, DISAGREEMENT, PRIORITY) if name in (rows.dtype.names or ())]
    if not said:
        return rows
    from numpy.lib import recfunctions

    return recfunctions.drop_fields(rows, said, usemask=False)


def drawing_scores(rows: np.ndarray) -> NDArray[np.float64] | None:
    """The scores by which a design draws from a pool (M,): the instrument's priority if any, else the chances."""
    priority = column_of(rows, PRIORITY)
    return column_of(rows, SCORE) if priority is None else priority


def column_of(rows: np.ndarray, name: str) -> NDArray[np.float64] | None:
    """A column of a pool's rows (M,); None if there is none with that name."""
    return rows[name].astype(np.float64) if name in (rows.dtype.names or ()) else None


def _from_pool(
    source: ListedPool, design: Design, n: int, rng: np.random.Generator, responses_per_item: int
) -> DrawnSlots:
    scores = column_of(source.rows, SCORE)
    drawn = bandit.draw(
        design=design,
        n=n,
        scores=drawing_scores(source.rows),
        n_candidates=len(source.rows),
        rng=rng,
        disagreement=column_of(source.rows, DISAGREEMENT),
        responses_per_item=responses_per_item,
    )
    return DrawnSlots(
        rows=plain_rows(source.rows[drawn.selected]),
        stratum=drawn.stratum,
        inclusion_probability=drawn.inclusion_probability,
        pool_probability=source.probability,
        strata=drawn.strata,
        replicate=drawn.replicate,
        score=np.full(n, np.nan) if scores is None else scores[drawn.selected],
        replicates=responses_per_item * design.replicates,
    )


def _uniformly(
    source: Everything,
    design: Design,
    n: int,
    rng: np.random.Generator,
    instrument: instruments.Instrument,
    questions: Sequence[Question],
    responses_per_item: int,
) -> DrawnSlots:
    """Draw from all items, each with the same chance: no score is needed."""
    available = source.universe_size - source.excluded
    items = items_in(n, responses_per_item)
    design.allocate(items, (available,))
    drawn = instrument.draw_candidates(questions=questions, size=items, rng=rng, exclude=source.exclude)
    order = rng.permutation(n)
    rows = np.repeat(drawn.rows, responses_per_item)[order]
    return DrawnSlots(
        rows=rows,
        stratum=np.zeros(n, dtype=np.int8),
        inclusion_probability=np.full(n, items / available),
        pool_probability=1.0,
        strata=(Stratum("all", available, n, lowest=None, mean=None, highest=None),),
        replicate=(order % responses_per_item + 1).astype(np.int16),
        score=_known_scores(source, rows, instrument, questions),
        replicates=responses_per_item,
    )


def _from_everything(
    source: Everything,
    scores: np.ndarray,
    design: Design,
    n: int,
    rng: np.random.Generator,
    instrument: instruments.Instrument,
    questions: Sequence[Question],
    responses_per_item: int,
    progress: instruments.BlockProgress | None,
) -> DrawnSlots:
    best = source.shortlist
    drawn = instruments.pairing_of(instrument).draw(
        scores,
        design=design,
        n=n,
        questions=questions,
        rng=rng,
        exclude=source.exclude,
        shortlist=None if best is None else (best[RANK], best[SCORE].astype(np.float64)),
        responses_per_item=responses_per_item,
        progress=progress,
    )
    return DrawnSlots(
        rows=drawn.rows,
        stratum=drawn.stratum,
        inclusion_probability=drawn.inclusion_probability,
        pool_probability=1.0,
        strata=drawn.strata,
        replicate=drawn.replicate,
        score=_known_scores(source, drawn.rows, instrument, questions),
        replicates=responses_per_item * design.replicates,
    )


def _known_scores(
    source: Everything, rows: np.ndarray, instrument: instruments.Instrument, questions: Sequence[Question]
) -> NDArray[np.float64]:
    """The predictor's scores of these rows; NaN if it was not asked."""
    known = source.drawn or {}
    return np.array([known.get(instrument.item_key(row, questions), np.nan) for row in rows], dtype=np.float64)
