"""What the API says of studies as their researchers run them: work steps, predictor runs, postings, the study file."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers

from survey.services.base.rights import Right
from survey.study_file import LONGEST_FILE

from .serializers import StageSerializer, TextField


class OperationLineSerializer(serializers.Serializer[Any]):
    method = serializers.CharField()
    name = serializers.CharField(help_text="The operation's id in the OpenAPI document.")
    summary = serializers.CharField()


class AddressSerializer(serializers.Serializer[Any]):
    address = serializers.CharField(help_text="With the names of its parts in braces.")
    used_by = serializers.ListField(child=serializers.CharField(), help_text="respondents, researchers, or anybody.")
    operations = OperationLineSerializer(many=True)


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "the list",
            value={
                "name": "Hunch",
                "version": "1",
                "schema": "https://survey.example.org/api/schema/",
                "documentation": "https://survey.example.org/api/docs/",
                "addresses": [
                    {
                        "address": "/api/v1/studies/",
                        "used_by": ["researchers"],
                        "operations": [{"method": "GET", "name": "studies", "summary": "List your studies"}],
                    }
                ],
            },
        )
    ]
)
class IndexSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    version = serializers.CharField(help_text="Of these addresses.")
    schema = serializers.CharField(help_text="The OpenAPI document.")
    documentation = serializers.CharField(help_text="The same to read and to try.")
    addresses = AddressSerializer(many=True)


@extend_schema_serializer(
    examples=[
        OpenApiExample("a study file", value={"file": 'title = "My study"\nslug = "my-study"\n', "check_only": False})
    ]
)
class NewStudySerializer(serializers.Serializer[Any]):
    file = TextField(
        max_length=LONGEST_FILE, trim_whitespace=False, help_text="The study file (TOML), as docs/study-file.md says."
    )
    check_only = serializers.BooleanField(default=False, help_text="Only check it; nothing is stored.")


class StageLineSerializer(serializers.Serializer[Any]):
    stage = serializers.IntegerField(help_text="From 1.")
    state = serializers.ChoiceField(choices=["draft", "planned", "open", "paused", "closing", "frozen"])
    pilot = serializers.BooleanField()


_OVERVIEW: dict[str, Any] = {
    "slug": "my-study",
    "title": "My study",
    "instrument": "belief_update",
    "bank": "starter version 1",
    "panel": "open",
    "languages": ["en"],
    "minutes": 12,
    "stages": [{"stage": 1, "state": "draft", "pilot": False}],
    "created_at": "2026-11-21T09:00:00Z",
    "locked_at": None,
    "locked_sha256": "",
    "file_sha256": "3f0c" + 60 * "0",
    "url": "https://survey.example.org/s/my-study/",
    "admin_url": "https://survey.example.org/admin/survey/study/1/change/",
    "rights": ["see", "export", "run"],
    "addresses": {"stages": "https://survey.example.org/api/v1/studies/my-study/stages/"},
    "remarks": [],
}


@extend_schema_serializer(examples=[OpenApiExample("a new study", value=_OVERVIEW)])
class OverviewSerializer(serializers.Serializer[Any]):
    slug = serializers.CharField()
    title = serializers.CharField()
    instrument = serializers.CharField()
    bank = serializers.CharField()
    panel = serializers.CharField()
    languages = serializers.ListField(child=serializers.CharField())
    minutes = serializers.IntegerField(help_text="How long a sitting is expected to take.")
    stages = StageLineSerializer(many=True)
    created_at = serializers.DateTimeField(allow_null=True, help_text="Null where a file was only checked.")
    locked_at = serializers.DateTimeField(allow_null=True, help_text="When its first main stage was opened.")
    locked_sha256 = serializers.CharField(allow_blank=True, help_text="Of the study file in force at that time.")
    file_sha256 = serializers.CharField(help_text="Of the study file in force.")
    url = serializers.CharField(help_text="Where respondents go.")
    admin_url = serializers.CharField(allow_blank=True, help_text="The study's page.")
    rights = serializers.ListField(
        child=serializers.ChoiceField(choices=[right.value for right in Right]),
        help_text="What your account may do in it. A token that only reads does not do all of it.",
    )
    addresses = serializers.DictField(child=serializers.CharField(), help_text="Of the API, by name.")
    remarks = serializers.ListField(
        child=serializers.CharField(), help_text="On a new study file: what you should know before you open it."
    )


@extend_schema_serializer(
    examples=[
        OpenApiExample("a study file", value={"sha256": "3f0c" + 60 * "0", "file": 'slug = "my-study"\n'}),
    ]
)
class StudyFileSerializer(serializers.Serializer[Any]):
    sha256 = serializers.CharField()
    file = serializers.CharField(help_text="The study file in force, as it was given.")


class StageActionSerializer(serializers.Serializer[Any]):
    short_booklets = serializers.BooleanField(
        default=False,
        help_text="For `plan`: if one question is in more slots than there are booklets, make more, shorter ones.",
    )


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "a stage that was paused",
            value={
                "stage": 1,
                "state": "paused",
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
                "retried": 0,
            },
        )
    ]
)
class StageActedSerializer(StageSerializer):
    retried = serializers.IntegerField(help_text="For `retry`: how many failed steps are queued again; else 0.")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "a training under way",
            value={
                "number": 17,
                "stage": 1,
                "kind": "train",
                "title": "train bert, member 1",
                "state": "running",
                "progress_done": 40,
                "progress_total": 300,
                "progress_text": "step",
                "seconds": 12.5,
                "error": "",
                "tries_left": 2,
                "created_at": "2026-11-21T10:00:00Z",
                "started_at": "2026-11-21T10:00:02Z",
                "finished_at": None,
            },
        )
    ]
)
class WorkStepSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    stage = serializers.IntegerField(help_text="The stage that it follows.")
    kind = serializers.ChoiceField(choices=["freeze", "evaluate", "train", "score", "plan"])
    title = serializers.CharField()
    state = serializers.ChoiceField(choices=["queued", "running", "done", "failed"])
    progress_done = serializers.IntegerField()
    progress_total = serializers.IntegerField(help_text="0 where it is not known.")
    progress_text = serializers.CharField(allow_blank=True)
    seconds = serializers.FloatField(allow_null=True)
    error = serializers.CharField(allow_blank=True)
    tries_left = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "a trained predictor",
            value={
                "number": 4,
                "predictor": "bert",
                "role": "main",
                "params": {"members": 2},
                "trained_after": 1,
                "training_answers": 480,
                "seconds": 96.4,
                "input_sha256": "91aa" + 60 * "0",
                "created_at": "2026-11-21T10:00:00Z",
                "ready_at": "2026-11-21T10:02:00Z",
                "evaluated_on": [2],
            },
        )
    ]
)
class RunSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    predictor = serializers.CharField()
    role = serializers.ChoiceField(choices=["main", "compared", "baseline"])
    params = serializers.DictField()
    trained_after = serializers.IntegerField(help_text="The last stage whose answers it is trained on.")
    training_answers = serializers.IntegerField()
    seconds = serializers.FloatField(help_text="Of training, all members together.")
    input_sha256 = serializers.CharField(help_text="Of everything that it is trained by.")
    created_at = serializers.DateTimeField()
    ready_at = serializers.DateTimeField(allow_null=True, help_text="Null until it is trained.")
    evaluated_on = serializers.ListField(
        child=serializers.IntegerField(), help_text="The later stages that judge it; `leaderboard` has the figures."
    )


class InviteLinkSerializer(serializers.Serializer[Any]):
    first_number = serializers.IntegerField(help_text="The number of the link with which the person began.")
    number = serializers.IntegerField()
    address = serializers.CharField()
    opens = serializers.DateTimeField(help_text="From when the person may begin.")
    closes = serializers.DateTimeField(help_text="Until when.")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "people invited by links",
            value={
                "study": "my-study",
                "wave": 2,
                "invited": 1,
                "later": 0,
                "next_at": None,
                "forgotten": 0,
                "sentence": "1 people invited to wave 2 of my-study",
                "links": [
                    {
                        "first_number": 7,
                        "number": 51,
                        "address": "https://study.example.org/s/my-study/?link=0123456789abcdefghijAB",
                        "opens": "2026-12-05T10:00:00Z",
                        "closes": "2026-12-12T10:00:00Z",
                    }
                ],
            },
        )
    ]
)
class InvitedSerializer(serializers.Serializer[Any]):
    study = serializers.CharField()
    wave = serializers.IntegerField()
    invited = serializers.IntegerField(help_text="How many people were invited by this call.")
    later = serializers.IntegerField(help_text="How many are not due yet; invite again.")
    next_at = serializers.DateTimeField(allow_null=True, help_text="When the first of them is.")
    forgotten = serializers.IntegerField(help_text="How many could come, and whose ids were removed.")
    sentence = serializers.CharField()
    links = InviteLinkSerializer(many=True)


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "an active posting",
            value={
                "number": 1,
                "stage": 1,
                "wave": 1,
                "panel": "prolific",
                "state": "ACTIVE",
                "meaning": "active",
                "pending": "",
                "reward": 225,
                "currency": "GBP",
                "places": 60,
                "minutes": 15,
                "may_cost": 21000,
                "has_cost": 1050,
                "submissions": {"AWAITING REVIEW": 12, "APPROVED": 3},
                "created_at": "2026-11-21T09:00:00Z",
                "publish_at": None,
                "published_at": "2026-11-21T09:05:00Z",
                "read_at": "2026-11-21T10:00:00Z",
                "error": "",
            },
        )
    ]
)
class PostingSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    stage = serializers.IntegerField()
    wave = serializers.IntegerField()
    panel = serializers.CharField()
    state = serializers.CharField(allow_blank=True, help_text="As the panel says it; empty for a draft.")
    meaning = serializers.CharField(help_text="The same in our words.")
    pending = serializers.CharField(allow_blank=True, help_text="What the panel was asked and has not answered.")
    reward = serializers.IntegerField(help_text="For one person, in whole cents or pence.")
    currency = serializers.CharField()
    places = serializers.IntegerField()
    minutes = serializers.IntegerField()
    may_cost = serializers.IntegerField(
        help_text="All places, and who is screened out, in whole cents or pence, with the panel's fees and VAT."
    )
    has_cost = serializers.IntegerField(
        allow_null=True, help_text="Until now by the panel's own account, with fees and VAT; null if it has not said."
    )
    submissions = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many there are by the panel's status, when it was last read."
    )
    created_at = serializers.DateTimeField()
    publish_at = serializers.DateTimeField(allow_null=True, help_text="When the panel is to show it by itself.")
    published_at = serializers.DateTimeField(allow_null=True)
    read_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField(allow_blank=True, help_text="Why the panel could not be read the last time.")
