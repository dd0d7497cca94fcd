"""Drawing a stage's plan again from its manifest, to check that it equals the stored one. Writes nothing.

Works on any machine with the database and the stored files: nothing is trained or scored again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bandit.errors import DesignError
from survey.contracts import instruments
from survey.contracts.screens import Points
from survey.exceptions import PlanRefused, StateRefused
from survey.models import Assignment, CandidateSet, Question, Response, Stage
from survey.services.answers.counting import with_answers
from survey.services.answers.exclusions import snapshot_digest
from survey.services.answers.majorities import facts_of, majorities_of
from survey.services.base import files
from survey.services.base.hashing import digest
from survey.services.plans.candidates import (
    draw_candidates,
    drawable_questions,
    load_source,
    plain_rows,
    planned_before,
    planned_questions,
)
from survey.services.plans.drafting import Draft, Recipe, draft

from .lifecycle import answer_digest

MAX_IDS_IN_MESSAGE = 5


@dataclass
class Verification:
    """The result. `withdrawn` counts the snapshot's answers that people withdrew; None if there is no snapshot yet."""

    stage: Stage
    differences: list[str] = field(default_factory=list)
    slots: int = 0
    answers: int | None = None
    withdrawn: int = 0

    @property
    def agrees(self) -> bool:
        return not self.differences


def verify_stage(stage: Stage) -> Verification:
    """Rebuild a planned stage from its manifest and compare it with what is stored.

    Raises:
        StateRefused: the stage has no plan yet.
    """
    if stage.state == Stage.State.DRAFT:
        raise StateRefused(f"stage {stage.index} is not planned yet: there is nothing to verify")
    verification = Verification(stage)
    # Use the study file that it was drawn by: it may have been amended since.
    stage.study = stage.study.under(stage.manifest.get("study_file_sha256", ""))
    questions = _questions(stage, verification)
    if questions is not None:
        rebuilt = _rebuilt(stage, questions, verification)
        if rebuilt is not None:
            verification.slots = len(rebuilt.slots)
            verification.differences += _plan_differences(stage, rebuilt)
    if stage.snapshot_sha256:
        _verify_snapshot(stage, verification)
        _verify_majorities(stage, verification)
    return verification


def _questions(stage: Stage, verification: Verification) -> list[Question] | None:
    """The questions that the stage was drawn from, whatever has been flagged since."""
    bank, manifest = stage.study.bank, stage.manifest
    if bank.sha256 != manifest["bank"]["sha256"]:
        verification.differences.append(
            f"bank: {bank} has the hash {bank.sha256}, the manifest {manifest['bank']['sha256']}"
        )
        return None
    if "positions_sha256" in manifest["questions"]:
        sha256 = manifest["questions"]["positions_sha256"]
        if _file(sha256, "the list of questions", verification) is None:
            return None
        questions = planned_questions(stage)
    else:
        try:
            questions = drawable_questions(stage)
        except PlanRefused as exc:
            verification.differences.append(f"questions: {exc.message}")
            return None
    if digest([question.external_id for question in questions]) != manifest["questions"]["sha256"]:
        verification.differences.append(
            f"questions: the {len(questions)} that are drawn from now are not the {manifest['questions']['count']} of "
            "the plan; were questions flagged since?"
        )
        return None
    return questions


def _file(sha256: str, what: str, verification: Verification) -> np.ndarray | None:
    try:
        return files.load_array(sha256)
    except FileNotFoundError:
        verification.differences.append(f"{what}: the file {sha256} is not in the storage")
    except ValueError as exc:
        verification.differences.append(f"{what}: {exc}")
    return None


def _rebuilt(stage: Stage, questions: Sequence[Question], verification: Verification) -> Draft | None:
    stored = _candidates(stage)
    try:
        source = load_source(stored, exclude=planned_before(stage), questions=questions)
    except FileNotFoundError as exc:
        verification.differences.append(f"candidates: a file is not in the storage ({exc.filename})")
        return None
    except ValueError as exc:
        verification.differences.append(f"candidates: {exc}")
        return None
    if stored.kind == CandidateSet.Kind.POOL:
        try:
            again = draw_candidates(stage, questions)
        except PlanRefused as exc:
            verification.differences.append(f"candidates: {exc.message}")
            return None
        if not np.array_equal(again.rows, plain_rows(files.load_array(stored.file_sha256))):
            verification.differences.append("candidates: the stage's seed draws other candidates than those stored")
    try:
        return draft(
            Recipe.of_manifest(stage.manifest),
            source,
            instrument=instruments.of_study(stage.study),
            questions=questions,
        )
    except DesignError as exc:
        verification.differences.append(f"plan: cannot be drawn again: {exc}")
        return None


def _candidates(stage: Stage) -> CandidateSet:
    """The candidate set as the manifest describes it; its row may have changed since."""
    drawn: Mapping[str, Any] = stage.manifest["candidates"]
    return CandidateSet(
        stage=stage,
        kind=drawn.get("kind", CandidateSet.Kind.POOL),
        size=drawn["size"],
        universe_size=drawn["universe_size"],
        excluded=drawn.get("excluded", 0),
        probability=drawn["probability"],
        file_sha256=drawn["sha256"],
        shortlist_sha256=drawn.get("shortlist_sha256", ""),
        drawn_sha256=drawn.get("drawn_sha256", ""),
    )


