"""Next-token studies: passages, pages, what is on no page, a process that dies, stages, the report."""

import csv
import gzip
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from predictors.readings import Text
from survey.contracts import instruments
from survey.exceptions import FieldErrors, FileErrors
from survey.instruments.next_token import priorities
from survey.instruments.next_token.analysis.guesses import ModelGuesses, most_bits
from survey.instruments.next_token.forms import form_of
from survey.instruments.next_token.models import TokenGuess, TokenRun
from survey.instruments.next_token.wording import shown_token, typed_token
from survey.models import Score, Sitting, SnapshotAnswer, Stage, Study
from survey.services.answers.counting import study_answers
from survey.services.banks import ngrams, passages
from survey.services.banks.readings import text_hash
from survey.services.plans.planning import plan_stage
from survey.services.results import reports
from survey.services.results.estimates.study_estimates import estimate
from survey.services.results.export import files
from survey.services.sittings.answering import advance
from survey.services.sittings.enrolment import begin_sitting, new_open_person
from survey.services.sittings.flow import Step, current_step
from survey.services.stages import jobs, lifecycle
from survey.services.stages.verifying import verify_stage
from survey.study_file.language_models import LanguageModelConfig
from tests import cast
from tests.frontend.pages import arrive, read
from tests.kept import kept
from tests.predictors.fake_endpoint import running, serving

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
TEXTS = [
    "The miller rode to the market with seven sacks.\nHe sold the barley to a baker, and the baker gave it to a hen.",
    "A storm came over the lake and broke the mast of the ferry. The ferryman rowed home, and the passengers sang.",
    "In the attic stood a clock that nobody had wound for years. One evening it began to strike, and it did not stop.",
    "The baker lent the ferryman a lantern. The ferryman lost the lantern in the lake, and the lake kept it.",
]
BLOCKS = [
    {"kind": "consent", "text": "Do you agree?", "version": "1"},
    {"kind": "items"},
    {"kind": "end", "text": "Thanks."},
]
STUDY: dict[str, Any] = {
    "slug": "guessing",
    "bank": "tales",
    "instrument": {"kind": "next_token", "options": {"tokenizer": "pairs:tales", "run": 8, "start": "drawn"}},
    "models": [{"name": "trigram", "source": "ngram:tales"}],
    "candidates": {"size": 100},
    "sitting": {"items": 2},
    "roles": {"holdout": 0, "controls": 0},
    "stages": [{"sittings": 6, "responses_per_item": 2}],
    "blocks": BLOCKS,
}


@kept
def prepare_tales() -> None:
    with TemporaryDirectory() as folder:
        prepare(Path(folder))


def prepare(folder: Path, texts: list[str] = TEXTS) -> None:
    path = folder / "tales.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [("id", "source", "text"), *((f"t{n}", "tales", text) for n, text in enumerate(texts))]
        )
    call_command("import_questions", str(path), bank="tales", format="passages", verbosity=0)
    named = [Text(str(number), text) for number, text in enumerate(texts)]
    passages.train_tokenizer(named, name="tales", size=330)
    cut_by: Any = passages.open_tokenizer("pairs:tales")
    ngrams.train(named[1:], name="tales", order=3, unit="token", smoothing="kneser_ney", cut_by=cut_by)
    call_command("prepare_passages", bank="tales", tokenizer="pairs:tales", model=["trigram=ngram:tales"], verbosity=0)


@pytest.fixture
def tales() -> None:
    prepare_tales()


def opened(study: Study, index: int = 1) -> Stage:
    stage = Stage.objects.select_related("study__bank").get(study=study, index=index)
    return lifecycle.open_stage(plan_stage(stage))


def begun(study: Study) -> Sitting:
    opened(study)
    return begin_sitting(study=study, ids=new_open_person())


def texts_of(step: Step) -> dict[str, str]:
    return {name: str(part["value"]) for name, part in step.screen.parts.items()} if step.screen else {}


def run_of(sitting: Sitting) -> TokenRun:
    step = current_step(sitting)
    assert step.assignment is not None
    return TokenRun.objects.select_related("question").get(item=step.assignment.slot.item_id)


def play(study: Study, folder: Path | None = None) -> None:
    sitting = begin_sitting(study=study, ids=new_open_person())
    person = cast.simulated_person(sitting)
    while (step := current_step(sitting)).kind != "end":
        data = person.answer(screen=step.screen.name, parts=texts_of(step)) if step.screen else {}
        advance(sitting=sitting, step=step.number, data=data)
        sitting.refresh_from_db()


