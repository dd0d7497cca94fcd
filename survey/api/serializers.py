"""What the API takes and gives. Beliefs are whole percentage points; times are ISO 8601 in UTC."""

from typing import Any

from django import forms
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers

from survey.models import Receiver
from survey.models.checks import LONGEST_REPORT
from survey.operation.outbound import LONGEST_ADDRESS
from survey.operation.receivers import OFFERED
from survey.services.sittings import debriefing
from survey.services.sittings.flow import Step
from survey.services.sittings.forms import options_of
from survey.services.sittings.timing import CLIENT_FIELDS, CLIENT_LIMIT
from survey.study_file import LONGEST_TEXT, NOT_SAID, FieldConfig

from . import examples


class TextField(serializers.CharField):
    """Text, as the document says. REST framework would take a number for one."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class ErrorBodySerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="For machines.")
    message = serializers.CharField(help_text="For people.")
    fields_ = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="Messages by field, where fields were not accepted.",
    )
    request_id = serializers.CharField(help_text="Name it if you ask the study's team about this error.")
    completion_code = serializers.CharField(
        required=False, help_text="For people of a panel who do not agree, or who find all places taken: their code."
    )
    completion_url = serializers.CharField(
        required=False, allow_blank=True, help_text="The panel's address for that code."
    )

    def get_fields(self) -> dict[str, Any]:
        declared = super().get_fields()
        declared["fields"] = declared.pop("fields_")  # the class uses the name `fields` itself
        return declared


class ErrorSerializer(serializers.Serializer[Any]):
    error = ErrorBodySerializer()


# Respondents


class ConsentTextSerializer(serializers.Serializer[Any]):
    title = serializers.CharField(allow_blank=True)
    text = serializers.CharField()
    version = serializers.CharField()


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "an open study",
            value={
                "slug": "demo",
                "title": "What do you expect of a language model?",
                "language": "en",
                "languages": ["en"],
                "bank_language": "",
                "welcome": "In this short study you say what you expect of a language model.",
                "minutes": 12,
                "contact": "",
                "panel": "open",
                "parameters": [],
                "token": "",
                "consent": {"title": "Before you begin", "text": "You may stop at any moment.", "version": "2024-07"},
                "open": True,
                "refusal": "",
            },
        )
    ]
)
class StudyInfoSerializer(serializers.Serializer[Any]):
    slug = serializers.CharField()
    title = serializers.CharField()
    language = serializers.CharField(help_text="The language of these texts.")
    languages = serializers.ListField(child=serializers.CharField(), help_text="The languages that can be asked for.")
    bank_language = serializers.CharField(allow_blank=True, help_text="The questions' language, if different.")
    welcome = serializers.CharField()
    minutes = serializers.IntegerField(help_text="How long a sitting takes.")
    contact = serializers.CharField(allow_blank=True)
    panel = serializers.CharField(
        help_text="The panel that people come from. open: anybody may begin. links: people with a link of the study."
    )
    parameters = serializers.ListField(
        child=serializers.CharField(), help_text="Names of the parameters in an entry address."
    )
    token = serializers.CharField(
        allow_blank=True,
        help_text="The name of one more parameter in an entry address, with which the panel proves that it made the "
        "address. It is a key of its own in addition to `parameters` where a sitting begins. Empty if the study asks "
        "for none.",
    )
    consent = ConsentTextSerializer()
    open = serializers.BooleanField(help_text="Whether somebody new can begin now.")
    refusal = serializers.CharField(allow_blank=True, help_text="Why not: closed or full.")


@extend_schema_serializer(
    examples=[
        OpenApiExample("an open study", value={"consent": True}, request_only=True),
        OpenApiExample(
            "a study entered from a panel",
            value={
                "consent": True,
                "PROLIFIC_PID": "5f8d0d55b54764421b7156d9",
                "STUDY_ID": "60d9aadeb86739de712faee0",
                "SESSION_ID": "60e1aadeb86739de712fa001",
            },
            request_only=True,
        ),
    ]
)
class BeginSerializer(serializers.Serializer[Any]):
    consent = serializers.BooleanField(help_text="true: the consent text was read and agreed to.")
    language = TextField(
        required=False, max_length=10, help_text="The language of the consent text; the whole sitting is in it."
    )
    person = serializers.RegexField(
        r"^[0-9a-f]{32}$",
        required=False,
        help_text="Open studies: who this is, 32 hexadecimal digits that the client keeps. Made if left out.",
    )
    PROLIFIC_PID = TextField(required=False, max_length=64)
    STUDY_ID = TextField(required=False, max_length=64)
    SESSION_ID = TextField(required=False, max_length=64)
    parameters = serializers.DictField(
        child=TextField(max_length=200),
        required=False,
        help_text="Other panels and links: the address's parameters, by the names that the study gives.",
    )
    prolific_token = TextField(
        required=False, max_length=8192, help_text="As the panel put it into the address, if the study asks for it."
    )


class PartSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(
        choices=["question", "text", "number"],
        help_text="question: <b>, </b> and <br> are markup, and &lt;br&gt; is the letters <br>; the rest is text.",
    )
    value = serializers.JSONField()


class StepFieldSerializer(serializers.Serializer[Any]):
    """Something to answer: a key of the next POST."""

    name = serializers.CharField()
    type = serializers.ChoiceField(
        choices=["integer", "text", "choice", "multiple", "likert"],
        help_text="choice and likert: one of `options`. multiple: a list of them.",
    )
    label = serializers.CharField()  # type: ignore[assignment]  # names that serializers have themselves
    required = serializers.BooleanField()  # type: ignore[assignment]
    minimum = serializers.IntegerField(allow_null=True)
    maximum = serializers.IntegerField(allow_null=True)
    max_length = serializers.IntegerField(allow_null=True, help_text="The most characters of a text.")
    initial = serializers.IntegerField(
        allow_null=True, help_text="The number that is filled in at the start, if the study prefills one."
    )
    options = serializers.ListField(child=serializers.CharField(), help_text="What may be sent.")
    labels = serializers.ListField(
        child=serializers.CharField(allow_blank=True),
        help_text="What is shown for each option; empty at a scale's points between its labelled ends.",
    )
    exclusive = serializers.ListField(
        child=serializers.CharField(), help_text="multiple: options that cannot be chosen together with another one."
    )
    hint = serializers.CharField(allow_blank=True)


class ScreenSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField()
    parts = serializers.DictField(child=PartSerializer())
    words = serializers.DictField(child=serializers.CharField(), help_text="The sentences around the parts, by name.")
    fields_ = StepFieldSerializer(many=True)

    def get_fields(self) -> dict[str, Any]:
        declared = super().get_fields()
        declared["fields"] = declared.pop("fields_")
        return declared


class ProgressSerializer(serializers.Serializer[Any]):
    """How far the sitting has come. Attention checks count among the questions, so that they do not stand out."""

    percent = serializers.IntegerField(help_text="Of the way from the consent to the end.")
    question = serializers.IntegerField(help_text="Of the item, from 1; at a check of the item behind it. 0 elsewhere.")
    questions = serializers.IntegerField(help_text="Items of the sitting; attention checks do not count. 0 elsewhere.")


class CheckOptionSerializer(serializers.Serializer[Any]):
    value = serializers.CharField(help_text="What to send: the option's position as shown in this sitting.")
    text = serializers.CharField()


class CheckSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    question = serializers.CharField()
    options = CheckOptionSerializer(many=True)


@extend_schema_serializer(
    examples=[OpenApiExample(name, value=step, response_only=True) for name, step in examples.STEPS.items()]
)
class StepSerializer(serializers.Serializer[Any]):
    """What the person is shown now."""

    number = serializers.IntegerField(help_text="Send it back with the POST, so that a repeated POST is recognised.")
    kind = serializers.ChoiceField(
        choices=["instructions", "practice", "checks", "item", "attention", "form", "debriefing", "end"]
    )
    title = serializers.CharField(allow_blank=True)
    text = serializers.CharField(allow_blank=True)
    position = serializers.IntegerField(
        help_text="Of the item, or of the practice example where there are several, from 1; 0 elsewhere."
    )
    total = serializers.IntegerField(
        help_text="Items of the sitting, or practice examples where there are several; 0 elsewhere."
    )
    progress = ProgressSerializer()
    screen = ScreenSerializer(allow_null=True)
    checks = CheckSerializer(many=True)
    attempt = serializers.IntegerField(help_text="At the comprehension checks, from 1; 0 elsewhere.")
    hints = serializers.ListField(child=serializers.CharField())
    feedback = serializers.ListField(
        child=serializers.CharField(), help_text="After a practice item: what was entered, in sentences."
    )
    fields_ = StepFieldSerializer(many=True)
    outcome = serializers.CharField(
        allow_blank=True, help_text="At the end: completed, failed_checks, screened_out or study_full."
    )
    code = serializers.CharField(
        allow_blank=True,
        help_text="At the end: the completion code that was earned. Show it where people enter it at a panel.",
    )
    completion_url = serializers.CharField(allow_blank=True)

    def get_fields(self) -> dict[str, Any]:
        declared = super().get_fields()
        declared["fields"] = declared.pop("fields_")
        return declared


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "begun",
            value={
                "token": "8c9f…:Yw3…",
                "person": "0f8b2a6f5a2e4c0c9d1e7b3a4c5d6e7f",
                "step": examples.STEPS["instructions"],
            },
            response_only=True,
        )
    ]
)
class BegunSerializer(serializers.Serializer[Any]):
    token = serializers.CharField(help_text="Send it as X-Sitting-Token.")
    person = serializers.CharField(allow_null=True, help_text="Open studies: keep it to come back to this sitting.")
    step = StepSerializer()


@extend_schema_serializer(
    examples=[OpenApiExample(name, value=answer, request_only=True) for name, answer in examples.ANSWERS.items()]
)
class AnswerSerializer(serializers.Serializer[Any]):
    """`step`, and one key for each check or field of the step; a page to read has none.

    Optional keys say how a number in the field `value` was entered: `value_by` (typed, track, track_keys, prefilled),
    `value_first` and `value_changes`; other values of these are dropped. What the client measured may be sent as in
    `sitting_left`."""

    step = serializers.IntegerField(min_value=0, max_value=10**9)


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "the first item, left after twelve seconds",
            value={"step": 3, "client_shown_ms": 140, "client_hidden_ms": 0, "client_pastes": 1},
            request_only=True,
        )
    ]
)
class LeftSerializer(serializers.Serializer[Any]):
    """`step`, and what the client measured. Leave out what was not measured. `opened`: the window has begun the step,
    under this nonce of its own."""

    step = serializers.IntegerField(min_value=0, max_value=10**9)
    opened = serializers.RegexField(r"^[0-9a-f]{16,64}\Z", required=False)

    def get_fields(self) -> dict[str, Any]:
        measured = {
            f"client_{name}": serializers.IntegerField(min_value=0, max_value=CLIENT_LIMIT, required=False)
            for name in CLIENT_FIELDS
        }
        return {**super().get_fields(), **measured}


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "on the first screen of the second item",
            value={"position": 2, "screen": "prior", "report": "Two of the options are the same."},
            request_only=True,
        )
    ]
)
class ReportSerializer(serializers.Serializer[Any]):
    """Something is wrong with an item that the sitting was shown."""

    position = serializers.IntegerField(min_value=1, max_value=9999, help_text="The item's position, as its step says.")
    screen = TextField(max_length=40, help_text="The name of the screen that the report is about.")
    report = TextField(trim_whitespace=False, help_text=f"What is wrong, in up to {LONGEST_REPORT} characters.")


@extend_schema_serializer(examples=[OpenApiExample("noted", value={"noted": True}, response_only=True)])
class ReportedSerializer(serializers.Serializer[Any]):
    noted = serializers.BooleanField()


def step_field(name: str, field: forms.Field) -> dict[str, Any]:
    """A field of an instrument's form, as plain data."""
    choices: Any = field.choices if isinstance(field, forms.ChoiceField) else ()
    options = [str(value) for value, _label in choices]
    kind = "integer" if isinstance(field, forms.IntegerField) else "choice" if options else "text"
    return {
        "name": name,
        "type": kind,
        "label": str(field.label or name),
        "required": field.required,
        "minimum": getattr(field, "min_value", None),
        "maximum": getattr(field, "max_value", None),
        "max_length": getattr(field, "max_length", None),
        "initial": field.initial,
        "options": options,
        "labels": [str(label) for _value, label in choices],
        "exclusive": [],
        "hint": "",
    }


