"""Texts read by language models: stored once, read again only by the same source, and shown as tables and files."""

import csv
import json
import math
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from predictors.readings import Source, Text, TextReading, parse_source
from predictors.readings.text_reading import common_begin, make_tokens
from predictors.settings import WordNetworkSettings
from survey.exceptions import FileErrors, HunchError, NotFound
from survey.models import AuditEntry, Bank, LanguageModel, NgramModel, QuestionText, Reading, WordNetwork
from survey.services.banks import ngrams, readings, text_files, word_networks
from survey.services.banks.frequencies import log_frequencies
from survey.services.results.people_and_models import perplexities
from survey.services.stages.needed_files import needed_files
from tests import cast
from tests.predictors.fake_endpoint import Raw, refusal, running
from tests.predictors.test_ngrams import made_text
from tests.predictors.test_reading_texts import listing
from tests.predictors.tiny_llama import byte_tokenizer, save_tiny_llama

pytestmark = pytest.mark.django_db
TEXTS = [Text("a", "one two three"), Text("b", "two three")]


@pytest.fixture
def server(monkeypatch):
    with running() as fake:
        monkeypatch.setenv("HUNCH_LLM_URL", fake.url)
        monkeypatch.setattr("predictors.endpoints._FIRST_WAIT", 0.001)
        fake.answer = listing
        yield fake


def read(source: str, texts=TEXTS, **options):
    return readings.read(parse_source(source), texts, **options)


def written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def trained(name="two", texts=("one two three", "two one"), **settings):
    return ngrams.train(
        [Text(str(place), text) for place, text in enumerate(texts)],
        **{"name": name, "order": 2, "unit": "word", "smoothing": "kneser_ney", **settings},
    )


def test_a_text_begins_where_the_last_of_the_models_begins():
    whole, later = (
        SimpleNamespace(of_texts=[TextReading(make_tokens([0, 3], [3, 7], [first, -1.0]), "t")])
        for first in (-1.0, math.nan)
    )
    assert [perplexities._begins(of_models, TEXTS[1:]) for of_models in ([whole, later], [later, whole], [whole])] == [
        [3],
        [3],
        [0],
    ]


def test_a_bound_has_the_mark_of_bounds_in_the_chart():
    models = [
        SimpleNamespace(name=name, unpaid=unpaid, total=SimpleNamespace(bits_per_character=2.0))
        for name, unpaid in (("whole", 0), ("few", 3))
    ]
    chart = perplexities._chart(models, SimpleNamespace(bits_per_character=dict.fromkeys(("whole", "few"), (1, 3))))
    assert [[figure.value for figure in row.figures] for row in chart.rows] == [[2.0], [None, 2.0]]
    assert len(chart.series) == 2
    assert perplexities._chart(models[:1], SimpleNamespace(bits_per_character={"whole": (1, 3)})).series == [""]


# Stored once


def test_a_text_is_read_once_and_taken_from_there_afterwards(server):
    first, again = read("M=endpoint:m"), read("M=endpoint:m")
    assert len(server.seen) == 2 and (first.stored, again.stored) == (0, 2)
    for reading, other in zip(first.of_texts, again.of_texts, strict=True):
        assert np.array_equal(reading.tokens["start"], other.tokens["start"]) and reading.tokenizer == other.tokenizer
        assert np.array_equal(reading.log_probabilities, other.log_probabilities, equal_nan=True)
    assert LanguageModel.objects.get().name == "M" and Reading.objects.count() == 2


def test_the_same_text_under_two_names_is_read_once(server):
    readings = read("M=endpoint:m", [Text("a", "one two"), Text("b", "one two")])
    assert len(server.seen) == 1 and len(readings.of_texts) == 2 and Reading.objects.count() == 1


def test_a_model_that_stops_in_the_middle_keeps_what_it_read_and_goes_on(server, monkeypatch):
    monkeypatch.setattr("predictors.endpoints.Endpoint.from_environment", one_at_a_time(server.url))
    server.script = [listing, refusal(400, "gone away")]
    with pytest.raises(HunchError, match=r"text b: .*gone away.*1 texts were read and are stored"):
        read("endpoint:m")
    assert Reading.objects.count() == 1
    server.seen.clear()
    assert read("endpoint:m").stored == 1 and [seen.body["prompt"] for seen in server.seen] == ["two three"]


def one_at_a_time(url):
    from predictors.endpoints import Endpoint

    return lambda **_options: Endpoint(url, tries=1, concurrency=1)


def test_readings_of_another_source_are_not_mixed_in(server):
    read("M=endpoint:m")
    readings = read("M=endpoint:m2")
    assert (readings.stored, readings.of_others, len(server.seen)) == (0, 2, 4)


