"""Token comparison studies: preparation, screens, rewards, whole stages, the report, and what no page may tell."""

import csv
import io
import json
import math
from decimal import Decimal
from functools import partial
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
from survey.contracts import instruments
from survey.exceptions import FieldErrors, FileErrors, HunchError
from survey.instruments.token_comparison import preparing
from survey.instruments.token_comparison.analysis.rewards import points
from survey.instruments.token_comparison.models import ContextReading, PreparedContext, StatedChance, TokenPair
from survey.instruments.token_comparison.options import ComparisonOptions
from survey.instruments.token_comparison.practice import ComparisonPractice
from survey.instruments.token_comparison.reports import own_answers
from survey.instruments.token_comparison.reports.study_report import floor_of
from survey.instruments.token_comparison.screens import end_of
from survey.models import ApiToken, Bank, NgramModel, Score, Sitting, Stage, Study
from survey.panels.money import points_of
from survey.services.banks import ngrams, passages
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
from tests.frontend.test_statements import MOST
from tests.kept import kept
from tests.predictors.fake_endpoint import running, serving
from tests.statements import counted

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

PASSAGES = [
    "The old man sat down by the river and looked at the water for a long time.",
    "Nobody knew why the lights went out, but the old house was dark all night long.",
    "She opened the letter with trembling hands and looked at the words for a long time.",
    "Rain fell all night long on the roof of the old house by the river and the road.",
    "He never told his sister the truth about the old man and the letter by the river.",
    "A small dog barked at the postman, and the postman looked at the dog for a long time.",
]
BLOCKS = [
    {"kind": "consent", "text": "Do you agree?", "version": "1"},
    {"kind": "items"},
    {"kind": "end", "text": "Thanks."},
]
PRACTICE = {
    "kind": "practice",
    "text": "Try it.",
    "examples": [
        {"context": "Birds can", "true": " fly", "other": " read", "g_true": "0.4"},
        {"context": "One, two,", "true": " three", "other": " tree", "g_true": "0.5"},
        {"context": "It was a", "true": " dark", "other": " blue", "g_true": "0.1"},
    ],
}
OPTIONS = {"generator": "ngram:two", "draws": 12, "contexts_per_text": 1, "endowment": 500}
COMPARISON: dict[str, Any] = {
    "slug": "compare",
    "bank": "passages",
    "instrument": {"kind": "token_comparison", "options": OPTIONS},
    "models": [{"name": "unigram", "source": "ngram:one"}],
    "candidates": {"size": 1000},
    "sitting": {"items": 3},
    "roles": {"holdout": 0, "controls": 0},
    "stages": [{"sittings": 6}, {"sittings": 4}],
    "blocks": BLOCKS,
}


@pytest.fixture
def compared() -> Study:
    return comparison_study()


@pytest.fixture(autouse=True)
def prepared(request: pytest.FixtureRequest) -> None:
    if "compared" not in request.fixturenames:
        prepare()


@kept
def prepare() -> None:
    """A bank, a tokenizer and two n-gram models of the same words: the generator, and one to check."""
    rows = "".join(f'p{number},source_{number % 2},"{text}"\n' for number, text in enumerate(PASSAGES))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "passages.csv"
        path.write_text(f"id,source,text\n{rows}", encoding="utf-8")
        call_command("import_questions", str(path), bank="passages", format="passages", stdout=io.StringIO())
    texts = [Text(str(number), text) for number, text in enumerate(PASSAGES)]
    passages.train_tokenizer(texts, name="own", size=320)
    cut_by = passages.open_tokenizer("pairs:own")
    for name, order in (("one", 1), ("two", 2)):
        ngrams.train(texts, name=name, order=order, unit="token", smoothing="kneser_ney", cut_by=cut_by)


def opened(study: Study, index: int = 1) -> Stage:
    stage = Stage.objects.select_related("study__bank").get(study=study, index=index)
    return lifecycle.open_stage(plan_stage(stage) if stage.state == Stage.State.DRAFT else stage)


def texts_of(step: Step) -> dict[str, str]:
    return {name: str(part["value"]) for name, part in step.screen.parts.items()} if step.screen else {}


