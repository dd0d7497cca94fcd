"""The pages that make a study: from a template, a file, a form or another study. All of them lead to the text of a
study file, and only that text becomes a study.
"""

import tomllib
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.module_loading import import_string

from survey import study_file
from survey.admin_base.read_only_admin import admin_page
from survey.contracts import instruments, panels
from survey.exceptions import FileErrors, HunchError
from survey.input_tables import decoding
from survey.models import Study
from survey.services.base import auditing, rights
from survey.services.studies import checking, creating, file_texts, fitting

from . import builder
from .study_file import NEW, TextForm, checked_by, may_change, may_read_file, readable_study

GROUPS = (file_texts.BY_TASK, file_texts.BY_PEOPLE, file_texts.PAPER)


class PartsForm(forms.Form):
    """What most people change of a study file. `file_texts` reads it from the text and writes it back."""

    slug = forms.CharField(max_length=80, help_text="In the study's address: small letters, digits and hyphens.")
    title = forms.CharField(max_length=200)
    bank = forms.CharField(max_length=100, help_text="NAME for its newest version, NAME@VERSION for another one.")
    welcome = forms.CharField(
        required=False, max_length=20_000, widget=forms.Textarea(attrs={"rows": 3}), label="Words on the first page"
    )
    contact = forms.CharField(
        required=False, max_length=300, help_text='Whom people can write to. It stands after "Questions or problems?".'
    )
    minutes = forms.IntegerField(required=False, min_value=1, max_value=600, label="Minutes that a sitting takes")
    items = forms.IntegerField(required=False, min_value=1, max_value=200, label="Items of a sitting")
    stages = forms.CharField(
        max_length=300, label="Sittings of each stage", help_text="A number for each stage: 20, 60, 60."
    )
    pilot = forms.IntegerField(
        required=False, min_value=1, max_value=100_000, label="Sittings of a pilot", help_text="Empty: no pilot."
    )
    panel_kind = forms.ChoiceField(required=False, label="Where people come from")
    currency = forms.ChoiceField(required=False, choices=[("", "–"), ("USD", "USD"), ("GBP", "GBP")])
    reward = forms.IntegerField(
        required=False, min_value=1, max_value=100_000, help_text="In cents or pence for a whole sitting: 250 is 2.50."
    )
    places = forms.IntegerField(required=False, min_value=1, max_value=100_000, label="Places of a posting")
    spending_cap = forms.IntegerField(
        required=False, min_value=0, max_value=100_000_000, help_text="In cents or pence: more is never spent."
    )
    completion_url = forms.CharField(
        required=False,
        max_length=500,
        label="Address at the panel",
        help_text="Where people go at the end, with {code}.",
    )
    retention_until = forms.DateField(
        required=False,
        label="Personal data is kept until",
        help_text="YEAR-MONTH-DAY. No stage opens without it.",
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        input_formats=["%Y-%m-%d"],
    )
    conditions = forms.CharField(
        required=False,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One factor on a line: framing: plain, warm. What a level changes stands in the file.",
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        field: Any = self.fields["panel_kind"]
        field.choices = [("", "–"), *((name, name) for name in sorted(panels.names()))]

    def clean_stages(self) -> str:
        try:
            file_texts.sizes_of(self.cleaned_data["stages"])
        except ValueError as exc:
            raise forms.ValidationError("Write a number for each stage, such as 20, 60, 60.") from exc
        return str(self.cleaned_data["stages"])

    def clean_conditions(self) -> str:
        try:
            file_texts.factors_of(self.cleaned_data["conditions"])
        except ValueError as exc:
            raise forms.ValidationError(str(exc)) from exc
        return str(self.cleaned_data["conditions"])


class SendFileForm(forms.Form):
    file = forms.FileField(label="Study file", widget=forms.FileInput(attrs={"accept": ".toml,.txt"}))


def new_study(request: HttpRequest) -> HttpResponse:
    """A choice of beginnings; then the text, which is checked and becomes a study."""
    posted = request.POST
    if request.method != "POST":
        return _beginnings(request)
    try:
        if "template" in posted:
            bank = _bank(request)
            text = _template(posted["template"], user=request.user, bank=bank)
            if bank:
                text, changes = fitting.fitted_to_bank(text, reader=request.user)
                if changes:
                    messages.info(request, f"So that {bank} fills the stages: {', '.join(changes)}.")
            return _builder(request, file_texts.with_fitting_seed(text, reader=request.user))
        if "send" in posted:
            return _sent(request)
    except HunchError as exc:
        return _beginnings(request, problems=exc.message.splitlines())
    form = TextForm(posted)
    if not form.is_valid():
        return _editor(request, form=form)
    text = form.cleaned_data["text"]
    if "built" in posted or "builder" in posted:
        return _builder(request, text)
    if "parts" in posted or "apply" in posted:
        return _parts(request, text)
    if "create" in posted:
        try:
            made = creating.create_study(text=text, source_name=NEW, by=request.user, via="admin", reader=request.user)
        except HunchError:
            return _editor(request, form=form)  # The findings say why.
        return builder.said_and_shown(request, made)
    return _editor(request, form=form)


def _templates(bank: str) -> list[tuple[str, list[file_texts.StartingFile]]]:
    """The templates by groups; with a bank, those that ask of any bank."""
    fitting = [one for one in file_texts.STARTING_FILES if not bank or one.asks_of_any_bank]
    return [(group, [one for one in fitting if one.group == group]) for group in GROUPS]


def _beginnings(request: HttpRequest, *, problems: list[str] | None = None) -> HttpResponse:
    bank = _bank(request)
    return admin_page(
        request,
        "study/new.html",
        title="New study",
        templates=_templates(bank),
        bank=bank,
        form=SendFileForm(),
        problems=problems or [],
        studies=rights.visible(request.user, Study.objects.order_by("slug")).only("pk", "slug", "title"),
    )


def _bank(request: HttpRequest) -> str:
    """The bank that the study is to draw from, if one was chosen that the user sees."""
    name = request.POST.get("bank") or request.GET.get("bank", "")
    return name if name and rights.visible_banks(request.user).filter(name=name).exists() else ""


def _template(name: str, *, user: Any, bank: str = "") -> str:
    text = file_texts.starting_text(name)
    if bank:
        return file_texts.changed(text, {"bank": bank})
    file = tomllib.loads(text)
    kind = file.get("instrument", {}).get("kind", "")
    demonstration = instruments.demonstration_with(file["bank"].partition("@")[0], instrument=kind)
    if demonstration is not None:
        with auditing.asked_by(user, via="admin"):
            import_string(demonstration.load_bank)()  # With all that the study needs beside it, unless it is stored.
    return text


def _sent(request: HttpRequest) -> HttpResponse:
    form = SendFileForm(request.POST, request.FILES)
    if not form.is_valid():
        return _beginnings(request, problems=["Choose a file that is not empty."])
    sent = form.cleaned_data["file"]
    if sent.size > study_file.LONGEST_FILE:
        return _beginnings(request, problems=[f"{sent.name}: file: {study_file.too_large(sent.size)}"])
    try:
        text = decoding.toml_text(sent.read(), str(sent.name))
    except FileErrors as exc:
        return _beginnings(request, problems=exc.lines)
    text = text.replace("\r\n", "\n")
    try:
        study_file.parse(text)
    except study_file.StudyFileError:
        return _editor(request, text=text)  # It has mistakes of a file, which stand at their lines.
    return _builder(request, text)


def _builder(request: HttpRequest, text: str) -> HttpResponse:
    """The text as cards; one that cannot be read, as it is."""
    return builder.new_study_page(request, text, as_text=lambda edited: _editor(request, text=edited))


def _editor(request: HttpRequest, *, text: str = "", form: TextForm | None = None) -> HttpResponse:
    form = form or TextForm(initial={"text": text})
    edited = form.cleaned_data["text"] if form.is_bound and form.is_valid() else text
    return admin_page(
        request,
        "study/text.html",
        title="New study",
        form=form,
        check=checked_by(request.user, edited) if edited else None,
        button="Make the study",
    )


def _parts(request: HttpRequest, text: str) -> HttpResponse:
    """The form of the text, and back to the text."""
    try:
        initial = file_texts.values_of(text)
    except file_texts.NotWritable as exc:
        messages.error(request, exc.message)
        return _editor(request, form=TextForm(request.POST))
    form = PartsForm(request.POST if "apply" in request.POST else None, initial=initial)
    if form.is_valid():
        try:
            made = file_texts.soundly_changed(text, form.cleaned_data, reader=request.user)
        except file_texts.NotWritable as exc:
            form.add_error(None, exc.message)
        except file_texts.ValuesRefused as exc:
            _add_problems(form, exc.problems)
        else:
            _say_where_checks_are(request, text, made)
            return _editor(request, text=made)
    banks = rights.visible_banks(request.user).order_by("name", "-version")
    return admin_page(request, "study/parts.html", title="New study", form=form, text=text, banks=banks)


def _add_problems(form: PartsForm, problems: Sequence[checking.CheckMessage]) -> None:
    """Each at the field that it is about."""
    fields = {".".join(place): name for name, place in file_texts.PLACES.items()}
    for problem in problems:
        name = fields.get(problem.field) or ("stages" if problem.field.startswith("stages") else None)
        form.add_error(name, problem.message if name else f"{problem.field}: {problem.message}")


def _say_where_checks_are(request: HttpRequest, before: str, after: str) -> None:
    places = file_texts.places_of_checks(after)
    if places != file_texts.places_of_checks(before):
        listed = ", ".join(map(str, places))
        messages.info(request, f"A sitting has fewer items now: its attention checks come after items {listed}.")


def check_text(request: HttpRequest) -> HttpResponse:
    """What the checker finds in a text, as a part of a page. The editor asks while somebody types."""
    study = None
    if (key := request.POST.get("study", "")).isdecimal():
        study = readable_study(request, int(key))
        may_write = may_change(request.user, study)
    else:
        may_write = rights.may_make_studies(request.user)
    if not may_write:
        raise PermissionDenied
    form = TextForm(request.POST)
    check = checked_by(request.user, form.cleaned_data["text"], study) if form.is_valid() else None
    return render(request, "admin/survey/study/findings.html", {"check": check})


def may_duplicate(user: Any, study: Study) -> bool:
    return may_read_file(user, study) and rights.may_make_studies(user)


def duplicate(request: HttpRequest, study: Study) -> HttpResponse:
    """The file of a study, with a slug and a seed of its own, as the beginning of another one."""
    try:
        text = file_texts.with_fitting_seed(file_texts.copied_text(study), reader=request.user)
    except file_texts.NotWritable:
        text = study.source_text
    return _builder(request, text)
