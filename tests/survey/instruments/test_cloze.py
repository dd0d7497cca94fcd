"""Cloze studies: sentences, screens, norms, models that read, priorities, the report, whole stages."""

import csv
import json
import math
import re
from collections import Counter
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client

from predictors.readings import Text
from predictors.word_forms import stripped
from survey.contracts import instruments
from survey.exceptions import FieldErrors, FileErrors, StateRefused
from survey.instruments.cloze import chances as chances_of_cloze
from survey.instruments.cloze import labels, model_words, rescoring
from survey.instruments.cloze.analysis.normalising import Match, is_one_slip, letters, match_of, normalised
from survey.instruments.cloze.chances import chance_of_positions
from survey.instruments.cloze.model_words import read_models, unknown_words, words_of_models
from survey.instruments.cloze.models import AskedWord, SentenceReading, WordScore, WrittenWord
from survey.instruments.cloze.norms import norms_of
from survey.models import Assignment, AuditEntry, Slot, SnapshotAnswer, Stage, Study
from survey.services.answers.counting import study_answers
from survey.services.banks import ngrams
from survey.services.banks.readings import text_hash
from survey.services.base import jobs as asked_jobs
from survey.services.base.job_kinds import find_kind
from survey.services.plans.planning import plan_stage
from survey.services.results import reports
from survey.services.results.estimates.study_estimates import estimate
from survey.services.results.export import files
from survey.services.sittings.answering import advance
from survey.services.sittings.enrolment import begin_sitting, new_open_person
from survey.services.sittings.flow import Step, current_step
from survey.services.stages import jobs, lifecycle
from survey.services.stages.verifying import verify_stage
from tests import cast
from tests.frontend.pages import arrive, read
from tests.golden.psych_ds import errors_of
from tests.golden.test_chunks import in_any_chunks
from tests.golden.test_package import built
from tests.kept import kept
from tests.predictors.fake_endpoint import running
from tests.predictors.test_reading_texts import listing

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

SENTENCES = [
    "The old man sat down by the river.",
    "Nobody knew why the lights went out.",
    "She opened the letter with trembling hands.",
    "Rain fell all night long on the roof.",
    "He never told his sister the truth.",
    "A small dog barked at the postman.",
]
BLOCKS = [
    {"kind": "consent", "text": "Do you agree?", "version": "1"},
    {"kind": "items"},
    {"kind": "end", "text": "Thanks."},
]
PRACTICE = {"kind": "practice", "text": "Try it.", "examples": [{"fragment": "Birds can"}, {"fragment": "It was a"}]}
CLOZE: dict[str, Any] = {
    "slug": "cloze",
    "bank": "sentences",
    "instrument": {"kind": "cloze", "options": {"least": 1, "responses_per_item": 2}},
    "candidates": {"size": 40},
    "sitting": {"items": 3},
    "roles": {"holdout": 0, "controls": 0},
    "stages": [{"sittings": 8, "responses_per_item": 2}, {"sittings": 8, "responses_per_item": 2}],
    "blocks": BLOCKS,
}
ADAPTIVE: dict[str, Any] = {
    **CLOZE,
    "instrument": {"kind": "cloze", "options": {"least": 1, "responses_per_item": 2, "priority": "uncertainty"}},
    "models": [{"name": "bigram", "source": "ngram:tiny"}, {"name": "absent", "source": "ngram:nowhere"}],
    "stages": [
        {"sittings": 8, "responses_per_item": 2},
        {
            "sittings": 8,
            "responses_per_item": 2,
            "design": {"kind": "epsilon_greedy", "epsilon": 0.5, "top_fraction": 0.4},
        },
    ],
}


@pytest.fixture
def sentences() -> None:
    import_sentences()


@kept
def import_sentences() -> None:
    rows = [f's{number},source_{number % 2},"{text}",' for number, text in enumerate(SENTENCES)]
    rows[5] = rows[5] + '"3,4"'
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sentences.csv"
        path.write_text("\n".join(["id,source,text,positions", *rows]) + "\n")
        call_command("import_questions", str(path), bank="sentences", format="sentences")


@pytest.fixture
def tiny_model() -> None:
    train_tiny_model()


def train_tiny_model() -> None:
    ngrams.train([Text("a", " ".join(SENTENCES[:4]))], name="tiny", order=2, unit="word", smoothing="kneser_ney")


def opened(study: Study, index: int = 1) -> Stage:
    stage = Stage.objects.select_related("study__bank").get(study=study, index=index)
    return lifecycle.open_stage(plan_stage(stage) if stage.state == Stage.State.DRAFT else stage)


