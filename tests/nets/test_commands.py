"""Every command, on small studies: what it prints, which files it writes, and which rows it changes.

    python -m tests.renew commands

writes the texts in `data/commands` again.
"""

import csv
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.contrib.auth import get_user_model
from toy_panel import server
from toy_panel.server import ToyServer

from survey.instruments.belief_update.management.commands import evaluate_predictors
from survey.models import ApiToken, Assignment, Posting, Respondent, Study
from survey.services.sittings import links
from tests import cast
from tests.golden import store
from tests.panels.test_toy_panel import TOY
from tests.survey import filled

from .recording import Script, script, table

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.any_database]
__all__ = ["script"]

STUDIES = Path(__file__).parents[2] / "studies"
TWO_STAGES: dict[str, Any] = {
    "predictor": {"name": "same_task"},
    "stages": [
        {"sittings": 2, "pilot": True},
        {"sittings": 4},
        {"sittings": 4, "design": {"kind": "epsilon_greedy", "epsilon": 0.25}},
    ],
    "roles": {"holdout": 0.25, "controls": 0.25},
    "conditions": [{"factor": "framing", "levels": ["plain", "warm"]}],
}
BANK = """id,source,question,answer,domain
m:1,maths,<b>What is 1 + 1?</b><br>(A) 2<br>(B) 3,A,numbers
m:2,maths,What is 2 + 2?,4,numbers
m:3,maths,What is 2 + 2?,four,numbers
l:1,logic,Is water wet?,Yes,words
l:2,logic,"Nobody knows, but who asks?",,words
"""
ANSWERS = "llm,question_id,correct\nowl,m:1,1\nowl,m:2,0\nowl,l:1,1\nwren,m:1,0\nwren,l:1,1\n"
REPLIES = 'llm,question_id,response\nlark,m:1,The answer is A.\nlark,m:2,"4,0"\nlark,l:1,"No, it is not."\nlark,m:3,\n'


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_banks(script: Script) -> None:
    folder = script.folder
    bank = written(folder / "bank.csv", BANK)
    script.command("import_questions", bank, "--bank", "tiny", "--look")
    script.command("import_questions", bank, "--bank", "tiny", "--max-characters", "17")
    script.command("import_questions", bank, "--bank", "tiny", "--html", "--column", "source=domain", "--column",
                   "id=id", "--column", "question=question", "--column", "answer=answer")  # fmt: skip
    script.command("import_questions", bank, "--bank", "tiny", "--column", "source=none")
    script.command("import_questions", bank, "--bank", "tiny", "--letters")
    plain = table(folder / "plain.tsv", "text,key", [["Why?", "so"], ["Why?", "so"], ["", "x"]])
    named = ("--number", "--task", "all", "--column", "question=text", "--column", "answer=key")
    script.command("import_questions", plain, "--bank", "plain", *named)
    examples = [{"input": "Why?", "target": "a"}, {"input": "x" * 751, "target": "a"}, {"input": "Who?", "target": "b"}]
    (folder / "bbh").mkdir()
    for task in ("snarks", "navigate"):
        written(folder / "bbh" / f"{task}.json", json.dumps({"examples": examples}))
    script.command("import_questions", folder / "bbh", "--bank", "bbh", "--format", "bbh", "--paper-tasks")
    script.command("import_questions", folder / "bbh", "--bank", "tiny", "--format", "bbh", "--max-characters", "4")
    script.command("import_answers", written(folder / "answers.csv", ANSWERS), "--bank", "tiny@2")
    script.command("import_answers", written(folder / "bad.csv", f"{ANSWERS}owl,m:2,1\nowl,z,2\n"), "--bank", "tiny@2")
    script.command("import_replies", written(folder / "replies.csv", REPLIES), "--bank", "tiny@2")
    script.command("judge_again", "--bank", "tiny@2")
    script.command("flag_questions", "m:1", "l:2", "--bank", "tiny@2", "--kind", "broken", "--reason", "two are right")
    script.command("flag_questions", "m:1", "zz", "--bank", "tiny@2", "--kind", "sensitive")
    flags = table(folder / "flags.csv", "id,reason", [["m:2", "old"], ["l:1", ""]])
    script.command("flag_questions", flags, "--bank", "tiny@2", "--kind", "sensitive", "--reason", "as said")
    script.command("flag_questions", "m:1", "--bank", "tiny@2", "--kind", "none")
    script.command("flag_questions", "m:1", "--bank", "none", "--kind", "none")


