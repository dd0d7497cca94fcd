"""A bank in the browser: sent, looked at, confirmed. Until then nothing but the file is kept, for who sent it."""

import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from django.utils.html import escape
from openpyxl import Workbook

from survey.contracts import instruments
from survey.models import AuditEntry, Bank, Upload
from survey.services.base.groups import ensure_researchers_group
from survey.services.base.rights import visible_banks
from survey.services.studies import file_texts, fitting
from survey.study_file import parse
from tests import cast
from tests.admin.conftest import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
ADD = "/admin/survey/bank/add/"
GOOD = "id;Fach;Frage;Antwort\na:0;Algebra;Was ist 1+1?;2\na:1;Algebra;Was ist größer?;3\n"


def send(client: Client, content: str | bytes, name: str = "fragen.csv") -> Any:
    sent = content.encode("latin-1") if isinstance(content, str) else content
    return client.post(ADD, {"file": SimpleUploadedFile(name, sent)})


def fields_of(page: Any) -> dict[str, str]:
    """What the page's form would send unchanged."""
    form = page.context["form"]
    values = {bound.html_name: bound.value() for bound in form}
    return {name: value for name, value in values.items() if value} | {"seen": page.context["proposal"].seen}


@pytest.fixture
def newcomer(db: None) -> Any:
    """A researcher who is a member of no study."""
    user = User.objects.create_user("newcomer", is_staff=True)
    user.groups.add(ensure_researchers_group())
    return user


@pytest.fixture
def client(newcomer: Any) -> Client:
    return client_of(newcomer)


def test_a_file_is_looked_at_first_and_stored_when_confirmed(client: Client, newcomer: Any) -> None:
    assert client.get(ADD).status_code == 200
    sent = send(client, GOOD)
    page = client.get(sent.url)
    words = page.content.decode()
    assert "Windows-1252 (Latin-1), fields separated by semicolons" in words and "The encoding is a guess" in words
    assert "Was ist größer?" in words and "2 questions in 1 task; 0 without a key" in words
    assert not Bank.objects.exists() and not AuditEntry.objects.filter(action="import_questions").exists()
    stored = client.post(sent.url, fields_of(page) | {"store": "1"})
    bank = Bank.objects.get()
    assert stored.url == f"/admin/survey/bank/{bank.pk}/change/"
    assert (bank.name, bank.question_count, bank.created_by) == ("fragen", 2, newcomer)
    assert list(bank.questions.values_list("external_id", "task__name", "text", "answer"))[1] == (
        *("a:1", "Algebra", "Was ist größer?", "3"),
    )
    assert not Upload.objects.exists()
    assert AuditEntry.objects.get(action="import_questions").via == "admin"
    assert client.get(stored.url).status_code == 200, "who uploaded a bank sees it without a study"


def test_columns_with_other_names_are_chosen_by_hand(client: Client) -> None:
    url = send(client, "A,B\nWas?,1\nWie?,2\n").url
    page = client.get(url)
    assert "no column is chosen for answer" in page.content.decode() and b"Store the bank" not in page.content
    chosen = {"column_question": "A", "column_answer": "B", "numbered": "on", "task": "maths", "bank": "mine"}
    page = client.post(url, fields_of(page) | chosen | {"look": "1"})
    assert b"Store the bank" in page.content and not Bank.objects.exists()
    client.post(url, fields_of(page) | {"store": "1"})
    assert list(Bank.objects.get().questions.values_list("external_id", "text", "task__name")) == [
        ("q00001", "Was?", "maths"),
        ("q00002", "Wie?", "maths"),
    ]


@pytest.mark.parametrize(
    ("header", "columns", "numbered", "task"),
    [
        ("Nr.;Subject area;Prompt text;Gold", ["Nr.", "Subject area", "Prompt text", "Gold"], False, ""),
        ("Item #;stem (text shown);CORRECT?;kat.", ["", "", "stem (text shown)", "CORRECT?"], True, "fragen"),
        ("a;answer;c;d", ["", "", "c", "answer"], True, "fragen"),  # By far the longest texts.
    ],
)
def test_odd_columns_are_proposed_and_ids_and_a_task_made(
    client: Client, header: str, columns: list[str], numbered: bool, task: str
) -> None:
    row = (
        "1;x;Which of these planets is the largest one?;y\n"
        if "stem" not in header
        else "1;Which is it, and why?;y;z\n"
    )
    page = client.get(send(client, f"{header}\n{row}").url)
    form = page.context["form"]
    chosen = [form[f"column_{name}"].value() or "" for name in ("id", "source", "question", "answer")]
    assert (chosen, form["numbered"].value(), form["task"].value()) == (columns, numbered, task)
    assert b"Store the bank" in page.content


