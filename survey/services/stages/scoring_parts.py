"""The predictor's scores of many candidates, in parts that several workers take.

The worker that has the scoring step cuts the candidates into parts and scores them one after the other. Workers that
are free meanwhile take other parts. Each part is a row with a lease: one whose worker died is taken by another when
its lease is over. Where the cuts are depends on the candidates alone, so on machines of one kind the scores do not
depend on who took what.
"""

import hashlib
import io
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from django.db import Error
from django.db.models import F, QuerySet
from django.utils import timezone

from predictors import registry
from predictors import training as predictor_training
from predictors.errors import Stopped
from survey.contracts import instruments
from survey.models import JobStep, PredictorRun, Question, ScoringPart
from survey.services.base import leases
from survey.services.base.hashing import digest
from survey.services.plans.candidates import drawable_questions, question_set_digest
from survey.storage.database import forget_broken_connection

from .claims import Claim
from .training import folders_of

logger = logging.getLogger(__name__)

PART = 2048  # candidates: some 30 s of a large network on two cores
LOOK_AGAIN = 1.0  # seconds between two checks whether others have finished

Progress = Callable[[int, int, str], bool]


@dataclass(frozen=True, eq=False)
class RowScorer:
    """A trained predictor, its files, and the questions that candidate rows name."""

    run: PredictorRun
    folders: Sequence[Path]
    questions: Sequence[Question]
    instrument: instruments.Instrument

    def of(self, rows: np.ndarray, member: int | None, progress: Progress) -> np.ndarray:
        """The chances of label 1 (M,) by one member, or by the mean of all.

        Raises:
            Stopped: `progress` returned False.
        """
        learning = instruments.learning_of(self.instrument)
        inputs = learning.checked_inputs(rows=rows, questions=self.questions)
        return predictor_training.score(self.folders if member is None else [self.folders[member]], inputs, progress)


@dataclass(frozen=True, eq=False)
class SharedScoring:
    """What the worker that has the step scores, with the help of others."""

    held: Claim
    scorer: RowScorer
    questions_sha256: str

    def of(self, rows: np.ndarray, *, member: int | None = None) -> np.ndarray:
        """The chances of label 1 of these candidates, float32 (M,), by one member or by the mean of all.

        Raises:
            Stopped: the claim is lost.
        """
        if len(rows) <= PART or not registry.is_heavy(self.scorer.run.name):
            return self.scorer.of(rows, member, self.held.heartbeat)
        numbers = [self._part(rows[first : first + PART], first, member) for first in range(0, len(rows), PART)]
        parts = ScoringPart.objects.filter(pk__in=numbers)
        while left := dict(parts.exclude(state=ScoringPart.State.DONE).values_list("pk", "count")):
            before = len(rows) - sum(left.values())
            if not self._take_one(parts, list(left), before, len(rows)):
                self._beat(before, len(rows), f"{before} candidates are scored; other workers have the last ones")
                time.sleep(LOOK_AGAIN)
        arrays = {pk: _array(scores) for pk, scores in parts.values_list("pk", "scores") if scores is not None}
        return np.concatenate([arrays[number] for number in numbers])

    def _part(self, rows: np.ndarray, first: int, member: int | None) -> int:
        run, content = self.scorer.run, _bytes(rows)
        inputs = [run.members, member, self.questions_sha256, first, hashlib.sha256(content).hexdigest()]
        part, _created = ScoringPart.objects.get_or_create(
            step=self.held.step,
            input_sha256=digest(inputs),
            defaults={
                "predictor_run": run,
                "member": member,
                "questions_sha256": self.questions_sha256,
                "rows": content,
                "count": len(rows),
            },
        )
        return int(part.pk)

    def _take_one(self, parts: QuerySet[ScoringPart], numbers: Sequence[int], before: int, total: int) -> bool:
        """Score the first of these parts that is free; False if others have them all."""

        def beat(done: int, _of: int, text: str) -> bool:
            return self.held.heartbeat(before + done, total, text)

        part = next((claimed for pk in numbers if (claimed := leases.claim(parts, pk)) is not None), None)
        if part is None:
            return False
        hold = PartHold(part, beat)
        try:
            with _given_back_unless_scored(hold):
                _score(hold, self.scorer)
        except Stopped:
            # Another worker has the part, or the whole step.
            if not self.held.renew():
                raise
        return True

    def _beat(self, done: int, total: int, text: str) -> None:
        if not self.held.heartbeat(done, total, text):
            raise Stopped


