"""Makes the golden studies of the instruments that `make.py` leaves out, next to its own. To alter stored facts:

DJANGO_SETTINGS_MODULE=tests.settings python manage.py shell -c "from tests.golden.make_instruments import main; main()"

Each has two stages with other designs and numbers of people, two conditions, two models or judges, people who leave,
who fail the attention check and are left out, and who take their answers back: a filter, a column or a second row that
goes missing changes some figure.
"""

import csv
import io
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from predictors.readings import Text
from survey.contracts.panels import PanelIds
from survey.instruments.preference.judging_runs import import_judgements
from survey.instruments.preference.models import ReplyComparison
from survey.models import Sitting, Stage, Study
from survey.services.banks import ngrams, passages
from survey.services.plans.planning import plan_stage
from survey.services.sittings import expiry, withdrawal
from survey.services.sittings.answering import advance
from survey.services.sittings.comments import report_question
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.flow import Step, current_step
from survey.services.sittings.openings import record_opening
from survey.services.stages import jobs, lifecycle
from tests import cast, databases
from tests.golden import store
from tests.survey.instruments import (
    test_cloze,
    test_next_token,
    test_preference,
    test_self_paced_reading,
    test_token_comparison,
)

CHECK = {"name": "look", "after_item": 1, "kind": "instruction", "text": "Choose b.", "options": ["b", "a"]}
GREEDY = {"kind": "epsilon_greedy", "epsilon": 0.4, "top_fraction": 0.4}
EVERYWHERE: dict[str, Any] = {
    "panel": {"kind": "generic", "completion_url": "https://panel.example/{code}", "parameters": {"person": "pid"}},
    "roles": {"holdout": 0.25, "controls": 0},
    "conditions": [{"factor": "framing", "levels": ["plain", "warm"]}],
    "flags": {"attention": {"failed": 1}},
    "exclusions": {"flags": ["attention"]},
    "blocks": [
        {"kind": "consent", "text": "Do you agree?", "version": "1"},
        {"kind": "items"},
        {
            "kind": "form",
            "name": "about",
            "title": "You",
            "fields": [{"name": "age", "label": "Age", "kind": "number"}],
        },
        {"kind": "end", "text": "Thanks."},
    ],
}


def study_of(base: dict[str, Any], slug: str, stages: list[dict[str, Any]], **overrides: Any) -> Study:
    items = {**base["sitting"], "attention_checks": [CHECK]}
    return cast.study(**{**base, **EVERYWHERE, "slug": slug, "sitting": items, "stages": stages, **overrides})


def options(base: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"kind": base["instrument"]["kind"], "options": {**base["instrument"].get("options", {}), **changes}}


def answers(step: Step, person: Any, sitting: Sitting, number: int) -> dict[str, Any]:
    """Every sixth person fails the attention check."""
    if step.kind == "attention":
        (check,) = step.checks
        return {check.name: str(check.order.index(number % 6 == 4) + 1)}
    if step.kind == "form":
        return {"age": str(20 + number)}
    if step.screen is None:
        return {}
    if isinstance(nonce := getattr(person, "opening", lambda **_screen: "")(screen=step.screen.name), str) and nonce:
        record_opening(sitting_key=sitting.pk, step=str(step.number), nonce=nonce)
    parts = {name: str(part["value"]) for name, part in step.screen.parts.items()}
    return dict(person.answer(screen=step.screen.name, parts=parts))


def play(study: Study, number: int, *, leave_after: int = 10_000) -> Sitting:
    # Nobody waits here: times of reading by real people would be marked, since the server's clock tells others.
    simulated = study.instrument == "self_paced_reading"
    sitting = begin_sitting(study=study, ids=PanelIds("generic", f"{study.slug}-{number}"), simulated=simulated)
    person = cast.simulated_person(sitting)
    for count in range(leave_after):
        if (step := current_step(sitting)).kind == "end":
            break
        timing = {"client_shown_ms": str(100 + count), "client_submitted_ms": str(4000 + 100 * number + count)}
        advance(sitting=sitting, step=step.number, data={**answers(step, person, sitting, number), **timing})
        if step.kind == "item" and (count + number) % 17 == 3:
            report_question(sitting=sitting, position=step.position, screen=step.screen.name, text=f"Odd, {number}.")
        sitting.refresh_from_db()
    return sitting