def study_field(field: FieldConfig) -> dict[str, Any]:
    """A field of a form block, as plain data."""
    options = options_of(field)
    alone = [*field.exclusive, *([NOT_SAID] if field.prefer_not_to_say else [])]
    return {
        "name": field.name,
        "type": {"number": "integer"}.get(field.kind, field.kind),
        "label": field.label,
        "required": field.required,
        "minimum": field.minimum,
        "maximum": field.maximum,
        "max_length": (field.max_characters or LONGEST_TEXT) if field.kind == "text" else None,
        "initial": None,
        "options": [value for value, _words in options],
        "labels": [words for _value, words in options],
        "exclusive": alone if field.kind == "multiple" else [],
        "hint": "",
    }


def fields_of(step: Step) -> list[dict[str, Any]]:
    """What a step asks for, apart from an item and checks."""
    if step.kind != "debriefing" or not step.block.asks_to_use:
        return [study_field(field) for field in step.block.fields]
    return [
        _question(debriefing.FIELD, debriefing.question(paid=step.paid), required=True),
        _question(debriefing.CONFIRMED, debriefing.second_question(paid=step.paid), required=False),
    ]


def _question(name: str, question: debriefing.ChoiceQuestion, *, required: bool) -> dict[str, Any]:
    return {
        "name": name,
        "type": "choice",
        "label": question.label,
        "required": required,
        "minimum": None,
        "maximum": None,
        "max_length": None,
        "initial": None,
        "options": [value for value, _words in question.options],
        "labels": [words for _value, words in question.options],
        "exclusive": [],
        "hint": question.hint,
    }


