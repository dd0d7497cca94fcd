"""Preferences: two replies of language models are shown, and people and judges say which is better."""

import csv
import json
import re
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from tokenizers import Tokenizer
from tokenizers.models import BPE

from predictors import prompts as prompts_of_judges
from survey.contracts import instruments
from survey.exceptions import FileErrors, HunchError
from survey.instruments.preference import judging_calls, judging_runs, screens
from survey.instruments.preference.judging_runs import JudgeRun, import_judgements, judge_replies
from survey.instruments.preference.models import JudgeVerdict, ReplyComparison, ReplyJudgement
from survey.instruments.preference.rows import judges_of
from survey.models import (
    Assignment,
    AuditEntry,
    LanguageModel,
    ModelAnswer,
    Question,
    Sitting,
    SnapshotAnswer,
    Stage,
    Study,
)
from survey.services.answers.counting import counting, study_answers
from survey.services.plans.planning import plan_stage
from survey.services.results import reports
from survey.services.results.estimates.study_estimates import estimate
from survey.services.results.export import files
from survey.services.sittings.answering import advance
from survey.services.sittings.enrolment import begin_sitting, new_open_person
from survey.services.sittings.flow import current_step
from survey.services.stages import jobs, lifecycle
from survey.services.stages.verifying import verify_stage
from survey.simulator.page import Page
from tests import cast
from tests.frontend.pages import arrive
from tests.golden.psych_ds import errors_of
from tests.golden.test_chunks import in_any_chunks
from tests.golden.test_package import built
from tests.kept import kept
from tests.predictors.fake_endpoint import chat, refusal, running

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

MODELS = ("owl", "parrot", "raven")
PREFERENCE: dict[str, Any] = {
    "slug": "preference",
    "bank": "prompts",
    "instrument": {"kind": "preference", "options": {"models": list(MODELS)}},
    "candidates": {"size": 24},
    "sitting": {"items": 4},
    "roles": {"holdout": 0, "controls": 0.5, "control_kinds": ["repeat", "same"]},
    "stages": [
        {"sittings": 6},
        {"sittings": 6, "design": {"kind": "epsilon_greedy", "epsilon": 0.2, "top_fraction": 0.5}},
    ],
    "blocks": [
        {"kind": "consent", "text": "Do you agree?", "version": "1"},
        {"kind": "practice", "text": "Try.", "examples": [{"prompt": "Say hi.", "reply_1": "Hi.", "reply_2": "No."}]},
        {"kind": "items"},
        {"kind": "end", "text": "Thanks."},
    ],
}

WITHOUT_PRACTICE = [block for block in PREFERENCE["blocks"] if block["kind"] != "practice"]


@pytest.fixture
def prompts() -> None:
    import_prompts()


@kept
def import_prompts() -> None:
    with TemporaryDirectory() as folder:
        write_and_import(Path(folder))


def write_and_import(folder: Path) -> None:
    path = folder / "prompts.csv"
    categories = ("code", "talk")
    path.write_text(
        "id,source,text\n" + "".join(f"p{n},{categories[n % 2]},Write thing {n} & <b>more</b>.\n" for n in range(10))
    )
    call_command("import_questions", str(path), bank="prompts", format="prompts", html=True)
    rows = [
        f"{model},p{number},{'<i>' if model == 'owl' else ''}{'xyz'[place] * (10 + 30 * place)} {number}"
        for place, model in enumerate(MODELS)
        for number in range(10)
        if (model, number) != ("raven", 9)
    ]
    path = folder / "replies.csv"
    path.write_text("\n".join(["llm,question_id,response", *rows]) + "\n")
    call_command("import_replies", str(path), bank="prompts")


def opened(study: Study, index: int = 1) -> Stage:
    stage = Stage.objects.select_related("study__bank").get(study=study, index=index)
    return lifecycle.open_stage(plan_stage(stage) if stage.state == Stage.State.DRAFT else stage)


def play(study: Study) -> None:
    sitting = begin_sitting(study=study, ids=new_open_person())
    person = cast.simulated_person(sitting)
    while (step := current_step(sitting)).kind != "end":
        data: dict[str, Any] = {}
        if step.screen is not None:
            parts = {name: str(part["value"]) for name, part in step.screen.parts.items()}
            data = person.answer(screen=step.screen.name, parts=parts)
        advance(sitting=sitting, step=step.number, data=data)
        sitting.refresh_from_db()


