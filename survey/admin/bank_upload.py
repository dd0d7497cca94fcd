"""The pages that make a bank of a file: send it, look at how it is read, confirm."""

from itertools import zip_longest
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone

from survey.admin_base.read_only_admin import admin_page
from survey.exceptions import FileErrors, HunchError, NotFound
from survey.input_tables import reader
from survey.input_tables.reader import TableReading
from survey.services.banks import columns, uploads
from survey.services.banks.columns import ColumnChoice
from survey.services.base import rights

ROWS_SHOWN = 8
PROBLEMS_SHOWN = 20
CELL = 300  # characters
COLUMN_HELP = {
    "id": "Each question's own id; it never changes.",
    "source": "The task or subject that the question belongs to.",
    "question": "The text that people read.",
    "answer": "The key. It may be empty.",
    "domain": "The task's field; one for each task.",
    "reason": "Why the key is right.",
}


class SendForm(forms.Form):
    file = forms.FileField(
        label="File",
        help_text="CSV with commas, semicolons or tabs, or Excel (.xlsx). Any usual encoding. At most 19 MB.",
        widget=forms.FileInput(attrs={"accept": ".csv,.tsv,.txt,.xlsx", "data-largest": str(reader.LARGEST_FILE)}),
    )


class LookForm(forms.Form):
    """How the file is read, and which column is what."""

    bank = forms.CharField(
        max_length=80,
        label="Name of the bank",
        help_text="Letters, digits, - and _. The same name again makes its next version.",
    )
    numbered = forms.BooleanField(required=False, label="Make the ids from the rows' order")
    task = forms.CharField(required=False, max_length=120, label="One task for all questions")
    tags = forms.ChoiceField(
        required=False,
        label="<b>, </b> and <br> in the texts",
        choices=[("", "As most texts look"), ("html", "HTML: they are markup"), ("letters", "Letters: they are shown")],
    )
    encoding = forms.ChoiceField(required=False, label="Encoding")
    delimiter = forms.ChoiceField(required=False, label="Fields are separated by")
    sheet = forms.ChoiceField(required=False, label="Sheet")

    def __init__(self, data: Any, *, proposal: uploads.BankProposal, **options: Any) -> None:
        super().__init__(data, **options)
        table = proposal.table
        for name in columns.COLUMNS:
            choices = [("", "–"), *((column, column[:80]) for column in dict.fromkeys(table.header) if column)]
            self.fields[f"column_{name}"] = forms.ChoiceField(
                choices=choices, required=False, label=name, help_text=COLUMN_HELP[name]
            )
        if table.sheets:
            self._choices("sheet", [(name, name) for name in table.sheets])
            del self.fields["encoding"], self.fields["delimiter"]
        else:
            del self.fields["sheet"]
            used = table.reading.encoding
            by_words = {words: name for name, words in reader.ENCODINGS.items() if name != used}
            by_words[reader.ENCODINGS.get(used, used)] = used  # Of two byte orders with one name, the file's own.
            self._choices("encoding", [(name, words) for words, name in by_words.items()])
            known = dict(reader.DELIMITERS)
            known.setdefault(table.reading.delimiter, table.reading.delimiter)
            self._choices("delimiter", list(known.items()))

    def _choices(self, name: str, choices: list[tuple[str, str]]) -> None:
        field: Any = self.fields[name]
        field.choices = choices

    @property
    def column_fields(self) -> list[Any]:
        return [self[f"column_{name}"] for name in columns.COLUMNS]

    @property
    def other_fields(self) -> list[Any]:
        return [self[name] for name in self.fields if not name.startswith("column_") and name != "bank"]


def send_bank(request: HttpRequest) -> HttpResponse:
    """Takes the file. Nothing but the file is kept, for an hour."""
    posted = request.method == "POST"
    form = SendForm(request.POST if posted else None, request.FILES if posted else None)
    problems: list[str] = []
    if posted and form.is_valid():
        sent = form.cleaned_data["file"]
        if sent.size > reader.LARGEST_FILE:
            problems = [f"{sent.name}: file: {reader.too_large(sent.size)}"]
        else:
            try:
                upload = uploads.keep(user=request.user, name=sent.name, content=sent.read(), now=timezone.now())
                return HttpResponseRedirect(reverse("admin:survey_bank_look", args=[upload.pk]))
            except FileErrors as exc:
                problems = shown(exc.problems)
    return admin_page(request, "bank/send.html", title="New bank", form=form, problems=problems)


