"""The page on which a study file is changed, and the lists of amendments and withdrawals."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from survey.admin_base.read_only_admin import ReadOnlyAdmin, admin_page, link_to, pretty_json, shortened
from survey.exceptions import FileErrors, HunchError
from survey.models import Amendment, Study, Withdrawal
from survey.services.answers import blinding
from survey.services.base import rights
from survey.services.base.retention import is_over
from survey.services.base.rights import Right
from survey.services.studies import amending, checking, file_texts

from .filters import deferred_study, study_filter

NEW = "new.toml"  # What a text is called that is no file yet.
UNLOCKED_REASON = "edited before the first main stage was opened"


class TextForm(forms.Form):
    """The text of a study file."""

    text = forms.CharField(
        label="Study file",
        strip=False,
        max_length=1_000_000,
        widget=forms.Textarea(
            attrs={
                "rows": 30,
                "cols": 110,
                "spellcheck": "false",
                "wrap": "off",
                "class": "hunch-code",
                "data-study-file": "",
            }
        ),
    )

    def clean_text(self) -> str:
        # Browsers send two characters for a line break; the file's hash must not depend on that.
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")


class AmendForm(TextForm):
    """`read_sha256`: of the file that the text was made from."""

    reason = forms.CharField(
        max_length=1000, label="Why", help_text="Kept with the change and exported with it.", strip=True
    )
    read_sha256 = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)
    field_order = ("reason", "text", "read_sha256")

    def __init__(self, *args: Any, is_locked: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["reason"].required = is_locked
        if not is_locked:
            self.fields["reason"].help_text = "May be left out before the first main stage is opened."


def amend_page(request: HttpRequest, study: Study) -> HttpResponse:
    """Show first what would change; only the second button changes it."""
    is_locked = study.locked_at is not None
    initial = {"text": study.source_text, "read_sha256": study.source_sha256}
    posted = request.POST.copy() if request.method == "POST" else None
    form = AmendForm(posted, initial=initial, is_locked=is_locked)
    proposal, problems, others = None, [], []
    text = study.source_text
    if request.method == "POST" and form.is_valid():
        text, name = form.cleaned_data["text"], f"{study.slug}.toml"
        read = form.cleaned_data["read_sha256"]
        try:
            if "amend" in request.POST:
                return amend_as_asked(request, study, text=text, reason=form.cleaned_data["reason"], read=read)
            proposal = amending.propose(study, text=text, source_name=name, by=request.user)
        except FileErrors as exc:
            problems = exc.lines
        except amending.FileChanged as exc:
            problems = [exc.message]
            study = readable_study(request, study.pk)
            if not may_change(request.user, study):
                raise PermissionDenied from exc
            proposal = _proposed(study, text, name, request.user)
        except HunchError as exc:
            problems = [exc.message]
        if posted is not None and read and read != study.source_sha256:
            # Another file is in force than the one that was read: show what the others did, and go on from there.
            others = others_since(study, read)
            posted["read_sha256"] = study.source_sha256
    changes = (
        [(amending.in_words(change), proposal.refusals.get(change.key, "")) for change in proposal.changes]
        if proposal
        else []
    )
    known = {change.key for change in proposal.changes} if proposal else set()
    return admin_page(
        request,
        "study/amend.html",
        title=f"Amend the study file of {study.slug}" if is_locked else f"Edit the study file of {study.slug}",
        study=study,
        form=form,
        proposal=proposal,
        changes=changes,
        more=[f"{key}: {why}" for key, why in proposal.refusals.items() if key not in known] if proposal else [],
        problems=problems,
        diff=file_texts.diff_lines(study.source_text, text) if request.method == "POST" else [],
        others=others,
        check=checked_by(request.user, text, study) if request.method == "POST" else None,
    )


def readable_study(request: HttpRequest, pk: int) -> Study:
    """The study with that key. Who may not see it gets an answer as if it were not there."""
    studies: Any = admin.site.get_model_admin(Study)
    study: Study = studies.readable_row(request, pk)
    return study


def may_read_file(user: Any, study: Study) -> bool:
    """The study's file names the conditions: while the study is blind, it is for who may unblind it."""
    return not study.is_blind or rights.may(user, Right.UNBLIND, study.pk)


def amend_as_asked(request: HttpRequest, study: Study, *, text: str, reason: str, read: str) -> HttpResponse:
    """Change the file by `amending.amend`, and lead to the study. `read`: hash of the file that was read before."""
    made = amending.amend(
        study,
        text=text,
        source_name=f"{study.slug}.toml",
        reason=reason or UNLOCKED_REASON,
        by=request.user,
        via="admin",
        read_sha256=read,
        only_unlocked=not rights.may(request.user, Right.AMEND, study.pk),
    )
    messages.success(request, f"The study file was changed: {len(made.changes)} keys.")
    return HttpResponseRedirect(reverse("admin:survey_study_change", args=[study.pk]))