def test_two_columns_of_texts_as_long_are_not_guessed_between(client: Client) -> None:
    page = client.get(send(client, "a;b;answer\nWhich one is it?;Which two are it?;x\n").url)
    assert "no column is chosen for question" in page.content.decode()


def test_a_template_is_fitted_to_a_small_bank(client: Client) -> None:
    rows = "".join(f"Was ist Wort {number}?,x\n" for number in range(12))
    url = send(client, f"question,answer\n{rows}", "zwoelf.csv").url
    client.post(url, fields_of(client.get(url)) | {"store": "1"})
    listed = client.get("/admin/survey/study/add/?bank=zwoelf").content.decode()
    assert "Belief update, adaptive" in listed and "Which word comes next" not in listed
    page = client.post("/admin/survey/study/add/", {"template": "belief", "bank": "zwoelf"}, follow=True)
    config = parse(page.context["text"])
    assert not page.context["sums"].has_problems and config.bank == "zwoelf"
    assert config.sitting.items < 15
    assert f"15 questions for each person became {config.sitting.items}" in page.content.decode()


def test_a_bank_that_is_large_enough_changes_no_size_and_its_tasks_are_its_own() -> None:
    cast.bank()
    text = file_texts.starting_text("own-answers")
    with_bank = file_texts.changed(text, {"bank": Bank.objects.get().name, "sitting.items": 2, "stages.0.sittings": 2})
    fitted, changes = fitting.fitted_to_bank(with_bank, reader=None)
    assert changes == [] and "tasks" not in parse(fitted).questions.model_fields_set
    assert parse(fitted).sitting.items == 2


def test_what_was_not_shown_is_not_stored(client: Client) -> None:
    url = send(client, "id,source,question,answer,other\n1,s,Was?,1,2\n").url
    changed = fields_of(client.get(url)) | {"column_answer": "other", "store": "1"}
    page = client.post(url, changed)
    assert "What you chose changes what would be stored" in page.content.decode() and not Bank.objects.exists()
    client.post(url, fields_of(page) | {"store": "1"})
    assert Bank.objects.get().questions.get().answer == "2"


def test_questions_that_stand_there_twice_are_shown_before_anything_is_stored(client: Client) -> None:
    url = send(client, "id,source,question,answer\n1,s,What is new?,1\n2,s,what is NEW?,2\n").url
    words = client.get(url).content.decode()
    assert "The same question under two ids (1)" in words and "different" in words


def test_another_encoding_can_be_chosen(client: Client) -> None:
    url = send(client, "id,source,question,answer\n1,s,Čaj?,1\n".encode("cp1250")).url
    page = client.post(url, fields_of(client.get(url)) | {"encoding": "cp1250", "look": "1"})
    assert "Čaj?" in page.content.decode()
    page = client.post(url, fields_of(page) | {"encoding": "utf_8", "look": "1"})
    assert "is not UTF-8: choose another encoding" in page.content.decode() and not Bank.objects.exists()
    page = client.post(url, fields_of(page) | {"delimiter": ";", "look": "1"})
    assert "the file has other columns" in page.content.decode()


def test_two_byte_orders_of_one_name_are_one_choice_and_the_files_own(client: Client) -> None:
    page = client.get(send(client, "\ufeffid,source,question,answer\na,s,q,x\n".encode("utf-16-be")).url)
    choices = page.context["form"].fields["encoding"].choices
    assert len({words for _name, words in choices}) == len(choices)
    assert page.context["form"]["encoding"].value() in dict(choices)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"id,question\n1,\x01\x9d\xff\n", b"\xd0\xcf\x11\xe0"])
def test_a_file_that_is_no_table_is_refused_with_a_message_and_not_kept(client: Client, content: bytes) -> None:
    page = send(client, content)
    assert page.status_code == 200 and b'class="error' in page.content
    assert not Upload.objects.exists() and not Bank.objects.exists()


def test_a_file_of_200_mb_is_refused_before_it_is_read(client: Client) -> None:
    length = 200 * 1024 * 1024
    response = client.generic(
        "POST", ADD, b"x", content_type="multipart/form-data; boundary=x", CONTENT_LENGTH=str(length)
    )
    assert response.status_code == 413 and "too large" in response.content.decode()
    assert not Upload.objects.exists()


