"""Networks of words: a text of a known bigram is learnt nearly to its true perplexity; reading; files; errors."""

import math
from itertools import pairwise

import numpy as np
import pytest

from predictors.errors import CheckpointError, PredictorError, Stopped
from predictors.readings import Detail, Text
from predictors.readings.word_vocabularies import END, UNK, WordVocabulary
from predictors.settings import WordNetworkSettings

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.usefixtures("one_thread")]
KINDS = ("lstm", "transformer")
SMALL = {"layers": 1, "units": 16, "batch_size": 8, "context": 16, "epochs": 4, "dropout": 0.0, "learning_rate": 0.02}
WORDS = 9  # and an end


def drawn(count: int, rng: np.random.Generator) -> tuple[list[str], list[str], np.ndarray]:
    """Texts of a bigram that is drawn too (state WORDS begins and ends a text), others, and its chances."""
    chances = rng.dirichlet(np.full(WORDS, 0.3), size=WORDS + 1) * 0.9
    chances = np.column_stack([chances, np.full(WORDS + 1, 0.1)])
    chances[WORDS] = [*chances[WORDS, :WORDS] / 0.9, 0.0]
    texts = []
    for _text in range(count):
        words, state = [], WORDS
        while not words or state != WORDS:
            state = int(rng.choice(WORDS + 1, p=chances[state]))
            words.append(state)
        texts.append(" ".join(f"w{word}" for word in words[:-1]))
    return texts[: count * 4 // 5], texts[count * 4 // 5 :], chances


def nats(texts: list[str], chances: np.ndarray) -> float:
    """A token and END, by the chances of a bigram."""
    values = []
    for text in texts:
        states = [WORDS, *(int(word[1:]) for word in text.split()), WORDS]
        values += [-math.log(chances[before, state]) for before, state in pairwise(states)]
    return float(np.mean(values))


def network(kind: str = "lstm", **changes: object):
    from predictors.readings.word_networks import WordNetworkReader

    texts = ["a b c", "b a", "c b a a", "a b"] * 6
    settings = WordNetworkSettings(kind=kind, **{**SMALL, "units": 4, "epochs": 2, "context": 4, **changes})
    return WordNetworkReader.train(texts, held_out=["a b c", "c b"], settings=settings, device="cpu")


@pytest.mark.learning
@pytest.mark.parametrize("kind", KINDS)
def test_a_text_of_a_known_bigram_is_predicted_nearly_as_well_as_by_the_bigram(kind):
    from predictors.readings.word_networks import WordNetworkReader

    shares = []
    for seed in range(3):
        texts, held_out, chances = drawn(300, np.random.default_rng(seed))
        model = WordNetworkReader.train(
            texts, held_out=held_out, settings=WordNetworkSettings(kind=kind, **SMALL), random_state=seed, device="cpu"
        )
        score = model.score(held_out)
        counts = np.bincount([state for text in texts for state in [*(int(w[1:]) for w in text.split()), WORDS]])
        unigram = nats(held_out, np.tile(counts / counts.sum(), (WORDS + 1, 1)))
        shares.append((unigram - score.nats / score.tokens) / (unigram - nats(held_out, chances)))
        assert model.best_epoch.held_out == pytest.approx(score.perplexity_per_token)
    # Of what knowing the word before is worth, next to knowing how frequent words are.
    assert np.mean(shares) > 0.8 and max(shares) < 1.1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("detail", [Detail(), Detail(top=5, samples=2)])
def test_chances_of_what_can_come_next_add_up_to_1_and_a_text_is_read_alike_in_company(kind, detail):
    model = network(kind)
    texts = [Text("a", "a b a c b a b"), Text("b", "c"), Text("c", ""), Text("d", "a  zzz b\n")]
    alone = [next(model.each([text], detail=detail))[1] for text in texts]
    together = dict(model.each(texts, detail=detail))
    for number, text in enumerate(texts):
        tokens = together[number].tokens
        assert tokens["logprob"] == pytest.approx(alone[number].tokens["logprob"], abs=1e-5)
        assert len(tokens) == len(text.text.split()) + 1 and together[number].reads_end
        assert [piece.strip() for piece in together[number].strings(text.text)] == [*text.text.split(), ""]
    assert [marks.tolist() for marks in model.unknown_tokens(texts)][3] == [False, True, False]
    every = [np.exp(model_text) for model_text in next_words(model, ["a", "b", "c", "zzz"])]
    assert sum(every) == pytest.approx(1, abs=1e-5)
    if detail.is_wanted:
        expected = together[0].distributions
        assert {word for word, _chance in expected.top[0]} == {"a", "b", "c"} and len(expected.samples[0]) == 2
        assert dict(expected.top[0])["a"] == pytest.approx(together[0].tokens["logprob"][0], abs=1e-5)


def next_words(model, words):
    """What each word has as the first of a text, and the end of an empty text."""
    readings = dict(model.each([Text(word, word) for word in [*words, ""]]))
    return [readings[number].tokens["logprob"][0] for number in range(len(words) + 1)]


def test_no_place_sees_what_comes_after_it_or_the_text_before_it():
    import torch

    for kind in KINDS:
        model = network(kind)
        row = torch.tensor([[END, 2, 3, END, 2]])
        other = torch.tensor([[END, 3, 2, END, 2]])
        with torch.inference_mode():
            said, changed, early = (model.network(words)[0] for words in (row, other, row[:, :2]))
        assert torch.allclose(said[:, :2], early, atol=1e-6)
        assert torch.allclose(said[:, 3:], changed[:, 3:], atol=1e-6)
        assert torch.allclose(said[:, 3:], said[:, :2], atol=1e-6)


def test_a_part_of_a_row_gives_an_lstm_the_state_of_its_last_text_alone():
    import torch

    network_of_words = network("lstm", layers=2).network
    rows = torch.tensor([[2, 3, END, 2, 3, 2], [2, 4, 2, 2, 3, 4], [2, END, END, 4, 2, END], [END, 2, 3, END, 4, 2]])
    with torch.inference_mode():
        _hidden, before = network_of_words(rows[:, 3:].clone().fill_(2))  # What the rows before left.
        hidden, (outputs, memory) = network_of_words(rows, before)
        for row, words in enumerate(rows):
            state = tuple(part[:, row : row + 1].contiguous() for part in before)
            for place, word in enumerate(words):  # Word by word, so that no text begins inside a part.
                if word == END:
                    state = None
                said, state = network_of_words(word.view(1, 1), state)
                assert torch.allclose(hidden[row, place], said[0, 0], atol=1e-6)
            assert torch.allclose(outputs[:, row], state[0][:, 0], atol=1e-6)
            assert torch.allclose(memory[:, row], state[1][:, 0], atol=1e-6)


def test_the_same_seed_gives_the_same_network_and_files_give_it_back(tmp_path):
    from predictors.readings.word_networks import WordNetworkReader

    for kind, tied in (("lstm", True), ("transformer", False)):
        model, folder = network(kind, tied=tied), tmp_path / kind
        folder.mkdir()
        model.save(folder)
        assert model.source == network(kind, tied=tied).source == WordNetworkReader.load(folder).source
        assert WordVocabulary.load(folder).words == ["<unk>", "END", "a", "b", "c"]
        (folder / "weights.safetensors").write_bytes(b"x")
        with pytest.raises(CheckpointError, match="train it again"):
            WordNetworkReader.load(folder)


def test_words_that_are_too_rare_are_one_class():
    vocabulary = WordVocabulary.of_texts(["b a END", "a b <unk> <unk> c"], WordNetworkSettings())
    assert vocabulary.words == ["<unk>", "END", "a", "b"]
    assert vocabulary.numbers("a <unk> c END").tolist() == [END, 2, UNK, UNK, UNK, END]


def test_training_ends_when_the_held_out_part_is_not_predicted_better():
    model = network(epochs=40, patience=2)
    epochs = model.epochs
    best = min(range(len(epochs)), key=lambda place: epochs[place].held_out)
    assert len(epochs) == best + 3 < 40
    assert model.score(["a b c", "c b"]).perplexity_per_token == pytest.approx(epochs[best].held_out)
    assert [epoch.rate for epoch in epochs[best:]] == pytest.approx([epochs[best].rate] * 2 + [epochs[best].rate / 2])


def test_rows_go_on_where_the_one_before_ends_and_begin_elsewhere_in_each_epoch():
    import torch

    from predictors.readings.word_networks import _rows

    settings, rng = WordNetworkSettings(batch_size=4, context=10), np.random.default_rng(0)
    epochs = [_rows(torch.arange(403), settings, rng) for _epoch in range(9)]
    assert all(rows[:-1, -1].tolist() == rows[1:, 0].tolist() for rows in epochs)
    assert {len(rows) for rows in epochs} == {4} and min(rows.shape[1] for rows in epochs) > 97
    begins = {int(rows[0, 0]) for rows in epochs}
    assert len(begins) > 3 and max(begins) <= 10
    assert _rows(torch.arange(5), settings, rng).tolist() == [[0, 1, 2, 3, 4]]


def test_who_stops_it_keeps_the_best_epoch():
    from predictors.readings.word_networks import WordNetworkReader

    def trained(stop_after: int):
        return WordNetworkReader.train(
            ["a b"] * 20,
            held_out=["a b"],
            settings=WordNetworkSettings(**{**SMALL, "epochs": 9}),
            device="cpu",
            progress=lambda done, total, text: f"epoch {stop_after}" not in text,
        )

    assert (trained(2).was_stopped, len(trained(2).epochs)) == (True, 1)
    with pytest.raises(Stopped):
        trained(1)


@pytest.mark.parametrize(
    ("texts", "held_out", "changes", "message"),
    [
        (["", " "], ["a"], {}, "hold 0 different words"),
        (["a a a"], ["a"], {}, "hold 1 different words"),
        (["a b a b"], ["  "], {}, "held_out: holds no word"),
        (["a b a b"], ["a"], {"units": 10**6}, "units: 1000000 with 4 words"),
        (["a b a b"], ["a"], {"learning_rate": 1e30, "max_grad_norm": 1e30, "optimizer": "sgd"}, "learning_rate"),
    ],
)
def test_what_cannot_be_learnt_is_refused(texts, held_out, changes, message):
    from predictors.readings.word_networks import WordNetworkReader

    settings = WordNetworkSettings(**{**SMALL, "learning_rate": None, **changes})
    with pytest.raises(PredictorError, match=message):
        WordNetworkReader.train(texts, held_out=held_out, settings=settings, device="cpu")


@pytest.mark.parametrize("changes", [{"units": 0}, {"layers": 0}, {"kind": "gru"}, {"dropout": 1.0}, {"context": 1}])
def test_settings_out_of_range_name_their_field(changes):
    with pytest.raises(PredictorError, match=next(iter(changes))):
        WordNetworkSettings(**changes)
    with pytest.raises(PredictorError, match="units: 5 cannot be shared among 2 heads"):
        WordNetworkSettings(kind="transformer", units=5)
