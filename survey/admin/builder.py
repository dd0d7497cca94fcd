"""The builder: a study file as cards, for a new study and for one that is there. Its parts are read from the file's
text and written back into it (`builder_form.py`); what is saved is the text, by the services that save any file.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.module_loading import import_string
from django.utils.text import slugify

from survey import study_file
from survey.admin_base.read_only_admin import admin_page
from survey.exceptions import FileErrors, HunchError, NotFound
from survey.models import Bank, Logo, Study
from survey.services.banks.importing import find_bank
from survey.services.base import rights
from survey.services.studies import amending, checking, creating, file_texts, translating
from survey.study_file import languages_of
from survey.study_file.editing import EditableFile

from .builder_fields import LANGUAGE_NAMES
from .builder_form import BuilderForm
from .study_file import NEW, AmendForm, amend_as_asked, amend_page, checked_by, may_change, others_since

# What shows a page of respondents. The pages stand above the admin, which knows them by this name alone.
RESPONDENTS_PAGE = "frontend.sketches.page"
SLUG_LENGTH = 60  # Of a short name that is made of a title.
PART_HEADER = "X-Hunch-Part"  # Sent by the page's script, which takes the parts that change while somebody types.
HALF_DONE = "Some of what you entered could not be written into the file. It is marked below; nothing was saved."


class Builder:
    """One request of the page: the text that came with it, and what was entered.

    Args:
        study: whose file is changed; None for a new study.
        text: of the file before what was entered is written into it.

    Raises:
        ValueError: the text is no TOML.
    """

    def __init__(self, request: HttpRequest, study: Study | None, text: str) -> None:
        self.request, self.study = request, study
        self.file = EditableFile(text)
        self.problems: list[str] = []
        self.focus = request.POST.get("at", "").removeprefix("at-")  # The part whose kind was changed.
        self.refused: dict[str, Any] = {}
        banks = rights.visible_banks(request.user).order_by("name", "-version")
        self.banks = list(dict.fromkeys(name for bank in banks for name in (bank.name, f"{bank.name}@{bank.version}")))
        self.logos = list(Logo.objects.values_list("name", flat=True))
        posted = request.POST
        if "built" in posted:
            languages = languages_of(self.file.data)
            self.refused = self._form().apply(posted)
            for code in languages_of(self.file.data):
                if code not in languages:
                    translating.fill_in(self.file, code)
        if {"check", "create", "amend"} & posted.keys():
            self.focus = "save"  # What the checker says, and what changes.
        order = posted.get("do", "")
        if order and not self.refused:  # Else a field that is marked would stand at another place.
            try:
                self.focus = self._form().act(order)
            except ValueError as exc:
                self.problems.append(str(exc))

    def _form(self) -> BuilderForm:
        return BuilderForm(self.file, banks=self.banks, logos=self.logos)

    def name_by_title(self, start: str) -> None:
        """The short name of a new study whose title was written, unless somebody has written a short name, too."""
        try:
            begun = EditableFile(start)
        except ValueError:
            return
        title, slug = self.file.value(("title",)), self.file.value(("slug",))
        is_named = title == begun.value(("title",)) or slug != begun.value(("slug",))
        if isinstance(title, Mapping):  # In the language that the file names first.
            title = next(iter(title.values()), "")
        made = slugify(str(title).casefold())[:SLUG_LENGTH].strip("-")  # A sharp s is two letters.
        if made and not is_named:
            self.file.set(("slug",), file_texts.free_slug(made))

    @property
    def text(self) -> str:
        return self.file.text

    @property
    def check(self) -> checking.StudyCheck:
        return checked_by(self.request.user, self.text, self.study)

    def respondents_page(self, place: str) -> HttpResponse:
        """What people would read at this place of the file; of a file with mistakes as far as it can be read."""
        try:
            config = study_file.parse(self.text)
        except study_file.StudyFileError as exc:
            if exc.repaired is None:
                first = exc.problems[0]
                words = f"This page can be shown once the file can be read. {first.field}: {first.message}"
                return HttpResponse(words, content_type="text/plain; charset=utf-8")
            config = exc.repaired.config
        if place == "items":
            place = str(next(index for index, block in enumerate(config.blocks) if block.kind == "items"))
        response: HttpResponse = import_string(RESPONDENTS_PAGE)(
            self.request,
            text=self.text,
            config=config,
            bank=self._bank(config.bank),
            place=place if place.isdecimal() else "first",
            language=self.request.POST.get("language", ""),
            levels={factor: self.request.POST.get(f"level.{factor}", "") for factor, _levels in self._form().factors},
        )
        return response

    def _bank(self, name: str) -> Bank | None:
        try:
            bank = find_bank(name)
        except NotFound:
            return None
        return bank if rights.visible_banks(self.request.user).filter(pk=bank.pk).exists() else None

    def page(self, **more: Any) -> HttpResponse:
        form, check = self._form(), self.check
        wrong = [(finding.field, finding.message) for finding in check.findings if finding.level == "problem"]
        proposal = more.get("proposal")
        refusals = list(proposal.refusals.items()) if proposal is not None else []
        form.show_errors(self.refused, [*wrong, *refusals])
        before = self.study.source_text if self.study is not None else self.request.POST.get("start") or self.text
        context = {
            "title": "New study" if self.study is None else f"Build {self.study.slug}",
            "study": self.study,
            "builder": form,
            "text": self.text,
            "start": before,
            "seen": digest(self.text),
            "check": _with_places(check, form),
            "sums": check,
            "diff": file_texts.diff_lines(before, self.text),
            "problems": self.problems,
            "focus": self.focus,
            "languages": [(code, LANGUAGE_NAMES.get(code, code)) for code in form.languages],
            "half_done": HALF_DONE if self.refused else "",
            **more,
        }
        if self.request.headers.get(PART_HEADER):
            return render(self.request, "admin/survey/study/build_parts.html", {**context, "is_part": True})
        return admin_page(self.request, "study/build.html", **context)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _with_places(check: checking.StudyCheck, form: BuilderForm) -> list[tuple[Any, str]]:
    """Each finding with the name of the field or the table of the page that it leads to; empty where there is none."""
    names = {field.name for field in form.fields()} | {group.name for group in form.whole.all_groups() if group.place}
    placed = []
    for finding in check.findings:
        name = finding.field
        while name and name not in names:
            name = name.rpartition(".")[0]
        placed.append((finding, name))
    return placed


def new_study_page(request: HttpRequest, text: str, *, as_text: Callable[[str], HttpResponse]) -> HttpResponse:
    """The builder of a study that is not made yet. `as_text` answers with the page of a file's text: where the text
    cannot be read as a file, and where somebody wants it."""
    try:
        built = Builder(request, None, text)
    except ValueError:
        return as_text(text)
    built.name_by_title(request.POST.get("start", ""))
    if "file" in request.POST and not built.refused:
        return as_text(built.text)
    if place := request.POST.get("look", ""):
        return built.respondents_page(place)
    if "create" in request.POST and not built.refused:
        try:
            made = creating.create_study(
                text=built.text, source_name=NEW, by=request.user, via="admin", reader=request.user
            )
        except HunchError:
            return built.page()  # The findings say why.
        return said_and_shown(request, made)
    return built.page()


def said_and_shown(request: HttpRequest, made: Study) -> HttpResponse:
    """On to the page of a study that was just made."""
    messages.success(request, f"The study {made.slug} is made. Its first stage is not open yet.")
    for remark in creating.remarks_on(made):
        messages.info(request, str(remark))
    return HttpResponseRedirect(reverse("admin:survey_study_change", args=[made.pk]))


def build_page(request: HttpRequest, study: Study) -> HttpResponse:
    """The builder of a study's file. The first button shows what would change, only the second one changes it."""
    is_locked = study.locked_at is not None
    posted = request.POST
    text = posted.get("text", study.source_text).replace("\r\n", "\n")
    read = posted.get("read_sha256") or study.source_sha256
    try:
        built = Builder(request, study, text)
    except ValueError:
        messages.error(request, "The builder needs a file that can be read: correct its text first.")
        return HttpResponseRedirect(reverse("admin:survey_study_amend", args=[study.pk]))
    if place := posted.get("look", ""):
        return built.respondents_page(place)
    if "file" in posted and not built.refused:
        as_text = posted.copy()
        as_text["text"], as_text["show"] = built.text, "1"
        request.POST = as_text  # type: ignore[assignment]  # as a browser would have sent it to the other page
        return amend_page(request, study)
    reason = AmendForm({**posted.dict(), "text": built.text}, is_locked=is_locked)
    proposal, others = None, []
    wants = "amend" in posted and not built.refused
    if request.method == "POST":
        name = f"{study.slug}.toml"
        try:
            if wants and posted.get("seen") != digest(built.text):
                built.problems.append(
                    "You changed more since you looked: look at the difference again, then change the file."
                )
            elif wants and reason.is_valid():
                words = reason.cleaned_data["reason"]
                return amend_as_asked(request, study, text=built.text, reason=words, read=read)
        except FileErrors:
            pass  # The page shows them beside their fields.
        except HunchError as exc:
            built.problems.append(exc.message)
        study.refresh_from_db()
        if read != study.source_sha256 and not may_change(request.user, study):
            raise PermissionDenied  # The file is locked by now, or blind.
        try:
            proposal = amending.propose(study, text=built.text, source_name=name, by=request.user)
        except FileErrors:
            pass
        except HunchError as exc:
            built.problems.append(exc.message)
        if read != study.source_sha256:
            # Another file is in force than the one that was read: show what the others did, and go on from there.
            others, read = others_since(study, read), study.source_sha256
    may_save = proposal is not None and not proposal.refusals and not proposal.changes_nothing and not built.refused
    return built.page(
        read_sha256=read,
        reason=reason["reason"],
        reason_errors=reason.errors.get("reason") if "amend" in posted else None,
        is_locked=is_locked,
        proposal=proposal,
        others=others,
        may_save=may_save,
    )