def test_a_file_is_kept_for_who_sent_it_and_for_an_hour(client: Client, as_superuser: Client) -> None:
    url = send(client, GOOD).url
    assert as_superuser.get(url).status_code == 404 and as_superuser.post(url, {"store": "1"}).status_code == 404
    assert send(client, GOOD).url == url and Upload.objects.count() == 1
    Upload.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert client.get(url).status_code == 404
    send(client, GOOD, "another.csv")
    assert [upload.name for upload in Upload.objects.all()] == ["another.csv"]


def test_few_files_are_kept_of_one_person(client: Client) -> None:
    for number in range(5):
        send(client, GOOD, f"{number}.csv")
    assert sorted(Upload.objects.values_list("name", flat=True)) == ["2.csv", "3.csv", "4.csv"]


def test_a_file_can_be_given_up(client: Client) -> None:
    url = send(client, GOOD).url
    assert client.post(url, {"discard": "1"}).url == ADD
    assert not Upload.objects.exists()


def test_nobody_adds_a_version_to_somebody_elses_bank(client: Client, newcomer: Any, as_superuser: Client) -> None:
    Bank.objects.create(name="theirs", version=1, sha256="0" * 64, question_count=0)
    url = send(client, GOOD).url
    page = client.post(url, fields_of(client.get(url)) | {"bank": "theirs", "store": "1"})
    assert "choose another name" in page.content.decode() and Bank.objects.count() == 1
    page = client.post(url, fields_of(page) | {"bank": "not a name!", "store": "1"})
    assert "is not a name" in page.content.decode()
    assert client.post(url, fields_of(page) | {"bank": "mine", "store": "1"}).status_code == 302
    again = send(client, GOOD).url
    client.post(again, fields_of(client.get(again)) | {"bank": "mine", "store": "1"})
    assert Bank.objects.filter(name="mine").count() == 2
    url = send(as_superuser, GOOD).url
    as_superuser.post(url, fields_of(as_superuser.get(url)) | {"bank": "mine", "store": "1"})
    assert Bank.objects.filter(name="mine").count() == 3


def test_only_who_may_make_banks_sends_files(onlooker: Any) -> None:
    assert client_of(onlooker).get(ADD).status_code == 403
    assert send(client_of(onlooker), GOOD).status_code == 403


def test_who_may_make_studies_sees_the_shipped_banks_and_no_other(newcomer: Any, onlooker: Any) -> None:
    shipped = ["cloze-sentences", "starter", "starter-prompts"]
    for name in (*shipped, "theirs"):
        Bank.objects.create(name=name, version=1, sha256="0" * 64, question_count=0)
    assert set(shipped) <= instruments.shipped_banks()
    assert sorted(bank.name for bank in visible_banks(User.objects.get(pk=newcomer.pk))) == shipped
    assert not visible_banks(onlooker).exists()