def run(study: Study) -> Study:
    """All stages, with somebody who leaves in each, and who takes the answers of the first one back."""
    number = 0
    for stage in Stage.objects.select_related("study__bank").filter(study=study).order_by("index"):
        stage.refresh_from_db()
        lifecycle.open_stage(plan_stage(stage) if stage.state == Stage.State.DRAFT else stage)
        number += 1
        left = play(study, number, leave_after=6)
        Sitting.objects.filter(pk=left.pk).update(last_seen_at=timezone.now() - timedelta(hours=3))
        expiry.expire_sittings()
        while True:
            expiry.deal_make_up_booklets(stage)
            if not stage.booklets.filter(claimed_at__isnull=True).exists():
                break
            number += 1
            play(study, number)
        jobs.run_inline(lifecycle.close_stage(Stage.objects.select_related("study__bank").get(pk=stage.pk)))
    gone = Sitting.objects.filter(stage__study=study, stage__index=1, state="complete").order_by("pk")[1]
    withdrawal.withdraw(respondent=gone.respondent, now=timezone.now(), reason="asked by mail")
    return study


def imported(bank: str, format: str, rows: list[tuple[str, ...]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "texts.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
        call_command("import_questions", str(path), bank=bank, format=format, stdout=io.StringIO())


def cloze() -> Study:
    sentences = [*test_cloze.SENTENCES, *test_token_comparison.PASSAGES]
    rows = [(f"s{n}", f"source_{n % 2}", text, "3,4" if n == 5 else "") for n, text in enumerate(sentences)]
    imported("sentences", "sentences", [("id", "source", "text", "positions"), *rows])
    texts = [Text(str(number), text) for number, text in enumerate(sentences)]
    ngrams.train(texts[:4], name="tiny", order=2, unit="word", smoothing="kneser_ney")
    ngrams.train(texts[2:], name="small", order=1, unit="word", smoothing="kneser_ney")
    base = test_cloze.ADAPTIVE
    models = [{"name": "bigram", "source": "ngram:tiny"}, {"name": "unigram", "source": "ngram:small"}]
    stages = [
        {"sittings": 8, "responses_per_item": 2},
        {"sittings": 12, "responses_per_item": 3, "design": GREEDY},
    ]
    return run(study_of(base, "words", stages, models=models))


def next_token() -> Study:
    test_next_token.prepare_tales()
    base = test_next_token.STUDY
    stages = [{"sittings": 8, "responses_per_item": 2}, {"sittings": 12, "responses_per_item": 6, "design": GREEDY}]
    texts = [Text(str(number), text) for number, text in enumerate(test_next_token.TEXTS)]
    cut_by: Any = passages.open_tokenizer("pairs:tales")
    ngrams.train(texts[:2], name="fewer", order=2, unit="token", smoothing="kneser_ney", cut_by=cut_by)
    models = ["trigram=ngram:tales", "bigram=ngram:fewer"]
    call_command("prepare_passages", bank="tales", tokenizer="pairs:tales", model=models, verbosity=0)
    named = [dict(zip(("name", "source"), model.split("="), strict=True)) for model in models]
    return run(study_of(base, "guesses", stages, models=named, instrument=options(base, priority="gap")))


def preference() -> Study:
    test_preference.import_prompts()
    base = test_preference.PREFERENCE
    stages = [
        {"sittings": 6, "responses_per_item": 2},
        {"sittings": 9, "responses_per_item": 2, "design": {**GREEDY, "top_fraction": 0.5}},
    ]
    roles = {"holdout": 0.2, "controls": 0.3, "control_kinds": ["repeat", "same"]}
    study = run(study_of(base, "replies", stages, roles=roles, instrument=options(base, reason=0.5)))
    lines = ["prompt,model_a,model_b,judge,outcome"]
    comparisons = ReplyComparison.objects.filter(a__question__bank=study.bank).select_related(
        "a__question", "a__language_model", "b__language_model"
    )
    for number, row in enumerate(comparisons.order_by("pk")):
        both = f"{row.a.question.external_id},{row.a.language_model.name},{row.b.language_model.name}"
        if row.a_id == row.b_id:
            continue
        lines.append(f"{both},strict,{'a' if number % 3 else 'b'}")
        if number % 4:
            lines.append(f"{both},mild,{'abt'[number % 2] if number % 5 else 'unreadable'}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "verdicts.csv"
        path.write_text("\n".join(lines) + "\n")
        import_judgements(path, study)
    return study


def self_paced_reading() -> Study:
    asked = [(text, f"Is that number {n}?", "no") for n, text in enumerate(test_token_comparison.PASSAGES)]
    stories = [*test_self_paced_reading.PASSAGES, *asked]
    rows = [(f"t{n}", f"source_{n % 2}", *story) for n, story in enumerate(stories)]
    imported("stories", "passages", [("id", "source", "text", "question", "answer"), *rows])
    texts = [Text(str(number), text) for number, (text, _question, _answer) in enumerate(stories)]
    ngrams.train(texts, name="stories", order=2, unit="word", smoothing="kneser_ney")
    ngrams.train(texts[:3], name="three", order=1, unit="word", smoothing="kneser_ney")
    base = test_self_paced_reading.READING
    models = [{"name": "bigram", "source": "ngram:stories"}, {"name": "unigram", "source": "ngram:three"}]
    stages = [{"sittings": 6, "responses_per_item": 3}, {"sittings": 11, "responses_per_item": 4}]
    instrument = options(base, frequencies="ngram:stories")
    return run(study_of(base, "pace", stages, bank="stories", models=models, instrument=instrument))


def token_comparison() -> Study:
    stories = [*test_token_comparison.PASSAGES, *(text for text, *_more in test_self_paced_reading.PASSAGES)]
    rows = [(f"p{n}", f"source_{n % 2}", text) for n, text in enumerate(stories)]
    imported("contexts", "passages", [("id", "source", "text"), *rows])
    texts = [Text(str(number), text) for number, text in enumerate(stories)]
    passages.train_tokenizer(texts, name="own", size=320)
    cut_by: Any = passages.open_tokenizer("pairs:own")
    for name, order in (("one", 1), ("two", 2)):
        ngrams.train(texts, name=name, order=order, unit="token", smoothing="kneser_ney", cut_by=cut_by)
    base = test_token_comparison.COMPARISON
    stages = [{"sittings": 7}, {"sittings": 10}]
    return run(study_of(base, "chances", stages, bank="contexts", roles={"holdout": 0, "controls": 0}))


def steps() -> Study:
    """Beliefs about two evidence questions, each answered for itself."""
    cast.small_bank(400, name="stepwise")
    return run(
        cast.study(
            **{
                **EVERYWHERE,
                "slug": "steps",
                "bank": "stepwise",
                "candidates": {"size": 200},
                "roles": {"holdout": 0, "controls": 0},
                "sitting": {"items": 6, "attention_checks": [CHECK]},
                "instrument": {"kind": "belief_update", "options": {"evidence_questions": 2, "answer_mode": "blank"}},
                "stages": [{"sittings": 16, "responses_per_item": 16}, {"sittings": 12, "responses_per_item": 12}],
            }
        )
    )


MAKERS = (steps, cloze, next_token, preference, self_paced_reading, token_comparison)


def main() -> None:
    settings.HUNCH_IDENTITY_KEY = store.IDENTITY_KEY
    call_command("migrate", verbosity=0)
    store.load_database()
    for make in MAKERS:
        study = make()
        print(study.slug, Sitting.objects.filter(stage__study=study).count())
    store.write_added()
    with transaction.atomic(), databases.unguarded():
        call_command("flush", interactive=False, verbosity=0)
    print("Now: python -m tests.renew reports")
