"""Who did what, and the tokens with which researchers read the API."""

from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from survey.admin_base.read_only_admin import AdminPage, ReadOnlyAdmin, admin_page, pretty_json, shortened
from survey.exceptions import StateRefused
from survey.figures.words import date_and_time, integer
from survey.models import ApiToken, AuditEntry, AuditSeal, Study
from survey.models.audit import MAX_TOKEN_DAYS, TOKEN_DAYS
from survey.operation import audit_checks
from survey.services.base import audit_chain, rights
from survey.services.base.audit_chain import ChainHead
from survey.services.base.auditing import actor_of
from survey.services.base.rights import Right
from survey.services.base.tokens import issue_token, revoke_token

from .confirming import Confirmation, ConfirmedAction, about, confirm, doing, offers
from .filters import KnownValueFilter


class WayFilter(admin.SimpleListFilter):
    """The ways are known: to ask the table for them would read all of it."""

    title = "where it was done"
    parameter_name = "via"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("admin", "on these pages"),
            ("api", "over the API"),
            ("web", "by people who take part"),
            ("command", "by a command"),
            ("worker", "by a worker"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(via=self.value()) if self.value() else queryset


MAX_CHECKED_HERE = 50_000  # Entries; checking one takes 0.1 ms, and a request must end.

# What people ask the audit for: a word for the address, what the page says, and the actions.
KINDS_OF_ACTION: dict[str, tuple[str, tuple[str, ...]]] = {
    "identities": ("looked at identities", ("see_panel_identity", "see_panel_identities")),
    "exports": ("exported or downloaded", ("export_answers", "export_report", "ask_job", "cancel_job", "download_job")),
    "money": (
        "recruited or paid",
        (
            *("draft_posting", "publish_posting", "publish_posting_failed", "add_places", "add_places_failed"),
            *("adopt_posting", "pause_posting", "start_posting", "stop_posting", "end_pending"),
            *("approve", "reject_submission", "reject_submission_failed", "ask_for_a_return", "settle_difference"),
            *("hold_bonuses", "prepare_bonuses", "pay_bonuses", "settle_payment", "paid_after_all"),
        ),
    ),
    "deletions": ("deleted", ("withdraw", "purge_identities", "purge_withdrawn", "admin_delete", "remove_receiver")),
    "rights": (
        "gave or took rights",
        (
            *("add_member", "change_member", "remove_member", "invite_member", "accept_invitation"),
            *("revoke_invitation", "create_token", "revoke_token", "add_receiver", "switch_receiver"),
        ),
    ),
    "stages": (
        "changed the study or a stage",
        (
            *("create_study", "amend_study", "lock_study", "plan_stage", "choose_uniform", "open_stage"),
            *("pause_stage", "close_stage", "freeze_stage", "retry_steps", "reach_stop"),
        ),
    ),
}


class KindFilter(admin.SimpleListFilter):
    title, parameter_name = "what was done", "what"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, label) for name, (label, _actions) in KINDS_OF_ACTION.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        _label, actions = KINDS_OF_ACTION.get(self.value() or "", ("", ()))
        return queryset.filter(action__in=actions) if actions else queryset


class StudyOfEntryFilter(KnownValueFilter):
    """An entry has the study's short name and no foreign key."""

    title = parameter_name = path = "study"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        studies = rights.visible(request.user, Study.objects.order_by("slug"), Right.READ_ANSWERS)
        return [(slug, slug) for slug in studies.values_list("slug", flat=True)]


def _check_chain(head: ChainHead, **by: Any) -> str:
    """
    Raises:
        StateRefused: entries and chain do not agree. The audit has which.
    """
    if head.number > MAX_CHECKED_HERE and audit_checks.has_found_faults():
        raise StateRefused(
            "The last check found faults. All entries are checked until there are none, which takes too long for a "
            "page: run `hunch verify_audit`"
        )
    chain_check = audit_checks.check(whole=head.number <= MAX_CHECKED_HERE, **by)
    if chain_check.fault_count:
        raise StateRefused(f"The audit does not agree with its chain; faults: {chain_check.fault_count}")
    return f"{integer(chain_check.number)} entries agree with the chain."


