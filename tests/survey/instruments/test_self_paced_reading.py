"""Self-paced reading: passages, times, marks, what the server knows of windows, the report, a whole stage."""

import csv
import json
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from predictors.readings import Text
from survey.contracts import instruments
from survey.exceptions import FieldErrors, FileErrors, HunchError, OutOfOrder, StateRefused
from survey.input_tables.problems import Problems
from survey.instruments.self_paced_reading import model_words
from survey.instruments.self_paced_reading.export import WORD_COLUMNS
from survey.instruments.self_paced_reading.forms import times_form
from survey.instruments.self_paced_reading.model_words import read_models
from survey.instruments.self_paced_reading.models import PassageAnswer, PassageOpening, WordTimes
from survey.instruments.self_paced_reading.people import made_up_surprisal
from survey.models import Assignment, NgramModel, Reading, Response, Sitting, SnapshotAnswer, Stage, Study
from survey.services.banks import ngrams, texts
from survey.services.plans.planning import plan_stage
from survey.services.results import reports
from survey.services.results.estimates.study_estimates import estimate
from survey.services.results.export import files
from survey.services.sittings.answering import advance
from survey.services.sittings.enrolment import begin_sitting, new_open_person
from survey.services.sittings.flow import Step, current_step
from survey.services.sittings.openings import record_opening
from survey.services.stages import jobs, lifecycle
from survey.services.stages.verifying import verify_stage
from tests import cast
from tests.frontend.pages import read
from tests.kept import kept

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

PASSAGES = [
    ("The old man sat down by the river and waited there", "Did the man wait?", "yes"),
    ("Nobody knew why the lights went out again last night", "Did people know the reason?", "no"),
    ("She opened the letter with hands that would not keep still", "Was she calm?", "no"),
    ("Rain fell all night long on the roof of our house", "Was it dry?", "no"),
    ("A small dog barked at the postman who had no letter", "Did a dog bark?", "yes"),
    ("He never told his sister where the old key was kept", "Does the sister know?", "no"),
]
BLOCKS = [
    {"kind": "consent", "text": "Do you agree?", "version": "1"},
    {"kind": "items"},
    {"kind": "end", "text": "Thanks."},
]
READING: dict[str, Any] = {
    "slug": "reading",
    "bank": "passages",
    "instrument": {"kind": "self_paced_reading", "options": {"frequencies": "ngram:tiny", "least_right": 0.3}},
    "models": [{"name": "bigram", "source": "ngram:tiny"}],
    "candidates": {"size": 40},
    "sitting": {"items": 3},
    "roles": {"holdout": 0, "controls": 0},
    "stages": [{"sittings": 6, "responses_per_item": 3}],
    "blocks": BLOCKS,
}
NONCE, OTHER = "ab" * 16, "cd" * 16


def written(path: Path, rows: list[tuple[str, ...]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "source", "text", "question", "answer"), *rows])
    return path


@pytest.fixture
def passages() -> None:
    import_passages()


@kept
def import_passages() -> None:
    rows = [(f"t{number}", f"source_{number % 2}", *passage) for number, passage in enumerate(PASSAGES)]
    with TemporaryDirectory() as folder:
        path = written(Path(folder) / "p.csv", rows)
        call_command("import_questions", str(path), bank="passages", format="passages")


@pytest.fixture
def tiny_model() -> None:
    train_tiny_model()


def train_tiny_model() -> None:
    ngrams.train(
        [Text("a", " ".join(text for text, *_more in PASSAGES))],
        name="tiny",
        order=2,
        unit="word",
        smoothing="kneser_ney",
    )


def at_passage(*, open_for: float = 10.0) -> tuple[Study, Sitting, Step]:
    """Somebody who began to read `open_for` seconds ago."""
    study = cast.open_study(**{**READING, "models": [], "instrument": {"kind": "self_paced_reading"}})
    sitting = begin_sitting(study=study, ids=new_open_person())
    step = current_step(sitting)
    assert step.assignment is not None
    if open_for:
        assert record_opening(sitting_key=sitting.pk, step=str(step.number), nonce=NONCE)
        PassageOpening.objects.update(opened_at=timezone.now() - timedelta(seconds=open_for))
    return study, sitting, step