def exported(study: Study, folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def files_of_comparisons(study: Study, folder: Path) -> list[tuple[str, str, str]]:
    """The prompts and models of all comparisons that were judged."""
    files.write_export(study, folder / "comparisons")
    rows = exported(study, folder / "comparisons", "preferences.csv")
    return sorted({(row["prompt"], row["model_a"], row["model_b"]) for row in rows})


def exported_again(study: Study, folder: Path) -> list[dict[str, str]]:
    files.write_export(study, folder)
    return exported(study, folder, "judgements.csv")


def test_what_most_people_prefer_is_written_for_those_who_train_reward_models() -> None:
    study = preference_study()
    for_pair: dict[tuple[str, str, str], list[int]] = {}
    for answer in counting(study.main_stages()):
        judgement = ReplyJudgement.objects.get(response__assignment=answer)
        comparison = answer.slot.item.comparison
        if judgement.place is None:
            continue
        towards_a = judgement.towards_a(judgement.place)
        prompt, a, b = (comparison.question.external_id, comparison.a.response, comparison.b.response)
        for_pair.setdefault((prompt, *sorted((a, b))), []).append((1 if towards_a > 0 else -1) * (1 if a < b else -1))
    (file,) = reports.make(study, "preferences", {}).files
    assert file.name == "chosen_rejected.jsonl"
    lines = [json.loads(line) for line in file.content().decode().splitlines()]
    seen = {}
    for line in lines:
        assert line["prompt"] == f"Write thing {line['prompt_id'][1:]} & more."
        assert (
            line["chosen"]
            == ModelAnswer.objects.get(
                language_model__name=line["chosen_model"], question__external_id=line["prompt_id"]
            ).response
        )
        first, last = sorted((line["chosen"], line["rejected"]))
        sign = 1 if line["chosen"] == first else -1
        seen[line["prompt_id"], first, last] = sign * (line["votes_for"] - line["votes_against"])
        assert line["votes_for"] > line["votes_against"] >= 0
    assert seen == {key: sum(votes) for key, votes in for_pair.items() if sum(votes)} and len(seen) > 10


def test_judges_and_categories_have_elo_ratings_of_their_own(tmp_path: Path) -> None:
    study = preference_study()
    answers = files_of_comparisons(study, tmp_path)
    path = tmp_path / "verdicts.csv"
    lines = [f"{prompt},{a},{b},j,{'a' if a < b else 'b'}" for prompt, a, b in answers]
    path.write_text("\n".join(["prompt,model_a,model_b,judge,outcome", *lines]) + "\n")
    import_judgements(path, study)
    (ranking,) = (table for table in reports.make(study, "preferences", {}).tables if table.name == "ranking")
    elo = {(row[0], row[1], row[3]): row[5] for row in ranking.rows}
    # The judge prefers the name that stands first in the alphabet.
    first, *_between, last = sorted(MODELS)
    assert elo["j", "", first] > 1000 > elo["j", "", last]
    assert sum(elo["j", "", model] for model in MODELS) == pytest.approx(3000)
    assert {(by, category) for by, category, _model in elo if elo[by, category, _model] is not None} >= {
        ("people", ""),
        ("j", ""),
    }


def test_items_are_pairs_of_replies_to_prompts_that_have_both(prompts: None) -> None:
    study = cast.study(**PREFERENCE)
    instrument = instruments.of_study(study)
    questions = instrument.usable(list(study.bank.questions.order_by("position")))
    assert instrument.universe_size(questions) == 9 * 3 + 1
    # Another order of the models, or other replies, make other items.
    models, replies = instrument.universe_fingerprint()
    assert models == list(MODELS) and replies[:2] == [[0, [0, 1, 2]], [1, [0, 1, 2]]] and len(replies) == 10


def test_a_bank_of_327_prompts_and_four_models_has_1962_items(db: None) -> None:
    from survey.instruments.preference.instrument import Preference

    instrument = Preference()
    instrument.__dict__["replies"] = {number: dict.fromkeys(range(4), 0) for number in range(327)}
    questions = [type("Prompt", (), {"pk": number})() for number in range(327)]
    assert len(instrument.universe(questions)) == 1962


@kept
def preference_study() -> Study:
    """Both stages are frozen."""
    import_prompts()
    study = cast.study(**PREFERENCE)
    for index in (1, 2):
        stage = opened(study, index)
        for _person in range(6):
            play(study)
        jobs.run_inline(lifecycle.close_stage(stage))
    return study


def test_a_study_goes_through_its_stages_and_is_read_in_every_way(tmp_path: Path) -> None:
    study = preference_study()
    for stage in Stage.objects.select_related("study__bank").filter(study=study):
        assert not verify_stage(stage).differences
    assert SnapshotAnswer.objects.count() == 48
    second = Stage.objects.get(study=study, index=2)
    drawn = [slot for slot in second.slots.select_related("stratum") if slot.role == "sampled"]
    assert {slot.stratum.name for slot in drawn if slot.stratum is not None} == {"top", "rest"}
    assert {round(slot.inclusion_probability or 0, 3) for slot in drawn} == {
        round(slot.stratum.slots / slot.stratum.size, 3) for slot in drawn if slot.stratum is not None
    }

    # Sides are drawn, and change when an item is asked again.
    of_slot = {
        (judgement.response.assignment.sitting_id, judgement.response.assignment.slot_id): judgement
        for judgement in ReplyJudgement.objects.select_related("response__assignment__slot")
    }
    assert {judgement.a_first for judgement in of_slot.values()} == {True, False}
    repeats = [
        (key, judgement)
        for key, judgement in of_slot.items()
        if judgement.response.assignment.slot.repeat_of_id is not None
    ]
    assert repeats
    for (sitting, _slot), again in repeats:
        assert again.a_first is not of_slot[sitting, again.response.assignment.slot.repeat_of_id].a_first

    # Export
    folder = tmp_path / "export"
    files.write_export(study, folder)
    rows = exported(study, folder, "answers.csv")
    assert len(rows) == len(in_any_chunks(study)) == 48
    assert {(row["role"], row["control_kind"]) for row in rows} == {
        ("sampled", ""),
        ("control", "same"),
        ("repeat", ""),
    }
    assert all(row["model_a"] == row["model_b"] for row in rows if row["control_kind"] == "same")
    for row in rows:
        if row["place"]:
            towards_first = 4.5 - int(row["place"])
            assert float(row["rating_a"]) == (towards_first if row["first"] == "a" else -towards_first)
    answers = exported(study, folder, "preferences.csv")
    assert len(answers) == sum(row["place"] != "" and row["role"] == "sampled" for row in rows)
    assert all(0 < float(row["probability"]) <= 1 for row in answers if row["role"] == "sampled")
    assert exported(study, folder, "judgements.csv") == []
    assert "judgements.csv" in (folder / "codebook.md").read_text()

    # Estimates and reports
    estimates = estimate(study, by=["pair"]).as_json()
    assert "pairs of replies to the bank's 10 prompts" in str(estimates) and "owl : raven" in str(estimates)
    out = tmp_path / "report"
    call_command("preferences", study.slug, "--out", str(out))
    data = json.loads((out / "preferences.json").read_text())["data"]
    assert set(data["bradley_terry"]["people"]) == set(MODELS)
    assert abs(sum(data["bradley_terry"]["people"].values())) < 1e-9
    assert data["judgements"] == sum(row["role"] == "sampled" and row["place"] != "" for row in rows)
    assert data["lengths"][0]["what"] == "prompts"
    letters = {letter: place for place, letter in enumerate(" abcdefghijklmnopqrstuvwxyz")}
    Tokenizer(BPE(vocab=letters, merges=[])).save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "r.json").write_text('{"results": {"arc": {"acc,none": 0.5, "acc_stderr,none": 0.1}}}')
    beside = ("--harness", f"owl={tmp_path / 'r.json'}", "--tokenizer", str(tmp_path))
    call_command("preferences", study.slug, *beside, "--out", str(tmp_path / "beside"))
    more = json.loads((tmp_path / "beside" / "preferences.json").read_text())["data"]
    assert more["harness"][0]["model"] == "owl" and more["bradley_terry"] == data["bradley_terry"]
    assert more["lengths"][1]["what"] == data["lengths"][1]["what"]
    assert more["lengths"][1]["longest"] > data["lengths"][1]["longest"], "letters, not words"
    with pytest.raises(HunchError, match=r"question: 'nice' is none of helpful, truthful"):
        reports.make(study, "preferences", {"question": ["nice"]})

    # A judge next to the people
    path = tmp_path / "verdicts.csv"
    items = {(row["prompt"], row["model_a"], row["model_b"]) for row in answers}
    lines = [f"{','.join(item)},j,{'a' if number % 3 else 'b'}" for number, item in enumerate(sorted(items))]
    path.write_text("\n".join(["prompt,model_a,model_b,judge,outcome", *lines]) + "\n")
    import_judgements(path, study)
    judged = reports.make(study, "preferences", {}).data["judges"]["j"]
    assert judged["items"] == len(items) and 0 <= judged["accuracy"] <= 1 and judged["unreadable"] == 0
    instrument = instruments.of_study(study)
    rows_of = study_answers(study)
    found_there = instrument.expectations.of(rows_of, np.ones(len(rows_of)), event="preferred")
    assert [reader.name for reader in found_there.readers] == ["j"] and len(found_there.items) == len(items)
    assert set(found_there.value.tolist()) <= {0.0, 1.0} and np.isfinite(found_there.readers[0].chance).all()
    assert len(exported_again(study, tmp_path / "later")) == len(items)

    # The comparisons of the export, analysed as a file as they are, give the same ranking.
    again, later = tmp_path / "again", tmp_path / "later"
    own = ("--comparisons", str(later / "preferences.csv"), "--judgements", str(later / "judgements.csv"))
    call_command("preferences", *own, "--each-answer", "--out", str(again))
    same = json.loads((again / "preferences.json").read_text())
    assert same["bradley_terry"]["people"] == pytest.approx(data["bradley_terry"]["people"], abs=1e-6)
    assert same["side"]["people"] == pytest.approx(data["side"]["people"], abs=1e-6)
    assert same["judges"]["j"]["accuracy"] == pytest.approx(judged["accuracy"])
    assert errors_of(built(study, tmp_path / "package", audience="public")) == set()
    (judges,) = (table for table in reports.make(study, "preferences", {}).tables if table.name == "judges")
    assert judges.views[0].title == "j against people"
    Question.objects.filter(external_id="p1").update(answer="4")
    ModelAnswer.objects.filter(question__external_id="p1", language_model__name="owl").update(
        correct=False, unreadable=1
    )
    said = "owl: 1 of its replies to 1 questions could not be read; they count as not right"
    made = reports.make(study, "preferences", {})
    assert said in made.notes
    (beside,) = (table for table in made.tables if table.name == "beside")
    assert [row for row in beside.rows if row[1] == "unreadable replies"] == [("owl", "unreadable replies", 1)]
    assert not any("unreadable" in name for name in made.data["rank_correlations"])
    path.write_text(path.read_text().replace(",j,a", ",k,unreadable").replace(",j,b", ",k,unreadable"))
    import_judgements(path, study)
    readers = instruments.of_study(study).expectations.of(rows_of, np.ones(len(rows_of)), event="preferred").readers
    assert [reader.name for reader in readers] == ["j"]