def texts_of(step: Step) -> dict[str, str]:
    return {name: str(part["value"]) for name, part in step.screen.parts.items()} if step.screen else {}


def play(study: Study) -> None:
    sitting = begin_sitting(study=study, ids=new_open_person())
    person = cast.simulated_person(sitting)
    while (step := current_step(sitting)).kind != "end":
        data = person.answer(screen=step.screen.name, parts=texts_of(step)) if step.screen else {}
        advance(sitting=sitting, step=step.number, data=data)
        sitting.refresh_from_db()


def run_stage(study: Study, index: int) -> Stage:
    stage = opened(study, index)
    for _person in range(stage.config.sittings):
        play(study)
    jobs.run_inline(lifecycle.close_stage(stage))
    return Stage.objects.select_related("study__bank").get(pk=stage.pk)


def exported(study: Study, folder: Path, name: str) -> list[dict[str, str]]:
    files.write_export(study, folder)
    with (folder / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def begun_item(study: Study) -> AskedWord:
    sitting = study.stages.get(index=1).sittings.get()
    return AskedWord.objects.select_related("question").get(item=sitting.assignments.get(position=1).slot.item_id)


def test_the_universe_follows_from_the_sentences_and_not_from_their_number(sentences: None) -> None:
    study = cast.study(**CLOZE)
    instrument = instruments.of_study(study)
    questions = instrument.usable(list(study.bank.questions.order_by("position")))
    # Of 8, 7, 7, 8 and 7 words all but the first and the last; two of the last sentence's are listed.
    assert instrument.universe_size(questions) == 6 + 5 + 5 + 6 + 5 + 2


@kept
def adaptive_study() -> Study:
    """Both stages are frozen, and the second was drawn by the words of the first. A model has read the sentences."""
    import_sentences()
    train_tiny_model()
    study = cast.study(**ADAPTIVE)
    for index in (1, 2):
        run_stage(study, index)
    read_models_of_first(study)
    return study


def test_an_adaptive_cloze_study_goes_through_its_stages(tmp_path: Path) -> None:
    study = adaptive_study()
    for stage in Stage.objects.select_related("study__bank").filter(study=study).order_by("index"):
        assert SnapshotAnswer.objects.filter(stage=stage).count() == 24
        assert not verify_stage(stage).differences
    for booklet in stage.booklets.all():
        asked = [slot.item.asked_word.question_id for slot in booklet.slots.all()]
        assert len(set(asked)) == len(asked) == 3
    assert stage.candidate_set.file_sha256 and stage.manifest["priority"] == {"name": "uncertainty", "version": "1"}
    # Pooled by count, with a weight from the chance to be drawn at least once.
    norms = exported(study, tmp_path, "cloze.csv")
    counts = [int(row["n"]) for row in norms]
    assert sum(counts) == 48 and set(counts) == {2, 4} and len(norms) == AskedWord.objects.count()
    chances = chance_of_positions(study)
    assert len(chances) == len(norms) and all(12 / 29 < chance <= 1 for chance in chances.values())
    live = reports.make(study, "cloze_live")
    assert live.data == {"words": 48, "people": 16, "positions": len(norms), "enough": len(norms), "full": len(norms)}
    by_stage, at_positions = (table.rows for table in live.tables)
    assert [row[:3] for row in by_stage] == [(1, 24, 8), (2, 24, 8)]
    assert sum(row[1] * row[5] for row in by_stage) == pytest.approx(sum(int(row["k_lenient"]) for row in norms))
    assert [tuple(row) for row in at_positions] == sorted(Counter(counts).items())
    assert len(in_any_chunks(study)) == 48
    rows = exported(study, tmp_path / "answers", "answers.csv")
    assert {row["rule"] for row in rows} == {"1"}
    assert {row["words_shown"] for row in rows if row["sentence_id"] == "s5"} <= {"3", "4"}
    estimates = estimate(study, by=["source", "position"]).as_json()
    assert "positions in the bank's 6 sentences" in str(estimates) and "source_1" in str(estimates)
    # The report, with the model that read, and the one that did not.
    report = reports.make(study, "cloze")
    assert any("absent: left out" in note for note in report.notes)
    assert set(report.data["models"]) == {"bigram"}
    (norm_table,) = (table for table in report.tables if table.name == "cloze")
    assert sum(row[3] for row in norm_table.rows) == 48
    expected = instruments.of_study(study).expectations.of(
        answers := study_answers(study), np.ones(len(answers)), event="word"
    )
    assert [reader.name for reader in expected.readers] == ["bigram"] and len(expected.items) == len(norms)
    (reader,) = expected.readers
    assert reader.given is not None and ((reader.given > 0) & (reader.given <= 1)).all()
    read_by = ngrams.load("tiny")
    for answer, word, given_chance in zip(answers, expected.said, reader.given, strict=True):
        asked = answer.slot.item.asked_word
        own = word == normalised(asked.target)
        typed = asked.target if own else stripped(labels.first_word(labels.written_word_of(answer).text))
        of_units = read_by.log_probabilities(f"{asked.fragment} {typed}")
        assert np.log(given_chance) == pytest.approx(of_units[asked.position], abs=1e-6)
    assert not any("has a chance by it" in note for note in expected.notes)
    package = built(study, tmp_path / "package", audience="public")
    assert errors_of(package) == set()
    told = "".join(path.read_text() for path in (package / "data").glob("*answers_data.csv"))
    assert "words_shown" in told and "typed" not in told
    assert ((expected.others > 0) & (expected.others < 1)).all()


def test_what_people_wrote_is_sent_to_no_server(sentences: None, monkeypatch: pytest.MonkeyPatch) -> None:
    models = [{"name": "far", "source": "endpoint:m"}]
    study = cast.study(**{**CLOZE, "models": models})
    opened(study)
    play(study)
    WrittenWord.objects.update(text="zyzzyva")
    WordScore.objects.update(normalised="zyzzyva", exact=False, lenient=False)
    with running() as fake:
        monkeypatch.setenv("HUNCH_LLM_URL", fake.url)
        fake.answer = listing
        assert read_models(study, everything=True) == {"far": 6}
        assert sorted(request.body["prompt"] for request in fake.seen) == sorted(SENTENCES)
    answers = study_answers(study)
    expectations = instruments.of_study(study).expectations.of(answers, np.ones(len(answers)), event="word")
    assert expectations.readers[0].given is None
    assert any("far: not every word that people wrote has a chance by it" in note for note in expectations.notes)


def read_models_of_first(study: Study) -> None:
    """The second model of the study does not exist, and says so after the first one has read."""
    with pytest.raises(Exception, match="no n-gram model is called 'nowhere'"):
        read_models(study, everything=True)


@pytest.mark.thorough
def test_chances_add_up_to_the_positions_that_are_drawn(sentences: None, tiny_model: None) -> None:
    """Over repeated plans, the mean of 1 / chance over drawn positions is the number of all positions."""
    sums = []
    for seed in range(12):
        study = cast.study(**{**CLOZE, "slug": f"cloze-{seed}", "seed": seed})
        for index in (1, 2):
            plan_stage(Stage.objects.select_related("study__bank").get(study=study, index=index))
        sums.append(sum(1 / chance for chance in chance_of_positions(study).values()))
    # 1 - (1 - 12 / 29)^2 of 29 positions; both stages draw 12.
    assert np.mean(sums) == pytest.approx(29, rel=0.1)


def test_a_pool_that_is_part_of_all_positions_is_part_of_their_chance(sentences: None) -> None:
    """12 of 15 candidates are drawn, which are 15 of 29 positions."""
    study = cast.study(**{**CLOZE, "candidates": {"size": 15}, "stages": CLOZE["stages"][:1]})
    plan_stage(Stage.objects.select_related("study__bank").get(study=study, index=1))
    slots = Slot.objects.filter(stage__study=study)
    assert [slot.pool_probability for slot in slots] == pytest.approx([15 / 29] * 24)
    assert [*chance_of_positions(study).values()] == pytest.approx([12 / 29] * 12)


def test_what_a_stage_did_not_draw_has_the_chance_that_its_place_in_the_pool_gave_it(
    sentences: None, tiny_model: None
) -> None:
    """A pool of 15 of 29 positions, of which the second stage draws 12, half of them by the priority."""
    study = cast.study(**{**ADAPTIVE, "candidates": {"size": 15}})
    run_stage(study, 1)
    stage = plan_stage(Stage.objects.select_related("study__bank").get(study=study, index=2))
    chances = chances_of_cloze._not_drawn(stage)
    assert chances[""] == pytest.approx(12 / 29)
    pool = {key: chance for key, chance in chances.items() if key}
    assert len(pool) == 15 and sum(pool.values()) == pytest.approx(12 * 15 / 29)
    drawn = stage.slots.filter(role="sampled").values_list("item__key", "inclusion_probability")
    assert {key for key, _inside in drawn} <= set(pool)
    only_first = set(study.items.values_list("key", flat=True)) - set(pool)
    by_item = dict(study.items.values_list("pk", "key"))
    chances_by_key = {by_item[item]: chance for item, chance in chance_of_positions(study).items()}
    assert only_first and all(chances_by_key[key] == pytest.approx(1 - (17 / 29) ** 2) for key in only_first)


def test_a_test_stage_adds_no_chance_and_controls_add_none(sentences: None) -> None:
    study = cast.study(**{**CLOZE, "stages": CLOZE["stages"][:1], "roles": {"controls": 0.34, "holdout": 0}})
    stage = plan_stage(Stage.objects.select_related("study__bank").get(study=study, index=1))
    roles = dict(stage.slots.values_list("item", "role"))
    chances = chance_of_positions(study)
    sampled = {item for item, role in roles.items() if role == "sampled"}
    own = dict(stage.slots.filter(role="sampled").values_list("item", "inclusion_probability"))
    assert {item: chances[item] for item in sampled} == pytest.approx(own) and len(sampled) < len(stage.slots.all())


def test_what_a_study_of_sentences_knows_beside_its_answers(sentences: None) -> None:
    study = cast.study(**CLOZE)
    instrument = instruments.of_study(study)
    assert instrument.universe_fingerprint() == {"skip_first": True, "skip_last": True} and not instrument.remarks()
    question = study.bank.questions.get(external_id="s0")
    assert instrument.positions_of(question) == [1, 2, 3, 4, 5, 6]
    for options, places in (({"skip_first": False}, range(7)), ({"skip_last": False}, range(1, 8))):
        whole = {"least": 1, "responses_per_item": 2, **options}
        other = cast.study(
            **{**CLOZE, "slug": "c" + "-".join(options)[5:], "instrument": {"kind": "cloze", "options": whole}}
        )
        assert instruments.of_study(other).positions_of(question) == [*places]
    few = {**CLOZE, "slug": "few", "stages": [{"sittings": 8}, {"sittings": 8, "responses_per_item": 2}]}
    (note,) = instruments.of_study(cast.study(**few)).remarks()
    assert "aim at 2 answers at each position, and a stage asks for 1" in str(note)
    opened(study)
    sitting = begin_sitting(study=study, ids=new_open_person())
    step = current_step(sitting)
    assert step.assignment is not None and not instrument.counts_unfinished(step.assignment)
    assert instrument.answer_values(step.assignment) == []
    advance(sitting=sitting, step=step.number, data={"word": "Hat rack"})
    again = Assignment.objects.get(pk=step.assignment.pk)
    assert instrument.counts_unfinished(again) and instrument.answer_values(again) == ["Hat rack", True]
    assert list(instrument.signals.stated_values([sitting.pk])) == [(sitting.pk, "word", "hat rack")]
    assert not list(instrument.signals.stated_values([]))
    asked = AskedWord.objects.get(item=again.slot.item_id)
    assert instrument.signals.word_counts([asked.pk]) == {asked.pk: asked.position}


def test_several_words_are_asked_for_once_more_and_then_the_first_is_taken(sentences: None) -> None:
    study = cast.study(**{**CLOZE, "blocks": [BLOCKS[0], PRACTICE, *BLOCKS[1:]]})
    opened(study)
    sitting = begin_sitting(study=study, ids=new_open_person())
    seen = []
    for word in ("fly", "dark night", "dark night", "", "two words", "two words", "one"):
        step = current_step(sitting)
        seen.append((step.kind, step.position, step.screen and step.screen.name))
        advance(sitting=sitting, step=step.number, data={"word": word})
        sitting.refresh_from_db()
    assert seen == [
        ("practice", 1, "word"),
        ("practice", 2, "word"),
        ("practice", 2, "word_again"),
        ("practice", 2, None),
        ("item", 1, "word"),
        ("item", 1, "word_again"),
        ("item", 2, "word"),
    ]
    first, second, third = WrittenWord.objects.order_by("pk")
    assert (first.several, second.several, second.text) == (True, True, "two words")
    assert second.scores.get().normalised == "two"
    assert (third.several, third.text) == (False, "one")
    assert list(sitting.assignments.values_list("state", flat=True)) == ["counted", "counted", "live"]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("", "Write the word that you expect."),
        (" ", "Write the word that you expect."),
        ("x" * 41, "This is too long for one word."),
        ("wo\x00rd", "This text holds a character that cannot be stored."),
    ],
)
def test_a_word_that_is_none_is_refused(word: str, said: str, sentences: None) -> None:
    study = cast.study(**CLOZE)
    opened(study)
    sitting = begin_sitting(study=study, ids=new_open_person())
    with pytest.raises(FieldErrors) as refused:
        advance(sitting=sitting, step=current_step(sitting).number, data={"word": word})
    assert said in str(refused.value)
    assert not WrittenWord.objects.exists()


