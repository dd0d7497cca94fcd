"""Does a page cost more in a large study than in a small one? Do exports and plans cost twice for twice as much?

    python benchmarks/flatness.py [--slots 1000,100000,1000000] [--visits 40]
    python benchmarks/flatness.py --slots "" --linear 2000,10000,50000 --stages 7
    python benchmarks/flatness.py --slots "" --stages 7 --sittings 264 --reports

Three studies lie in one database, with as many slots and as many stored responses each: half of the slots are
answered, half are free. People begin in each in turn, claim their items and answer two of them, in this process.
Printed is the median of each kind of page, and how many times that of the smallest study it is: at most 1.5. "Look for
slots" is what beat does twice a minute.

With --linear a stage of each of these sizes is planned, with as many slots and with ten times as many candidates, and
the answers of one are exported and estimated. Printed is processor time for a slot or a candidate, and that of the
largest size divided by that of the smallest: at most about 1.3. With --stages a study of so many stages runs, all of
one size: printed is the processor time of freezing, evaluating and planning each. With --reports eight language models
answer the bank's questions afterwards, and its reports and estimates are made. PostgreSQL's own time is not in these;
with --database sqlite:///PATH all of it is. --database takes the address of a database to use instead of a fresh
PostgreSQL; studies that an earlier run has left there are used again.
"""

import argparse
import gc
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _browsers import filled
from _servers import ROOT, postgresql

ITEMS = 10  # of a sitting
QUESTIONS = 4000
KINDS = ("welcome", "consent", "begin and claim", "item page", "item post", "look for slots")
STUDY = """
slug = "{slug}"
title = "A study"
bank = "flat"
seed = 1
[candidates]
size = {candidates}
[roles]
holdout = 0
controls = 0
[sitting]
items = {items}
expires_after_minutes = 1000
begins_per_address = 0
[instrument]
kind = "belief_update"
[[stages]]
sittings = {sittings}
[[blocks]]
kind = "consent"
version = "1"
text = "You may stop at any time."
[[blocks]]
kind = "items"
[[blocks]]
kind = "end"
text = "Thank you."
[data]
retention_until = 2099-12-31
[panel]
kind = "open"
"""


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slots", type=numbers, default=[1000, 100_000, 1_000_000])
    parser.add_argument("--visits", type=int, default=40, help="people in each study, whose smallest has 50 places")
    parser.add_argument("--linear", type=numbers, default=[], help="slots of the stages that are planned and exported")
    parser.add_argument("--stages", type=int, default=0, help="stages of a study that runs to its end")
    parser.add_argument("--sittings", type=int, default=100, help="of each of these stages")
    parser.add_argument("--reports", action="store_true", help="of the study that runs to its end")
    parser.add_argument("--database", help="such as sqlite:///PATH")
    parser.add_argument("--explain", action="store_true", help="print the statements that take over a millisecond")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hunch-flat-") as name:
        if options.database:
            return measure(options, options.database, name)
        with postgresql() as (url, _process):
            return measure(options, url, name)


def measure(options: argparse.Namespace, url: str, folder: str) -> int:
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "survey.settings",
        "HUNCH_VAR": folder,
        "DATABASE_URL": url,
        "HUNCH_LOG_LEVEL": "ERROR",
    }
    sys.path.insert(0, str(ROOT))
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)
    from survey.models import Bank, Study

    if not Bank.objects.filter(name="flat").exists():
        make_bank()
    report: dict[str, Any] = {}
    for slots in options.slots:
        if not Study.objects.filter(slug=f"s{slots}").exists():
            begun = time.perf_counter()
            make_study(f"s{slots}", slots)
            tidy()
            print(f"{slots:,} slots and responses written in {time.perf_counter() - begun:.0f} s", flush=True)
    if options.slots and options.visits:
        report["pages"] = pages(options.slots, options.visits)
        if options.explain:
            explain(options.slots[-1])
    if options.linear:
        linear(1000, Path(folder) / "first")  # Once, so that everything is imported.
        times = {size: linear(size, Path(folder)) for size in options.linear}
        report["linear"] = growth(times)
    if options.stages:
        report["stages"] = in_turn(options.stages, options.sittings)
    if options.stages and options.reports:
        report["reports"] = reports_of(f"of{options.stages}", Path(folder))
    print(json.dumps(report))
    return 0


# Building


