"""Collections of answers in the admin: begun, watched, stopped and resumed; refused if the command would refuse. And
stored replies, judged again."""

from pathlib import Path

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from survey.models import AnswerCollection, AuditEntry, Bank, LanguageModel, ModelAnswer, StudyMembership
from survey.services.banks.answer_checking import RULES_VERSION
from survey.services.base.auditing import actor_of
from tests import cast

pytestmark = pytest.mark.slow

ADD = "/admin/survey/answercollection/add/"


@pytest.fixture
def bank(db: None) -> Bank:
    return cast.study().bank


def values(bank: Bank, **changed: str) -> dict[str, str]:
    return {"bank": str(bank.pk), "model": "gpt-x", "max_tokens": "5", "concurrency": "4", **changed}


def test_a_collection_is_begun_and_left_to_the_workers(bank: Bank, as_researcher: Client, researcher: User) -> None:
    assert as_researcher.post(ADD, values(bank, name="GPT X")).status_code == 302
    collection = AnswerCollection.objects.get()
    assert (collection.state, collection.language_model.name, collection.created_by) == ("queued", "GPT X", researcher)
    assert collection.sent_at is None
    assert collection.wanted > 0
    assert AuditEntry.objects.filter(action="collect_answers", actor=actor_of(researcher), via="admin").count() == 1


def test_what_the_service_refuses_is_said_at_the_form_and_nothing_is_written(bank: Bank, as_researcher: Client) -> None:
    response = as_researcher.post(ADD, values(bank, cost_cap="5"))
    assert "needs the prices" in response.content.decode()
    assert not AnswerCollection.objects.exists()
    assert not LanguageModel.objects.exists()


def test_a_model_on_disk_is_not_asked_from_here(bank: Bank, as_researcher: Client) -> None:
    assert "collect_answers" in as_researcher.post(ADD, values(bank, model="local:/etc")).content.decode()
    assert not AnswerCollection.objects.exists()


def test_it_is_stopped_and_resumed_by_post_alone(bank: Bank, as_researcher: Client) -> None:
    as_researcher.post(ADD, values(bank))
    collection = AnswerCollection.objects.get()
    page = f"/admin/survey/answercollection/{collection.pk}/"
    assert as_researcher.get(f"{page}stop/").status_code == 405
    as_researcher.post(f"{page}stop/")
    collection.refresh_from_db()
    assert collection.stop_requested
    AnswerCollection.objects.update(state="stopped")
    assert "Go on" in as_researcher.get(f"{page}change/").content.decode()
    as_researcher.post(f"{page}resume/")
    collection.refresh_from_db()
    assert (collection.state, collection.stop_requested) == ("queued", False)


def test_without_the_permission_nobody_spends_money(bank: Bank, client: Client) -> None:
    client.force_login(User.objects.create_user("looker", is_staff=True))
    assert client.post(ADD, values(bank)).status_code == 403
    assert not AnswerCollection.objects.exists()


def test_replies_are_shown_as_text(bank: Bank, as_researcher: Client) -> None:
    answer = ModelAnswer.objects.create(
        language_model=LanguageModel.objects.create(name="one"),
        question=bank.questions.get(position=0),
        correct=False,
        response="<script>alert(1)</script>",
        reason="the reply names no option",
    )
    for page in ("", f"{answer.pk}/change/"):
        text = as_researcher.get(f"/admin/survey/modelanswer/{page}").content.decode()
        assert "<script>alert" not in text
        assert "&lt;script&gt;" in text
    assert "0.0 %" in as_researcher.get("/admin/survey/languagemodel/").content.decode()


def old_verdicts(bank: Bank) -> str:
    """Two answers that older rules judged, one of them right for naming both options; the address that judges again."""
    model = LanguageModel.objects.create(name="one")
    keys = bank.questions.order_by("position")[:2]
    for question, reply in zip(keys, (f"Not {keys[0].answer}.", keys[1].answer), strict=True):
        ModelAnswer.objects.create(
            language_model=model, question=question, correct=True, response=reply, rules_version="1"
        )
    return f"/admin/survey/bank/{bank.pk}/judge-again/"


def test_who_runs_a_study_of_the_bank_judges_its_replies_again(
    bank: Bank, as_researcher: Client, researcher: User
) -> None:
    """What was shown is what is stored: what came since is looked at first. Other people's studies have no names."""
    address = old_verdicts(bank)
    cast.study(slug="secret")
    StudyMembership.objects.filter(study__slug="secret").delete()
    first, second = ModelAnswer.objects.order_by("question__position")
    ModelAnswer.objects.filter(pk=second.pk).update(rules_version=RULES_VERSION)
    assert address in as_researcher.get(f"/admin/survey/bank/{bank.pk}/change/").content.decode()
    page = as_researcher.get(address)
    words, seen = page.content.decode(), page.context["again"].seen
    assert f"one {first.question.external_id}: 1 to 0 right" in words and "1, of which 1 change" in words
    assert "cast, 1 of other people" in words and "secret" not in words
    ModelAnswer.objects.filter(pk=second.pk).update(rules_version="1")
    for posted in ({"seen": seen}, {}):
        assert "look at it again" in as_researcher.post(address, posted).content.decode()
    assert set(ModelAnswer.objects.values_list("correct", "rules_version")) == {(True, "1")}
    seen = as_researcher.get(address).context["again"].seen
    assert as_researcher.post(address, {"seen": seen}).status_code == 302
    assert set(ModelAnswer.objects.values_list("correct", "rules_version")) == {
        (False, RULES_VERSION),
        (True, RULES_VERSION),
    }
    entry = AuditEntry.objects.get(action="judge_again")
    assert (entry.via, entry.actor, entry.detail["judged"]) == ("admin", actor_of(researcher), 2)
    assert "There is nothing to judge again" in as_researcher.get(address).content.decode()


def test_more_replies_than_a_page_can_judge_are_left_to_the_command(
    bank: Bank, as_researcher: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("survey.admin.banks.MAX_JUDGED_HERE", 1)
    address = old_verdicts(bank)
    assert f"hunch judge_again --bank {bank.name}@1" in as_researcher.post(address, {"seen": "-"}).content.decode()
    assert set(ModelAnswer.objects.values_list("rules_version", flat=True)) == {"1"}


@pytest.mark.parametrize("lacks", ["the permission", "the role"])
def test_who_may_not_flag_a_question_judges_nothing_again(
    lacks: str, bank: Bank, as_researcher: Client, researcher: User
) -> None:
    address = old_verdicts(bank)
    if lacks == "the role":
        StudyMembership.objects.filter(user=researcher).update(role="analyst")
    else:
        permission = Permission.objects.get(codename="change_question")
        Group.objects.get(user=researcher).permissions.remove(permission)
    assert address not in as_researcher.get(f"/admin/survey/bank/{bank.pk}/change/").content.decode()
    assert as_researcher.get(address).status_code == as_researcher.post(address).status_code == 403


def test_a_folder_with_no_model_is_reported_in_words(bank: Bank, tmp_path: Path) -> None:
    from survey.services.banks import collecting

    pytest.importorskip("torch")
    made = collecting.create_collection(bank=bank, model=f"local:{tmp_path}", name="disk")
    ended = collecting.run_collection(made.pk)
    assert ended is not None
    assert ended.state == "failed"
    assert "cannot be used as a causal language model" in ended.error