def test_a_server_without_log_probabilities_is_refused_and_nothing_is_stored(server):
    server.answer = Raw({"choices": [{"text": "x"}]})
    with pytest.raises(HunchError, match="does not list the log-probabilities"):
        read("endpoint:m")
    assert not Reading.objects.exists() and not LanguageModel.objects.exists()


def test_without_an_address_the_variable_is_named(monkeypatch):
    monkeypatch.delenv("HUNCH_LLM_URL", raising=False)
    with pytest.raises(HunchError, match="HUNCH_LLM_URL: not set"):
        read("endpoint:m")


def test_the_hash_of_a_banks_texts_leads_to_readings():
    bank = cast.small_bank(4, tasks=2)
    readings.note_bank(bank)
    readings.note_bank(bank)
    assert QuestionText.objects.count() == 4
    question = bank.questions.get(position=2)
    assert question.text_hash.text_sha256 == readings.text_hash(question.plain)


# n-grams


def test_an_ngram_is_stored_with_its_files_and_reads_texts():
    training = trained()
    assert training.row.vocabulary_size == 5 and set(training.row.files.values()) <= set(needed_files())
    assert AuditEntry.objects.get(action="train_ngram").subject == "two"
    of_texts = read("ngram:two").of_texts
    assert all(reading.reads_end for reading in of_texts) and Reading.objects.filter(reads_end=True).count() == 2
    assert read("ngram:two").stored == 2


def test_a_name_is_given_once_and_must_be_one():
    trained()
    with pytest.raises(HunchError, match="called two already"):
        trained()
    with pytest.raises(HunchError, match="is not a name"):
        trained(name="../x")
    with pytest.raises(HunchError, match="order"):
        trained(name="nine", order=9)
    with pytest.raises(NotFound, match="there are: two"):
        read("ngram:three")
    assert NgramModel.objects.count() == 1


def test_a_changed_file_of_an_ngram_is_noticed(monkeypatch):
    trained()
    monkeypatch.setattr("predictors.readings.ngrams.FORMAT", 2)
    with pytest.raises(HunchError, match="format 1, this version reads 2"):
        read("ngram:two")


def test_the_textbooks_table_is_printed(tmp_path, capsys):
    path = written(tmp_path / "t.txt", made_text(20_000))
    call_command("train_ngram", path, name="five", order=5, unit="character", smoothing="none")
    said = capsys.readouterr().out
    assert "∞" in said and "overfitted" in said and "stored ngram:five: order 5, characters" in said


@pytest.mark.parametrize(
    ("rows", "shares"),
    [
        ("word,count\nthe,60\nCat,40\n", {"the": 0.6, "cat": 0.4}),
        ("word,log_frequency\nthe,-0.5\ncat,-1.5\n", {"the": 10 / 11, "cat": 1 / 11}),
        ("word,log_frequency\nthe,2\ncat,1\n", {"the": 10 / 11, "cat": 1 / 11}),
    ],
)
def test_a_table_of_words_says_how_frequent_they_are(tmp_path, capsys, rows, shares):
    call_command("train_ngram", written(tmp_path / "f.csv", rows), name="counted", counts=True)
    assert "stored ngram:counted: how frequent 2 words are" in capsys.readouterr().out
    row = NgramModel.objects.get()
    assert (row.order, row.unit, row.smoothing, row.vocabulary_size) == (1, "word", "none", 4)
    frequencies = log_frequencies("ngram:counted", ["The", "cat,", "dog"])
    assert 10 ** frequencies[:2] == pytest.approx([shares["the"], shares["cat"]], rel=1e-9) and np.isnan(frequencies[2])


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ("word,count\n", {}, "holds no word"),
        ("word,count\nthe,0\n", {}, "is no number, or a count of 0"),
        ("word,count\ntwo words,3\n", {}, "is not one word"),
        ("word,count\nthe,1\n", {"unit": "character"}, "leave out --test, --lines, --unit"),
    ],
)
def test_a_table_that_says_nothing_of_words_is_refused(tmp_path, capsys, rows, options, said):
    with pytest.raises(SystemExit):
        call_command("train_ngram", written(tmp_path / "f.csv", rows), name="counted", counts=True, **options)
    assert said in capsys.readouterr().err and not NgramModel.objects.exists()


def test_test_texts_that_were_learnt_are_counted(tmp_path, capsys):
    path = written(tmp_path / "t.csv", "id,text\na,one two\nb,two one\n")
    call_command("train_ngram", path, name="two", order=2, test=path)
    assert "2 of the 2 test texts are training texts too" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["two", "none/two"])