def words_of(step: Step) -> int:
    assert step.screen is not None
    return len(str(step.screen.parts["passage"]["value"]).split())


def given(step: Step, *, total: float = 9.5, **more: Any) -> dict[str, Any]:
    """Times that last so many seconds together, as the page's script sends them."""
    count = words_of(step)
    each = int(1000 * total) // count
    return {"times": " ".join([str(each)] * count), "nonce": NONCE, "lead_ms": "200", "means": "key", **more}


def read_it(open_for: float = 10.0, **more: Any) -> WordTimes:
    _study, sitting, step = at_passage(open_for=open_for)
    advance(sitting=sitting, step=step.number, data=given(step, **more))
    return WordTimes.objects.get()


# What the browser sends


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ("", "The words were not read"),
        ("300 300", "There are 2 times for 3 words"),
        ("300 300 300 300", "There are 4 times for 3 words"),
        ("300 -1 300", "The time of word 2"),
        ("300 60001 300", "The time of word 2"),
        ("300 3e2 300", "The time of word 2"),
        ("300 1.5 300", "The time of word 2"),
        ("300 ٣٠٠ 300", "The time of word 2"),
        ("300 300 " + "9" * 5000, "The time of word 3"),
    ],
)
@pytest.mark.any_database
def test_times_that_are_not_one_whole_number_a_word_are_refused(times: str, said: str) -> None:
    form = times_form(3)({"times": times, "nonce": NONCE})
    assert not form.is_valid() and said in str(form.errors)


@pytest.mark.any_database
def test_times_and_known_marks_are_taken_and_others_dropped() -> None:
    form = times_form(3)({"times": "0 300  60000", "nonce": NONCE, "marks": "clock <b> background opened_again"})
    assert form.is_valid() and form.cleaned_data["times"] == [0, 300, 60000]
    assert form.cleaned_data["marks"] == ["background", "clock"]


# What the server knows


def test_a_passage_read_in_one_window_has_no_mark(passages: None) -> None:
    read_times = read_it()
    assert read_times.marks == [] and read_times.server_ms is not None and 9_500 < read_times.server_ms < 60_000
    assert read_times.lead_ms == 200 and read_times.means == "key"


def test_marks_of_the_browser_are_kept(passages: None) -> None:
    assert read_it(marks="background focus").marks == ["background", "focus"]


def test_a_window_that_did_not_say_that_it_began_is_marked(passages: None) -> None:
    read_times = read_it(open_for=0)
    assert read_times.marks == ["not_opened"] and read_times.server_ms is None
    with pytest.raises(IntegrityError), transaction.atomic():
        WordTimes.objects.update(times=[])


def test_a_second_window_on_the_same_passage_is_marked_whichever_is_sent(passages: None) -> None:
    _study, sitting, step = at_passage()
    for _again in range(2):  # The same word of a window may come twice.
        assert record_opening(sitting_key=sitting.pk, step=str(step.number), nonce=OTHER)
    assert PassageOpening.objects.count() == 2
    advance(sitting=sitting, step=step.number, data=given(step))
    assert WordTimes.objects.get().marks == ["opened_again"]
    assert not record_opening(sitting_key=sitting.pk, step=str(step.number), nonce=OTHER)  # It is answered.
    # The other window sends its times, too: nothing more is stored, and the first ones stay.
    advance(sitting=sitting, step=step.number, data=given(step, nonce=OTHER))
    assert WordTimes.objects.get().marks == ["opened_again"] and Response.objects.count() == 1


@pytest.mark.parametrize(("open_for", "total"), [(10.0, 13.0), (40.0, 9.5), (0.5, 9.5)])
def test_times_that_do_not_fit_the_servers_clock_are_marked(open_for: float, total: float, passages: None) -> None:
    assert read_it(open_for=open_for, total=total).marks == ["server_clock"]