def test_a_text_that_people_wrote_in_two_places_has_a_chance_in_each(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.array([(0.0,), (math.log(4),), (-1e-9,)], dtype=[("surprisal", np.float64)])
    rows = [SimpleNamespace(text_sha256=model_words.text_hash("one two three"), word_array=values)]
    monkeypatch.setattr(model_words, "_rows", lambda model, hashes: rows)
    places = {(1, "two"): 1, (2, "three"): 2, (3, "beyond"): 3}
    texts: Any = {key: SimpleNamespace(text="one two three", position=place) for key, place in places.items()}
    model: Any = None
    assert model_words.chances_of_written(model, texts) == {(1, "two"): pytest.approx(0.25), (2, "three"): 1.0}


def test_a_slip_is_one_of_the_edits_written_out() -> None:
    words = ["".join(letters_) for length in range(1, 5) for letters_ in product("abc", repeat=length)]
    for word in words[:39]:
        places = range(len(word) + 1)
        slips = {word[:n] + letter + word[n:] for n in places for letter in "abc"}
        slips |= {word[:n] + letter + word[n + 1 :] for n in places[:-1] for letter in ("", *"abc")}
        slips |= {word[:n] + word[n : n + 2][::-1] + word[n + 2 :] for n in places[:-1]}
        assert {other for other in words if other != word and is_one_slip(word, other)} == slips - {word, ""}, word


@pytest.mark.parametrize(
    ("typed", "target", "exact", "lenient"),
    [
        ("River", "river.", True, True),
        ("“river”", "river", True, True),
        ("dont’t", "dont't", True, True),
        ("STRASSE", "straße", True, True),
        ("cafe\u0301", "café", True, True),
        ("שלום.", "שלום", True, True),
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


def test_a_slip_that_is_a_word_of_the_bank_is_another_word(sentences: None) -> None:
    study = cast.study(**CLOZE)
    opened(study)
    for text, lenient in (("Lihgts", True), ("nights", True), ("night", False)):
        question = study.bank.questions.get(external_id="s1")
        from survey.instruments.cloze.labels import judged

        assert judged(text, question, "lights", 1)[1].lenient is lenient


def test_the_database_refuses_words_that_cannot_be(sentences: None) -> None:
    study = cast.study(**CLOZE)
    opened(study)
    sitting = begin_sitting(study=study, ids=new_open_person())
    advance(sitting=sitting, step=current_step(sitting).number, data={"word": "hat"})
    word, score = WrittenWord.objects.get(), WordScore.objects.get()
    for change in (
        lambda: WrittenWord.objects.filter(pk=word.pk).update(text=""),
        lambda: WordScore.objects.filter(pk=score.pk).update(exact=True, lenient=False),
        lambda: WordScore.objects.create(word=word, rule=score.rule, normalised="x", exact=False, lenient=False),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            change()


@pytest.fixture
def unheard_words(tmp_path: Path) -> None:
    """A bank whose words stand on no page but by a fragment."""
    path = tmp_path / "unheard.csv"
    rows = [f"u{row},made,{' '.join(f'vorp{row}x{place}' for place in range(7))}" for row in range(8)]
    path.write_text("\n".join(["id,source,text", *rows]) + "\n")
    call_command("import_questions", str(path), bank="unheard", format="sentences")


def test_no_answer_of_the_site_has_what_follows_the_fragment(unheard_words: None, client: Client) -> None:
    study = cast.study(**{**CLOZE, "bank": "unheard"})
    opened(study)
    page = arrive(client, slug="cloze")
    sent = client.get("/s/cloze/sitting")
    for number, word in enumerate(("a b", "c", "d", "e"), start=1):
        html = sent.content.decode()
        said = f"{html} {dict(sent.headers)} {sent.request}"
        shown_words = page.parts["fragment"].split()
        row = shown_words[0].split("x")[0]
        assert [f"{row}x{place}" for place in range(len(shown_words))] == shown_words
        following = re.compile(rf"\b{row}x({len(shown_words)}|{len(shown_words) + 1})\b")
        assert following.search(said) is None
        for attribute in ('autocomplete="off"', 'autocapitalize="off"', 'spellcheck="false"', 'maxlength="40"'):
            assert attribute in html
        assert ("Please write one word only." in page.text) == (number == 2)
        asked = begun_item(study)
        assert asked.item.key not in said and f">{asked.question.external_id}<" not in html
        step = current_step(study.stages.get(index=1).sittings.get())
        assert step.screen is not None
        assert following.search(json.dumps(step.screen.content(), default=str)) is None
        sent = client.post("/s/cloze/sitting", {**page.hidden, "word": word}, headers={"X-Hunch-Exchange": "1"})
        if "vorp" not in sent.content.decode():
            break
        page = read(sent.content.decode())
    assert number == 4


def test_a_first_word_is_asked_for_without_a_fragment(sentences: None, client: Client) -> None:
    options = {"least": 1, "skip_first": False}
    study = cast.study(**{**CLOZE, "instrument": {"kind": "cloze", "options": options}})
    from survey.instruments.cloze.screens import screen_of

    assert screen_of("", again=False).words == {"begin": "The sentence begins with"}
    questions = list(study.bank.questions.order_by("position"))
    assert 0 in instruments.of_study(study).positions_of(questions[0])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"instrument": {"kind": "cloze", "options": {"priority": "gap"}}}, '"gap" is the distance to a model'),
        (
            {**ADAPTIVE, "instrument": {"kind": "cloze", "options": {"priority": "gap", "priority_model": "owl"}}},
            "owl is no name of [[models]] (bigram, absent)",
        ),
        (
            {"instrument": {"kind": "cloze", "options": {"priority": "uncertainty"}}},
            "no stage draws by it: give a later stage a design such as epsilon_greedy",
        ),
        ({"models": [{"name": "a", "source": "ngram:x"}, {"name": "a", "source": "ngram:y"}]}, "models.2.name: a is"),
        ({"models": [{"name": "a", "source": "cloud:x"}]}, "models.1.source"),
        ({"blocks": [BLOCKS[0], {**PRACTICE, "examples": [{"word": "fly"}]}, *BLOCKS[1:]]}, "fragment: is missing"),
    ],
)
def test_study_files_that_cannot_be_are_refused(changes: dict[str, Any], said: str, sentences: None) -> None:
    with pytest.raises(FileErrors) as refused:
        cast.study(**{**CLOZE, **changes})
    assert said in str(refused.value)


