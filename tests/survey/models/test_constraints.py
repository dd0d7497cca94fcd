"""The database enforces the invariants: every named constraint refuses what it should."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, models, transaction
from django.utils import timezone

from survey.instruments.belief_update.models import (
    Aid,
    Belief,
    Explanation,
    Pair,
    QuestionVector,
    ReasonCode,
    TargetAnswer,
)
from survey.instruments.own_answers.models import AskedQuestion, OwnAnswer
from survey.models import (
    Alert,
    Amendment,
    AnswerCollection,
    ApiToken,
    Assignment,
    AssignmentCondition,
    AttentionAnswer,
    BudgetCount,
    CandidateSet,
    CheckAttempt,
    CompletionCode,
    ConditionLevel,
    CutText,
    Delivery,
    EntryLink,
    Erasure,
    Evaluation,
    FormAnswer,
    Job,
    JobStep,
    LanguageModel,
    Look,
    ModelAnswer,
    NgramModel,
    PanelIdentity,
    Payment,
    PaymentBatch,
    Posting,
    PostingPart,
    PracticeAnswer,
    PredictorRun,
    Question,
    QuestionReport,
    QuotaPlace,
    Reading,
    Receiver,
    Response,
    ScoringPart,
    ScreenTiming,
    Sitting,
    Slot,
    SnapshotAnswer,
    Stage,
    StoredEstimate,
    Stratum,
    StudyInvitation,
    StudyMembership,
    Submission,
    TokenExpectation,
    TokenizerRecord,
    UnfinishedScreen,
    Upload,
    WaveIdentity,
    WebhookEvent,
    WordNetwork,
)
from tests import cast
from tests.kept import kept

pytestmark = [pytest.mark.django_db, pytest.mark.every_database]

LEVELS = [
    {"factor": "wording", "levels": ["short", "long"]},
    {"factor": "mode", "levels": ["field", "choice"], "per": "item"},
]


@dataclass
class World:
    """One row of everything."""

    stage: Stage
    sitting: Sitting
    open_assignment: Assignment
    counted: Assignment

    def a(self, model: type[models.Model]) -> Any:
        return model.objects.order_by("pk").first()


@pytest.fixture
def world() -> World:
    return one_row_of_everything()


@kept
def one_row_of_everything() -> World:
    stage = cast.open_stage(conditions=LEVELS, stages=[{"sittings": 4}, {"sittings": 4}])
    visitor = cast.Visitor(stage.study).to_items()
    visitor.answer()
    now = timezone.now()
    counted, open_assignment = visitor.sitting.assignments.order_by("position")[:2]
    FormAnswer.objects.create(sitting=visitor.sitting, block="form", answers={}, at=now)
    QuotaPlace.objects.create(
        sitting=visitor.sitting, stage=stage, quota="age", cell="young", state="held", answers={"age": 20}, at=now
    )
    PracticeAnswer.objects.create(sitting=visitor.sitting, number=1, screen="prior", data={}, at=now)
    AttentionAnswer.objects.create(
        sitting=visitor.sitting, name="read", position=1, answer=0, shown=[0, 1], passed=True, at=now
    )
    QuestionReport.objects.create(sitting=visitor.sitting, assignment=counted, screen="prior", text="odd", at=now)
    SnapshotAnswer.objects.create(stage=stage, number=1, assignment=counted, digest="0" * 64)
    posting = Posting.objects.create(
        study=stage.study,
        stage=stage,
        panel="prolific",
        internal_name="one",
        external_id="1",
        reward=100,
        currency="USD",
        places=4,
        expected_minutes=10,
    )
    submission = Submission.objects.create(
        posting=posting, submission_hash="0" * 64, ids_encrypted=b"", status="ACTIVE", read_at=now
    )
    batch = PaymentBatch.objects.create(posting=posting)
    Payment.objects.create(batch=batch, submission=submission, kind="late", amount=100)
    UnfinishedScreen.objects.create(sitting=visitor.sitting, step=9, number=1, kind="item", left_at=now)
    WaveIdentity.objects.create(identity=visitor.sitting.respondent.panel_identity, wave=2, ids_encrypted=b"x")
    EntryLink.objects.create(study=stage.study, number=1, token_hash="0" * 64)
    user = User.objects.create_user("member")
    ApiToken.issue(user=user)
    StudyMembership.objects.create(study=stage.study, user=user, role="owner")
    StudyInvitation.objects.create(
        study=stage.study, token_hash="0" * 64, role="viewer", invited_by=user, expires_at=now, accepted_at=now
    )
    WebhookEvent.objects.create(
        panel="prolific", event_id="1", event_type="x", body_encrypted=b"", due_at=now, signed_sha256="a"
    )
    asked = LanguageModel.objects.create(name="one")
    bank = stage.study.bank
    AnswerCollection.objects.create(language_model=asked, bank=bank, model="one")
    ModelAnswer.objects.create(language_model=asked, question=bank.questions.get(position=0), correct=True)
    Reading.objects.create(
        language_model=asked,
        text_sha256="0" * 64,
        characters=1,
        source="local:m",
        source_sha256="0" * 64,
        tokenizer_sha256="0" * 64,
        token_count=1,
        tokens=b"x",
        code_version="1",
    )
    counts = {"vocabulary_size": 3, "states": 1, "train_texts": 1, "input_sha256": "0" * 64}
    NgramModel.objects.create(name="two", order=2, unit="word", smoothing="none", **counts)
    WordNetwork.objects.create(name="small", **cast.A_NETWORK)
    Amendment.objects.create(
        study=stage.study,
        at=now,
        reason="a typo",
        was_locked=True,
        old_sha256="0" * 64,
        new_sha256="1" * 64,
        old_text="",
        old_config={},
    )
    run = PredictorRun.objects.create(stage=stage, name="bert", seed=1, input_sha256="0" * 64, example_count=1)
    Evaluation.objects.create(predictor_run=run, stage=stage, metrics={})
    step = JobStep.objects.create(stage=stage, kind="freeze", input_sha256="0" * 64)
    StoredEstimate.objects.create(study=stage.study, asked={}, asked_sha256="0" * 64)
    Job.objects.create(study=stage.study, kind="export", asked_sha256="0" * 64)
    seen = {"value": 0.4, "standard_error": 0.05, "low": 0.2, "high": 0.6}
    Look.objects.create(stage=stage, number=1, at=now, answers_until=now, people=30, answers=90, reached=True, **seen)
    ScoringPart.objects.create(step=step, predictor_run=run, rows=b"", count=1, input_sha256="0" * 64)
    return World(stage, visitor.sitting, open_assignment, counted)


def change(row: models.Model, **values: Any) -> None:
    type(row)._default_manager.filter(pk=row.pk).update(**values)


def double(row: models.Model, **values: Any) -> None:
    """Insert the row once more, with other values where given."""
    fields = {
        field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields if not field.primary_key
    }
    type(row)._default_manager.create(**{**fields, **values})


def a_tokenizer(words: bytes = b"x") -> TokenizerRecord:
    made, _new = TokenizerRecord.objects.get_or_create(
        source="characters", defaults={"sha256": "0" * 64, "size": 1, "words": words}
    )
    return made


def cut(tokenizer: TokenizerRecord) -> CutText:
    return CutText.objects.create(tokenizer=tokenizer, text_sha256="0" * 64, token_count=1, tokens=b"x")


def expect(world: World, tokenizer: TokenizerRecord) -> TokenExpectation:
    return TokenExpectation.objects.create(
        language_model=world.a(LanguageModel),
        tokenizer=tokenizer,
        text_sha256="0" * 64,
        source="ngram:two",
        source_sha256="0" * 64,
        code_version="1",
        values=b"x",
    )


def code_reason(w: World, coder: str, code: str) -> None:
    explanation, _is_new = Explanation.objects.get_or_create(response=w.a(Response), defaults={"text": "It is luck."})
    ReasonCode.objects.create(explanation=explanation, coder=coder, code=code)


def add_aid(w: World, **values: Any) -> None:
    fields = {"asked": 5, "right": 1, "language_model": "parrot", "similarity": "words", "questions": []}
    Aid.objects.create(pair=w.a(Pair), **{**fields, **values})


def two_uploads(w: World) -> None:
    user, now = w.a(StudyMembership).user, timezone.now()
    for _ in range(2):
        Upload.objects.create(user=user, name="a.csv", sha256="0" * 64, content=b"", created_at=now, expires_at=now)


def two_parts(w: World) -> None:
    for _ in range(2):
        PostingPart.objects.create(posting=w.a(Posting), panel="prolific", external_id="one")


def other_pseudonym(w: World) -> int:
    return cast.Respondent.objects.create(study=w.stage.study).pk


def a_delivery(w: World) -> Delivery:
    now = timezone.now()
    receiver = Receiver.objects.create(study=w.stage.study, kind="email", shown="a@example.org", sealed=b"", since=now)
    return Delivery.objects.create(receiver=receiver, event_id="evt_1", event="test", body={}, due_at=now)


REFUSED: dict[str, Callable[[World], Any]] = {
    "alert_open_once": lambda w: [
        Alert.objects.create(
            cause="disk_low", subject="disk", message=message, opened_at=timezone.now(), seen_at=timezone.now()
        )
        for message in ("first", "second")
    ],
    "receiver_kind_known": lambda w: change(a_delivery(w).receiver, kind="pigeon"),
    "delivery_once_an_event": lambda w: double(a_delivery(w)),
    "delivery_state_known": lambda w: change(a_delivery(w), state="lost"),
    "delivery_running_has_a_lease": lambda w: change(a_delivery(w), state="running"),
    "bank_name_and_version_unique": lambda w: double(w.stage.study.bank),
    "bank_version_at_least_1": lambda w: change(w.stage.study.bank, version=0),
    "task_name_unique_in_bank": lambda w: double(w.a(cast.Task)),
    "question_id_unique_in_bank": lambda w: double(w.a(cast.Question), position=999),
    "question_position_unique_in_bank": lambda w: double(w.a(cast.Question), external_id="another"),
    "question_text_not_empty": lambda w: change(w.a(cast.Question), text=""),
    "question_flag_needs_a_reason": lambda w: change(w.a(cast.Question), flag="broken"),
    "completion_code_one_an_outcome": lambda w: double(w.a(CompletionCode), code="another"),
    "completion_code_unique_in_study": lambda w: change(
        CompletionCode.objects.get(outcome="completed"), code=CompletionCode.objects.get(outcome="study_full").code
    ),
    "study_locked_with_a_hash": lambda w: change(w.stage.study, locked_sha256=""),
    "study_test_copy_by_its_name": lambda w: change(w.stage.study, slug="cast_test"),
    "amendment_has_a_reason": lambda w: change(w.a(Amendment), reason=""),
    "amendment_changes_the_file": lambda w: change(w.a(Amendment), new_sha256="0" * 64),
    "sitting_withdrawn_is_not_live": lambda w: change(w.sitting, withdrawn_at=timezone.now()),
    "stage_index_unique_in_study": lambda w: double(w.stage),
    "stage_index_at_least_1": lambda w: change(w.stage, index=0),
    "stage_state_known": lambda w: change(w.stage, state="over"),
    "stage_past_draft_has_a_plan": lambda w: change(w.stage, plan_sha256=""),
    "stage_frozen_has_a_snapshot": lambda w: change(w.stage, state="frozen"),
    "item_key_unique_in_study": lambda w: double(w.counted.slot.item),
    "candidate_set_probability_in_0_1": lambda w: change(w.a(CandidateSet), probability=0),
    "candidate_set_size_in_universe": lambda w: change(w.a(CandidateSet), universe_size=1),
    "stratum_name_unique_in_stage": lambda w: double(w.a(Stratum)),
    "stratum_slots_within_size": lambda w: change(w.a(Stratum), size=1),
    "look_number_unique_in_stage": lambda w: double(w.a(Look), reached=False),
    "look_reached_once_a_stage": lambda w: double(w.a(Look), number=2),
    "look_low_below_high": lambda w: change(w.a(Look), low=0.9),
    "booklet_number_unique_in_stage": lambda w: double(w.sitting.booklet),
    "slot_number_unique_in_stage": lambda w: double(w.a(Slot), replicate=2, booklet_id=None, position=None),
    "slot_item_once_a_replicate": lambda w: double(w.a(Slot), number=999, booklet_id=None, position=None),
    "slot_position_unique_in_booklet": lambda w: double(w.a(Slot), number=999, replicate=2),
    "slot_repeated_at_most_once": lambda w: [
        double(w.a(Slot), number=number, role="repeat", repeat_of_id=w.a(Slot).pk, booklet_id=None, position=None)
        for number in (998, 999)
    ],
    "slot_control_has_a_kind": lambda w: change(w.a(Slot), role="control"),
    "slot_repeat_names_its_slot": lambda w: change(w.a(Slot), role="repeat"),
    "slot_role_known": lambda w: change(w.a(Slot), role="decoy"),
    "slot_booklet_and_position_together": lambda w: change(w.a(Slot), position=None),
    "slot_drawn_has_probabilities": lambda w: change(w.a(Slot), inclusion_probability=None),
    "snapshot_number_unique_in_stage": lambda w: double(w.a(SnapshotAnswer), assignment_id=None),
    "snapshot_assignment_once_in_stage": lambda w: double(w.a(SnapshotAnswer), number=2),
    "predictor_run_once_an_input": lambda w: double(w.a(PredictorRun)),
    "predictor_run_role_known": lambda w: change(w.a(PredictorRun), role="rival"),
    "evaluation_once_a_run_and_stage": lambda w: double(w.a(Evaluation)),
    "posting_once_a_panel_study": lambda w: double(w.a(Posting), internal_name="two"),
    "posting_part_once_a_panel": two_parts,
    "upload_once_a_user_and_file": two_uploads,
    "posting_reward_at_least_1": lambda w: change(w.a(Posting), reward=0),
    "posting_places_at_least_1": lambda w: change(w.a(Posting), places=0),
    "posting_pending_known": lambda w: change(w.a(Posting), pending="burn", pending_at=w.a(Submission).read_at),
    "posting_pending_has_a_time": lambda w: change(w.a(Posting), pending="draft"),
    "submission_once_a_posting": lambda w: double(w.a(Submission)),
    "submission_resolution_has_a_time": lambda w: change(w.a(Submission), resolution="looked at it"),
    "submission_pending_known": lambda w: change(w.a(Submission), pending="burn", pending_at=w.a(Submission).read_at),
    "submission_pending_has_a_time": lambda w: change(w.a(Submission), pending_at=w.a(Submission).read_at),
    "payment_batch_state_known": lambda w: change(w.a(PaymentBatch), state="lost", sent_at=w.a(Submission).read_at),
    "payment_batch_paid_was_sent": lambda w: change(w.a(PaymentBatch), state="paid"),
    "payment_once_a_submission_and_kind": lambda w: double(w.a(Payment)),
    "payment_kind_known": lambda w: change(w.a(Payment), kind="gift"),
    "payment_at_least_1": lambda w: change(w.a(Payment), amount=0),
    "webhook_event_once": lambda w: double(w.a(WebhookEvent), signed_sha256="b"),
    "webhook_event_signed_once": lambda w: double(w.a(WebhookEvent), event_id="another"),
    "erasure_what_known": lambda w: Erasure.objects.create(public_id=uuid4(), what="all", refs=[], at=timezone.now()),
    "budget_count_once_a_span": lambda w: double(BudgetCount.objects.create(what="a", who="b", until=timezone.now())),
    "webhook_event_state_known": lambda w: change(w.a(WebhookEvent), state="lost"),
    "model_answer_once_a_question": lambda w: double(w.a(ModelAnswer)),
    "reading_once_a_text": lambda w: double(w.a(Reading), characters=2),
    "reading_has_tokens": lambda w: change(w.a(Reading), tokens=b""),
    "ngram_order_between_1_and_5": lambda w: change(w.a(NgramModel), order=6),
    "ngram_unit_known": lambda w: change(w.a(NgramModel), unit="byte"),
    "word_network_kind_known": lambda w: change(w.a(WordNetwork), kind="gru"),
    "ngram_smoothing_known": lambda w: change(w.a(NgramModel), smoothing="some"),
    "model_answer_share_between_0_and_1": lambda w: change(w.a(ModelAnswer), correct=None, share_correct=1.0),
    "answer_collection_state_known": lambda w: change(w.a(AnswerCollection), state="lost"),
    "answer_collection_running_has_a_lease": lambda w: change(w.a(AnswerCollection), state="running"),
    "answer_collection_concurrency_at_least_1": lambda w: change(w.a(AnswerCollection), concurrency=0),
    "answer_collection_replies_at_least_1": lambda w: change(w.a(AnswerCollection), replies=0),
    "answer_collection_tokens_at_least_1": lambda w: change(w.a(AnswerCollection), max_tokens=0),
    "answer_collection_cap_needs_prices": lambda w: change(w.a(AnswerCollection), cost_cap=1),
    "job_once_while_it_waits": lambda w: double(w.a(Job), key="other"),
    "job_state_known": lambda w: change(w.a(Job), state="lost"),
    "job_running_has_a_lease": lambda w: change(w.a(Job), state="running"),
    "job_done_expires": lambda w: change(w.a(Job), state="done"),
    "job_step_once_an_input": lambda w: double(w.a(JobStep)),
    "job_step_state_known": lambda w: change(w.a(JobStep), state="lost"),
    "job_step_running_has_a_lease": lambda w: change(w.a(JobStep), state="running"),
    "scoring_part_once_an_input": lambda w: double(w.a(ScoringPart)),
    "scoring_part_state_known": lambda w: change(w.a(ScoringPart), state="lost"),
    "scoring_part_running_has_a_lease": lambda w: change(w.a(ScoringPart), state="running"),
    "scoring_part_done_has_scores": lambda w: change(w.a(ScoringPart), state="done"),
    "stored_estimate_once_a_question": lambda w: double(w.a(StoredEstimate)),
    "stored_estimate_state_known": lambda w: change(w.a(StoredEstimate), state="lost"),
    "stored_estimate_running_has_a_lease": lambda w: change(w.a(StoredEstimate), state="running"),
    "panel_identity_one_a_person_and_study": lambda w: double(w.a(PanelIdentity), respondent_id=other_pseudonym(w)),
    "sitting_one_a_person_study_and_wave": lambda w: cast.sitting(w.stage, respondent=w.sitting.respondent),
    "sitting_state_known": lambda w: change(w.sitting, state="asleep"),
    "sitting_complete_has_an_end": lambda w: change(w.sitting, state="complete"),
    "condition_one_level_a_factor": lambda w: double(w.a(ConditionLevel)),
    "item_condition_one_level_a_factor": lambda w: double(w.a(AssignmentCondition)),
    "item_condition_probability_in_0_1": lambda w: change(w.a(AssignmentCondition), probability=0.0),
    "question_flag_known": lambda w: change(w.a(Question), flag="odd", flag_reason="why"),
    "condition_probability_in_0_1": lambda w: change(w.a(ConditionLevel), probability=1.5),
    "check_attempt_once": lambda w: double(w.a(CheckAttempt)),
    "check_attempts_at_most_two": lambda w: double(w.a(CheckAttempt), attempt=3),
    "form_answer_once_a_block": lambda w: double(w.a(FormAnswer)),
    "quota_place_one_a_sitting_and_quota": lambda w: double(w.a(QuotaPlace)),
    "quota_place_state_known": lambda w: change(w.a(QuotaPlace), state="kept"),
    "quota_place_has_a_cell_unless_outside": lambda w: change(w.a(QuotaPlace), cell=""),
    "attention_answer_once_a_check": lambda w: double(w.a(AttentionAnswer)),
    "question_report_once_in_these_words": lambda w: double(w.a(QuestionReport)),
    "question_report_has_words": lambda w: change(w.a(QuestionReport), text=""),
    "assignment_position_unique_in_sitting": lambda w: double(
        w.counted, slot_id=Slot.objects.filter(assignments=None).first().pk
    ),
    "assignment_slot_once_a_sitting": lambda w: double(
        w.counted, position=99, state="late", completed_at=timezone.now()
    ),
    "assignment_one_live_or_counted_a_slot": lambda w: double(w.counted, sitting_id=cast.sitting(w.stage).pk),
    "assignment_state_known": lambda w: change(w.counted, state="kept"),
    "assignment_counted_is_complete": lambda w: change(w.open_assignment, state="counted"),
    "assignment_open_is_incomplete": lambda w: change(w.open_assignment, completed_at=timezone.now()),
    "response_number_unique_in_assignment": lambda w: double(w.a(Response)),
    "response_number_at_least_1": lambda w: change(w.a(Response), number=0),
    "pair_evidence_and_outcome_together": lambda w: change(w.a(Pair), outcome=None),
    "pair_evidence_is_not_the_target": lambda w: change(w.a(Pair), evidence_id=w.a(Pair).target_id),
    "pair_answer_needs_evidence": lambda w: change(
        w.a(Pair), evidence_id=None, outcome=None, answer_id=w.a(ModelAnswer).pk
    ),
    "pair_second_evidence_is_whole": lambda w: change(w.a(Pair), outcome_2=True),
    "pair_third_evidence_is_whole": lambda w: change(w.a(Pair), outcome_3=True),
    "asked_question_copy_at_least_1": lambda w: AskedQuestion.objects.create(
        item=w.a(Pair).item, question=w.a(Pair).target, copy=0
    ),
    "own_answer_not_empty": lambda w: OwnAnswer.objects.create(response=w.a(Response), text="", correct=False),
    "own_answer_confidence_between_0_and_100": lambda w: OwnAnswer.objects.create(
        response=w.a(Response), text="42", correct=False, confidence=101
    ),
    "belief_between_0_and_100": lambda w: change(w.a(Belief), value=101),
    "belief_kind_known": lambda w: change(w.a(Belief), kind="hunch"),
    "belief_direction_of_a_posterior": lambda w: change(Belief.objects.filter(kind="prior").first(), direction="same"),
    "belief_entry_known": lambda w: change(w.a(Belief), entered_by="by heart"),
    "belief_first_value_at_most_100": lambda w: change(w.a(Belief), first_value=101),
    "belief_place_of_an_evidence_question": lambda w: change(Belief.objects.filter(kind="posterior").first(), place=4),
    "tokenizer_has_words": lambda w: a_tokenizer(words=b""),
    "text_cut_once_a_tokenizer": lambda w: [cut(a_tokenizer()) for _ in range(2)],
    "expectation_once_a_text": lambda w: [expect(w, a_tokenizer()) for _ in range(2)],
    "aid_right_of_asked": lambda w: add_aid(w, asked=5, right=6),
    "aid_similarity_known": lambda w: add_aid(w, similarity="smell"),
    "question_vector_not_empty": lambda w: QuestionVector.objects.create(question=w.a(Question), model="m", vector=""),
    "target_answer_not_empty": lambda w: TargetAnswer.objects.create(response=w.a(Response), text="", correct=False),
    "target_answer_confidence_at_most_100": lambda w: TargetAnswer.objects.create(
        response=w.a(Response), text="A", correct=False, confidence=101
    ),
    "one_code_a_coder_and_reason": lambda w: [code_reason(w, "ann", "luck") for _ in range(2)],
    "reason_code_not_empty": lambda w: code_reason(w, "ann", ""),
    "screen_timing_once_a_step": lambda w: double(w.a(ScreenTiming)),
    "unfinished_screen_number_once_a_step": lambda w: double(w.a(UnfinishedScreen)),
    "unfinished_screens_a_step_limited": lambda w: double(w.a(UnfinishedScreen), number=6),
    "entry_link_number_once_a_study": lambda w: double(w.a(EntryLink), token_hash="1" * 64),
    "entry_link_of_a_later_wave_has_a_first": lambda w: change(w.a(EntryLink), wave=2),
    "entry_link_one_a_person_and_wave": lambda w: [
        double(w.a(EntryLink), number=number, token_hash=str(number) * 32, wave=2, first_id=w.a(EntryLink).pk)
        for number in (51, 52)
    ],
    "wave_identity_one_a_person_and_wave": lambda w: double(w.a(WaveIdentity)),
    "wave_identity_of_a_later_wave": lambda w: double(w.a(WaveIdentity), wave=1),
    "entry_link_number_at_least_1": lambda w: change(w.a(EntryLink), number=0),
    "api_token_scope_known": lambda w: change(w.a(ApiToken), scope="all"),
    "study_membership_once_a_user": lambda w: double(w.a(StudyMembership), role="viewer", may_spend=True),
    "study_membership_role_known": lambda w: change(w.a(StudyMembership), role="boss"),
    "study_invitation_role_known": lambda w: change(w.a(StudyInvitation), role="boss"),
    "study_invitation_accepted_or_revoked": lambda w: change(w.a(StudyInvitation), revoked_at=timezone.now()),
    "practice_answer_number_unique_in_sitting": lambda w: double(w.a(PracticeAnswer)),
    "practice_answer_number_at_least_1": lambda w: change(w.a(PracticeAnswer), number=0),
}


def other_stage(w: World) -> Stage:
    return w.stage.study.stages.get(index=2)


def drawn(role: str, **values: Any) -> Callable[[World], Any]:
    """A drawn slot in this role, with other values."""
    return lambda w: change(w.a(Slot), role=role, **values)


def last(model: type[models.Model]) -> Any:
    return model._default_manager.order_by("-pk").first()


LOOSE = {"booklet_id": None, "position": None}
# More rows that the same constraints refuse: by their other columns, by the other side of their conditions, and rows
# that differ in everything that a constraint does not name.
FURTHER: dict[str, list[Callable[[World], Any]]] = {
    "sitting_one_a_person_study_and_wave": [
        lambda w: cast.sitting(other_stage(w), respondent=w.sitting.respondent, state="expired", language="de"),
    ],
    "sitting_complete_has_an_end": [lambda w: change(w.sitting, state="complete", expired_at=timezone.now())],
    "slot_drawn_has_probabilities": [
        drawn(role, **values)
        for role in ("sampled", "holdout")
        for values in (
            {"inclusion_probability": None},
            {"inclusion_probability": 0.0},
            {"inclusion_probability": 1.01},
            {"pool_probability": None},
            {"pool_probability": 0.0},
            {"pool_probability": 1.01},
            {"stratum": None},
        )
    ],
    "slot_control_has_a_kind": [lambda w: change(w.a(Slot), control_kind="prior_only")],
    "slot_repeat_names_its_slot": [lambda w: change(w.a(Slot), repeat_of=last(Slot))],
    "slot_booklet_and_position_together": [lambda w: change(w.a(Slot), booklet=None)],
    "slot_number_unique_in_stage": [
        lambda w: double(w.a(Slot), replicate=2, role="holdout", item_id=last(Slot).item_id, **LOOSE),
    ],
    "slot_item_once_a_replicate": [lambda w: double(w.a(Slot), number=999, score=0.5, **LOOSE)],
    "slot_repeated_at_most_once": [
        lambda w: [
            double(w.a(Slot), number=998 + n, replicate=1 + n, role="repeat", repeat_of_id=w.a(Slot).pk, **LOOSE)
            for n in (0, 1)
        ],
    ],
    "candidate_set_probability_in_0_1": [lambda w: change(w.a(CandidateSet), probability=1.5)],
    "candidate_set_size_in_universe": [lambda w: change(w.a(CandidateSet), size=0)],
    "condition_probability_in_0_1": [lambda w: change(w.a(ConditionLevel), probability=0.0)],
    "condition_one_level_a_factor": [
        lambda w: double(w.a(ConditionLevel), level="another", probability=0.25, seed=99),
    ],
    "item_condition_probability_in_0_1": [lambda w: change(w.a(AssignmentCondition), probability=1.5)],
    "item_condition_one_level_a_factor": [
        lambda w: double(w.a(AssignmentCondition), level="another", probability=0.25, seed=99),
    ],
    "study_locked_with_a_hash": [lambda w: change(w.stage.study, locked_at=None)],
    "study_test_copy_by_its_name": [lambda w: change(w.stage.study, test_of=w.stage.study)],
    "stage_past_draft_has_a_plan": [
        lambda w, state=state: change(w.stage, state=state, plan_sha256="", snapshot_sha256="s")
        for state in ("planned", "paused", "closing", "frozen")
    ],
    "assignment_one_live_or_counted_a_slot": [
        lambda w: double(w.counted, sitting_id=cast.sitting(w.stage).pk, state="live", completed_at=None),
        lambda w: double(
            w.open_assignment, sitting_id=cast.sitting(w.stage).pk, state="counted", completed_at=timezone.now()
        ),
    ],
    "assignment_position_unique_in_sitting": [
        lambda w: double(w.counted, slot_id=Slot.objects.filter(assignments=None).first().pk, state="late"),
    ],
    "assignment_slot_once_a_sitting": [
        lambda w: double(w.counted, position=99, state="withdrawn", completed_at=None, assigned_at=timezone.now()),
    ],
    "assignment_counted_is_complete": [lambda w: change(w.counted, completed_at=None)],
    "assignment_open_is_incomplete": [
        lambda w, state=state: change(w.counted, state=state) for state in ("live", "released", "declined", "withdrawn")
    ],
    "response_number_unique_in_assignment": [
        lambda w: double(w.a(Response), screen="another", screen_sha256="1" * 64, answered_at=timezone.now()),
    ],
    "snapshot_number_unique_in_stage": [lambda w: double(w.a(SnapshotAnswer), assignment_id=None, digest="1" * 64)],
    "snapshot_assignment_once_in_stage": [lambda w: double(w.a(SnapshotAnswer), number=2, digest="1" * 64)],
    "panel_identity_one_a_person_and_study": [
        lambda w: double(
            w.a(PanelIdentity),
            respondent_id=other_pseudonym(w),
            panel="another",
            submission_hash="1" * 64,
            ids_encrypted=b"x",
        ),
    ],
    "posting_once_a_panel_study": [
        lambda w: double(w.a(Posting), internal_name="two", reward=7, places=3, state="ACTIVE", wave=2),
    ],
    "posting_pending_has_a_time": [lambda w: change(w.a(Posting), pending_at=timezone.now())],
    "submission_pending_has_a_time": [lambda w: change(w.a(Submission), pending="reject")],
    "submission_once_a_posting": [
        lambda w: double(w.a(Submission), respondent_id=None, status="RETURNED", ids_encrypted=b"x"),
    ],
    "payment_batch_paid_was_sent": [
        lambda w, state=state: change(w.a(PaymentBatch), state=state) for state in ("sent", "unknown")
    ],
    "payment_once_a_submission_and_kind": [
        lambda w: double(w.a(Payment), batch_id=PaymentBatch.objects.create(posting=w.a(Posting)).pk, amount=7),
    ],
    "webhook_event_once": [
        lambda w: double(w.a(WebhookEvent), event_type="y", body_encrypted=b"x", state="done", signed_sha256="1" * 64),
    ],
    "job_step_running_has_a_lease": [lambda w: change(w.a(JobStep), state="running", finished_at=timezone.now())],
    "predictor_run_once_an_input": [lambda w: double(w.a(PredictorRun), seed=2, role="compared", example_count=3)],
    "evaluation_once_a_run_and_stage": [lambda w: double(w.a(Evaluation), metrics={"x": 1})],
    "model_answer_share_between_0_and_1": [
        lambda w: change(w.a(ModelAnswer), correct=None, share_correct=0.0),
        lambda w: change(w.a(ModelAnswer), correct=True, share_correct=0.5),
    ],
    "belief_between_0_and_100": [lambda w: change(last(Belief), value=101)],
    "check_attempt_once": [lambda w: double(w.a(CheckAttempt), passed=False, answers={"x": 1}, at=timezone.now())],
    "check_attempts_at_most_two": [lambda w: double(w.a(CheckAttempt), attempt=0)],
    "unfinished_screens_a_step_limited": [lambda w: double(w.a(UnfinishedScreen), number=0)],
}
BAD_ROWS = [(name, bad) for name in sorted(REFUSED) for bad in (REFUSED[name], *FURTHER.get(name, []))]


def constraints() -> dict[str, tuple[type[models.Model], Any]]:
    return {
        constraint.name: (model, constraint)
        for label in ("survey", "belief_update", "own_answers")
        for model in apps.get_app_config(label).get_models()
        for constraint in model._meta.constraints
    }


def name_in_errors(name: str) -> str:
    model, constraint = constraints()[name]
    if connection.vendor == "sqlite" and isinstance(constraint, models.UniqueConstraint):
        # SQLite names the columns of a unique constraint and not the constraint.
        columns = [model._meta.get_field(field).column for field in constraint.fields]
        return ", ".join(f"{model._meta.db_table}.{column}" for column in columns)
    return name


@pytest.mark.slow
def test_the_database_refuses_what_breaks(world: World) -> None:
    wrong = {}
    for number, (name, bad) in enumerate(BAD_ROWS):
        try:
            with transaction.atomic():
                bad(copy.deepcopy(world))
                refused = "it was taken"
                transaction.set_rollback(True)
        except IntegrityError as error:
            refused = str(error)
        if name_in_errors(name) not in refused:
            wrong[f"{name}-{number}"] = refused
    assert wrong == {}


def test_every_named_constraint_is_tried() -> None:
    assert set(REFUSED) == set(constraints())
    assert set(FURTHER) <= set(REFUSED)


def test_a_released_slot_may_be_given_to_somebody_else(world: World) -> None:
    change(world.open_assignment, state="released")
    double(world.open_assignment, sitting_id=cast.sitting(world.stage).pk)
    assert Assignment.objects.filter(slot=world.open_assignment.slot_id).count() == 2
