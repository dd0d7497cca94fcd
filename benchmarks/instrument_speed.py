"""How long do exports and reports of a study with 100,000 answers take, by instrument?

    python benchmarks/instrument_speed.py [--answers 100000] [--instruments belief_update,preference,cloze,own_answers]

Each study lies in an SQLite database of its own in a temporary folder, so that the processor time printed is all there
is. The stage is planned by the code; answers are written next to the pages. Printed for each piece of work: seconds of
the processor, statements, and the most memory that the process held above what it held before the first.
"""

import argparse
import csv
import gc
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _servers import ROOT

INSTRUMENTS = ("belief_update", "preference", "cloze", "own_answers")
ITEMS = 20
MODELS = ("birch", "maple", "oak", "pine", "willow")
STUDY = """
slug = "large"
title = "A large study"
bank = "bank"
seed = 1
[instrument]
kind = "{kind}"
[instrument.options]
{options}
[candidates]
size = {candidates}
[roles]
holdout = 0
controls = 0
[sitting]
items = {items}
expires_after_minutes = 1000
{more}
[[stages]]
sittings = {sittings}
responses_per_item = {each}
[[blocks]]
kind = "consent"
text = "Do you agree?"
version = "1"
[[blocks]]
kind = "items"
[[blocks]]
kind = "end"
text = "Thanks."
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--instruments", default=",".join(INSTRUMENTS))
    parser.add_argument("--profile", default="", help="print where the time of this piece of work goes")
    parser.add_argument("--inside", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return inside(arguments.inside, arguments.answers, arguments.profile)
    for name in arguments.instruments.split(","):
        with tempfile.TemporaryDirectory(prefix="hunch-instrument-") as folder:
            environment = os.environ | {
                "DJANGO_SETTINGS_MODULE": "survey.settings",
                "HUNCH_VAR": folder,
                "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3",
                "HUNCH_LOG_LEVEL": "ERROR",
            }
            asked = ["--inside", name, "--answers", str(arguments.answers), "--profile", arguments.profile]
            subprocess.run([sys.executable, __file__, *asked], check=True, env=environment)
    return 0


def inside(name: str, answers: int, profiled: str) -> int:
    sys.path.insert(0, str(ROOT))
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    call_command("migrate", verbosity=0, interactive=False)
    begun = time.process_time()
    study = {"preference": preference, "cloze": cloze, "own_answers": own_answers, "belief_update": beliefs}[name](
        answers
    )
    built = time.process_time() - begun
    gc.collect()
    folder = Path(os.environ["HUNCH_VAR"])
    print(f"{name}: built in {built:.0f} s of processor time")
    rows = []
    for what, work in works(study, folder).items():
        start, before = time.process_time(), most_memory()
        if what == profiled:
            import cProfile
            import pstats

            profile = cProfile.Profile()
            profile.runcall(work)
            pstats.Stats(profile).sort_stats("cumulative").print_stats(40)
            continue
        with CaptureQueriesContext(connection) as asked:
            try:
                work()
            except Exception as exc:  # A report that has nothing to show says so: its line has the sentence.
                rows.append({"what": what, "refused": f"{type(exc).__name__}: {exc}"[:120]})
                print(f"  {what:<24} {rows[-1]['refused']}")
                continue
        row = {
            "what": what,
            "seconds": round(time.process_time() - start, 1),
            "statements": len(asked.captured_queries),
            "mib": round((most_memory() - before) / 1024),
        }
        rows.append(row)
        print(
            f"  {what:<24} {row['seconds']:>7} s {row['statements']:>7} statements {row['mib']:>6} MiB more", flush=True
        )
    print(json.dumps({"instrument": name, "answers": answers, "work": rows}))
    return 0


def works(study: Any, folder: Path) -> dict[str, Callable[[], Any]]:
    from survey.contracts import instruments
    from survey.models import Job
    from survey.services.base import jobs
    from survey.services.results import reports

    def export() -> None:
        job, _new = jobs.ask(study, "export", {"format": ["csv"], "table": ["answers"]})
        jobs.run(job.pk)
        job = Job.objects.get(pk=job.pk)
        if job.error:
            raise RuntimeError(job.error)

    calls: dict[str, Callable[[], Any]] = {"export of answers": export}
    own = [entry.name for entry in instruments.of_study(study).reports() if entry.while_it_runs]
    for name in ("agreement", "calibration", "gaps", *own, "preferences", "cloze"):
        if name in {entry.name for entry in reports.entries_of(study)}:
            calls[f"report {name}"] = lambda name=name: reports.make(study, name)
    return calls


def most_memory() -> int:
    """KiB."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0])


