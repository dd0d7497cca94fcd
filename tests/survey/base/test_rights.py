"""Who may do what in a study, and which rows they see."""

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Permission, User

from survey.models import (
    AnswerCollection,
    ApiToken,
    AuditEntry,
    Bank,
    Consent,
    LanguageModel,
    ModelAnswer,
    Question,
    QuestionText,
    Reading,
    Respondent,
    Sitting,
    Stage,
    Study,
    StudyMembership,
)
from survey.services.base import auditing, rights
from survey.services.base.rights import GATES, Right
from survey.services.studies import test_copies
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def mine() -> Study:
    return cast.study()


@pytest.fixture
def theirs() -> Study:
    return cast.study(slug="theirs", bank=cast.bank(name="their-bank").name)


def member(study: Study, role: str, *, may_spend: bool = False, permitted: bool = True) -> Any:
    user = User.objects.create_user(f"{role} {may_spend} {permitted}")
    if permitted:
        user.user_permissions.set(Permission.objects.filter(content_type__app_label="survey"))
    cast.join(user, study, role, may_spend=may_spend)
    return User.objects.get(pk=user.pk)


def given(user: Any, study: Study) -> set[Right]:
    return {right for right in Right if rights.may(user, right, study.pk)}


def test_each_role_adds_to_the_one_below_and_spending_stands_beside_them(mine: Study, theirs: Study) -> None:
    roles = ("viewer", "analyst", "editor", "owner")
    viewer, analyst, editor, owner = (given(member(mine, role), mine) for role in roles)
    assert viewer == {Right.SEE}
    assert analyst == viewer | {Right.READ_ANSWERS, Right.EXPORT}
    of_editors = {Right.RUN, Right.EDIT, Right.AMEND, Right.MAKE_LINKS, Right.SEE_POSTINGS, Right.RECRUIT}
    assert editor == analyst | of_editors | {Right.SEE_IDENTITIES, Right.WITHDRAW}
    assert owner == editor | {Right.MANAGE_MEMBERS, Right.UNBLIND}
    spends = {Right.SEE_POSTINGS, Right.SPEND, Right.PAY}
    assert given(member(mine, "viewer", may_spend=True), mine) == viewer | spends
    assert given(User.objects.create_superuser("super"), mine) == set(Right)
    for user in (User.objects.get(username="owner False True"), AnonymousUser()):
        assert given(user, theirs) == set()


def test_an_accounts_permissions_limit_every_role(mine: Study) -> None:
    unpermitted = member(mine, "owner", may_spend=True, permitted=False)
    assert given(unpermitted, mine) == set(Right) - set(GATES)


@pytest.mark.parametrize(
    ("permission", "lost"),
    [
        ("export_study", {Right.EXPORT}),
        ("run_study", {Right.RUN}),
        ("add_study", {Right.EDIT}),
        ("amend_study", {Right.AMEND}),
        ("make_links", {Right.MAKE_LINKS}),
        ("view_posting", {Right.SEE_POSTINGS}),
        ("recruit", {Right.RECRUIT, Right.SPEND}),
        ("pay_people", {Right.PAY}),
        ("see_panel_identity", {Right.SEE_IDENTITIES}),
        ("withdraw_people", {Right.WITHDRAW}),
    ],
)
def test_without_a_permission_an_owner_lacks_its_rights_alone(mine: Study, permission: str, lost: set[Right]) -> None:
    user = member(mine, "owner", may_spend=True)
    user.user_permissions.remove(Permission.objects.get(codename=permission))
    assert set(Right) - given(User.objects.get(pk=user.pk), mine) == lost


def test_in_a_test_copy_nobody_spends_or_changes_anything(mine: Study) -> None:
    copy = test_copies.make_copy(mine)
    may = {Right.SEE, Right.READ_ANSWERS, Right.EXPORT, Right.RUN}
    for role, rights_there in (("owner", may), ("analyst", may - {Right.RUN}), ("viewer", {Right.SEE})):
        assert given(member(mine, role, may_spend=True), copy) == rights_there


def test_who_was_deactivated_may_nothing(mine: Study) -> None:
    user = member(mine, "owner", may_spend=True)
    assert rights.is_spender(user, mine.pk)
    user.is_active = False
    assert given(user, mine) == set() and not rights.is_spender(user, mine.pk)


def test_a_spender_is_one_whatever_the_account_may_and_in_that_study_alone(mine: Study, theirs: Study) -> None:
    spender, owner = (member(mine, "owner", may_spend=spends, permitted=False) for spends in (True, False))
    assert [rights.is_spender(spender, study.pk) for study in (mine, theirs)] == [True, False]
    assert not rights.is_spender(owner, mine.pk)
    assert rights.is_spender(User.objects.create_superuser("super"), theirs.pk)


def test_rows_of_single_people_need_the_right_to_read_answers(mine: Study) -> None:
    sitting = cast.begin(cast.open_study(slug="open"))
    viewer, analyst = (member(sitting.stage.study, role) for role in ("viewer", "analyst"))
    for rows in (Sitting.objects.all(), Respondent.objects.all(), Consent.objects.all()):
        assert (rights.visible(viewer, rows).count(), rights.visible(analyst, rows).count()) == (0, 1), rows.model