def test_the_page_shows_two_replies_as_text_and_names_nobody(
    prompts: None, client: Client, django_assert_max_num_queries: Any
) -> None:
    study = cast.study(**{**PREFERENCE, "blocks": WITHOUT_PRACTICE})
    opened(study)
    page = arrive(client, slug="preference")
    begun = Assignment.objects.get(sitting__stage__study=study, position=1)
    comparison = ReplyComparison.objects.select_related("a", "b").get(item=begun.slot.item_id)
    assert {page.parts["reply_1"], page.parts["reply_2"]} == {comparison.a.response, comparison.b.response}
    with django_assert_max_num_queries(8):  # As many as a page of the belief update may take.
        answer = client.get("/s/preference/sitting")
    html = answer.content.decode()
    everything = html + str(answer.headers) + answer.wsgi_request.get_full_path() + str(client.cookies)
    assert not any(model in everything for model in MODELS)
    assert "<i>" not in html and "&amp; more" in html
    assert html.count('type="radio"') == 16 and 'value="8"' in html and html.count("<legend>") == 2
    token = client.cookies["hunch_sitting"].value
    by_api = client.get("/api/v1/sittings/current/", headers={"X-Sitting-Token": token})
    assert not any(model in by_api.content.decode() + str(by_api.headers) for model in MODELS)
    refused = client.post("/s/preference/sitting", {**page.hidden, "helpful": "9"}, follow=True)
    assert refused.content.decode().count("Choose one of the eight places") >= 2
    assert not ReplyJudgement.objects.exists()
    client.post("/s/preference/sitting", {**page.hidden, "cannot_judge": "on"})
    judgement = ReplyJudgement.objects.get()
    assert judgement.cannot_judge and judgement.place is None and judgement.places == {}