CHECK = ConfirmedAction(
    "check",
    "Check the chain",
    "The hashes of the audit's entries are made again and compared. Entries that were changed, removed or inserted "
    "since they were sealed are named here. Workers do the same once a day, with all entries once a week.",
    _check_chain,
    stays=True,
)


def check_page(request: HttpRequest) -> HttpResponse:
    """For superusers: faults name entries of every study."""
    if not request.user.is_superuser:
        raise PermissionDenied
    head = audit_chain.head()
    notes = []
    if head.number > MAX_CHECKED_HERE:
        notes.append(
            f"The audit has {integer(head.number)} entries: here those since the last check without a fault are "
            "checked, and all of them by a worker once a week."
        )
    audit_list = reverse("admin:survey_auditentry_changelist")
    confirmation = Confirmation(
        AuditEntry,
        "Check the audit's chain",
        [("Audit", audit_list)],
        audit_list,
        facts=_last_check,
        notes=notes,
        then=reverse("admin:survey_auditentry_check"),
    )
    return confirm(request, CHECK, head, confirmation)


def _last_check() -> Iterator[tuple[str, Any]]:
    last = audit_checks.last_check()
    if last is None:
        yield "Checked", "never"
        return
    yield "Last checked", date_and_time(last.at)
    yield "Entries up to seal", integer(last.detail["number"])
    yield "Faults", integer(last.detail["faults"])
    for number, fault in enumerate(last.detail.get("named", []), start=1):
        yield f"Fault {number}", fault


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """Entries name users by their audit names. Who may see users sees whose they are; members see it of each other."""

    help = "audit.md"
    pages = (AdminPage("check", "check/", check_page),)
    list_display = ("at", "who", "via", "action", "subject", "study", "detail_in_short")
    right = Right.READ_ANSWERS
    list_filter = (KindFilter, StudyOfEntryFilter, WayFilter)
    search_fields = ("subject", "study", "actor", "action")
    search_help_text = "By subject, study, action, or a user's audit name, which the user's page shows."
    fields = ("at", "who", "via", "action", "subject", "study", "detail_text", "seal")
    readonly_fields = ("at", "who", "detail_text", "seal")
    change_list_template = "admin/survey/auditentry/list.html"

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        changelist = super().get_changelist_instance(request)
        names = _names_of_users(request)
        for entry in changelist.result_list:
            entry.username = names.get(entry.actor, "")
        return changelist

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        entry = super().get_object(request, object_id, from_field)
        if entry is not None:
            entry.username = _names_of_users(request).get(entry.actor, "")
        return entry

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(
            request, {**(extra_context or {}), "head": audit_chain.head(), "last_check": audit_checks.last_check()}
        )

    @admin.display(description="who", ordering="actor")
    def who(self, entry: Any) -> str:
        return f"{entry.actor} ({entry.username})" if entry.username else entry.actor or "–"

    def visible_to(self, user: Any, rows: QuerySet[Any]) -> QuerySet[Any]:
        """What was done in studies whose answers the user may read, and what the user did outside of studies."""
        keys = rights.studies_with(user, Right.READ_ANSWERS)
        if keys is None:
            return rows
        slugs = Study.objects.filter(pk__in=keys).values("slug")
        return rows.filter(Q(study__in=slugs) | Q(study="", actor=actor_of(user)))

    @admin.display(description="detail")
    def detail_in_short(self, entry: AuditEntry) -> str:
        return shortened(", ".join(f"{name}: {value}" for name, value in entry.detail.items()))

    @admin.display(description="detail")
    def detail_text(self, entry: AuditEntry) -> Any:
        return pretty_json(entry.detail)

    @admin.display(description="seal")
    def seal(self, entry: AuditEntry) -> str:
        seal = AuditSeal.objects.filter(entry_id=entry.pk).first()
        return f"{seal.number}: {seal.sha256}" if seal else "not sealed yet"


