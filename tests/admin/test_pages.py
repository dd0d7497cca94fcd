"""Every page of the admin opens, in few queries, changes nothing, and names nobody."""

import io
from typing import Any

import numpy as np
import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.db import connection
from django.db.models import Model
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from predictors.readings.text_reading import make_tokens
from survey.admin_base.read_only_admin import AdminPage
from survey.instruments.belief_update.models import Belief, Pair
from survey.instruments.cloze.models import AskedWord, WrittenWord
from survey.instruments.next_token.models import TokenGuess, TokenRun
from survey.instruments.own_answers.models import AskedQuestion, OwnAnswer
from survey.instruments.preference.models import JudgeVerdict, ReplyComparison, ReplyJudgement
from survey.instruments.self_paced_reading.models import PassageAnswer, ReadPassage, WordTimes
from survey.instruments.token_comparison.models import PreparedContext, StatedChance, TokenPair
from survey.models import (
    Alert,
    Amendment,
    AnswerCollection,
    ApiToken,
    Assignment,
    AuditEntry,
    Bank,
    Booklet,
    CandidateSet,
    Delivery,
    EntryLink,
    Evaluation,
    Item,
    Job,
    JobStep,
    LanguageModel,
    Logo,
    ModelAnswer,
    NgramModel,
    PanelIdentity,
    Payment,
    PaymentBatch,
    Posting,
    PredictorRun,
    Question,
    QuestionReport,
    Reading,
    Receiver,
    Respondent,
    Response,
    Sitting,
    Slot,
    SnapshotAnswer,
    Stage,
    Stratum,
    Study,
    Submission,
    Task,
    TokenizerRecord,
    WatchRecord,
    WebhookEvent,
    Withdrawal,
    WordNetwork,
)
from survey.services.banks import readings
from survey.services.base.auditing import actor_of
from survey.services.base.rights import Right
from survey.services.sittings.identities import seal, store_identity
from survey.services.stages import jobs, lifecycle
from tests import cast
from tests.kept import kept

from .conftest import PERSON, SUBMISSION, panel_ids, stage_of, study_in_its_second_stage, take_part

pytestmark = pytest.mark.slow

FEW = 10  # queries
# Instruments of the tests' own packages, of which no study here is.
INSTALLED_FOR_TESTS = {"toy"}
NOT_READ_ONLY = {Group, User, Question, AnswerCollection}