def play(study: Study, *, null: bool = False) -> Sitting:
    sitting = begin_sitting(study=study, ids=new_open_person())
    person = cast.simulated_person(sitting, null=null)
    while (step := current_step(sitting)).kind != "end":
        data = person.answer(screen=step.screen.name, parts=texts_of(step)) if step.screen else {}
        advance(sitting=sitting, step=step.number, data=data)
        sitting.refresh_from_db()
    return sitting


@kept
def comparison_study() -> Study:
    """Both stages are frozen."""
    prepare()
    study = cast.study(**COMPARISON)
    for index in (1, 2):
        stage = opened(study, index)
        for _person in range(stage.config.sittings):
            play(study)
        jobs.run_inline(lifecycle.close_stage(stage))
    return study


def test_a_study_goes_through_its_stages(compared: Study, tmp_path: Path) -> None:
    study = compared
    assert PreparedContext.objects.count() == ContextReading.objects.count() == 6
    for stage in Stage.objects.select_related("study__bank").filter(study=study):
        assert not verify_stage(stage).differences
        for booklet in stage.booklets.all():
            contexts = [slot.item.token_pair.context_id for slot in booklet.slots.all()]
            assert len(set(contexts)) == len(contexts) == 3
    assert StatedChance.objects.count() == 30

    live = reports.make(study, "token_comparison_live")
    stated = list(StatedChance.objects.all())
    assert (live.data["answers"], live.data["stages"]) == (30, 2)
    assert live.data["towards_true"] == sum(answer.percent_true > 50 for answer in stated)
    for row in live.tables[0].file_rows():
        own = [answer for answer in stated if answer.response.assignment.slot.stage.index == row[0]]
        assert row[1:4] == [
            len(own),
            len({answer.response.assignment.sitting.respondent_id for answer in own}),
            len({answer.response.assignment.slot.item.token_pair.context_id for answer in own}),
        ]
        assert row[3] < row[1]
        assert row[4:] == pytest.approx(
            [
                np.mean([answer.percent_true > 50 for answer in own]),
                np.mean([answer.percent_left == 50 for answer in own]),
                np.mean([float(answer.reward) for answer in own]),
            ]
        )
    report = reports.make(study, "token_comparison", {"by": ["person"]})
    people = report.data["people"]
    assert report.data["answers"] == 30 and people["perplexity"] == pytest.approx(math.exp(people["loss"]))
    assert [check["model"] for check in report.data["checks"]] == ["unigram", "generator"]
    assert report.data["checks"][1]["exact"]["difference"] == 0
    # The chances are rounded ones, so that the interval is that of what lies behind them.
    own = report.data["unrounded"]
    assert people["resampled"] is None and own["difference"] is not None
    assert (own["resampled"] is None) is bool(report.data["why_no_perplexity"])
    assert report.data["floor_reached"] == 0 and report.data["sittings"] == 10

    files.write_export(study, tmp_path)
    with (tmp_path / "answers.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        own = int(row["percent_left"]) if row["true_side"] == "left" else 100 - int(row["percent_left"])
        assert int(row["percent_true"]) == own
        assert float(row["reward"]) == pytest.approx(points(own, g_true=float(row["g_true"])), abs=1e-4)
        assert row["true_token"] != row["other_token"]
        assert int(row["same"]) + int(row["multiplicity"]) <= int(row["draws"]) == 12
    # The file of answers gives the same figure by itself, but for the contexts that nobody was asked about.
    again = own_answers.read_answers(tmp_path / "comparisons.csv")
    built = own_answers.built_from(again)
    assert built.comparisons.draws.tolist() == [12.0] * built.comparisons.contexts
    assert len(built.answers) == 30
    assert "true_favoured" in json.dumps(estimate(study).as_json())


def reading_client() -> Client:
    """Of a person who may read all studies by API."""
    user, made = User.objects.get_or_create(username="reader")
    if made:
        user.user_permissions.add(Permission.objects.get(codename="export_study"))
        cast.join_all(user)
    return Client(headers={"Authorization": f"Token {ApiToken.issue(user=user)[1]}"})


def test_the_reward_comes_after_the_answer_and_is_paid(client: Client) -> None:
    study = cast.study(**{**COMPARISON, "blocks": [BLOCKS[0], PRACTICE, *BLOCKS[1:]]})
    opened(study)
    sitting = begin_sitting(study=study, ids=new_open_person())
    seen: list[tuple[str, int, str]] = []
    total = Decimal(500)
    while (step := current_step(sitting)).kind != "end":
        if step.screen is not None:
            seen.append((step.kind, step.position or 0, step.screen.name))
        if step.kind == "item" and step.screen is not None and step.screen.name == "revealed":
            stated = StatedChance.objects.order_by("response__answered_at").last()
            assert stated is not None
            total += stated.reward
            assert f"You now have {total:,.0f} points." == step.screen.words["total"]
            assert step.screen.form is None
        if step.kind == "practice" and step.screen is not None and step.screen.name == "revealed":
            assert step.screen.words["given"] == "You chose A, 80 % sure."
            percent = 80 if step.screen.words["true"] == "A was right." else 20
            reward = points(percent, g_true=float(PRACTICE["examples"][step.position - 1]["g_true"]))  # type: ignore[index]
            cost = "cost" if reward < 0 else "give"
            assert step.screen.words["reward"] == f"In the study this would {cost} {abs(round(reward))} points."
            assert ("This was practice" in step.screen.words.get("total", "")) == (reward < 0)
        advance(sitting=sitting, step=step.number, data={"percent_left": "80"})
        sitting.refresh_from_db()
    both = ["compare", "revealed"]
    assert seen == [
        *(("practice", number, name) for number in (1, 2, 3) for name in both),
        *(("item", number, name) for number in (1, 2, 3) for name in both),
    ]
    assert Score.objects.count() == 3
    assert points_of([sitting])[sitting.pk] == pytest.approx(total / 100, abs=Decimal("0.001"))


def test_nothing_tells_the_true_token_or_a_probability_before_the_answer(client: Client) -> None:
    study = cast.study(**COMPARISON)
    opened(study)
    page = arrive(client, slug="compare")
    for number in (1, 2, 3):
        response = client.get("/s/compare/sitting")
        sitting = Sitting.objects.get(stage__study=study)
        pair = TokenPair.objects.select_related("context", "question").get(
            item=sitting.assignments.get(position=number).slot.item_id
        )
        html, said = response.content.decode(), f"{response.content.decode()} {dict(response.headers)}"
        assert {page.parts["left"], page.parts["right"]} == {
            pair.context.true_text,
            pair.other_text,
        }
        assert "·" not in html
        for log in (pair.context.log_g_true, pair.log_g_other):
            chance = math.exp(log)
            for secret in (f"{chance:.3f}", f"{chance:.4f}", f"{100 * chance:.1f}", f"{log:.3f}"):
                assert secret not in said
        for secret in (pair.item.key, "true_id", "multiplicity", "reward", "Your reward", pair.question.external_id):
            assert f">{secret}<" not in said and f'"{secret}"' not in said
        # What follows in the text stands nowhere but in the two tokens.
        following = pair.question.plain[pair.context.end :]
        assert len(following) < 12 or following[:25] not in html
        screen = current_step(sitting).screen
        assert screen is not None and set(screen.parts) == {"context", "end", "left", "right"}
        assert pair.shown.endswith(screen.parts["end"]["value"])
        told = json.dumps(screen.content(), default=str)
        assert "true" not in told.replace("true one", "").casefold()
        sent = client.post(
            "/s/compare/sitting", {**page.hidden, "percent_left": "50"}, headers={"X-Hunch-Exchange": "1"}
        )
        shown_page = read(sent.content.decode())
        assert shown_page.parts["true"] in pair.context.true_text
        sent = client.post("/s/compare/sitting", shown_page.hidden, headers={"X-Hunch-Exchange": "1"})
        page = read(sent.content.decode())
    sides = StatedChance.objects.values_list("true_is_left", flat=True)
    assert len(sides) == 3


@pytest.mark.thorough
@pytest.mark.parametrize("percent", ["", "0", "100", "55", "left", "1e1"])
def test_a_chance_that_is_not_offered_is_refused(percent: str) -> None:
    study = cast.study(**COMPARISON)
    opened(study)
    sitting = begin_sitting(study=study, ids=new_open_person())
    step = current_step(sitting)
    while step.kind != "item":
        advance(sitting=sitting, step=step.number, data={})
        sitting.refresh_from_db()
        step = current_step(sitting)
    with pytest.raises(FieldErrors, match="Choose one of the points"):
        advance(sitting=sitting, step=step.number, data={"percent_left": percent})
    assert not StatedChance.objects.exists()


@pytest.mark.parametrize("true_first", [True, False])
def test_surely_a_is_still_the_chance_of_the_token_that_is_shown_first(client: Client, true_first: bool) -> None:
    """The row runs from A to B, and what is stored is the chance of A, which is the part `left`: for the same token
    the same number as when the row ran the other way."""
    study = cast.study(**COMPARISON)
    opened(study)
    page = arrive(client, slug="compare")
    pair = TokenPair.objects.select_related("context").get(
        item=Sitting.objects.get().assignments.get(position=1).slot.item
    )
    tokens = {True: pair.context.true_text, False: pair.other_text}
    is_a = page.parts["left"] == tokens[true_first]
    values = [field["value"] for field in page.inputs if field.get("name") == "percent_left"]
    marks = [page.labels[f"id_percent_left_{number}"] for number in range(1, 12)]
    assert values == ["99", "90", "80", "70", "60", "50", "40", "30", "20", "10", "1"]
    assert marks[0] == "99: surely A" and marks[5] == "50: I don’t know" and marks[-1] == "99: surely B"
    assert (marks[1], marks[-2]) == ("90: A 90", "90: B 90")
    surely = marks.index("99: surely A" if is_a else "99: surely B")
    client.post("/s/compare/sitting", {**page.hidden, "percent_left": values[surely]})
    stated = StatedChance.objects.get()
    assert stated.percent_left == (99 if is_a else 1)
    assert stated.percent_true == (99 if true_first else 1)
    assert float(stated.reward) == pytest.approx(
        points(stated.percent_true, g_true=math.exp(pair.context.log_g_true)), abs=1e-4
    )


@pytest.mark.parametrize(
    ("context", "end"),
    [
        ("Birds can fly, and fish can", "fly, and fish can"),
        ("One  two three four five ", "two three four five "),
        ("", ""),
        ("One", "One"),
    ],
)
def test_the_last_words_stand_in_front_of_each_token(context: str, end: str) -> None:
    assert end_of(context) == end


def test_preparing_draws_from_the_seed_and_only_what_people_can_read() -> None:
    options = ComparisonOptions(**OPTIONS)
    questions = list(Bank.objects.get(name="passages").questions.order_by("position"))
    prepared = preparing.prepare(questions, options)
    assert (prepared.contexts, prepared.made) == (6, 6)
    assert preparing.prepare(questions, options).made == 0
    first = {row.text_sha256: (row.position, row.drawn) for row in PreparedContext.objects.all()}
    for row in PreparedContext.objects.all():
        assert row.same + sum(other.times for other in row.others) == row.draws == 12
        assert row.position >= 8 and row.log_g_true < 0
        assert row.true_id not in [other.id for other in row.others]
        readable = set(preparing.readable_ids(row.tokenizer).tolist())
        assert {row.true_id, *(other.id for other in row.others)} <= readable
        assert all(other.log_g < 0 for other in row.others)
    PreparedContext.objects.all().delete()
    preparing.prepare(questions, options)
    assert first == {row.text_sha256: (row.position, row.drawn) for row in PreparedContext.objects.all()}
    preparing.prepare(questions, options.model_copy(update={"draw_seed": 2}))
    assert len({str(row.drawn) for row in PreparedContext.objects.all()}) > 6


def test_each_text_draws_from_a_seed_of_its_own() -> None:
    questions = list(Bank.objects.get(name="passages").questions.order_by("position"))
    preparing.prepare(questions, ComparisonOptions(**OPTIONS))
    assert PreparedContext.objects.values("text_sha256").distinct().count() == 6
    assert PreparedContext.objects.values("seed").distinct().count() == 6


def test_a_model_behind_a_server_reads_each_token_after_its_context(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same model once by the ids of its tokens, and once as a server that lists 5 as text."""
    study = cast.study(**COMPARISON)
    (near,) = study.config.models
    contexts = list(PreparedContext.objects.select_related("tokenizer"))
    far = near.model_copy(update={"name": "far", "source": "endpoint:gpt-3"})
    questions = list(Bank.objects.get(name="passages").questions.order_by("position"))
    with running() as fake:
        fake.answer = serving(ngrams.load(near.source.partition(":")[2]))
        monkeypatch.setenv("HUNCH_LLM_URL", fake.url)
        assert preparing.prepare(questions, ComparisonOptions(**OPTIONS), [far]).read == {"far": len(contexts)}
    by_ids, by_characters = (preparing.readings_of(model, contexts) for model in (near, far))
    for key, (true, others) in by_ids.items():
        assert by_characters[key][0] == pytest.approx(true, abs=0.1)
        assert by_characters[key][1] == pytest.approx(others, abs=0.1)
    with pytest.raises(FileErrors, match="says nothing of the tokens that were drawn"):
        cast.study(**{**COMPARISON, "slug": "filed", "models": [{"name": "f", "source": "file:x.csv"}]})


def test_of_a_model_whose_files_have_changed_the_newest_reading_counts() -> None:
    study = cast.study(**COMPARISON)
    (model,) = study.config.models
    contexts = list(PreparedContext.objects.select_related("tokenizer"))
    before = preparing.readings_of(model, contexts)
    NgramModel.objects.filter(name="one").delete()
    cut_by = passages.open_tokenizer("pairs:own")
    texts = [Text(str(number), text) for number, text in enumerate([*PASSAGES, PASSAGES[0]])]
    ngrams.train(texts, name="one", order=1, unit="token", smoothing="kneser_ney", cut_by=cut_by)
    questions = list(Bank.objects.get(name="passages").questions.order_by("position"))
    options = ComparisonOptions(**OPTIONS)
    assert preparing.prepare(questions, options, [model]).read == {"unigram": 6}
    after = preparing.readings_of(model, contexts)
    newest = {reading.context_id: reading.log_true for reading in ContextReading.objects.order_by("pk")}
    assert {key: log for key, (log, _others) in after.items()} == newest
    assert all(after[key][0] != before[key][0] for key in before) and len(before) == 6
    assert preparing.prepare(questions, options, [model]).read == {"unigram": 0}


def test_probabilities_are_those_among_readable_tokens() -> None:
    """At each context the generator's probabilities of all readable tokens sum to 1."""
    options = ComparisonOptions(**OPTIONS)
    questions = list(Bank.objects.get(name="passages").questions.order_by("position"))[:2]
    preparing.prepare(questions, options)
    reader = ngrams.load("two")
    for row, question in zip(PreparedContext.objects.order_by("pk"), questions, strict=True):
        ids = preparing.readable_ids(row.tokenizer)
        said = preparing.log_probabilities(reader, Text("x", question.plain), ids, [row.position])[row.position]
        whole = sum(math.exp(log) for log in said.values())
        assert math.exp(row.log_g_true) == pytest.approx(math.exp(said[row.true_id]) / whole)
        for other in row.others:
            assert math.exp(other.log_g) == pytest.approx(math.exp(said[other.id]) / whole)


def test_a_generator_that_gives_the_true_token_nothing_is_refused() -> None:
    few = [Text("a", PASSAGES[0]), Text("b", PASSAGES[1])]
    cut_by = passages.open_tokenizer("pairs:own")
    ngrams.train(few, name="raw", order=3, unit="token", smoothing="none", cut_by=cut_by)
    with pytest.raises(FileErrors, match=r"the generator gives its token .* the probability 0"):
        cast.study(**{**COMPARISON, "instrument": {"kind": "token_comparison", "options": {"generator": "ngram:raw"}}})
    assert not PreparedContext.objects.exists()


def test_a_generator_that_has_changed_is_refused() -> None:
    options = ComparisonOptions(**OPTIONS)
    questions = list(Bank.objects.get(name="passages").questions.order_by("position"))
    preparing.prepare(questions[:3], options)
    NgramModel.objects.filter(name="two").delete()
    texts = [Text("a", " ".join(PASSAGES[:3]))]
    cut_by = passages.open_tokenizer("pairs:own")
    ngrams.train(texts, name="two", order=2, unit="token", smoothing="kneser_ney", cut_by=cut_by)
    with pytest.raises(HunchError, match="has changed since contexts were made"):
        preparing.prepare(questions, options)
    assert PreparedContext.objects.count() == 3


def test_a_passage_that_is_too_short_is_named(tmp_path: Path) -> None:
    path = tmp_path / "short.csv"
    path.write_text('id,source,text\ns1,a,"The old"\n', encoding="utf-8")
    call_command("import_questions", str(path), bank="passages", format="passages", stdout=io.StringIO())
    with pytest.raises(FileErrors, match=r"s1: has . tokens, and a context needs 8 and one more"):
        cast.study(**COMPARISON)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"generator": ""}, "generator: is missing"),
        ({"generator": "endpoint:x"}, "names nothing that can draw tokens"),
        ({"generator": "ngram:nowhere"}, "nowhere"),
        ({"ratios": [0, 50, 100]}, "between 1 and 99"),
        ({"ratios": [10, 50, 80]}, "symmetric about 50"),
        ({"ratios": [10, 90]}, "symmetric about 50"),
        ({"ratios": [50, 10, 90]}, "rising order"),
        ({"draws": 1}, "draws"),
        ({"context_tokens": 3}, "context_tokens"),
    ],
)
def test_options_that_cannot_be_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(FileErrors) as refused:
        cast.study(**{**COMPARISON, "instrument": {"kind": "token_comparison", "options": {**OPTIONS, **changes}}})
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"g_true": "0"}, "g_true: '0' is no chance"),
        ({"other": " fly"}, "other: is the true token"),
        ({"reply": "x"}, "reply: unknown"),
    ],
)
def test_practice_that_cannot_be_is_refused(changes: dict[str, str], said: str) -> None:
    example = {**PRACTICE["examples"][0], **changes}  # type: ignore[dict-item]
    with pytest.raises(FileErrors) as refused:
        cast.study(**{**COMPARISON, "blocks": [BLOCKS[0], {**PRACTICE, "examples": [example]}, *BLOCKS[1:]]})
    assert said in str(refused.value)