class PartHold(leases.Hold[ScoringPart]):
    """One worker's hold on a part, which it renews while it scores."""

    def __init__(self, part: ScoringPart, also: Progress = lambda done, total, text: True) -> None:
        super().__init__(part)
        self._also = also
        self._last_at = time.monotonic()

    def progress(self, done: int, total: int, text: str) -> bool:
        if time.monotonic() - self._last_at >= leases.WRITE_EVERY:
            self._last_at = time.monotonic()
            if not self.renew_if_possible():
                return False
        return self._also(done, total, text)


def steps_to_help() -> list[int]:
    """The scoring steps that a free worker could help with now."""
    free = _for_helpers().filter(ScoringPart.is_free(timezone.now()), step__state=JobStep.State.RUNNING)
    return sorted(set(free.values_list("step", flat=True)))


def help_with(step_id: int) -> int:
    """Score parts of a step that another worker has until none is free; return how many.

    What cannot be scored here is given back: the worker that has the step sees to errors.
    """
    count = 0
    scorers: dict[tuple[int, str], RowScorer] = {}  # Its files and questions are read once.
    while step_id in steps_to_help() and (hold := _claimed_by_helper(step_id)) is not None:
        part = hold.row
        key = part.predictor_run_id, part.questions_sha256
        try:
            with _given_back_unless_scored(hold):
                if key not in scorers:
                    scorers[key] = _scorer_of(part)
                _score(hold, scorers[key])
            count += 1
        except Stopped:
            logger.info("part %s: the claim went to another worker", part.pk)
        except Exception as exc:
            logger.warning("part %s of step %s is not scored here: %s", part.pk, step_id, exc)
            return count
    return count


def _for_helpers() -> QuerySet[ScoringPart]:
    # Without a join: the update that claims a row must look at this row's own columns.
    return ScoringPart.objects.filter(helpers_left__gt=0)


def _claimed_by_helper(step_id: int) -> PartHold | None:
    free = _for_helpers().filter(ScoringPart.is_free(timezone.now()), step=step_id)
    # From the end, where the worker that has the step comes last.
    for pk in free.order_by("-pk").values_list("pk", flat=True):
        if (part := leases.claim(_for_helpers(), pk, helpers_left=F("helpers_left") - 1)) is not None:
            return PartHold(part)
    return None


def _scorer_of(part: ScoringPart) -> RowScorer:
    """
    Raises:
        LookupError: the questions are no longer those that the part's rows name.
    """
    following, run = part.step.stage.following(), part.predictor_run
    if following is None or question_set_digest(following.study) != part.questions_sha256:
        raise LookupError("questions were flagged since it was cut")
    return RowScorer(run, folders_of(run), drawable_questions(following), instruments.of_study(following.study))


@contextmanager
def _given_back_unless_scored(hold: PartHold) -> Iterator[None]:
    """Queue the part again at once if an error ends the work on it."""
    try:
        yield
    except BaseException as exc:
        with suppress(Error):  # The lease then ends by itself.
            forget_broken_connection()
            hold.give_back(sent_at=timezone.now(), error=f"{type(exc).__name__}: {exc}"[:4000])
        raise


def _score(hold: PartHold, scorer: RowScorer) -> None:
    """Score a claimed part and store its scores.

    Raises:
        Stopped: another worker has it.
    """
    part = hold.row
    scores = scorer.of(_array(part.rows), part.member, hold.progress)
    if not hold.end(ScoringPart.State.DONE, scores=_bytes(scores)):
        raise Stopped


def _bytes(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _array(content: bytes | memoryview) -> np.ndarray:
    array: np.ndarray = np.load(io.BytesIO(content), allow_pickle=False)
    return array
