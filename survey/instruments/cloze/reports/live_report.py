"""The report `cloze_live`: what is known while answers come in. One statement over few columns, and nobody's words."""

from collections import Counter, defaultdict

from survey.contracts import instruments
from survey.contracts.reports import Report, ReportArguments, ReportResult
from survey.exceptions import StateRefused
from survey.figures import Column, Table
from survey.figures.words import integer, percent
from survey.models import Study
from survey.services.answers.counting import counting

from ..models import WordScore

STAGES = (
    Column("stage", "number", "The stage.", whole=True),
    Column("words", "number", "Words that count so far.", whole=True),
    Column("people", "number", "Who wrote them.", whole=True),
    Column("positions", "number", "Positions with a word.", whole=True),
    Column(
        "exact", "share", "Of the words, those that are exactly the sentence's own.", heading="exactly the own word"
    ),
    Column(
        "lenient",
        "share",
        "Of the words, those that are the sentence's own but for a slip of one letter at most.",
        heading="or but for a slip",
    ),
    Column(
        "several",
        "share",
        "Of the words, those that are the first of several that were typed.",
        heading="several typed",
    ),
)
POSITIONS = (
    Column("answers", "number", "Answers at a position, all stages together.", whole=True),
    Column("positions", "number", "How many positions have so many.", whole=True),
)
FACTS = (
    *("word__response__assignment", "exact", "lenient", "word__several"),
    *("word__response__assignment__sitting__respondent", "word__response__assignment__slot__stage__index"),
    "word__response__assignment__slot__item",
)


class ClozeLive(Report):
    """How many words there are at how many positions, and how many are the sentence's own."""

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        options = instruments.of_study(study).options
        answers = counting(study.main_stages()).order_by().values("pk")
        scores = WordScore.objects.filter(word__response__assignment__in=answers).order_by("word", "rule")
        # Of several rows of an assignment the last one counts: the last word typed, by the newest rule.
        words = {row[0]: row[1:] for row in scores.values_list(*FACTS).iterator(5000)}
        if not words:
            raise StateRefused(f"{study.slug}: no word counts yet")
        by_stage = defaultdict(list)
        for row in words.values():
            by_stage[row[4]].append(row)
        rows = [
            (
                stage,
                len(own),
                len({row[3] for row in own}),
                len({row[5] for row in own}),
                *(sum(row[place] for row in own) / len(own) for place in range(3)),
            )
            for stage, own in sorted(by_stage.items())
        ]
        at_position = Counter(row[5] for row in words.values())
        counts = Counter(at_position.values())
        enough = sum(count >= options.least for count in at_position.values())
        full = sum(count >= options.responses_per_item for count in at_position.values())
        people = len({row[3] for row in words.values()})
        own = sum(row[1] for row in words.values()) / len(words)
        return ReportResult(
            title=f"Cloze so far: {study.title}",
            lines=[
                f"{integer(len(words))} words of {integer(people)} people at {integer(len(at_position))} positions so "
                f"far; {percent(own)} are the sentence's own but for a slip of one letter at most.",
                f"{integer(enough)} positions have the {options.least} answers that figures need, and {integer(full)} "
                f"the {options.responses_per_item} that they aim at.",
            ],
            tables=[
                Table("stages_so_far", "Words by stage", STAGES, rows),
                Table("answers_at_positions", "Answers at a position", POSITIONS, sorted(counts.items())),
            ],
            notes=["The shares are of the words that came in. The report “Cloze norms” is of all positions."],
            data={"words": len(words), "people": people, "positions": len(at_position), "enough": enough, "full": full},
        )