def test_a_model_is_written_as_an_arpa_file_and_read_alike(tmp_path, capsys, target):
    path, arpa = written(tmp_path / "t.txt", "one two\ntwo one\nthree\n"), tmp_path / f"{target}.arpa"
    options = {"name": "two", "order": 2, "lines": True, "test": path, "arpa": arpa}
    if target != "two":
        with pytest.raises(SystemExit):
            call_command("train_ngram", path, **options)
        assert "there is no folder" in capsys.readouterr().err and not NgramModel.objects.exists()
        return
    call_command("train_ngram", path, **options)
    assert f"wrote {arpa}" in capsys.readouterr().out
    assert sorted(file.name for file in tmp_path.iterdir()) == ["t.txt", "two.arpa"]
    of_file, of_model = (read(source).of_texts for source in (f"arpa:{arpa}", "ngram:two"))
    for ours, theirs in zip(of_file, of_model, strict=True):
        assert ours.tokens["logprob"] == pytest.approx(theirs.tokens["logprob"], abs=1e-6)
    assert readings.reads_words(Source("arpa", str(arpa), "a")) and readings.reads_words(Source("ngram", "two", "a"))
    assert not readings.reads_words(Source("ngram", "none", "a"))


@pytest.mark.parametrize("options", [{"unit": "character"}, {"smoothing": "none"}, {"counts": True}])
def test_an_arpa_file_holds_a_smoothed_model_of_words(tmp_path, capsys, options):
    path = written(tmp_path / "t.txt", "one two")
    with pytest.raises(SystemExit):
        call_command("train_ngram", path, name="x", arpa=tmp_path / "x.arpa", **options)
    assert "leave out" in capsys.readouterr().err and not NgramModel.objects.exists()


# Networks of words

TINY = {"units": 4, "layers": 1, "epochs": 2, "batch_size": 4, "context": 8, "device": "cpu"}


@pytest.mark.torch
def test_a_network_is_trained_stored_and_read_as_other_models_are(tmp_path, capsys):
    path = written(tmp_path / "t.txt", "one two three\nthree two\ntwo one\n" * 8)
    call_command("train_lm", path, name="tiny", kind="transformer", lines=True, test=path, **TINY)
    said = capsys.readouterr().out
    assert "epoch 2: train perplexity" in said and "test perplexity" in said
    row = WordNetwork.objects.get()
    assert f"stored lm:tiny: transformer, {row.parameters} weights, 5 words with <unk> and END" in said
    assert (row.kind, row.layers, row.units, row.epochs, row.settings["context"]) == ("transformer", 1, 4, 2, 8)
    assert row.train_words == 51 and 1 < row.held_out_perplexity < 9
    assert set(row.files.values()) <= set(needed_files())
    assert AuditEntry.objects.get(action="train_lm").subject == "tiny"
    source = parse_source("lm:tiny")
    of_texts = [Text("a", "one two four"), Text("b", "two three")]
    read_now, again = (readings.read(source, of_texts) for _time in range(2))
    assert all(reading.reads_end for reading in read_now.of_texts) and again.stored == 2
    marks = [[False, False, True], [False, False]]
    assert [unknown.tolist() for unknown in read_now.unknown or ()] == marks and readings.reads_words(source)
    assert [unknown.tolist() for unknown in readings.unknown_words(source, of_texts) or ()] == marks
    call_command("perplexity", path, lines=True, model=["lm:tiny"], normalised=True)
    assert "lm:tiny" in capsys.readouterr().out


@pytest.mark.torch
@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (b"", {}, "is empty"),
        (b"word", {}, "too few to keep one"),
        (b"word " * 40, {}, "hold 1 different words"),
        (b"x" * 5000, {}, "too few to keep one"),
        (b"caf\xe9 \xff\xfe \x80" * 9, {"epochs": 0}, "--epochs: must be 1 or more"),
        (b"a b " * 40, {"units": 0}, "--units: must be 1 or more"),
        (b"a b " * 40, {"seed": -1}, "--seed: -1 must lie between"),
        (b"a b " * 40, {"device": "cuda:9"}, "device: 'cuda:9' is not available here"),
        (b"a b " * 40, {"name": "../x"}, "is not a name"),
        (b"a b " * 40, {"held_out": "none.txt"}, "none.txt"),
        (b"a b \xff\x00 " * 40, {}, "UTF-8"),
    ],
)
def test_what_no_network_can_be_trained_on_is_refused(tmp_path, capsys, content, options, said):
    path = tmp_path / "t.txt"
    path.write_bytes(content)
    with pytest.raises(SystemExit):
        call_command("train_lm", str(path), **{**TINY, "name": "tiny", "kind": "lstm", **options})
    assert said in capsys.readouterr().err and not WordNetwork.objects.exists()