def test_a_simulated_person_does_not_wait(passages: None) -> None:
    study = cast.study(**{**READING, "models": [], "instrument": {"kind": "self_paced_reading"}})
    lifecycle.open_stage(plan_stage(study.stages.get()))
    sitting = begin_sitting(study=study, ids=new_open_person(), simulated=True)
    step = current_step(sitting)
    record_opening(sitting_key=sitting.pk, step=str(step.number), nonce=NONCE)
    advance(sitting=sitting, step=step.number, data=given(step))
    assert WordTimes.objects.get().marks == []


def test_times_of_another_passage_and_answers_out_of_turn_are_not_taken(passages: None) -> None:
    _study, sitting, step = at_passage()
    first = given(step)
    with pytest.raises(FieldErrors):  # The answer to the question, before the passage was read.
        advance(sitting=sitting, step=step.number, data={"answer": "yes"})
    with pytest.raises(OutOfOrder):  # The same, for a step that is not there yet.
        advance(sitting=sitting, step=step.number + 1, data={"answer": "yes"})
    with pytest.raises(FieldErrors, match="There are"):
        advance(sitting=sitting, step=step.number, data={**first, "times": first["times"] + " 300"})
    assert not Response.objects.exists()
    advance(sitting=sitting, step=step.number, data=first)
    sitting.refresh_from_db()
    advance(sitting=sitting, step=step.number, data={**first, "means": "tap"})  # Sent twice.
    with pytest.raises(FieldErrors):  # Times once more, where the question stands.
        advance(sitting=sitting, step=sitting.step, data=first)
    assert WordTimes.objects.get().means == "key" and not PassageAnswer.objects.exists()
    advance(sitting=sitting, step=sitting.step, data={"answer": "yes"})
    sitting.refresh_from_db()
    second = current_step(sitting)
    record_opening(sitting_key=sitting.pk, step=str(second.number), nonce=OTHER)
    # Times of the first passage, with its window's number, for the second one: as many as it has words.
    each = first["times"].split()[0]
    advance(sitting=sitting, step=second.number, data={**first, "times": " ".join([each] * words_of(second))})
    assert "not_opened" in WordTimes.objects.latest("pk").marks


def test_the_beacon_says_that_a_screen_was_begun_and_knows_no_other_step(passages: None) -> None:
    study, sitting, step = at_passage(open_for=0)
    client = Client()
    client.cookies["hunch_sitting"] = sitting.token
    address = f"/s/{study.slug}/beacon"

    def post(number: Any, nonce: str) -> int:
        return client.post(address, {"step": number, "opened": nonce}).status_code

    assert post(step.number + 1, NONCE) == post("x", NONCE) == post(step.number, "<script>") == 409
    assert post(step.number, NONCE) == 204
    assert PassageOpening.objects.get().nonce == NONCE
    reply = client.post(
        "/api/v1/sitting/left/",
        json.dumps({"step": step.number, "opened": OTHER}),
        content_type="application/json",
        headers={"X-Sitting-Token": sitting.token},
    )
    assert reply.status_code == 204 and PassageOpening.objects.count() == 2


# Pages


def test_a_page_needs_no_more_statements_than_others(passages: None, django_assert_max_num_queries: Any) -> None:
    study, sitting, step = at_passage()
    client = Client()
    client.cookies["hunch_sitting"] = sitting.token
    address = f"/s/{study.slug}/sitting"
    with django_assert_max_num_queries(8):
        page = read(client.get(address).content.decode())
    with django_assert_max_num_queries(10):  # With the two of the transaction.
        client.post(address, {**page.hidden, **given(step)})
    page = read(client.get(address).content.decode())
    with django_assert_max_num_queries(10):
        client.post(address, {**page.hidden, "answer": "yes"})
    assert PassageAnswer.objects.count() == 1


