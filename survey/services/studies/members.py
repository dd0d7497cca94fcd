"""The members of a study: adding, changing and removing them, and inviting people by a link that works once.

Each change is written under the lock of the study's row, so that two owners cannot both leave as the last one.
"""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from survey.exceptions import NotFound, StateRefused
from survey.models import Study, StudyInvitation, StudyMembership
from survey.services.base import rights
from survey.services.base.auditing import actor_of, record
from survey.services.base.rights import Right

Role = StudyMembership.Role
INVITATION_HOLDS = timedelta(days=7)


@transaction.atomic
def set_member(
    study: Study, *, user: Any, role: str, may_spend: bool, by: Any = None, via: str = "command"
) -> StudyMembership:
    """Make somebody a member, or give a member another role.

    Raises:
        StateRefused: it would take away the last owner, or give a right to spend that `by` does not have.
    """
    _lock(study)
    member = StudyMembership.objects.filter(study=study, user=user).first()
    if may_spend and not (member and member.may_spend):
        _refuse_giving_more(study, by)
    if member is None:
        member = StudyMembership.objects.create(study=study, user=user, role=role, may_spend=may_spend)
        record("add_member", study, by=by, via=via, member=actor_of(user), role=role, may_spend=may_spend)
        return member
    if role != Role.OWNER:
        _refuse_last_owner(member)
    if (member.role, member.may_spend) != (role, may_spend):
        was = {"was": member.role, "could_spend": member.may_spend}
        member.role, member.may_spend = role, may_spend
        member.save(update_fields=["role", "may_spend"])
        record("change_member", study, by=by, via=via, member=actor_of(user), role=role, may_spend=may_spend, **was)
    return member


@transaction.atomic
def remove_member(member: StudyMembership, *, by: Any = None, via: str = "command") -> None:
    """
    Raises:
        StateRefused: it is the last owner.
    """
    _lock(member.study)
    now_stored = StudyMembership.objects.select_related("study", "user").filter(pk=member.pk).first()
    if now_stored is None:  # Somebody else was faster.
        return
    _refuse_last_owner(now_stored)
    now_stored.delete()
    name, role = actor_of(now_stored.user), now_stored.role
    record("remove_member", now_stored.study, by=by, via=via, member=name, role=role)


@transaction.atomic
def invite(
    study: Study, *, role: str, may_spend: bool, by: Any, now: datetime, via: str = "admin"
) -> tuple[StudyInvitation, str]:
    """An invitation, and the secret of its link, which is stored nowhere.

    Raises:
        StateRefused: it would give a right to spend that `by` does not have.
    """
    if may_spend:
        _refuse_giving_more(study, by)
    secret = secrets.token_urlsafe(32)
    made = StudyInvitation.objects.create(
        study=study,
        token_hash=_hashed(secret),
        role=role,
        may_spend=may_spend,
        invited_by=by,
        expires_at=now + INVITATION_HOLDS,
    )
    record("invite_member", study, by=by, via=via, invitation=made.pk, role=role, may_spend=may_spend)
    return made, secret


def open_invitations(study: Study, now: datetime) -> list[StudyInvitation]:
    """Those that somebody can still accept."""
    rows = study.invitations.filter(accepted_at__isnull=True, revoked_at__isnull=True, expires_at__gt=now)
    return list(rows.select_related("invited_by"))


@transaction.atomic
def revoke_invitation(invitation: StudyInvitation, *, now: datetime, by: Any) -> bool:
    """False if somebody has accepted or revoked it before."""
    waiting = StudyInvitation.objects.filter(pk=invitation.pk, accepted_at__isnull=True, revoked_at__isnull=True)
    if not waiting.update(revoked_at=now):
        return False
    record("revoke_invitation", invitation.study, by=by, via="admin", invitation=invitation.pk)
    return True


def find_invitation(secret: str, now: datetime) -> StudyInvitation:
    """
    Raises:
        NotFound: there is none, it was used or revoked, it is over, or who sent it may not invite any more.
    """
    rows = StudyInvitation.objects.select_related("study", "invited_by").filter(token_hash=_hashed(secret))
    invitation = rows.filter(accepted_at__isnull=True, revoked_at__isnull=True, expires_at__gt=now).first()
    if invitation is None or not _may_still_give(invitation):
        raise NotFound("This invitation was used or revoked, or it is over. Ask for a new link.")
    return invitation


@transaction.atomic
def accept(invitation: StudyInvitation, *, user: Any, now: datetime) -> StudyMembership:
    """Become a member. The link works once: of two who use it at the same time, one does.

    Raises:
        StateRefused: the user is a member already; the link stays unused.
        NotFound: somebody else was faster.
    """
    _lock(invitation.study)
    if StudyMembership.objects.filter(study=invitation.study, user=user).exists():
        raise StateRefused("You are a member of this study already. An owner can change your role.")
    waiting = StudyInvitation.objects.filter(
        pk=invitation.pk, accepted_at__isnull=True, revoked_at__isnull=True, expires_at__gt=now
    )
    if not waiting.update(accepted_at=now, accepted_by=user):
        raise NotFound("This invitation was used or revoked, or it is over. Ask for a new link.")
    member = StudyMembership.objects.create(
        study=invitation.study, user=user, role=invitation.role, may_spend=invitation.may_spend
    )
    record(
        "accept_invitation",
        invitation.study,
        by=user,
        via="admin",
        invitation=invitation.pk,
        role=member.role,
        may_spend=member.may_spend,
        invited_by=actor_of(invitation.invited_by),
    )
    return member


def _may_still_give(invitation: StudyInvitation) -> bool:
    """Whether who sent it could send it today."""
    sender, study = invitation.invited_by, invitation.study_id
    if not rights.may(sender, Right.MANAGE_MEMBERS, study):
        return False
    return not invitation.may_spend or rights.is_spender(sender, study)


def _refuse_giving_more(study: Study, by: Any) -> None:
    if by is not None and not rights.is_spender(by, study.pk):
        raise StateRefused("may_spend: only who may spend in this study gives that right to others")


def _refuse_last_owner(member: StudyMembership) -> None:
    others = StudyMembership.objects.filter(study=member.study_id, role=Role.OWNER).exclude(pk=member.pk)
    if member.role == Role.OWNER and not others.exists():
        raise StateRefused("A study keeps an owner: make somebody else an owner first.")


def _lock(study: Study) -> None:
    if study.is_test:
        raise StateRefused(f"{study.slug} is a test copy: its members are those of the study itself")
    Study.objects.select_for_update(of=("self",), no_key=True).only("pk").get(pk=study.pk)


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()  # 32 random bytes cannot be guessed: a fast hash is enough.
