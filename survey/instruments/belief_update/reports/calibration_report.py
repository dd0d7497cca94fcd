"""The report `human_calibration`: do people foresee what people and language models get right? Figure 7."""

from collections.abc import Sequence

import numpy as np

from predictors.evaluation.scoring import in_words
from survey.contracts.reports import Argument, Findings, Given, Layout, Picture, Report, Table
from survey.contracts.tables import Column
from survey.models import Study
from survey.services.results.reports import CONDITION
from survey.services.studies.finding import find_study

from . import calibrating
from .alignment_report import model_names
from .expectations import COLUMNS as PERPLEXITY_COLUMNS
from .expectations import FLOOR, StatedExpectations
from .figure7 import COLUMNS, RegionAccuracy, calibration_chart, calibration_rows

MEANINGS = (
    ("text", "Whose answers: people or language models."),
    ("percent", "Lower end of the region of posterior belief, included."),
    ("percent", "Its upper end; only 100 is included."),
    ("number", "Posteriors in the region with an answerer that bears on them."),
    ("number", "Who stated them."),
    ("number", "The target questions."),
    ("number", "Who answered."),
    ("number", "Pairs of a belief and an answerer."),
    ("percent", "The mean of the beliefs."),
    ("share", "How often the answerers are right; empty without a match."),
    ("share", "By respondent, question answered and answerer."),
    (
        "number",
        "How many replies of the language models could not be read; they count as not right. Empty for people.",
    ),
)
FIGURE = tuple(Column(name, *meaning) for name, meaning in zip(COLUMNS, MEANINGS, strict=True))
HEADER = (
    *("answerers", "belief", "accuracy", "standard error", "mean belief", "beliefs", "respondents", "questions"),
    *("answerers", "matches"),
)


def people_slugs(study: Study) -> list[str]:
    return [one.slug for one in calibrating.people_studies(study)]


class CalibrationReport(Report):
    """Accuracy of the answerers by what a study's people expected of them."""

    arguments = (
        Argument(
            "people_study",
            "the study in which people answer the questions themselves",
            required=True,
            choices=people_slugs,
            names_studies=True,
        ),
        Argument("model", "only this language model; all without it", many=True, choices=model_names),
        CONDITION,
    )

    def obstacle(self, study: Study) -> str:
        if not calibrating.people_studies(study):
            return (
                f"{study.slug}: there is no study in which people answer questions of {study.bank} themselves; create "
                "one with the instrument own_answers on the same version of the bank"
            )
        return ""

    def make(self, study: Study, given: Given) -> Findings:
        found = calibrating.human_calibration(
            study,
            people_study=find_study(given.one("people_study")),
            models=given["model"],
            condition=given["condition"],
        )
        return Findings(
            title=f"Do people foresee who answers correctly? {study.title}",
            lines=[
                f"Accuracy of the answerers by posterior belief: {found.beliefs} beliefs, {found.people} people "
                "answering",
            ],
            tables=[_table(found), perplexity_table(found.expectations)],
            pictures=[
                Picture.of(
                    "figure7",
                    "Figure 7",
                    "The accuracy of people and of language models in three regions of what people expected of them, "
                    "with standard errors.",
                    calibration_chart(found.lines),
                )
            ],
            notes=found.notes,
            data={**found.as_json(), "perplexity": [line.as_json() for line in found.expectations]},
        )


def _table(found: calibrating.HumanCalibration) -> Table:
    return Table(
        "figure7",
        "The figure's points",
        FIGURE,
        calibration_rows(found.lines, found.unreadable),
        note="A belief counts where an answerer has the outcome that was shown and answered the target question too. "
        "Standard errors by respondent, question answered and answerer.",
        layouts=[Layout(HEADER, [_cells(line.name, region) for line in found.lines for region in line.regions])],
    )


PERPLEXITY = tuple(
    Column(name, *meaning)
    for name, meaning in zip(
        PERPLEXITY_COLUMNS,
        (
            ("text", "Whose answers: people or language models."),
            ("number", "Posteriors with an answerer that bears on them."),
            ("number", "Who stated them."),
            ("number", "Who answered."),
            ("number", "Perplexity of the stated beliefs; empty where it is infinite."),
            ("share", "How often somebody was certain and wrong: a belief of 0 or 100 that did not come true."),
            ("number", f"Perplexity where a belief gives no outcome less than {FLOOR}."),
            ("number", "Lower end of its 95 % interval, by resampling respondents and questions."),
            ("number", "Its upper end."),
            ("number", "The same log score in bits."),
        ),
        strict=True,
    )
)
PERPLEXITY_HEADER = (
    *("answerers", "perplexity", "certain and wrong", f"at floor {FLOOR}", "95 %", "bits", "beliefs", "respondents"),
)


def perplexity_table(lines: Sequence[StatedExpectations]) -> Table:
    """How surprised people were by what really happened."""
    rows = [list(line.as_json().values()) for line in lines]
    return Table(
        "perplexity",
        "The perplexity of people's expectations",
        PERPLEXITY,
        rows,
        note="1 is certain and right, 2 is a coin toss. A belief of 0 or 100 that did not come true makes it infinite.",
        layouts=[Layout(PERPLEXITY_HEADER, [_expected(line) for line in lines])],
    )


def _expected(line: StatedExpectations) -> list[str]:
    return [
        line.name,
        in_words(line.as_stated.perplexity, 3),
        _percent(line.certain_and_wrong),
        in_words(line.floored.perplexity, 3),
        "-" if line.interval is None else f"{line.interval[0]:.3f} to {line.interval[1]:.3f}",
        in_words(line.floored.bits, 3),
        str(line.beliefs),
        str(line.respondents),
    ]


def _cells(name: str, region: RegionAccuracy) -> list[str]:
    return [
        name,
        f"{region.lower}-{region.upper} %",
        *(_percent(share) for share in (region.accuracy, region.standard_error, region.mean_belief / 100)),
        *map(str, (region.beliefs, region.respondents, region.questions, region.answerers, region.matches)),
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if np.isfinite(share) else "-"
