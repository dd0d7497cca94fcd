"""Importing banks: what is stored, and every refusal with its line."""

import csv
import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from survey.exceptions import FileErrors, HunchError
from survey.input_tables.problems import Problems
from survey.models import AuditEntry, Bank, Question, Task
from survey.services.banks import bbh, filters, formats, mmlu
from survey.services.banks.filters import Filters
from survey.services.banks.importing import (
    QuestionRow,
    import_questions,
    import_rows,
    load_starter_bank,
    read_csv,
)
from survey.services.banks.question_flags import flag_questions

pytestmark = pytest.mark.django_db

HEADER = "id,source,question,answer\n"
GOOD = HEADER + "a:0,algebra,<b>1 + 1?</b>,2\na:1,algebra,<b>2 + 2?</b>,4\n"


@pytest.fixture
def write(tmp_path: Path):
    def write(content: str | bytes, name: str = "bank.csv") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def refusals(path: Path, bank: str = "mine") -> list[str]:
    """The lines of the refusal, without the file's folder; nothing may have been written."""
    with pytest.raises(FileErrors) as refused:
        import_questions(path, bank)
    assert not Bank.objects.exists()
    assert not Task.objects.exists()
    assert not AuditEntry.objects.exists()
    return [line.replace(str(path.parent) + "/", "") for line in refused.value.lines]


def test_it_stores_every_byte_of_a_text_as_it_stands(write) -> None:
    texts = [
        "<b>Is $a<b$?<br></b>(A) nan<br>(B) None",
        'said "so", then\r\nleft',
        "a\nb\rc",
        "  <BR> <MISSING CONDITION>\t é 漢 🎲 ",
    ]
    path = write("")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "source", "question", "answer"])
        writer.writerows([str(number), "odd", text, "nan"] for number, text in enumerate(texts))
    bank = import_questions(path, "mine")
    assert list(bank.questions.order_by("position").values_list("text", flat=True)) == texts
    assert set(bank.questions.values_list("answer", flat=True)) == {"nan"}


def test_it_reads_domain_and_reason_and_columns_in_any_order(write) -> None:
    bank = import_questions(write("reason,domain,answer,question,source,id\nwhy,maths,2,What?,algebra,a:0\n"), "mine")
    question = bank.questions.get()
    assert (question.external_id, question.reason, question.task.name, question.task.domain) == (
        "a:0",
        "why",
        "algebra",
        "maths",
    )


def test_a_second_import_makes_the_next_version_and_leaves_the_first_alone(write) -> None:
    first = import_questions(write(GOOD), "mine")
    second = import_questions(write(GOOD + "a:2,algebra,3?,3\n"), "mine")
    assert (first.version, second.version) == (1, 2)
    assert (first.questions.count(), second.questions.count()) == (2, 3)
    assert first.sha256 != second.sha256


def test_the_same_rows_have_the_same_hash_however_the_file_is_written(write) -> None:
    first = import_questions(write(GOOD), "one")
    second = import_questions(write("\ufeff" + GOOD.replace("\n", "\r\n").replace("algebra", '"algebra"')), "two")
    assert first.sha256 == second.sha256


def test_an_import_is_written_down(write) -> None:
    bank = import_questions(write(GOOD), "mine")
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.subject, entry.detail["questions"]) == ("import_questions", str(bank), 2)