def test_texts_and_models(script: Script) -> None:
    folder = script.folder
    lines = "\n".join(
        f"the {animal} sees the {other} and the {other} runs ." for animal in ("cat", "dog", "owl", "fox")
        for other in ("mouse", "cat", "hen")
    )  # fmt: skip
    texts = written(folder / "texts.txt", lines + "\n")
    test = written(folder / "test.csv", "id,text\na,the cat sees the hen\nb,the zebra runs and runs .\n")
    script.command("train_ngram", texts, "--name", "two", "--order", "2", "--lines", "--arpa", folder / "two.arpa")
    script.command("train_ngram", texts, "--name", "raw", "--order", "1", "--smoothing", "none", "--test", test)
    script.command("train_ngram", texts, "--name", "signs", "--order", "3", "--unit", "character", "--lines")
    script.command("train_ngram", texts, "--name", "two", "--order", "9")
    counts = written(folder / "counts.csv", "word,count\nthe,50\ncat,7\nhen,0\nowl,3\n")
    script.command("train_ngram", counts, "--name", "counted", "--counts")
    script.command("train_ngram", written(folder / "bad.csv", "word,count\nthe,-1\n"), "--name", "x", "--counts")
    models = ("--model", "A=ngram:two", "--model", "B=ngram:signs", "--model", "C=ngram:raw")
    script.command("perplexity", test, *models, "--out", folder / "p", "--by", "text", "--top", "2", "--normalised")
    script.command("perplexity", test, *models[:2], "--train", texts, "--lines")
    given = written(folder / "given.csv", "text_id,start,end,logprob\na,0,3,-1\na,3,7,-2.5\na,7,21,-0.5\n")
    one = written(folder / "one.csv", "id,text\na,the cat sees the hen\n")
    script.command("perplexity", one, "--model", f"given=file:{given}")
    script.command("perplexity", test, "--model", f"given=file:{given}")
    rows = [
        ["a-1", "small", "200", ".30", "10"], ["a-2", "large", "100", ".40", "30"], ["n", "large", "NA", ".50", ""],
        ["b-1", "small", "150", ".45", "35"], ["b-2", "large", "50", ".55", "65"],
    ]  # fmt: skip
    finished = table(folder / "models.csv", "model,corpus,perplexity,pnc,delta_gaze", rows)
    script.command("compare_models", finished, "--out", folder / "m", "--above", "pnc=0.4")
    script.command("compare_models", finished, "--above", "nothing=0.4")