def test_the_database_refuses_what_cannot_be() -> None:
    study = cast.study(**{**COMPARISON, "sitting": {"items": 1}})
    opened(study)
    play(study)
    for change in (
        lambda: StatedChance.objects.update(percent_left=0),
        lambda: StatedChance.objects.update(percent_left=100),
        lambda: TokenPair.objects.update(multiplicity=0),
        lambda: TokenPair.objects.update(log_g_other=0.1),
        lambda: PreparedContext.objects.update(same=13),
        lambda: PreparedContext.objects.update(log_g_true=0.1),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            change()


def test_commands_prepare_a_study_file_and_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "study.toml"
    path.write_text(cast.study_text(**COMPARISON), encoding="utf-8")
    call_command("token_comparison", str(path), prepare=True)
    assert "6 contexts of 6 texts, 6 of them drawn now" in capsys.readouterr().out
    assert ContextReading.objects.count() == 6
    cast.study(**COMPARISON)
    call_command("token_comparison", "compare", prepare=True)
    assert "unigram: 0 contexts read now" in capsys.readouterr().out
    with pytest.raises(HunchError, match="no comparison of compare is answered yet"):
        reports.make(Study.objects.get(slug="compare"), "token_comparison")


def test_a_person_meets_a_text_once_unless_contexts_stay_together() -> None:
    options = {**OPTIONS, "contexts_per_text": 2}
    study = cast.study(**{**COMPARISON, "instrument": {"kind": "token_comparison", "options": options}})
    instrument = instruments.of_study(study)
    questions = instrument.usable(list(study.bank.questions.order_by("position")))
    universe = instrument.universe(questions)
    assert len({instrument.booklets.conflict_keys(row) for row in universe}) == 6
    options = {**options, "contexts_together": True}
    together = cast.study(
        **{**COMPARISON, "slug": "both", "instrument": {"kind": "token_comparison", "options": options}}
    )
    instrument = instruments.of_study(together)
    assert len({instrument.booklets.conflict_keys(row) for row in universe}) == len(universe)
    assert any("contexts_together" in str(note) for note in instrument.remarks())


def test_simulated_people_state_the_odds_that_they_hold() -> None:
    from survey.instruments.token_comparison.people import log_held

    study = cast.study(**COMPARISON)
    person = instruments.of_study(study).simulated_person(seed=1)
    person.ability = 0.0
    question = study.bank.questions.order_by("position").first()
    assert question is not None
    (context,) = preparing.contexts_of(ComparisonOptions(**OPTIONS), [question])[question.pk]
    other, shown_text = context.others[0], question.plain[: context.end]
    parts = {
        "context": shown_text,
        "left": context.true_text,
        "right": other.text,
    }
    said = [int(person.answer(screen="compare", parts=parts)["percent_left"]) for _ in range(300)]
    odds = log_held(shown_text, context.true_text, context.log_g_true) - log_held(shown_text, other.text, other.log_g)
    assert np.mean(said) == pytest.approx(100 / (1 + math.exp(-odds)), abs=4)
    null = instruments.of_study(study).simulated_person(seed=1, null=True)
    assert null.answer(screen="compare", parts=parts) == {"percent_left": "50"}
    assert person.answer(screen="revealed", parts={"context": shown_text, "true": "x"}) == {}


def test_pages_need_no_more_statements_than_those_of_other_instruments(client: Client) -> None:
    study = cast.study(**{**COMPARISON, "sitting": {"items": 2}})
    opened(study)
    page = arrive(client, slug="compare")
    counts: dict[str, set[int]] = {"GET": set(), "POST": set()}
    while page.main["data-kind"] != "end":
        data = {**page.hidden, "percent_left": "70"}
        response, posted = counted(partial(client.post, "/s/compare/sitting", data))
        assert response.status_code == 303
        response, got = counted(partial(client.get, "/s/compare/sitting"))
        page = read(response.content.decode())
        if page.main["data-kind"] == "item":
            counts["GET"].add(len(got))
            counts["POST"].add(len(posted))
    # Points cost one statement more, as in every study that scores; the sum so far another one.
    assert max(counts["GET"]) <= MOST["GET"] + 1, counts
    assert max(counts["POST"]) <= MOST["POST"] + 1, counts


def test_an_answer_is_taken_once_and_never_changed_after_its_reveal(client: Client) -> None:
    """A second tab, the same page sent again, a page of another screen: the first answer and its reward stay."""
    study = cast.study(**{**COMPARISON, "sitting": {"items": 2}})
    opened(study)
    page = arrive(client, slug="compare")
    again = {**page.hidden, "percent_left": "99"}
    client.post("/s/compare/sitting", {**page.hidden, "percent_left": "10"})
    first = StatedChance.objects.get()
    for data in (again, {**again, "percent_left": "1"}, {**again, "screen": "revealed"}):
        sent = client.post("/s/compare/sitting", data)
        assert sent.status_code in (303, 409, 422)
    stated = StatedChance.objects.get()
    assert (stated.pk, stated.percent_left, stated.reward) == (first.pk, 10, first.reward)
    signals, sitting = instruments.of_study(study).signals, Sitting.objects.get()
    assert list(signals.stated_values([sitting.pk])) == [(sitting.pk, "percent_left", 10)]
    assert not list(signals.stated_values([]))
    assert Score.objects.count() == 1
    # The sides are the same in every tab, and chances sent with the reveal are no answer.
    page = read(client.get("/s/compare/sitting").content.decode())
    assert "true" in page.parts
    client.post("/s/compare/sitting", {**page.hidden, "percent_left": "99"})
    assert StatedChance.objects.count() == 1
    parts, two = (read(client.get("/s/compare/sitting").content.decode()).parts for _tab in range(2))
    assert "left" in parts and parts == two


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        ({"context": "  "}, "context", "is missing"),
        ({"g_true": ""}, "g_true", "is missing"),
        ({"hint": "x"}, "hint", "unknown"),
        ({"other": "mat"}, "other", "is the true token"),
        ({"g_true": "0"}, "g_true", "is no chance"),
        ({"g_true": "1.5"}, "g_true", "is no chance"),
    ],
)
def test_a_practice_comparison_names_each_of_its_faults(changes: dict[str, str], name: str, said: str) -> None:
    example = {"context": "The cat sat on the", "true": "mat", "other": "hat", "g_true": "1"}
    examples = ComparisonPractice((10, 50, 90))
    assert list(examples.problems(example)) == []
    ((field, problem),) = examples.problems({**example, **changes})
    assert field == name and said in problem


def test_who_ends_with_exactly_nothing_is_counted_among_those_at_the_floor(compared: Study) -> None:
    sittings = StatedChance.objects.values("response__assignment__sitting").distinct().count()
    StatedChance.objects.update(reward=0)
    for endowment, at_floor in ((0, sittings), (1, 0)):
        options: Any = SimpleNamespace(endowment=endowment)
        assert floor_of(compared, options) == (at_floor, sittings)