def _names_of_users(request: HttpRequest) -> dict[str, str]:
    """Usernames by audit name: of everybody for who may see users, else of the members of the user's own studies."""
    users = get_user_model().objects.all()
    if not request.user.has_perm("auth.view_user"):
        keys = rights.studies_with(request.user, Right.READ_ANSWERS)
        users = users.filter(Q(study_memberships__study__in=keys or ()) | Q(pk=request.user.pk)).distinct()
    return {actor_of(user): user.get_username() for user in users}


class TokenForm(forms.Form):
    name = forms.CharField(
        max_length=80, required=False, label="What it is for", help_text="To tell your tokens apart."
    )
    scope = forms.ChoiceField(
        choices=ApiToken.Scope.choices,
        initial=ApiToken.Scope.READ,
        help_text="A token that may run can create studies, plan, open, pause and close stages, and ask for jobs.",
    )
    studies = forms.ModelMultipleChoiceField(
        Study.objects.none(),
        to_field_name="slug",
        required=False,
        help_text="These alone; none chosen: all of your studies, later ones as well.",
    )
    days = forms.IntegerField(min_value=1, max_value=MAX_TOKEN_DAYS, initial=TOKEN_DAYS, label="Days until it expires")

    def __init__(self, *args: Any, user: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        field: Any = self.fields["studies"]
        field.queryset = rights.visible(user, Study.objects.real().order_by("slug"))


def make_token(request: HttpRequest) -> HttpResponse:
    form = TokenForm(request.POST if request.method == "POST" else None, user=request.user)
    if request.method == "POST" and form.is_valid():
        return _issue(request, **form.cleaned_data)
    return admin_page(request, "apitoken/make.html", title="Make an API token", form=form)


def _issue(request: HttpRequest, *, studies: QuerySet[Study], **chosen: Any) -> HttpResponse:
    token, secret = issue_token(user=request.user, studies=studies or None, by=request.user, via="admin", **chosen)
    if "download" in request.POST:
        response = HttpResponse(f"{secret}\n", content_type="text/plain; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="hunch-token-{token.prefix}.txt"'
        return response
    # No redirect: it would mean that the secret is stored in between. The admin's pages are never cached.
    return admin_page(request, "apitoken/issued.html", title="Your API token", token=token, secret=secret)


REVOKE = ConfirmedAction(
    "revoke",
    "Revoke",
    "Programs that use this token are refused from then on. A new token can be made at any time.",
    doing(revoke_token, "The token {0.prefix}… is revoked."),
    is_offered=lambda token: not token.revoked_at,
    is_final=True,
)


def revoke_page(request: HttpRequest, token: ApiToken) -> HttpResponse:
    confirmation = about(
        token,
        "Revoke an API token",
        facts=lambda: [("Token", f"{token.prefix}…"), ("What it is for", token.name or "–"), ("Of", token.user)],
        then=reverse("admin:survey_apitoken_changelist"),
    )
    return confirm(request, REVOKE, token, confirmation)


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    """Everybody sees and revokes their own tokens; superusers see and revoke all."""

    help = "rights.md#api-tokens"
    pages = (
        AdminPage("add", "add/", make_token),
        AdminPage("revoke", "<int:pk>/revoke/", revoke_page, group="tools", links=offers(REVOKE)),
    )
    page_related = ("user",)
    list_display = ("prefix", "name", "user", "scope", "created_at", "expires_at", "last_used_at", "revoked_at")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    list_select_related = ("user",)
    search_fields = ("name", "user__username")
    fields = (
        *("prefix", "name", "user", "scope", "its_studies"),
        *("created_at", "expires_at", "last_used_at", "revoked_at"),
    )
    readonly_fields = ("created_at", "its_studies")

    def visible_to(self, user: Any, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows if user.is_superuser else rows.filter(user=user.pk)

    @admin.display(description="studies")
    def its_studies(self, token: ApiToken) -> str:
        if token.for_all_studies:
            return "all of its user's"
        return ", ".join(token.studies.order_by("slug").values_list("slug", flat=True)) or "none"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm("survey.add_apitoken"))
