"""An instrument to come, as small as it can be, goes through whole stages: places in sentences.

It is a package of its own in tests/packages, found by entry point.
"""

import csv
from pathlib import Path
from typing import Any

import pytest
from cloze_skeleton.labels import match_of, normalised
from cloze_skeleton.models import Gap, Word
from django.core.management import call_command
from django.test import Client

from survey.contracts import instruments
from survey.contracts.reports import Given
from survey.exceptions import FieldErrors, FileErrors
from survey.models import SnapshotAnswer, Stage, Study
from survey.services.plans.planning import plan_stage
from survey.services.results.estimating import estimate
from survey.services.results.export import files
from survey.services.sittings.answering import advance
from survey.services.sittings.enrolment import begin_sitting, new_open_person
from survey.services.sittings.flow import Step, current_step
from survey.services.stages import jobs, lifecycle
from survey.services.stages.verifying import verify_stage
from tests import cast
from tests.frontend.pages import arrive, read

pytestmark = pytest.mark.django_db

SENTENCES = [
    "The old man sat down by the river.",
    "Nobody knew why the lights went out.",
    "She opened the letter with trembling hands.",
    "Rain fell all night long on the roof.",
    "He never told his sister the truth.",
    "A small dog barked at the postman.",
]
PRACTICE = {"kind": "practice", "text": "Try it.", "examples": [{"fragment": "Birds can"}, {"fragment": "It was a"}]}
CLOZE: dict[str, Any] = {
    "slug": "cloze",
    "bank": "sentences",
    "instrument": {"kind": "cloze", "options": {"least": 1}},
    "candidates": {"size": 20},
    "sitting": {"items": 3},
    "stages": [{"sittings": 6}, {"sittings": 6}],
    "blocks": [
        {"kind": "consent", "text": "Do you agree?", "version": "1"},
        PRACTICE,
        {"kind": "items"},
        {"kind": "end", "text": "Thanks."},
    ],
}
WITHOUT_PRACTICE = [block for block in CLOZE["blocks"] if block["kind"] != "practice"]


@pytest.fixture
def sentences(tmp_path: Path) -> None:
    rows = [f's{number},source_{number % 2},"{text}",' for number, text in enumerate(SENTENCES)]
    rows[5] = rows[5] + '"3,4"'
    path = tmp_path / "sentences.csv"
    path.write_text("\n".join(["id,source,text,positions", *rows]) + "\n")
    call_command("import_questions", str(path), bank="sentences", format="sentences")


def opened(study: Study, index: int = 1) -> Stage:
    stage = Stage.objects.select_related("study__bank").get(study=study, index=index)
    return lifecycle.open_stage(plan_stage(stage) if stage.state == Stage.State.DRAFT else stage)


def texts_of(step: Step) -> dict[str, str]:
    return {name: str(part["value"]) for name, part in step.screen.parts.items()} if step.screen else {}


def play(study: Study) -> None:
    sitting = begin_sitting(study=study, ids=new_open_person())
    person = instruments.of_study(study).simulated_person(seed=sitting.pk)
    while (step := current_step(sitting)).kind != "end":
        data = person.answer(screen=step.screen.name, parts=texts_of(step)) if step.screen else {}
        advance(sitting=sitting, step=step.number, data=data)
        sitting.refresh_from_db()


