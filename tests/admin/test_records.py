"""Flags, panel identities, tokens and the group of researchers."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.admin import site
from django.contrib.auth.models import Group, Permission, User
from django.test import Client, RequestFactory
from django.utils import timezone

from survey.admin.records import KINDS_OF_ACTION
from survey.admin.users import RecordsEdits
from survey.models import ApiToken, AuditEntry, Bank, PanelIdentity, Question, Study, StudyMembership
from survey.panels.postings import Move
from survey.panels.reconciliation import Action
from survey.services.base import audit_chain
from survey.services.base.auditing import actor_of, record
from survey.services.base.groups import ensure_researchers_group
from survey.services.plans.candidates import draw_candidates, drawable_questions, question_set_digest, store_candidates
from survey.services.studies import test_copies
from tests import cast, databases

from .conftest import PERSON, SUBMISSION, client_of, stage_of

pytestmark = pytest.mark.slow

# Flags


@pytest.fixture
def question(db: None) -> Question:
    return cast.study().bank.questions.get(position=2)  # The one whose text holds a script tag.


def flag(client: Client, question: Question, **values: str) -> Any:
    return client.post(f"/admin/survey/question/{question.pk}/change/", {"flag": "", "flag_reason": "", **values})


def test_a_flag_is_set_with_its_reason_and_written_down(
    question: Question, as_researcher: Client, researcher: User
) -> None:
    assert flag(as_researcher, question, flag="broken", flag_reason="two right answers").status_code == 302
    question.refresh_from_db()
    assert (question.flag, question.flag_reason) == ("broken", "two right answers")
    written = AuditEntry.objects.first()
    assert written is not None
    assert (written.action, written.actor, written.subject) == (
        "flag_question",
        actor_of(researcher),
        "cast version 1 question q2",
    )
    assert written.detail == {"flag": "broken", "before": "", "reason": "two right answers"}


def test_a_flag_without_a_reason_is_refused(question: Question, as_researcher: Client) -> None:
    response = flag(as_researcher, question, flag="broken", flag_reason="  ")
    assert "Say why" in response.content.decode()
    question.refresh_from_db()
    assert question.flag == ""


def test_a_flag_that_is_taken_away_takes_its_reason_along(question: Question, as_researcher: Client) -> None:
    flag(as_researcher, question, flag="broken", flag_reason="two right answers")
    flag(as_researcher, question, flag="", flag_reason="two right answers")
    question.refresh_from_db()
    assert (question.flag, question.flag_reason) == ("", "")


def test_text_and_key_do_not_change_whatever_is_sent(question: Question, as_superuser: Client) -> None:
    flag(as_superuser, question, flag="sensitive", flag_reason="why", text="other", answer="other", position="9")
    changed = Question.objects.get(pk=question.pk)
    assert (changed.text, changed.answer, changed.position) == (question.text, question.answer, question.position)
    assert changed.flag == "sensitive"


@pytest.mark.thorough
def test_a_questions_text_is_escaped_but_for_its_markup(question: Question, as_researcher: Client) -> None:
    for address in (f"/admin/survey/question/{question.pk}/change/", "/admin/survey/question/"):
        body = as_researcher.get(address).content.decode()
        assert "<script>alert(" not in body and "&lt;script&gt;alert(" in body
    first = Question.objects.get(position=0)
    body = as_researcher.get(f"/admin/survey/question/{first.pk}/change/").content.decode()
    assert "<b>Is $a&lt;b$ here?</b><br>A. yes" in body


def test_many_questions_are_flagged_from_the_list_or_none(as_researcher: Client) -> None:
    cast.study(bank=cast.bank(40, name="many").name)
    chosen = [str(pk) for pk in Question.objects.filter(bank__name="many").values_list("pk", flat=True)[:3]]
    asked = {"action": "flag_selected", "_selected_action": chosen, "flag": "sensitive"}
    response = as_researcher.post("/admin/survey/question/", asked, follow=True)
    assert "Say why: the reason is kept with the flag." in response.content.decode()
    assert not Question.objects.exclude(flag="").exists()
    response = as_researcher.post("/admin/survey/question/", {**asked, "reason": "about faith"}, follow=True)
    assert "3 questions changed." in response.content.decode()
    flagged = Question.objects.filter(flag="sensitive", flag_reason="about faith", flagged_at__isnull=False)
    assert {str(question.pk) for question in flagged} == set(chosen)
    assert {question.flagged_by.get_username() for question in flagged if question.flagged_by} == {"researcher"}


def test_no_flag_changes_between_the_candidates_of_a_stage_and_its_plan(as_researcher: Client) -> None:
    study = cast.study()
    stage = stage_of(study)
    store_candidates(
        stage, draw_candidates(stage, drawable_questions(stage)), questions_sha256=question_set_digest(study)
    )
    question = Bank.objects.get().questions.first()
    assert question is not None
    response = flag(as_researcher, question, flag="broken", flag_reason="why")
    assert "The candidates of cast stage 1 are drawn" in response.content.decode()
    question.refresh_from_db()
    assert question.flag == ""


# Panel identities


def identity_page(study: Study) -> str:
    return f"/admin/survey/panelidentity/{PanelIdentity.objects.filter(study=study).earliest('pk').pk}/change/"


def test_each_look_at_a_panel_identity_is_written_down(study: Study, as_superuser: Client, superuser: User) -> None:
    for looks in (1, 2):
        body = as_superuser.get(identity_page(study)).content.decode()
        assert f"{PERSON}101" in body and f"{SUBMISSION}101" in body
        written = AuditEntry.objects.filter(action="see_panel_identity")
        assert written.count() == looks
    entry = written.first()
    assert entry is not None
    assert (entry.actor, entry.via) == (actor_of(superuser), "admin")
    assert PERSON not in f"{entry.subject}{entry.detail}"


def test_panel_identities_need_a_permission_of_their_own(study: Study, researcher: User) -> None:
    researcher.user_permissions.add(Permission.objects.get(codename="view_panelidentity"))
    client = client_of(researcher)
    for address in ("/admin/survey/panelidentity/", identity_page(study)):
        assert client.get(address).status_code == 403
    assert "panelidentity" not in client.get("/admin/").content.decode()
    assert not AuditEntry.objects.filter(action="see_panel_identity").exists()
    researcher.user_permissions.add(Permission.objects.get(codename="see_panel_identity"))
    client = client_of(User.objects.get(pk=researcher.pk))
    assert client.get("/admin/survey/panelidentity/").status_code == 200
    assert f"{PERSON}101" in client.get(identity_page(study)).content.decode()


def test_the_ids_are_removed_by_who_may_delete_answers_once_the_page_has_asked(
    study: Study, as_superuser: Client, superuser: User, researcher: User
) -> None:
    address = f"/admin/survey/study/{study.pk}/remove-ids/"
    assert client_of(researcher).get(address).status_code == 403  # The group does not give it.
    body = as_superuser.get(address).content.decode()
    assert "stage 2 is open: people may still come who are to be paid" in body and "<form" not in body.partition("main")
    Study.objects.filter(pk=study.pk).update(stored_config={**study.stored_config, "panel": {"kind": "open"}})
    stored = PanelIdentity.objects.exclude(ids_encrypted=b"")
    assert f"of {stored.count()} people" in as_superuser.get(address).content.decode() and stored.count() == 4
    sent = {"days": "0", "with_hashes": "on"}
    assert "days" in as_superuser.post(address, {"days": "-1"}).content.decode() and stored.count() == 4
    body = as_superuser.post(address, sent, follow=True).content.decode()
    assert "the ids of 4 people and 0 submissions; the hashes stay, since stage 2 is open" in body
    assert not stored.exists() and PanelIdentity.objects.count() == 4
    entry = AuditEntry.objects.get(action="purge_identities")
    assert (entry.actor, entry.via, entry.detail["identities"]) == (actor_of(superuser), "admin", 4)


def test_an_identity_under_another_key_is_said_to_be_unreadable(
    study: Study, as_superuser: Client, settings: Any
) -> None:
    settings.HUNCH_IDENTITY_KEY = "another"
    assert "cannot be read" in as_superuser.get(identity_page(study)).content.decode()


# Tokens


def test_a_token_is_shown_once_and_reads_the_api(as_researcher: Client, researcher: User) -> None:
    response = as_researcher.post("/admin/survey/apitoken/add/", {"name": "R scripts", "scope": "read", "days": "90"})
    secret = response.context["secret"]
    assert secret in response.content.decode()
    assert "no-store" in response["Cache-Control"]
    token = ApiToken.objects.get()
    assert (token.user, token.name, token.digest) == (researcher, "R scripts", ApiToken.hashed(secret))
    for address in ("/admin/survey/apitoken/", f"/admin/survey/apitoken/{token.pk}/change/"):
        assert secret not in as_researcher.get(address).content.decode()
    answers = Client().get("/api/v1/studies/", HTTP_AUTHORIZATION=f"Token {secret}")
    assert answers.status_code == 200
    assert AuditEntry.objects.filter(action="create_token", actor=actor_of(researcher), via="admin").count() == 1


def test_a_token_is_downloaded_as_text(as_researcher: Client) -> None:
    response = as_researcher.post(
        "/admin/survey/apitoken/add/", {"name": "", "scope": "read", "days": "90", "download": "1"}
    )
    assert response["Content-Type"].startswith("text/plain")
    assert ApiToken.hashed(response.content.decode().strip()) == ApiToken.objects.get().digest


def test_a_revoked_token_is_refused_and_revoked_once(as_researcher: Client, researcher: User) -> None:
    token, secret = ApiToken.issue(user=researcher)
    address = f"/admin/survey/apitoken/{token.pk}/revoke/"
    assert as_researcher.get(address).status_code == 200
    assert Client().get("/api/v1/studies/", HTTP_AUTHORIZATION=f"Token {secret}").status_code == 200
    for _ in range(2):
        assert as_researcher.post(address).status_code == 302
    assert Client().get("/api/v1/studies/", HTTP_AUTHORIZATION=f"Token {secret}").status_code == 401
    assert AuditEntry.objects.filter(action="revoke_token").count() == 1


def test_nobody_sees_or_revokes_the_token_of_somebody_else_but_a_superuser(
    as_researcher: Client, superuser: User, as_superuser: Client, researcher: User
) -> None:
    token, _secret = ApiToken.issue(user=superuser)
    assert as_researcher.get("/admin/survey/apitoken/").context["cl"].result_count == 0
    assert as_researcher.post(f"/admin/survey/apitoken/{token.pk}/revoke/").status_code == 404
    token.refresh_from_db()
    assert token.revoked_at is None
    theirs, _secret = ApiToken.issue(user=researcher)
    assert as_superuser.post(f"/admin/survey/apitoken/{theirs.pk}/revoke/").status_code == 302


def test_a_token_is_for_ones_own_studies_and_no_test_copy(as_researcher: Client, researcher: User) -> None:
    mine = cast.small_study("mine")
    cast.join(researcher, test_copies.make_copy(mine))
    theirs = cast.small_study("theirs")
    StudyMembership.objects.filter(user=researcher, study=theirs).delete()
    address = "/admin/survey/apitoken/add/"
    form = as_researcher.get(address).context["form"]
    assert [study.slug for study in form.fields["studies"].queryset] == ["mine"]
    chosen = {"name": "", "scope": "run", "days": "7"}
    refused = as_researcher.post(address, {**chosen, "studies": ["theirs"]})
    assert list(refused.context["form"].errors) == ["studies"] and not ApiToken.objects.exists()
    as_researcher.post(address, {**chosen, "studies": ["mine"]})
    token = ApiToken.objects.get()
    assert (token.scope, token.for_all_studies, list(token.studies.all())) == ("run", False, [mine])
    assert timedelta(days=6, hours=23) < token.expires_at - timezone.now() < timedelta(days=7)
    as_researcher.post(address, chosen)
    assert ApiToken.objects.latest("pk").for_all_studies


def test_a_token_needs_the_permission_to_make_one(onlooker: User) -> None:
    assert client_of(onlooker).post("/admin/survey/apitoken/add/", {"name": ""}).status_code == 403
    assert not ApiToken.objects.exists()


# The group


def test_the_group_may_look_run_and_export_and_not_see_panel_identities(db: None) -> None:
    group = ensure_researchers_group()
    names = set(group.permissions.values_list("codename", flat=True))
    assert {"run_study", "export_study", "view_sitting", "view_belief", "change_question", "add_apitoken"} <= names
    assert not {"see_panel_identity", "view_panelidentity"} & names
    assert "view_guess" in names, "rows of instruments that packages bring are seen as well"
    assert {name for name in names if name.split("_")[0] in ("add", "change", "delete")} == {
        "change_question",
        "add_apitoken",
        "add_bank",
        "add_study",
    }


def test_the_group_is_mended_when_it_is_asked_for_again(db: None) -> None:
    group = ensure_researchers_group()
    group.permissions.set(Permission.objects.filter(codename__in=["see_panel_identity", "delete_user"]))
    assert ensure_researchers_group() == group
    names = set(group.permissions.values_list("codename", flat=True))
    assert "run_study" in names and not {"see_panel_identity", "delete_user"} & names


# The audit


def test_the_audits_list_shows_the_head_and_whose_a_name_is(
    as_superuser: Client, as_researcher: Client, researcher: User
) -> None:
    address = "/admin/survey/auditentry/"
    assert "Nothing is sealed yet" in as_superuser.get(address).content.decode()
    entry = record("open_stage", "small stage 1", by=researcher, via="admin")
    audit_chain.seal_entries()
    record("pause_stage", "small stage 1")
    body = as_superuser.get(address).content.decode()
    assert audit_chain.head().sha256 in body and "1 entries wait" in body
    assert f"{actor_of(researcher)} (researcher)" in body
    colleague = User.objects.create_user("colleague")
    record("close_stage", "small stage 1", by=colleague, via="admin", study="small")
    for_superuser = as_superuser.get(address).content.decode()
    assert f"{actor_of(colleague)} (colleague)" in for_superuser
    page = as_superuser.get(f"{address}{entry.pk}/change/").content.decode()
    assert audit_chain.head().sha256 in page and f"{actor_of(researcher)} (researcher)" in page
    assert actor_of(researcher) in as_superuser.get(f"/admin/auth/user/{researcher.pk}/change/").content.decode()


def test_the_chain_is_checked_on_a_page_that_names_what_was_changed(
    as_superuser: Client, as_researcher: Client, superuser: User
) -> None:
    address = "/admin/survey/auditentry/check/"
    entry = record("open_stage", "small stage 1", study="small")
    audit_chain.seal_entries()
    assert as_researcher.get(address).status_code == as_researcher.post(address).status_code == 403
    assert address not in as_researcher.get("/admin/survey/auditentry/").content.decode()
    assert f'href="{address}"' in as_superuser.get("/admin/survey/auditentry/").content.decode()
    assert "entries agree with the chain" in as_superuser.post(address, follow=True).content.decode()
    check = AuditEntry.objects.get(action="verify_audit")
    assert (check.actor, check.via, check.detail["faults"]) == (actor_of(superuser), "admin", 0)
    with databases.unguarded():
        AuditEntry.objects.filter(pk=entry.pk).update(subject="small stage 2")
    body = as_superuser.post(address).content.decode()
    assert "does not agree with its chain" in body and f"entry {entry.pk} was changed after seal" in body
    assert f"entry {entry.pk} was changed" in as_superuser.get(address).content.decode()


def test_members_see_the_names_of_each_other_and_of_nobody_else(as_researcher: Client, researcher: User) -> None:
    study = cast.small_study()
    member, stranger = User.objects.create_user("member"), User.objects.create_user("stranger")
    cast.join(researcher, study)
    cast.join(member, study, "analyst")
    for user in (member, stranger):
        record("export_answers", study, by=user, via="api")
    other = cast.small_study("other")
    for subject, action in ((study, "open_stage"), (other, "export_answers")):
        record(action, subject, by=member, via="api")
    page = as_researcher.get(f"/admin/survey/auditentry/?study={study.slug}&what=exports")
    assert {(row.study, row.action) for row in page.context["cl"].result_list} == {(study.slug, "export_answers")}
    body = page.content.decode()
    assert f"{actor_of(member)} (member)" in body
    assert actor_of(stranger) in body and "(stranger)" not in body


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("what", "shown"),
    [
        ("identities", {"see_panel_identity"}),
        ("exports", {"export_answers", "download_job"}),
        ("money", {"pay_bonuses", "publish_posting"}),
        ("deletions", {"withdraw"}),
        ("rights", {"add_member"}),
        ("stages", {"open_stage", "create_study"}),
    ],
)
def test_the_audit_says_who_looked_exported_paid_and_deleted(as_superuser: Client, what: str, shown: set[str]) -> None:
    every = {"see_panel_identity", "export_answers", "download_job", "pay_bonuses", "publish_posting"}
    every |= {"withdraw", "add_member", "open_stage"}
    study, other = cast.small_study(), cast.small_study("other")
    for action in every:
        record(action, study)
        record(action, other)
    rows = as_superuser.get(f"/admin/survey/auditentry/?study={study.slug}&what={what}").context["cl"].result_list
    assert {(row.action, row.study) for row in rows} == {(action, study.slug) for action in shown}


def test_every_kind_of_action_names_actions_that_are_recorded() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in Path(settings.BASE_DIR, "survey").rglob("*.py"))
    made = {f"{move.value}_posting" for move in Move} | {action.replace(" ", "_") for action in Action}
    made.add("admin_delete")
    for _label, actions in KINDS_OF_ACTION.values():
        for action in actions:
            assert action in made or source.count(f'"{action}"') >= 2, action


def test_the_list_is_narrowed_to_a_way(as_superuser: Client) -> None:
    record("one", "subject of the web", via="web")
    record("two", "subject of a command")
    body = as_superuser.get("/admin/survey/auditentry/?via=web").content.decode()
    assert "subject of the web" in body and "subject of a command" not in body


def test_edits_of_users_and_groups_are_in_the_audit_without_values(
    as_superuser: Client, superuser: User, researcher: User
) -> None:
    added = {"name": "Readers", "permissions": []}
    assert as_superuser.post("/admin/auth/group/add/", added).status_code == 302
    group = Group.objects.get(name="Readers")
    assert as_superuser.post(f"/admin/auth/group/{group.pk}/change/", {"name": "Others"}).status_code == 302
    assert as_superuser.post(f"/admin/auth/group/{group.pk}/delete/", {"post": "yes"}).status_code == 302
    password = {"password1": "a long pass phrase", "password2": "a long pass phrase", "usable_password": "true"}
    assert as_superuser.post(f"/admin/auth/user/{researcher.pk}/password/", password).status_code == 302
    entries = AuditEntry.objects.exclude(action="log_in").order_by("pk")
    assert [(entry.action, entry.subject) for entry in entries] == [
        ("add_group", "Readers"),
        ("admin_change", "Others"),
        ("delete_group", "Others"),
        ("change_password", actor_of(researcher)),
        ("admin_change", actor_of(researcher)),
    ]
    assert [entries[number].detail["fields"] for number in (1, 4)] == [["Name"], ["password"]]
    assert {entry.actor for entry in entries} == {actor_of(superuser)}


def test_whoever_may_be_edited_by_djangos_forms_is_audited(superuser: User) -> None:
    """Other lists are for looking only, or write their own entries."""
    own = {"question", "apitoken", "entrylink", "answercollection", "bank", "study", "logo"}
    request = RequestFactory().get("/")
    request.user = superuser
    for model, pages in site._registry.items():
        edits = (
            pages.has_add_permission(request),
            pages.has_change_permission(request),
            pages.has_delete_permission(request),
        )
        assert not any(edits) or isinstance(pages, RecordsEdits) or model._meta.model_name in own, model
