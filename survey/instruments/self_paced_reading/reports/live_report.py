"""The report `reading_live`: what is known while passages come in. Two statements, and nobody's times."""

from collections import Counter, defaultdict
from typing import Any, NamedTuple

from survey.contracts import instruments
from survey.contracts.reports import Findings, Given, Report
from survey.exceptions import StateRefused
from survey.figures import Column, Table
from survey.figures.words import integer, percent, short
from survey.models import Study
from survey.services.answers.counting import counting

from ..marks import MARKS
from ..models import PassageAnswer, WordTimes

STAGES = (
    Column("stage", "number", "The stage.", whole=True),
    Column("passages", "number", "Passages that were read and count so far.", whole=True),
    Column("people", "number", "Who read them.", whole=True),
    Column("marked", "share", "Of the passages, those that are marked, so that their times are left out."),
    Column("right", "share", "Of the questions, those that were answered right.", heading="questions right"),
    Column("ms_a_word", "number", "Mean time of a word in milliseconds, in the newest unmarked passages.", digits=0),
)
SEEN_MARKS = (
    Column("mark", "text", "Why the times of a passage are left out."),
    Column("says", "text", "What that means.", heading="what it means"),
    Column("passages", "number", "Passages with this mark; one may have several.", whole=True),
)
ANSWER = "response__assignment"
PERSON, STAGE = f"{ANSWER}__sitting__respondent", f"{ANSWER}__slot__stage__index"
NEWEST = 500  # passages of which the times are read; more would make the page slow


class _Passage(NamedTuple):
    assignment: int
    stage: int
    person: int
    marks: list[str]


class ReadingLive(Report):
    """How many passages were read, how many of them are marked and why, and how many questions were answered right."""

    def make(self, study: Study, given: Given) -> Findings:
        counted = counting(study.main_stages()).order_by().values("pk")
        of_study = WordTimes.objects.filter(**{f"{ANSWER}__in": counted}).order_by("pk")
        passages = [_Passage(*row) for row in of_study.values_list(ANSWER, STAGE, PERSON, "marks").iterator(5000)]
        if not passages:
            raise StateRefused(f"{study.slug}: no passage counts yet")
        answers = PassageAnswer.objects.filter(**{f"{ANSWER}__in": counted}).order_by()
        right: dict[int, bool] = dict(answers.values_list(ANSWER, "right"))
        pace = _pace(of_study.filter(marks=[]).order_by("-pk").values_list(STAGE, "times")[:NEWEST])
        by_stage: defaultdict[int, list[_Passage]] = defaultdict(list)
        for one in passages:
            by_stage[one.stage].append(one)
        rows = [_row(stage, own, right, pace.get(stage)) for stage, own in sorted(by_stage.items())]
        marks = Counter(mark for one in passages for mark in one.marks)
        seen = [(mark, says, marks[mark]) for mark, says in MARKS.items() if marks[mark]]
        marked = sum(bool(one.marks) for one in passages)
        least = instruments.of_study(study).options.least_right
        people = {one.person for one in passages}
        poor = _below(passages, right, least)
        hits = sum(right.values())
        lines = [
            f"{integer(len(passages))} passages of {integer(len(people))} people so far; {integer(marked)} of them are "
            f"marked ({percent(marked / len(passages))}), so that their times are left out."
        ]
        if right:
            lines.append(
                f"{percent(hits / len(right))} of {integer(len(right))} questions are answered right; {integer(poor)} "
                f"of {integer(len(people))} people are below {short(100 * least)} % so far, and would be left out."
            )
        return Findings(
            title=f"Reading so far: {study.title}",
            lines=lines,
            tables=[
                Table("stages_so_far", "Passages by stage", STAGES, rows),
                Table("marks_so_far", "Why passages are marked", SEEN_MARKS, seen),
            ],
            notes=[
                f"Times are those of the newest {NEWEST} passages without a mark, as they came. What is left out, and "
                "what surprisal adds: reading."
            ],
            data={
                "passages": len(passages),
                "people": len(people),
                "marked": marked,
                "marks": dict(marks),
                "questions": len(right),
                "right": hits,
                "people_below": poor,
            },
        )


def _pace(newest: Any) -> dict[int, float]:
    """The mean time of a word by stage."""
    total: Counter[int] = Counter()
    words: Counter[int] = Counter()
    for stage, times in newest:
        total[stage] += sum(times)
        words[stage] += len(times)
    return {stage: total[stage] / words[stage] for stage in words}


def _below(passages: list[_Passage], right: dict[int, bool], least: float) -> int:
    """How many people have a smaller share of right answers."""
    asked: Counter[int] = Counter()
    hits: Counter[int] = Counter()
    for one in passages:
        if one.assignment in right:
            asked[one.person] += 1
            hits[one.person] += right[one.assignment]
    return sum(hits[person] / asked[person] < least for person in asked)


def _row(stage: int, own: list[_Passage], right: dict[int, bool], pace: float | None) -> tuple[Any, ...]:
    answered = [right[one.assignment] for one in own if one.assignment in right]
    return (
        stage,
        len(own),
        len({one.person for one in own}),
        sum(bool(one.marks) for one in own) / len(own),
        sum(answered) / len(answered) if answered else None,
        pace,
    )