def step_data(step: Step, *, completion_url: str) -> dict[str, Any]:
    """Everything of a step that leaves the server. What is not listed here stays on it."""
    screen = step.screen
    return {
        "number": step.number,
        "kind": step.kind,
        "title": str(screen.title) if screen else step.block.title,
        "text": step.text,
        "position": step.position,
        "total": step.total,
        "progress": {
            "percent": step.progress.percent,
            "question": step.progress.question,
            "questions": step.progress.questions,
        },
        "screen": screen
        and {
            "name": screen.name,
            "title": str(screen.title),
            "parts": {name: dict(part) for name, part in screen.parts.items()},
            "words": dict(screen.words),
            "fields": [step_field(name, field) for name, field in getattr(screen.fields(), "fields", {}).items()],
        },
        "checks": [
            {
                "name": check.name,
                "question": check.question,
                "options": [
                    {"value": str(place), "text": text} for place, (_index, text) in enumerate(check.options, start=1)
                ],
            }
            for check in step.checks
        ],
        "attempt": step.attempt,
        "hints": list(step.hints),
        "feedback": list(step.feedback),
        "fields": fields_of(step),
        "outcome": str(step.outcome),
        "code": step.code,
        "completion_url": completion_url if step.code else "",
    }


# Researchers


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "a study",
            value={
                "slug": "demo",
                "title": "What do you expect of a language model?",
                "instrument": "belief_update",
                "bank": "starter version 1",
                "stages": 3,
                "created_at": "2026-11-21T09:00:00Z",
                "url": "http://127.0.0.1:8000/s/demo/",
            },
        )
    ]
)
class StudySerializer(serializers.Serializer[Any]):
    slug = serializers.CharField()
    title = serializers.CharField()
    instrument = serializers.CharField()
    bank = serializers.CharField()
    stages = serializers.IntegerField(help_text="How many stages the study file plans.")
    created_at = serializers.DateTimeField()
    url = serializers.CharField(help_text="Where respondents go.")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "an open stage",
            value={
                "stage": 1,
                "state": "open",
                "design": "uniform",
                "pilot": False,
                "slots": 300,
                "in_time": 120,
                "counted": 105,
                "late": 2,
                "booklets": 20,
                "free_booklets": 11,
                "sittings": {"complete": 8, "live": 1},
                "planned_at": "2026-11-21T09:00:00Z",
                "opened_at": "2026-11-21T09:01:00Z",
                "closing_at": None,
                "frozen_at": None,
            },
        )
    ]
)
class StageSerializer(serializers.Serializer[Any]):
    stage = serializers.IntegerField(help_text="From 1.")
    state = serializers.ChoiceField(choices=["draft", "planned", "open", "paused", "closing", "frozen"])
    design = serializers.CharField()
    pilot = serializers.BooleanField(help_text="A trial: its answers are in `answers.csv` and nowhere else.")
    slots = serializers.IntegerField()
    in_time = serializers.IntegerField(help_text="Slots with an answer that was complete in time.")
    counted = serializers.IntegerField(
        help_text="Of these, the answers that estimates use: to sampled and holdout slots, from sittings that no rule "
        "leaves out, and not from a pilot."
    )
    late = serializers.IntegerField(help_text="Complete answers that came too late to count.")
    booklets = serializers.IntegerField()
    free_booklets = serializers.IntegerField()
    sittings = serializers.DictField(child=serializers.IntegerField(), help_text="Sittings by state.")
    planned_at = serializers.DateTimeField(allow_null=True)
    opened_at = serializers.DateTimeField(allow_null=True)
    closing_at = serializers.DateTimeField(allow_null=True)
    frozen_at = serializers.DateTimeField(allow_null=True)