def test_a_bank_without_a_word_to_ask_for_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "short.csv"
    path.write_text("id,source,text\na,b,Two words\nc,b,And these\n")
    call_command("import_questions", str(path), bank="sentences", format="sentences")
    with pytest.raises(FileErrors, match="no sentence has a word that can be asked for"):
        cast.study(**CLOZE)


def test_a_gap_needs_a_model_that_has_read(sentences: None) -> None:
    options = {"least": 1, "priority": "gap", "priority_model": "absent"}
    models = [{"name": "absent", "source": "local:nowhere"}]
    study = cast.study(**{**ADAPTIVE, "models": models, "instrument": {"kind": "cloze", "options": options}})
    instrument = instruments.of_study(study)
    questions = instrument.usable(list(study.bank.questions.order_by("position")))
    with pytest.raises(StateRefused, match="absent has not read the sentences"):
        instrument.priority.of(
            rows=instrument.universe(questions),
            questions=questions,
            chances=None,
            answers=[],
            rng=np.random.default_rng(0),
        )


def test_a_worker_lets_the_models_read_for_who_may_run_the_study(sentences: None, tiny_model: None) -> None:
    study = cast.study(**{**ADAPTIVE, "models": ADAPTIVE["models"][:1]})
    job, _is_new = asked_jobs.ask(study, "prepare", {})
    assert asked_jobs.run(job.pk) and SentenceReading.objects.count() == 6
    job.refresh_from_db()
    assert job.result == {"texts": "sentences", "read": {"bigram": 6}}
    entry = AuditEntry.objects.get(action="prepare_texts")
    assert (entry.study, entry.via, entry.detail) == (study.slug, "worker", job.result)
    assert not find_kind("prepare").suits(cast.study(**{**CLOZE, "slug": "other"}))


