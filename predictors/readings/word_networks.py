"""Language models of words that are trained here: LSTMs and transformers of a size that one chooses. Needs torch.

Training goes through the texts as one stream, cut into rows that are learnt from side by side. A text begins after an
END and knows nothing of the text before it: attention does not reach beyond END, and an LSTM begins anew there. So
texts are read as they were learnt.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from predictors.errors import CheckpointError, PredictorError, Stopped
from predictors.evaluation.scoring import TextScore, added
from predictors.networks.encoder import device_of
from predictors.pairs import Progress, report
from predictors.settings import WordNetworkSettings

from .causal import Expected
from .ngrams import units_of
from .text_reading import NO_DETAIL, Detail, Text, TextReading, make_tokens, without_gaps
from .windows import Window, windows_of
from .word_vocabularies import END, UNK, WordVocabulary

Ints = NDArray[np.int64]

MOST_WEIGHTS = 2**29  # Two gigabytes, and with what Adam keeps of each eight.
_WEIGHTS = "weights.safetensors"
_SGD_RATES = {"lstm": 20.0, "transformer": 1.0}
_AT_ONCE = 4096  # Words of a batch that is read.
_STEPS = 512  # Words that an LSTM reads before its output is asked for.
_ROWS = 512  # Places whose words are given a probability at once.
State = tuple[torch.Tensor, torch.Tensor] | None


class Epoch(NamedTuple):
    """How far training is. train: perplexity a word and END while it learnt, dropout included; words: learnt from, of
    this epoch; rate: the learning rate that it had."""

    number: int
    train: float
    held_out: float
    rate: float
    words: int
    seconds: float


class _Lstm(nn.Module):
    def __init__(self, settings: WordNetworkSettings) -> None:
        super().__init__()
        between = settings.dropout if settings.layers > 1 else 0.0
        self.cells = nn.LSTM(settings.units, settings.units, settings.layers, batch_first=True, dropout=between)

    def forward(self, inputs: torch.Tensor, words: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        begins = words == END
        if state is not None:
            goes_on = (~begins[:, 0]).to(inputs.dtype)[None, :, None]
            state = (state[0] * goes_on, state[1] * goes_on)
        if begins[:, 1:].any():
            return self._each_text(inputs, begins, state)
        outputs, state = self.cells(inputs, state)
        return outputs, state

    def _each_text(self, inputs: torch.Tensor, begins: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        """Rows in which texts begin (rows, length), each text by itself; the first of a row goes on from its state."""
        begins[:, 0] = True
        starts = begins.flatten().nonzero()[:, 0]
        lengths = torch.diff(starts, append=starts.new_tensor([begins.numel()]))
        texts = inputs.flatten(0, 1).split(lengths.tolist())
        after = begins.sum(dim=1).cumsum(dim=0)  # The number of the first text after each row.
        before = None
        if state is not None:
            empty = inputs.new_zeros(self.cells.num_layers, len(texts), self.cells.hidden_size)
            first = after - begins.sum(dim=1)
            before = (empty.index_copy(1, first, state[0]), empty.index_copy(1, first, state[1]))
        packed, (outputs, memory) = self.cells(pack_sequence(texts, enforce_sorted=False), before)
        hidden = torch.cat(unpack_sequence(packed)).view_as(inputs)
        return hidden, (outputs[:, after - 1], memory[:, after - 1])


class _Block(nn.Module):
    def __init__(self, units: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.before_attention, self.before_layer = nn.LayerNorm(units), nn.LayerNorm(units)
        self.parts, self.joined = nn.Linear(units, 3 * units), nn.Linear(units, units)
        self.wide, self.narrow = nn.Linear(units, 4 * units), nn.Linear(4 * units, units)

    def forward(self, hidden: torch.Tensor, sees: torch.Tensor) -> torch.Tensor:
        rows, length, units = hidden.shape
        by_head = self.parts(self.before_attention(hidden)).view(rows, length, 3, self.heads, units // self.heads)
        query, key, value = by_head.permute(2, 0, 3, 1, 4)
        context = functional.scaled_dot_product_attention(query, key, value, attn_mask=sees)
        attended = self.joined(context.transpose(1, 2).reshape(rows, length, units))
        hidden = hidden + functional.dropout(attended, self.dropout, self.training)
        widened = self.narrow(functional.gelu(self.wide(self.before_layer(hidden))))
        return hidden + functional.dropout(widened, self.dropout, self.training)


class _Transformer(nn.Module):
    def __init__(self, settings: WordNetworkSettings) -> None:
        super().__init__()
        self.place = nn.Embedding(settings.context, settings.units)
        nn.init.normal_(self.place.weight, std=0.1)
        self.blocks = nn.ModuleList(
            _Block(settings.units, settings.heads, settings.dropout) for _layer in range(settings.layers)
        )
        self.last = nn.LayerNorm(settings.units)

    def forward(self, inputs: torch.Tensor, words: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        places = torch.arange(words.shape[1], device=words.device)
        begins = torch.where(words == END, places, 0).cummax(dim=1).values  # Where the text of each place begins.
        sees = (begins[:, :, None] == begins[:, None, :]) & (places[:, None] >= places[None, :])
        hidden = inputs + self.place(places - begins)
        for block in self.blocks:
            hidden = block(hidden, sees[:, None])
        return self.last(hidden), None


class _Network(nn.Module):
    """Word numbers (rows, length) to hidden states, and these to log-probabilities of the next word."""

    def __init__(self, size: int, settings: WordNetworkSettings) -> None:
        super().__init__()
        self.scale, self.dropout = math.sqrt(settings.units), settings.dropout
        self.vectors = nn.Embedding(size, settings.units)
        nn.init.normal_(self.vectors.weight, std=1 / self.scale)
        self.body: nn.Module = _Lstm(settings) if settings.kind == "lstm" else _Transformer(settings)
        self.output = nn.Linear(settings.units, size)
        nn.init.zeros_(self.output.bias)
        if settings.tied:
            self.output.weight = self.vectors.weight

    def forward(self, words: torch.Tensor, state: State = None) -> tuple[torch.Tensor, State]:
        inputs = functional.dropout(self.vectors(words) * self.scale, self.dropout, self.training)
        hidden, state = self.body(inputs, words, state)
        return functional.dropout(hidden, self.dropout, self.training), state

    def log_probabilities(self, hidden: torch.Tensor) -> torch.Tensor:
        return functional.log_softmax(self.output(hidden).float(), dim=-1)


class WordNetworkReader:
    """A trained network. As a reader it gives each word of a text and its END a probability. After training, `epochs`
    say how it went, `was_stopped` whether it was stopped, `has_met_unknown` whether a word was rare enough for <unk>.

    Args:
        device: "auto" (a GPU where there is one), "cpu", "cuda", "cuda:1", ...
    """

    cutter = ""  # Words have no ids that others share.

    def __init__(self, vocabulary: WordVocabulary, *, device: str = "auto") -> None:
        settings = vocabulary.settings
        self.vocabulary, self.settings = vocabulary, settings
        self.device = device_of(device)
        self._check_size(len(vocabulary), settings)
        self.network = _Network(len(vocabulary), settings)
        self.epochs: list[Epoch] = []
        self.was_stopped, self.has_met_unknown = False, True

    @staticmethod
    def _check_size(words: int, settings: WordNetworkSettings) -> None:
        own = (8 if settings.kind == "lstm" else 12) * settings.layers * settings.units**2
        weights = own + words * settings.units * (1 if settings.tied else 2)
        if weights > MOST_WEIGHTS:
            raise PredictorError(
                f"units: {settings.units} with {words:,} words and {settings.layers} layers are {weights:,} weights, "
                f"and {MOST_WEIGHTS:,} fit; give fewer units or layers, or a larger min_count."
            )

    # Learning

    @property
    def best_epoch(self) -> Epoch:
        """The one whose weights it has. There is none before it has learnt."""
        return min(self.epochs, key=lambda epoch: epoch.held_out)

    @classmethod
    def train(
        cls,
        texts: Sequence[str],
        *,
        held_out: Sequence[str],
        settings: WordNetworkSettings,
        random_state: int = 0,
        device: str = "auto",
        after_epoch: Callable[[Epoch], object] | None = None,
        progress: Progress | None = None,
    ) -> WordNetworkReader:
        """Learn from n texts until other texts, `held_out`, are not predicted better any more.

        Args:
            progress: counts batches. Where it returns False after an epoch has ended, training ends with the best
                epoch, and `was_stopped` says so.

        Raises:
            PredictorError: there is too little text, a setting does not fit, or what is learnt is no number any more.
            Stopped: `progress` returned False before any epoch had ended.
        """
        if not any(text.strip() for text in held_out):
            raise PredictorError("held_out: holds no word, and without one nobody knows when to stop; give some text.")
        vocabulary = WordVocabulary.of_texts(texts, settings)
        with torch.random.fork_rng():
            torch.manual_seed(random_state)
            model = cls(vocabulary, device=device)
            model.network.to(model.device)
            stream = np.concatenate([*(vocabulary.numbers(text)[:-1] for text in texts), [END]])
            model.has_met_unknown = bool((stream == UNK).any())
            model._learn(torch.from_numpy(stream), held_out, random_state, after_epoch, progress)
        model.network.eval()
        return model

    def _learn(
        self,
        stream: torch.Tensor,
        held_out: Sequence[str],
        random_state: int,
        after_epoch: Callable[[Epoch], object] | None,
        progress: Progress | None,
    ) -> None:
        settings, rng = self.settings, np.random.default_rng(random_state)
        rate = settings.learning_rate or (0.002 if settings.optimizer == "adam" else _SGD_RATES[settings.kind])
        kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.SGD
        optimizer = kind(self.network.parameters(), lr=rate)
        best, best_weights, without = math.inf, copy.deepcopy(self.network.state_dict()), 0
        for number in range(1, settings.epochs + 1):
            began = time.monotonic()
            try:
                train, words = self._learn_once(_rows(stream, settings, rng), optimizer, number, best, progress)
            except Stopped:
                if number == 1:
                    raise
                self.was_stopped = True
                break
            perplexity = self.score(held_out).perplexity_per_token or math.inf
            if not math.isfinite(train):
                raise PredictorError(
                    f"learning_rate: {rate:g} is too high for this network: what it learns is no number any more; give "
                    "a smaller one."
                )
            self.epochs.append(Epoch(number, train, perplexity, rate, words, time.monotonic() - began))
            if after_epoch is not None:
                after_epoch(self.epochs[-1])
            if perplexity < best:
                best, best_weights, without = perplexity, copy.deepcopy(self.network.state_dict()), 0
                continue
            without += 1
            if without >= settings.patience:
                break
            rate /= 2
            for group in optimizer.param_groups:
                group["lr"] = rate
        self.network.load_state_dict(best_weights)

    def _learn_once(
        self,
        rows: torch.Tensor,
        optimizer: torch.optim.Optimizer,
        number: int,
        best: float,
        progress: Progress | None,
    ) -> tuple[float, int]:
        """One pass through the stream in rows (batch_size, n): perplexity on the way, and words learnt from."""
        settings, length = self.settings, rows.shape[1] - 1
        parts = range(0, length, settings.context)
        total, words = 0.0, 0
        state: State = None
        self.network.train()
        said = f"epoch {number}" + (f", held-out perplexity {best:.1f}" if math.isfinite(best) else "")
        for place, start in enumerate(parts):
            stop = min(start + settings.context, length)
            inputs = rows[:, start:stop].to(self.device)
            wanted = rows[:, start + 1 : stop + 1].to(self.device)
            if state is not None:
                state = (state[0].detach(), state[1].detach())
            hidden, state = self.network(inputs, state)
            loss = functional.cross_entropy(self.network.output(hidden).flatten(0, 1).float(), wanted.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.network.parameters(), settings.max_grad_norm)
            optimizer.step()
            total += float(loss.detach()) * wanted.numel()
            words += wanted.numel()
            report(progress, (number - 1) * len(parts) + place + 1, settings.epochs * len(parts), said)
        mean = total / words
        return math.exp(mean) if mean < 700 else math.inf, words

    # Reading

    @property
    def tokenizer(self) -> str:
        """SHA-256 of what cuts a text."""
        return self.vocabulary.sha256

    @property
    def vocabulary_size(self) -> int:
        """What can come next, with <unk> and END."""
        return len(self.vocabulary)

    @property
    def parameters(self) -> int:
        """Numbers that were learnt."""
        return sum(weights.numel() for weights in self.network.parameters())

    @property
    def source(self) -> str:
        """SHA-256 of all that its readings depend on."""
        digest = hashlib.sha256(json.dumps(self.vocabulary.facts(), sort_keys=True).encode())
        for name, weights in sorted(self._weights().items()):
            digest.update(name.encode() + weights.numpy().tobytes())
        return digest.hexdigest()

    def unknown_tokens(self, texts: Sequence[Text]) -> list[NDArray[np.bool_]]:
        """As in `TextReader`: words that training lacked, or had too seldom."""
        return self.vocabulary.unknown_tokens(texts)

    def score(self, texts: Sequence[str]) -> TextScore:
        """What texts cost, END counted as a token of each."""
        numbered = [Text(str(number), text) for number, text in enumerate(texts)]
        return added([reading.score(texts[number], with_end=True) for number, reading in self.each(numbered)])

    def each(
        self, texts: Sequence[Text], *, detail: Detail = NO_DETAIL, progress: Progress | None = None
    ) -> Iterator[tuple[int, TextReading]]:
        """As in `TextReader`; the last token of each text is its END. <unk> and END are never among the likeliest or
        the drawn ones."""
        if detail.boundary:
            raise PredictorError("boundary: a network of words does not say where a word begins; leave it out.")
        if detail.is_wanted:
            among = np.arange(END + 1, len(self.vocabulary)) if detail.among is None else detail.among
            detail = replace(detail, among=among, top=min(detail.top, len(among)))
        self.network.to(self.device).eval()
        rng = torch.Generator().manual_seed(detail.seed)
        numbers = [self.vocabulary.numbers(text.text) for text in texts]
        values = [np.full(len(sequence), np.nan) for sequence in numbers]
        expected = [Expected(len(sequence)) if detail.is_wanted else None for sequence in numbers]
        pieces = sorted(
            ((text, window) for text, sequence in enumerate(numbers) for window in self._windows(len(sequence))),
            key=lambda piece: piece[1].stop - piece[1].start,
        )
        waiting = np.bincount([text for text, _window in pieces], minlength=len(texts))
        done = 0
        while pieces:
            longest = pieces[-1][1].stop - pieces[-1][1].start
            batch = pieces[-max(1, _AT_ONCE // longest) :]
            del pieces[-len(batch) :]
            self._read(batch, numbers, values, expected, detail, rng)
            for text, _window in batch:
                waiting[text] -= 1
                if not waiting[text]:
                    yield text, self._reading(texts[text].text, values[text], expected[text])
                    done += 1
                    report(progress, done, len(texts), "texts read")

    def _windows(self, length: int) -> list[Window]:
        # The last place of a window is predicted and not read.
        return [Window(0, length, 1)] if self.settings.kind == "lstm" else windows_of(length, self.settings.context + 1)

    def _read(
        self,
        batch: Sequence[tuple[int, Window]],
        numbers: Sequence[Ints],
        values: Sequence[NDArray[np.float64]],
        expected: Sequence[Expected | None],
        detail: Detail,
        rng: torch.Generator,
    ) -> None:
        """Write down what each place of these windows that counts was given."""
        width = max(window.stop - window.start for _text, window in batch) - 1
        inputs = np.full((len(batch), width), END + 1, dtype=np.int64)
        for row, (text, window) in enumerate(batch):
            inputs[row, : window.stop - window.start - 1] = numbers[text][window.start : window.stop - 1]
        steps = _STEPS if self.settings.kind == "lstm" else width
        state: State = None
        with torch.inference_mode():
            for first in range(0, width, steps):
                part = torch.from_numpy(inputs[:, first : first + steps]).to(self.device)
                hidden, state = self.network(part, state)
                for row, (text, window) in enumerate(batch):
                    # At place p the word p + 1 of the text is expected.
                    begin = max(window.first, window.start + first + 1)
                    end = min(window.stop, window.start + first + len(part[0]) + 1)
                    for place in range(begin, end, _ROWS):
                        stop = min(place + _ROWS, end)
                        offset = window.start + first + 1
                        said = self.network.log_probabilities(hidden[row, place - offset : stop - offset])
                        came = torch.from_numpy(numbers[text][place:stop, None]).to(self.device)
                        values[text][place:stop] = said.gather(1, came)[:, 0].double().cpu().numpy()
                        if (noted := expected[text]) is not None:
                            noted.note(place, said, detail, rng, self.vocabulary.words.__getitem__)

    def _reading(self, text: str, values: NDArray[np.float64], expected: Expected | None) -> TextReading:
        _words, starts, ends = units_of(text, "word")
        starts, ends = without_gaps(starts, ends, len(text))
        tokens = make_tokens(np.append(starts, len(text)), np.append(ends, len(text)), np.minimum(values[1:], 0.0))
        distributions = None if expected is None else expected.from_place(1)
        return TextReading(tokens, self.tokenizer, reads_end=True, distributions=distributions)

    # Files

    def _weights(self) -> dict[str, torch.Tensor]:
        """What was learnt by name, on the processor; tied tables once."""
        weights = {name: value.detach().cpu().contiguous() for name, value in self.network.state_dict().items()}
        if self.settings.tied:
            del weights["output.weight"]
        return weights

    def save(self, folder: Path) -> None:
        """Write the network into an existing folder: JSON and safetensors, never pickled."""
        self.vocabulary.save(folder)
        save_file(self._weights(), folder / _WEIGHTS)

    @classmethod
    def load(cls, folder: Path) -> WordNetworkReader:
        """Read back what `save` wrote, onto a GPU where there is one.

        Raises:
            CheckpointError: a file is missing or damaged, or was written by another version.
        """
        model = cls(WordVocabulary.load(folder))
        try:
            weights: dict[str, Any] = load_file(folder / _WEIGHTS)
            if model.settings.tied:
                weights["output.weight"] = weights["vectors.weight"]
            model.network.load_state_dict(weights)
        except (OSError, SafetensorError, RuntimeError, KeyError) as exc:
            raise CheckpointError(f"language model: its files cannot be read ({exc}); train it again.") from exc
        model.network.eval()
        return model


def _rows(stream: torch.Tensor, settings: WordNetworkSettings, rng: np.random.Generator) -> torch.Tensor:
    """The stream in rows of equal length, from another place on in each epoch, so that other words begin the parts."""
    rows = max(1, min(settings.batch_size, (len(stream) - 1) // settings.context))
    spare = max(0, (len(stream) - 1 - rows) // rows)
    skipped = int(rng.integers(0, min(settings.context, spare) + 1)) if spare > settings.context else 0
    length = (len(stream) - 1 - skipped) // rows
    return stream[skipped : skipped + rows * length + 1].unfold(0, length + 1, length)
