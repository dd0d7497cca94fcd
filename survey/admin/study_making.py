"""The pages that make a study: from a template, a file or another study. All of them lead to the text of a study file,
and only that text becomes a study.
"""

import tomllib
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.module_loading import import_string

from survey import study_file
from survey.admin_base.read_only_admin import admin_page
from survey.contracts import instruments
from survey.exceptions import FileErrors, HunchError
from survey.input_tables import decoding
from survey.models import Study
from survey.services.base import auditing, rights
from survey.services.studies import creating, file_texts, fitting

from . import builder
from .study_file import NEW, TextForm, checked_by, may_change, may_read_file, readable_study

GROUPS = (file_texts.BY_TASK, file_texts.BY_PEOPLE, file_texts.PAPER)


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
    if "create" in posted:
        try:
            made = creating.create_study(text=text, source_name=NEW, by=request.user, via="admin", reader=request.user)
        except HunchError:
            return _editor(request, form=form)  # The findings say why.
        return builder.said_and_shown(request, made)
    return _editor(request, form=form)


def _templates(bank: str) -> list[tuple[str, list[file_texts.StartingFile]]]:
    """The templates by groups; with a bank, those that ask of any bank."""
    usable = [template for template in file_texts.STARTING_FILES if not bank or template.asks_of_any_bank]
    return [(group, [template for template in usable if template.group == group]) for group in GROUPS]


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
