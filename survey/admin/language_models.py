"""Language models, their answers, and collections that ask them. Start, watch, stop and resume collections here."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Count, ExpressionWrapper, FloatField, Q, QuerySet, Sum
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from predictors.evaluation.scoring import TextScore, in_words
from predictors.readings import TextReading
from survey.admin_base.read_only_admin import AdminPage, HunchAdmin, ReadOnlyAdmin, shortened
from survey.exceptions import HunchError
from survey.figures.words import number, percent
from survey.models import AnswerCollection, LanguageModel, ModelAnswer, NgramModel, Reading, WordNetwork
from survey.services.banks import collecting
from survey.services.base import rights
from survey.services.base.rights import Right

State = AnswerCollection.State
ASKED_ONCE = {"replies": 1, "temperature": 0.0, "max_tokens": None}  # What an empty field means.


@admin.register(LanguageModel)
class LanguageModelAdmin(ReadOnlyAdmin):
    help = "language-models.md#answers"
    list_display = ("name", "answer_count", "share_correct", "unreadable_count", "created_at")
    search_fields = ("name",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        own = rights.answers_of_visible_banks(request.user)
        answered = Count("answers", filter=own) if own else Count("answers")
        whole, part = Q(answers__correct__isnull=False), Q(answers__share_correct__isnull=False)
        judged = Count("answers", filter=(whole | part) & own)
        right = Count("answers", filter=Q(answers__correct=True) & own)
        in_part = Sum("answers__share_correct", filter=part & own, default=0.0)
        correct = ExpressionWrapper(right + in_part, output_field=FloatField())
        unreadable = Sum("answers__unreadable", filter=own, default=0) if own else Sum("answers__unreadable", default=0)
        counts = {"answered": answered, "judged": judged, "correct": correct, "unreadable": unreadable}
        return super().get_queryset(request).annotate(**counts)

    @admin.display(description="answers", ordering="answered")
    def answer_count(self, model: Any) -> int:
        return int(model.answered)

    @admin.display(description="correct")
    def share_correct(self, model: Any) -> str:
        return percent(model.correct / model.judged) if model.judged else "–"

    @admin.display(description="unreadable replies", ordering="unreadable")
    def unreadable_count(self, model: Any) -> int:
        return int(model.unreadable)


@admin.register(ModelAnswer)
class ModelAnswerAdmin(ReadOnlyAdmin):
    help = "language-models.md#answers"
    list_display = ("question_id_in_bank", "language_model", "is_right", "reply", "stated", "why")
    list_filter = ("language_model", "correct", ("stated", admin.EmptyFieldListFilter))
    list_select_related = ("language_model", "question")
    search_fields = ("question__external_id", "response")
    search_help_text = "By the question's id or words of the reply."
    fields = (
        "language_model",
        "question",
        "is_right",
        "reply_as_it_came",
        "stated",
        "reason",
        "unreadable",
        "rules_version",
        "created_at",
    )
    readonly_fields = ("is_right", "reply_as_it_came")

    @admin.display(description="correct", ordering="correct")
    def is_right(self, answer: ModelAnswer) -> str:
        if answer.share_correct is not None:
            return percent(answer.share_correct)
        return "–" if answer.correct is None else "yes" if answer.correct else "no"

    @admin.display(description="question", ordering="question__external_id")
    def question_id_in_bank(self, answer: ModelAnswer) -> str:
        return answer.question.external_id

    @admin.display(description="reply")
    def reply(self, answer: ModelAnswer) -> str:
        return shortened(answer.response, 60) or "–"

    @admin.display(description="no answer read because")
    def why(self, answer: ModelAnswer) -> str:
        return answer.reason or "–"

    @admin.display(description="reply as it came")
    def reply_as_it_came(self, answer: ModelAnswer) -> SafeString | str:
        replies = answer.replies or ([answer.response] if answer.response else [])
        return format_html_join("", '<pre class="hunch-text">{}</pre>', [(reply,) for reply in replies]) or "–"


@admin.register(Reading)
class ReadingAdmin(ReadOnlyAdmin):
    help = "language-models.md#how-well-models-predict-texts"
    list_display = ("text", "language_model", "source", "token_count", "characters", "created_at")
    list_filter = (("language_model", admin.RelatedOnlyFieldListFilter),)
    list_select_related = ("language_model",)
    deferred = ("tokens",)
    search_fields = ("=text_sha256",)
    search_help_text = "By the hash of the text."
    fields = (
        *("language_model", "source", "text_sha256", "characters", "token_count", "reads_end", "log_score"),
        *("tokenizer_sha256", "source_sha256", "code_version", "created_at"),
    )
    readonly_fields = ("log_score",)

    @admin.display(description="text", ordering="text_sha256")
    def text(self, reading: Reading) -> str:
        return reading.text_sha256[:12]

    @admin.display(description="bits per character")
    def log_score(self, reading: Reading) -> str:
        tokens = reading.token_array
        text_reading = TextReading(tokens, reading.tokenizer_sha256, reading.reads_end)
        score = TextScore.of(text_reading.log_probabilities, words=0, characters=reading.characters)
        return in_words(score.bits_per_character, 3)


@admin.register(NgramModel)
class NgramModelAdmin(ReadOnlyAdmin):
    help = "language-models.md#how-well-models-predict-texts"
    list_display = ("name", "order", "unit", "smoothing", "vocabulary_size", "states", "train_texts", "created_at")
    list_filter = ("unit", "smoothing")
    search_fields = ("name",)


@admin.register(WordNetwork)
class WordNetworkAdmin(ReadOnlyAdmin):
    help = "language-models.md#small-networks-trained-here"
    list_display = (
        *("name", "kind", "layers", "units", "parameters", "vocabulary_size"),
        *("train_words", "epochs", "held_out_perplexity", "created_at"),
    )
    list_filter = ("kind",)
    search_fields = ("name",)


class CollectionForm(forms.ModelForm):
    """The service that sets a collection up does the checks, so that form and command refuse the same things."""

    name = forms.CharField(
        max_length=120, required=False, help_text="What tables show; the model's own name if left empty."
    )
    user: Any = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in ASKED_ONCE:
            self.fields[name].required = False
        self.initial["max_tokens"] = None
        self.fields[
            "max_tokens"
        ].help_text = (
            f"Of a reply; left empty: {collecting.MAX_TOKENS}, in a bank without keys {collecting.MAX_TOKENS_FREE}."
        )
        field: Any = self.fields["bank"]
        field.queryset = rights.visible_banks(self.user, Right.RUN)

    class Meta:
        model = AnswerCollection
        fields = (
            *("bank", "model", "limit", "max_tokens", "replies", "temperature", "template", "concurrency"),
            *("price_in", "price_out", "cost_cap"),
        )

    def clean_model(self) -> str:
        model = str(self.cleaned_data["model"])
        if model.startswith(collecting.LOCAL):
            raise ValidationError("A model on disk is asked on the machine that has it: `hunch collect_answers`.")
        return model

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            values = {**cleaned, **{name: once for name, once in ASKED_ONCE.items() if cleaned.get(name) is None}}
            try:
                self.instance = collecting.create_collection(**values, by=self.user, via="admin")
            except HunchError as exc:
                raise ValidationError(exc.message) from exc
        return cleaned

    def _post_clean(self) -> None:
        """The service has written the row."""

    def save(self, commit: bool = True) -> Any:
        return self.instance

    def save_m2m(self) -> None:
        """There is none."""


def may_run(user: Any, collection: AnswerCollection) -> bool:
    return (
        rights.may_collect_answers(user)
        and rights.visible_banks(user, Right.RUN).filter(pk=collection.bank_id).exists()
    )


def stop(request: HttpRequest, collection: AnswerCollection) -> HttpResponse:
    collecting.request_stop(collection, by=request.user)
    messages.success(request, "It stops after the questions that are on their way.")
    return HttpResponseRedirect(reverse("admin:survey_answercollection_change", args=[collection.pk]))


def resume(request: HttpRequest, collection: AnswerCollection) -> HttpResponse:
    collecting.resume(collection, by=request.user)
    messages.success(request, "Queued again; it asks what has no answer yet.")
    return HttpResponseRedirect(reverse("admin:survey_answercollection_change", args=[collection.pk]))


@admin.register(AnswerCollection)
class AnswerCollectionAdmin(HunchAdmin):
    help = "language-models.md#answers"
    pages = (
        AdminPage("stop", "<int:pk>/stop/", stop, may_open=may_run, by_post=True),
        AdminPage("resume", "<int:pk>/resume/", resume, may_open=may_run, by_post=True),
    )
    list_display = ("language_model", "bank", "state", "progress", "spent", "created_by", "created_at", "said")
    list_filter = ("state", "language_model", "bank")
    list_select_related = ("language_model", "bank", "created_by")
    fields = (
        *(
            "language_model",
            "bank",
            "model",
            "state",
            "progress",
            "refused",
            "said",
            "spent",
            "tokens_in",
            "tokens_out",
        ),
        *("limit", "seed", "max_tokens", "replies", "temperature", "template", "concurrency"),
        *("price_in", "price_out", "cost_cap"),
        *("created_by", "created_at", "finished_at"),
    )
    readonly_fields = fields
    add_form_template = "admin/survey/collection/add.html"
    change_form_template = "admin/survey/collection/page.html"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return rights.may_collect_answers(request.user)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.readonly_fields if obj is not None else ()

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields if obj is not None else ("name", *CollectionForm.Meta.fields)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        if obj is not None:
            return super().get_form(request, obj, change, **kwargs)
        return type("CollectionFormOfUser", (CollectionForm,), {"user": request.user})

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """The service has written it while the form was checked, in the same transaction."""

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        collection = kwargs.get("obj")
        if collection is not None and may_run(request.user, collection):
            context["can_stop"] = collection.state in (State.QUEUED, State.RUNNING) and not collection.stop_requested
            context["can_resume"] = collection.state in (State.STOPPED, State.FAILED) or (
                collection.state == State.DONE and collection.refused > 0
            )
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description="answered")
    def progress(self, collection: AnswerCollection) -> str:
        return f"{collection.answered} of {collection.wanted}"

    @admin.display(description="spent")
    def spent(self, collection: AnswerCollection) -> str:
        if collection.cost is None:
            return "no prices given"
        cap = "" if collection.cost_cap is None else f" of at most {collection.cost_cap.normalize():f}"
        return f"{number(collection.cost, 4)}{cap}"

    @admin.display(description="message")
    def said(self, collection: AnswerCollection) -> str:
        return shortened(collection.error, 300) or "–"
