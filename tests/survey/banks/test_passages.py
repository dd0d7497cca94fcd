"""Passages: their tokens by one tokenizer, what models expect at each, and what is refused."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command

from predictors.readings import Source, Text
from survey.exceptions import HunchError
from survey.models import AuditEntry, NgramModel, TokenizerRecord
from survey.services.banks import passages
from survey.services.banks.readings import text_hash

pytestmark = pytest.mark.django_db

TEXTS = [
    Text("one", "The cat sat on the mat, and the cat saw the rat.\nThe rat ran."),
    Text("two", "A rat sat on the cat’s mat: naïve, but the mat was warm."),
]


@pytest.fixture
def tokenizer() -> TokenizerRecord:
    return passages.train_tokenizer(TEXTS, name="own", size=300)


def command(called: str, *args: Any, **options: Any) -> str:
    out = io.StringIO()
    call_command(called, *args, stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


def test_a_bank_is_cut_and_read_by_commands_and_a_second_time_nothing_is_done(tmp_path: Path) -> None:
    file = tmp_path / "passages.csv"
    rows = "".join(f'{text.id},tales,"{text.text}"\n' for text in TEXTS)
    file.write_text(f"id,source,text\n{rows}", encoding="utf-8")
    command("import_questions", file, bank="tales", format="passages")
    assert "pairs:own" in command("train_tokenizer", bank="tales", name="own", size=300)
    command("train_ngram", file, name="three", order=3, unit="token", tokenizer="pairs:own")

    arguments = ["--bank=tales", "--tokenizer=pairs:own", "--model=trigram=ngram:three"]
    assert "trigram: 2 passages read now" in command("prepare_passages", *arguments)
    assert "trigram: 0 passages read now" in command("prepare_passages", *arguments)

    row = passages.registered("pairs:own")
    cut = passages.tokens_of(row, TEXTS)
    expected = passages.expectations_of(Source("ngram", "three", "trigram"), row, TEXTS)
    for text in TEXTS:
        tokens, values = cut[text_hash(text.text)], expected[text_hash(text.text)]
        words = passages.vocabulary_of(row)
        typed = words.typable(tokens["id"])
        token_texts = [
            words.text_of(token) if typable else "" for token, typable in zip(tokens["id"], typed, strict=True)
        ]
        places = zip(token_texts, tokens["start"], tokens["end"], strict=True)
        assert all(not word or text.text[start:end] == word for word, start, end in places)
        assert not typed[[text.text[start] == "\n" for start in tokens["start"]]].any()
        assert len(values) == len(tokens)
        assert (values["top_logprob"] >= values["logprob"] - 1e-12).all()
        assert (values["entropy"] >= 0).all()
    assert AuditEntry.objects.filter(action="train_tokenizer").count() == 1


def test_a_source_whose_hash_changed_is_refused_and_nothing_is_written(tokenizer: TokenizerRecord) -> None:
    TokenizerRecord.objects.filter(pk=tokenizer.pk).update(sha256="0" * 64)
    with pytest.raises(HunchError, match="has changed since passages were cut by it"):
        passages.cut_texts("pairs:own", TEXTS)
    assert not tokenizer.texts.exists()


def test_a_model_with_another_tokenizer_is_read_by_characters(tokenizer: TokenizerRecord) -> None:
    other = passages.train_tokenizer(TEXTS, name="other", size=260)
    passages.cut_texts("pairs:own", TEXTS)
    command_source = passages.open_tokenizer(other.source)
    from survey.services.banks import ngrams

    ngrams.train(TEXTS, name="n", order=2, unit="token", smoothing="kneser_ney", cut_by=command_source)  # type: ignore[arg-type]
    source = Source("ngram", "n", "n")
    assert passages.expect(source, tokenizer, TEXTS) == 2
    for text in TEXTS:
        said = passages.expectations_of(source, tokenizer, [text])[text_hash(text.text)]
        ((_number, reading),) = ngrams.load("n").each([text])
        assert len(said) == len(passages.tokens_of(tokenizer, [text])[text_hash(text.text)])
        # The chance of the whole text lies between the products of the least and of the most.
        least, most = said["logprob"].sum(), said["logprob_most"].sum()
        assert least <= reading.log_probabilities.sum() <= most < 0.5 * least


def test_a_text_that_does_not_survive_is_named_and_none_is_stored(
    tokenizer: TokenizerRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = passages.open_tokenizer("pairs:own")
    monkeypatch.setattr(type(own), "joined", lambda _self, ids: "the cat sat")
    with pytest.raises(HunchError, match="one: text: does not survive the tokenizer: from character 1 on"):
        passages.cut_texts("pairs:own", TEXTS)
    assert not tokenizer.texts.exists()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("bert", "names no tokenizer"),
        ("pairs:none", "there are: none"),
        ("local:/nowhere", "is no folder"),
        ("ngram:none", "no n-gram model is called"),
    ],
)
def test_unknown_tokenizers_are_refused(source: str, message: str) -> None:
    with pytest.raises(HunchError, match=message):
        passages.register(source)


def test_characters_are_tokens_and_a_character_model_reads_them() -> None:
    from survey.services.banks import ngrams

    ngrams.train(TEXTS, name="letters", order=2, unit="character", smoothing="kneser_ney")
    row = passages.cut_texts("characters", TEXTS)
    assert passages.expect(Source("ngram", "letters", "letters"), row, TEXTS) == 2
    values = passages.expectations_of(Source("ngram", "letters", "letters"), row, TEXTS)[text_hash(TEXTS[0].text)]
    assert len(values) == len(TEXTS[0].text)
    assert chr(values["top_id"][1]) == "h"  # after "T"
    assert passages.vocabulary_of(row).id_of("h") == ord("h")
    assert passages.vocabulary_of(row).id_of("\n") is None
    assert NgramModel.objects.get().unit == "character"


def test_the_vocabulary_lists_what_begins_so_and_leaves_out_what_nobody_can_type() -> None:
    words = passages.Vocabulary(["�", "a", " a", " an", " and", "\n", "x", "x"])
    assert words.beginning_with(" a") == [" a", " an", " and"]
    assert words.beginning_with("") == []
    assert [words.id_of(text) for text in (" an", "x", "\n", "�")] == [3, None, None, None]
    assert words.typable(np.array([0, 1, 5, 6])).tolist() == [False, True, False, False]