def test_blank_lines_are_no_questions(write) -> None:
    assert import_questions(write(GOOD + "\n\n"), "mine").question_count == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "bank.csv:1: file: is empty"),
        (HEADER, "bank.csv:1: file: holds no question"),
        ("id,source,question\nx,y,z\n", "bank.csv:1: header: has no column 'answer'"),
        ("id,source,question,answer,colour\n", "bank.csv:1: header: unknown column 'colour'"),
        ("id,source,question,answer,id\n", "bank.csv:1: header: names the column 'id' twice"),
        (GOOD + "a:2,algebra,one, two?,3\n", "bank.csv:4: row: has 5 fields and the header 4"),
        (GOOD + "a:2,algebra\n", "bank.csv:4: row: has 2 fields and the header 4"),
        (GOOD + "a:0,algebra,again?,3\n", "bank.csv:4: id: 'a:0' stands already in line 2"),
        (GOOD + ",algebra,What?,3\n", "bank.csv:4: id: is empty"),
        (GOOD + " a:2,algebra,What?,3\n", "bank.csv:4: id: ' a:2' holds white space around it"),
        (GOOD + "a:2,,What?,3\n", "bank.csv:4: source: is empty"),
        (GOOD + 'a:2,"alg\nebra",What?,3\n', "bank.csv:4: source: 'alg\\nebra' holds"),
        (GOOD + "a:2,algebra,,3\n", "bank.csv:4: question: is empty"),
        (GOOD + "a:2,algebra, <b></b><br> ,3\n", "bank.csv:4: question: is empty"),
        (GOOD + f"a:2,algebra,{'x' * 20_001},3\n", "bank.csv:4: question: has 20,001 characters: at most 20,000"),
        (GOOD + f"{'x' * 201},algebra,What?,3\n", "bank.csv:4: id: has 201 characters: at most 200"),
        (GOOD + f"a:2,{'x' * 121},What?,3\n", "bank.csv:4: source: has 121 characters: at most 120"),
        (GOOD + 'a:2,algebra,"What?,3\n', "bank.csv:4: row: not CSV"),
        (GOOD + 'a:2,algebra,"What"?,3\n', "bank.csv:4: row: not CSV"),
        (GOOD + f'a:2,algebra,"{"x" * 140_000}",3\n', "bank.csv:4: row: not CSV"),
        (GOOD + "a:2,algebra,What\0?,3\n", "bank.csv:4: file: holds a NUL character"),
        (
            GOOD.encode() + b"a:2,algebra,caf\x01\xe9?,3\n",
            "bank.csv:4: file: holds the character U+0001, a control character: remove it",
        ),
        (
            "id,source,question,answer,domain\na,s,q,1,maths\nb,s,q,1,logic\n",
            "bank.csv:3: domain: 'logic' differs from 'maths' in line 2",
        ),
    ],
)
def test_it_refuses_a_file_and_names_line_field_and_fix(write, content: str | bytes, expected: str) -> None:
    lines = refusals(write(content))
    assert len(lines) == 1
    assert lines[0].startswith(expected)
    assert lines[0].count(": ") >= 3 or expected.endswith("file: is empty")


def test_the_line_is_where_the_row_begins_in_the_file(write) -> None:
    content = HEADER + 'a:0,algebra,"two\nlines",2\n\na:1,algebra,"three\r\nmore\nlines",2\na:0,algebra,again?,2\n'
    assert refusals(write(content)) == ["bank.csv:8: id: 'a:0' stands already in line 2: ids must differ"]


def test_it_tells_all_problems_at_once_but_not_more_than_twenty(write) -> None:
    lines = refusals(write(HEADER + "".join(f"a:{n},algebra,,\n" for n in range(23))))
    assert len(lines) == 21
    assert lines[0].startswith("bank.csv:2: question:")
    assert lines[-1] == "and 3 more problems"


def test_it_refuses_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert refusals(tmp_path / "none.csv") == [
        "none.csv:1: file: cannot be read (No such file or directory): check the path"
    ]


@pytest.mark.parametrize("name", ["", "two words", "x" * 81, "ü"])
def test_it_refuses_a_bank_name_that_no_address_could_hold(write, name: str) -> None:
    with pytest.raises(HunchError, match="bank: "):
        import_questions(write(GOOD), name)
    assert not Bank.objects.exists()