def _plan_differences(stage: Stage, rebuilt: Draft) -> Iterator[str]:
    """Compare by hash, and slot by slot what never changes after planning. Booklets may: slots are dealt again."""
    for where, sha256 in (("the stage", stage.plan_sha256), ("the manifest", stage.manifest["plan_sha256"])):
        if sha256 != rebuilt.sha256:
            yield f"plan: rebuilt with the hash {rebuilt.sha256}, {where} has {sha256}"
    stored = list(stage.slots.select_related("item", "stratum", "repeat_of").order_by("number"))
    if len(stored) != len(rebuilt.slots):
        yield f"slots: {len(stored)} are stored, {len(rebuilt.slots)} are rebuilt"
    compared: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
        "item": (lambda slot: slot.item.key, lambda slot: slot.key),
        "role": (lambda slot: slot.role, lambda slot: slot.role),
        "replicate": (lambda slot: slot.replicate, lambda slot: slot.replicate),
        "control_kind": (lambda slot: slot.control_kind, lambda slot: slot.control_kind),
        "repeat_of": (lambda slot: slot.repeat_of and slot.repeat_of.number, lambda slot: slot.repeat_of),
        "stratum": (lambda slot: slot.stratum and slot.stratum.name, lambda slot: slot.stratum),
        "inclusion_probability": (
            lambda slot: slot.inclusion_probability,
            lambda slot: slot.inclusion_probability,
        ),
        "pool_probability": (lambda slot: slot.pool_probability, lambda slot: slot.pool_probability),
        "score": (lambda slot: slot.score, lambda slot: slot.score),
    }
    for name, (in_table, in_plan) in compared.items():
        other = [
            slot.number
            for slot, planned in zip(stored, rebuilt.slots, strict=False)
            if in_table(slot) != in_plan(planned)
        ]
        if other:
            yield f"slots: {name} differs in {len(other)}, first in {', '.join(map(str, other[:MAX_IDS_IN_MESSAGE]))}"


def _verify_exclusions(stage: Stage, excluded: set[int], verification: Verification) -> None:
    """Compare the answers that are left out now with those in the manifest; withdrawn ones are ignored."""
    now = stage.snapshot.filter(withdrawn_at__isnull=True, assignment__sitting__exclusion__isnull=False)
    numbers = set(now.values_list("number", flat=True))
    if numbers != excluded:
        other = sorted(numbers ^ excluded)
        verification.differences.append(
            f"exclusions: {len(other)} answers are left out by the table and not by the manifest, or the other way "
            f"round, first number {', '.join(map(str, other[:MAX_IDS_IN_MESSAGE]))}"
        )


def _verify_majorities(stage: Stage, verification: Verification) -> None:
    """The labels that the frozen answers make, against those of the manifest. What was withdrawn since is in the
    manifest's and no longer in the answers, so that they can be compared only where nothing was."""
    frozen = stage.manifest.get("majorities")
    if frozen is None or verification.withdrawn or stage.state != Stage.State.FROZEN:
        return
    now = facts_of(majorities_of(stage), stage)
    if now != frozen:
        names = ", ".join(name for name in now if now[name] != frozen.get(name))
        verification.differences.append(f"majorities: the frozen answers make others than the manifest has ({names})")


def _verify_snapshot(stage: Stage, verification: Verification) -> None:
    """The hash of every frozen answer that was not withdrawn, and the hash over all of them."""
    frozen = list(stage.snapshot.order_by("number"))
    remaining = {row.assignment_id: row for row in frozen if row.assignment_id is not None and row.withdrawn_at is None}
    verification.answers, verification.withdrawn = len(frozen), len(frozen) - len(remaining)
    snapshot = stage.manifest.get("snapshot", {})
    if snapshot_digest([row.digest for row in frozen], snapshot) != stage.snapshot_sha256:
        verification.differences.append("snapshot: its hashes do not make the snapshot's hash")
    _verify_exclusions(
        stage, {row.number for row in remaining.values()} & set(snapshot.get("excluded", ())), verification
    )
    instrument = instruments.of_study(stage.study)
    changed, scored_otherwise = [], []
    ids = list(remaining)
    for start in range(0, len(ids), 500):
        from_table = Assignment.objects.filter(pk__in=ids[start : start + 500])
        for answer in with_answers(from_table, stage.study):
            number = remaining[answer.pk].number
            if answer_digest(answer, instrument) != remaining[answer.pk].digest:
                changed.append(number)
            if any(_stored_points(response) != instrument.score(response) for response in answer.responses.all()):
                scored_otherwise.append(number)
    if changed:
        verification.differences.append(
            f"snapshot: {len(changed)} answers were changed since, first number "
            f"{', '.join(map(str, sorted(changed)[:MAX_IDS_IN_MESSAGE]))} (or the identity key is another one)"
        )
    if scored_otherwise:
        verification.differences.append(
            f"points: {len(scored_otherwise)} answers would get other points now, first number "
            f"{', '.join(map(str, sorted(scored_otherwise)[:MAX_IDS_IN_MESSAGE]))} (or a language model's answer has "
            "been judged again since)"
        )


def _stored_points(response: Response) -> Points | None:
    score = getattr(response, "score", None)
    return None if score is None else Points(score.value, score.rule, score.version)