class StageMoveSerializer(serializers.Serializer[Any]):
    stage = serializers.IntegerField(min_value=1, max_value=1000, help_text="From 1.")
    move = serializers.ChoiceField(
        choices=["open", "pause", "close", "close-now"], help_text="`open` also goes on after a pause."
    )


class FigureSerializer(serializers.Serializer[Any]):
    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True, help_text="Lower end of its 95 % interval.")
    high = serializers.FloatField(allow_null=True)


class MetricsField(serializers.DictField):
    """Figures by metric and by part of the answers; the instrument names both."""

    child = serializers.DictField(child=FigureSerializer())


_FIGURE = {"value": 0.61, "low": 0.55, "high": 0.66}
_FIGURES = {"overall": _FIGURE, "previous_correct": _FIGURE, "previous_incorrect": _FIGURE}
_METRICS = {"nll": _FIGURES, "auc": _FIGURES}


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "a predictor on the next stage",
            value={
                "predictor": "bert",
                "role": "main",
                "params": {"members": 2},
                "columns": [],
                "columns_read": "",
                "trained_after": 1,
                "training_answers": 480,
                "evaluated_on": 2,
                "answers": "sampled",
                "weighting": "design",
                "n": 476,
                "figures": _METRICS,
                "difference": _METRICS,
            },
        )
    ]
)
class LeaderboardLineSerializer(serializers.Serializer[Any]):
    predictor = serializers.CharField()
    role = serializers.ChoiceField(choices=["main", "compared", "baseline"])
    params = serializers.DictField(help_text="Parameters that differ from the predictor's defaults.")
    columns = serializers.ListField(
        child=serializers.ChoiceField(choices=["people", "models"]),
        help_text="What it reads in addition to the texts, which makes a leaderboard of its own; empty: texts alone.",
    )
    columns_read = serializers.CharField(
        allow_blank=True,
        help_text="Which answers of language models the column models was made of, at training and at prediction.",
    )
    trained_after = serializers.IntegerField(help_text="The last stage whose answers it was trained on.")
    training_answers = serializers.IntegerField()
    evaluated_on = serializers.IntegerField(
        allow_null=True, help_text="The stage that judges it; null if there is none yet."
    )
    answers = serializers.ChoiceField(
        choices=["sampled", "holdout", "majorities"],
        allow_blank=True,
        help_text="`majorities`: a test stage's items, each once, by the label of most of its answers.",
    )
    weighting = serializers.ChoiceField(
        choices=["design", "none"], allow_blank=True, help_text="`none`: the answers as they came."
    )
    n = serializers.IntegerField(allow_null=True, help_text="How many answers judge it.")
    figures = MetricsField(
        help_text="By metric and part of the answers, as the study's instrument names them; its first part is all."
    )
    difference = MetricsField(help_text="Its figures minus the main predictor's, on the same answers.")


