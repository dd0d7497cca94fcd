"""Banks of sentences, passages and prompts, and whole replies of language models to them."""

from pathlib import Path

import pytest
from django.core.management import call_command

from survey.exceptions import FileErrors, HunchError
from survey.input_tables.problems import Problems
from survey.instruments.belief_update.real_evidence import RealOutcomes
from survey.models import Bank, ModelAnswer, Study
from survey.services.banks import collecting, formats, importing, model_answers, uploads
from tests.predictors.fake_endpoint import chat, running

pytestmark = pytest.mark.django_db

SENTENCES = 'id,source,text,positions\ns1,news,"The old man sat down.","3,1"\ns2,news,It rained.,\n'
PROMPTS = "id,source,text\np1,code,Write a loop.\np2,code,Sort a list.\n"


def imported(tmp_path: Path, text: str, format: str) -> Bank:
    path = tmp_path / "file.csv"
    path.write_text(text, encoding="utf-8")
    call_command("import_questions", str(path), bank="texts", format=format)
    return Bank.objects.latest("version")


def refused(tmp_path: Path, text: str, format: str) -> list[str]:
    path = tmp_path / "file.csv"
    path.write_text(text, encoding="utf-8")
    problems = Problems()
    with pytest.raises(FileErrors) as refusal:
        importing.import_rows(
            formats.read(path, problems, format=format), problems, bank_name="texts", source_file=str(path)
        )
    assert not Bank.objects.exists()
    return [line.replace(f"{path}:", "") for line in refusal.value.lines]


def test_sentences_are_stored_without_a_key_and_with_their_positions(tmp_path: Path) -> None:
    bank = imported(tmp_path, SENTENCES, "sentences")
    stored = bank.questions.order_by("position").values_list("external_id", "text", "answer", "extra")
    assert list(stored) == [
        ("s1", "The old man sat down.", "", {"positions": [1, 3]}),
        ("s2", "It rained.", "", {}),
    ]
    again = imported(tmp_path, SENTENCES.replace('"3,1"', '"3"'), "sentences")
    assert (again.version, again.sha256 != bank.sha256) == (2, True)


@pytest.mark.parametrize("format", ["prompts", "passages"])
def test_other_texts_have_no_further_columns(format: str, tmp_path: Path) -> None:
    bank = imported(tmp_path, PROMPTS, format)
    assert set(bank.questions.values_list("task__name", "answer")) == {("code", "")}
    assert [question.extra for question in bank.questions.all()] == [{}, {}]


@pytest.mark.parametrize("format", ["prompts", "passages"])
def test_a_column_that_is_none_of_theirs_is_refused(format: str, tmp_path: Path) -> None:
    (line,) = refused(tmp_path, SENTENCES, format)
    more = ", question, answer" if format == "passages" else ""
    assert line == f"1: header: unknown column 'positions': the columns are id, source, text{more}"


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ("s1,news,Alone,", "2: text: has one word: a sentence needs at least two"),
        ("s1,news,It rained.,2", "2: positions: 2 lies outside the sentence: its 2 words are 0 to 1"),
        ("s1,news,It rained.,-1", "2: positions: '-1' is no whole number: write them like 3,5,8"),
        ('s1,news,It rained.,"1,1"', "2: positions: 1 stands there twice: keep one"),
        ("s1,news,It rained.,\ns2,news,It  rained.,", "3: text: the same sentence stands in line 2: keep one"),
        ("s1,news, ,", "2: text: is empty: give every question a text"),
    ],
)
def test_a_sentence_that_nobody_could_be_asked_is_refused_with_its_line(row: str, line: str, tmp_path: Path) -> None:
    assert refused(tmp_path, f"id,source,text,positions\n{row}\n", "sentences") == [line]


def replies(tmp_path: Path, *rows: str) -> Path:
    path = tmp_path / "replies.csv"
    path.write_text("\n".join(["llm,question_id,response", *rows]) + "\n", encoding="utf-8")
    return path


def test_replies_are_stored_whole_and_unjudged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bank = imported(tmp_path, PROMPTS, "prompts")
    path = replies(tmp_path, 'owl,p1,"for x in y:\n  pass"', "owl,p2,sorted(y)")
    call_command("import_replies", str(path), bank="texts")
    assert "imported 2 replies of owl to texts version 1" in capsys.readouterr().out
    stored = ModelAnswer.objects.order_by("question__position").values_list("correct", "response")
    assert list(stored) == [(None, "for x in y:\n  pass"), (None, "sorted(y)")]
    assert model_answers.import_replies(path, bank).known == {"owl": 2}
    with pytest.raises(HunchError, match="1 of its replies differ"):
        model_answers.import_replies(replies(tmp_path, "owl,p1,another", "owl,p2,sorted(y)"), bank)


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ("owl,p1,", "response: is empty: leave the row out, or give the reply"),
        ("owl,p9,yes", "question_id: 'p9' is no question of texts version 1"),
        (",p1,yes", "llm: is empty: name the language model"),
    ],
)
def test_a_bad_reply_is_refused_with_its_line(row: str, line: str, tmp_path: Path) -> None:
    bank = imported(tmp_path, PROMPTS, "prompts")
    path = replies(tmp_path, row)
    with pytest.raises(FileErrors) as refusal:
        model_answers.import_replies(path, bank)
    assert refusal.value.lines == [f"{path}:2: {line}"]
    assert not ModelAnswer.objects.exists()