@pytest.mark.parametrize("replies_as", ["text", "markdown"])
def test_replies_may_be_shown_as_markdown_and_stay_as_they_are(prompts: None, client: Client, replies_as: str) -> None:
    reply = "a **bold** word <i>&</i> [here](https://a.example/)"
    examples = [{"prompt": "Say hi.", "reply_1": reply, "reply_2": reply}]
    practice = {"kind": "practice", "examples": examples}
    options = {**PREFERENCE["instrument"]["options"], "replies_as": replies_as}
    blocks = [PREFERENCE["blocks"][0], practice, *PREFERENCE["blocks"][2:]]
    study = cast.study(**{**PREFERENCE, "instrument": {"kind": "preference", "options": options}, "blocks": blocks})
    opened(study)
    arrive(client, slug="preference")
    html = client.get("/s/preference/sitting").content.decode()
    is_formatted = replies_as == "markdown"
    assert html.count("a <strong>bold</strong> word &lt;i&gt;&amp;&lt;/i&gt; here</p>") == 2 * is_formatted
    assert "<i>" not in html and 'href="https://a.example' not in html
    # The API and simulated people read the reply itself.
    screen = current_step(Sitting.objects.get()).screen
    assert screen is not None and screen.parts["reply_1"]["value"] == reply == Page(html).parts["reply_1"]
    assert screen.parts["reply_1"].get("format") == ("markdown" if is_formatted else None)


def test_a_long_reply_is_cut_with_a_mark_that_people_see(prompts: None, client: Client) -> None:
    options = {"models": ["owl", "raven"], "max_reply_characters": 30, "long_replies": "cut"}
    study = cast.study(
        **{
            **PREFERENCE,
            "instrument": {"kind": "preference", "options": options},
            "roles": {"holdout": 0},
            "blocks": [PREFERENCE["blocks"][0], *PREFERENCE["blocks"][2:]],
            "stages": [{"sittings": 2}],
        }
    )
    opened(study)
    arrive(client, slug="preference")
    html = client.get("/s/preference/sitting").content.decode()
    assert "z […]" in html and html.count("This reply was longer. It is cut here.") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"models": ["owl"]}, "instrument.options.models: "),
        ({"models": ["owl", "owl"]}, "owl stands there twice: name each once"),
        ({"models": ["owl", "eagle"]}, "eagle has no reply to the prompts of prompts"),
        ({"models": ["owl", "raven"], "reason": 2}, 'write "none", or a share above 0 and up to 1'),
        ({"models": ["owl", "raven"], "questions": ["reason"]}, "'reason': a question is a word such as helpful"),
        (
            {"models": ["owl", "raven"], "max_reply_characters": 60},
            "9 replies have more than 60 characters (p0 by",
        ),
        (
            {"models": ["owl", "raven"], "responses_per_item": 3},
            "1 people are to judge each comparison, and [instrument.options] says 3",
        ),
    ],
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, Any], said: str, prompts: None) -> None:
    with pytest.raises(FileErrors) as refused:
        cast.study(**{**PREFERENCE, "instrument": {"kind": "preference", "options": options}})
    assert said in str(refused.value)


def test_a_reply_of_just_the_longest_length_is_shown(prompts: None) -> None:
    options = {"models": ["owl", "raven"], "max_reply_characters": 72}
    few = {
        "roles": {"holdout": 0},
        "stages": [{"sittings": 2}],
        "instrument": {"kind": "preference", "options": options},
    }
    study = cast.study(**{**PREFERENCE, **few})
    assert not list(instruments.of_study(study).problems())
    assert [screens.cut("x" * 72, 72), screens.cut("x " * 37, 73)] == ["x" * 72, f"{'x ' * 36}x […]"]