def bank_of(rows: Sequence[Sequence[str]], columns: Sequence[str], **options: Any) -> None:
    from django.core.management import call_command

    path = Path(os.environ["HUNCH_VAR"]) / "bank.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    call_command("import_questions", str(path), bank="bank", verbosity=0, **options)


def filled(kind: str, answers: int, *, options: str, each: int, more: str, typed: Callable[..., Any]) -> Any:
    """A study of one open stage, all of whose slots are answered."""
    from django.db import transaction
    from django.utils import timezone

    from survey.models import Assignment, Respondent, Response, Sitting, Slot
    from survey.services.plans.planning import plan_stage
    from survey.services.studies.creating import create_study

    text = STUDY.format(
        kind=kind, options=options, candidates=answers // each, items=ITEMS, sittings=answers // ITEMS, each=each,
        more=more,
    )  # fmt: skip
    study = create_study(text=text, source_name="large.toml")
    stage = plan_stage(study.stages.get())
    now = timezone.now()
    stage.state, stage.opened_at = "open", now
    stage.save()
    with transaction.atomic():
        booklets = list(stage.booklets.order_by("pk"))
        stage.booklets.update(claimed_at=now)
        people = Respondent.objects.bulk_create([Respondent(study=study) for _one in booklets], batch_size=2000)
        sittings = Sitting.objects.bulk_create(
            [
                Sitting(
                    respondent=person, stage=stage, booklet=booklet, state="complete", started_at=now, last_seen_at=now,
                    ended_at=now, study_sha256=study.source_sha256,
                )
                for person, booklet in zip(people, booklets, strict=True)
            ],
            batch_size=2000,
        )  # fmt: skip
        of_booklet = {sitting.booklet_id: sitting for sitting in sittings}
        slots = list(Slot.objects.filter(stage=stage).order_by("booklet", "position"))
        assignments = Assignment.objects.bulk_create(
            [
                Assignment(
                    sitting=of_booklet[slot.booklet_id], slot=slot, position=slot.position, state="counted",
                    assigned_at=now, completed_at=now,
                )
                for slot in slots
            ],
            batch_size=2000,
        )  # fmt: skip
        responses = Response.objects.bulk_create(
            [
                Response(assignment=assignment, number=1, screen="item", answered_at=now, server_ms=900)
                for assignment in assignments
            ],
            batch_size=2000,
        )
        typed(responses, slots, random.Random(1))
    return study