def test_rows_of_other_studies_are_not_there(mine: Study, theirs: Study) -> None:
    user = member(mine, "owner")
    for rows in (Study.objects.all(), mine.stages.model.objects.all(), Bank.objects.all(), Question.objects.all()):
        seen = rights.visible(user, rows)
        assert 0 < seen.count() < rows.count(), rows.model
    assert not rights.visible(user, User.objects.all()).exists(), "what belongs to no study is for superusers"


def test_language_models_are_seen_by_the_banks_they_answered(mine: Study, theirs: Study) -> None:
    for study in (mine, theirs):
        asked = LanguageModel.objects.create(name=f"asked of {study.slug}")
        ModelAnswer.objects.create(language_model=asked, question=study.bank.questions.all()[0])
        waiting = LanguageModel.objects.create(name=f"to be asked of {study.slug}")
        AnswerCollection.objects.create(language_model=waiting, bank=study.bank, model="m")
    names = rights.visible(member(mine, "viewer"), LanguageModel.objects.all()).values_list("name", flat=True)
    assert set(names) == {"asked of cast", "to be asked of cast"}


def test_readings_are_seen_by_the_banks_that_hold_their_text(mine: Study, theirs: Study) -> None:
    shared, own = "a" * 64, "b" * 64
    for study, text in ((mine, shared), (theirs, shared), (theirs, own)):
        question = study.bank.questions.filter(text_hash=None)[0]
        QuestionText.objects.create(question=question, text_sha256=text)
    for text in (shared, own):
        model = LanguageModel.objects.create(name=f"read {text[0]}")
        Reading.objects.create(language_model=model, text_sha256=text, characters=1, token_count=1, tokens=b"x")
    viewer = member(mine, "viewer")
    assert [reading.text_sha256 for reading in rights.visible(viewer, Reading.objects.all())] == [shared]
    assert [language_model.name for language_model in rights.visible(viewer, LanguageModel.objects.all())] == ["read a"]


def test_a_token_for_some_studies_limits_even_a_superuser(mine: Study, theirs: Study) -> None:
    user = User.objects.create_superuser("super")
    rights.limit(user, [mine.pk])
    assert (given(user, mine), given(user, theirs)) == (set(Right), set())
    assert list(rights.visible(user, Study.objects.all())) == [mine]
    owner = member(mine, "owner")
    cast.join(owner, theirs, "owner")
    owner = User.objects.get(pk=owner.pk)
    rights.limit(owner, [theirs.pk])
    assert (given(owner, mine), Right.AMEND in given(owner, theirs)) == (set(), True)


def test_memberships_are_read_once_a_request(mine: Study, django_assert_num_queries: Any) -> None:
    user = member(mine, "owner")
    user.has_perm("survey.run_study")  # Django reads the permissions once as well.
    with django_assert_num_queries(1):
        for right in Right:
            rights.may(user, right, mine.pk)


def test_the_audit_knows_the_study_of_what_was_done(mine: Study) -> None:
    sitting = cast.begin(cast.open_study(slug="open"))
    token = ApiToken.issue(user=User.objects.create_user("ada"))[0]
    expected = [(mine, mine.slug), (mine.stages.all()[0], mine.slug), (sitting.respondent, "open")]
    for subject, study in [*expected, (token, ""), ("a text", "")]:
        auditing.record("test", subject)
        assert AuditEntry.objects.get(action="test", subject=str(subject)).study == study


def test_a_token_for_chosen_studies_sees_their_banks_alone() -> None:
    """Not those that its user uploaded, nor the starter bank, though the user may make studies."""
    user = User.objects.create_user("maker")
    user.user_permissions.add(Permission.objects.get(codename="add_study"))
    mine = cast.small_study("mine")
    cast.join(user, mine, "owner")
    other, starter = cast.small_bank(name="other"), cast.small_bank(name=rights.STARTER_BANK)
    Bank.objects.filter(pk=other.pk).update(created_by=user)
    user = User.objects.get(pk=user.pk)
    assert {bank.name for bank in rights.visible_banks(user)} == {mine.bank.name, "other", starter.name}
    assert {bank.name for bank in rights.visible_banks(user, Right.EXPORT)} == set(), "only of studies that they may"
    Bank.objects.filter(pk=starter.pk).update(created_by=User.objects.create_user("somebody"))
    assert {bank.name for bank in rights.visible_banks(user)} == {mine.bank.name, "other"}
    rights.limit(user, [mine.pk])
    assert {bank.name for bank in rights.visible_banks(user)} == {mine.bank.name}


def test_a_row_belongs_to_the_study_that_its_relations_lead_to() -> None:
    study, user = Study(pk=7, slug="s"), User(pk=3)
    stage = Stage(pk=11, study=study)
    person = Respondent(pk=17, study=study)
    sitting = Sitting(pk=13, stage=stage, respondent=person)
    rows = (study, stage, sitting, person, StudyMembership(pk=19, study=study, user=user))
    assert [rights.study_key_of(row) for row in rows] == [7] * len(rows)
    with pytest.raises(LookupError, match="rows of Bank belong to no study"):
        rights.study_key_of(Bank(pk=7))