@pytest.mark.torch
def test_ctrl_c_ends_training_and_the_best_epoch_is_stored(tmp_path, capsys, monkeypatch):
    from survey.management.commands import train_lm

    path = written(tmp_path / "t.txt", "one two three two one " * 20)
    monkeypatch.setattr(train_lm.Command, "_say", lambda _command, _epoch: signal.raise_signal(signal.SIGINT))
    call_command("train_lm", path, name="tiny", **{**TINY, "epochs": 9})
    assert "stopped; the best epoch so far is stored" in capsys.readouterr().err
    assert WordNetwork.objects.get().epochs == 1
    with pytest.raises(HunchError, match="called tiny already"):
        word_networks.train([Text("a", "a b")], name="tiny", settings=WordNetworkSettings())
    with pytest.raises(NotFound, match="there are: tiny"):
        read("lm:other")


# Files


def test_texts_come_whole_by_lines_or_from_csv(tmp_path):
    plain = written(tmp_path / "p.txt", "one\n\ntwo\n")
    table = written(tmp_path / "t.csv", 'id,text\nx,"a\nb"\n')
    assert text_files.read_texts([plain, table]) == [Text("p.txt", "one\n\ntwo\n"), Text("x", "a\nb")]
    assert text_files.read_texts([plain], by_lines=True) == [Text("p.txt:1", "one"), Text("p.txt:3", "two")]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("e.txt", b"", "1: text: is empty"),
        ("e.txt", b" \n", "1: text: is empty"),
        ("e.csv", b"id,text\na,ok\nb,\n", "3: text: is empty"),
        ("e.csv", b"id,text\na,x\na,y\n", "3: id: 'a' is the name of a text in"),
        ("e.csv", b"name,text\na,x\n", "1: header: has no column 'id'"),
        ("e.csv", b"id,text\na,x,y\n", "2: row: has 3 fields and the header 2"),
        ("e.csv", b"id,text\n", "1: file: holds no text"),
        ("e.txt", b"one\n\xff\xfe\n", "2: file: byte 1 of this line is not UTF-8"),
    ],
)
def test_files_that_cannot_be_read_are_refused_with_line_and_field(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FileErrors) as refusal:
        text_files.read_texts([path])
    assert said in refusal.value.message


HEADER = "text_id,start,end,logprob\n"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("a,0,3,0.5\n", "2: logprob: '0.5'"),
        ("a,0,3,nan\n", "2: logprob: 'nan'"),
        ("a,0,3,x\n", "2: logprob: 'x'"),
        ("a,0,99,-1\n", "2: start, end"),
        ("a,3,1,-1\n", "2: start, end"),
        ("a,3,7,-1\na,0,3,-1\n", "3: start: 0 stands before"),
        ("a,0,3,-1\na,3,7,\n", "3: logprob: is empty"),
        ("z,0,3,-1\n", "2: text_id: 'z' is none of the 2 texts"),
        ("a,0,3,-1\n", "1: text_id: has no token of the text 'b'"),
        ("a,0,3\n", "2: row"),
    ],
)
def test_a_file_of_readings_is_checked_whole_with_line_and_column(tmp_path, rows, said):
    path = written(tmp_path / "r.csv", HEADER + rows)
    with pytest.raises(FileErrors) as refusal:
        read(f"file:{path}")
    assert said in refusal.value.message and not Reading.objects.exists()


def test_a_missing_file_of_readings_is_named(tmp_path):
    with pytest.raises(HunchError, match="cannot be read"):
        read(f"file:{tmp_path}/none.csv")


# The table


