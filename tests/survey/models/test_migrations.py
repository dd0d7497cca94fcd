"""What migrations write into rows that were there before them."""

from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User

from survey.models import Amendment, CompletionCode, Study, StudyMembership
from survey.services.base import rights
from survey.services.base.groups import ensure_researchers_group
from survey.services.base.rights import Right
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.every_database]


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