def test_a_model_behind_a_server_or_at_a_path_is_read_for_who_may_ask_models_alone(
    sentences: None, tiny_model: None
) -> None:
    """An editor may write any source into the file; it would cost the server's money, or open what lies there."""
    researcher = User.objects.create_user("researcher", is_staff=True)
    may_run = ["view_study", "change_study", "run_study"]
    researcher.user_permissions.set(Permission.objects.filter(codename__in=may_run))
    for number, source in enumerate(("endpoint:gpt", "file:/etc/passwd", "local:/somewhere", "arpa:/dev/zero")):
        models = [*ADAPTIVE["models"][:1], {"name": "far", "source": source}]
        study = cast.study(**{**ADAPTIVE, "slug": f"outside-{number}", "models": models})
        cast.join(researcher, study)
        with pytest.raises(asked_jobs.NotAllowed, match=f"{source} is behind a server.*survey.collect_answers"):
            asked_jobs.ask(study, "prepare", {}, by=User.objects.get(pk=researcher.pk))
    inside = cast.study(**{**ADAPTIVE, "slug": "inside", "models": ADAPTIVE["models"][:1]})
    cast.join(researcher, inside)
    job, _is_new = asked_jobs.ask(inside, "prepare", {}, by=User.objects.get(pk=researcher.pk))
    # The file may be another one when a worker comes.
    config = {**inside.stored_config, "models": [{"name": "far", "source": "endpoint:gpt"}]}
    Study.objects.filter(pk=inside.pk).update(stored_config=config)
    assert not asked_jobs.run(job.pk)
    job.refresh_from_db()
    assert "endpoint:gpt is behind a server" in job.error
    researcher.user_permissions.add(Permission.objects.get(codename="collect_answers"))
    allowed = User.objects.get(pk=researcher.pk)
    assert asked_jobs.ask(Study.objects.get(pk=study.pk), "prepare", {}, by=allowed)[1]


