"""What migrations write into rows that were there before them."""

from datetime import timedelta
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.db import connection

from survey.instruments.belief_update.models import TargetAnswer
from survey.instruments.own_answers.models import OwnAnswer
from survey.instruments.preference.models import JudgeVerdict
from survey.models import Amendment, CompletionCode, LanguageModel, ModelAnswer, Study, StudyMembership
from survey.services.base import rights
from survey.services.base.groups import ensure_researchers_group
from survey.services.base.rights import Right
from tests import cast

pytestmark = pytest.mark.django_db


def test_a_study_from_before_gets_a_code_for_those_screened_out_and_keeps_its_others() -> None:
    old, new = cast.small_study("old"), cast.small_study("new")
    CompletionCode.objects.filter(study=old, outcome="screened_out").delete()
    before = dict(old.codes.values_list("outcome", "code")), dict(new.codes.values_list("outcome", "code"))
    migration = import_module("survey.migrations.0006_blocks")
    for _twice in range(2):
        migration.give_each_study_a_code_for_those_screened_out(apps, None)
    made = old.completion_code("screened_out")
    assert len(made) == 10 and made not in before[0].values()
    assert dict(old.codes.exclude(outcome="screened_out").values_list("outcome", "code")) == before[0]
    assert dict(new.codes.values_list("outcome", "code")) == before[1]


def account(name: str, *permissions: str, group: Group | None = None, **flags: bool) -> User:
    user = User.objects.create_user(name, **flags)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    if group is not None:
        user.groups.add(group)
    return user


def test_present_accounts_keep_what_they_could_do_as_members() -> None:
    old = cast.small_study("old")
    cast.small_study("new")
    creator = account("creator", "view_study")
    Study.objects.filter(pk=old.pk).update(created_by=creator)
    researchers = ensure_researchers_group()
    account("researcher", group=researchers)
    account("payer", "view_study", "pay_people")
    account("reader", "export_study")
    account("looker", "view_study")
    account("identities", "see_panel_identity", "view_study")
    account("nobody")
    account("super", is_superuser=True)
    migration = import_module("survey.migrations.0017_rights")
    for _twice in range(2):
        migration.make_members(apps, None)
    found = {
        (str(member.study), str(member.user)): (member.role, member.may_spend)
        for member in StudyMembership.objects.select_related("study", "user")
    }
    assert found.pop(("old", "creator")) == ("owner", True)
    assert found.pop(("new", "creator")) == ("viewer", False)
    expected = {
        "researcher": ("editor", True),
        "payer": ("viewer", True),
        "reader": ("analyst", False),
        "looker": ("viewer", False),
        "identities": ("editor", False),
    }
    assert found == {(study, name): role for study in ("old", "new") for name, role in expected.items()}
    # The account's permissions limit the role, so that nobody gained anything.
    gates = {name: User.objects.get(username=name) for name in ("payer", "identities", "researcher")}
    assert not rights.may(gates["payer"], Right.SPEND, old.pk) and rights.may(gates["payer"], Right.PAY, old.pk)
    assert not rights.may(gates["identities"], Right.RUN, old.pk)
    assert rights.may(gates["researcher"], Right.SPEND, old.pk) and not rights.may(
        gates["researcher"], Right.PAY, old.pk
    )


def test_a_study_that_was_opened_before_there_were_locks_is_locked_as_of_that_time() -> None:
    opened, amended, closed = cast.open_stage(), cast.open_stage("amended"), cast.small_study("closed")
    Study.objects.update(locked_at=None, locked_sha256="")
    Amendment.objects.create(
        study=amended.study,
        at=amended.opened_at + timedelta(hours=1),
        reason="a typo",
        was_locked=False,
        old_sha256="a" * 64,
        new_sha256=amended.study.source_sha256,
        old_text="",
        old_config={},
    )
    migration = import_module("survey.migrations.0019_operation")
    for _twice in range(2):
        migration.lock_studies_that_were_opened_before(apps, None)
    found = {study.slug: (study.locked_at, study.locked_sha256) for study in Study.objects.all()}
    assert found == {
        opened.study.slug: (opened.opened_at, opened.study.source_sha256),
        "amended": (amended.opened_at, "a" * 64),
        closed.slug: (None, ""),
    }


def test_the_study_of_an_old_audit_entry_is_read_off_its_words() -> None:
    study_in = import_module("survey.migrations.0020_audit_chain").study_in
    slugs = {"cast", "two-words"}
    for subject, detail, study in (
        ("cast", {}, "cast"),
        ("cast stage 1", {}, "cast"),
        ("two-words stage 2 at prolific", {}, "two-words"),
        ("payment 3 of cast stage 1 at prolific", {}, "cast"),
        ("r-0123456789abcdef", {"study": "cast"}, "cast"),
        ("cast version 1", {}, ""),
        ("cast version 1 question q7", {}, ""),
        ("unknown stage 1", {"study": "unknown"}, ""),
    ):
        assert study_in(subject, detail, slugs) == study, subject


def test_what_was_judged_before_was_judged_by_the_first_rules_and_what_was_imported_by_none() -> None:
    stage = cast.open_stage("old")
    stage.study.bank.questions.filter(external_id="q39").update(answer="")
    answers = [
        ("right", {"request_sha256": "a", "correct": True}, "1", 0),
        ("unread", {"request_sha256": "b", "correct": False, "reason": "the reply names no option"}, "1", 1),
        ("imported", {"correct": False, "reason": "as its file says"}, "", 0),
        ("keyless", {"request_sha256": "c", "correct": None, "reason": "no key"}, "", 0),
    ]
    questions = stage.study.bank.questions
    for name, values, _rules, _unreadable in answers:
        of = questions.filter(answer="") if name == "keyless" else questions.exclude(answer="")
        ModelAnswer.objects.create(
            language_model=LanguageModel.named(name), question=of.first(), response="x", **values
        )
    a, b = ModelAnswer.objects.order_by("pk")[:2]
    for first, sha256 in (("a", "d"), ("b", "")):
        JudgeVerdict.objects.create(judge=a.language_model, a=a, b=b, first=first, request_sha256=sha256)
    assignment = cast.assignment(cast.sitting(stage), stage.slots.first())
    response = cast.response(assignment)
    own = OwnAnswer.objects.create(response=response, text="42", correct=True)
    target = TargetAnswer.objects.create(response=response, text="A", correct=True)
    editor = SimpleNamespace(connection=connection, execute=connection.cursor().execute)
    for place in (
        "survey.migrations.0041_rules_of_verdicts",
        "survey.instruments.belief_update.migrations.0007_rules_of_verdicts",
        "survey.instruments.own_answers.migrations.0002_rules_of_verdicts",
        "survey.instruments.preference.migrations.0002_rules_of_scores",
    ):
        import_module(place).name_the_first_rules(apps, editor)
    written = ModelAnswer.objects.values_list("language_model__name", "rules_version", "unreadable")
    assert set(written) == {(name, rules, unreadable) for name, _values, rules, unreadable in answers}
    assert dict(JudgeVerdict.objects.values_list("first", "rules_version")) == {"a": "1", "b": ""}
    own.refresh_from_db()
    target.refresh_from_db()
    assert (own.rules_version, target.rules_version) == ("1", "1")