def exported(study: Study, folder: Path, name: str) -> list[dict[str, str]]:
    files.write_export(study, folder)
    with (folder / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# Cloze


def test_the_universe_follows_from_the_sentences_and_not_from_their_number(sentences: None) -> None:
    study = cast.study(**CLOZE)
    instrument = instruments.of_study(study)
    questions = instrument.usable(list(study.bank.questions.order_by("position")))
    # Of 8, 7, 7, 8 and 7 words all but the first and the last; two of the last sentence's are listed.
    assert instrument.universe_size(questions) == 6 + 5 + 5 + 6 + 5 + 2


def test_a_cloze_study_goes_through_its_stages(sentences: None, tmp_path: Path) -> None:
    study = cast.study(**CLOZE)
    for index in (1, 2):
        stage = opened(study, index)
        for _person in range(6):
            play(study)
        jobs.run_inline(lifecycle.close_stage(stage))
        assert SnapshotAnswer.objects.filter(stage=stage).count() == 18
        assert not verify_stage(Stage.objects.select_related("study__bank").get(pk=stage.pk)).differences
    for booklet in Stage.objects.get(study=study, index=1).booklets.all():
        asked = [slot.item.gap.question_id for slot in booklet.slots.all()]
        assert len(set(asked)) == len(asked) == 3
    rows = exported(study, tmp_path, "answers.csv")
    assert len(rows) == 36 and {row["rule"] for row in rows} == {"1"}
    assert {row["gap"] for row in rows if row["sentence_id"] == "s5"} <= {"3", "4"}
    norms = exported(study, tmp_path / "again", "cloze.csv")
    assert sum(int(row["n"]) for row in norms) == 36 and len(norms) == Gap.objects.count()
    found = estimate(study, by=["source"]).as_json()
    assert "places in the bank's 6 sentences" in str(found) and "source_1" in str(found)


def test_several_words_are_asked_for_once_more_and_then_the_first_is_taken(sentences: None) -> None:
    study = cast.study(**CLOZE)
    opened(study)
    sitting = begin_sitting(study=study, ids=new_open_person())
    seen = []
    for word in ("fly", "", "dark night", "dark night", "", "two words", "two words", "one"):
        step = current_step(sitting)
        seen.append((step.kind, step.position, step.screen and step.screen.name))
        advance(sitting=sitting, step=step.number, data={"word": word})
        sitting.refresh_from_db()
    assert seen == [
        ("practice", 1, "word"),
        ("practice", 1, None),
        ("practice", 2, "word"),
        ("practice", 2, "word_again"),
        ("practice", 2, None),
        ("item", 1, "word"),
        ("item", 1, "word_again"),
        ("item", 2, "word"),
    ]
    first, second, third = Word.objects.order_by("pk")
    assert (first.several, second.several, second.text, second.normalised) == (True, True, "two words", "two")
    assert (third.several, third.text) == (False, "one")
    assert list(sitting.assignments.values_list("state", flat=True)) == ["counted", "counted", "live"]


@pytest.mark.parametrize("word", ["", " ", "x" * 41])
def test_a_word_that_is_none_is_refused(word: str, sentences: None) -> None:
    study = cast.study(**{**CLOZE, "blocks": WITHOUT_PRACTICE})
    opened(study)
    sitting = begin_sitting(study=study, ids=new_open_person())
    with pytest.raises(FieldErrors):
        advance(sitting=sitting, step=current_step(sitting).number, data={"word": word})
    assert not Word.objects.exists()


@pytest.mark.parametrize(
    ("typed", "target", "exact", "lenient"),
    [
        ("River", "river.", True, True),
        ("“river”", "river", True, True),
        ("dont’t", "dont't", True, True),
        ("rivre", "river", False, True),
        ("rver", "river", False, True),
        ("rivers", "river", False, True),
        ("liver", "river", False, False),  # a word of the bank
        ("teh", "the", False, False),  # too short for slips
        ("rievr", "river", False, True),
        ("revir", "river", False, False),
    ],
)
def test_words_are_compared_by_normalisation_1(typed: str, target: str, exact: bool, lenient: bool) -> None:
    match = match_of(typed, target, known={"liver"})
    assert (match.exact, match.lenient) == (exact, lenient)
    assert normalised(normalised(typed)) == normalised(typed)


def test_the_page_of_a_cloze_item_has_its_own_parts_and_script(sentences: None, client: Client) -> None:
    study = cast.study(**{**CLOZE, "blocks": WITHOUT_PRACTICE})
    opened(study)
    page = arrive(client, slug="cloze")
    html = client.get("/s/cloze/sitting").content.decode()
    assert '<script src="/static/cloze_skeleton/one_word.js" defer></script>' in html
    # It was written for a document of its own, so the next page is loaded as one.
    assert page.form["data-exchange"] == "document"
    assert page.parts["fragment"] == Gap.objects.get(item=begun_item(study)).fragment
    page = read(client.post("/s/cloze/sitting", {**page.hidden, "word": "a b"}, follow=True).content.decode())
    assert "Please write one word only." in page.text


def begun_item(study: Study) -> Any:
    return study.stages.get(index=1).sittings.get().assignments.get(position=1).slot.item_id


def test_the_cloze_report_gives_norms(sentences: None) -> None:
    study = cast.study(**CLOZE)
    (entry,) = instruments.of_study(study).reports()
    report = entry.load()
    assert "has 1 answers yet" in report.obstacle(study)
    opened(study)
    for _person in range(6):
        play(study)
    (table,) = report.make(study, Given(question=())).tables
    assert sum(row[3] for row in table.rows) == 18
    row = table.rows[0]
    n, k, distinct = row[3], row[5], len(row[9].split("; "))
    assert row[6] == pytest.approx((k + 1) / (n + distinct + 1), abs=1e-6)


def test_a_practice_example_without_its_fragment_is_refused(sentences: None) -> None:
    bad = {**PRACTICE, "examples": [{"fragment": "Birds can"}, {"word": "fly"}]}
    with pytest.raises(FileErrors) as refused:
        cast.study(**{**CLOZE, "blocks": [CLOZE["blocks"][0], bad, *CLOZE["blocks"][2:]]})
    assert "blocks.2.examples.2.fragment: is missing" in str(refused.value)