def test_models_read_each_sentence_once(sentences: None, tiny_model: None) -> None:
    study = cast.study(**{**ADAPTIVE, "models": ADAPTIVE["models"][:1]})
    assert read_models(study, everything=True) == {"bigram": 6}
    assert read_models(study, everything=True) == {"bigram": 0}
    assert SentenceReading.objects.count() == 6
    questions = list(study.bank.questions.order_by("position"))
    (model,) = words_of_models(study, questions)
    values = model.of("surprisal", [question.pk for question in questions], [2] * 6)
    assert np.isfinite(values).all() and (values > 0).all()
    assert model.of("corrected", [questions[0].pk], [2]) == model.of("surprisal", [questions[0].pk], [2])
    assert np.isnan(model.of("surprisal", [questions[0].pk], [99])).all()
    # "old" is a word that the model knows; where it knows none, the report has to say so.
    everything = {question.pk: question for question in questions}
    known = unknown_words(study.config.models[0], everything, [questions[0].pk], [2])
    learnt = ngrams.load("tiny").vocabulary
    asked = [(question.pk, place) for question in questions for place in range(len(question.plain.split()))]
    missing = sum(word not in learnt for question in questions for word in question.plain.split())
    marks = unknown_words(study.config.models[0], everything, *zip(*asked, strict=True))
    assert known.tolist() == [False] and marks.sum() == missing > 0
    # A model of words says what it expected: "man" came once after "old" in what it learnt.
    assert (model.of("entropy", [questions[0].pk], [2]) > 0).all()
    expected = model.words(questions[0].pk, 2)
    assert expected[0][0] == "man" and 0 < sum(chance for _word, chance in expected) <= 1