def look_at_bank(request: HttpRequest, pk: int) -> HttpResponse:
    """Shows how the file is read and what is wrong or stands in it twice; stores it once that has been seen."""
    if not rights.may_make_banks(request.user):
        raise PermissionDenied
    try:
        upload = uploads.find(pk, user=request.user, now=timezone.now())
    except NotFound as exc:
        raise Http404(exc.message) from exc
    if "discard" in request.POST:
        uploads.forget(upload)
        messages.success(request, "The file was deleted; nothing was stored.")
        return HttpResponseRedirect(reverse("admin:survey_bank_add"))
    content, wrong = bytes(upload.content), []
    reading, choice = _reading(request.POST), _choice(request.POST)
    # Read in another way than the page showed, the file has other columns: they are matched by their names again.
    is_read_again = choice is not None and request.POST.get("read", "") not in ("", _as_shown(reading))
    if is_read_again:
        choice = None
    try:
        proposal = uploads.propose(content, upload.name, reading=reading, choice=choice)
        if choice and not set(choice.columns.values()) <= set(proposal.table.header):
            wrong = ["Read in this way the file has other columns. Look at the choice below."]
            proposal = uploads.propose(content, upload.name, reading=reading)
    except FileErrors as exc:  # The reading that was chosen does not fit; the one that was found does.
        wrong = shown(exc.problems)
        proposal = uploads.propose(content, upload.name)
    initial = _initial(proposal, upload.name)
    posted = request.POST.copy() if request.method == "POST" and not wrong else None
    if posted is not None and is_read_again:
        posted.update({f"column_{name}": initial.get(f"column_{name}", "") for name in columns.COLUMNS})
        posted.update({"numbered": "on" if initial["numbered"] else "", "task": initial["task"]})
    if wrong:  # The page shows what `proposal` holds, and so do its fields.
        initial["bank"] = request.POST.get("bank", "")
    form = LookForm(posted, proposal=proposal, initial=initial)
    if form.is_valid():
        try:
            uploads.refuse_name(form.cleaned_data["bank"], request.user)
            was_seen = request.POST.get("seen") == proposal.seen
            if "store" in request.POST and was_seen and not proposal.problems:
                bank = uploads.store(proposal, bank_name=form.cleaned_data["bank"], by=request.user)
                uploads.forget(upload)
                messages.success(request, f"Stored {bank.question_count:,} questions as {bank}.")
                return HttpResponseRedirect(reverse("admin:survey_bank_change", args=[bank.pk]))
            if "store" in request.POST and not was_seen:
                wrong = ["What you chose changes what would be stored. Look at it again, then store it."]
        except HunchError as exc:
            form.add_error("bank", exc.message.removeprefix("bank: "))
    return admin_page(
        request,
        "bank/look.html",
        title=f"New bank from {upload.name}",
        upload=upload,
        form=form,
        proposal=proposal,
        read=_as_shown(proposal.table.reading),
        wrong=wrong,
        problems=shown(proposal.problems),
        rows=[
            (line, [(name, _cell(value)) for name, value in zip_longest(proposal.table.header, values, fillvalue="")])
            for line, values in proposal.table.rows[:ROWS_SHOWN]
        ],
    )


def shown(problems: Any) -> list[str]:
    """The first problems as lines, and how many more there are."""
    return FileErrors(problems, shown=PROBLEMS_SHOWN).lines if problems else []


def _reading(posted: Any) -> TableReading | None:
    values = {name: posted.get(name, "") for name in ("encoding", "delimiter", "sheet")}
    return TableReading(**values) if any(values.values()) else None


def _as_shown(reading: TableReading | None) -> str:
    """How a file was read, as the page sends it along."""
    return "" if reading is None else "\x1f".join((reading.encoding, reading.delimiter, reading.sheet))


def _choice(posted: Any) -> ColumnChoice | None:
    if not any(name.startswith("column_") for name in posted):
        return None
    chosen = {name: posted.get(f"column_{name}", "") for name in columns.COLUMNS}
    return ColumnChoice(
        {name: column for name, column in chosen.items() if column},
        numbered=bool(posted.get("numbered")),
        task=posted.get("task", "").strip(),
        html={"html": True, "letters": False}.get(posted.get("tags", "")),
    )


def _initial(proposal: uploads.BankProposal, name: str) -> dict[str, Any]:
    reading = proposal.table.reading
    return {
        "bank": uploads.name_of(name),
        "encoding": reading.encoding,
        "delimiter": reading.delimiter,
        "sheet": reading.sheet,
        "numbered": proposal.choice.numbered,
        "task": proposal.choice.task,
        "tags": {True: "html", False: "letters", None: ""}[proposal.choice.html],
        **{f"column_{column}": header for column, header in proposal.choice.columns.items()},
    }


def _cell(value: str) -> str:
    return value if len(value) <= CELL else f"{value[: CELL - 1]}…"
