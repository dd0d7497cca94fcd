"""The entries of the admin's navigation next to the studies, and which tables stand under each; what lists are called.

A table is named by its model's label. All of them stand under "Advanced" too.
"""

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DeskTable:
    model: str
    label: str
    says: str


@dataclass(frozen=True)
class DeskGroup:
    """`help`: the place in the documents that explains its tables."""

    name: str
    label: str
    help: str
    tables: tuple[DeskTable, ...]


GROUPS = (
    DeskGroup(
        "banks",
        "Banks",
        "tour.md#banks",
        (
            DeskTable("survey.bank", "Banks", "The sets of questions that studies draw from, each with its versions."),
            DeskTable("survey.question", "Questions", "Read them; flag one that must not be drawn any more."),
            DeskTable("survey.task", "Tasks", "The subjects that the questions belong to."),
            DeskTable("survey.languagemodel", "Language models", "Which models answered, and how many were right."),
            DeskTable("survey.logo", "Logos", "What stands on top of respondents' pages; upload one."),
            DeskTable("survey.answercollection", "Collections", "Ask a language model a bank's questions."),
            DeskTable("survey.modelanswer", "Answers of language models", "What each model said to each question."),
        ),
    ),
    DeskGroup(
        "people",
        "People",
        "tour.md#people",
        (
            DeskTable("survey.respondent", "Respondents", "By pseudonym; delete somebody's answers at their wish."),
            DeskTable("survey.sitting", "Sittings", "Each person's way through a stage, step by step."),
            DeskTable("survey.questionreport", "Remarks", "What people wrote about questions."),
            DeskTable("survey.entrylink", "Entry links", "Links that let in one person each, for a laboratory."),
            DeskTable("survey.withdrawal", "Withdrawals", "Who took back their answers, by pseudonym."),
        ),
    ),
    DeskGroup(
        "payments",
        "Payments",
        "tour.md#payments",
        (
            DeskTable("survey.posting", "Postings", "Studies posted at a panel: draft, publish, pause, approve."),
            DeskTable("survey.submission", "Submissions", "What the panel says of each participation."),
            DeskTable("survey.paymentbatch", "Batches of payments", "Bonuses that were paid together."),
        ),
    ),
    DeskGroup(
        "figures",
        "Predictors",
        "tour.md#predictors",
        (
            DeskTable("survey.predictorrun", "Predictors", "Which predictor was trained after which stage."),
            DeskTable("survey.evaluation", "Evaluations", "How well each did on later answers."),
            DeskTable("survey.candidateset", "Candidates", "What each stage drew from, and the scores."),
            DeskTable("survey.jobstep", "Steps of work", "Training, evaluating, scoring, planning, and what failed."),
        ),
    ),
)
LABELS = {table.model: table.label for group in GROUPS for table in group.tables}


def list_title(options: Any) -> str:
    """What the list of a model's rows is called, by the model's options: as in the navigation, else in the plural."""
    plural = re.sub(r"^api\b", "API", re.sub(r"^ngram\b", "n-gram", str(options.verbose_name_plural)))
    return LABELS.get(options.label_lower, plural[:1].upper() + plural[1:])
