"""Positions in sentences, the words that people wrote there, how they were judged, and what models expect there."""

import io

import numpy as np
from django.db import models
from django.db.models import Q

from survey.models import Item, LanguageModel, Question, Response

from .analysis.normalising import LONGEST

# What a language model expects at a word of a sentence; NaN where that is not known. Nats.
WORD = np.dtype([("surprisal", "<f8"), ("corrected", "<f8"), ("entropy", "<f8")])


class AskedWord(models.Model):
    """The word at `position` (0 for the first one) is asked for; those before it are shown."""

    item = models.OneToOneField(Item, on_delete=models.PROTECT, related_name="asked_word", primary_key=True)
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="+")
    position = models.PositiveSmallIntegerField("words shown before it", help_text="So many words are shown before it.")

    def __str__(self) -> str:
        return self.item.key

    @property
    def fragment(self) -> str:
        return " ".join(self.question.plain.split()[: self.position])

    @property
    def target(self) -> str:
        """The sentence's own word, with its punctuation. No page of a respondent may show it."""
        return self.question.plain.split()[self.position]


class WrittenWord(models.Model):
    """What a person typed on one screen."""

    response = models.OneToOneField(Response, on_delete=models.CASCADE, related_name="written_word", primary_key=True)
    text = models.CharField(max_length=LONGEST, help_text="As typed.")
    several = models.BooleanField(
        "more than one word", help_text="More than one word was typed; the first one is judged."
    )

    class Meta:
        constraints = [models.CheckConstraint(condition=~Q(text=""), name="cloze_word_not_empty")]

    def __str__(self) -> str:
        return self.text


class WordScore(models.Model):
    """How a written word compares with the sentence's own, by one version of the rule. A later rule makes new rows."""

    word = models.ForeignKey(WrittenWord, on_delete=models.CASCADE, related_name="scores")
    rule = models.PositiveSmallIntegerField("version of the rule", help_text="Version of the rule.")
    normalised = models.CharField("word as compared", max_length=3 * LONGEST, help_text="The word as it was compared.")
    exact = models.BooleanField("exactly right", help_text="It is the sentence's own word.")
    lenient = models.BooleanField("right but for a slip", help_text="It is, but for a slip of one letter at most.")

    class Meta:
        ordering = ["rule"]
        constraints = [
            models.UniqueConstraint(fields=["word", "rule"], name="cloze_word_judged_once_a_rule"),
            models.CheckConstraint(condition=Q(exact=False) | Q(lenient=True), name="cloze_exact_is_lenient"),
        ]

    def __str__(self) -> str:
        return f"{self.normalised}, rule {self.rule}"


class SentenceReading(models.Model):
    """What a language model expects at each word of a sentence. It is joined to sentences by the text's hash."""

    language_model = models.ForeignKey(LanguageModel, on_delete=models.PROTECT, related_name="+")
    text_sha256 = models.CharField(
        "hash of the text", max_length=64, db_index=True, help_text="Of the text in UTF-8, without markup."
    )
    source = models.CharField(
        "model file or server", max_length=520, help_text="What read it: local:FOLDER, endpoint:MODEL and so on."
    )
    source_sha256 = models.CharField(
        "hash of what it was read from", max_length=64, help_text="Of all that the reading depends on beside the text."
    )
    code_version = models.CharField(max_length=10)
    values = models.BinaryField(
        "surprisals and entropies", help_text="Surprisal, boundary-corrected surprisal and entropy a word, as .npy."
    )
    likeliest = models.JSONField(
        "likeliest words", default=list, help_text="The likeliest words at each word, with their chances."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["text_sha256", "source_sha256", "language_model", "code_version"],
                name="cloze_reading_once_a_text",
            ),
            models.CheckConstraint(condition=~Q(values=b""), name="cloze_reading_has_values"),
        ]

    def __str__(self) -> str:
        return f"{self.language_model} on text {self.text_sha256[:12]}"

    @property
    def word_array(self) -> np.ndarray:
        """(words,) of `WORD`."""
        words: np.ndarray = np.load(io.BytesIO(bytes(self.values)), allow_pickle=False)
        return words