_ESTIMATED: dict[str, Any] = {
    "name": "changed_over_0",
    "title": "share that changes, changes over 0",
    "unit": "share",
    "combined": {"value": 0.39, "standard_error": 0.01, "interval": [0.37, 0.41], "n": 900, "n_clusters": 62},
    "naive": {"value": 0.52, "standard_error": 0.01, "interval": [0.5, 0.54], "n": 900, "n_clusters": 62},
    "stages": [{"stage": 1, "role": "sampled", "weight": 1.0, "reason": "", "estimate": {"value": 0.39}}],
    "agreement": None,
    "agreement_withheld": "1 of 2 stages have an effective sample of 30 and 10 people",
    "notes": "no test whether the stages agree: 1 of 2 stages have an effective sample of 30 and 10 people",
    "superpopulation": {"value": 0.39, "standard_error": 0.016, "interval": [0.36, 0.42], "n": 900, "n_clusters": 62},
    "stayed": {"value": 0.4, "standard_error": 0.012, "interval": [0.38, 0.42], "n": 900, "n_clusters": 62},
    "bounds": {"interval": [0.35, 0.43], "odds_ratio": 2.0, "unanswered": 30},
    "worst_case": {"interval": [0.33, 0.46], "odds_ratio": None, "unanswered": 30},
}


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "estimates",
            value={
                "study": "demo",
                "title": "What do you expect of a language model?",
                "estimand": "all 153,164 pairs of this bank's 277 questions",
                "assumptions": ["Weights over the stages come from the plans alone, with an assumed correlation."],
                "thresholds": [0, 5, 10],
                "answers": 900,
                "respondents": 62,
                "provisional": False,
                "parts": [{"stage": 1, "role": "sampled", "design": "uniform", "strata": []}],
                "figures": [_ESTIMATED],
                "assisted": None,
                "checks": [],
                "divisions": [],
                "slots": {
                    "position": [
                        {
                            "label": "1",
                            "planned": 60,
                            "answered": 56,
                            "excluded": 1,
                            "withdrawn": 1,
                            "late": 1,
                            "lost": 1,
                            "open": 0,
                        }
                    ]
                },
                "noise": {
                    "false_changes": {},
                    "retests": {},
                    "auc_limit": None,
                    "no_limit": "stage 1: no item was answered by two people",
                },
                "majorities": [
                    {
                        "stage": 8,
                        "stratum": "",
                        "items": 492,
                        "label_1": 212,
                        "label_0": 280,
                        "tied": 0,
                        "left_out": 0,
                        "fewest_answers": 8,
                        "most_answers": 9,
                        "share": 0.43,
                        "low": 0.39,
                        "high": 0.47,
                        "notes": "a mixture of the ends of the scores, no share of all items",
                    }
                ],
                "leaving": {
                    "outcome": "share that changes, changes over 0",
                    "odds_ratio": 2.0,
                    "no_weights": "",
                    "lines": [
                        {
                            "factor": "",
                            "level": "",
                            "people": 62,
                            "left": 4,
                            "given": 930,
                            "unanswered": 30,
                            "test": {"at_risk": 842, "left": 4, "p": None, "reason": "4 people left, fewer than 10"},
                        }
                    ],
                },
                "anytime": [
                    {
                        "stage": 1,
                        "factor": "",
                        "label": "",
                        "title": "share of beliefs that change",
                        "unit": "share",
                        "people": 420,
                        "value": 0.391,
                        "standard_error": 0.0064,
                        "low": 0.372,
                        "high": 0.41,
                        "rule_width": 0.04,
                        "looks": 12,
                        "stopped": True,
                        "notes": "",
                    }
                ],
                "waves": [],
                "carry_over": {
                    "differences": [],
                    "first_items": [
                        {
                            "name": "changed_over_0",
                            "combined": {"value": 0.38, "standard_error": 0.06, "interval": [0.26, 0.5], "n": 60},
                        }
                    ],
                    "no_difference": "no stage is adaptive",
                },
                "computed_at": "2026-11-23T09:30:00Z",
                "is_current": True,
            },
        )
    ]
)
class EstimatesSerializer(serializers.Serializer[Any]):
    study = serializers.CharField()
    title = serializers.CharField()
    estimand = serializers.CharField(help_text="What the estimates are means over, in words.")
    assumptions = serializers.ListField(child=serializers.CharField())
    thresholds = serializers.ListField(child=serializers.IntegerField())
    answers = serializers.IntegerField()
    respondents = serializers.IntegerField()
    provisional = serializers.BooleanField(help_text="Whether a stage that counts is not frozen yet.")
    parts = serializers.ListField(child=serializers.DictField(), help_text="Stages with their strata and slots.")
    figures = serializers.ListField(
        child=serializers.DictField(),
        help_text="Each has an estimate over all stages (combined), one for each stage, and the naive one. The ends "
        "of an interval are null where nothing varies; agreement (f, degrees_of_freedom, p, untested stages) is null "
        "where agreement_withheld says why. Where people left: the one weighted for that (stayed), and bounds for an "
        "odds ratio (bounds) and for anything (worst_case). superpopulation has the interval for a population of "
        "questions.",
    )
    assisted = serializers.DictField(allow_null=True, help_text="The first figure, assisted by predictions.")
    checks = serializers.ListField(child=serializers.DictField(), help_text="Differences that should be pure chance.")
    divisions = serializers.ListField(child=serializers.DictField())
    slots = serializers.DictField(child=serializers.ListField(child=serializers.DictField()))
    noise = serializers.DictField(
        help_text="From the controls: false changes, retests, and an upper limit of the AUC that predictors of items "
        "can reach (auc_limit), or why there is none (no_limit)."
    )
    majorities = serializers.ListField(
        child=serializers.DictField(),
        help_text="Majority labels of the items of frozen test stages: by stratum, and together where it is empty.",
    )
    leaving = serializers.DictField(
        allow_null=True, help_text="People who left before their last item, and whether they did by their last answer."
    )
    waves = serializers.ListField(
        child=serializers.DictField(),
        help_text="How each figure changed within the people who answered in two waves that follow each other, with an "
        "interval by person, how many they are (people), and how many did not come back (not_back). Empty for a study "
        "of one wave.",
    )
    carry_over = serializers.DictField(
        allow_null=True,
        help_text="Whether answers depend on the items before them, figure by figure: the mean by the sampled slots of "
        "adaptive stages minus that by their holdouts, whose booklets are uniform (differences, or why there are none: "
        "no_difference), and the mean from people's first items alone (first_items).",
    )
    anytime = serializers.ListField(
        child=serializers.DictField(),
        help_text="The first figure of each stage alone, and the difference by each factor with two levels, with "
        "intervals that hold however often one looks; with the stage's stopping rule.",
    )
    computed_at = serializers.DateTimeField()
    is_current = serializers.BooleanField(
        help_text="False if answers, withdrawals, exclusions, stages, the study file or Hunch have changed since."
    )


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "a page",
            value={
                "next": None,
                "results": [
                    {"study": "demo", "stage": 1, "slot": 1, "status": "counted", "prior": 62, "posterior": 70}
                ],
            },
        )
    ]
)
class AnswerPageSerializer(serializers.Serializer[Any]):
    next = serializers.CharField(allow_null=True, help_text="Address of the next page.")
    results = serializers.ListField(
        child=serializers.DictField(),
        help_text="One object for each row; its keys are the columns of the codebook. condition, condition_probability "
        "and responses are JSON values here.",
    )


class ReportArgumentSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    help = serializers.CharField()
    many = serializers.BooleanField(help_text="Whether it may be given several times.")  # type: ignore[assignment]
    required = serializers.BooleanField()  # type: ignore[assignment]
    default = serializers.CharField(allow_blank=True)
    choices = serializers.ListField(child=serializers.CharField(), help_text="Empty where they cannot be listed.")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "a report that can be made",
            value={
                "name": "human_calibration",
                "title": "Figure 7",
                "summary": "Whether people foresee what people and language models get right, by regions of belief.",
                "url": "https://survey.example.org/api/v1/studies/humans/reports/human_calibration/",
                "obstacle": "",
                "arguments": [
                    {
                        "name": "people_study",
                        "help": "the study in which people answer the questions themselves",
                        "many": False,
                        "required": True,
                        "default": "",
                        "choices": ["own-answers"],
                    }
                ],
            },
        ),
        OpenApiExample(
            "one that cannot be made yet",
            value={
                "name": "pilot",
                "title": "Pilot",
                "summary": "What the pilot found.",
                "url": "https://survey.example.org/api/v1/studies/humans/reports/pilot/",
                "obstacle": "humans: nobody has begun the pilot yet",
                "arguments": [],
            },
        ),
    ]
)
class ReportLineSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField()
    summary = serializers.CharField()
    url = serializers.CharField()
    obstacle = serializers.CharField(allow_blank=True, help_text="Why it cannot be made now; empty if it can.")
    arguments = ReportArgumentSerializer(many=True)