def test_the_report_says_what_is_missing(sentences: None) -> None:
    study = cast.study(**{**CLOZE, "instrument": {"kind": "cloze", "options": {"least": 3}}})
    entry = instruments.of_study(study).reports()[0]
    assert "has 3 answers yet" in entry.load().obstacle(study)


def test_people_who_are_simulated_write_the_own_word_as_often_as_is_known(sentences: None) -> None:
    from survey.instruments.cloze.people import chance_of

    study = cast.study(**CLOZE)
    person = instruments.of_study(study).simulated_person(seed=1)
    fragment, word = "The old man sat down by the", "river"
    person.ability = 0.0
    written = [person.answer(screen="word_again", parts={"fragment": fragment})["word"] for _ in range(2000)]
    share = np.mean([match_of(text, word, known=()).lenient for text in written])
    assert share == pytest.approx(chance_of(fragment, word), abs=0.04)


def test_later_rules_make_new_rows_and_keep_the_old_ones(sentences: None, monkeypatch: pytest.MonkeyPatch) -> None:
    study = cast.study(**CLOZE)
    opened(study)
    play(study)
    words = WrittenWord.objects.count()
    assert rescoring.rescore(study) == 0
    monkeypatch.setattr(rescoring, "RULE", "2")
    monkeypatch.setattr(labels, "RULES", {**labels.RULES, "2": lambda typed, target, known: Match(True, True)})
    assert rescoring.rescore(study) == words and rescoring.rescore(study) == 0
    assert WordScore.objects.filter(rule=1).count() == words
    assert all(norm.k_exact == norm.n for norm in norms_of(study_answers(study)))


def test_the_budget_compares_ways_to_spend_the_answers(sentences: None, tiny_model: None) -> None:
    study = cast.study(**ADAPTIVE)
    findings = reports.make(study, "cloze_budget", {"studies": ["4"]})
    lines = {line["plan"]: line for line in findings.data["lines"]}
    assert set(lines) == {"as planned", "uniform", "half the positions, twice the answers"}
    planned, half = lines["as planned"], lines["half the positions, twice the answers"]
    # 8 sittings of 3 items, 2 answers a position: 12 positions a stage, and as many people as simulated sittings.
    assert planned["people"] == half["people"] == 16 and planned["answers"] == 2 and half["answers"] == 4
    assert half["positions"] < planned["positions"] <= 24 and half["ceiling"] <= 1