def test_the_command_reads_the_same_and_says_how(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "fragen.csv"
    path.write_bytes((GOOD + "a:2;Algebra;was ist 1+1;9\n").encode("latin-1"))
    names = [f"--column={pair}" for pair in ("id=id", "source=Fach", "question=Frage", "answer=Antwort")]
    call_command("import_questions", str(path), "--bank", "mine", "--look", *names)
    said = capsys.readouterr()
    assert "Windows-1252 (Latin-1), fields separated by semicolons (a guess" in said.out
    assert "3 questions in 1 tasks" in said.out and not Bank.objects.exists()
    assert "lines 2 and 4: the same question under two ids (a:0, a:2), with different keys" in said.err
    call_command("import_questions", str(path), "--bank", "mine", *names)
    assert Bank.objects.get().question_count == 3
    with pytest.raises(SystemExit):
        call_command("import_questions", str(path), "--bank", "mine")
    said = capsys.readouterr()
    assert "has no column 'question'" in said.err and "--column question='Frage'" in said.err
    call_command("import_questions", str(path), "--bank", "counted", "--number", "--task", "maths", *names[2:])
    assert Bank.objects.get(name="counted").question_count == 3


def test_the_page_says_what_the_command_says_before_anything_is_stored(
    client: Client, tmp_path: Path, capsys: Any
) -> None:
    content = "id,source,question,answer,\nq1,geo,What is <br>?,x,\nQ1,geo,Which? (A) two (B) two,A,\n"
    url = send(client, content).url
    page = client.get(url)
    words = page.context["proposal"].notes
    assert len(words) == 4 and all(escape(line) in page.content.decode() for line in words)
    (tmp_path / "fragen.csv").write_text(content)
    call_command("import_questions", str(tmp_path / "fragen.csv"), bank="mine", letters=False)
    assert [line.replace(f"{tmp_path}/", "") for line in capsys.readouterr().err.splitlines()] == list(words)
    page = client.post(url, fields_of(page) | {"tags": "html", "store": "1"})
    assert "What you chose changes what would be stored" in page.content.decode()
    client.post(url, fields_of(page) | {"store": "1"})
    texts = dict(Bank.objects.values_list("name", "questions__text").order_by("questions__position")[:2])
    assert set(texts) == {"fragen", "mine"}
    assert Bank.objects.get(name="fragen").questions.get(external_id="q1").plain == "What is \n?"
    assert Bank.objects.get(name="mine").questions.get(external_id="q1").plain == "What is <br>?"


def sheets_of(*sheets: list[list[str]]) -> bytes:
    book = Workbook()
    for rows in sheets:
        sheet: Any = book.create_sheet()
        for row in rows:
            sheet.append(row)
    book.remove(book.worksheets[0])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def test_the_sheet_whose_columns_fit_is_taken_and_names_are_matched_again_after_a_change(client: Client) -> None:
    notes = [["remark", "day"], ["ours", "Monday"]]
    good = [["id", "source", "question", "answer"], ["q1", "geo", "Where?", "here"]]
    other = [["ID", "Fach", "Frage", "Antwort"], ["q9", "bio", "Wer?", "ich"]]
    url = send(client, sheets_of([], notes, good, other), "book.xlsx").url
    page = client.get(url)
    assert page.context["proposal"].rows[0].question == "Where?" and not page.context["problems"]
    chosen = fields_of(page) | {"read": page.context["read"], "sheet": "Sheet4", "look": "1"}
    again = client.post(url, chosen)
    assert again.context["proposal"].rows[0].question == "Wer?" and not again.context["problems"]
    assert again.context["form"]["column_question"].value() == "Frage"
    seen = client.post(url, fields_of(again) | {"read": again.context["read"], "bank": "wer", "store": "1"})
    assert seen.status_code == 302 and Bank.objects.get().questions.get().text == "Wer?"
    shown = client.get(seen.url).content.decode()
    assert "Wer?" in shown and "bio (1)" in shown and "New study with this bank" in shown


def test_names_are_matched_again_after_a_change_of_separator_and_none_are_forgotten_without_one(client: Client) -> None:
    url = send(client, "id;source;question;answer\nq1;geo;Where, who?;x\n").url
    page = client.get(url)
    wrong = client.post(url, fields_of(page) | {"read": page.context["read"], "delimiter": ",", "look": "1"})
    back = client.post(url, fields_of(wrong) | {"read": wrong.context["read"], "delimiter": ";", "look": "1"})
    assert back.context["proposal"].rows[0].question == "Where, who?" and not back.context["problems"]
    by_hand = {"read": back.context["read"], "column_domain": "source", "look": "1"}
    assert client.post(url, fields_of(back) | by_hand).context["proposal"].choice.columns["domain"] == "source"


def test_a_study_begins_with_a_bank_that_its_author_sees(client: Client) -> None:
    url = send(client, GOOD).url
    client.post(url, fields_of(client.get(url)) | {"bank": "fragen", "store": "1"})
    assert "<strong>fragen</strong>" in client.get("/admin/survey/study/add/?bank=fragen").content.decode()
    page = client.post("/admin/survey/study/add/", {"template": "belief", "bank": "fragen"})
    assert 'bank = "fragen"' in page.context["text"]
    page = client.post("/admin/survey/study/add/", {"template": "belief", "bank": "theirs"})
    assert 'bank = "starter"' in page.context["text"]


def test_the_page_refuses_what_a_sheet_shows_otherwise_at_its_cell(client: Client) -> None:
    book = Workbook()
    sheet: Any = book.active
    sheet.append(["id", "source", "question", "answer"])
    sheet.append(["q1", "geo", "Share?", 0.5])
    sheet["D2"].number_format = "0%"
    out = io.BytesIO()
    book.save(out)
    page = client.get(send(client, out.getvalue(), "a.xlsx").url)
    words = page.content.decode()
    assert "D2: is shown as &#x27;50%&#x27;" in words and "Store the bank" not in words