@pytest.mark.slow
def test_models_of_other_tokens_are_noted_and_sorted_by_bits_a_character(tmp_path, capsys):
    trained("words", [made_text(5000), *(made_text(200, i) for i in range(1, 6))], unit="word")
    trained("letters", [made_text(5000)], unit="character", order=3)
    path = written(tmp_path / "t.csv", "id,text\n" + "".join(f"{i},{made_text(200, i)}\n" for i in range(1, 6)))
    models = ["--model", "W=ngram:words", "--model", "L=ngram:letters"]
    call_command("perplexity", path, *models, by="text", normalised=True, out=tmp_path / "out")
    said = capsys.readouterr()
    assert "perplexity / vocabulary" in said.out
    assert perplexities.INCOMPARABLE in said.err and "By group" in said.out
    with (tmp_path / "out" / "perplexity.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    whole = [row for row in rows if not row["group"]]
    bits = [float(row["bits_per_character"]) for row in whole]
    assert bits == sorted(bits) and len(rows) == 12 and float(whole[0]["low"]) < bits[0] < float(whole[0]["high"])
    for row in whole:
        size = {"W": ngrams.load("words"), "L": ngrams.load("letters")}[row["model"]].predicted_size
        assert int(row["vocabulary"]) == size
        share = float(row["perplexity_per_token"]) / size
        assert float(row["normalised_perplexity"]) == pytest.approx(share)
    with (tmp_path / "out" / "differences.csv").open(newline="", encoding="utf-8") as file:
        (apart,) = csv.DictReader(file)
    assert (apart["model"], apart["other"]) == (whole[0]["model"], whole[1]["model"])
    assert float(apart["difference"]) == pytest.approx(bits[0] - bits[1])
    assert float(apart["low"]) <= float(apart["difference"]) <= float(apart["high"])
    with (tmp_path / "out" / "fragility.csv").open(newline="", encoding="utf-8") as file:
        first, _neighbours = csv.DictReader(file)
    assert (first["ahead"], first["behind"]) == (whole[0]["model"], whole[1]["model"])
    assert float(first["lead"]) == pytest.approx(-float(apart["difference"]))
    with (tmp_path / "out" / "tokens.csv").open(newline="", encoding="utf-8") as file:
        tokens = list(csv.DictReader(file))
    letters = [row for row in tokens if row["model"] == "L" and row["text"] == "1"]
    assert "".join(row["token"] for row in letters) == made_text(200, 1)
    assert sum(float(row["surprisal"]) for row in letters[:-1]) == pytest.approx(
        float(next(row for row in rows if row["group"] == "1" and row["model"] == "L")["nats"]) / np.log(2)
    )
    assert "<svg" in (tmp_path / "out" / "perplexity.svg").read_text(encoding="utf-8")


def compare(path: str, *models: str, out: Path, **options) -> None:
    call_command("perplexity", path, *[part for model in models for part in ("--model", model)], out=out, **options)


def whole_rows(folder: Path) -> dict[str, dict[str, str]]:
    with (folder / "perplexity.csv").open(newline="", encoding="utf-8") as file:
        return {row["model"]: row for row in csv.DictReader(file) if not row["group"]}


def test_models_are_compared_on_what_all_of_them_have_read(tmp_path, capsys):
    path = written(tmp_path / "t.txt", "x\nA longer line.\n")
    rows = ["t.txt:1,0,1,{first}\n", "t.txt:2,0,1,{first}\n", "t.txt:2,1,14,-6\n"]
    files = {
        name: written(tmp_path / f"{name}.csv", HEADER + "".join(rows).format(first=first))
        for name, first in (("short", ""), ("whole", "-3"))
    }
    models = [f"{name}=file:{file}" for name, file in files.items()]
    compare(path, *models, lines=True, out=tmp_path / "out")
    said = capsys.readouterr()
    rows_by_model = whole_rows(tmp_path / "out")
    for row in rows_by_model.values():
        assert (row["texts"], row["tokens"], row["words"], row["characters"]) == ("1", "1", "2", "13")
        assert float(row["bits_per_character"]) == pytest.approx(6 / np.log(2) / 13)
    assert "figures are of the 13 characters that all models read; 1 of the texts had nothing that all models read" in (
        said.out
    )
    assert f"whole: on all that it read: {12 / np.log(2) / 15:.3f} bits per character" in said.err
    with (tmp_path / "out" / "differences.csv").open(newline="", encoding="utf-8") as file:
        (apart,) = csv.DictReader(file)
    assert float(apart["difference"]) == 0


def test_texts_of_which_nothing_was_read_are_in_no_denominator(tmp_path, capsys):
    path = written(tmp_path / "t.txt", "a\nI\nto be\n")
    own = written(tmp_path / "own.csv", HEADER + "t.txt:1,0,1,\nt.txt:2,0,1,\nt.txt:3,0,2,\nt.txt:3,2,5,-3\n")
    call_command("perplexity", path, lines=True, model=[f"M=file:{own}"], out=tmp_path / "out")
    row = whole_rows(tmp_path / "out")["M"]
    assert float(row["bits_per_character"]) == pytest.approx(3 / np.log(2) / 3) and row["texts"] == "1"
    assert "2 of the texts had nothing that the model read" in capsys.readouterr().out
    nothing = written(tmp_path / "n.txt", "a\n")
    of_it = written(tmp_path / "of_it.csv", HEADER + "n.txt:1,0,1,\n")
    call_command("perplexity", nothing, lines=True, model=[f"M=file:{of_it}"], out=tmp_path / "none")
    assert whole_rows(tmp_path / "none")["M"]["bits_per_character"] == ""


def test_a_token_that_stands_across_the_common_beginning_counts_for_nobody():
    texts = [Text("a", "one two three")]
    starts = {
        "unread": [(0, 3, np.nan), (3, 7, -1.0), (7, 13, -1.0)],
        "across": [(0, 5, -1.0), (5, 7, -1.0), (7, 13, -1.0)],
    }
    both = [TextReading(make_tokens(*zip(*rows, strict=True)), name) for name, rows in starts.items()]
    assert common_begin(both, 13) == 7
    assert [reading.score(texts[0].text, begin=7).tokens for reading in both] == [1, 1]


def test_unknown_words_are_counted_and_nobody_is_ranked_by_them(tmp_path, capsys):
    trained("few", ["a b a b"], order=1)
    trained("many", ["one two three four five six seven eight nine ten one two four three five seven six"], order=1)
    trained("letters", ["a b a b"], order=1, unit="character")
    path = written(tmp_path / "t.txt", "zz yy xx ww")
    models = ["ngram:few", "ngram:many", "ngram:letters"]
    compare(path, *models, out=tmp_path / "out")
    said = capsys.readouterr()
    rows = whole_rows(tmp_path / "out")
    assert [rows[model]["unknown"] for model in models] == ["4", "4", "0"]
    assert [rows[model]["at_least"] for model in models] == ["1", "1", "0"]
    assert len({rows[model]["ranking"] for model in models}) == 3 and next(iter(rows)) == "ngram:letters"
    assert not (tmp_path / "out" / "differences.csv").exists() and not (tmp_path / "out" / "fragility.csv").exists()
    assert "100.0 %" in said.out and "≥ " in said.out and said.err.count(perplexities.UNRANKED) == 2
    # All that letters lack, each of 1,112,064 - 3 characters, has to be paid for.
    assert float(rows["ngram:letters"]["bits_per_character"]) > 15


def test_models_of_other_vocabularies_meet_on_the_words_that_all_of_them_know(tmp_path, capsys):
    header = HEADER.replace("\n", ",unknown\n")
    words = "t.txt:1,0,3,-1,0\nt.txt:1,3,7,-2,1\nt.txt:1,7,13,-3,0\nt.txt:2,0,4,-4,0\nt.txt:2,4,9,-5,0\n"
    # Of pieces: "o" "ne", " two", " thre" "e"; of the second text one token for both words, and the line's own blank.
    pieces = "t.txt:1,0,1,-.5,0\nt.txt:1,1,3,-.25,0\nt.txt:1,3,7,-9,0\nt.txt:1,7,12,-1,0\nt.txt:1,12,13,-1,0\n"
    both = "t.txt:2,0,9,-7,0\n"
    path = written(tmp_path / "t.txt", "one two three\nfour five\n")
    own = [written(tmp_path / name, header + rows) for name, rows in (("w.csv", words), ("p.csv", pieces + both))]
    compare(path, f"W=file:{own[0]}", f"P=file:{own[1]}", lines=True, out=tmp_path / "out")
    with (tmp_path / "out" / "known_words.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["model"]: row for row in csv.DictReader(file)}
    assert list(rows) == ["P", "W"] and {row["words"] for row in rows.values()} == {"2"}
    for name, nats in (("P", 2.75), ("W", 4.0)):
        assert float(rows[name]["perplexity_per_word"]) == pytest.approx(np.exp(nats / 2))
        assert float(rows[name]["bits_per_character"]) == pytest.approx(nats / np.log(2) / 9)
    assert float(rows["W"]["difference"]) == pytest.approx((2.75 - 4) / np.log(2) / 9) and rows["P"]["difference"] == ""
    assert "2 of 5 words" in capsys.readouterr().out


def test_figures_are_held_against_what_letters_alone_say(tmp_path, capsys):
    trained("few", ["a b a b"], order=1)
    path = written(tmp_path / "t.txt", "aab")
    compare(path, "ngram:few", out=tmp_path / "out")
    said = capsys.readouterr().out
    assert "all 4 where it knew nothing" in said
    assert "for comparison, all 2 characters alike: 1.000 bits a character" in said
    share = np.array([2, 1]) / 3
    assert f"characters by frequency: {-(share * np.log2(share)).sum():.3f} bits a character" in said
    assert "for comparison" in (tmp_path / "out" / "perplexity.svg").read_text(encoding="utf-8")


def test_models_of_one_vocabulary_are_ranked_though_words_are_unknown(tmp_path):
    for order in (1, 2):
        trained(f"o{order}", ["one two three", "two one", "three two"], order=order)
    path = written(tmp_path / "t.txt", "one two four")
    compare(path, "ngram:o1", "ngram:o2", out=tmp_path / "out")
    assert {row["ranking"] for row in whole_rows(tmp_path / "out").values()} == {"1"}
    with (tmp_path / "out" / "differences.csv").open(newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 1


def test_a_file_of_readings_may_say_which_tokens_were_unknown(tmp_path):
    path = written(tmp_path / "t.txt", "one two")
    rows = "t.txt,0,3,-1,1\nt.txt,3,7,-1,0\n"
    own = written(tmp_path / "own.csv", HEADER.replace("\n", ",unknown\n") + rows)
    call_command("perplexity", path, model=[f"M=file:{own}"], out=tmp_path / "out")
    row = whole_rows(tmp_path / "out")["M"]
    assert (row["unknown"], row["unknown_share"], row["at_least"]) == ("1", "0.5", "1")
    bad = written(tmp_path / "bad.csv", HEADER.replace("\n", ",unknown\n") + rows.replace(",1\n", ",yes\n"))
    with pytest.raises(FileErrors, match="2: unknown: 'yes' is not 0 or 1"):
        read(f"M=file:{bad}", [Text("t.txt", "one two")])


def test_a_log_probability_above_0_of_a_server_is_refused(server):
    def above(seen):
        said = listing(seen)
        said.body["choices"][0]["logprobs"]["token_logprobs"][1] = 0.7
        return said

    server.answer = above
    with pytest.raises(HunchError, match="a log-probability is above 0"):
        read("endpoint:m")
    assert not Reading.objects.exists()


def test_infinite_figures_are_said_with_a_sign_and_null(tmp_path, capsys):
    trained("raw", [made_text(3000)], smoothing="none", order=3)
    path = written(tmp_path / "t.txt", "never seen words")
    call_command("perplexity", path, model=["ngram:raw"])
    said = capsys.readouterr()
    assert "∞" in said.out and "gives probability 0 to 3 of 3 tokens" in said.err
    findings = perplexities.report_result(
        texts=[Text("t", "never seen words")], readings=[read("ngram:raw", [Text("t", "x")])]
    )
    assert json.loads(json.dumps(findings.data, allow_nan=False))["models"][0]["bits_per_character"] is None


def test_training_texts_give_a_ratio_and_are_noticed_in_the_test(tmp_path, capsys):
    text = made_text(4000)
    trained("heart", [text], order=3)
    train, test = written(tmp_path / "a.txt", text), written(tmp_path / "b.txt", made_text(1000, 9))
    call_command("perplexity", test, model=["ngram:heart"], train=train)
    assert "overfitted" in capsys.readouterr().err
    call_command("perplexity", train, model=["ngram:heart"], train=train)
    assert "1 of the 1 test texts are training texts" in capsys.readouterr().err


def test_training_texts_are_scored_by_what_all_models_have_read(tmp_path):
    train, texts = [Text("train", "one two three")], [Text("test", "one two")]
    log = np.log(2)

    def of(name, rows):
        path = written(tmp_path / f"{name}.csv", HEADER + "".join(f"train,{row}\n" for row in rows))
        tested = written(tmp_path / f"{name}_test.csv", HEADER + f"test,0,7,{-7 * log}\n")
        return read(f"{name}=file:{tested}", texts), read(f"{name}=file:{path}", train)

    pairs = [of("all", [f"0,7,{-70 * log}", f"7,13,{-12 * log}"]), of("later", ["0,7,", f"7,13,{-6 * log}"])]
    findings = perplexities.report_result(
        texts=texts, readings=[pair[0] for pair in pairs], train=train, train_readings=[pair[1] for pair in pairs]
    )
    learnt = {line["model"]: line["train"]["train"] for line in findings.data["models"]}
    assert {name: score["characters"] for name, score in learnt.items()} == {"all": 6, "later": 6}
    assert [learnt[name]["bits_per_character"] for name in ("all", "later")] == pytest.approx([2, 1])


def test_a_bank_is_read_by_task(capsys):
    bank = cast.small_bank(6, tasks=2)
    trained("words", [question.plain for question in bank.questions.all()])
    call_command("perplexity", bank=bank.name, model=["ngram:words"], by="task")
    said = capsys.readouterr().out
    assert all(task.name in said for task in bank.tasks.all()) and QuestionText.objects.count() == 6


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "FILE: give files, or --bank NAME"),
        ({"bank": "small", "paths": ["x"]}, "FILE: give files, or --bank NAME"),
        ({"paths": ["x"], "by": "task"}, "only a bank has tasks"),
        ({"paths": ["x"], "top": 3}, "give --out DIR"),
        ({"paths": ["x"], "model": ["gpt2"]}, "does not say what reads"),
        ({"bank": "none"}, "no bank"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(options, said, capsys):
    arguments = {"model": ["ngram:x"], **options}
    paths = arguments.pop("paths", [])
    with pytest.raises((SystemExit, CommandError)):
        call_command("perplexity", *paths, **arguments)
    assert said in capsys.readouterr().err


# The specification's figures


@pytest.mark.slow
def test_natural_stories_have_the_published_perplexity(tmp_path, human_data):
    source = human_data / "naturalstories" / "all_stories_gpt3.csv"
    texts: dict[str, str] = {}
    rows = ["text_id,start,end,logprob"]
    with source.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            start = len(texts.setdefault(row["story"], ""))
            texts[row["story"]] += row["token"]
            rows.append(f"{row['story']},{start},{len(texts[row['story']])},{row['logprob']}")
    path = written(tmp_path / "gpt3.csv", "\n".join(rows) + "\n")
    stories = [Text(name, text) for name, text in texts.items()]
    findings = perplexities.report_result(texts=stories, readings=[read(f"GPT-3=file:{path}", stories)])
    (figures,) = findings.data["models"]
    assert (figures["tokens"], figures["words"], figures["characters"]) == (12_363, 10_248, 57_208)
    assert figures["nats"] == pytest.approx(25_080.86, abs=0.005)
    assert figures["perplexity_per_token"] == pytest.approx(7.60, abs=0.005)
    assert figures["perplexity_per_word"] == pytest.approx(11.56, abs=0.005)  # 10,248 words were read
    assert figures["bits_per_character"] == pytest.approx(0.632, abs=0.0005)
    assert "the first token of each was not read" in findings.notes[0]
    assert Bank.objects.count() == 0 and Reading.objects.count() == 10


SCRIPTS = [
    Text("hebrew", "שָׁלוֹם עֲלֵיכֶם"),
    Text("arabic", "مرحبا بالعالم ١٢٣"),
    Text("combining", "e\u0301 und A\u0307\u0327 am Ende"),
    Text("devanagari", "नमस्ते दुनिया"),
    Text("joined", "👩‍👩‍👧‍👦 a family"),
    Text("turned", "abc \u202eright to left\u202c end"),
]


def covered(text: str, reading) -> bool:
    tokens = reading.tokens
    return bool(tokens["start"][0] == 0 and tokens["end"][-1] >= len(text) - 1 and (tokens["end"] <= len(text)).all())


def test_texts_of_any_script_are_read_and_found_again(server):
    all_readings = read("M=endpoint:m", SCRIPTS)
    assert [covered(text.text, reading) for text, reading in zip(SCRIPTS, all_readings.of_texts, strict=True)] == [
        True
    ] * len(SCRIPTS)
    again = read("M=endpoint:m", SCRIPTS)
    assert again.stored == len(SCRIPTS)
    for row in Reading.objects.all():
        text = next(script.text for script in SCRIPTS if readings.text_hash(script.text) == row.text_sha256)
        assert row.characters == len(text)


@pytest.mark.parametrize("unit", ["word", "character"])
def test_an_ngram_reads_texts_of_any_script(unit):
    trained("scripts", [script.text for script in SCRIPTS], unit=unit)
    readings = read("ngram:scripts", SCRIPTS).of_texts
    for text, reading in zip(SCRIPTS, readings, strict=True):
        assert np.isfinite(reading.log_probabilities).all()
        # The last token is the end of the text.
        assert reading.tokens["end"][:-1].max() == len(text.text)


def test_the_same_sign_written_in_two_ways_is_two_texts(server):
    whole, joined = "caf\u00e9", "cafe\u0301"
    read("M=endpoint:m", [Text("a", whole)])
    assert read("M=endpoint:m", [Text("b", joined)]).stored == 0


@pytest.mark.torch
def test_a_reading_of_another_version_of_the_tokenizer_is_left_aside_and_counted(tmp_path):
    from tokenizers import normalizers

    folder = save_tiny_llama(tmp_path / "m")
    source = f"M=local:{folder}"
    first = read(source)
    assert read(source).stored == 2
    tokenizer = byte_tokenizer()
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.save(str(folder / "tokenizer.json"))
    readings = read(source)
    assert (readings.stored, readings.of_others) == (0, 2)
    assert readings.tokenizers.isdisjoint(first.tokenizers)
    assert Reading.objects.values("tokenizer_sha256").distinct().count() == 2


@pytest.mark.torch
def test_a_tokenizer_that_makes_tokens_which_the_model_does_not_know_is_refused(tmp_path):
    folder = save_tiny_llama(tmp_path / "m")
    tokenizer = byte_tokenizer()
    tokenizer.add_tokens(["three"])
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(HunchError, match=r"tokenizer\.json is of another version"):
        read(f"M=local:{folder}")
    assert not Reading.objects.exists()