SQUARE: dict[str, Any] = {
    **CLOZE,
    "bank": "square",
    "instrument": {"kind": "cloze", "options": {"least": 1, "lists": True}},
    "sitting": {"items": 6},
    "stages": [{"sittings": 6, "responses_per_item": 2}],
}


@pytest.fixture
def square(tmp_path: Path) -> None:
    path = tmp_path / "square.csv"
    rows = [f's{number},source,"{text}","2,3,4"' for number, text in enumerate(SENTENCES)]
    path.write_text("\n".join(["id,source,text,positions", *rows]) + "\n")
    call_command("import_questions", str(path), bank="square", format="sentences")


def test_lists_make_a_latin_square(square: None) -> None:
    study = cast.study(**SQUARE)
    stage = opened(study)
    seen = []
    for booklet in stage.booklets.all():
        asked = [slot.item.asked_word for slot in booklet.slots.select_related("item__asked_word__question")]
        assert sorted(assignment.question.position for assignment in asked) == list(range(6))
        (own,) = {(assignment.position - 2 + assignment.question.position) % 3 for assignment in asked}
        seen.append(own)
    assert sorted(seen) == [0, 0, 1, 1, 2, 2]
    for _person in range(6):
        play(study)
    jobs.run_inline(lifecycle.close_stage(stage))
    stage = Stage.objects.select_related("study__bank").get(pk=stage.pk)
    assert not verify_stage(stage).differences
    assert {norm.n for norm in norms_of(study_answers(study))} == {2}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bank": "sentences"}, "sentences have 2 to 6 positions: give each as many"),
        ({"stages": [{"sittings": 5, "responses_per_item": 2}]}, "with sitting.items = 6 set sittings = 6"),
        ({"candidates": {"size": 10}}, "lists hold all 18 positions: set it to 18 or more"),
    ],
)
def test_lists_that_do_not_fit_are_refused(changes: dict[str, Any], said: str, square: None, sentences: None) -> None:
    with pytest.raises(FileErrors) as refused:
        cast.study(**{**SQUARE, **changes})
    assert said in str(refused.value)


def test_a_slip_is_compared_with_the_banks_words_which_are_read_once(
    sentences: None, django_assert_num_queries: Any
) -> None:
    from survey.instruments.cloze import vocabulary
    from survey.models import Bank

    bank = Bank.objects.get()
    vocabulary._KNOWN.pop(bank.sha256, None)
    with django_assert_num_queries(2):
        assert not vocabulary.stands_in_bank("zzyzx", bank.pk)
    own = [word for text in SENTENCES for word in text.split()]
    with django_assert_num_queries(1):
        words = vocabulary.words_of(bank.pk)
    assert words == {normalised(word) for word in own if letters(word)}


def test_answers_that_are_read_at_once_have_the_last_word_by_the_newest_rule(sentences: None) -> None:
    study = cast.study(**CLOZE)
    opened(study)
    sitting = begin_sitting(study=study, ids=new_open_person())
    for word in ("dark night", "night"):
        step = current_step(sitting)
        advance(sitting=sitting, step=step.number, data={"word": word})
        sitting.refresh_from_db()
    first, last = WrittenWord.objects.order_by("pk")
    for word, rule in ((last, 3), (last, 2), (first, 9)):
        WordScore.objects.create(word=word, rule=rule, normalised=f"rule {rule}", exact=False, lenient=False)
    answers = list(Assignment.objects.filter(sitting=sitting, position=1))
    labels.read_words(answers)
    judged = labels.judged_word_of(answers[0])
    assert judged is not None and judged.normalised == "rule 3"


def test_of_a_model_whose_files_have_changed_the_newest_reading_of_sentences_counts(
    sentences: None, tiny_model: None
) -> None:
    study = cast.study(**{**ADAPTIVE, "models": ADAPTIVE["models"][:1]})
    read_models(study, everything=True)
    for row in SentenceReading.objects.all():
        row.pk, row.source_sha256 = None, "f" * 64
        row.values = bytes(SentenceReading.objects.exclude(text_sha256=row.text_sha256).earliest("pk").values)
        row.save()
    questions = list(study.bank.questions.order_by("position"))
    (model,) = words_of_models(study, questions)
    newest = {row.text_sha256: row.word_array for row in SentenceReading.objects.filter(source_sha256="f" * 64)}
    for question in questions:
        stored = newest[text_hash(question.plain)]
        assert model.values[question.pk].tolist() == stored.tolist()