@kept
def adaptive_study() -> Study:
    """Both stages are frozen, and the second was drawn by the guesses of the first."""
    prepare_tales()
    design = {"kind": "epsilon_greedy", "epsilon": 0.8, "top_fraction": 0.4}
    instrument_options = {**STUDY["instrument"]["options"], "priority": "gap"}
    stages = [*STUDY["stages"], {"sittings": 6, "responses_per_item": 2, "design": design}]
    study = cast.study(
        **{**STUDY, "instrument": {"kind": "next_token", "options": instrument_options}, "stages": stages}
    )
    for index in (1, 2):
        stage = opened(study, index)
        for _person in range(stage.config.sittings):
            play(study)
        jobs.run_inline(lifecycle.close_stage(stage))
    return study


def test_an_adaptive_study_goes_through_its_stages(tmp_path: Path) -> None:
    study = adaptive_study()
    for stage in Stage.objects.select_related("study__bank").filter(study=study).order_by("index"):
        assert SnapshotAnswer.objects.filter(stage=stage).count() == 12
        assert not verify_stage(stage).differences
    assert stage.manifest["priority"] == {"name": "gap", "version": "1"}
    for booklet in stage.booklets.all():
        assert len({slot.item.token_run.question_id for slot in booklet.slots.all()}) == 2
    # One row per guess, a point a right guess.
    files.write_export(study, tmp_path)
    with (tmp_path / "guesses.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    right = sum(int(row["right"]) for row in rows)
    assert len(rows) == TokenGuess.objects.count() == Score.objects.count()
    assert right == sum(score.value for score in Score.objects.all()) > 0
    assert all((row["guess"] == row["truth"]) == (row["right"] == "1") for row in rows)
    assert all("\n" not in row["truth"] for row in rows)
    # The report has the same sums, and the model stands at the same positions.
    findings = reports.make(study, "next_token")
    assert (findings.data["guesses"], findings.data["right"]) == (len(rows), right)
    people, model, difference = findings.data["figures"]
    assert model["who"] == "trigram" and model["asked"] == len(rows) and model["perplexity"] > 1
    assert difference["share"] == pytest.approx(people["share"] - model["share"], abs=2e-6)
    assert findings.data["given"] == sum(int(row["given"]) for row in _answers(tmp_path))
    live = reports.make(study, "next_token_live")
    assert (live.data["guesses"], live.data["right"], live.data["stages"]) == (len(rows), right, 2)
    # The same guesses beside the model's chances.
    for name in ("agreement", "calibration", "gaps"):
        assert "trigram" in str(reports.make(study, name).data)
    # The core's estimate of the ratio.
    estimated = estimate(study, by=["source"]).as_json()
    assert "runs in the bank's 4 passages" in str(estimated) and "right guesses" in str(estimated)


@pytest.mark.thorough
def test_the_chance_of_a_guess_is_that_of_its_run_in_the_pool_and_of_the_pool(tales: None, tmp_path: Path) -> None:
    stages = [{"sittings": 2, "responses_per_item": 2}]
    study = cast.study(**{**STUDY, "candidates": {"size": 4}, "stages": stages})
    stage = opened(study)
    play(study)
    files.write_export(study, tmp_path)
    with (tmp_path / "guesses.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    (written,) = {float(row["probability"]) for row in rows}
    guess = TokenGuess.objects.select_related("response__assignment__slot__item__token_run__question").order_by("pk")
    for row, token_guess in zip(rows, guess, strict=True):
        run = token_guess.response.assignment.slot.item.token_run
        assert (int(row["position"]), int(row["place"])) == (run.start + token_guess.place, token_guess.place + 1)
        assert row["truth"] == run.text_of(run.run_tokens[token_guess.place]) and row["guess"] == token_guess.text
        assert (int(row["true_token"]), row["right"]) == (
            run.run_tokens[token_guess.place].id,
            str(int(token_guess.right)),
        )
    ((inside, pool),) = {(slot.inclusion_probability, slot.pool_probability) for slot in stage.slots.all()}
    assert pool < 1 and written == pytest.approx(inside * pool)


@pytest.mark.thorough
def test_priorities_are_of_the_guesses_at_each_token_and_of_what_the_model_held_likeliest(
    tales: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six people guess six runs, each run twice."""
    design = {"kind": "epsilon_greedy", "epsilon": 0.5, "top_fraction": 0.4}
    stages = [*STUDY["stages"], {**STUDY["stages"][0], "design": design}]
    options = {**STUDY["instrument"]["options"], "priority": "uncertainty"}
    study = cast.study(**{**STUDY, "instrument": {"kind": "next_token", "options": options}, "stages": stages})
    opened(study)
    for _person in range(6):
        play(study)
    instrument = instruments.of_study(study)
    questions = instrument.usable(list(study.bank.questions.order_by("position")))
    rows, heard = instrument.universe(questions), {}

    def share(features: Any, text: Any, guessed: Any, n: Any, right: Any) -> Any:
        heard.update(n=n, right=right, guessed=guessed)
        return np.full(len(features), 0.5)

    def sure(predicted: Any, run: Any, times: Any) -> Any:
        heard.update(times=times)
        return times

    def apart(predicted: Any, model: Any, run: Any) -> Any:
        heard.update(model=model, run=run)
        return predicted

    for name, function in (("predicted_share", share), ("uncertainty", sure), ("gap", apart)):
        monkeypatch.setattr(priorities.priority, name, function)
    of = {"rows": rows, "questions": questions, "chances": None, "answers": study_answers(study)}
    instrument.priority.of(**of, rng=np.random.default_rng(1))
    assert sorted(heard["times"].tolist())[-7:] == [0, *[2] * 6] and set(heard["n"].tolist()) == {2}
    assert heard["right"].sum() == TokenGuess.objects.filter(right=True).count()
    assert len(heard["guessed"]) * 2 == TokenGuess.objects.count()
    monkeypatch.setitem(instrument.__dict__, "options", instrument.options.model_copy(update={"priority": "gap"}))
    instrument.priority.of(**of, rng=np.random.default_rng(1))
    texts = passages.texts_of(questions)
    said = passages.expectations_of(passages.source_of(study.config.models[0]), instrument.tokenizer, texts)
    cut, words = passages.tokens_of(instrument.tokenizer, texts), passages.vocabulary_of(instrument.tokenizer)
    expected = []
    for number, row in enumerate(rows):
        question = questions[row["question"]]
        sha256 = text_hash(question.plain)
        for position in range(int(row["start"]), int(row["start"]) + 8):
            token = cut[sha256][position]
            if words.id_of(question.plain[token["start"] : token["end"]]) == token["id"]:
                expected.append((number, float(said[sha256][position]["top_id"] == token["id"])))
    assert list(zip(heard["run"].tolist(), heard["model"].tolist(), strict=True)) == expected
    assert 0 < sum(right for _run, right in expected) < len(expected)


def test_runs_fill_a_passage_and_count_when_every_token_was_guessed(
    tales: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = cast.study(**STUDY)
    instrument = instruments.of_study(study)
    questions = list(study.bank.questions.order_by("position"))
    monkeypatch.setattr(instrument, "token_counts", lambda _questions: [16, 17, 24, 15])
    assert instrument.universe(questions).tolist() == [(0, 0), (0, 8), (1, 0), (1, 8), (2, 0), (2, 8), (2, 16)]
    assert instrument.usable(questions) == questions[:3]
    run = SimpleNamespace(asked_places=[0, 2, 3])
    monkeypatch.setattr(instrument, "options_for", lambda _answer: instrument.options)
    for guesses, is_whole in ((0, False), (2, False), (3, True)):
        made = [SimpleNamespace(token_guess=SimpleNamespace(place=place, attempt=1)) for place in range(guesses)]
        answer = SimpleNamespace(
            slot=SimpleNamespace(item=SimpleNamespace(token_run=run)),
            responses=SimpleNamespace(all=lambda own=made: own),
        )
        assert instrument.counts_unfinished(answer) is is_whole


def _answers(folder: Path) -> list[dict[str, str]]:
    with (folder / "answers.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_next_token_is_in_no_answer_before_its_guess(tales: None, client: Client) -> None:
    """Every header and every byte of each answer up to the guess: nothing of what follows the text shown so far."""
    study = cast.study(**{**STUDY, "sitting": {"items": 1}})
    opened(study)
    page = arrive(client, slug=study.slug)
    sent: Any = client.get(f"/s/{study.slug}/sitting")
    run = TokenRun.objects.select_related("question").get(item__slots__assignments__sitting__stage__study=study)
    text, tokens = run.question.plain, run.run_tokens
    queries: list[int] = []
    for number, place in enumerate(run.asked_places, start=1):
        token = tokens[place]
        assert page.form["data-screen"] == f"guess_{number}"
        assert page.parts.get("text", "") + page.parts.get("new", "") == text[: token.start]
        secret = text[token.start : token.start + 24].strip()
        # A list of tokens, and a guess that is no token, say nothing of it either.
        listed = client.post(f"/s/{study.slug}/sitting", {**page.hidden, "guess": " t", "look": "1"})
        wrong = client.post(f"/s/{study.slug}/sitting", {**page.hidden, "guess": "zzz"})
        for answer in (sent, listed, wrong):
            said = f"{answer.content.decode()} {dict(answer.headers)} {answer.request}"
            assert len(secret) < 12 or secret not in said  # The end of a text may be a word that stands anywhere.
        assert TokenGuess.objects.count() == number - 1
        step = current_step(Sitting.objects.get())
        assert step.screen is not None and secret not in str(step.screen.content())
        data = {**page.hidden, "guess": text[token.start : token.end]}
        with CaptureQueriesContext(connection) as statements:
            sent = client.post(f"/s/{study.slug}/sitting", data, headers={"X-Hunch-Exchange": "1"})
        queries.append(sum("SAVEPOINT" not in str(statement["sql"]) for statement in statements))
        page = read(sent.content.decode())
        assert f"{number} of {number} right" in page.text
    assert "How the text went on" in page.text
    # Later guesses cost no more than earlier ones.
    assert max(queries[1:]) <= 8, queries
    assert TokenGuess.objects.filter(right=True).count() == len(run.asked_places)
    page = read(client.post(f"/s/{study.slug}/sitting", page.hidden, follow=True).content.decode())
    assert page.main["data-kind"] == "end"


def test_no_other_address_and_no_answer_of_the_api_says_how_the_text_goes_on(tales: None, client: Client) -> None:
    """All that a browser or a program can ask for in a sitting: remarks, beacons, look-ups, refusals, the whole API."""
    study = cast.study(**{**STUDY, "sitting": {"items": 1}})
    opened(study)
    page = arrive(client, slug=study.slug)
    run = TokenRun.objects.select_related("question").get(item__slots__assignments__sitting__stage__study=study)
    root = f"/s/{study.slug}"
    begun = client.post(f"/api/v1/studies/{study.slug}/sittings/", {"consent": True}, content_type="application/json")
    token = {"X-Sitting-Token": begun.json()["token"]}
    other = run_of(Sitting.objects.order_by("-pk")[0])
    by_program: list[Any] = [begun]
    asked: list[Any] = []
    for address in (
        "/",
        "/consent",
        "/sitting",
        "/sitting?anew=1",
        "/report",
        "/resume",
        "/back",
        "/beacon",
        "/robots.txt",
    ):
        for method in (client.get, client.head, client.options):
            asked.append(method(root + address))
        asked.append(client.get(root + address, headers={"Purpose": "prefetch", "Sec-Purpose": "prefetch;prerender"}))
    hidden = page.hidden
    asked += [
        client.post(f"{root}/report", {**hidden, "position": "1", "screen": "guess_1", "comment": "odd"}),
        client.post(f"{root}/beacon", {"step": hidden["step"], "opened": "ab" * 16}),
        client.post(f"{root}/resume"),
        client.post(f"{root}/sitting", {**hidden, "guess": "zzz"}, headers={"X-Hunch-Exchange": "1"}),
        client.post(f"{root}/sitting", {**hidden, "step": "99", "guess": " the"}),
        client.get(f"/tokens/{run.tokenizer.sha256}"),
    ]
    for path in ("sitting/", "sitting/left/", "sitting/report/", f"studies/{study.slug}/", "studies/", "readings/"):
        by_program.append(client.get(f"/api/v1/{path}", headers=token))
        by_program.append(client.post(f"/api/v1/{path}", {"step": 1}, content_type="application/json", headers=token))
    for path in ("answers/", "answers.csv", "reports/", "reports/next_token/", "stages/", "file/", "overview/"):
        refused = client.get(f"/api/v1/studies/{study.slug}/{path}", headers=token)
        assert refused.status_code in (401, 403, 404), path
        by_program.append(refused)
    # Each person's own text. Somebody else may be given it, where their run begins further on in the same passage.
    for own, answers in ((run, asked), (other, by_program)):
        first = own.run_tokens[own.asked_places[0]]
        secret = own.question.plain[first.start : first.start + 24].strip()
        assert len(secret) > 15
        for answer in answers:
            assert secret not in f"{answer.content.decode(errors='replace')} {dict(answer.headers)}"
    assert not TokenGuess.objects.exists()


def test_what_is_typed_is_a_token_or_leads_to_a_list(tales: None) -> None:
    form = form_of(passages.registered("pairs:tales"), text="Once")
    made = form({"guess": " the"})
    assert made.is_valid() and made.cleaned_data["text"] == " the"
    # A raised dot and a hard blank are a space.
    assert form({"guess": "·the"}).is_valid() and form({"guess": "\u00a0the"}).is_valid()
    listed = form({"guess": " th", "look": "1"})
    assert not listed.is_valid()
    choices = listed.fields["choice"].choices  # type: ignore[attr-defined]
    assert ("the" in dict(choices).values()) and all(text.startswith("th") for text in dict(choices).values())
    # To ask for a list is no error, nor is a word that is no token: nothing is said in red.
    assert listed.errors == {"look": []} == form({"guess": " th"}).errors
    token = next(key for key, text in choices if text == "the")
    chosen = form({"guess": " th", "look": "", "choice": token})
    assert chosen.is_valid() and chosen.cleaned_data == {"token": int(token), "text": " the"}
    for guess in ("", "\n"):
        wrong = form({"guess": guess})
        assert not wrong.is_valid() and "choice" not in wrong.fields and wrong.errors["guess"]
    other = form({"guess": " th", "choice": "0"})
    assert not other.is_valid()


def test_the_page_sets_the_space_before_a_new_word(tales: None) -> None:
    row = passages.registered("pairs:tales")
    words, form = passages.vocabulary_of(row), form_of(row, text="Once")

    def text_of(**sent: str) -> str:
        made = form(sent)
        return str(made.cleaned_data["text"]) if made.is_valid() else ""

    assert (
        text_of(guess="the", new_word="on") == " the" == text_of(guess=" the", new_word="on") == text_of(guess=" the")
    )
    assert text_of(guess="e") == "e" and text_of(guess=",", new_word="on") == ","
    # What only goes on with a word is taken so, whatever the tick says.
    rest = next(word for word in words.ordered if word.isalpha() and not words.beginning_with(f" {word}"))
    assert text_of(guess=rest, new_word="on") == rest
    # A word that is longer than any token: its beginnings, the longest first.
    long = form({"guess": "thexyz", "new_word": "on"})
    assert not long.is_valid() and long.errors == {"look": []}
    choices = [text for _key, text in long.fields["choice"].choices]  # type: ignore[attr-defined]
    assert choices[0] == "the" and all("thexyz".startswith(text) for text in choices)
    # Nothing typed: the most frequent words. Behind a space, and at the beginning of a text, there is no tick.
    assert form({"guess": "", "new_word": "on", "look": "1"}).errors == {"look": []}
    for before in ("", "Once ", "Once\n"):
        assert "new_word" not in form_of(row, text=before)().fields


def test_the_file_of_tokens_is_the_same_for_everybody_and_kept(
    tales: None, client: Client, django_assert_num_queries: Any
) -> None:
    row = passages.registered("pairs:tales")
    address = f"/tokens/{row.sha256}"
    passages.tokens_as_file.cache_clear()
    first = client.get(address)
    with django_assert_num_queries(0):  # A process reads it once.
        small = client.get(address, headers={"Accept-Encoding": "gzip"})
    tokens = first.content.decode().split("\n")
    assert gzip.decompress(small.content) == first.content and small.headers["Content-Encoding"] == "gzip"
    # What the button lists begins the script's list, too, and each line can be guessed.
    words = passages.vocabulary_of(row)
    assert [token for token in tokens if token.startswith(" t")][:30] == words.beginning_with(" t")
    assert len(tokens) == len(set(tokens)) and None not in {words.id_of(token) for token in tokens}
    assert {" the", "e"} <= set(tokens) and not any(token == "" or "\n" in token for token in tokens)
    for sent in (first, small):
        assert sent.headers["Cache-Control"] == f"public, max-age={30 * 24 * 3600}, immutable"
        assert not sent.cookies and sent.headers["Vary"].startswith("Accept-Encoding")
    call_command("prepare_passages", bank="tales", tokenizer="characters", verbosity=0)
    characters = passages.registered("characters")
    for unknown in ("0" * 64, row.sha256[:-1], characters.sha256):
        refused = client.get(f"/tokens/{unknown}")
        assert refused.status_code == 404 and "no-store" in refused.headers["Cache-Control"]
    # A field names the file, the same one at every guess; characters need no list.
    fields = {
        str(form_of(row, text="Once", goes_on=later)()["guess"]).count(f'data-tokens="{address}"')
        for later in (False, True)
    }
    assert fields == {1}
    assert "data-tokens" not in str(form_of(characters, text="Once")()["guess"])


def test_dots_stand_for_the_spaces_before_a_token() -> None:
    assert [shown_token(text) for text in (" the", "the", "  x", " ")] == ["·the", "the", "··x", "·"]
    assert [typed_token(text) for text in ("·the", " the", "a·b", "\u2009x")] == [" the", " the", "a·b", " x"]


def test_tokens_that_pages_would_show_like_others_are_not_asked_for() -> None:
    """A raised dot stands for a space, and a hard blank is taken for one: what a list shows is what it gives."""
    words = passages.Vocabulary([" ", "  ", "·", " ·", "·a", " a", "a\u00a0b", "\u202f", "b·c", "é"])
    assert [words.id_of(text) for text in ("·", " ·", "·a", "a\u00a0b", "\u202f")] == [None] * 5
    assert set(words.ordered) == {" ", "  ", " a", "b·c", "é"}
    assert all(typed_token(shown_token(token)) == token for token in words.ordered)
    assert len({shown_token(token) for token in words.ordered}) == len(words.ordered)
    letters = passages.Vocabulary([], characters=True)
    assert [letters.id_of(text) for text in ("·", "\u00a0", " ")] == [None, None, 32]


def test_tokens_that_nobody_can_type_are_given(tales: None) -> None:
    study = cast.study(**STUDY)
    stage = plan_stage(Stage.objects.select_related("study__bank").get(study=study, index=1))
    runs = [slot.item.token_run for slot in stage.slots.select_related("item__token_run__question")]
    broken = [
        run.text_of(token) for run in runs for token in run.run_tokens if "\n" in run.text_of(token) and token.asked
    ]
    assert broken == []
    assert all(run.length == 8 for run in runs)
    assert all(0 < len(run.asked_places) <= 8 for run in runs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"run": 60}, "passages have fewer than 68 tokens"),
        (
            {"tokenizer": "pairs:none"},
            "no pairs:none; there are: pairs:tales; `hunch train_tokenizer` makes one",
        ),
        ({"tokenizer": "local:/nowhere"}, "no passage was cut by local:/nowhere yet: `hunch prepare_passages"),
        ({"tokenizer": ""}, "name what cuts the passages"),
        ({"unit": "character"}, "cuts passages into characters: remove it"),
        ({"priority": "gap"}, "no stage draws by it"),
    ],
)
def test_a_study_that_cannot_run_is_refused(tales: None, options: dict[str, Any], message: str) -> None:
    instrument_options = {**STUDY["instrument"]["options"], **options}
    with pytest.raises(FileErrors, match=message):
        cast.study(**{**STUDY, "instrument": {"kind": "next_token", "options": instrument_options}})


def test_a_model_that_has_not_read_is_named(tales: None) -> None:
    with pytest.raises(FileErrors, match=r"other has not read 4 passages yet \(t0, t1, t2, t3\): .* --model other="):
        cast.study(**{**STUDY, "models": [{"name": "other", "source": "local:/nowhere"}]})
    with pytest.raises(FileErrors, match=r"no n-gram model is called 'none'"):
        cast.study(**{**STUDY, "models": [{"name": "other", "source": "ngram:none"}]})


def test_a_few_passages_are_cut_and_read_while_the_study_is_created(tales: None, tmp_path: Path) -> None:
    """No command stands between the bank and the study, as in the admin."""
    path = tmp_path / "more.csv"
    rows = [f'm{number},more,"{text} The end."' for number, text in enumerate(TEXTS)]
    path.write_text("\n".join(["id,source,text", *rows]) + "\n", encoding="utf-8")
    call_command("import_questions", str(path), bank="more", format="passages", verbosity=0)
    study = cast.study(**{**STUDY, "bank": "more"})
    row = passages.registered("pairs:tales")
    texts = passages.texts_of(list(study.bank.questions.all()))
    assert len(passages.tokens_of(row, texts)) == len(texts) == 4
    assert passages.unread_by(passages.source_of(study.config.models[0]), row, texts) == []
    options = {"unit": "character", "run": 5}
    letters = {
        "slug": "letters",
        "bank": "more",
        "models": [],
        "instrument": {"kind": "next_token", "options": options},
        "sitting": {"items": 1},
        "stages": [{"sittings": 4}],
    }
    cast.study(**{**STUDY, **letters})
    assert len(passages.tokens_of(passages.registered("characters"), texts)) == 4


def test_characters_are_guessed_one_by_one(tales: None) -> None:
    call_command("prepare_passages", bank="tales", tokenizer="characters", verbosity=0)
    options = {"unit": "character", "run": 5, "reveal": False}
    few = {"sitting": {"items": 1}, "stages": [{"sittings": 4}], "models": []}
    study = cast.study(**{**STUDY, **few, "instrument": {"kind": "next_token", "options": options}})
    sitting = begun(study)
    run = run_of(sitting)
    for letter in run.question.plain[:4] + "z":
        step = current_step(sitting)
        assert step.screen is not None and "verdict" not in step.screen.words
        advance(sitting=sitting, step=step.number, data={"guess": letter})
        sitting.refresh_from_db()
    advance(sitting=sitting, step=current_step(sitting).number, data={})
    assert [guess.right for guess in TokenGuess.objects.order_by("place")] == [True] * 4 + [False]
    findings = reports.make(study, "next_token")
    assert any("at most" in line and "bits per character" in line for line in findings.lines)
    most = findings.data["bits_a_character"]["people_at_most"].value
    kinds = findings.data["bits_a_character"]["characters"]
    assert most == pytest.approx(most_bits(0.8, kinds), abs=1e-6)
    assert findings.data["bits_a_character"]["perplexity_at_most"] == pytest.approx(2**most, abs=1e-4)


def test_a_study_without_a_model_to_compare_with_is_remarked(tales: None) -> None:
    with_one, without = (
        instruments.of_study(cast.study(**{**STUDY, **own})) for own in ({}, {"slug": "b", "models": []})
    )
    assert list(with_one.remarks()) == []
    (note,) = without.remarks()
    assert "there is no language model to compare people with" in str(note)


def test_a_guess_is_right_by_its_id_alone(tales: None) -> None:
    study = cast.study(**STUDY)
    sitting = begun(study)
    with pytest.raises(FieldErrors):
        advance(sitting=sitting, step=current_step(sitting).number, data={"guess": "no such token"})
    advance(sitting=sitting, step=current_step(sitting).number, data={"guess": " the"})
    guess = TokenGuess.objects.get()
    signals = instruments.of_study(study).signals
    assert list(signals.stated_values([sitting.pk])) == [(sitting.pk, "token", " the")]
    assert not list(signals.stated_values([]))
    with pytest.raises(IntegrityError, match="next_token_right_by_id"), transaction.atomic():
        TokenGuess.objects.filter(pk=guess.pk).update(right=not guess.right)


# The process that takes the guess dies, before its transaction ends or right after.
DIES = """
import os, signal, sys
import django
django.setup()
from django.db import connection
from survey.instruments.next_token.instrument import NextToken
from survey.models import Sitting
from survey.services.sittings.answering import advance
from survey.services.sittings.flow import current_step

def die(*args, **options):
    os.kill(os.getpid(), signal.SIGKILL)

sitting = Sitting.objects.get()
step = current_step(sitting)
if sys.argv[1] == "before":
    NextToken.score = die
advance(sitting=sitting, step=step.number, data={"guess": " the", "screen": step.screen.name})
die()
"""


@pytest.mark.thorough
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_dies_between_guess_and_reveal_loses_no_guess_and_doubles_none(
    when: str, child_environment: dict[str, str], tmp_path: Path
) -> None:
    prepare(tmp_path)
    study = cast.study(**{**STUDY, "sitting": {"items": 1}})
    sitting = begun(study)
    asked = current_step(sitting)
    done = subprocess.run(
        [sys.executable, "-c", DIES, when], cwd=ROOT, env=child_environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == -9, done.stderr
    sitting.refresh_from_db()
    assert TokenGuess.objects.count() == (0 if when == "before" else 1)
    # The browser sends the same page again: the guess is there once, and the next page is the reveal.
    advance(sitting=sitting, step=asked.number, data={"guess": " the", "screen": "guess_1"})
    sitting.refresh_from_db()
    step = current_step(sitting)
    assert TokenGuess.objects.count() == 1
    assert step.screen is not None and step.screen.name == "guess_2"
    assert "“the”" in step.screen.words["verdict"]


def test_a_guess_is_taken_once_and_never_changed_after_its_reveal(tales: None, client: Client) -> None:
    """A second tab, the same page sent again, a page that is not there yet: the guess that was made stays."""
    study = cast.study(**STUDY)
    opened(study)
    page = arrive(client, slug=study.slug)
    address = f"/s/{study.slug}/sitting"
    # A token that stands in no list of what was typed is no guess: another run's, or one that does not exist.
    for choice in ("5", "999999", "-1", "x"):
        client.post(address, {**page.hidden, "guess": "zzz", "choice": choice})
    assert not TokenGuess.objects.exists()
    client.post(address, {**page.hidden, "guess": " the"})
    made = TokenGuess.objects.get()
    run = made.response.assignment.slot.item.token_run
    truth = run.text_of(run.run_tokens[made.place])
    # Who has read the true token cannot send it for the guess before.
    for data in ({"guess": truth}, {"guess": truth, "screen": "guess_2"}, {"guess": truth, "screen": "guess_9"}):
        sent = client.post(address, {**page.hidden, **data})
        assert sent.status_code in (303, 409, 422)
    guess = TokenGuess.objects.get(place=made.place)
    assert (guess.pk, guess.text, guess.right) == (made.pk, " the", made.right)
    assert TokenGuess.objects.count() == Score.objects.count() == 1
    # Two tabs show the same position, and only one guess of it is taken.
    first_tab, two = (read(client.get(address).content.decode()) for _tab in range(2))
    assert first_tab.parts == two.parts and first_tab.form["data-screen"] == "guess_2"
    client.post(address, {**first_tab.hidden, "guess": " a"})
    client.post(address, {**two.hidden, "guess": " the"})
    assert [guess.text for guess in TokenGuess.objects.order_by("place")] == [" the", " a"]
    # Steps that are still to come cannot be answered.
    ahead = client.post(address, {**first_tab.hidden, "step": str(int(first_tab.hidden["step"]) + 3), "guess": " the"})
    assert ahead.status_code != 500
    assert TokenGuess.objects.count() == 2


def test_simulated_people_are_right_as_often_as_they_are_made_to_be(tales: None) -> None:
    from survey.instruments.next_token.people import chance_of

    study = cast.study(**STUDY)
    person = instruments.of_study(study).simulated_person(seed=3)
    text = TEXTS[1]
    cut = passages.open_tokenizer("pairs:tales").cut(text)
    token = cut[6]
    truth, before = text[token["start"] : token["end"]], text[: token["start"]]
    hits = [
        person.answer(screen="guess_1", parts={"text": before, "new": "", "number": "7"})["guess"] == truth
        for _try in range(400)
    ]
    chance = chance_of(before, truth, person.ability)  # type: ignore[attr-defined]
    assert abs(np.mean(hits) - chance) < 4 * np.sqrt(chance * (1 - chance) / 400) + 0.01


def test_a_model_behind_a_server_stands_beside_people_as_if_it_named_its_tokens(
    tales: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [*STUDY["models"], {"name": "far", "source": "endpoint:gpt-3"}]
    with pytest.raises(FileErrors, match=r"far has not read 4 passages.*--model far=endpoint:gpt-3"):
        cast.study(**{**STUDY, "models": models})
    with running() as fake:
        fake.answer = serving(ngrams.load("tales"))
        monkeypatch.setenv("HUNCH_LLM_URL", fake.url)
        call_command(
            "prepare_passages", bank="tales", tokenizer="pairs:tales", model=["far=endpoint:gpt-3"], verbosity=0
        )
    study = cast.study(**{**STUDY, "models": models})
    row, texts = passages.registered("pairs:tales"), passages.texts_of(list(study.bank.questions.all()))
    near, far = (passages.expectations_of(passages.source_of(model), row, texts) for model in study.config.models)
    for key, exact in near.items():
        bounded = far[key]
        assert (bounded["logprob"] <= exact["logprob"] + 1e-9).all()
        assert (exact["logprob"] <= bounded["logprob_most"] + 1e-9).all()
        is_right = exact["top_id"] == passages.tokens_of(row, texts)[key]["id"]
        assert ((bounded["top_id"] == passages.tokens_of(row, texts)[key]["id"]) == is_right)[bounded["sure"]].all()
    opened(study)
    play(study)
    made = reports.make(study, "next_token", {})
    rows = {row["who"]: row for row in made.data["figures"]}
    assert rows["far"]["asked"] == rows["trigram"]["asked"] == rows["people"]["asked"]
    assert rows["far"]["perplexity_at_least"] <= rows["trigram"]["perplexity"] <= rows["far"]["perplexity"]
    assert rows["trigram"]["perplexity_at_least"] is None
    assert any("far names no tokens of these texts" in note for note in made.notes)


def test_a_model_of_whole_words_is_refused_with_what_to_take(tales: None) -> None:
    ngrams.train([Text("0", TEXTS[0])], name="words", order=2, unit="word", smoothing="kneser_ney")
    with pytest.raises(FileErrors, match=r"reads whole words.*an n-gram model of tokens or characters"):
        cast.study(**{**STUDY, "models": [{"name": "words", "source": "ngram:words"}]})


def test_models_are_compared_at_positions_that_all_have_read(tales: None) -> None:
    from survey.instruments.next_token.reports.study_report import at_common_positions

    nan = float("nan")
    short = ModelGuesses("short", np.array([nan, 1.0, 0.0]), np.array([nan, 1.0, 2.0]))
    whole = ModelGuesses("whole", np.array([1.0, 1.0, 0.0]), np.array([9.0, 1.0, 2.0]))
    models, notes = at_common_positions([short, whole])
    assert all(np.array_equal(model.surprisal, [nan, 1.0, 2.0], equal_nan=True) for model in models)
    assert notes == ["models are compared at the 2 guesses at positions that all of them have read"]
    assert at_common_positions([whole]) == ([whole], [])
    listed = ModelGuesses("listed", *[np.ones(3)] * 3, unsure=np.array([True, True, False]))
    cut = listed.at(np.array([False, True, True])).unsure
    assert isinstance(cut, np.ndarray) and cut.tolist() == [False, True, False]


@pytest.mark.thorough
def test_the_demonstration_teaches_that_models_guess_better_than_people() -> None:
    """By the chances with which simulated people guess, at the very tokens of the passages that come with Hunch."""
    from survey.instruments.next_token import demonstration
    from survey.instruments.next_token.people import chance_of

    bank = demonstration.load_bank()
    questions = list(bank.questions.order_by("position"))
    row = passages.registered(passages.STARTER_TOKENIZER)
    texts = passages.texts_of(questions)
    cut = passages.tokens_of(row, texts)
    source = passages.source_of(LanguageModelConfig(name="trigram", source="ngram:next-token-trigram"))
    expected = passages.expectations_of(source, row, texts)
    people, model = [], []
    for text in texts:
        sha256 = text_hash(text.text)
        for token, said in zip(cut[sha256], expected[sha256], strict=True):
            if token["start"] > 60:
                truth = text.text[token["start"] : token["end"]]
                people.append(chance_of(text.text[: token["start"]], truth))
                model.append(said["top_id"] == token["id"])
    assert 0.02 < np.mean(people) < 0.75 * np.mean(model)