class ReceiverEventSerializer(serializers.Serializer[Any]):
    event = serializers.CharField(help_text="The alert, or `test`.")
    state = serializers.CharField(help_text="queued, running, done (taken) or failed (given up).")
    tries = serializers.IntegerField()
    answer = serializers.CharField(allow_blank=True, help_text="What the last try brought.")
    created_at = serializers.DateTimeField()


RECEIVER = {
    "number": 3,
    "kind": "webhook",
    "shown": "hooks.example.org",
    "causes": ["stage_full", "cap_near"],
    "is_active": True,
    "off_because": "",
    "created_by": "ada",
    "since": "2026-03-02T09:30:00Z",
    "events": [],
}


@extend_schema_serializer(examples=[OpenApiExample("a webhook", value=RECEIVER)])
class ReceiverSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=Receiver.Kind.values)
    shown = serializers.CharField(help_text="The host of a webhook, or the e-mail address.")
    causes = serializers.ListField(child=serializers.CharField(), help_text="The alerts that it gets.")
    is_active = serializers.BooleanField()
    off_because = serializers.CharField(allow_blank=True, help_text="Why it was switched off.")
    created_by = serializers.CharField(allow_blank=True)
    since = serializers.DateTimeField(help_text="It gets what happens from then on.")
    events = ReceiverEventSerializer(many=True, help_text="The newest that it was sent; empty in the list.")


@extend_schema_serializer(examples=[OpenApiExample("a new webhook", value={**RECEIVER, "secret": "kept-by-you-alone"})])
class ReceiverMadeSerializer(ReceiverSerializer):
    secret = serializers.CharField(allow_blank=True, help_text="It signs each event, and is shown this once.")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "two alerts", value={"kind": "webhook", "address": "https://hooks.example.org/a", "causes": ["stage_full"]}
        )
    ]
)
class NewReceiverSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=Receiver.Kind.values)
    address = TextField(
        max_length=LONGEST_ADDRESS, help_text="https://HOST/PATH, which must be public, or an e-mail address."
    )
    causes = serializers.ListField(
        child=serializers.ChoiceField(choices=[cause.value for cause in OFFERED]),
        min_length=1,
        max_length=len(OFFERED),
        default=[cause.value for cause in OFFERED],
        help_text="The alerts that it gets; all of them where this is left out.",
    )


class ReceiverSwitchSerializer(serializers.Serializer[Any]):
    is_active = serializers.BooleanField()


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "an export of one condition", value={"kind": "export", "arguments": {"condition": ["answerer=model"]}}
        )
    ]
)
class JobAskSerializer(serializers.Serializer[Any]):
    kind = TextField(max_length=30, help_text="One of the kinds that the study's job-kinds lists.")
    arguments = serializers.DictField(
        child=serializers.ListField(child=TextField(max_length=500, allow_blank=True), max_length=200),
        default=dict,
        help_text="Texts by argument.",
    )


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "what can be asked for",
            value={
                "kind": "export",
                "title": "Export",
                "summary": "The study's answers with all files next to them and their codebook, in one ZIP.",
                "arguments": [
                    {
                        "name": "condition",
                        "help": "only answers under this level of a factor; several for several factors",
                        "many": True,
                        "required": False,
                        "default": "",
                        "choices": ["answerer=model", "answerer=person"],
                    }
                ],
            },
        )
    ]
)
class JobKindSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    title = serializers.CharField()
    summary = serializers.CharField()
    arguments = ReportArgumentSerializer(many=True)


class JobFileSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    url = serializers.CharField(help_text="Where it can be downloaded by who asked for the job, until `expires_at`.")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "one that is done",
            value={
                "number": 7,
                "kind": "export",
                "study": "humans",
                "arguments": {"condition": []},
                "state": "done",
                "percent": 100,
                "progress": "",
                "seconds_left": None,
                "error": "",
                "result": {"rows": {"answers.csv": 1200}},
                "files": [
                    {
                        "name": "humans-export.zip",
                        "bytes": 81234,
                        "sha256": "0c" * 32,
                        "url": "https://survey.example.org/api/v1/jobs/7/files/humans-export.zip",
                    }
                ],
                "created_at": "2026-03-02T09:00:00Z",
                "finished_at": "2026-03-02T09:00:03Z",
                "expires_at": "2026-03-09T09:00:03Z",
                "url": "https://survey.example.org/api/v1/jobs/7/",
            },
        )
    ]
)
class JobSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    kind = serializers.CharField()
    study = serializers.CharField()
    arguments = serializers.DictField(child=serializers.ListField(child=serializers.CharField()))
    state = serializers.ChoiceField(choices=["queued", "running", "done", "failed", "cancelled", "expired"])
    percent = serializers.IntegerField(allow_null=True, help_text="How much is done; null where nobody can say.")
    progress = serializers.CharField(allow_blank=True, help_text="What it does now.")
    seconds_left = serializers.IntegerField(allow_null=True, help_text="At the pace so far.")
    error = serializers.CharField(allow_blank=True, help_text="Why it failed, or what it waits for.")
    result = serializers.DictField(help_text="What the kind says of it, such as rows by file.")
    files = JobFileSerializer(many=True, help_text="Empty until it is done.")
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True, help_text="Until when the files are kept.")
    url = serializers.CharField()


class ColumnSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    kind = serializers.CharField(help_text="What its values are, in words.")
    description = serializers.CharField()


class ReportTableSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField()
    note = serializers.CharField(allow_blank=True)
    columns = ColumnSerializer(many=True)
    rows = serializers.ListField(
        child=serializers.ListField(child=serializers.JSONField(allow_null=True)),
        help_text="One value for each column, with every digit; null if there is none.",
    )


class ReportPictureSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField()
    text = serializers.CharField(help_text="What it shows, in words; `hunch report ... --out DIR` draws it.")


class TakenSerializer(serializers.Serializer[dict[str, Any]]):
    stored = serializers.CharField(help_text="What was stored, in a sentence.")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "figure 7",
            value={
                "study": "humans",
                "report": "human_calibration",
                "title": "Do people foresee who answers correctly? Humans about humans",
                "lines": ["Accuracy of the answerers by posterior belief: 900 beliefs, 60 people answering"],
                "notes": ["no language model has answered questions of starter version 1"],
                "tables": [
                    {
                        "name": "figure7",
                        "title": "The figure's points",
                        "note": "Standard errors by respondent, question answered and answerer.",
                        "columns": [
                            {"name": "answerers_are", "kind": "text", "description": "Whose answers."},
                            {"name": "accuracy", "kind": "share", "description": "How often they are right."},
                        ],
                        "rows": [["people", 0.71], ["people", None]],
                    }
                ],
                "pictures": [{"name": "figure7", "title": "Figure 7", "text": "Accuracy in three regions of belief."}],
                "files": [],
                "data": {
                    "beliefs": 900,
                    "people": 60,
                    "points": [{"answerers_are": "people", "lower": 0, "upper": 30, "accuracy": 0.71}],
                    "notes": ["no language model has answered questions of starter version 1"],
                },
            },
        )
    ]
)
class FindingsSerializer(serializers.Serializer[Any]):
    study = serializers.CharField()
    report = serializers.CharField()
    title = serializers.CharField()
    lines = serializers.ListField(child=serializers.CharField(), help_text="The result, in sentences.")
    notes = serializers.ListField(child=serializers.CharField(), help_text="What a reader should know.")
    tables = ReportTableSerializer(many=True)
    pictures = ReportPictureSerializer(many=True)
    files = serializers.ListField(child=serializers.CharField(), help_text="Further files that the command writes.")
    data = serializers.DictField(  # type: ignore[assignment]
        help_text="All of it as JSON values, with the names that the report gives them."
    )