def test_studies(script: Script) -> None:
    folder = script.folder
    script.prepare(cast.bank)
    for name in ("ada", "bob"):
        get_user_model().objects.create_user(name, is_staff=True)
    text = cast.study_text(**TWO_STAGES)
    file = written(folder / "cast.toml", text)
    script.command("check_study", file)
    script.command("check_study", file, "--fee", "0.25", "--json")
    script.command("check_study", written(folder / "wrong.toml", text.replace("items = 3", "items = 300")))
    script.command("create_study", file)
    script.command("create_study", file)
    script.command("members", "cast", "set", "ada", "owner", "--may-spend")
    script.command("members", "cast", "set", "bob", "viewer")
    script.command("members", "cast", "remove", "ada")
    script.command("members", "cast")
    script.command("duplicate_study", "cast")
    script.command("duplicate_study", "cast", "cast")
    changed = written(folder / "changed.toml", text.replace("Welcome to the cast.", "Welcome."))
    script.command("amend_study", changed, "--reason", "shorter", "--dry-run")
    script.command("open_stage", "cast")
    script.command("amend_study", changed)
    script.command("amend_study", changed, "--reason", "shorter")
    refused = written(folder / "refused.toml", text.replace("seed = 7", "seed = 8"))
    script.command("amend_study", refused, "--reason", "another seed")
    script.command("test_copy", "cast", "make")
    script.command("test_copy", "cast", "show")
    script.command("test_copy", "cast", "preview", "--level", "framing=warm", "--root", "https://lab.example")
    script.command("test_copy", "cast", "preview", "--level", "framing=none")
    script.command("test_copy", "cast", "delete")
    script.command("receivers", "cast", "add", "ada@lab.example", "--cause", "cap_near")
    script.command("receivers", "cast", "add", "not-an-address")
    script.command("receivers", "cast", "off", "1")
    script.command("receivers", "cast")
    script.command("methods", "cast")
    script.command("unblind", "cast", "--reason", "it is over")
    script.command("archive_study", "cast")
    script.command("study_status", "cast")
    script.command("archive_study", "cast", "--undo")
    script.command("screens", "cast", "--out", folder / "screens")
    script.command("study_status", "nothing")


