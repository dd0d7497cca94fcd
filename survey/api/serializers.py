"""Serializers: of what the API gives, made of its shapes; of what it takes, written out, since each checks its values.

Beliefs are whole percentage points; times are ISO 8601 in UTC.

Why not djangorestframework-dataclasses (1.4.0, of May 2025): a field's description would stand in a dictionary of
`serializer_kwargs` in its metadata, which is longer than a serializer's own field. It takes data classes alone, so that
each step that a respondent is shown would first be an object. All that we need of it is `serializer_of`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers
from rest_framework.response import Response

from survey.models import Receiver
from survey.models.checks import LONGEST_REPORT
from survey.operation.outbound import LONGEST_ADDRESS
from survey.operation.receivers import OFFERED
from survey.services.sittings.timing import CLIENT_FIELDS, CLIENT_LIMIT
from survey.study_file import LONGEST_FILE

from .examples import examples_of

Serializer = serializers.Serializer[Any]
FIELDS: dict[Any, type[serializers.Field[Any, Any, Any, Any]]] = {
    int: serializers.IntegerField,
    float: serializers.FloatField,
    bool: serializers.BooleanField,
    datetime: serializers.DateTimeField,
    Any: serializers.JSONField,
}


@cache
def serializer_of(shape: type) -> type[Serializer]:
    """The serializer of a typed dictionary of `survey.api.shapes`, with its recorded examples."""
    fields = {name: _field(hint) for name, hint in get_type_hints(shape, include_extras=True).items()}
    made = type(f"{shape.__name__}Serializer", (serializers.Serializer,), {"__doc__": shape.__doc__, **fields})
    return extend_schema_serializer(examples=examples_of(shape.__name__, response_only=True))(made)


def response_of(shape: type, row: Any, *, status: int = 200) -> Response:
    """A dictionary of that shape, or an object with its names as attributes."""
    return Response(serializer_of(shape)(row).data, status=status)


def list_of(shape: type, rows: Sequence[Any]) -> Response:
    return Response(serializer_of(shape)(rows, many=True).data)


def _field(hint: Any, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    """The field of a type, with what stands next to it."""
    if get_origin(hint) is NotRequired:
        return _field(get_args(hint)[0], **options, required=False)
    choices: tuple[str, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        for note in notes:
            if isinstance(note, tuple):
                choices = note
            else:
                options["help_text"] = note
    if get_origin(hint) in (Union, UnionType):
        hint = next(part for part in get_args(hint) if part is not NoneType)
        options["allow_null"] = True
    if choices:
        values = [value for value in choices if value]
        return serializers.ChoiceField(choices=values, allow_blank="" in choices, **options)
    if hint is str:
        return serializers.CharField(allow_blank=True, **options)
    if get_origin(hint) is Sequence:
        (member,) = get_args(hint)
        if is_typeddict(member):
            return serializer_of(member)(many=True, **options)
        return serializers.ListField(child=_field(member), **options)
    if get_origin(hint) is Mapping:
        child = get_args(hint)[1]
        return (
            serializers.DictField(**options) if child is Any else serializers.DictField(child=_field(child), **options)
        )
    return serializer_of(hint)(**options) if is_typeddict(hint) else FIELDS[hint](**options)


# What the API takes


def _with_examples(serializer: type[Serializer]) -> type[Serializer]:
    """With the recorded examples of what is sent."""
    examples = examples_of(serializer.__name__.removesuffix("Serializer"), request_only=True)
    return extend_schema_serializer(examples=examples)(serializer)


class TextField(serializers.CharField):
    """Text, as the document says. REST framework would take a number for one."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


@_with_examples
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


@_with_examples
class AnswerSerializer(serializers.Serializer[Any]):
    """`step`, and one key for each check or field of the step; a page to read has none.

    Optional keys say how a number in the field `value` was entered: `value_by` (typed, track, track_keys, prefilled),
    `value_first` and `value_changes`; other values of these are dropped. What the client measured may be sent as in
    `sitting_left`."""

    step = serializers.IntegerField(min_value=0, max_value=10**9)


@_with_examples
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


@_with_examples
class ReportSerializer(serializers.Serializer[Any]):
    """Something is wrong with an item that the sitting was shown."""

    position = serializers.IntegerField(min_value=1, max_value=9999, help_text="The item's position, as its step says.")
    screen = TextField(max_length=40, help_text="The name of the screen that the report is about.")
    report = TextField(trim_whitespace=False, help_text=f"What is wrong, in up to {LONGEST_REPORT} characters.")


@_with_examples
class StageMoveSerializer(serializers.Serializer[Any]):
    stage = serializers.IntegerField(min_value=1, max_value=1000, help_text="From 1.")
    move = serializers.ChoiceField(
        choices=["open", "pause", "close", "close-now"], help_text="`open` also goes on after a pause."
    )


@_with_examples
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


@_with_examples
class ReceiverSwitchSerializer(serializers.Serializer[Any]):
    is_active = serializers.BooleanField()


@_with_examples
class JobAskSerializer(serializers.Serializer[Any]):
    kind = TextField(max_length=30, help_text="One of the kinds that the study's job-kinds lists.")
    arguments = serializers.DictField(
        child=serializers.ListField(child=TextField(max_length=500, allow_blank=True), max_length=200),
        default=dict,
        help_text="Texts by argument.",
    )


@_with_examples
class NewStudySerializer(serializers.Serializer[Any]):
    file = TextField(
        max_length=LONGEST_FILE, trim_whitespace=False, help_text="The study file (TOML), as docs/study-file.md says."
    )
    check_only = serializers.BooleanField(default=False, help_text="Only check it; nothing is stored.")


@_with_examples
class StageActionSerializer(serializers.Serializer[Any]):
    short_booklets = serializers.BooleanField(
        default=False,
        help_text="For `plan`: if one question is in more slots than there are booklets, make more, shorter ones.",
    )