def test_no_page_holds_the_right_answer_and_the_text_is_escaped(tmp_path: Path) -> None:
    text = "One <b>bold</b> & <script>alert(1)</script> word"
    rows = [(f"t{number}", "s", text + f" {number}", "Is <i>it</i> so?", "yes") for number in range(6)]
    call_command(
        "import_questions", str(written(tmp_path / "p.csv", rows)), bank="passages", format="passages", html=True
    )
    study, sitting, step = at_passage()
    client = Client()
    client.cookies["hunch_sitting"] = sitting.token
    body = client.get(f"/s/{study.slug}/sitting").content.decode()
    page = read(body)
    assert step.screen is not None and page.parts["passage"] == step.screen.parts["passage"]["value"]
    assert "<script>alert" not in body and "Is " not in page.text and "passages" not in page.text
    assert {"times", "nonce", "lead_ms", "means", "marks"} <= set(page.hidden)
    refused = client.post(
        f"/s/{study.slug}/sitting", {**page.hidden, "times": "1 2", "nonce": NONCE}, headers={"X-Hunch-Exchange": "1"}
    )
    assert refused.status_code == 422 and "There are 2 times for" in refused.content.decode()
    advance(sitting=sitting, step=step.number, data=given(step))
    asked = client.get(f"/s/{study.slug}/sitting").content.decode()
    question_page = read(asked)
    assert question_page.parts["question_text"] == "Is <i>it</i> so?" and "<i>it" not in asked
    assert [field["value"] for field in question_page.inputs if field["type"] == "radio"] == ["yes", "no"]
    assert all("checked" not in field for field in question_page.inputs)


def test_people_without_script_are_told_before_consent_and_nothing_is_stored(passages: None) -> None:
    study = cast.open_study(
        **{
            **READING,
            "models": [],
            "instrument": {"kind": "self_paced_reading"},
            "panel": {
                "kind": "generic",
                "completion_url": "https://panel.example/back?code={code}",
                "parameters": {"person": "pid"},
            },
        }
    )
    way_back = f"https://panel.example/back?code={study.completion_code('no_consent')}"
    client = Client()
    welcome = client.get(f"/s/{study.slug}/?pid=somebody", follow=True).content.decode()
    without = welcome[welcome.index("<noscript>") : welcome.index("</noscript>")]
    assert "This study needs JavaScript" in without and way_back in without
    assert "no disadvantage" in without
    page = read(client.get(f"/s/{study.slug}/consent").content.decode())
    assert page.hidden["script"] == ""
    told = client.post(f"/s/{study.slug}/consent", {**page.hidden, "consent": "yes"}, follow=True).content.decode()
    assert "does not run the JavaScript" in told and way_back in told
    assert not Sitting.objects.exists()
    begun = client.post(f"/s/{study.slug}/consent", {**page.hidden, "script": "1", "consent": "yes"})
    assert begun.url == f"/s/{study.slug}/sitting" and Sitting.objects.count() == 1


# Studies


def test_a_study_of_models_needs_frequencies_and_a_bank_needs_questions(passages: None, tmp_path: Path) -> None:
    with pytest.raises(FileErrors, match="frequencies: is missing: what surprisal adds"):
        cast.study(**{**READING, "instrument": {"kind": "self_paced_reading"}})
    options = {"frequencies": "file.csv", "shortest": 400, "longest": 300}
    with pytest.raises(FileErrors) as refused:
        cast.study(**{**READING, "models": [], "instrument": {"kind": "self_paced_reading", "options": options}})
    assert "write ngram:NAME" in str(refused.value) and "must be below longest, which is 300" in str(refused.value)
    bare = tmp_path / "bare.csv"
    bare.write_text("id,source,text\na,s,Some words here\n")
    call_command("import_questions", str(bare), bank="bare", format="passages")
    with pytest.raises(FileErrors, match="no passage has a question"):
        cast.study(**{**READING, "models": [], "bank": "bare", "instrument": {"kind": "self_paced_reading"}})


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("a", "s", "Two words", "Is it?", "perhaps"), "answer: 'perhaps' is neither yes nor no"),
        (("a", "s", "Two words", "Is it?", ""), "answer: '' is neither yes nor no"),
        (("a", "s", "Two words", "", "yes"), "question: is empty, and there is an answer"),
        (("a", "s", "One", "Is it?", "no"), "text: has fewer than two words"),
    ],
)
def test_a_passage_whose_question_cannot_be_asked_is_refused(row: tuple[str, ...], said: str, tmp_path: Path) -> None:
    problems = Problems()
    list(texts.read(written(tmp_path / "p.csv", [row]), problems, format="passages"))
    (problem,) = problems.found
    assert problem.line == 2 and said in f"{problem.field}: {problem.message}"