def may_change(user: Any, study: Study) -> bool:
    """Whether the user may change the study's file as it is now."""
    may_edit = study.locked_at is None and rights.may(user, Right.EDIT, study.pk)
    return may_read_file(user, study) and (may_edit or rights.may(user, Right.AMEND, study.pk))


def amend_links(user: Any, study: Study) -> list[tuple[str, tuple[Any, ...]]]:
    return [] if study.is_test else [("Amend" if study.locked_at else "Edit", ())]


def file_facts(study: Study, user: Any) -> dict[str, Any]:
    """What the study page says about the file: its lock, its amendments, and until when data is kept."""
    return {
        "amendments": list(study.amendments.select_related("actor").order_by("-pk")),
        "may_duplicate": not study.is_test and may_read_file(user, study) and rights.may_make_studies(user),
        "file_text": blinding.shown_file(study, study.source_text),
        "retention_until": study.config.data.retention_until,
        "retention_is_over": is_over(study, today=timezone.now().date()),
    }


def checked_by(user: Any, text: str, study: Study | None = None) -> checking.StudyCheck:
    """What the checker finds in a text that the user wrote; with `study`, as the next file of that study."""
    return checking.check_study(text=text, source_name=NEW, reader=user, instead_of=study)


def _proposed(study: Study, text: str, name: str, user: Any) -> amending.Proposal | None:
    """What the text would change in the file as it is now; None where it cannot be used."""
    try:
        return amending.propose(study, text=text, source_name=name, by=user)
    except HunchError:
        return None


def others_since(study: Study, sha256: str) -> list[Any]:
    """What was changed since the file with that hash was in force: who, when and why, and the lines."""
    made = list(study.amendments.select_related("actor").order_by("pk"))
    start = next((place for place, change in enumerate(made) if change.old_sha256 == sha256), None)
    if start is None:
        return []
    lines = file_texts.diff_lines(made[start].old_text, study.source_text)
    return [made[start:], lines]


@admin.register(Amendment)
class AmendmentAdmin(ReadOnlyAdmin):
    help = "study-file.md#changing-a-study"
    list_display = ("at", "study", "who", "via", "was_locked", "reason_in_short", "keys")
    list_filter = (study_filter(), "was_locked")
    list_select_related = ("study", "actor")
    deferred = (*deferred_study("study"), "old_text", "old_config")
    fields = ("study", "at", "actor", "via", "was_locked", "reason", "old_sha256", "new_sha256", "changed", "old_file")
    readonly_fields = ("changed", "old_file")

    @admin.display(description="who", ordering="actor__username")
    def who(self, amendment: Amendment) -> str:
        return str(amendment.actor) if amendment.actor else "–"

    @admin.display(description="reason")
    def reason_in_short(self, amendment: Amendment) -> str:
        return shortened(amendment.reason)

    @admin.display(description="keys")
    def keys(self, amendment: Amendment) -> str:
        return shortened(
            ", ".join(change["key"] for change in blinding.shown_changes(amendment.study, amendment.changes))
        )

    @admin.display(description="changes")
    def changed(self, amendment: Amendment) -> SafeString:
        return pretty_json(blinding.shown_changes(amendment.study, amendment.changes))

    @admin.display(description="file before")
    def old_file(self, amendment: Amendment) -> str:
        return blinding.shown_file(amendment.study, amendment.old_text)


@admin.register(Withdrawal)
class WithdrawalAdmin(ReadOnlyAdmin):
    """Records that somebody withdrew their answers. The answers themselves are deleted everywhere."""

    help = "how-a-study-runs.md#when-somebody-withdraws-and-when-data-goes"
    list_display = ("at", "respondent", "study", "answers", "reason_in_short")
    list_filter = (study_filter("respondent__study"),)
    list_select_related = ("respondent__study",)
    deferred = deferred_study("respondent__study")
    search_fields = ("respondent__pseudonym__startswith",)
    search_help_text = "By the beginning of the pseudonym."
    fields = ("person", "at", "reason", "answers", "points", "in_stages", "deleted", "had_learnt")
    readonly_fields = ("person", "in_stages", "deleted", "had_learnt")

    @admin.display(description="study", ordering="respondent__study")
    def study(self, withdrawal: Withdrawal) -> str:
        return withdrawal.respondent.study.slug

    @admin.display(description="respondent")
    def person(self, withdrawal: Withdrawal) -> SafeString | str:
        return link_to(withdrawal.respondent)

    @admin.display(description="reason")
    def reason_in_short(self, withdrawal: Withdrawal) -> str:
        return shortened(withdrawal.reason) or "–"

    @admin.display(description="stages")
    def in_stages(self, withdrawal: Withdrawal) -> SafeString:
        return pretty_json(withdrawal.stages)

    @admin.display(description="deleted rows")
    def deleted(self, withdrawal: Withdrawal) -> SafeString:
        return pretty_json(withdrawal.removed)

    @admin.display(description="predictors that had learnt from the answers")
    def had_learnt(self, withdrawal: Withdrawal) -> str:
        return ", ".join(str(run) for run in withdrawal.predictor_runs.select_related("stage__study")) or "none"