def test_a_failure_in_the_middle_of_writing_leaves_nothing(write, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(Question.objects, "bulk_create", fail)
    with pytest.raises(OSError, match="disk full"):
        import_questions(write(GOOD), "mine")
    assert not Bank.objects.exists()
    assert not Task.objects.exists()


@pytest.mark.thorough
def test_it_writes_thousands_of_questions_in_few_statements(write) -> None:
    rows = "".join(f"a:{n},task{n % 9},Question {n}?,1\n" for n in range(6000))
    with CaptureQueriesContext(connection) as queries:
        import_questions(write(HEADER + rows), "mine")
    # SQLite takes at most 999 or 250,000 values a statement, which Django knows; a statement a row would be 6,000.
    assert len(queries) < 200


def test_the_starter_bank_is_imported_once() -> None:
    first = load_starter_bank()
    assert load_starter_bank() == first
    assert Bank.objects.count() == 1
    assert first.question_count >= 400


def test_the_starter_bank_is_known_again_behind_newer_versions(write) -> None:
    first = load_starter_bank()
    import_questions(write(GOOD), "starter")
    assert load_starter_bank() == first


@pytest.mark.thorough
def test_the_study_data_are_imported_byte_for_byte(study_data: Path) -> None:
    path = study_data / "questions.csv"
    bank = import_questions(path, "study")
    with path.open(newline="", encoding="utf-8") as file:
        rows = [(row["id"], row["source"], row["question"], row["answer"]) for row in csv.DictReader(file)]
    stored = bank.questions.order_by("position").values_list("external_id", "task__name", "text", "answer")
    assert bank.question_count == len(rows) == 16_439
    assert list(stored) == rows


# MMLU


@pytest.fixture
def mmlu_folder(write, tmp_path: Path) -> Path:
    write('"Which of these\nis red?",sky,"blood, fresh",nan,grass,B\n1 + 1?,1,2,3,4,B\n', "data/test/anatomy_test.csv")
    write("Who?,a,b,c,d,D\n", "data/test/us_foreign_policy_test.csv")
    write("Not of the test split,a,b,c,d,D\n", "data/dev/anatomy_dev.csv")
    return tmp_path


def test_mmlu_is_read_from_its_published_folder(mmlu_folder: Path) -> None:
    problems = Problems()
    bank = import_rows(formats.read(mmlu_folder, problems, format="mmlu"), problems, bank_name="m", source_file="m")
    rows = list(bank.questions.order_by("position").values_list("external_id", "text", "answer", "task__domain"))
    assert rows == [
        (
            "mmlu_anatomy:0",
            "<b>Which of these<br>is red?<br></b>(A) sky<br>(B) blood, fresh<br>(C) nan<br>(D) grass",
            "B",
            "other",
        ),
        ("mmlu_anatomy:1", "<b>1 + 1?<br></b>(A) 1<br>(B) 2<br>(C) 3<br>(D) 4", "B", "other"),
        ("mmlu_us_foreign_policy:0", "<b>Who?<br></b>(A) a<br>(B) b<br>(C) c<br>(D) d", "D", "social sciences"),
    ]


def test_each_of_the_57_subjects_has_one_of_four_domains() -> None:
    assert len(mmlu.DOMAIN_OF) == 57
    assert len(set(mmlu.DOMAIN_OF.values())) == 4


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("anatomy_test.csv", "What?,a,b,c,d,E\n", "anatomy_test.csv:1: row: is not question, four options"),
        ("anatomy_test.csv", "What?,a,b,c,d,AB\n", "anatomy_test.csv:1: row: is not question, four options"),
        ("anatomy_test.csv", "Fine?,a,b,c,d,A\nWhat?,a,b\n", "anatomy_test.csv:2: row: is not question, four"),
        ("anatomy_test.csv", 'What?,a,b,c,"d,A\n', "anatomy_test.csv:1: row: not CSV"),
        ("cooking_test.csv", "What?,a,b,c,d,A\n", "cooking_test.csv:1: file: 'cooking' is not one of MMLU's 57"),
        ("readme.txt", "", ":1: folder: holds no SUBJECT_test.csv"),
    ],
)
def test_it_refuses_what_is_not_mmlu(write, tmp_path: Path, name: str, content: str, expected: str) -> None:
    write(content, name)
    problems = Problems()
    list(mmlu.read(tmp_path, problems))
    assert str(problems.found[0]).removeprefix(str(tmp_path)).removeprefix("/").startswith(expected)


# BIG-Bench Hard


