"""What a row can say about itself."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import signing
from django.db.models import ProtectedError
from django.utils import timezone

from survey.fees import FeeRates
from survey.models import ApiToken, AuditEntry, Posting, Question, Sitting, Stage, StoredEstimate
from survey.models.question import plain_text, render_text
from survey.services.base.auditing import record
from tests import cast


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b>a</b><br>b", "<b>a</b><br>b"),
        ("$a<b$", "$a&lt;b$"),
        ("<MISSING CONDITION>", "&lt;MISSING CONDITION&gt;"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("<B>a</B><BR><br/>", "&lt;B&gt;a&lt;/B&gt;&lt;BR&gt;&lt;br/&gt;"),
        ("<b onclick=x>a", "&lt;b onclick=x&gt;a"),
        ("a</b>b<b>c", "ab<b>c</b>"),
        ("<b><b>a</b></b>", "<b>a</b>"),
        ('"&"', "&quot;&amp;&quot;"),
    ],
)
def test_only_three_tags_are_markup_in_a_question(text: str, shown: str) -> None:
    assert render_text(text) == shown


def test_a_predictor_reads_a_question_as_people_do() -> None:
    assert plain_text("<b>What is 1 < 2?</b><br>(A) <i>yes</i>") == "What is 1 < 2?\n(A) <i>yes</i>"


@pytest.mark.django_db
def test_a_text_is_stored_byte_for_byte() -> None:
    question = cast.small_bank(1).questions.get()
    text = "  <b>\ta</b>\r\n\u00a0é<BR> "
    Question.objects.filter(pk=question.pk).update(text=text)
    question.refresh_from_db()
    assert question.text == text


@pytest.mark.parametrize(
    ("state", "followers"),
    [
        ("draft", {"planned"}),
        ("planned", {"open"}),
        ("open", {"paused", "closing"}),
        ("paused", {"open", "closing"}),
        ("closing", {"frozen"}),
        ("frozen", set()),
    ],
)
def test_a_stage_moves_one_way(state: str, followers: set[str]) -> None:
    assert {other for other in Stage.State.values if Stage(state=state).may_become(other)} == followers


@pytest.mark.django_db
def test_a_sitting_token_cannot_be_made_up() -> None:
    sitting = cast.Visitor(cast.open_stage().study).sitting
    assert Sitting.public_id_of(sitting.token) == sitting.public_id
    assert Sitting.public_id_of(sitting.public_id.hex) is None
    assert Sitting.public_id_of(signing.Signer(salt="another").sign(sitting.public_id.hex)) is None
    assert Sitting.public_id_of(signing.Signer(salt="hunch.sitting").sign("not an id")) is None


@pytest.mark.django_db
def test_an_audit_entry_is_never_changed_nor_deleted() -> None:
    entry = record("open_stage", "small stage 1")
    with pytest.raises(TypeError, match="never changed"):
        entry.save()
    with pytest.raises(TypeError, match="never deleted"):
        entry.delete()
    assert AuditEntry.objects.filter(pk=entry.pk).exists()


@pytest.mark.django_db
def test_a_token_is_not_stored_in_clear(django_user_model: type) -> None:
    token, secret = ApiToken.issue(user=django_user_model.objects.create_user("researcher"))
    stored = ApiToken.objects.filter(pk=token.pk).values().get()
    assert secret not in map(str, stored.values())
    assert stored["digest"] == ApiToken.hashed(secret)


@pytest.mark.django_db
def test_answers_keep_their_study_from_being_deleted() -> None:
    stage = cast.open_stage()
    cast.Visitor(stage.study).finish()
    with pytest.raises(ProtectedError):
        stage.study.delete()


def test_a_posting_costs_its_people_with_fee_and_vat_and_the_fixed_fee_once() -> None:
    posting = Posting(reward=100, places=6, screen_outs=50, fee_rate=3000, vat_rate=2000, fixed_fee=7)
    assert (posting.people_cost, posting.cost) == (650, 650 + 195 + 39 + 7)
    assert posting.cost_with(posting.fees, more=2) == 850 + 255 + 51 + 7
    assert posting.cost_with(FeeRates(1000), more=2) == 850 + 85


@pytest.mark.django_db
def test_a_token_for_chosen_studies_is_for_no_other(django_user_model: Any) -> None:
    user, study = django_user_model.objects.create_user("researcher"), cast.study()
    for studies, is_for_all in ((None, True), ([study], False), ([], False)):
        token = ApiToken.issue(user=user, studies=studies, days=3)[0]
        token.refresh_from_db()
        assert (token.for_all_studies, list(token.studies.all())) == (is_for_all, studies or [])
        assert timedelta(days=2, hours=23) < token.expires_at - timezone.now() <= timedelta(days=3)


@pytest.mark.django_db
def test_figures_that_a_worker_computes_now_are_not_queued_again() -> None:
    study, now = cast.study(), timezone.now()
    for number, (state, lease) in enumerate((("done", None), ("running", -1), ("running", 1), ("queued", None))):
        until = None if lease is None else now + timedelta(minutes=lease)
        StoredEstimate.objects.create(study=study, asked={}, asked_sha256=str(number), state=state, lease_until=until)
    StoredEstimate.objects.all().queue()
    assert list(StoredEstimate.objects.order_by("pk").values_list("state", flat=True)) == [
        *("queued", "queued", "running", "queued"),
    ]
    (working,) = StoredEstimate.objects.filter(state="running")
    assert working.lease_until == now + timedelta(minutes=1)
