"""Members of a study: adding, changing, removing, and invitations that work once."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from survey.exceptions import NotFound, StateRefused
from survey.models import AuditEntry, Study, StudyInvitation, StudyMembership
from survey.services.base.auditing import actor_of
from survey.services.studies import members
from tests import cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def study() -> Study:
    return cast.small_study()


def user(name: str) -> User:
    return User.objects.create_user(name)


@pytest.fixture
def owner(study: Study) -> User:
    made = user("owner")
    cast.join(made, study, may_spend=False)
    return made


def again(user: User) -> User:
    """As the next request reads it."""
    return User.objects.get(pk=user.pk)


def invited(study: Study, by: User, **options: Any) -> tuple[StudyInvitation, str]:
    options = {"role": "editor", "may_spend": False, "now": timezone.now(), **options}
    return members.invite(study, by=by, **options)


def test_who_creates_a_study_owns_it_and_may_spend() -> None:
    cast.small_bank()
    ada = user("ada")
    made = members.set_member(cast.small_study(), user=ada, role="viewer", may_spend=False)
    assert (made.role, made.may_spend) == ("viewer", False)
    own = cast.create_study(text=cast.study_text(bank="small", slug="own"), source_name="own.toml", by=ada)
    assert own.memberships.values_list("user", "role", "may_spend").get() == (ada.pk, "owner", True)


def test_the_last_owner_neither_leaves_nor_becomes_less(study: Study, owner: User) -> None:
    member = study.memberships.get()
    with pytest.raises(StateRefused, match="keeps an owner"):
        members.remove_member(member)
    with pytest.raises(StateRefused, match="keeps an owner"):
        members.set_member(study, user=owner, role="editor", may_spend=False)
    second = members.set_member(study, user=user("second"), role="owner", may_spend=False, by=owner, via="admin")
    members.remove_member(member, by=owner, via="admin")
    assert list(study.memberships.all()) == [second]
    assert list(AuditEntry.objects.values_list("action", flat=True)[:2]) == ["remove_member", "add_member"]


def test_the_right_to_spend_is_given_by_who_has_it(study: Study, owner: User) -> None:
    other = user("other")
    for give in (
        lambda: members.set_member(study, user=other, role="viewer", may_spend=True, by=owner),
        lambda: members.set_member(study, user=owner, role="owner", may_spend=True, by=owner),
        lambda: invited(study, owner, may_spend=True),
    ):
        with pytest.raises(StateRefused, match="may_spend"):
            give()
    cast.join(owner, study, may_spend=True)
    assert members.set_member(study, user=other, role="viewer", may_spend=True, by=again(owner)).may_spend


def test_an_invitation_makes_one_person_a_member(study: Study, owner: User) -> None:
    made, secret = invited(study, owner)
    now = timezone.now()
    assert secret not in str(StudyInvitation.objects.values().get())
    invitation = members.find_invitation(secret, now)
    first, second = user("first"), user("second")
    assert members.accept(invitation, user=first, now=now).role == "editor"
    with pytest.raises(NotFound):
        members.accept(invitation, user=second, now=now)  # Found before the first one accepted it.
    with pytest.raises(NotFound):
        members.find_invitation(secret, now)
    made.refresh_from_db()
    assert made.accepted_by == first and not StudyMembership.objects.filter(user=second).exists()
    entry = AuditEntry.objects.get(action="accept_invitation")
    assert (entry.actor, entry.study, entry.detail["invited_by"]) == (actor_of(first), study.slug, actor_of(owner))


def test_an_invitation_ends(study: Study, owner: User) -> None:
    now = timezone.now()
    _made, secret = invited(study, owner)
    with pytest.raises(NotFound):
        members.find_invitation(secret, now + timedelta(days=7, seconds=1))
    revoked, gone = invited(study, owner)
    assert members.revoke_invitation(revoked, now=now, by=owner) and not members.revoke_invitation(
        revoked, now=now, by=owner
    )
    with pytest.raises(NotFound):
        members.find_invitation(gone, now)
    for unknown in ("", "nobody's"):
        with pytest.raises(NotFound):
            members.find_invitation(unknown, now)


def test_who_sent_it_must_still_be_allowed_to(study: Study, owner: User) -> None:
    cast.join(owner, study, may_spend=True)
    _made, secret = invited(study, again(owner), may_spend=True)
    cast.join(user("second"), study)
    members.find_invitation(secret, timezone.now())
    cast.join(owner, study, may_spend=False)
    with pytest.raises(NotFound):
        members.find_invitation(secret, timezone.now())
    cast.join(owner, study, "editor", may_spend=True)
    with pytest.raises(NotFound):
        members.find_invitation(secret, timezone.now())


def test_a_member_keeps_their_role_and_the_link(study: Study, owner: User) -> None:
    made, secret = invited(study, owner, role="viewer")
    with pytest.raises(StateRefused, match="member of this study already"):
        members.accept(made, user=owner, now=timezone.now())
    assert members.find_invitation(secret, timezone.now()) == made
    assert study.memberships.get().role == "owner"


def test_a_link_that_was_found_before_it_ended_makes_nobody_a_member(study: Study, owner: User) -> None:
    now = timezone.now()
    made, _secret = invited(study, owner, now=now)
    revoked, _secret = invited(study, owner, now=now)
    other = user("other")
    with pytest.raises(NotFound):
        members.accept(made, user=other, now=made.expires_at)
    assert members.revoke_invitation(revoked, now=now, by=owner)
    with pytest.raises(NotFound):
        members.accept(revoked, user=other, now=now)
    assert members.open_invitations(study, now) == [made]
    assert members.open_invitations(study, made.expires_at) == []
    assert members.accept(made, user=other, now=made.expires_at - timedelta(seconds=1)).user == other
    assert members.open_invitations(study, now) == [] and not members.revoke_invitation(made, now=now, by=owner)
    assert members.open_invitations(cast.small_study("another", on=study.bank), now) == []


def test_what_changes_nothing_is_no_entry_and_who_could_spend_still_can(study: Study, owner: User) -> None:
    cast.join(owner, study, may_spend=True)
    other = user("other")
    members.set_member(study, user=other, role="viewer", may_spend=True, by=again(owner))
    cast.join(owner, study, may_spend=False)
    before = AuditEntry.objects.count()
    members.set_member(study, user=other, role="viewer", may_spend=True, by=again(owner))
    assert AuditEntry.objects.count() == before
    assert members.set_member(study, user=other, role="editor", may_spend=True, by=again(owner)).role == "editor"
    entry = AuditEntry.objects.first()
    assert (entry.detail["was"], entry.detail["could_spend"]) == ("viewer", True)
    member = study.memberships.get(user=other)
    members.remove_member(member)
    members.remove_member(member)
    assert AuditEntry.objects.filter(action="remove_member").count() == 1
