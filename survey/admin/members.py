"""The members of a study: who they are, what each may do, and links that invite others."""

from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone

from survey.admin_base.read_only_admin import admin_page
from survey.exceptions import HunchError, NotFound
from survey.models import Study, StudyMembership
from survey.services.base import rights
from survey.services.base.rights import Right
from survey.services.studies import members

# What the page says about each role.
ROLES = (
    ("owner", "everything an editor may, and the members"),
    ("editor", "run and amend the study, recruit, make links, see identities; all that an analyst may"),
    ("analyst", "read and export answers by pseudonym; never a panel's ids"),
    ("viewer", "see how it goes: stages, plans, predictors, estimates; no single person's answers"),
)


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=StudyMembership.Role.choices, initial=StudyMembership.Role.VIEWER)
    may_spend = forms.BooleanField(
        required=False, label="May spend", help_text="Publish at a panel, approve, pay bonuses."
    )


def members_page(request: HttpRequest, study: Study) -> HttpResponse:
    """Members see who else is one; owners change it from here."""
    manages = rights.may(request.user, Right.MANAGE_MEMBERS, study.pk)
    return admin_page(
        request,
        "study/members.html",
        title=f"Members of {study.slug}",
        study=study,
        rows=study.memberships.select_related("user").order_by("pk"),
        roles=ROLES,
        manages=manages,
        invitations=members.open_invitations(study, timezone.now()) if manages else [],
        form=RoleForm(),
    )


def invite(request: HttpRequest, study: Study) -> HttpResponse:
    """Shows the link in the answer itself, once: a redirect would mean that it is stored in between."""
    form = RoleForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            made, secret = members.invite(study, **form.cleaned_data, by=request.user, now=timezone.now())
        except HunchError as exc:
            form.add_error(None, exc.message)
        else:
            page = reverse("admin:survey_study_invitation")
            address = request.build_absolute_uri(f"{page}?{urlencode({'secret': secret})}")
            return admin_page(
                request, "study/invited.html", title="Invitation", study=study, invitation=made, address=address
            )
    return admin_page(
        request, "study/member.html", title=f"Invite to {study.slug}", study=study, form=form, label="Make a link"
    )


def member_page(request: HttpRequest, study: Study, member: int) -> HttpResponse:
    """Change a member's role, or remove them. Members may leave by themselves."""
    membership = study.memberships.select_related("user").filter(pk=member).first()
    if membership is None:
        raise Http404
    manages = rights.may(request.user, Right.MANAGE_MEMBERS, study.pk)
    leaves = membership.user_id == request.user.pk
    if not leaves:
        rights.require(request.user, Right.MANAGE_MEMBERS, study.pk)
    form = RoleForm(
        request.POST if request.method == "POST" and "remove" not in request.POST else None,
        initial={"role": membership.role, "may_spend": membership.may_spend},
    )
    try:
        if "remove" in request.POST:
            members.remove_member(membership, by=request.user, via="admin")
            messages.success(request, f"{membership.user} is no member of {study.slug} any more.")
            still = rights.studies_with(request.user, Right.SEE)
            to = "admin:survey_study_changelist" if leaves and still is not None else "admin:survey_study_members"
            return HttpResponseRedirect(reverse(to, args=[] if to.endswith("changelist") else [study.pk]))
        if request.method == "POST" and form.is_valid():
            rights.require(request.user, Right.MANAGE_MEMBERS, study.pk)
            members.set_member(study, user=membership.user, **form.cleaned_data, by=request.user, via="admin")
            messages.success(request, f"{membership.user}: {form.cleaned_data['role']}.")
            return HttpResponseRedirect(reverse("admin:survey_study_members", args=[study.pk]))
    except HunchError as exc:
        messages.error(request, exc.message)
        return HttpResponseRedirect(reverse("admin:survey_study_members", args=[study.pk]))
    return admin_page(
        request,
        "study/member.html",
        title=f"{membership.user} in {study.slug}",
        study=study,
        form=form if manages else None,
        label="Change",
        member=membership,
        leaves=leaves,
    )


def revoke(request: HttpRequest, study: Study, invitation: int) -> HttpResponse:
    own_invitation = study.invitations.filter(pk=invitation).first()
    if own_invitation is None or request.method != "POST":
        raise Http404
    if members.revoke_invitation(own_invitation, now=timezone.now(), by=request.user):
        messages.success(request, "The link lets nobody in any more.")
    else:
        messages.error(request, "It was accepted or revoked before.")
    return HttpResponseRedirect(reverse("admin:survey_study_members", args=[study.pk]))


def accept(request: HttpRequest) -> HttpResponse:
    """GET says what it is for, POST accepts: opening a link must not use it up."""
    now = timezone.now()
    try:
        invitation = members.find_invitation(request.GET.get("secret", ""), now)
        if request.method == "POST":
            members.accept(invitation, user=request.user, now=now)
            messages.success(request, f"You are a member of {invitation.study} now: {invitation.get_role_display()}.")
            return _first_page(invitation.study)
    except NotFound as exc:
        return admin_page(request, "study/invitation.html", status=404, title="Invitation", problem=exc.message)
    except HunchError as exc:
        messages.error(request, exc.message)
        return _first_page(invitation.study)
    return admin_page(
        request,
        "study/invitation.html",
        title=f"Invitation to {invitation.study}",
        invitation=invitation,
        role=dict(ROLES)[invitation.role],
        cannot_see=not request.user.has_perm("survey.view_study"),
    )


def _first_page(study: Study) -> HttpResponse:
    return HttpResponseRedirect(reverse("admin:survey_study_change", args=[study.pk]))
