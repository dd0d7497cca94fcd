"""Who may do what in a study: its members, and the invitations that make somebody one."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from .study import Study


class StudyMembership(models.Model):
    """A user's role in a study. Spending money is a right of its own, with any role."""

    class Role(models.TextChoices):
        """`survey/services/base/rights.py` says what each may do."""

        OWNER = "owner", "owner"
        EDITOR = "editor", "editor"
        ANALYST = "analyst", "analyst"
        VIEWER = "viewer", "viewer"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="study_memberships")
    role = models.CharField(max_length=8, choices=Role.choices)
    may_spend = models.BooleanField(
        "may spend money", default=False, help_text="Publish at a panel, approve, pay bonuses."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["study", "id"]
        constraints = [
            models.UniqueConstraint(fields=["study", "user"], name="study_membership_once_a_user"),
            models.CheckConstraint(
                condition=Q(role__in=["owner", "editor", "analyst", "viewer"]), name="study_membership_role_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user}, {self.get_role_display()} of {self.study}"


class StudyInvitation(models.Model):
    """A link that makes one person a member. It is shown once; only its hash is stored."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="invitations")
    token_hash = models.CharField("hash of the link's secret", max_length=64, unique=True, editable=False)
    role = models.CharField(max_length=8, choices=StudyMembership.Role.choices)
    may_spend = models.BooleanField("may spend money", default=False)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["study", "id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(role__in=["owner", "editor", "analyst", "viewer"]), name="study_invitation_role_known"
            ),
            models.CheckConstraint(
                condition=Q(accepted_at__isnull=True) | Q(revoked_at__isnull=True),
                name="study_invitation_accepted_or_revoked",
            ),
        ]

    def __str__(self) -> str:
        return f"invitation {self.pk} to {self.study}"