def test_a_reply_and_its_verdict_can_come_in_either_order(tmp_path: Path) -> None:
    bank = imported(tmp_path, PROMPTS, "prompts")
    model_answers.import_replies(replies(tmp_path, "owl,p1,sorted(y)"), bank)
    verdicts = tmp_path / "answers.csv"
    verdicts.write_text("llm,question_id,correct\nowl,p1,0\nowl,p2,1\n")
    model_answers.import_answers(verdicts, bank)
    model_answers.import_replies(replies(tmp_path, "owl,p1,sorted(y)", "owl,p2,y.sort()"), bank)
    stored = ModelAnswer.objects.order_by("question__position").values_list("correct", "response")
    assert list(stored) == [(False, "sorted(y)"), (True, "y.sort()")]


def test_what_goes_by_right_and_wrong_leaves_unjudged_replies_out(tmp_path: Path) -> None:
    bank = imported(tmp_path, PROMPTS, "prompts")
    model_answers.import_replies(replies(tmp_path, "owl,p1,one", "owl,p2,two"), bank)
    ModelAnswer.objects.filter(question__external_id="p2").update(correct=True)
    outcomes = RealOutcomes(Study(slug="real", bank=bank), language_model="owl")
    questions = list(bank.questions.order_by("position"))
    assert [question.external_id for question in outcomes.usable(questions)] == ["p2"]
    assert outcomes.facts() == ["owl", [[1, 1]]]


def test_a_model_is_asked_for_free_replies_where_no_text_has_a_key(tmp_path: Path, monkeypatch) -> None:
    bank = imported(tmp_path, PROMPTS, "prompts")
    with running() as fake:
        monkeypatch.setenv("HUNCH_LLM_URL", fake.url)
        fake.answer = lambda seen: chat(f"Reply to: {seen.body['messages'][0]['content']}\nand more")
        collection = collecting.create_collection(bank=bank, model="m")
        assert collection.max_tokens == collecting.MAX_TOKENS_FREE
        collecting.run_collection(collection.pk)
    answers = ModelAnswer.objects.order_by("question__position")
    # The prompt goes out as it stands, and the reply is kept as it came, judged by nobody.
    assert [answer.response for answer in answers] == [
        "Reply to: Write a loop.\nand more",
        "Reply to: Sort a list.\nand more",
    ]
    assert {(answer.correct, answer.share_correct, answer.stated, answer.reason) for answer in answers} == {
        (None, None, "", "")
    }


def test_several_free_replies_are_all_kept(tmp_path: Path, monkeypatch) -> None:
    bank = imported(tmp_path, PROMPTS, "prompts")
    with running() as fake:
        monkeypatch.setenv("HUNCH_LLM_URL", fake.url)
        fake.answer = chat("x" * 50_000)
        collection = collecting.create_collection(bank=bank, model="m", replies=3, temperature=1, max_tokens=9)
        ended = collecting.run_collection(collection.pk)
    assert ended is not None and ended.state == "done" and ended.max_tokens == 9
    assert [len(answer.replies) for answer in ModelAnswer.objects.all()] == [3, 3]


def test_an_uploaded_table_of_sentences_becomes_a_bank_of_sentences() -> None:
    content = b'id,source,text,positions\na,s,One two three four,"1,2"\nb,s,Word,\nc,s,One two three four,9\n'
    proposal = uploads.propose(content, "sentences.csv")
    assert proposal.rows[0].extra == {"positions": [1, 2]} and proposal.rows[0].answer == "" and not proposal.left_out
    said = [str(problem) for problem in proposal.problems]
    assert any("has one word" in message for message in said) and any(
        "the same sentence stands" in message for message in said
    )
    assert any("9 lies outside the sentence" in message for message in said)
    with_answers = uploads.propose(b"id,source,text,answer\na,s,What?,yes\n", "questions.csv")
    assert with_answers.rows[0].answer == "yes" and not with_answers.problems


MANY = 50_000
SCRIPTS = (
    "שָׁלוֹם עֲלֵיכֶם",
    "مرحبا بالعالم ١٢٣",
    "é und Ȧ̧",
    "नमस्ते",
    "👩‍👩‍👧‍👦 family",
    "abc \u202eright to left\u202c",
)


def test_a_reply_of_50_000_characters_is_stored_whole(tmp_path: Path) -> None:
    bank = imported(tmp_path, PROMPTS, "prompts")
    long = ("a word and 😀 " * MANY)[:MANY]
    model_answers.import_replies(replies(tmp_path, f'owl,p1,"{long}"'), bank)
    stored = ModelAnswer.objects.get().response
    assert len(stored) == MANY
    assert stored == long


@pytest.mark.parametrize("text", SCRIPTS)
def test_a_reply_in_any_script_is_stored_as_it_came(text: str, tmp_path: Path) -> None:
    bank = imported(tmp_path, PROMPTS, "prompts")
    model_answers.import_replies(replies(tmp_path, f'owl,p1,"{text}"'), bank)
    assert ModelAnswer.objects.get().response == text