@pytest.fixture
def bbh_folder(write, tmp_path: Path) -> Path:
    def task(name: str, *examples: tuple[str, str]) -> None:
        content = {"canary": "x", "examples": [{"input": text, "target": target} for text, target in examples]}
        write(json.dumps(content), f"bbh/{name}.json")

    task("navigate", ("Do you return?\nOptions:\n- Yes\n- No", "No"))
    task("snarks", ("Which is meant?\nOptions:\n(A) this\n(B) that", "(B)"))
    task("word_sorting", ("Sort: b a", "a b"))
    return tmp_path


def test_bbh_is_read_from_its_published_folder(bbh_folder: Path) -> None:
    rows = [(row.id, row.question, row.answer) for row in bbh.read(bbh_folder, Problems())]
    assert rows == [
        ("bbh_navigate:0", "Do you return?<br>Options:<br>- Yes<br>- No", "No"),
        ("bbh_snarks:0", "<b>Which is meant?<br>Options:<br></b>(A) this<br>(B) that", "B"),
        ("bbh_word_sorting:0", "Sort: b a", "a b"),
    ]


def test_the_papers_tasks_are_bbh_without_five_and_all_of_mmlu(bbh_folder: Path) -> None:
    chosen = formats.filters_of("bbh", paper_tasks=True)
    rows = chosen.taken(formats.read(bbh_folder, Problems(), format="bbh"))
    assert {row.source for row in rows} == {"bbh_navigate", "bbh_snarks"}
    assert len(bbh.LEFT_OUT_BY_THE_PAPER) == 27 - 22
    assert len(bbh.TASKS) == 27
    assert len(filters.paper_tasks()) == 79


@pytest.mark.parametrize(
    ("format", "wish", "expected"),
    [
        ("csv", {"paper_tasks": True}, "--paper-tasks: only --format bbh"),
        ("mmlu", {"paper_tasks": True}, "--paper-tasks: only --format bbh"),
        ("csv", {"paper": True}, "--paper: the paper's filters are for --format mmlu or bbh, not csv"),
        ("bbh", {"paper": True, "max_characters": 700}, "--max-characters: --paper sets it to 750"),
        ("csv", {"max_characters": 0}, "--max-characters: 0 is no length"),
    ],
)
def test_filters_that_do_not_fit_are_refused(format: str, wish: dict, expected: str) -> None:
    with pytest.raises(HunchError, match=expected):
        formats.filters_of(format, **wish)


def test_length_is_counted_as_a_reader_sees_it(bbh_folder: Path) -> None:
    rows = list(bbh.read(bbh_folder, Problems()))
    # "Which is meant?\nOptions:\n(A) this\n(B) that": 42 characters without the markup.
    assert [row.source for row in Filters(41).taken(rows)] == ["bbh_navigate", "bbh_word_sorting"]
    assert len(list(Filters(42).taken(rows))) == 3


def test_every_dropped_question_is_counted_once_under_its_task(bbh_folder: Path) -> None:
    chosen = Filters(41, ("bbh_word_sorting",))
    list(chosen.taken(bbh.read(bbh_folder, Problems())))
    counts = {
        name: (count.read, count.task_left_out, count.too_long, count.kept) for name, count in chosen.counts.items()
    }
    assert counts == {"bbh_navigate": (1, 0, 0, 1), "bbh_snarks": (1, 0, 1, 0), "bbh_word_sorting": (1, 1, 0, 0)}
    assert (chosen.total.read, chosen.total.kept) == (3, 1)


# Several benchmarks in one bank


def add(folder: Path, format: str, *, paper: bool = False) -> Bank:
    problems, chosen = Problems(), formats.filters_of(format, paper=paper)
    rows = chosen.taken(formats.read(folder, problems, format=format))
    return import_rows(
        rows, problems, bank_name="both", source_file=format, adds=True, tasks=lambda: list(chosen.counts)
    )


def ids(bank: Bank) -> list[str]:
    return list(bank.questions.order_by("position").values_list("external_id", flat=True))


