"""What the API gives, as typed dictionaries: views fill them, and their serializers and the document follow from them.

A text next to a type is the field's description in the document; a tuple has the values that it can have.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NotRequired, TypedDict

from survey import models
from survey.services.base.rights import Right

STAGE_STATES = ("draft", "planned", "open", "paused", "closing", "frozen")
ROLES = ("main", "compared", "baseline")


# Respondents


class ErrorBody(TypedDict):
    code: Annotated[str, "For machines."]
    message: Annotated[str, "For people."]
    fields: NotRequired[Annotated[Mapping[str, Sequence[str]], "Messages by field, where fields were not accepted."]]
    request_id: Annotated[str, "Name it if you ask the study's team about this error."]
    completion_code: NotRequired[
        Annotated[
            str,
            "For people of a panel who do not agree, or who find all places taken: their code.",
        ]
    ]
    completion_url: NotRequired[Annotated[str, "The panel's address for that code."]]


class Error(TypedDict):
    error: ErrorBody


class ConsentText(TypedDict):
    title: str
    text: str
    version: str


class StudyInfo(TypedDict):
    slug: str
    title: str
    language: Annotated[str, "The language of these texts."]
    languages: Annotated[Sequence[str], "The languages that can be asked for."]
    bank_language: Annotated[str, "The questions' language, if different."]
    welcome: str
    minutes: Annotated[int, "How long a sitting takes."]
    contact: str
    panel: Annotated[
        str,
        "The panel that people come from. open: anybody may begin. links: people with a link of the study.",
    ]
    parameters: Annotated[Sequence[str], "Names of the parameters in an entry address."]
    token: Annotated[
        str,
        "The name of one more parameter in an entry address, with which the panel proves that it made the "
        "address. It is a key of its own in addition to `parameters` where a sitting begins. Empty if the "
        "study asks for none.",
    ]
    consent: ConsentText
    open: Annotated[bool, "Whether somebody new can begin now."]
    refusal: Annotated[str, "Why not: closed or full."]


class Part(TypedDict):
    kind: Annotated[
        str,
        ("question", "text", "number"),
        "question: <b>, </b> and <br> are markup, and &lt;br&gt; is the letters <br>; the rest is text.",
    ]
    value: Any


class StepField(TypedDict):
    """Something to answer: a key of the next POST."""

    name: str
    type: Annotated[
        str,
        ("integer", "text", "choice", "multiple", "likert"),
        "choice and likert: one of `options`. multiple: a list of them.",
    ]
    label: str
    required: bool
    minimum: int | None
    maximum: int | None
    max_length: Annotated[int | None, "The most characters of a text."]
    initial: Annotated[int | None, "The number that is filled in at the start, if the study prefills one."]
    options: Annotated[Sequence[str], "What may be sent."]
    labels: Annotated[
        Sequence[str], "What is shown for each option; empty at a scale's points between its labelled ends."
    ]
    exclusive: Annotated[Sequence[str], "multiple: options that cannot be chosen together with another one."]
    hint: str


class Screen(TypedDict):
    name: str
    title: str
    parts: Mapping[str, Part]
    words: Annotated[Mapping[str, str], "The sentences around the parts, by name."]
    fields: Sequence[StepField]


class Progress(TypedDict):
    """How far the sitting has come."""

    percent: Annotated[int, "Of the way from the consent to the end."]
    question: Annotated[int, "Of the item, from 1; at a check of the item behind it. 0 elsewhere."]
    questions: Annotated[int, "Items of the sitting; attention checks do not count. 0 elsewhere."]


class CheckOption(TypedDict):
    value: Annotated[str, "What to send: the option's position as shown in this sitting."]
    text: str


class Check(TypedDict):
    name: str
    question: str
    options: Sequence[CheckOption]


class Step(TypedDict):
    """What the person is shown now."""

    number: Annotated[int, "Send it back with the POST, so that a repeated POST is recognised."]
    kind: Annotated[str, ("instructions", "practice", "checks", "item", "attention", "form", "debriefing", "end")]
    title: str
    text: str
    position: Annotated[int, "Of the item, or of the practice example where there are several, from 1; 0 elsewhere."]
    total: Annotated[int, "Items of the sitting, or practice examples where there are several; 0 elsewhere."]
    progress: Progress
    screen: Screen | None
    checks: Sequence[Check]
    attempt: Annotated[int, "At the comprehension checks, from 1; 0 elsewhere."]
    hints: Sequence[str]
    feedback: Annotated[Sequence[str], "After a practice item: what was entered, in sentences."]
    fields: Sequence[StepField]
    outcome: Annotated[str, "At the end: completed, failed_checks, screened_out or study_full."]
    code: Annotated[str, "At the end: the completion code that was earned. Show it where people enter it at a panel."]
    completion_url: str


class Begun(TypedDict):
    token: Annotated[str, "Send it as X-Sitting-Token."]
    person: Annotated[str | None, "Open studies: keep it to come back to this sitting."]
    step: Step


class Reported(TypedDict):
    noted: bool


# Researchers


class Study(TypedDict):
    slug: str
    title: str
    instrument: str
    bank: str
    stages: Annotated[int, "How many stages the study file plans."]
    created_at: datetime
    url: Annotated[str, "Where respondents go."]


class Stage(TypedDict):
    stage: Annotated[int, "From 1."]
    state: Annotated[str, STAGE_STATES]
    design: str
    pilot: Annotated[bool, "A trial: its answers are in `answers.csv` and nowhere else."]
    slots: int
    in_time: Annotated[int, "Slots with an answer that was complete in time."]
    counted: Annotated[
        int,
        "Of these, the answers that estimates use: to sampled and holdout slots, from sittings that no rule "
        "leaves out, and not from a pilot.",
    ]
    late: Annotated[int, "Complete answers that came too late to count."]
    booklets: int
    free_booklets: int
    sittings: Annotated[Mapping[str, int], "Sittings by state."]
    planned_at: datetime | None
    opened_at: datetime | None
    closing_at: datetime | None
    frozen_at: datetime | None


class Figure(TypedDict):
    value: float | None
    low: Annotated[float | None, "Lower end of its 95 % interval."]
    high: float | None


class LeaderboardLine(TypedDict):
    predictor: str
    role: Annotated[str, ROLES]
    params: Annotated[Mapping[str, Any], "Parameters that differ from the predictor's defaults."]
    columns: Annotated[
        Sequence[Annotated[str, ("people", "models")]],
        "What it reads in addition to the texts, which makes a leaderboard of its own; empty: texts alone.",
    ]
    columns_read: Annotated[
        str,
        "Which answers of language models the column models was made of, at training and at prediction.",
    ]
    trained_after: Annotated[int, "The last stage whose answers it was trained on."]
    training_answers: int
    evaluated_on: Annotated[int | None, "The stage that judges it; null if there is none yet."]
    answers: Annotated[
        str,
        ("", "sampled", "holdout", "majorities"),
        "`majorities`: a test stage's items, each once, by the label of most of its answers.",
    ]
    weighting: Annotated[str, ("", "design", "none"), "`none`: the answers as they came."]
    n: Annotated[int | None, "How many answers judge it."]
    figures: Annotated[
        Mapping[str, Mapping[str, Figure]],
        "By metric and part of the answers, as the study's instrument names them; its first part is all.",
    ]
    difference: Annotated[
        Mapping[str, Mapping[str, Figure]], "Its figures minus the main predictor's, on the same answers."
    ]


class Estimates(TypedDict):
    study: str
    title: str
    estimand: Annotated[str, "What the estimates are means over, in words."]
    headlines: Annotated[Sequence[str], "The main figures in words, each with what the plain figure would say."]
    assumptions: Sequence[str]
    thresholds: Sequence[int]
    answers: int
    respondents: int
    provisional: Annotated[bool, "Whether a stage that counts is not frozen yet."]
    parts: Annotated[Sequence[Mapping[str, Any]], "Stages with their strata and slots."]
    figures: Annotated[
        Sequence[Mapping[str, Any]],
        "Each has an estimate over all stages (combined), one for each stage, and the naive one. The ends of "
        "an interval are null where nothing varies; agreement (f, degrees_of_freedom, p, untested stages) is "
        "null where agreement_withheld says why. Where people left: the one weighted for that (stayed), and "
        "bounds for an odds ratio (bounds) and for anything (worst_case). superpopulation has the interval "
        "for a population of questions. Where predictions help, the same figure with them (assisted), each stage with "
        "its coefficient or the reason why it has none.",
    ]
    assisted: Annotated[Mapping[str, Any] | None, "The first figure's assisted, once more."]
    checks: Annotated[Sequence[Mapping[str, Any]], "Differences that should be pure chance."]
    divisions: Sequence[Mapping[str, Any]]
    slots: Mapping[str, Sequence[Mapping[str, Any]]]
    noise: Annotated[
        Mapping[str, Any],
        "From the controls: false changes, retests, and an upper limit of the AUC that predictors of items "
        "can reach (auc_limit), or why there is none (no_limit).",
    ]
    majorities: Annotated[
        Sequence[Mapping[str, Any]],
        "Majority labels of the items of frozen test stages: by stratum, and together where it is empty.",
    ]
    leaving: Annotated[
        Mapping[str, Any] | None,
        "People who left before their last item, and whether they did by their last answer.",
    ]
    waves: Annotated[
        Sequence[Mapping[str, Any]],
        "How each figure changed within the people who answered in two waves that follow each other, with an "
        "interval by person, how many they are (people), and how many did not come back (not_back). Empty for "
        "a study of one wave.",
    ]
    weighting: Annotated[
        Mapping[str, Any] | None,
        "How people are weighted to the population of [weighting]: its groups with people and shares, the design "
        "effect, and the reason where they are not. Null without one. Each figure's own is in population.",
    ]
    carry_over: Annotated[
        Mapping[str, Any] | None,
        "Whether answers depend on the items before them, figure by figure: the mean by the sampled slots of "
        "adaptive stages minus that by their holdouts, whose booklets are uniform (differences, or why there "
        "are none: no_difference), and the mean from people's first items alone (first_items).",
    ]
    anytime: Annotated[
        Sequence[Mapping[str, Any]],
        "The first figure of each stage alone, and the difference by each factor with two levels, with "
        "intervals that hold however often one looks; with the stage's stopping rule.",
    ]
    computed_at: datetime
    is_current: Annotated[
        bool,
        "False if answers, withdrawals, exclusions, stages, the study file or Hunch have changed since.",
    ]


class AnswerPage(TypedDict):
    next: Annotated[str | None, "Address of the next page."]
    results: Annotated[
        Sequence[Mapping[str, Any]],
        "One object for each row; its keys are the columns of the codebook. condition, condition_probability "
        "and responses are JSON values here.",
    ]


class ReportArgument(TypedDict):
    name: str
    help: str
    many: Annotated[bool, "Whether it may be given several times."]
    required: bool
    default: str
    choices: Annotated[Sequence[str], "Empty where they cannot be listed."]


class ReportLine(TypedDict):
    name: str
    title: str
    summary: str
    opening: Annotated[str, "What it shows and how to read it."]
    url: str
    obstacle: Annotated[str, "Why it cannot be made now; empty if it can."]
    arguments: Sequence[ReportArgument]


class ReceiverEvent(TypedDict):
    event: Annotated[str, "The alert, or `test`."]
    state: Annotated[str, "queued, running, done (taken) or failed (given up)."]
    tries: int
    answer: Annotated[str, "What the last try brought."]
    created_at: datetime


class Receiver(TypedDict):
    number: int
    kind: Annotated[str, tuple(models.Receiver.Kind.values)]
    shown: Annotated[str, "The host of a webhook, or the e-mail address."]
    causes: Annotated[Sequence[str], "The alerts that it gets."]
    is_active: bool
    off_because: Annotated[str, "Why it was switched off."]
    created_by: str
    since: Annotated[datetime, "It gets what happens from then on."]
    events: Annotated[Sequence[ReceiverEvent], "The newest that it was sent; empty in the list."]


class ReceiverMade(Receiver):
    secret: Annotated[str, "It signs each event, and is shown this once."]


class JobKind(TypedDict):
    kind: str
    title: str
    summary: str
    arguments: Sequence[ReportArgument]


class JobFile(TypedDict):
    name: str
    bytes: int
    sha256: str
    url: Annotated[str, "Where it can be downloaded by who asked for the job, until `expires_at`."]


class Job(TypedDict):
    number: int
    kind: str
    study: str
    arguments: Mapping[str, Sequence[str]]
    state: Annotated[str, ("queued", "running", "done", "failed", "cancelled", "expired")]
    percent: Annotated[int | None, "How much is done; null where nobody can say."]
    progress: Annotated[str, "What it does now."]
    seconds_left: Annotated[int | None, "At the pace so far."]
    error: Annotated[str, "Why it failed, or what it waits for."]
    result: Annotated[Mapping[str, Any], "What the kind says of it, such as rows by file."]
    files: Annotated[Sequence[JobFile], "Empty until it is done."]
    created_at: datetime
    finished_at: datetime | None
    expires_at: Annotated[datetime | None, "Until when the files are kept."]
    url: str


class Column(TypedDict):
    name: str
    kind: Annotated[str, "What its values are, in words."]
    description: str


class ReportTable(TypedDict):
    name: str
    title: str
    note: str
    columns: Sequence[Column]
    rows: Annotated[
        Sequence[Sequence[Any | None]], "One value for each column, with every digit; null if there is none."
    ]


class ReportPicture(TypedDict):
    name: str
    title: str
    text: Annotated[str, "What it shows, in words; `hunch report ... --out DIR` draws it."]


class Taken(TypedDict):
    stored: Annotated[str, "What was stored, in a sentence."]


class Findings(TypedDict):
    study: str
    report: str
    title: str
    opening: Annotated[str, "What it shows and how to read it."]
    headline: Annotated[str, "Its main figure in a sentence; empty if it has none."]
    lines: Annotated[Sequence[str], "The result, in sentences."]
    notes: Annotated[Sequence[str], "What a reader should know."]
    tables: Sequence[ReportTable]
    pictures: Sequence[ReportPicture]
    files: Annotated[Sequence[str], "Further files that the command writes."]
    data: Annotated[Mapping[str, Any], "All of it as JSON values, with the names that the report gives them."]


class OperationLine(TypedDict):
    method: str
    name: Annotated[str, "The operation's id in the OpenAPI document."]
    summary: str


class Address(TypedDict):
    address: Annotated[str, "With the names of its parts in braces."]
    used_by: Annotated[Sequence[str], "respondents, researchers, or anybody."]
    operations: Sequence[OperationLine]


class Index(TypedDict):
    name: str
    version: Annotated[str, "Of these addresses."]
    schema: Annotated[str, "The OpenAPI document."]
    documentation: Annotated[str, "The same to read and to try."]
    addresses: Sequence[Address]


class StageLine(TypedDict):
    stage: Annotated[int, "From 1."]
    state: Annotated[str, STAGE_STATES]
    pilot: bool


class Overview(TypedDict):
    slug: str
    title: str
    instrument: str
    bank: str
    panel: str
    languages: Sequence[str]
    minutes: Annotated[int, "How long a sitting is expected to take."]
    stages: Sequence[StageLine]
    created_at: Annotated[datetime | None, "Null where a file was only checked."]
    locked_at: Annotated[datetime | None, "When its first main stage was opened."]
    locked_sha256: Annotated[str, "Of the study file in force at that time."]
    file_sha256: Annotated[str, "Of the study file in force."]
    url: Annotated[str, "Where respondents go."]
    admin_url: Annotated[str, "The study's page."]
    rights: Annotated[
        Sequence[Annotated[str, tuple(right.value for right in Right)]],
        "What your account may do in it. A token that only reads does not do all of it.",
    ]
    addresses: Annotated[Mapping[str, str], "Of the API, by name."]
    remarks: Annotated[Sequence[str], "On a new study file: what you should know before you open it."]


class StudyFile(TypedDict):
    sha256: str
    file: Annotated[str, "The study file in force, as it was given."]


class StageActed(Stage):
    retried: Annotated[int, "For `retry`: how many failed steps are queued again; else 0."]


class WorkStep(TypedDict):
    number: int
    stage: Annotated[int, "The stage that it follows."]
    kind: Annotated[str, ("freeze", "evaluate", "train", "score", "plan")]
    title: str
    state: Annotated[str, ("queued", "running", "done", "failed")]
    progress_done: int
    progress_total: Annotated[int, "0 where it is not known."]
    progress_text: str
    seconds: float | None
    error: str
    tries_left: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class Run(TypedDict):
    number: int
    predictor: str
    role: Annotated[str, ROLES]
    params: Mapping[str, Any]
    trained_after: Annotated[int, "The last stage whose answers it is trained on."]
    training_answers: int
    seconds: Annotated[float, "Of training, all members together."]
    input_sha256: Annotated[str, "Of everything that it is trained by."]
    created_at: datetime
    ready_at: Annotated[datetime | None, "Null until it is trained."]
    evaluated_on: Annotated[Sequence[int], "The later stages that judge it; `leaderboard` has the figures."]


class InviteLink(TypedDict):
    first_number: Annotated[int, "The number of the link with which the person began."]
    number: int
    address: str
    opens: Annotated[datetime, "From when the person may begin."]
    closes: Annotated[datetime, "Until when."]


class Invited(TypedDict):
    study: str
    wave: int
    invited: Annotated[int, "How many people were invited by this call."]
    later: Annotated[int, "How many are not due yet; invite again."]
    next_at: Annotated[datetime | None, "When the first of them is."]
    forgotten: Annotated[int, "How many could come, and whose ids were removed."]
    sentence: str
    links: Sequence[InviteLink]


class Posting(TypedDict):
    number: int
    stage: int
    wave: int
    panel: str
    state: Annotated[str, "As the panel says it; empty for a draft."]
    meaning: Annotated[str, "The same in our words."]
    pending: Annotated[str, "What the panel was asked and has not answered."]
    reward: Annotated[int, "For one person, in whole cents or pence."]
    currency: str
    places: int
    minutes: int
    may_cost: Annotated[
        int,
        "All places, and who is screened out, in whole cents or pence, with the panel's fees and VAT.",
    ]
    has_cost: Annotated[int | None, "Until now by the panel's own account, with fees and VAT; null if it has not said."]
    submissions: Annotated[Mapping[str, int], "How many there are by the panel's status, when it was last read."]
    created_at: datetime
    publish_at: Annotated[datetime | None, "When the panel is to show it by itself."]
    published_at: datetime | None
    read_at: datetime | None
    error: Annotated[str, "Why the panel could not be read the last time."]


class Token(TypedDict):
    start: Annotated[int, "Its first character, from 0."]
    end: Annotated[int, "The character after its last."]
    logprob: Annotated[
        float | None,
        "Natural logarithm of its probability; null where it was not read, or is impossible.",
    ]
    impossible: Annotated[bool, "Whether it had probability 0."]


class Reading(TypedDict):
    """One text as one language model reads it."""

    language_model: str
    text_sha256: Annotated[str, "Of the text in UTF-8, without markup."]
    characters: int
    source: Annotated[str, "What read it."]
    tokenizer_sha256: Annotated[str, "Tokens of other tokenizers do not compare."]
    reads_end: Annotated[bool, "Whether the last token is the end of the text."]
    code_version: str
    created_at: datetime
    tokens: Sequence[Token]