def address(model: type[Model], page: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def our_models() -> list[type[Model]]:
    return [model for model in admin.site._registry if model is not LogEntry]


def ask_a_language_model(name: str, bank: Bank) -> None:
    model = LanguageModel.objects.create(name=name)
    AnswerCollection.objects.create(language_model=model, bank=bank, model=name)
    ModelAnswer.objects.create(language_model=model, question=bank.questions.get(position=0), correct=True)
    read_a_text(model, bank)


def read_a_text(model: LanguageModel, bank: Bank) -> None:
    readings.note_bank(bank)
    content = io.BytesIO()
    np.save(content, make_tokens([0], [3], [-1.5]))
    Reading.objects.create(
        language_model=model,
        text_sha256=readings.text_hash(bank.questions.get(position=0).plain),
        characters=3,
        source="local:m",
        source_sha256="0" * 64,
        tokenizer_sha256="1" * 64,
        token_count=1,
        tokens=content.getvalue(),
        code_version="1",
    )
    NgramModel.objects.create(
        name=f"ngram-{model.pk}",
        order=2,
        unit="word",
        smoothing="none",
        vocabulary_size=3,
        states=1,
        train_texts=1,
        input_sha256="0" * 64,
    )
    WordNetwork.objects.create(name=f"network-{model.pk}", **cast.A_NETWORK)


def answer_a_question(response: Response, item: Item, question: Question) -> None:
    """The typed rows of the other instruments; here they may stand next to a pair's."""
    AskedQuestion.objects.create(item=item, question=question, copy=1)
    AskedWord.objects.create(item=item, question=question, position=1)
    ReadPassage.objects.create(item=item, question=question)
    OwnAnswer.objects.create(response=response, text="42", correct=False)
    a, b = (
        ModelAnswer.objects.get_or_create(
            language_model=LanguageModel.objects.get_or_create(name=f"{name} {item.pk}")[0], question=question
        )[0]
        for name in ("starling", "thrush")
    )
    ReplyComparison.objects.create(item=item, question=question, a=a, b=b)
    ReplyJudgement.objects.create(response=response, a_first=True, place=3, places={"helpful": 3})
    JudgeVerdict.objects.create(judge=a.language_model, a=a, b=b, first="a", towards_a=1.5)
    WrittenWord.objects.create(response=response, text="river", several=False)
    row, _made = TokenizerRecord.objects.get_or_create(
        source="characters", defaults={"sha256": "0" * 64, "size": 1, "words": b"x"}
    )
    TokenRun.objects.create(item=item, question=question, tokenizer=row, start=0, length=1, tokens=[[65, 0, 1, 1]])
    TokenGuess.objects.create(response=response, place=0, position=0, text="A", token=65, true_token=65, right=True)
    WordTimes.objects.create(response=response, times=[300, 280], lead_ms=400, means="key", marks=["focus"])
    PassageAnswer.objects.create(response=response, yes=True, right=False)
    compare_tokens(response, item, question)


def compare_tokens(response: Response, item: Item, question: Question) -> None:
    tokenizer, _made = TokenizerRecord.objects.get_or_create(
        source="characters", defaults={"sha256": "c", "size": 1, "words": b"[]"}
    )
    context = PreparedContext.objects.create(
        preparation=f"of item {item.pk}",
        text_sha256="t",
        position=8,
        end=3,
        tokenizer=tokenizer,
        generator="ngram:two",
        generator_sha256="g",
        seed=1,
        draws=2,
        same=1,
        true_id=1,
        true_text=" he",
        log_g_true=-1.0,
        drawn=[[2, " it", 1, -2.0]],
    )
    TokenPair.objects.create(
        item=item,
        question=question,
        context=context,
        other_id=2,
        other_text=" it",
        multiplicity=1,
        log_g_other=-2.0,
    )
    StatedChance.objects.create(response=response, percent_left=60, true_is_left=True, reward=10)


def recruit_at_a_panel(stage: Stage, respondent: Respondent, name: str) -> None:
    now = timezone.now()
    posting = Posting.objects.create(
        study=stage.study,
        stage=stage,
        panel="prolific",
        internal_name=name,
        external_id=name,
        reward=1,
        currency="USD",
        places=1,
        expected_minutes=1,
        read_at=now,
    )
    row = Submission.objects.create(
        posting=posting,
        respondent=respondent,
        submission_hash=name,
        ids_encrypted=seal(panel_ids(1)).encode(),
        status="APPROVED",
        read_at=now,
    )
    batch = PaymentBatch.objects.create(posting=posting)
    Payment.objects.create(batch=batch, submission=row, kind=Payment.Kind.SCORE, amount=1)
    WebhookEvent.objects.create(
        panel="prolific",
        event_id=name,
        event_type="submission.status.change",
        body_encrypted=seal(panel_ids(1)).encode(),
        due_at=now,
    )


def raise_an_alert(study: Study, subject: str) -> None:
    now = timezone.now()
    Alert.objects.create(
        cause="no_arrivals", subject=subject, study=study, message="Nobody came.", opened_at=now, seen_at=now
    )


def take_back_and_amend(study: Study, respondent: Respondent, user: User | None = None) -> None:
    now = timezone.now()
    Withdrawal.objects.create(respondent=respondent, at=now, answers=1)
    Amendment.objects.create(
        study=study,
        at=now,
        actor=user,
        reason="a typo",
        was_locked=True,
        old_sha256="0" * 64,
        new_sha256="1" * 64,
        changes=[{"key": "title", "old": "a", "new": "b"}],
        old_text="",
        old_config={},
    )


def one_row_of_everything(study: Study, superuser: User) -> None:
    ApiToken.issue(user=superuser, name="for tests")
    Logo.objects.create(name="university", sha256="0" * 64, content=b"", width=1, height=1)
    take_part(study, 203)
    ask_a_language_model("one", study.bank)
    recruit_at_a_panel(stage_of(study), study.respondents.all()[0], "posted")
    raise_an_alert(study, "posting")
    take_back_and_amend(study, study.respondents.all()[1], superuser)
    answer = Assignment.objects.all()[0]
    QuestionReport.objects.create(
        sitting=answer.sitting, assignment=answer, screen="prior", text="odd", at=timezone.now()
    )
    answer_a_question(Response.objects.all()[0], Item.objects.all()[0], study.bank.questions.all()[0])
    EntryLink.objects.create(study=study, number=1, token_hash="0" * 64, created_by=superuser)
    receiver = Receiver.objects.create(
        study=study, kind="email", shown="ada@example.org", sealed=b"", causes=["stage_full"], since=timezone.now()
    )
    body = {"subject": "a test", "state": "open"}
    Delivery.objects.create(receiver=receiver, event_id="evt_1", event="test", body=body, due_at=timezone.now())
    Job.objects.create(study=study, kind="export", asked_by=superuser, asked_sha256="0" * 64)


@pytest.fixture
def busy(db: None) -> Study:
    """At least one row of everything, and the superuser."""
    return busy_study()


@kept
def busy_study() -> Study:
    study = study_in_its_second_stage()
    one_row_of_everything(study, User.objects.create_superuser("super"))
    jobs.run_inline(lifecycle.close_stage(stage_of(study, 2), now=True))
    return study


def many_rows_of_everything(study: Study, user: User) -> None:
    """More rows than a list may have queries, each with relations of its own."""
    now = timezone.now()
    for number in range(FEW + 2):
        bank = Bank.objects.create(name=f"bank-{number}", version=1, sha256="0" * 64, question_count=1)
        task = Task.objects.create(bank=bank, name="task")
        question = Question.objects.create(bank=bank, task=task, position=0, external_id="q", text="?", answer="!")
        owner = User.objects.create(username=f"user-{number}")
        Logo.objects.create(name=f"logo-{number}", sha256="0", content=b"", width=1, height=1, created_by=owner)
        twin = Study.objects.get(pk=study.pk)
        twin.pk, twin.slug, twin.bank, twin.created_by = None, f"twin-{number}", bank, owner
        twin.save()
        stage = Stage.objects.create(study=twin, index=1, seed=1)
        run = PredictorRun.objects.create(stage=stage, name="same_task", seed=1, input_sha256="0", example_count=0)
        CandidateSet.objects.create(
            stage=stage, kind="pool", size=1, universe_size=1, probability=1, seed=1, predictor_run=run
        )
        Evaluation.objects.create(predictor_run=run, stage=stage, metrics={})
        JobStep.objects.create(stage=stage, kind=JobStep.Kind.FREEZE, input_sha256="0")
        stratum = Stratum.objects.create(stage=stage, name="all", size=1, slots=1)
        booklet = Booklet.objects.create(stage=stage, number=1, claimed_at=now)
        item = Item.objects.create(study=twin, key="0")
        Pair.objects.create(item=item, target=question)
        slot = Slot.objects.create(
            stage=stage,
            number=1,
            item=item,
            role=Slot.Role.CONTROL,
            control_kind="no_evidence",
            stratum=stratum,
            booklet=booklet,
            position=1,
        )
        Job.objects.create(study=twin, kind="export", asked_by=user, asked_sha256="0" * 64)
        EntryLink.objects.create(study=twin, number=1, token_hash=f"{number + 1:064}", created_by=owner)
        respondent = Respondent.objects.create(study=twin)
        store_identity(respondent=respondent, ids=panel_ids(number), browser="")
        sitting = Sitting.objects.create(
            respondent=respondent, stage=stage, booklet=booklet, started_at=now, last_seen_at=now
        )
        answer = Assignment.objects.create(sitting=sitting, slot=slot, position=1, assigned_at=now)
        response = Response.objects.create(
            assignment=answer, number=1, screen="prior", screen_sha256="0", answered_at=now, server_ms=1
        )
        Belief.objects.create(response=response, kind="prior", value=50)
        answer_a_question(response, item, question)
        QuestionReport.objects.create(sitting=sitting, assignment=answer, screen="prior", text="odd", at=now)
        SnapshotAnswer.objects.create(stage=stage, number=1, assignment=answer, digest="0")
        ApiToken.issue(user=owner)
        ApiToken.issue(user=user)
        AuditEntry.objects.create(actor=actor_of(owner), action="test", subject=str(number))
        Group.objects.create(name=f"group-{number}")
        ask_a_language_model(f"model-{number}", bank)
        recruit_at_a_panel(stage, respondent, f"posted-{number}")
        raise_an_alert(twin, f"queue {number}")
        take_back_and_amend(twin, respondent, owner)


def test_every_list_and_one_page_of_each_opens(busy: Study, as_superuser: Client) -> None:
    """And none shows a panel's ids, but the page that is there for them."""
    pages, for_them = ["/admin/"], {address(PanelIdentity, "change", row.pk) for row in PanelIdentity.objects.all()}
    for model in our_models():
        pages.append(address(model, "changelist"))
        rows = model._default_manager.order_by("pk")[:2]
        if not rows:
            assert model in (Group,) or model._meta.app_label in INSTALLED_FOR_TESTS, f"{model} has no row to look at"
            continue
        pages += [address(model, "history", rows[0].pk), *(address(model, "change", row.pk) for row in rows)]
    for page in pages:
        response = as_superuser.get(page)
        assert response.status_code == 200, page
        if page not in for_them:
            body = response.content.decode()
            assert PERSON not in body and SUBMISSION not in body, page


@pytest.mark.thorough
def test_every_list_takes_few_queries(busy: Study, superuser: User, as_researcher: Client) -> None:
    """For a member, whose own permissions and those of their groups are two; test_query_counts.py has a superuser's."""
    many_rows_of_everything(busy, superuser)
    cast.join_all(User.objects.get(username="researcher"))
    seen = 0
    for model in our_models():
        if model._meta.app_label not in INSTALLED_FOR_TESTS:
            assert model._default_manager.count() > FEW, model
        with CaptureQueriesContext(connection) as queries:
            response = as_researcher.get(address(model, "changelist"))
        if response.status_code == 200:
            seen += 1
            assert len(queries) <= FEW + 1, f"{model}: {len(queries)}\n" + "\n".join(q["sql"][:150] for q in queries)
    assert seen > 30


@pytest.mark.thorough
def test_searching_for_a_panels_id_finds_nobody(study: Study, as_superuser: Client) -> None:
    for model in our_models():
        response = as_superuser.get(address(model, "changelist"), {"q": f"{PERSON}101"})
        if admin.site._registry[model].search_fields:
            assert response.context["cl"].result_count == 0, model


def test_what_was_collected_cannot_be_added_changed_or_deleted_by_a_superuser(
    busy: Study, as_superuser: Client, superuser: User
) -> None:
    request = RequestFactory().get("/")
    request.user = superuser
    for model, page in admin.site._registry.items():
        if model in NOT_READ_ONLY or model is LogEntry:
            continue
        assert not page.has_change_permission(request), model
        assert not page.has_delete_permission(request), model
        assert page.has_add_permission(request) == (model in (ApiToken, EntryLink, Bank, Logo, Study)), model
        row = model._default_manager.first()
        if row is None or model is Study:
            continue
        before = model._default_manager.filter(pk=row.pk).values().get()
        changed = as_superuser.post(address(model, "change", row.pk), {"state": "frozen", "score": "1", "name": "x"})
        deleted = as_superuser.post(address(model, "delete", row.pk), {"post": "yes"})
        assert (changed.status_code, deleted.status_code) == (403, 403), model
        assert model._default_manager.filter(pk=row.pk).values().get() == before
    assert as_superuser.post(address(Study, "change", busy.pk), {"slug": "x"}).status_code == 405
    assert as_superuser.post(address(Study, "delete", busy.pk), {"post": "yes"}).status_code == 403


def test_a_user_is_not_deleted(researcher: User, as_superuser: Client) -> None:
    assert as_superuser.post(address(User, "delete", researcher.pk), {"post": "yes"}).status_code == 403
    assert User.objects.filter(pk=researcher.pk).exists()


def test_a_sitting_is_found_by_the_beginning_of_its_pseudonym(study: Study, as_researcher: Client) -> None:
    sitting = stage_of(study, 2).sittings.first()
    assert sitting is not None
    response = as_researcher.get("/admin/survey/sitting/", {"q": sitting.respondent.pseudonym[:12]})
    assert [row.pk for row in response.context["cl"].result_list] == [sitting.pk]


def test_a_list_is_narrowed_to_a_stage_and_an_unknown_one_is_ignored(study: Study, as_researcher: Client) -> None:
    wanted = stage_of(study, 2)
    listing = as_researcher.get("/admin/survey/slot/", {"study": study.slug, "stage": wanted.pk})
    assert listing.context["cl"].result_count == Slot.objects.filter(stage=wanted).count()
    for value in ("999999", "x' or 1=1"):
        response = as_researcher.get("/admin/survey/slot/", {"stage": value})
        assert response.context["cl"].result_count == Slot.objects.count()


def test_people_and_answers_are_narrowed_to_a_level(study: Study, as_researcher: Client) -> None:
    sittings = {
        pk: Sitting.objects.get(pk=pk).levels()["framing"] for pk in Sitting.objects.values_list("pk", flat=True)
    }
    plain = [pk for pk, level in sittings.items() if level == "plain"]
    assert 0 < len(plain) < len(sittings)
    response = as_researcher.get("/admin/survey/sitting/", {"condition": "framing=plain"})
    assert response.context["cl"].result_count == len(plain)
    response = as_researcher.get("/admin/survey/assignment/", {"study": study.slug, "condition": "framing=plain"})
    assert response.context["cl"].result_count == Assignment.objects.filter(sitting__in=plain).count()
    response = as_researcher.get("/admin/survey/sitting/", {"condition": "framing=odd"})
    assert response.context["cl"].result_count == len(sittings)


def test_an_answers_page_shows_what_the_instrument_exports(study: Study, as_researcher: Client) -> None:
    answer = stage_of(study).slots.get(number=1).assignments.get()
    body = as_researcher.get(f"/admin/survey/assignment/{answer.pk}/change/").content.decode()
    assert "<span>60</span>" in body and "<span>70</span>" in body
    assert "belief change" in body


def test_the_study_page_takes_as_many_queries_for_many_answers_and_stages_as_for_few(
    study: Study, as_superuser: Client, django_assert_max_num_queries: Any
) -> None:
    page = address(Study, "change", study.pk)
    with CaptureQueriesContext(connection) as few:
        as_superuser.get(page)
    take_part(study, 203)
    for index in range(3, 8):
        stage = Stage.objects.create(study=study, index=index, seed=index)
        run = PredictorRun.objects.create(stage=stage, name="same_task", seed=1, input_sha256="0", example_count=1)
        Evaluation.objects.create(predictor_run=run, stage=stage, metrics={"n": 1})
        JobStep.objects.create(stage=stage, kind=JobStep.Kind.FREEZE, input_sha256="0")
    study.stored_config["stages"] += [study.stored_config["stages"][1]] * 5
    study.save(update_fields=["stored_config"])
    cache.clear()
    with django_assert_max_num_queries(len(few)):
        assert as_superuser.get(page).status_code == 200


def test_the_first_page_and_the_studys_page_show_what_is_wrong(study: Study, as_researcher: Client) -> None:
    pages = ("/admin/", address(Study, "change", study.pk))
    assert "Nothing watches the site yet" in as_researcher.get("/admin/").content.decode()
    raise_an_alert(study, "posting 7")
    for page in pages:
        assert "posting 7" in as_researcher.get(page).content.decode()
    Alert.objects.update(resolved_at=timezone.now())
    WatchRecord.objects.create(looked_at=timezone.now())
    for page in pages:
        body = as_researcher.get(page).content.decode()
        assert "posting 7" not in body and "watches the site" not in body


def test_a_page_of_no_row_can_ask_for_no_right() -> None:
    """Nothing would look at it: the right is one in the row's study."""
    AdminPage("look", "<int:pk>/look/", lambda request, row: HttpResponse(), Right.RUN)
    with pytest.raises(ValueError, match="look: a page of no row"):
        AdminPage("look", "look/", lambda request: HttpResponse(), Right.RUN)
