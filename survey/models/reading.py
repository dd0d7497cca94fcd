"""Readings: how probable each token of a text was to a language model. What was trained here to read texts."""

import io

import numpy as np
from django.db import models
from django.db.models import Q

from .language_model import LanguageModel
from .question import Question


class Reading(models.Model):
    """One text as a language model reads it, stored once. The text itself is not stored, only its hash.

    Readings are joined to items by the text's hash and the place of the first character.
    """

    language_model = models.ForeignKey(LanguageModel, on_delete=models.PROTECT, related_name="readings")
    text_sha256 = models.CharField("hash of the text", max_length=64, help_text="Of the text in UTF-8, without markup.")
    characters = models.PositiveIntegerField("number of characters", help_text="Of the text.")
    source = models.CharField(
        "model file or server", max_length=520, help_text="What read it: local:FOLDER, endpoint:MODEL and so on."
    )
    source_sha256 = models.CharField(
        "hash of what it was read from", max_length=64, help_text="Of all that the reading depends on beside the text."
    )
    tokenizer_sha256 = models.CharField(
        "hash of the tokenizer", max_length=64, help_text="Of what cut the text into tokens."
    )
    token_count = models.PositiveIntegerField("number of tokens")
    reads_end = models.BooleanField(
        "reads the end of the text", default=False, help_text="Whether the last token is the end of the text."
    )
    tokens = models.BinaryField(
        "chances of the tokens", help_text="Start, end and natural log-probability of each token, as a .npy file."
    )
    code_version = models.CharField(max_length=10)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["text_sha256", "source_sha256", "language_model", "code_version"], name="reading_once_a_text"
            ),
            models.CheckConstraint(condition=~Q(tokens=b""), name="reading_has_tokens"),
        ]

    def __str__(self) -> str:
        return f"{self.language_model} on text {self.text_sha256[:12]}"

    @property
    def token_array(self) -> np.ndarray:
        """(n,) with the fields start, end and logprob; NaN where a token was not read."""
        tokens: np.ndarray = np.load(io.BytesIO(bytes(self.tokens)), allow_pickle=False)
        return tokens


class QuestionText(models.Model):
    """The hash of a question's text as a reader sees it, by which readings find it. There where a bank was read."""

    question = models.OneToOneField(Question, on_delete=models.CASCADE, related_name="text_hash")
    text_sha256 = models.CharField("hash of the text", max_length=64, db_index=True)

    class Meta:
        ordering = ["question"]

    def __str__(self) -> str:
        return f"{self.question}: {self.text_sha256[:12]}"


class NgramModel(models.Model):
    """An n-gram model that `train_ngram` made. Its files lie in the storage, by their hashes."""

    class Unit(models.TextChoices):
        WORD = "word", "word"
        CHARACTER = "character", "character"
        TOKEN = "token", "token"

    class Smoothing(models.TextChoices):
        NONE = "none", "none"
        KNESER_NEY = "kneser_ney", "Kneser-Ney"

    name = models.SlugField(max_length=80, unique=True)
    order = models.PositiveSmallIntegerField(
        "number of units that it counts", help_text="It counts the predicted unit."
    )
    unit = models.CharField("what it predicts", max_length=10, choices=Unit.choices)
    smoothing = models.CharField(max_length=12, choices=Smoothing.choices)
    vocabulary_size = models.PositiveIntegerField(help_text="Units that can come next, with <unk> and END.")
    states = models.PositiveBigIntegerField("different contexts", help_text="Different contexts in the training texts.")
    train_texts = models.PositiveIntegerField("number of training texts")
    input_sha256 = models.CharField(
        "hash of texts and settings", max_length=64, help_text="Of the training texts and the settings."
    )
    files = models.JSONField(default=dict, help_text="Name to sha256.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=Q(order__gte=1, order__lte=5), name="ngram_order_between_1_and_5"),
            models.CheckConstraint(condition=Q(unit__in=["word", "character", "token"]), name="ngram_unit_known"),
            models.CheckConstraint(condition=Q(smoothing__in=["none", "kneser_ney"]), name="ngram_smoothing_known"),
        ]

    def __str__(self) -> str:
        return self.name


class WordNetwork(models.Model):
    """A language model of words that `train_lm` made. Its files lie in the storage, by their hashes."""

    class Kind(models.TextChoices):
        LSTM = "lstm", "LSTM"
        TRANSFORMER = "transformer", "transformer"

    name = models.SlugField(max_length=80, unique=True)
    kind = models.CharField(max_length=12, choices=Kind.choices)
    layers = models.PositiveSmallIntegerField("layers of the network")
    units = models.PositiveIntegerField("width of the network", help_text="Its width.")
    parameters = models.PositiveBigIntegerField("numbers learnt", help_text="Numbers that it learnt.")
    vocabulary_size = models.PositiveIntegerField(
        "words that can come next", help_text="What can come next: words, <unk> and END."
    )
    train_words = models.PositiveBigIntegerField("words learnt from", help_text="Of the training texts.")
    epochs = models.PositiveIntegerField(
        "times through the texts", help_text="Times that it went through the training texts."
    )
    held_out_perplexity = models.FloatField(
        "perplexity of texts kept apart",
        help_text="By word and END, of the texts that said when to stop; a little too good, as they chose the epoch.",
    )
    settings = models.JSONField("settings of training", default=dict)
    random_state = models.PositiveIntegerField("seed of chance")
    input_sha256 = models.CharField(
        "hash of what it is made from", max_length=64, help_text="Of the texts, the settings and the seed."
    )
    files = models.JSONField(default=dict, help_text="Name to sha256.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=["lstm", "transformer"]), name="word_network_kind_known"),
        ]

    def __str__(self) -> str:
        return self.name
