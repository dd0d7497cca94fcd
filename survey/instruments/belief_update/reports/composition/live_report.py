"""The report `composition_live`: what is known while beliefs in steps come in. Two statements over few columns."""

from collections import Counter, defaultdict
from typing import Any

from survey.contracts import instruments
from survey.contracts.reports import Report, ReportArguments, ReportResult
from survey.exceptions import StateRefused
from survey.figures import Column, Table
from survey.figures.words import counted, percent
from survey.models import Study
from survey.services.answers.counting import counting

from ...analysis.composition import MIN_ITEMS
from ...export_steps import order_is_hidden
from ...labels import Beliefs, beliefs_from
from ...models import Belief

STAGES = (
    Column("stage", "number", "The stage.", whole=True),
    Column("answers", "number", "Whole answers that count so far.", whole=True),
    Column("people", "number", "Who gave them.", whole=True),
    Column("items", "number", "Items with an answer.", whole=True),
)
STEPS = (
    Column("step", "number", "Which evidence question it was in the order shown, from 1.", whole=True),
    Column("evidence", "text", "How it was answered: correct or incorrect."),
    Column("answers", "number", "How many beliefs were given right after it.", whole=True, heading="beliefs"),
    Column(
        "change",
        "percentage points",
        "The mean change of the belief at this step.",
        heading="mean change, points",
        digits=1,
        signed=True,
    ),
    Column("unchanged", "share", "Of these beliefs, those that stayed as they were."),
)
FIRST = 2  # people who saw each evidence question of an item first: what the report composition needs
FACTS = ("pk", "slot__stage__index", "sitting__respondent", "slot__item")
OUTCOMES = ("outcome", "outcome_2", "outcome_3")
HIDDEN = "The study is blind and the order of the evidence is a condition, so that nothing is shown by step."


class StepsLiveReport(Report):
    """How many answers there are to how many items, whether these are enough, and how beliefs move at each step."""

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        counting_answers = counting(study.main_stages()).order_by()
        stated = Belief.objects.filter(response__assignment__in=counting_answers.values("pk")).order_by()
        given_by: defaultdict[int, list[tuple[str, int, int | None]]] = defaultdict(list)
        columns = stated.values_list("response__assignment", "kind", "value", "place")
        for answer, kind, value, place in columns.iterator(5000):
            given_by[answer].append((kind, value, place))
        steps = instruments.of_study(study).options.evidence_questions
        outcomes = [f"slot__item__pair__{name}" for name in OUTCOMES[:steps]]
        rows = []
        for row in counting_answers.values_list(*FACTS, *outcomes).iterator(5000):
            beliefs = beliefs_from(given_by.get(row[0], ()))
            if beliefs.prior is not None and len(beliefs.steps) == steps:
                rows.append((row[1], row[2], row[3], beliefs, row[4:]))
        if not rows:
            raise StateRefused(f"{study.slug}: no answer counts yet")
        first: Counter[tuple[int, int]] = Counter((row[2], row[3].steps[0][0]) for row in rows)
        items = {row[2] for row in rows}
        ready = sum(all(first[item, place] >= FIRST for place in range(1, steps + 1)) for item in items)
        values = [value for row in rows for value in (row[3].prior, *(after for _place, after in row[3].steps))]
        people = len({row[1] for row in rows})
        ends = [sum(value == end for value in values) / len(values) for end in (0, 100)]
        by_step = [] if order_is_hidden(study) else _by_step(rows)
        tables = [Table("stages_so_far", "Answers by stage", STAGES, _by_stage(rows))]
        if by_step:
            tables.append(Table("steps_so_far", "Changes at each step", STEPS, by_step))
        return ReportResult(
            title=f"Beliefs in steps so far: {study.title}",
            lines=[
                f"{counted(len(rows), 'answer')} of {counted(people, 'person', 'people')} to "
                f"{counted(len(items), 'item')} so far.",
                f"In {counted(ready, 'item')} each evidence question came first for {FIRST} people or more. The report "
                f"composition is about these items and needs {MIN_ITEMS} of them.",
                f"{percent(ends[0])} of all stated beliefs are 0, and {percent(ends[1])} are 100.",
            ],
            tables=tables,
            notes=[
                "The changes are of the answers that came in. Slopes and weights, with the noise taken apart: "
                "composition.",
                *([] if by_step else [HIDDEN]),
            ],
            data={
                "answers": len(rows),
                "people": people,
                "items": len(items),
                "items_ready": ready,
                "share_of_0": ends[0],
                "share_of_100": ends[1],
            },
        )


def _by_step(rows: list[tuple[int, int, int, Beliefs, Any]]) -> list[list[Any]]:
    """Step, outcome, how many, mean change, share that stayed."""
    changes: defaultdict[tuple[int, bool], list[int]] = defaultdict(list)
    for _stage, _person, _item, beliefs, outcome in rows:
        before = beliefs.prior or 0
        for step, (place, after) in enumerate(beliefs.steps, 1):
            changes[step, bool(outcome[place - 1])].append(after - before)
            before = after
    return [
        [
            step,
            "correct" if correct else "incorrect",
            len(own),
            sum(own) / len(own),
            sum(change == 0 for change in own) / len(own),
        ]
        for (step, correct), own in sorted(changes.items(), key=lambda entry: (entry[0][0], not entry[0][1]))
    ]


def _by_stage(rows: list[tuple[int, int, int, Beliefs, Any]]) -> list[list[int]]:
    """Stage, answers, people, items."""
    of_stage = defaultdict(list)
    for row in rows:
        of_stage[row[0]].append(row)
    return [
        [stage, len(own), len({row[1] for row in own}), len({row[2] for row in own})]
        for stage, own in sorted(of_stage.items())
    ]