def test_stages(script: Script) -> None:
    folder = script.folder
    study = script.prepare(lambda: cast.small_study(**TWO_STAGES))
    script.command("plan_stage", "small", "2")
    script.command("plan_stage", "small", "1")
    script.command("plan_stage", "small", "1")
    script.command("open_stage", "small")
    script.command("pause_stage", "small")
    script.command("pause_stage", "small")
    script.command("open_stage", "small")
    script.command("open_stage", "small", "--stage", "2")
    for index, seed, lose in ((1, 1, 0), (2, 2, 2), (3, 3, 1)):
        script.command("open_stage", "small")
        stage = cast.stage_of(study, index)
        script.act("people answer", partial(filled.answer, stage, seed=seed, lose=lose, late=lose // 2))
        script.command("study_status", "small")
        script.command("close_stage", "small", "--now")
        script.act("the work of closing", partial(cast.jobs.run_inline, stage))
        script.command("verify_stage", "small", str(index))
        script.command("leaderboard", "small")
    script.command("pilot_report", "small")
    script.command("study_status", "small")
    script.command("retry_steps", "small")
    script.command("leaderboard", "small", "--sort", "auc", "--condition", "framing=warm")
    script.command("leaderboard", "small", "--sort", "beauty")
    script.command("estimate", "small", "--by", "framing", "--threshold", "5", "--out", folder / "estimates")
    script.command("estimate", "small", "--condition", "framing=plain")
    script.command("compare_policies", "small", "--epsilon", "0.1", "--design", "uniform", "--out", folder / "policies")
    script.command("compare_policies", "small", "--epsilon", "2")
    script.command("close_stage", "small")
    script.command("jobs", "ask", "export", "small", "--now")
    script.command("jobs", "list")
    script.command("jobs", "fetch", "1", "--out", folder / "fetched")
    script.command("jobs", "cancel", "1")
    script.command("verify_audit")


def test_a_panel_without_an_api(script: Script) -> None:
    folder = script.folder
    panel = {"kind": "generic", "reward": 250, "turned_away_pay": 30, "currency": "GBP"}
    overrides: dict[str, Any] = {"panel": panel, "sitting": {"items": 2}, "stages": [{"sittings": 6}]}
    study = script.prepare(lambda: cast.open_study(slug="listed", **overrides))
    ids = [cast.PanelIds("generic", f"PERSON{number}", "S1", f"TIC{number}") for number in range(5)]
    script.act("one finishes", lambda: cast.walk(cast.begin(study, ids[0])))
    script.act("one is inside", lambda: cast.walk(cast.begin(study, ids[1]), until="item"))
    script.act("one has consented", lambda: cast.begin(study, ids[2]))
    script.act("one fails", lambda: fail_checks(study, ids[3]))
    script.act("one finishes later", lambda: cast.walk(cast.begin(study, ids[4])))
    script.command("reconcile", "listed")
    script.command("reconcile", "listed", "--out", folder / "owed.csv")
    script.command("reconcile", "listed", "--out", folder / "owed.csv")
    script.command("reconcile", "listed", "--out", folder / "ids.csv", "--with-panel-ids")
    first, second = (str(name) for name in Respondent.objects.order_by("pk").values_list("pseudonym", flat=True)[:2])
    script.command("withdraw", first)
    script.command("withdraw", first, "--reason", "a letter", "--yes")
    script.command("withdraw", first, "--yes")
    script.command("withdraw", second, "--yes")
    script.command("reconcile", "listed", "--out", folder / "later.csv")
    script.command("demographics", "listed", "--out", folder / "people.csv")
    script.command("purge_identities", "--older-than", "1d")
    script.command("purge_identities", "--older-than", "0d", "--study", "listed")
    script.command("purge_identities", "--older-than", "0d", "--study", "listed", "--with-hashes", "--yes")
    script.command("pay_bonuses", "listed")


def fail_checks(study: Study, ids: Any) -> None:
    sitting = cast.begin(study, ids)
    step = cast.walk(sitting, until="checks")
    for _attempt in range(2):
        step = cast.advance(sitting=sitting, step=step.number, data=cast.wrong_answers_for(step))


BY_ITEM = {"levels": ["blank", "keep"], "per": "item"}
CONDITIONS: list[dict[str, Any]] = [
    {"factor": "framing", "levels": ["plain", "warm"]},
    {"factor": "mode", **BY_ITEM, "options": {"keep": {"answer_mode": "keep_button"}}},
    {"factor": "colour", **BY_ITEM},
]


def test_links_and_waves(script: Script) -> None:
    """Levels are drawn anew in wave 2 and kept in wave 3."""
    folder = script.folder
    made = script.prepare(
        lambda: cast.study(
            slug="waves",
            panel={"kind": "links", "reward": 500, "currency": "GBP"},
            sitting={"items": 2},
            stages=[{"sittings": 3}, {"sittings": 3, "wave": 2}, {"sittings": 3, "wave": 3}],
            waves=[{"after_days": 1, "open_days": 8, "levels": "drawn"}, {"after_days": 1, "open_days": 8}],
            conditions=CONDITIONS,
        )
    )
    script.command("links", "waves", "--count", "4", "--out", folder / "links.csv", "--root", "https://lab.example")
    script.command("links", "waves", "--count", "4", "--out", folder / "links.csv")
    script.command("links", "waves", "--count", "0", "--out", folder / "more.csv")
    script.command("links", "waves", "--count", "5001", "--out", folder / "more.csv")
    script.command("open_stage", "waves")
    for number in range(3):
        ids = ids_of(folder / "links.csv", made, number)
        script.act(f"person {number} takes part", partial(walk, made, ids, "end"))
    for wave in (2, 3):
        invited = folder / f"wave-{wave}.csv"
        script.command("invite", "waves", "--wave", str(wave), "--out", invited)
        script.command("close_stage", "waves", "--now")
        script.act("the work of closing", partial(cast.jobs.run_inline, cast.stage_of(made, wave - 1)))
        script.command("open_stage", "waves")
        script.act("by an old link", partial(walk, made, ids_of(folder / "links.csv", made, 0), "end"))
        script.act("too early", partial(walk, made, ids_of(invited, made, 0), "end"))
        script.clock.shift(24 * 3600)
        script.command("invite", "waves", "--wave", str(wave), "--out", folder / f"again-{wave}.csv")
        script.act(f"again in wave {wave}", partial(walk, made, ids_of(invited, made, 0), "end"))
    script.command("invite", "waves", "--wave", "4", "--out", folder / "fourth.csv")
    script.command("withdraw", Respondent.objects.order_by("pk")[0].pseudonym, "--yes")
    script.clock.shift(9 * 24 * 3600)
    script.act("too late", partial(walk, made, ids_of(folder / "wave-2.csv", made, 2), "end"))
    script.command("study_status", "waves")
    script.command("reconcile", "waves", "--out", folder / "owed.csv")


def ids_of(file: Path, study: Study, number: int) -> Any:
    """Of the person to whom a row of the file goes."""
    with file.open(encoding="utf-8", newline="") as table:
        link = list(csv.DictReader(table))[number]["link"]
    return links.ids_of_link(study, link.rpartition("=")[2])


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> ToyServer:
    monkeypatch.setattr(server, "SERVER", ToyServer())
    monkeypatch.setenv("TOY_PANEL_TOKEN", "t")
    return server.SERVER


def test_a_panel_with_an_api(script: Script, toys: ToyServer) -> None:
    study = script.prepare(lambda: cast.open_study(panel=TOY, sitting={"items": 1}, stages=[{"sittings": 6}]))
    script.command("posting", "cast", "show")
    script.command("posting", "cast", "draft", "--root", "http://testserver", "--places", "4", "--reward", "120")
    script.command("posting", "cast", "publish")
    script.command("posting", "cast", "publish")
    posting = Posting.objects.get()
    tickets = [toys.somebody_comes(posting.external_id) for _number in range(4)]
    for number, ticket in enumerate(tickets):
        ids = cast.PanelIds("toypanel", ticket["who"], posting.external_id, ticket["ticket"])
        until = ("end", "end", "item", "checks")[number]
        step = script.act(f"person {number}, to {until}", partial(walk, study, ids, until))
        if step is not None and step.kind == "end":
            toys.hand_in(ticket, step.code)
    tickets[1]["mood"], tickets[2]["mood"] = "asleep", "gone"
    script.command("reconcile", "cast")
    script.command("reconcile", "cast", "--approve")
    script.command("reconcile", "cast", "--approve")
    tickets[3]["mood"] = "asleep"
    script.command("reconcile", "cast", "--ask-back")
    script.command("pay_bonuses", "cast")
    script.command("pay_bonuses", "cast", "--pay")
    script.command("pay_bonuses", "cast", "--pay")
    script.command("reconcile", "cast")
    script.command("posting", "cast", "cost")
    script.command("posting", "cast", "add-places", "90")
    script.command("posting", "cast", "add-places", "2")
    script.command("posting", "cast", "pause")
    script.command("posting", "cast", "start")
    script.command("posting", "cast", "stop")
    script.command("posting", "cast", "show")
    script.command("purge_identities", "--older-than", "0d", "--yes")


def walk(study: Study, ids: Any, until: str) -> Any:
    return cast.walk(cast.begin(study, ids), until=until)


@pytest.fixture
def golden(script: Script, settings: Any) -> None:
    settings.HUNCH_IDENTITY_KEY = store.IDENTITY_KEY
    script.prepare(store.load_with_instruments)


def test_results(script: Script, golden: None) -> None:
    folder = script.folder
    script.command("export", "beliefs", "--out", folder / "warm", "--condition", "framing=warm", rows=False)
    script.command("export", "answers", "--out", folder / "whole", rows=False)
    script.command("export", "answers", "--out", folder / "whole", rows=False)
    script.command("release", "beliefs", "--out", folder / "release", "--columns", "people,models", rows=False)
    script.command("report", "beliefs", rows=False)
    script.command("report", "beliefs", "nothing", rows=False)
    script.command("report", "beliefs", "people", "nothing=1", rows=False)
    script.command("verify_stage", "beliefs", "3", rows=False)
    script.command("check_files", rows=False)
    script.command("verify_audit", rows=False)
    script.command("leaderboard", "beliefs", rows=False)
    script.command("compare_policies", "beliefs", "--epsilon", "0.5", "--top-fraction", "0.2", rows=False)
    script.command("paper", "beliefs", "--samples", "100", "--out", folder / "paper", rows=False)
    script.command("import_judgements", table(folder / "bad.csv", "prompt", [["x"]]), "--study", "replies", rows=False)
    script.command("study_status", "beliefs", rows=False)
    for answer in Assignment.objects.filter(sitting__stage__study__slug="beliefs", state="counted")[:1]:
        script.command("withdraw", answer.sitting.respondent.pseudonym, "--yes")
    script.command("verify_stage", "beliefs", "1", rows=False)
    script.command("estimate", "beliefs", rows=False)


def test_budgets(script: Script) -> None:
    for path in sorted(STUDIES.glob("example-budget*.toml")):
        small = written(script.folder / path.name, smaller(path.read_text(encoding="utf-8")))
        script.command("plan_budget", small, "--studies", "2", "--jobs", "1", "--out", script.folder / path.stem)
    for key, value in (("epsilon = ", "epsilon = 7"), ("sittings = [", "sittings = [0, "), ("items = ", "items = 0")):
        text = (STUDIES / "example-budget.toml").read_text(encoding="utf-8").replace(key, value)
        script.command("plan_budget", written(script.folder / "wrong.toml", text), "--studies", "2", "--jobs", "1")
    script.command("plan_budget", STUDIES / "example-budget.toml", "--studies", "1")


SMALLER = (
    ("[12, 12, 12, 12, 12]", "[12, 12]"), ("prompts = 100", "prompts = 30"), ("[100, 100]", "[30, 30]"),
    ("responses_per_item = 20", "responses_per_item = 10"), ("[80, 80]", "[20, 20]"), ("run = 12", "run = 6"),
    ("[40, 40]", "[10, 10]"), ("texts = 80", "texts = 20"), ("sittings = [60]", "sittings = [10, 10]"),
    ("words = 30 ", "words = 12 "), ("[88, 88, 88, 88, 88, 88, 88]", "[12, 12]"),
    ("questions = 16432", "questions = 400"),
    ("tasks = 79", "tasks = 8"), ("candidates = 12000", "candidates = 600"),
    ("frontier = [0.1, 0.2, 0.4]", "frontier = [0.2]"),
)  # fmt: skip


def smaller(text: str) -> str:
    for old, new in SMALLER:
        text = text.replace(old, new)
    return text


def test_checks_of_example_studies(script: Script) -> None:
    cast.bank(120)
    for path in sorted([*STUDIES.glob("*.toml"), *STUDIES.glob("panels/*.toml")]):
        if "budget" not in path.name:
            script.command("check_study", path, rows=False)


def test_accounts_and_keys(script: Script) -> None:
    script.prepare(lambda: [cast.small_study(slug) for slug in ("small", "other")])
    script.command("first_account")
    get_user_model().objects.create_superuser("ada")
    script.command("first_account")
    script.command("create_token", "ada", "--name", "notebook", "--study", "small", "--days", "3")
    script.command("create_token", "ada", "--scope", "run")
    script.command("create_token", "ada", "--days", "0")
    script.command("create_token", "ada", "--study", "nothing")
    script.command("create_token", "nobody")
    script.command("revoke_token", ApiToken.objects.order_by("pk")[0].prefix)
    script.command("revoke_token", "none")
    script.command("unlock", "ada")
    script.command("unlock", "nobody")
    script.command("keys")
    script.command("verify_audit", "--head", "0" * 64)


LABELS = "q1,q2,source1,source2,previous_correct,belief_change"
PREDICTED = "q1,q2,source1,source2,pred_if_correct,pred_if_incorrect"


def labels(n: int, start: int) -> list[list[Any]]:
    rng = np.random.default_rng(start)
    rows: list[list[Any]] = []
    for index in range(start, start + n):
        tasks = [f"task {rng.integers(2)}", f"task {rng.integers(2)}"]
        label = int(rng.uniform() < 0.2 + 0.4 * (tasks[0] == tasks[1]) + 0.2 * (1 - index % 2))
        rows.append([f"question {index}", f"target {index}", *tasks, index % 2, label])
    return rows


def test_predictors_on_files(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = script.folder
    monkeypatch.setattr(evaluate_predictors, "limit_threads", lambda threads: None)
    train = table(folder / "train.csv", LABELS, labels(160, 0))
    test = table(folder / "test.csv", LABELS, [*labels(60, 1000), *labels(5, 0)])
    cheap = ("--predictors", "previous_correct,same_task", "--samples", "100")
    script.command(
        "evaluate_predictors", "--train", train, "--test", test, *cheap, "--out", folder / "found", rows=False
    )
    folds = ("--folds", "3", "--question-disjoint", "--seed", "3")
    script.command("evaluate_predictors", "--train", train, *folds, *cheap, rows=False)
    script.command("evaluate_predictors", "--train", train, "--folds", "1", *cheap, rows=False)
    script.command("evaluate_predictors", "--train", train, "--predictors", "nothing", rows=False)
    questions = [[f"b:{row}", f"task {row % 2}", f"question {row}"] for row in range(12)]
    asked = table(folder / "questions.csv", "id,source,question", questions)
    pairs = [
        [f"question {row}", f"question {(row * 5 + 1) % 12}", f"task {row % 2}", f"task {(row * 5 + 1) % 2}",
         f"{0.1 + row / 40:.2f}", f"{0.7 - row / 30:.2f}"]
        for row in range(12)
    ]  # fmt: skip
    sample = table(folder / "sample.csv", PREDICTED, pairs)
    rows = [
        [model, f"b:{row}", int((row * step) % 5 < 3)] for model, step in (("owl", 1), ("wren", 2)) for row in range(12)
    ]
    answers = table(folder / "answers.csv", "llm,question_id,correct", rows[:-1])
    files = ("--sample", sample, "--questions", asked, "--answers", answers)
    script.command(
        "alignment", *files, "--samples=100", "--alpha=1,3", "--threshold=0.6", "--out", folder / "a", rows=False
    )
    script.command("alignment", *files, "--samples=100", "--prior=0.5", "--posterior-correct=0.7", rows=False)
    script.command("alignment", *files, "--prior=62.9", rows=False)
    labelled = ("--train", train, "--test", test, *cheap)
    script.command("paper", *labelled, *files, "--out", folder / "paper", rows=False)


def test_reading_and_words_on_files(script: Script) -> None:
    folder = script.folder
    rng = np.random.default_rng(4)
    kinds = {"words": lambda row: "abcdefgh"[row % 8] * (1 + row // 8), "codes": lambda row: f"w{row}"}
    for name, word_of in kinds.items():
        norms = [
            [f"s{row // 5}", 1 + row % 5, word_of(row), 12, row % 12, 1 + row % 4, 200 + row * 7 % 60]
            for row in range(40)
        ]
        given = [
            [model, f"s{row // 5}", 1 + row % 5, 1 + (row * step) % 5]
            for model, step in (("m", 7), ("o", 3))
            for row in range(38)
        ]
        words = table(folder / f"{name}.csv", "sentence,position,word,n,k,distinct,gaze", norms)
        readings = table(folder / f"{name}-read.csv", "model,sentence,position,surprisal", given)
        counts = table(folder / "counts.csv", "word,count", [[word_of(row), 1 + row] for row in range(40)])
        files = ("--norms", words, "--readings", readings)
        more = ("--frequencies", counts, "--times", "gaze", "--smoothing", "0.5", "--least", "12")
        script.command("cloze", *files, *more, "--out", folder / name, rows=False)
    for number in (11, 12):
        script.command("cloze", *files, "--responses-per-item", str(number), rows=False)
    script.command("cloze", *files, "--least", "13", rows=False)
    script.command("cloze", *files, "--smoothing", "0", rows=False)
    text = ["one", "two,", "three", "four", "five.", "six"]
    surprisal = rng.gamma(2, 2, (6, len(text)))
    times, read = [], []
    for passage in range(6):
        for place, word in enumerate(text):
            read.append(["A", f"t{passage}", place, round(float(surprisal[passage, place]), 4)])
            for person in range(6):
                time = round(250 + 10 * person + 20 * surprisal[passage, place] + 40 * rng.random())
                right = int(person > 0 or passage % 2)
                times.append([f"t{passage}", place, word, time if person != 5 else 90 + place, f"p{person}", right,
                              round(-1 - place / 3, 2)])  # fmt: skip
    own = table(folder / "times.csv", "passage,position,word,time,person,question_right,log_frequency", times)
    model = table(folder / "read.csv", "model,passage,position,surprisal", read)
    script.command("reading", "--times", own, "--readings", model, "--out", folder / "r", rows=False)
    kept = ("--previous", "1", "--least-right", "0.5", "--shortest", "91", "--longest", "400", "--keep-punctuation")
    script.command("reading", "--times", own, "--readings", model, *kept, rows=False)
    script.command("reading", "--times", own, "--readings", model, "--previous", "4", rows=False)


def test_judgements_on_files(script: Script) -> None:
    folder = script.folder
    rng = np.random.default_rng(4)
    compared, judged = [], []
    for number in range(60):
        a, b = [("owl", "raven"), ("raven", "wren"), ("owl", "wren")][number % 3]
        compared.append(
            [f"p{number}", ("code", "talk")[number // 30], a, b, f"x{number % 7}", rng.choice(["a", "a", "b"])]
        )
        judged += [[f"p{number}", a, b, "j", rng.choice(["a", "b", "tie"]), first] for first in "ab"]
    people = table(folder / "c.csv", "prompt,category,model_a,model_b,annotator,outcome", compared)
    judge = table(folder / "j.csv", "prompt,model_a,model_b,judge,outcome,first", judged)
    files = ("--comparisons", people, "--judgements", judge)
    script.command("preferences", *files, "--each-answer", "--out", folder / "p", rows=False)
    script.command("preferences", *files, "--no-side", rows=False)
    header = "prompt,model_a,model_b,annotator,rating_a,outcome"
    marks = [
        [row[0], *row[2:5], 2 - number % 5, "tie" if number % 4 == 0 else ""] for number, row in enumerate(compared)
    ]
    rated = table(folder / "rated.csv", header, marks)
    script.command("preferences", "--comparisons", rated, rows=False)
    letters = "abcd"
    guesses = [
        [f"p{who}", f"t{text}", at, letters[(who * at + text) % 4], letters[at % 4], int(at % 5 != 4)]
        for who in range(5) for text in range(2) for at in range(10)
    ]  # fmt: skip
    guessed = table(folder / "guesses.csv", "person,passage,position,guess,truth,asked", guesses)
    script.command("next_token", "--guesses", guessed, "--out", folder / "n", rows=False)
    chances = [
        [f"p{who}", f"c{context}", draw, 1, (5, 20, 50, 80, 95)[(who + context * draw) % 5], -1.5 - context / 5,
         -2 - draw / 3]
        for who in range(4) for context in range(6) for draw in range(4)
    ]  # fmt: skip
    told = table(folder / "t.csv", "person,context,other,multiplicity,percent_true,log_g_true,log_g_other", chances)
    script.command("token_comparison", "--answers", told, "--by", "person", "--out", folder / "t", rows=False)
    script.command("token_comparison", "--answers", told, "--ddof", "0", rows=False)
    script.command("token_comparison", "--answers", guessed, rows=False)