def test_what_a_judge_costs_is_by_the_million_tokens_sent_and_returned(study: Study) -> None:
    tokens = judging_runs.JudgeResult("m", tokens_in=2_000_000, tokens_out=500_000)
    run = JudgeRun(study, "m", price_in=Decimal("0.5"), price_out=Decimal("1.5"))
    assert judging_runs._cost(run, tokens) == Decimal("1.75")
    assert judging_runs._cost(JudgeRun(study, "m", price_in=Decimal(1)), tokens) is None


def test_who_creates_a_study_learns_what_is_left_out_and_which_replies_name_their_model(prompts: None) -> None:
    ModelAnswer.objects.filter(question__external_id="p1", language_model__name="owl").update(response="I am Owl.")
    ModelAnswer.objects.filter(question__external_id="p2", language_model__name="owl").update(response="")
    instrument = instruments.of_study(cast.study(**PREFERENCE))
    remarks = "\n".join(str(note) for note in instrument.remarks())
    assert "raven has no reply to 1 of 10 prompts; these are left out for it" in remarks
    assert "owl has no reply to 1 of 10 prompts, 1 of them empty" in remarks
    assert "1 replies of owl name it (p1)" in remarks


# Judges


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("7", 7),
        ("Number: 3\nbecause", 3),
        ("9", None),
        ("10 of 10, or 5", None),
        ("", None),
        ("4.5", None),
        ("4,5", None),
        ("0", None),
        ("On a scale from 1 to 8, I rate this 6.", 6),
        ("On a scale of 1-8, a 6.", 6),
        ("There are 5 reasons for this. Rating: 8", 8),
        ("Rating (1-8): 5", 5),
        ("Rating (1 to 8): **5**", 5),
        ("1-8", None),
        ("1 to 8", None),
        ("from 1 to 8", None),
        ("-3", None),
        ("\u22123", None),
        ("Rating: -3", None),
        ("3 1/2", None),
        ("3\u00bd", None),
        ("<think>maybe 3</think>7", 7),
        ("<think>7", None),
        ("maybe 3</think>7", 7),
        ("6 or 7", None),
        ("6-7", None),
        ("6, 7", None),
        ("Rating: 6 or 7", None),
        ("Score: 6 to 7", None),
        ("Reason: 2 of the 3 points are right.\n6", 6),
        ("6\n2 of the 3 points are right.", 6),
        ("6\nNo, wait.\n7", None),
        ("Rating: 6. Rating: 7", None),
        ("Rating: 9", None),
        ("seven", 7),
        ("I rate this a seven.", 7),
        ("seventeen", None),
        ("7/8", 7),
        ("7 out of 8", 7),
        ("7/10", None),
        ("not 7", None),
        ("2 of the 3 points are right", None),
        ("\\boxed{7}", 7),
        ("**7**", 7),
        ("7.", 7),
        ("7\0", 7),
        ("7" + " x" * 11000, None),
        ("7 out of ten", None),
        ("seven out of eight", 7),
        ("Score (out of 8): 6", 6),
        ("Score (1 = worst, 8 = best): 6", 6),
        ("On a scale from one to eight, six", 6),
        ("Score - 6", 6),
        ("Reply 2 is better: 6", 6),
        ("6 - reply 2 is better", 6),
        ("Reply 2 is better.", None),
        ("Reply 1: 6, Reply 2: 3", None),
        ("Reply 2 scores 6", None),
        ("1 means that reply 1 is much better", None),
        ("One reply is better than the other", None),
        ("The first one is better", None),
        ("one", 1),
        ("6 %", None),
        ("$6", None),
        ("6th", None),
        ("6+", None),
        ("at least 6", None),
        ("Rating: at least 6", None),
        ("I can't give a 6", None),
        ("anything but 6", None),
        ("Rating: 6 (maybe 7)", None),
        ("Rating: 6 (3 examples)", 6),
        ("Rating: 6, not 7", 6),
        ("My rating would be a 6 or a 7", None),
    ],
)
def test_a_score_is_the_one_whole_number_that_is_given_as_such(reply: str, score: int | None) -> None:
    assert judging_calls.score_of(reply) == score