def insert(model: Any, rows: int, **columns: str) -> None:
    """So many rows in one statement. A column is an SQL expression of i, which counts from 1, or has its default."""
    from django.db import connection

    names, expressions, values = [], [], []
    for field in model._meta.concrete_fields:
        names.append(connection.ops.quote_name(field.column))
        if field.attname in columns:
            expressions.append(columns[field.attname].replace("%", "%%"))
        else:
            expressions.append("%s")
            values.append(field.get_db_prep_save(field.get_default(), connection))
    if connection.vendor == "postgresql":
        source = f"generate_series(1, {rows}) AS counted(i)"
    else:
        source = (
            f"(WITH RECURSIVE counted(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM counted WHERE i < {rows}) "  # noqa: S608
            "SELECT i FROM counted)"
        )
    table, into = model._meta.db_table, ", ".join(names)
    statement = f"INSERT INTO {table} ({into}) SELECT {', '.join(expressions)} FROM {source}"  # noqa: S608 - all ours
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def make_bank() -> None:
    from survey.models import Bank, Question, Task

    bank = Bank.objects.create(name="flat", version=1, sha256="0" * 64, question_count=QUESTIONS)
    tasks = Task.objects.bulk_create([Task(bank=bank, name=f"task {n}", domain=f"domain {n % 3}") for n in range(9)])
    Question.objects.bulk_create(
        [
            Question(
                bank=bank,
                task=tasks[n % 9],
                position=n,
                external_id=f"q{n}",
                text=f"What is {n} plus {3 * n}, and " + "how would one know " * 12 + "?",
                answer=str(4 * n),
            )
            for n in range(QUESTIONS)
        ],
        batch_size=1000,
    )


