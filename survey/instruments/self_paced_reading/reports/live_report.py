"""The report `reading_live`: what is known while passages come in. Counts of all, and the times of the newest."""

from collections import Counter
from typing import Any

from django.db.models import Count, Q

from survey.contracts import instruments
from survey.contracts.reports import Report, ReportArguments, ReportResult
from survey.exceptions import StateRefused
from survey.figures import Column, Table
from survey.figures.words import integer, percent, short
from survey.models import Study
from survey.services.results.so_far import PERSON, STAGE, by_stage, rows_so_far

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
ANSWERED = {"asked": Count("pk"), "hits": Count("pk", filter=Q(right=True))}
NEWEST = 500  # passages of which the times are read; more would make the page slow


class ReadingLive(Report):
    """How many passages were read, how many of them are marked and why, and how many questions were answered right."""

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        rows = by_stage(study, WordTimes, passages=Count("pk"), whole=Count("pk", filter=Q(marks=[])))
        if not rows:
            raise StateRefused(f"{study.slug}: no passage counts yet")
        answers = {row["stage"]: row for row in by_stage(study, PassageAnswer, **ANSWERED)}
        times = rows_so_far(study, WordTimes)
        pace = _pace(times.filter(marks=[]).order_by("-pk").values_list(STAGE, "times")[:NEWEST])
        marks = Counter(mark for own in times.exclude(marks=[]).values_list("marks", flat=True) for mark in own)
        passages, whole = sum(row["passages"] for row in rows), sum(row["whole"] for row in rows)
        for row in rows:
            answered = answers.get(row["stage"])
            row["marked"] = (row["passages"] - row.pop("whole")) / row["passages"]
            row["right"] = answered["hits"] / answered["asked"] if answered else None
            row["ms_a_word"] = pace.get(row["stage"])
        seen = [(mark, says, marks[mark]) for mark, says in MARKS.items() if marks[mark]]
        least = instruments.of_study(study).options.least_right
        people = times.aggregate(people=Count(PERSON, distinct=True))["people"]
        shares = rows_so_far(study, PassageAnswer).values(PERSON).annotate(**ANSWERED)
        poor = sum(share["hits"] / share["asked"] < least for share in shares)
        questions, hits = (sum(row[name] for row in answers.values()) for name in ("asked", "hits"))
        lines = [
            f"{integer(passages)} passages of {integer(people)} people so far; {integer(passages - whole)} of them are "
            f"marked ({percent((passages - whole) / passages)}), so that their times are left out."
        ]
        if questions:
            lines.append(
                f"{percent(hits / questions)} of {integer(questions)} questions are answered right; {integer(poor)} of "
                f"{integer(people)} people are below {short(100 * least)} % so far, and would be left out."
            )
        return ReportResult(
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
                "passages": passages,
                "people": people,
                "marked": passages - whole,
                "marks": dict(marks),
                "questions": questions,
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