def test_scores_that_outsiders_read_are_read_so() -> None:
    path = Path(settings.HUNCH_STUDY_DATA) / "tracker_inputs" / "judge_replies.csv"
    if not path.is_file():
        pytest.skip("not tested: HUNCH_STUDY_DATA names no folder with tracker_inputs/judge_replies.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    wrong = [row for row in rows if str(judging_calls.score_of(row["reply"]) or "") != row["score"]]
    assert not wrong


def test_probabilities_of_the_eight_numbers_give_a_mean_and_a_chance() -> None:
    tokens = [("1", float(np.log(0.25))), (" 8", float(np.log(0.25))), ("the", float(np.log(0.5)))]
    assert judging_calls.by_probabilities(tokens) == pytest.approx((4.5, 0.5))
    assert judging_calls.by_probabilities([("no", -0.1)]) is None


def test_braces_in_a_reply_stay_as_they_are() -> None:
    template = prompts_of_judges.shipped("score_first")
    (text,) = judging_calls.calls_for(template, question="helpful", prompt="{reply_2}", first="{x}", second="B")
    assert "{reply_2}" in text and "{x}" in text and text.endswith("Number:")


@pytest.fixture
def study(prompts: None) -> Study:
    return cast.study(**PREFERENCE)


def longer_first(seen: Any) -> Any:
    """A judge that likes the longer reply, whichever stands first."""
    text = seen.body["messages"][0]["content"]
    first_reply, two = text.split("Reply 1:\n")[1].split("\n\nReply 2:\n")
    return chat(
        "2 it is" if len(first_reply) > len(two.split("\n\nNumber")[0]) else "7", prompt_tokens=100, completion_tokens=1
    )


def test_a_judge_sits_the_items_in_both_orders_and_goes_on_where_it_was(study: Study, monkeypatch: Any) -> None:
    prices = {"price_in": Decimal(1000), "price_out": Decimal(0)}
    with running() as fake:
        monkeypatch.setenv("HUNCH_LLM_URL", fake.url)
        fake.answer = longer_first
        first = judge_replies(JudgeRun(study, "m", concurrency=1, cost_cap=Decimal("0.5"), **prices))
        assert "the cost cap of 0.5 is reached" in first.stopped and first.cost == Decimal("0.5")
        assert JudgeVerdict.objects.count() == 5
        rest = judge_replies(JudgeRun(study, "m", **prices))
        assert (rest.known, rest.stored, rest.wanted) == (5, 51, 56)
        asked = len(fake.seen)
        assert judge_replies(JudgeRun(study, "m")).stored == 0 and len(fake.seen) == asked
        assert all(request.body["temperature"] == 0 for request in fake.seen)
        assert not any(model in str(request.body) for request in fake.seen for model in MODELS)
        with pytest.raises(HunchError, match="asked with other words, another model or another question"):
            judge_replies(JudgeRun(study, "other", name="m"))
    for verdict in JudgeVerdict.objects.select_related("a", "b"):
        assert verdict.towards_a == (2.5 if len(verdict.a.response) > len(verdict.b.response) else -2.5)
    judged = judges_of(study.bank_id, MODELS, [f"p{n}" for n in range(10)], ["code"] * 10)["m"]
    assert set(judged.outcome.tolist()) == {-1}  # A is named first in the study file, and its replies are shorter.
    assert sorted(judged.first.tolist()) == [-1] * 28 + [1] * 28


def test_what_a_judge_writes_without_a_score_is_kept_as_unreadable(study: Study, monkeypatch: Any) -> None:
    with running() as fake:
        monkeypatch.setenv("HUNCH_LLM_URL", fake.url)
        fake.answer = chat("Both are fine.")
        judged = judge_replies(JudgeRun(study, "m", orders="ab", limit=3))
        assert (judged.stored, judged.unreadable) == (3, 3)
        assert set(JudgeVerdict.objects.values_list("rules_version", flat=True)) == {judging_calls.SCORE_RULES_VERSION}
        fake.answer = chat("8", top=[{"8": float(np.log(0.75)), "1": float(np.log(0.25))}])
        judge_replies(JudgeRun(study, "m", name="by chances", orders="ba", limit=2, logprobs=True))
        fake.answer = chat("6")
        judge_replies(JudgeRun(study, "m", name="alone", template="alone", limit=2))
    assert set(JudgeVerdict.objects.filter(judge__name="m").values_list("towards_a", "first")) == {(None, "a")}
    stated = JudgeVerdict.objects.filter(judge__name="by chances")
    assert [(verdict.chance_a, verdict.towards_a, verdict.first) for verdict in stated] == [
        (pytest.approx(0.75), pytest.approx(1.75), "b")
    ] * 2
    there = ("by chances", [f"p{n}" for n in range(10)], ["code"] * 10)
    for models, turn in ((MODELS, 1), (MODELS[::-1], -1)):
        judged = judges_of(study.bank_id, models, there[1], there[2])[there[0]]
        assert judged.chance == pytest.approx([0.75 if turn > 0 else 0.25] * 2)
        assert judged.value == pytest.approx([1.75 * turn] * 2) and judged.first.tolist() == [-turn] * 2
        assert judged.outcome.tolist() == [turn] * 2 and (judged.a < judged.b).all()
    alone = JudgeVerdict.objects.filter(judge__name="alone").values_list("towards_a", "first", "reply")
    assert set(alone) == {(0.0, "", "6\n6")}


def test_scores_of_older_rules_are_read_again_from_the_stored_reply(
    study: Study, monkeypatch: Any, capsys: Any
) -> None:
    """Old scores are set to 3.5 here. Replies rated alone stand one below the other: 6, a blank line and 2 say the same
    wherever they are parted, and 6, 7 and 7 do not."""
    alone = iter(["6\n", "2", "6", "7\n7"])
    with running() as fake:
        monkeypatch.setenv("HUNCH_LLM_URL", fake.url)
        for name, template, orders, limit, reply in (
            ("first", "score_first", "ba", 1, chat("On a scale from 1 to 8, I rate this 6")),
            ("reasons", "reason_first", "ab", 1, chat("Three of four say two.\n\n7")),
            ("gone", "score_first", "ab", 1, chat("2")),
            ("lone", "alone", "both", 2, lambda _seen: chat(next(alone))),
        ):
            fake.answer = reply
            judge_replies(JudgeRun(study, "m", name=name, template=template, orders=orders, limit=limit, concurrency=1))
        fake.answer = chat("8", top=[{"8": float(np.log(0.75)), "1": float(np.log(0.25))}])
        judge_replies(JudgeRun(study, "m", name="chances", orders="ab", limit=1, logprobs=True))
    JudgeVerdict.objects.update(rules_version="1", towards_a=3.5)
    JudgeVerdict.objects.filter(judge__name="gone").update(template_version="0")
    imported = JudgeVerdict.objects.get(judge__name="first")
    imported.pk, imported.judge, imported.rules_version = None, LanguageModel.named("imported"), ""
    imported.save()
    call_command("judge_again", bank=study.bank.name)
    assert set(JudgeVerdict.objects.values_list("towards_a", flat=True)) == {3.5}
    assert "first (score_first) on p0, owl and parrot: +3.5 towards A to +1.5 towards A" in capsys.readouterr().out
    call_command("judge_again", bank=study.bank.name, yes=True)
    rules = judging_calls.SCORE_RULES_VERSION
    assert f"preference: 3 scores of judges read again by rules {rules}, 3 differ; 2 stay" in capsys.readouterr().out
    scores = {
        (verdict.judge.name, verdict.towards_a, verdict.rules_version)
        for verdict in JudgeVerdict.objects.select_related("judge")
    }
    assert scores == {
        ("first", 1.5, rules),  # 6 leans to the second reply, and B stood first.
        ("reasons", -2.5, rules),
        ("lone", 2.0, rules),
        ("lone", 3.5, "1"),
        ("gone", 3.5, "1"),
        ("chances", 3.5, "1"),
        ("imported", 3.5, ""),
    }
    counts = {"rules": rules, "read": 3, "left": 2, "changed": 3}
    assert AuditEntry.objects.get(action="judge_again").detail["scores"] == {"preference": counts}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"template": "best"}, "--template: 'best' is none of alone"),
        ({"orders": "all"}, "--orders: 'all' is none of both, ab, ba"),
        ({"question": "nice"}, "--question: 'nice' is none of helpful, truthful"),
        ({"cost_cap": Decimal(1)}, "--cost-cap: needs --price-in"),
        ({"limit": 0}, "--items: 0 is not 1 or more"),
    ],
)
def test_a_run_that_cannot_be_made_is_refused(changes: dict[str, Any], said: str, study: Study) -> None:
    with pytest.raises(HunchError, match=said):
        judge_replies(JudgeRun(study, "m", **changes))