def preference(answers: int) -> Any:
    from survey.instruments.preference.models import JudgeVerdict, ReplyComparison, ReplyJudgement
    from survey.models import Bank, LanguageModel
    from survey.services.banks.model_answers import import_replies

    prompts = max(ITEMS, answers // 100)
    bank_of(
        [[f"p{n}", f"category {n % 6}", f"Please explain number {n} in a few words."] for n in range(prompts)],
        ["id", "source", "text"],
        format="prompts",
    )
    path = Path(os.environ["HUNCH_VAR"]) / "replies.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["llm", "question_id", "response"])
        for place, model in enumerate(MODELS):
            writer.writerows([[model, f"p{n}", f"Number {n} is {n}. " + "It follows. " * (1 + (n * 7 + place) % 30)]
                              for n in range(prompts)])  # fmt: skip
    import_replies(path, Bank.objects.get())

    def typed(responses: Any, slots: Any, rng: random.Random) -> None:
        ReplyJudgement.objects.bulk_create(
            [
                ReplyJudgement(response=response, a_first=rng.random() < 0.5, place=(place := rng.randint(1, 8)),
                               places={"helpful": place, "truthful": rng.randint(1, 8)})
                for response in responses
            ],
            batch_size=2000,
        )  # fmt: skip
        judge = LanguageModel.objects.create(name="judge")
        JudgeVerdict.objects.bulk_create(
            [
                JudgeVerdict(judge=judge, a_id=a, b_id=b, first=first, towards_a=rng.randint(0, 7) - 3.5,
                             chance_a=rng.random())
                for a, b in ReplyComparison.objects.values_list("a", "b")
                for first in ("a", "b")
            ],
            batch_size=2000,
        )  # fmt: skip

    options = f'models = {json.dumps(MODELS)}\nquestions = ["helpful", "truthful"]'
    return filled("preference", answers, options=options, each=10, more="", typed=typed)


def cloze(answers: int) -> Any:
    from predictors.readings import Text
    from survey.instruments.cloze.model_words import read_models
    from survey.instruments.cloze.models import WordScore, WrittenWord
    from survey.services.banks import ngrams

    rng = random.Random(2)
    words = ["".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _n in range(rng.randint(2, 9))) for _w in range(900)]
    sentences = [" ".join(rng.choice(words) for _n in range(12)) + "." for _s in range(max(ITEMS, answers // 100))]
    bank_of(
        [[f"s{n}", f"book {n % 9}", text] for n, text in enumerate(sentences)], ["id", "source", "text"],
        format="sentences",
    )  # fmt: skip
    ngrams.train([Text("a", " ".join(sentences))], name="unigram", order=1, unit="word", smoothing="kneser_ney")

    def typed(responses: Any, slots: Any, rng: random.Random) -> None:
        written = WrittenWord.objects.bulk_create(
            [WrittenWord(response=response, text=rng.choice(words[:30]), several=False) for response in responses],
            batch_size=2000,
        )
        WordScore.objects.bulk_create(
            [
                WordScore(word=word, rule=1, normalised=word.text, exact=(same := rng.random() < 0.3), lenient=same)
                for word in written
            ],
            batch_size=2000,
        )

    more = '[[models]]\nname = "unigram"\nsource = "ngram:unigram"'
    study = filled("cloze", answers, options="responses_per_item = 10", each=10, more=more, typed=typed)
    read_models(study, everything=True)
    return study


def own_answers(answers: int) -> Any:
    from survey.instruments.own_answers.models import OwnAnswer

    questions = max(ITEMS, answers // 25)
    bank_of(
        [[f"q{n}", f"task {n % 9}", f"What is {n} plus {3 * n}?", str(4 * n)] for n in range(questions)],
        ["id", "source", "question", "answer"],
    )

    def typed(responses: Any, slots: Any, rng: random.Random) -> None:
        OwnAnswer.objects.bulk_create(
            [
                OwnAnswer(
                    response=response, text="42", stated="42", correct=rng.random() < 0.5, confidence=rng.randrange(101)
                )
                for response in responses
            ],
            batch_size=2000,
        )

    return filled("own_answers", answers, options="answers_per_question = 25", each=1, more="", typed=typed)


def beliefs(answers: int) -> Any:
    import flatness

    from survey.models import LanguageModel, ModelAnswer, Question, Slot
    from survey.services.studies.lookup import find_study

    flatness.make_bank()
    flatness.make_study("large", 2 * answers)
    Slot.objects.filter(assignments__isnull=True).delete()
    rng = random.Random(3)
    for name in MODELS[:3]:
        model = LanguageModel.objects.create(name=name)
        ModelAnswer.objects.bulk_create(
            [
                ModelAnswer(language_model=model, question=question, response=question.answer,
                            correct=rng.random() < 0.7)
                for question in Question.objects.all()
            ],
            batch_size=2000,
        )  # fmt: skip
    return find_study("large")


if __name__ == "__main__":
    sys.exit(main())
