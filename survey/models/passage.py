"""Passages cut into tokens, and what language models expect at each token. Made before a study, never while it runs."""

import io
import json
import zlib

import numpy as np
from django.db import models
from django.db.models import Q

from .language_model import LanguageModel

# What a model gave to a token: its natural log-probability, the entropy there in nats, and the likeliest token with its
# log-probability; NaN and -1 where that is not known.
EXPECTED = np.dtype(
    [
        ("logprob", "<f8"),
        ("logprob_most", "<f8"),
        ("entropy", "<f8"),
        ("top_id", "<i4"),
        ("top_logprob", "<f8"),
        ("sure", "?"),
    ]
)
"""What a model expects at a token: its natural log-probability, at least and at most (both are the same where the model
names the token by its id), the entropy in nats, and the likeliest token. `entropy` and `top_logprob` are NaN where a
model lists only its likeliest tokens, and `sure` says whether what it does not list cannot be likelier."""


class TokenizerRecord(models.Model):
    """A tokenizer that has cut passages. One source is one tokenizer for ever: another hash is refused."""

    source = models.CharField(
        "where it is from",
        max_length=520,
        unique=True,
        help_text="Where it is from: pairs:NAME, local:FOLDER, ngram:NAME or characters.",
    )
    sha256 = models.CharField(
        "hash of the tokenizer", max_length=64, help_text="Of all that decides how it cuts a text."
    )
    size = models.PositiveIntegerField("number of tokens", help_text="Tokens of its vocabulary.")
    words = models.BinaryField("texts of the tokens", help_text="The text of each token, by its id: JSON, compressed.")
    content = models.BinaryField(
        "tokenizer file", blank=True, help_text="The tokenizer itself, where it was trained here."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["source"]
        constraints = [models.CheckConstraint(condition=~Q(words=b""), name="tokenizer_has_words")]

    def __str__(self) -> str:
        return f"{self.source} ({self.sha256[:12]})"

    @property
    def vocabulary(self) -> list[str]:
        """The text of each token, by its id; empty for ids that no text has."""
        words: list[str] = json.loads(zlib.decompress(bytes(self.words)))
        return words


class CutText(models.Model):
    """A text as a tokenizer cuts it. The text itself is not stored, only its hash."""

    tokenizer = models.ForeignKey(TokenizerRecord, on_delete=models.PROTECT, related_name="texts")
    text_sha256 = models.CharField("hash of the text", max_length=64, help_text="Of the text in UTF-8, without markup.")
    token_count = models.PositiveIntegerField("number of tokens")
    tokens = models.BinaryField("where the tokens are", help_text="Id, start and end of each token, as a .npy file.")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["tokenizer", "text_sha256"], name="text_cut_once_a_tokenizer")]

    def __str__(self) -> str:
        return f"text {self.text_sha256[:12]} by {self.tokenizer}"

    @property
    def token_array(self) -> np.ndarray:
        """(n,) with the fields id, start and end."""
        tokens: np.ndarray = np.load(io.BytesIO(bytes(self.tokens)), allow_pickle=False)
        return tokens


class TokenExpectation(models.Model):
    """What a language model expects at each token of a text, by the ids of one tokenizer."""

    language_model = models.ForeignKey(LanguageModel, on_delete=models.PROTECT, related_name="+")
    tokenizer = models.ForeignKey(TokenizerRecord, on_delete=models.PROTECT, related_name="expectations")
    text_sha256 = models.CharField("hash of the text", max_length=64, help_text="Of the text in UTF-8, without markup.")
    source = models.CharField(
        "model file", max_length=520, help_text="What read it: local:FOLDER, endpoint:MODEL, ngram:NAME or file:CSV."
    )
    source_sha256 = models.CharField(
        "hash of what it was read from", max_length=64, help_text="Of all that the reading depends on beside the text."
    )
    code_version = models.CharField(max_length=10)
    values = models.BinaryField(
        "chances of the tokens",
        help_text="Log-probability of the token, entropy, likeliest token and its log-probability, as a .npy file.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["text_sha256", "tokenizer", "source_sha256", "language_model", "code_version"],
                name="expectation_once_a_text",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.language_model} on text {self.text_sha256[:12]}"

    @property
    def token_array(self) -> np.ndarray:
        """(n,) of `EXPECTED`."""
        stored: np.ndarray = np.load(io.BytesIO(bytes(self.values)), allow_pickle=False)
        if stored.dtype == EXPECTED:
            return stored
        # Stored when models named every token by its id.
        values = np.empty(len(stored), dtype=EXPECTED)
        for name in stored.dtype.names or ():
            values[name] = stored[name]
        values["logprob_most"], values["sure"] = stored["logprob"], True
        return values