def test_a_server_that_refuses_everything_ends_the_run_and_keeps_what_came(study: Study, monkeypatch: Any) -> None:
    with running() as fake:
        monkeypatch.setenv("HUNCH_LLM_URL", fake.url)
        fake.script = [chat("3"), chat("3")]
        fake.answer = refusal(400, "too long")
        with pytest.raises(HunchError, match="5 items in a row were refused"):
            judge_replies(JudgeRun(study, "m", concurrency=1))
    assert JudgeVerdict.objects.count() == 2


def test_judgements_that_one_has_are_imported_whole_or_not_at_all(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "judgements.csv"
    head = "prompt,model_a,model_b,judge,outcome,rating_a,first\n"
    path.write_text(
        head
        + "p0,owl,eagle,j,a,,\np9,owl,raven,j,b,,\np0,owl,raven,j,,4,\np0,owl,raven,j,better,,\np1,owl,owl,j,a,,x\n"
    )
    with pytest.raises(FileErrors) as refused:
        import_judgements(path, study)
    told = str(refused.value)
    assert "2: model_b: 'eagle' is none of the study's models: the pair is unknown" in told
    assert "3: model_b: 'raven' has no reply to this prompt: the pair is unknown" in told
    assert "4: rating_a: is '4': a number from -3.5 to 3.5" in told and "5: outcome: is 'better'" in told
    assert "6: first: is 'x'" in told and not JudgeVerdict.objects.exists()
    path.write_text(head + "p0,raven,owl,j,,2.5,a\np0,owl,parrot,j,unreadable,,\n")
    call_command("import_judgements", str(path), study=study.slug)
    assert import_judgements(path, study) == {"j": 0}
    judged = judges_of(study.bank_id, MODELS, ["p0"], ["code"])["j"]
    assert sorted(zip(judged.value.tolist(), judged.first.tolist(), judged.outcome.tolist(), strict=True)) == [
        (-2.5, -1, -1),
        (0.0, 0, 2),
    ]
    chances = head.replace("first", "first,chance_a")
    path.write_text(chances + "p0,raven,owl,k,a,,a,0.8\np1,owl,raven,k,a,,b,0.7\n")
    assert import_judgements(path, study) == {"k": 2}
    judged = judges_of(study.bank_id, MODELS, ["p0", "p1"], ["code", "talk"])["k"]
    assert judged.chance == pytest.approx([0.2, 0.7]) and judged.category.tolist() == ["code", "talk"]
    assert (judged.value.tolist(), judged.first.tolist()) == ([-1, 1], [-1, -1])
    path.write_text(head + "p0,raven,owl,j,,1.5,a\n")
    with pytest.raises(HunchError, match="j: a verdict differs"):
        import_judgements(path, study)
    path.write_text(chances + "p0,raven,owl,k,a,,a,0.9\n")
    with pytest.raises(HunchError, match="k: a verdict differs"):
        import_judgements(path, study)


@pytest.mark.any_database
def test_a_reply_of_fifty_thousand_characters_is_shown_whole(prompts: None, client: Client) -> None:
    long = "א" + "wort <b> " * 5555 + "end."
    ModelAnswer.objects.filter(language_model__name="raven").update(response=long)
    assert len(long) == 50_000
    options = {"models": ["owl", "raven"], "max_reply_characters": 50_000}
    study = cast.study(
        **{
            **PREFERENCE,
            "instrument": {"kind": "preference", "options": options},
            "roles": {"holdout": 0},
            "blocks": WITHOUT_PRACTICE,
            "stages": [{"sittings": 2}],
        }
    )
    opened(study)
    page = arrive(client, slug="preference")
    assert long in (page.parts["reply_1"], page.parts["reply_2"])
    client.post("/s/preference/sitting", {**page.hidden, "helpful": "1", "truthful": "8"})
    judgement = ReplyJudgement.objects.get()
    assert judgement.places == {"helpful": 1, "truthful": 8}
    signals, sitting = instruments.of_study(study).signals, Sitting.objects.get()
    assert list(signals.stated_values([sitting.pk])) == [(sitting.pk, judgement.response.screen, judgement.place)]
    assert not list(signals.stated_values([]))


OWN_JUDGE = """use = "judge"
prompt = "{prompt}|{reply_1}|{reply_2}"
[[models]]
model = "m*"
system = "You judge."
"""


def test_a_judge_may_have_words_of_ones_own_and_an_edited_file_is_not_mixed_with_them(
    study: Study, monkeypatch: Any, tmp_path: Path
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(OWN_JUDGE)
    with running() as fake:
        monkeypatch.setenv("HUNCH_LLM_URL", fake.url)
        fake.answer = chat("3")
        judge_replies(JudgeRun(study, "m", template=str(path), limit=1, orders="ab"))
        said = [(message["role"], message["content"]) for message in fake.seen[0].body["messages"]]
        assert said[0] == ("system", "You judge.") and said[1][1].count("|") == 2
        path.write_text(OWN_JUDGE.replace("You judge.", "Be strict."))
        with pytest.raises(HunchError, match="asked with other words"):
            judge_replies(JudgeRun(study, "m", template=str(path), limit=1, orders="ab"))
        path.write_text(OWN_JUDGE.replace("{reply_2}", "{reply2}"))
        with pytest.raises(HunchError, match=r"--template: template, line 2: \{reply2\} is no place"):
            judge_replies(JudgeRun(study, "m", template=str(path)))
    verdict = JudgeVerdict.objects.get()
    assert verdict.template == "mine" and len(verdict.template_version) == 12


@pytest.mark.parametrize(
    ("reply", "ranks"),
    [
        ("B > A > C", [1, 0, 2]),
        ("**Ranking: C, B, A**\nC is best.", [2, 1, 0]),
        ("A > B = C", [0, 1.5, 1.5]),
        ("A > B", None),
        ("A > B > C\nC > B > A", None),
        ("A > A > C", None),
    ],
)
def test_a_ranking_names_every_letter_once(reply: str, ranks: list[float] | None) -> None:
    assert judging_calls.ranks_of(reply, 3) == ranks


def test_all_replies_to_a_prompt_are_ranked_in_one_call(study: Study, monkeypatch: Any) -> None:
    """The judge likes the longest reply; both orders of the letters are asked, and both say the same of each pair."""

    def longest_first(seen: Any) -> Any:
        text = seen.body["messages"][0]["content"].rsplit("\n\nRanking:", 1)[0]
        parts = re.split(r"\n\nReply ([A-Z]):\n", text)[1:]
        replies = dict(zip(parts[::2], parts[1::2], strict=True))
        return chat(" > ".join(sorted(replies, key=lambda letter: -len(replies[letter]))))

    with running() as fake:
        monkeypatch.setenv("HUNCH_LLM_URL", fake.url)
        fake.answer = longest_first
        result = judge_replies(JudgeRun(study, "m", template="rank_all"))
        asked = len(fake.seen)
        assert result.wanted == result.stored == JudgeVerdict.objects.count() == 56 and asked < 56
        assert judge_replies(JudgeRun(study, "m", template="rank_all")).known == 56 and len(fake.seen) == asked
    for verdict in JudgeVerdict.objects.select_related("a", "b"):
        assert (verdict.towards_a > 0) == (len(verdict.a.response) > len(verdict.b.response))
        assert abs(verdict.towards_a) <= 3.5
    firsts = JudgeVerdict.objects.values_list("first", flat=True)
    assert sorted(firsts) == ["a"] * 28 + ["b"] * 28


def test_more_replies_than_letters_are_not_ranked_in_one_call(study: Study, monkeypatch: Any) -> None:
    monkeypatch.setattr(judging_runs, "LETTERS", "AB")
    with pytest.raises(HunchError, match=r"--template: rank_all names replies by letters, at most 2; [34] models"):
        judge_replies(JudgeRun(study, "m", template="rank_all"))
    assert not JudgeVerdict.objects.exists()
