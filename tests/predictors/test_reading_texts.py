"""Readers: windows, tokens that cover the text, batches that change nothing, servers that list log-probabilities."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from predictors.endpoints import Endpoint, EndpointError
from predictors.errors import CheckpointError, PredictorError
from predictors.readings import Detail, Text, parse_source
from predictors.readings.completions import CompletionReader, places_of
from predictors.readings.text_reading import make_tokens, without_gaps
from predictors.readings.tokenizing import FileTokenizer, check_survives
from predictors.readings.windows import windows_of
from tests.predictors.fake_endpoint import FakeEndpoint, Raw, refusal, running
from tests.predictors.tiny_gguf import save_as_gguf
from tests.predictors.tiny_llama import byte_tokenizer, save_tiny_llama

TEXTS = [
    Text("plain", "So the answer is no."),
    Text("blanks", "  Hello  there\n\n"),
    Text("bytes", "A smile 😀 and שָׁלוֹם, then e\u0301."),
    Text("letters", "</s> is no end here <s>"),
    Text("one", "a"),
    Text("long", "the same words again and again " * 12),
]


def covers(tokens: np.ndarray, length: int) -> bool:
    """Whether tokens stand in order, with no character between them left out."""
    reached = 0
    for start, end in zip(tokens["start"].tolist(), tokens["end"].tolist(), strict=True):
        if start > reached or end < start:
            return False
        reached = max(reached, end)
    return reached == length


# Windows


@pytest.mark.parametrize(("length", "longest"), [(1, 8), (2, 8), (8, 8), (9, 8), (40, 8), (41, 7), (5, 2), (100, 100)])
def test_windows_count_each_place_once_with_the_most_context(length, longest):
    counted = {}
    windows = windows_of(length, longest)
    for window in windows:
        assert window.stop - window.start <= longest and window.start % max(1, longest // 2) == 0
        for place in range(window.first, window.stop):
            assert place not in counted
            counted[place] = place - window.start
    assert sorted(counted) == list(range(1, length))
    starts = range(0, length, max(1, longest // 2))
    for place, context in counted.items():
        assert context == max(place - start for start in starts if start < place < start + longest)


def test_gaps_go_to_the_token_after_them_and_shared_characters_stay():
    starts, ends = without_gaps(np.array([1, 4, 4, 8]), np.array([3, 5, 5, 9]), 11)
    assert starts.tolist() == [0, 3, 4, 5] and ends.tolist() == [3, 5, 5, 11]


def test_tokens_have_logarithms_of_probabilities():
    with pytest.raises(PredictorError, match="above 0"):
        make_tokens([0], [1], [0.5])


# Names


@pytest.mark.parametrize(
    ("given", "scheme", "target", "name"),
    [
        ("local:/models/a=b", "local", "/models/a=b", "local:/models/a=b"),
        ("GPT-2=local:/models/gpt2", "local", "/models/gpt2", "GPT-2"),
        ("endpoint:org/model:latest", "endpoint", "org/model:latest", "endpoint:org/model:latest"),
        ("ngram:five", "ngram", "five", "ngram:five"),
    ],
)
def test_a_source_has_a_scheme_a_target_and_a_name(given, scheme, target, name):
    assert tuple(parse_source(given)) == (scheme, target, name)


@pytest.mark.parametrize("given", ["gpt2", "local:", "hub:gpt2", "x=", "file:" + "a" * 600])
def test_a_source_that_says_nothing_is_refused(given):
    with pytest.raises(PredictorError, match="model"):
        parse_source(given)


# A causal model in this process


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return save_tiny_llama(tmp_path_factory.mktemp("llama"), max_position_embeddings=128)


def read(reader, texts, **options):
    readings = dict(reader.each(texts, **options))
    return [readings[number] for number in range(len(texts))]


@pytest.mark.torch
def test_it_reads_what_a_plain_loop_reads_whatever_is_in_a_batch(llama):
    import torch
    from transformers import AutoModelForCausalLM

    from predictors.readings.causal import CausalReader

    reader = CausalReader(str(llama))
    together, small = read(reader, TEXTS), read(CausalReader(str(llama), token_budget=1), TEXTS)
    model = AutoModelForCausalLM.from_pretrained(llama)
    tokenizer = byte_tokenizer()
    tokenizer.encode_special_tokens = True
    for text, reading, alone in zip(TEXTS, together, small, strict=True):
        ids = tokenizer.encode(text.text).ids  # <s> stands before the text, once.
        assert ids[0] == 0 and len(ids) == len(reading.tokens) + 1
        if len(ids) <= reader.longest:
            with torch.no_grad():
                scores = torch.log_softmax(model(torch.tensor([ids])).logits[0, :-1], dim=-1)
            plain = scores.gather(1, torch.tensor(ids)[1:, None])[:, 0].numpy()
            assert reading.log_probabilities == pytest.approx(plain, abs=1e-4)
        assert reading.log_probabilities == pytest.approx(alone.log_probabilities, abs=1e-4)
        assert covers(reading.tokens, len(text.text)) and reading.tokenizer == reader.tokenizer


@pytest.mark.torch
def test_windows_give_the_one_window_reading_where_the_text_fits(llama):
    from predictors.readings.causal import CausalReader

    whole, part = CausalReader(str(llama)), CausalReader(str(llama), longest=128)
    assert read(whole, TEXTS[:3])[2].score(TEXTS[2].text).nats == pytest.approx(
        read(part, TEXTS[:3])[2].score(TEXTS[2].text).nats, abs=1e-4
    )
    short = CausalReader(str(llama), longest=16)
    (cut,), (full,) = read(short, TEXTS[-1:]), read(whole, TEXTS[-1:])
    assert len(cut.tokens) == len(full.tokens) and covers(cut.tokens, len(TEXTS[-1].text))
    # What stands in the first window has all its context.
    assert cut.log_probabilities[:15] == pytest.approx(full.log_probabilities[:15], abs=1e-4)
    assert np.isfinite(cut.log_probabilities).all() and short.source != whole.source


@pytest.mark.torch
def test_without_a_token_for_the_beginning_the_first_token_is_not_read(tmp_path):
    from tokenizers import processors

    from predictors.readings.causal import CausalReader

    tokenizer = byte_tokenizer()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    reader = CausalReader(str(save_tiny_llama(tmp_path / "m", tokenizer=tokenizer)))
    readings = read(reader, TEXTS)
    assert all(reading.skips_first and math.isnan(reading.log_probabilities[0]) for reading in readings)
    assert readings[4].score("a").tokens == 0 and readings[0].score(TEXTS[0].text).tokens == len(readings[0].tokens) - 1


@pytest.mark.torch
def test_what_it_expected_fits_what_it_read(llama):
    from predictors.readings.causal import CausalReader

    reader = CausalReader(str(llama))
    (reading,) = read(reader, TEXTS[:1], detail=Detail(top=reader.vocabulary, samples=5, seed=3))
    listed = reading.distributions
    assert len(listed.top) == len(reading.tokens) == len(listed.samples)
    chances = np.exp([value for _token, value in listed.top[0]])
    assert chances.sum() == pytest.approx(1, abs=1e-4)
    assert listed.entropy[0] == pytest.approx(-(chances * np.log(chances)).sum(), abs=1e-3)
    assert all(len(drawn) == 5 for drawn in listed.samples)
    (again,) = read(reader, TEXTS[:1], detail=Detail(samples=5, seed=3))
    assert again.distributions.samples == listed.samples
    # The same by ids, of the tokenizer that its folder has; and restricted to a few tokens.
    tokenizer = FileTokenizer(llama)
    assert tokenizer.sha256 == reader.cutter
    cut = check_survives(tokenizer, TEXTS[0].text)
    assert [(token["start"], token["end"]) for token in cut] == [
        (token["start"], token["end"]) for token in reading.tokens
    ]
    for token, ids, top, drawn in zip(cut, listed.top_ids, listed.top, listed.drawn, strict=True):
        value = reading.tokens["logprob"][cut["start"].tolist().index(token["start"])]
        assert top[ids.index(token["id"])][1] == pytest.approx(value, abs=1e-4)
        assert all(top[ids.index(token_id)][1] == pytest.approx(value, abs=1e-4) for token_id, value in drawn)
    few = np.unique(cut["id"]).astype(np.int64)
    (some,) = read(reader, TEXTS[:1], detail=Detail(top=2, samples=9, seed=1, among=few))
    assert {token_id for drawn in some.distributions.drawn for token_id, _value in drawn} <= set(few.tolist())
    assert {token_id for ids in some.distributions.top_ids for token_id in ids} <= set(few.tolist())
    inside = [listed.top[0][listed.top_ids[0].index(token_id)][1] for token_id in few.tolist()]
    assert some.distributions.mass[0] == pytest.approx(np.log(np.exp(inside).sum()), abs=1e-4)


@pytest.mark.torch
def test_a_model_that_bends_its_logits_is_asked_for_them(tmp_path):
    import torch
    from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

    from predictors.readings.causal import CausalReader

    tokenizer = byte_tokenizer()
    config = GPT2Config(vocab_size=tokenizer.get_vocab_size(), n_embd=16, n_layer=1, n_head=2, n_positions=64)
    torch.manual_seed(0)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    reader = CausalReader(str(tmp_path))
    (before,) = read(reader, TEXTS[:1])
    forward = reader._model.forward

    def halved(*args, **kwargs):
        out = forward(*args, **kwargs)
        out.logits = out.logits / 2
        return out

    reader._model.forward = halved
    from predictors.readings.causal import _Head

    reader._head = _Head.of(reader._model, reader.device)
    (after,) = read(reader, TEXTS[:1])
    ids = tokenizer.encode(TEXTS[0].text).ids
    with torch.no_grad():
        logits = AutoModelForCausalLM.from_pretrained(tmp_path)(torch.tensor([ids])).logits[0, :-1] / 2
    plain = torch.log_softmax(logits, dim=-1).gather(1, torch.tensor(ids)[1:, None])[:, 0].numpy()
    assert after.log_probabilities == pytest.approx(plain, abs=1e-4)
    assert before.log_probabilities != pytest.approx(plain, abs=1e-4)


@pytest.mark.torch
def test_a_gguf_file_is_read_as_the_folder_that_it_was_made_from(llama, tmp_path, capfd):
    pytest.importorskip("gguf", reason="Not tested: GGUF files, since the package gguf is not installed")
    from predictors.readings.causal import CausalReader

    folder = save_as_gguf(llama, tmp_path / "g" / "tiny.gguf").parent
    reader, own = CausalReader(str(folder)), CausalReader(str(llama))
    assert capfd.readouterr().err == ""
    for reading, other in zip(read(reader, TEXTS), read(own, TEXTS), strict=True):
        assert reading.tokens["start"].tolist() == other.tokens["start"].tolist()
        assert reading.log_probabilities == pytest.approx(other.log_probabilities, abs=1e-4)
    assert reader.source != own.source and reader.vocabulary_size == own.vocabulary_size
    assert FileTokenizer(folder).sha256 == reader.cutter


@pytest.mark.torch
def test_a_tokenizer_of_its_own_is_read_before_one_in_a_gguf_file(llama, tmp_path):
    folder = shutil.copytree(llama, tmp_path / "both")
    (folder / "weights.gguf").write_bytes(b"GGUF")
    assert FileTokenizer(folder).sha256 == FileTokenizer(llama).sha256


@pytest.mark.torch
def test_what_is_no_causal_model_is_refused(tmp_path, llama):
    from predictors.readings.causal import CausalReader

    with pytest.raises(CheckpointError, match="there is no folder"):
        CausalReader(str(tmp_path / "missing"))
    with pytest.raises(CheckpointError, match=r"config\.json"):
        CausalReader(str(tmp_path))
    with pytest.raises(CheckpointError, match="not a causal language model"):
        CausalReader("bundled:minilm-l6")
    (tmp_path / "two").mkdir()
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / "two" / name).write_bytes(b"GGUF")
    with pytest.raises(CheckpointError, match="2 GGUF files"):
        CausalReader(str(tmp_path / "two"))
    (tmp_path / "two" / "b.gguf").unlink()
    with pytest.raises(CheckpointError, match=r"needs the package gguf|cannot be used as"):
        CausalReader(str(tmp_path / "two"))


def saved(folder, model, llama):
    model.save_pretrained(folder)
    shutil.copy(Path(llama) / "tokenizer.json", folder)
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    return str(folder)


@pytest.mark.torch
def test_what_looks_ahead_is_refused_by_name_and_by_what_it_does(tmp_path, llama, monkeypatch):
    import torch
    from transformers import LlamaForCausalLM, XLNetConfig, XLNetLMHeadModel

    from predictors.readings.causal import CausalReader

    torch.manual_seed(0)
    words = byte_tokenizer().get_vocab_size()
    xlnet = saved(
        tmp_path / "xlnet",
        XLNetLMHeadModel(XLNetConfig(vocab_size=words, d_model=16, n_layer=2, n_head=2, d_inner=32)),
        llama,
    )
    with pytest.raises(CheckpointError, match="is an XLNet, which learnt to predict words in any order"):
        CausalReader(xlnet)
    monkeypatch.setattr("predictors.networks.causal_network._IN_ANY_ORDER", {})
    with pytest.raises(CheckpointError, match="looks ahead"):
        CausalReader(xlnet)
    # A model that is called causal, and whose attention is not.
    plain = LlamaForCausalLM.forward

    def with_both_sides(self, input_ids=None, **options):
        output = plain(self, input_ids=input_ids, **options)
        output.logits = output.logits + plain(self, input_ids=input_ids.flip(1), **options).logits.flip(1)
        return output

    assert CausalReader(str(llama)).longest == 128
    monkeypatch.setattr(LlamaForCausalLM, "forward", with_both_sides)
    with pytest.raises(CheckpointError, match="looks ahead"):
        CausalReader(str(llama))


# A server


@pytest.mark.parametrize(
    ("text", "strings", "first", "spans"),
    [
        ("ab cd", ["ab", " cd", " more"], 0, [(0, 2), (2, 5)]),
        ("ab cd", ["<s>", "ab", " cd"], 1, [(0, 2), (2, 5)]),
        ("a😀b", ["a", "bytes:\\xf0\\x9f", "bytes:\\x98\\x80", "b", "!"], 0, [(0, 1), (1, 2), (1, 2), (2, 3)]),
        ("a😀", ["a", "\N{REPLACEMENT CHARACTER}", ""], 0, [(0, 1), (1, 2), (1, 2)]),
    ],
)
def test_listed_tokens_are_found_in_the_text(text, strings, first, spans):
    assert places_of(text, strings) == (first, spans)


@pytest.mark.parametrize("strings", [["x"], [" made"], [], ["ab"], ["ab", "xx"]])
def test_tokens_that_do_not_spell_the_text_are_noticed(strings):
    assert places_of("ab cd", strings) is None


@pytest.fixture
def endpoint():
    with running() as fake:
        yield fake


def listing(seen):
    """Each word a token, with a token that was made after them."""
    words = seen.body["prompt"].split(" ")
    tokens = [words[0], *(f" {word}" for word in words[1:]), " made"]
    values = [None, *(-float(len(token)) for token in tokens[1:])]
    logprobs = {"tokens": tokens, "token_logprobs": values, "text_offset": [0] * len(tokens)}
    return Raw({"choices": [{"text": "", "logprobs": logprobs}], "usage": {"prompt_tokens": len(words)}})


def reader_of(endpoint: FakeEndpoint, **options) -> CompletionReader:
    return CompletionReader("m", Endpoint(endpoint.url, tries=1, **options))


def test_a_server_reads_prompts_and_the_token_it_makes_counts_nowhere(endpoint):
    endpoint.answer = listing
    (reading,) = read(reader_of(endpoint), [Text("a", "one two three")])
    assert reading.strings("one two three") == ["one", " two", " three"]
    assert reading.skips_first and reading.log_probabilities[1:].tolist() == [-4.0, -6.0]
    body = endpoint.seen[0].body
    assert (endpoint.seen[0].path[-12:], body["echo"], body["max_tokens"]) == ("/completions", True, 1)


@pytest.mark.parametrize(
    "logprobs", [None, {}, {"tokens": [" made"], "token_logprobs": [-1.0]}, {"tokens": [], "token_logprobs": []}]
)
def test_a_server_that_lists_no_prompt_is_refused_with_a_sentence(endpoint, logprobs):
    endpoint.answer = Raw({"choices": [{"text": "x", "logprobs": logprobs}]})
    with pytest.raises(EndpointError, match="does not list the log-probabilities of a prompt"):
        read(reader_of(endpoint), [Text("a", "one two")])


def test_a_server_that_lists_its_likeliest_tokens_says_them(endpoint):
    def with_likeliest(seen):
        said = listing(seen)
        logprobs = said.body["choices"][0]["logprobs"]
        logprobs["top_logprobs"] = [None, *({" a": -2.0, token: -0.5} for token in logprobs["tokens"][1:])]
        return said

    endpoint.answer = with_likeliest
    texts = [Text("a", "one two")]
    ((_number, reading),) = reader_of(endpoint).each(texts, detail=Detail(top=1))
    assert reading.distributions.top == [(), ((" two", -0.5),)] and np.isnan(reading.distributions.entropy).all()
    assert endpoint.seen[0].body["logprobs"] == 1
    with pytest.raises(PredictorError, match="leave --samples out"):
        list(reader_of(endpoint).each(texts, detail=Detail(top=1, samples=2)))

    def with_a_beginning(seen):
        """A server that puts its own first token before the text, and lists no alternatives to it."""
        said = with_likeliest(seen)
        logprobs = said.body["choices"][0]["logprobs"]
        for name, value in (("tokens", "<s>"), ("token_logprobs", None), ("top_logprobs", None)):
            logprobs[name].insert(0, value)
        return said

    endpoint.answer = with_a_beginning
    ((_number, reading),) = reader_of(endpoint).each(texts, detail=Detail(top=1))
    assert reading.strings("one two") == ["one", " two"]
    assert reading.distributions.top == [(), ((" two", -0.5),)]
    endpoint.answer = listing
    with pytest.raises(EndpointError, match="lists no likeliest tokens"):
        list(reader_of(endpoint).each(texts, detail=Detail(top=1)))


def test_a_server_that_stops_in_the_middle_leaves_whole_readings_and_names_the_text(endpoint):
    endpoint.script = [listing, refusal(500, "out of memory")]
    came = []
    with pytest.raises(EndpointError, match=r"text b: .*out of memory"):
        came.extend(reader_of(endpoint, concurrency=1).each([Text("a", "one two"), Text("b", "three")]))
    assert [number for number, _reading in came] == [0]


@pytest.mark.torch
def test_it_says_how_likely_a_new_word_begins(llama):
    import torch
    from transformers import AutoModelForCausalLM

    from predictors.readings.causal import CausalReader

    texts = [Text("one", "So the answer is no."), Text("two", "the same words")]
    readings = read(CausalReader(str(llama)), texts, detail=Detail(top=3, boundary=True))
    model, tokenizer = AutoModelForCausalLM.from_pretrained(llama), byte_tokenizer()
    # Byte-level tokens write the space before a word as this letter.
    begins = [place for token, place in tokenizer.get_vocab().items() if token.startswith("Ġ")]
    for text, reading in zip(texts, readings, strict=True):
        ids = tokenizer.encode(text.text).ids
        with torch.inference_mode():
            chances = model(torch.tensor([ids])).logits[0].softmax(-1)
        expected = chances[: len(ids) - 1, begins].sum(-1).log().numpy()
        assert reading.distributions.boundary == pytest.approx(expected, abs=1e-4)
        assert len(reading.distributions.boundary) == len(reading.tokens)
    assert read(CausalReader(str(llama)), texts, detail=Detail(top=3))[0].distributions.boundary is None