def play(study: Study, seed: int) -> None:
    sitting = begin_sitting(study=study, ids=new_open_person(), simulated=True)
    person = instruments.of_study(study).simulated_person(seed=seed)
    while (step := current_step(sitting)).kind != "end":
        data: dict[str, Any] = {}
        if step.screen is not None:
            if nonce := person.opening(screen=step.screen.name):
                record_opening(sitting_key=sitting.pk, step=str(step.number), nonce=nonce)
            parts = {name: str(part["value"]) for name, part in step.screen.parts.items()}
            data = person.answer(screen=step.screen.name, parts=parts)
        advance(sitting=sitting, step=step.number, data=data)
        sitting.refresh_from_db()


@kept
def reading_study() -> Study:
    """Its stage is frozen, and an n-gram model has read its passages."""
    import_passages()
    train_tiny_model()
    study = cast.study(**READING)
    stage = lifecycle.open_stage(plan_stage(study.stages.get()))
    for seed in range(6):
        play(study, seed)
    jobs.run_inline(lifecycle.close_stage(stage))
    return study


def test_a_study_goes_through_its_stage_and_its_report(tmp_path: Path) -> None:
    study = reading_study()
    stage = Stage.objects.select_related("study__bank").get(study=study)
    assert SnapshotAnswer.objects.filter(stage=stage).count() == 18 and not verify_stage(stage).differences
    assert read_models(study) == {"bigram": 0}  # An n-gram model has read them while the study was created.

    words = sum(len(row.times) for row in WordTimes.objects.all())
    files.write_export(study, tmp_path)
    with (tmp_path / "reading_times.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == words and {row["passage"] for row in rows} == {f"t{number}" for number in range(6)}
    assert rows[0]["position"] == "0" and int(rows[0]["time"]) > 0
    with (tmp_path / "answers.csv").open(newline="", encoding="utf-8") as file:
        answers = list(csv.DictReader(file))
    assert sum(int(row["reading_ms"]) for row in answers) == sum(int(row["time"]) for row in rows)
    assert {row["right"] for row in answers} <= {"0", "1"}
    first = Assignment.objects.order_by("slot__number")[0]
    times, answer = (first.responses.get(**{f"{name}__isnull": False}) for name in ("word_times", "passage_answer"))
    assert (
        answers[0]
        | {
            "passage_id": first.slot.item.read_passage.question.external_id,
            "words": str(len(first.slot.item.read_passage.words)),
            "lead_ms": str(times.word_times.lead_ms),
            "means": times.word_times.means,
            "marks": " ".join(times.word_times.marks),
            "passage_question": first.slot.item.read_passage.asks,
            "answered_yes": str(int(answer.passage_answer.yes)),
        }
        == answers[0]
    )
    assert rows[0].keys() == {column.name for column in WORD_COLUMNS}

    findings = reports.make(study, "reading", {})
    assert findings.data["times"] == words and findings.data["models"]["bigram"]["rows"] > 30
    with pytest.raises(HunchError, match="model: "):
        reports.make(study, "reading", {"model": ["lme"]})
    call_command("reading", "reading", model=["gamm"], out=tmp_path / "out")
    assert {"reading_gamm.R", "reading_gamm.csv"} <= {path.name for path in (tmp_path / "out").iterdir()}
    # Its tables are in the export; the mean time of a word is that of the report.
    with (tmp_path / "reading_models.csv").open(newline="", encoding="utf-8") as file:
        (line,) = csv.DictReader(file)
    assert float(line["delta_log_likelihood"]) == pytest.approx(
        findings.data["models"]["bigram"]["delta_log_likelihood"]
    )
    with (tmp_path / "reading_left_out.csv").open(newline="", encoding="utf-8") as file:
        assert sum(int(row["times"]) for row in csv.DictReader(file)) == words - findings.data["counted"]
    live = reports.make(study, "reading_live", {}).data
    marked = sum(bool(row.marks) for row in WordTimes.objects.all())
    hits = PassageAnswer.objects.filter(right=True).count()
    assert [live[name] for name in ("passages", "people", "marked", "questions", "right")] == [18, 6, marked, 18, hits]
    right = next(figure for figure in estimate(study).figures if figure.name == "right")
    share = PassageAnswer.objects.filter(right=True).count() / 18
    assert right.combined is not None and right.combined.value == pytest.approx(share, abs=1e-9)


def test_the_live_report_counts_marks_and_the_pace_of_unmarked_passages(passages: None) -> None:
    study, sitting, step = at_passage()
    with pytest.raises(StateRefused, match="nobody has read a passage of reading yet"):
        reports.make(study, "reading", {})
    with pytest.raises(StateRefused, match="no passage counts yet"):
        reports.make(study, "reading_live", {})
    # The first passage is whole, the second was left for a while, and nothing says that the third was begun.
    for number, marks in enumerate(("", "background focus", "")):
        step = current_step(sitting)
        if number == 1:
            assert record_opening(sitting_key=sitting.pk, step=str(step.number), nonce=NONCE)
            PassageOpening.objects.update(opened_at=timezone.now() - timedelta(seconds=10))
        advance(sitting=sitting, step=step.number, data=given(step, marks=marks))
        sitting.refresh_from_db()
        advance(sitting=sitting, step=sitting.step, data={"answer": "yes"})
        sitting.refresh_from_db()
    live = reports.make(study, "reading_live", {})
    assert live.data["passages"] == 3 and live.data["people"] == 1 and live.data["marked"] == 2
    assert live.data["marks"] == {"background": 1, "focus": 1, "not_opened": 1}
    (row,) = live.tables[0].file_rows()
    only = WordTimes.objects.get(marks=[])
    assert row[:4] == [1, 3, 1, pytest.approx(2 / 3)] and row[5] == pytest.approx(sum(only.times) / len(only.times))
    assert {mark for mark, _says, _passages in live.tables[1].rows} == {"background", "focus", "not_opened"}


def test_models_read_while_the_study_is_created_and_unknown_ones_are_refused(passages: None, tmp_path: Path) -> None:
    table = tmp_path / "frequencies.csv"
    words = sorted({word for text, *_more in PASSAGES for word in text.lower().split()})
    table.write_text("word,count\n" + "".join(f"{word},3\n" for word in words), encoding="utf-8")
    options = {"kind": "self_paced_reading", "options": {"frequencies": "ngram:counted"}}
    of = {"instrument": options, "models": [{"name": "m", "source": "ngram:no"}]}
    with pytest.raises(FileErrors) as refused:
        cast.study(**{**READING, **of})
    assert "there is no n-gram model of words with this name" in str(refused.value)
    assert "no n-gram model is called 'no'" in str(refused.value)
    call_command("train_ngram", str(table), name="counted", counts=True)
    study = cast.study(**{**READING, **of, "models": [{"name": "m", "source": "ngram:counted"}]})
    assert read_models(study) == {"m": 0}


def test_of_a_model_whose_files_have_changed_the_newest_reading_gives_the_surprisals(
    passages: None, tiny_model: None
) -> None:
    study = cast.study(**READING)
    questions = list(study.bank.questions.order_by("position"))
    (before,) = model_words.surprisals(study, questions).values()
    NgramModel.objects.filter(name="tiny").delete()
    more = [Text(str(number), text) for number, (text, *_more) in enumerate([*PASSAGES, PASSAGES[0]])]
    ngrams.train(more, name="tiny", order=2, unit="word", smoothing="kneser_ney")
    assert read_models(study) == {"bigram": 6} and Reading.objects.count() == 12
    (after,) = model_words.surprisals(study, questions).values()
    assert before.keys() == after.keys() == {question.pk for question in questions}
    learnt = ngrams.load("tiny")
    for question in questions:
        newest = -learnt.log_probabilities(question.plain)[:-1]  # Without the end of the text.
        assert after[question.pk] == pytest.approx(newest, abs=1e-5)
        assert not np.allclose(after[question.pk], before[question.pk])


def test_what_is_hashed_of_a_passage_and_when_it_counts(passages: None) -> None:
    study, sitting, step = at_passage()
    instrument = instruments.of_study(study)
    advance(sitting=sitting, step=step.number, data=given(step, marks="focus"))
    assert step.assignment is not None
    half = Assignment.objects.get(pk=step.assignment.pk)
    assert instrument.answer_values(half) == [] and not instrument.counts_unfinished(half)
    sitting.refresh_from_db()
    advance(sitting=sitting, step=sitting.step, data={"answer": "no"})
    read_times = WordTimes.objects.get()
    whole = Assignment.objects.get(pk=step.assignment.pk)
    assert instrument.answer_values(whole) == [read_times.times, 200, "key", ["focus"], False]
    passage = whole.slot.item.read_passage
    assert PassageAnswer.objects.get().right is (not passage.is_yes)


def test_printed_screens_show_the_text_that_a_script_uncovers(passages: None, tmp_path: Path) -> None:
    cast.study(**{**READING, "models": [], "instrument": {"kind": "self_paced_reading"}, "sitting": {"items": 1}})
    call_command("screens", "reading", out=tmp_path)
    (told,) = (tmp_path / "en").glob("*end-no-script.html")
    assert "This study needs JavaScript" in told.read_text()
    pages = [path for path in (tmp_path / "en").glob("*item-passage*.html") if "unanswered" not in path.name]
    page = next(path for path in pages if "question" not in path.name).read_text()
    window = page[page.index("data-window") :]
    assert " hidden" not in window[: window.index("</div>")] and "<span>" in window
    assert "data-start" in page and 'id="id_times" hidden' not in page


def test_what_the_careless_and_the_blind_see(passages: None) -> None:
    signals = instruments.kind("self_paced_reading")().signals
    _study, sitting, step = at_passage()
    advance(sitting=sitting, step=step.number, data=given(step))
    sitting.refresh_from_db()
    with pytest.raises(FieldErrors, match=r"yes or no"):
        advance(sitting=sitting, step=sitting.step, data={"answer": "perhaps"})
    advance(sitting=sitting, step=sitting.step, data={"answer": "no"})
    assert list(signals.stated_values([sitting.pk])) == [(sitting.pk, "answer", "no")]
    assert not list(signals.stated_values([]))
    (item,) = [step.assignment.slot.item_id] if step.assignment else [0]
    assert signals.word_counts([item]) == {item: words_of(step)}
    response = Response.objects.get(screen="passage")
    assert instruments.of_study(_study).answer_in_words(response).startswith(f"{words_of(step)} words in 9.")


def test_a_passage_that_no_model_has_read_has_the_same_surprisals_each_time() -> None:
    surprisal = made_up_surprisal("The cat sat.", 600)
    assert (surprisal == made_up_surprisal("The cat sat.", 600)).all()
    assert (surprisal != made_up_surprisal("The cat sat!", 600)).any()
    assert (surprisal.min(), surprisal.shape) == (0.5, (600,)) and 3 < surprisal.mean() < 5 and surprisal.max() <= 12


@pytest.mark.parametrize(("yes", "word"), [(True, "yes"), (False, "no")])
def test_an_answer_to_a_question_is_told_as_it_was_given(yes: bool, word: str) -> None:
    response: Any = SimpleNamespace(passage_answer=SimpleNamespace(yes=yes))
    assert instruments.kind("self_paced_reading")().answer_in_words(response) == word