def test_benchmarks_are_added_to_one_bank(mmlu_folder: Path, bbh_folder: Path) -> None:
    first = add(mmlu_folder, "mmlu")
    second = add(bbh_folder, "bbh", paper=True)
    assert (first.version, second.version, second.question_count) == (1, 2, 5)
    assert ids(second) == [*ids(first), "bbh_navigate:0", "bbh_snarks:0"]
    assert ids(first) == ["mmlu_anatomy:0", "mmlu_anatomy:1", "mmlu_us_foreign_policy:0"]
    assert second.tasks.get(name="mmlu_anatomy").domain == "other"


def test_adding_a_benchmark_again_takes_the_place_of_its_tasks_even_of_those_that_a_filter_empties(
    mmlu_folder: Path, bbh_folder: Path
) -> None:
    add(bbh_folder, "bbh")
    add(mmlu_folder, "mmlu")
    third = add(bbh_folder, "bbh", paper=True)
    assert ids(third) == [
        "mmlu_anatomy:0",
        "mmlu_anatomy:1",
        "mmlu_us_foreign_policy:0",
        "bbh_navigate:0",
        "bbh_snarks:0",
    ]


def test_questions_that_are_kept_keep_their_flags(mmlu_folder: Path, bbh_folder: Path) -> None:
    first = add(mmlu_folder, "mmlu")
    flag_questions(bank=first, external_ids=["mmlu_anatomy:1"], kind="broken", reason="two right answers")
    question = add(bbh_folder, "bbh").questions.get(external_id="mmlu_anatomy:1")
    assert (question.flag, question.flag_reason) == ("broken", "two right answers")
    assert question.flagged_at is not None


def test_adding_refuses_an_id_that_the_bank_has_in_another_task(write, mmlu_folder: Path) -> None:
    import_questions(write(HEADER + "mmlu_anatomy:1,mine,What?,2\n"), "both")
    with pytest.raises(FileErrors, match="'mmlu_anatomy:1' stands already in both version 1, in the task mine"):
        add(mmlu_folder, "mmlu")
    assert Bank.objects.count() == 1


def test_a_bank_holds_the_papers_tasks_only_with_all_of_them_and_none_too_long() -> None:
    def bank(name: str, tasks: Iterable[str], text: str = "Why?") -> Bank:
        rows = [QuestionRow(id=f"{task}:0", source=task, question=text, answer="1") for task in sorted(tasks)]
        return import_rows(rows, Problems(), bank_name=name, source_file="made")

    tasks = filters.paper_tasks()
    assert filters.holds_the_papers_tasks(bank("whole", tasks, "x" * 750))
    assert not filters.holds_the_papers_tasks(bank("long", tasks, "x" * 751))
    assert not filters.holds_the_papers_tasks(bank("more", {*tasks, "bbh_word_sorting"}))
    assert not filters.holds_the_papers_tasks(bank("fewer", tasks - {"mmlu_anatomy"}))


@pytest.mark.thorough
def test_the_study_data_pass_the_papers_filters_as_a_whole(study_data: Path) -> None:
    chosen, problems = Filters(filters.PAPER_CHARACTERS), Problems()
    rows = list(chosen.taken(read_csv(study_data / "questions.csv", problems)))
    assert (chosen.total.read, len(rows), len(problems)) == (16_439, 16_439, 0)
    assert {row.source for row in rows} == filters.paper_tasks()
    assert len(rows) != filters.PAPER_PRINTS


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"examples": [\n{"input": "x",}]}', "snarks.json:2: file: not JSON"),
        ('{"tasks": []}', "snarks.json:1: examples: is not a list of"),
        ('{"examples": [{"input": "x"}]}', "snarks.json:1: examples: is not a list of"),
    ],
)
def test_it_refuses_what_is_not_bbh(write, tmp_path: Path, content: str, expected: str) -> None:
    write(content, "snarks.json")
    problems = Problems()
    list(bbh.read(tmp_path, problems))
    assert str(problems.found[0]).removeprefix(str(tmp_path) + "/").startswith(expected)


def test_it_refuses_a_task_that_bbh_does_not_have(write, tmp_path: Path) -> None:
    write('{"examples": []}', "cooking.json")
    problems = Problems()
    list(bbh.read(tmp_path, problems))
    assert "'cooking' is not one of BIG-Bench Hard's 27 tasks" in str(problems.found[0])