def create(slug: str, slots: int, *, candidates: int = 0) -> Any:
    from survey.services.studies.creating import create_study

    text = STUDY.format(slug=slug, sittings=slots // ITEMS, items=ITEMS, candidates=candidates or max(2000, 2 * slots))
    return create_study(text=text, source_name=f"{slug}.toml")


def make_study(slug: str, slots: int, *, people_per_item: int = 10) -> None:
    """A study whose stage is open: half of the booklets are answered, half are free."""
    from django.core.management.color import no_style
    from django.db import connection, models, transaction
    from django.utils import timezone

    from survey.instruments.belief_update.models import Belief, Pair
    from survey.models import Assignment, Booklet, Item, Question, Respondent, Response, Sitting, Slot, Stratum

    now = timezone.now()
    first_question = Question.objects.aggregate(least=models.Min("pk"))["least"]
    is_server = connection.vendor == "postgresql"
    when = f"'{now.isoformat(sep=' ')}'" + ("::timestamptz" if is_server else "")
    booklets = slots // ITEMS
    taken = booklets // 2
    answered = taken * ITEMS
    items = slots // people_per_item
    made = (Item, Pair, Stratum, Booklet, Slot, Respondent, Sitting, Assignment, Response, Belief)
    base = {model: (model.objects.aggregate(most=models.Max("pk"))["most"] or 0) for model in made}
    with transaction.atomic(), connection.cursor() as cursor:
        study = create(slug, 1000)  # What is drawn from it is written below, and not planned.
        stage = study.stages.get()
        indexes = _without_indexes(cursor, made) if is_server else []
        if is_server:
            cursor.execute("SET LOCAL session_replication_role = replica")  # All rows are made here: nothing to check.
            cursor.execute("SET LOCAL synchronous_commit = off")
        insert(Item, items, id=f"{base[Item]} + i", study_id=str(study.pk), key="'item ' || i")
        insert(
            Pair,
            items,
            item_id=f"{base[Item]} + i",
            target_id=f"{first_question} + (i * 7) % {QUESTIONS}",
            evidence_id=f"{first_question} + (i * 7 + 1 + (i / 13) % {QUESTIONS - 2}) % {QUESTIONS}",
            outcome="i % 2 = 0",
        )
        insert(
            Stratum,
            1,
            id=f"{base[Stratum]} + i",
            stage_id=str(stage.pk),
            name="'all'",
            size=str(items),
            slots=str(items),
        )
        insert(
            Booklet,
            booklets,
            id=f"{base[Booklet]} + i",
            stage_id=str(stage.pk),
            number="i",
            claimed_at=f"CASE WHEN i <= {taken} THEN {when} END",
        )
        insert(
            Slot,
            slots,
            id=f"{base[Slot]} + i",
            stage_id=str(stage.pk),
            number="i",
            item_id=f"{base[Item]} + 1 + (i - 1) % {items}",
            replicate=f"1 + (i - 1) / {items}",
            role="'sampled'",
            control_kind="''",
            stratum_id=f"{base[Stratum]} + 1",
            inclusion_probability="0.5",
            pool_probability="0.5",
            booklet_id=f"{base[Booklet]} + 1 + (i - 1) / {ITEMS}",
            position=f"1 + (i - 1) % {ITEMS}",
        )
        insert(
            Respondent,
            taken,
            id=f"{base[Respondent]} + i",
            study_id=str(study.pk),
            pseudonym=f"'r-{study.pk}-' || i",
            created_at=when,
        )
        insert(
            Sitting,
            taken,
            id=f"{base[Sitting]} + i",
            public_id="gen_random_uuid()" if is_server else "lower(hex(randomblob(16)))",
            respondent_id=f"{base[Respondent]} + i",
            stage_id=str(stage.pk),
            booklet_id=f"{base[Booklet]} + i",
            state="'complete'",
            started_at=when,
            last_seen_at=when,
            ended_at=when,
            step="24",
            block="2",
            study_sha256=f"'{study.source_sha256}'",
        )
        insert(
            Assignment,
            answered,
            id=f"{base[Assignment]} + i",
            sitting_id=f"{base[Sitting]} + 1 + (i - 1) / {ITEMS}",
            slot_id=f"{base[Slot]} + i",
            position=f"1 + (i - 1) % {ITEMS}",
            state="'counted'",
            assigned_at=when,
            completed_at=when,
        )
        insert(
            Response,
            2 * answered,
            id=f"{base[Response]} + i",
            assignment_id=f"{base[Assignment]} + 1 + (i - 1) / 2",
            number="1 + (i - 1) % 2",
            screen="CASE WHEN i % 2 = 1 THEN 'prior' ELSE 'posterior' END",
            screen_sha256="''",
            answered_at=when,
            server_ms="900",
        )
        insert(
            Belief,
            2 * answered,
            response_id=f"{base[Response]} + i",
            kind="CASE WHEN i % 2 = 1 THEN 'prior' ELSE 'posterior' END",
            value="(i * 37) % 101",
        )
        for statement in [*indexes, *connection.ops.sequence_reset_sql(no_style(), made)]:
            cursor.execute(statement)
        stage.state, stage.plan_sha256, stage.arrivals = "open", "f" * 64, taken
        stage.planned_at = stage.opened_at = now
        stage.save()


def _without_indexes(cursor: Any, models: Sequence[Any]) -> list[str]:
    """Drop the indexes that hold no constraint, and give the statements that make them again: that is quicker than to
    add a million rows to each."""
    cursor.execute(
        "SELECT c.relname, pg_get_indexdef(c.oid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "JOIN pg_class t ON t.oid = i.indrelid WHERE t.relname = ANY(%s) AND NOT i.indisunique",
        [[model._meta.db_table for model in models]],
    )
    indexes = cursor.fetchall()
    for name, _definition in indexes:
        cursor.execute(f'DROP INDEX "{name}"')
    return [definition for _name, definition in indexes]


def tidy() -> None:
    """As autovacuum would some minutes later."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")


# Pages


def pages(sizes: Sequence[int], visits: int) -> dict[str, dict[str, float]]:
    times: dict[tuple[str, int], list[float]] = defaultdict(list)
    for number in range(visits + 3):
        for slots in sizes:
            for kind, seconds in visit(f"s{slots}"):
                if number >= 3:  # The first ones compile statements and templates.
                    times[kind, slots].append(seconds)
    print(f"{'median, ms':<16}" + "".join(f"{slots:>12,}" for slots in sizes) + "   times the smallest")
    report = {}
    for kind in KINDS:
        medians = [1000 * statistics.median(times[kind, slots]) for slots in sizes]
        ratios = [median / medians[0] for median in medians]
        words = " ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"{kind:<16}" + "".join(f"{median:>12.2f}" for median in medians) + f"   {words}")
        report[kind] = {str(slots): round(ratio, 2) for slots, ratio in zip(sizes, ratios, strict=True)}
    return report


def visit(slug: str) -> list[tuple[str, float]]:
    """One person who begins and answers two items, with the time of each page."""
    from django.test import Client

    browser, visits = Client(headers={"host": "127.0.0.1"}), []

    def timed(kind: str, ask: Any, *arguments: Any, **named: Any) -> Any:
        begun = time.perf_counter()
        page = ask(*arguments, **named)
        visits.append((kind, time.perf_counter() - begun))
        if page.status_code >= 400:
            raise RuntimeError(f"{slug}: {kind} was answered with {page.status_code}: {page.content.decode()[:300]}")
        return page

    timed("welcome", browser.get, f"/s/{slug}/")
    page = timed("consent", browser.get, f"/s/{slug}/consent")
    form = filled(page.content.decode(), set()) | {"consent": "yes"}
    timed("begin and claim", browser.post, f"/s/{slug}/consent", form)
    page = timed("item page", browser.get, f"/s/{slug}/sitting")
    for _screen in range(4):
        form = filled(page.content.decode(), set())
        page = timed("item post", browser.post, f"/s/{slug}/sitting", form, headers={"X-Hunch-Exchange": "1"})
    return [*visits, ("look for slots", looking(slug))]


def looking(slug: str) -> float:
    """Seconds that beat needs twice a minute to see that no slot was given back."""
    from survey.models import Stage
    from survey.services.sittings.expiry import deal_make_up_booklets

    stage = Stage.objects.select_related("study").get(study__slug=slug)
    begun = time.perf_counter()
    deal_make_up_booklets(stage)
    return time.perf_counter() - begun


def explain(slots: int) -> None:
    """The slowest statements of a visit in the largest study, with the database's plans of those that read."""
    from django.db import connection

    met: list[tuple[float, str, Any]] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        begun = time.perf_counter()
        result = execute(sql, params, many, context)
        met.append((time.perf_counter() - begun, str(sql), params))
        return result

    with connection.execute_wrapper(watch):
        visit(f"s{slots}")
    how = "EXPLAIN ANALYZE" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
    for seconds, sql, params in sorted(met, key=lambda query: -query[0])[:6]:
        print(f"{1000 * seconds:.1f} ms: {sql[:300]}")
        if sql.startswith("SELECT"):
            with connection.cursor() as cursor:
                cursor.execute(f"{how} {sql}", params)
                print("\n".join(f"    {row[-1]}" for row in cursor.fetchall()))


# Linear


def seconds_of(run: Callable[[], Any]) -> float:
    """Processor time, without that of collecting what earlier work has left."""
    gc.collect()
    begun = time.process_time()
    run()
    return time.process_time() - begun


def linear(size: int, folder: Path) -> dict[str, float]:
    """Microseconds of planning a stage with so many slots (for each slot) and one with ten times as many candidates
    (for each candidate), and of exporting and estimating a study whose half is answered (for each slot)."""
    from survey.models import Stage, Study
    from survey.services.results.estimates import study_estimates
    from survey.services.results.export.files import write_export
    from survey.services.stages import lifecycle

    run = f"{size}-{Study.objects.count()}"
    of_slots = create(f"slots{run}", size)
    of_candidates = create(f"candidates{run}", 1000, candidates=10 * size)
    slug = f"answered{run}"
    make_study(slug, size, people_per_item=1)
    tidy()
    study = Stage.objects.select_related("study__bank").get(study__slug=slug).study
    work: dict[str, tuple[int, Callable[[], Any]]] = {
        "plan, a slot": (size, lambda: lifecycle.plan_stage(of_slots.stages.get())),
        "plan, a candidate": (10 * size, lambda: lifecycle.plan_stage(of_candidates.stages.get())),
        "export, a slot": (size, lambda: write_export(study, folder / slug)),
        "estimate, a slot": (size, lambda: study_estimates.estimate(study)),
    }
    return {name: 1e6 * seconds_of(call) / rows for name, (rows, call) in work.items()}


def growth(times: dict[int, dict[str, float]]) -> dict[str, Any]:
    """Print what each kind of work takes at each size, and how much more for one row at the largest."""
    sizes = list(times)
    print(f"{'processor time, µs':<20}" + "".join(f"{size:>10,}" for size in sizes) + "   largest / smallest")
    report = {}
    for name in times[sizes[0]]:
        micro = [times[size][name] for size in sizes]
        ratio = micro[-1] / micro[0]
        print(f"{name:<20}" + "".join(f"{value:>10.1f}" for value in micro) + f"   {ratio:.2f}")
        report[name] = {"micro": [round(value, 1) for value in micro], "ratio": round(ratio, 2)}
    return report


# Stages in turn

PREDICTOR = """
[predictor]
name = "same_task"
"""
STAGE = """
[[stages]]
sittings = {sittings}
[stages.design]
kind = "epsilon_greedy"
"""
STEPS = ("freeze", "evaluate", "plan", "look for slots")
REPORTS = ("paper", "release", "alignment", "domination")


def in_turn(stages: int, sittings: int) -> dict[str, list[float]]:
    """Seconds of processor time by step, one for each stage. Training is left out, which learns from all so far."""
    from survey.services.sittings import expiry
    from survey.services.stages import jobs, lifecycle
    from survey.services.studies.creating import create_study

    text = STUDY.format(slug=f"of{stages}", sittings=sittings, items=ITEMS, candidates=200 * sittings)
    text = text.replace("holdout = 0", "holdout = 0.1").replace("[[stages]]", PREDICTOR + "[[stages]]", 1)
    study = create_study(text=text + (stages - 1) * STAGE.format(sittings=sittings), source_name="stages.toml")
    times: dict[str, list[float]] = {name: [] for name in STEPS}
    for stage in study.stages.select_related("study__bank").order_by("index"):
        stage.refresh_from_db()
        answer_all(lifecycle.open_stage(stage))
        stage = lifecycle.close_stage(stage)
        taken: dict[str, float] = defaultdict(float)
        while steps := [step for step in lifecycle.next_steps(stage) if step.state != "done"]:
            taken[steps[0].kind] += seconds_of(partial(jobs.run_step, steps[0].pk))
            steps[0].refresh_from_db()
            if steps[0].state != "done":
                raise RuntimeError(f"{steps[0]}: {steps[0].error}")
            stage.refresh_from_db()
        taken["look for slots"] = seconds_of(lambda: [expiry.deal_make_up_booklets(stage) for _time in range(20)]) / 20  # noqa: B023 - called at once
        for name in STEPS:
            if name in taken:
                times[name].append(round(taken[name], 4))
    print(f"{'processor time, s':<20}" + "".join(f"{f'stage {n}':>10}" for n in range(1, stages + 1)))
    for name, seconds in times.items():
        missing = "" if name != "evaluate" else f"{'':>10}"
        print(f"{name:<20}{missing}" + "".join(f"{second:>10.3f}" for second in seconds))
    return times


def reports_of(slug: str, folder: Path) -> dict[str, float]:
    """Seconds of processor time of each report of a study, with its files, and of its estimates."""
    from survey.models import LanguageModel, ModelAnswer, Study
    from survey.services.results import reports
    from survey.services.results.estimates import study_estimates

    study = Study.objects.get(slug=slug)
    random_source = random.Random(1)
    for number in range(8):
        model = LanguageModel.objects.create(name=f"model {number}")
        ModelAnswer.objects.bulk_create(
            [
                ModelAnswer(
                    language_model=model, question=question, correct=random_source.random() < 0.3 + 0.08 * number
                )
                for question in study.bank.questions.all()
            ],
            batch_size=1000,
        )

    def made(name: str) -> None:
        reports.write(study, name, reports.make(study, name), folder / name)

    work: dict[str, Callable[[], Any]] = {name: partial(made, name) for name in REPORTS}
    work["estimate"] = lambda: study_estimates.estimate(study)
    times = {name: round(seconds_of(call), 1) for name, call in work.items()}
    for name, seconds in times.items():
        print(f"{name:<20}{seconds:>10.1f} s")
    return times


def answer_all(stage: Any) -> None:
    """Somebody answers every booklet of an open stage."""
    from django.db import transaction
    from django.utils import timezone

    from survey.instruments.belief_update.models import Belief
    from survey.models import Assignment, Respondent, Response, Sitting

    now, random_source = timezone.now(), random.Random(stage.index)
    when = {"started_at": now, "last_seen_at": now, "ended_at": now}
    with transaction.atomic():
        for booklet in stage.booklets.all():
            booklet.claimed_at = now
            booklet.save()
            sitting = Sitting.objects.create(
                respondent=Respondent.objects.create(study=stage.study),
                stage=stage,
                booklet=booklet,
                state="complete",
                study_sha256=stage.study.source_sha256,
                **when,
            )
            answers = Assignment.objects.bulk_create(
                Assignment(
                    sitting=sitting,
                    slot=slot,
                    position=slot.position,
                    state="counted",
                    assigned_at=now,
                    completed_at=now,
                )
                for slot in booklet.slots.order_by("position")
            )
            responses = Response.objects.bulk_create(
                Response(assignment=answer, number=number, screen=screen, answered_at=now, server_ms=900)
                for answer in answers
                for number, screen in enumerate(("prior", "posterior"), start=1)
            )
            Belief.objects.bulk_create(
                Belief(response=response, kind=response.screen, value=random_source.randrange(101))
                for response in responses
            )


if __name__ == "__main__":
    sys.exit(main())
