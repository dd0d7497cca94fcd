"""Texts read by a Hugging Face causal language model in this process. Needs torch and transformers.

Texts are cut into tokens once, sorted by length and read in batches of nearly equal length, so that hardly a place of a
batch is empty. Batches are filled on the right, where a causal model cannot see it from the text: no mask is needed,
and the fast attention is used. The head over the vocabulary, most of the work of a small model, gets only places that
count, packed together, in one block of memory that is used again.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from predictors.artifacts import checkpoint_digest, file_digest
from predictors.errors import CheckpointError, PredictorError
from predictors.networks.checkpoints import locate, read_config
from predictors.networks.encoder import device_of, tokens_at_once
from predictors.pairs import Progress, report

from .text_reading import NO_DETAIL, Detail, Distributions, Text, TextReading, make_tokens, without_gaps
from .tokenizing import as_read, fingerprint
from .windows import Window, windows_of

LONGEST = 4096
"""Tokens of a window where the model names no length of its own, or a longer one."""
TEXTS_AT_ONCE = 4096
"""Texts whose tokens are in memory, and sorted by length, at one time."""
_TOKENISED_AT_ONCE = 256
_ON_CPU, _ON_GPU = 1024, 16384
# Numbers that the head computes at once. On a processor 16 MiB of float32, which mostly stay in its cache while they
# are read again, and places enough to multiply matrices well.
_LOGITS_ON_CPU, _LOGITS_ON_GPU = 2**22, 2**28
_MIN_PLACES = 128
_ROUNDING = 1e-5  # Of the largest logit: less is rounding, more is another text.
# How tokenizers write the space before a word: as bytes of GPT-2, as SentencePiece, as it is.
_SPACES = ("Ġ", "▁", " ")


class _Cut(NamedTuple):
    """A text cut into tokens: the sequence with the begin-of-text token, if there is one, and the tokens' places."""

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


class _Piece(NamedTuple):
    """A window of the text with this number."""

    text: int
    window: Window

    @property
    def length(self) -> int:
        return self.window.stop - self.window.start


class CausalReader:
    """A causal language model on disk.

    checkpoint: a local folder with a model or with one GGUF file, or a Hugging Face id where the hub can be reached.
    device: "auto" is a GPU where there is one. longest: tokens of a window; without it the model's own length.
    token_budget: tokens of a batch. Numbers are computed in float32 everywhere, so that a GPU and a CPU agree.

    Raises:
        CheckpointError: it cannot be read, is no causal model, has no tokenizer with places of characters, or the hub
            cannot be reached. PredictorError: a number out of range.
    """

    def __init__(
        self,
        checkpoint: str,
        *,
        device: str = "auto",
        longest: int | None = None,
        token_budget: int | None = None,
    ) -> None:
        folder = locate(checkpoint)
        gguf = _gguf_file(checkpoint, folder)
        self.device = device_of(device)
        tokenizer, self._model = _loaded(checkpoint, folder, gguf)
        self._model = self._model.to(self.device).eval()
        self._tokenizer = as_read(tokenizer.backend_tokenizer)
        self._known = int(self._model.get_input_embeddings().weight.shape[0])
        self._begin = _begin_of_text(tokenizer, known=self._known)
        self.tokenizer = fingerprint(self._tokenizer)
        own = int(getattr(self._model.config, "max_position_embeddings", None) or LONGEST)
        # Some models write -1 where they have no limit.
        self.longest = min(longest or LONGEST, own if own > 0 else LONGEST, LONGEST)
        if self.longest < 2:
            raise PredictorError(f"longest: {longest!r} is not 2 or more.")
        weights = file_digest(folder / gguf) if gguf else checkpoint_digest(folder)
        facts = f"{weights} {self.tokenizer} {self._begin} {self.longest}"
        self.source = hashlib.sha256(facts.encode()).hexdigest()
        self._check_that_it_reads_forwards(checkpoint)
        self._budget = tokens_at_once(token_budget, self.device, on_cpu=_ON_CPU, on_gpu=_ON_GPU)
        self._head = _Head.of(self._model, self.device)
        self._unknown = tokenizer.unk_token_id
        self._ends = [tokenizer.eos_token_id] if tokenizer.eos_token_id is not None else []
        self._beginnings: torch.Tensor | None = None

    def _check_that_it_reads_forwards(self, checkpoint: str) -> None:
        """Refuse a model for which a later token changes what it expects earlier, whatever it calls itself.

        Raises:
            CheckpointError: it reads with both sides of a place in sight.
        """
        length = min(8, self._known, self.longest)
        tokens = torch.arange(length, device=self.device)[None]
        changed = tokens.clone()
        changed[0, length // 2 :] = changed[0, length // 2 :].flip(0)
        changed[0, -1] = 0
        with torch.inference_mode():
            before, after = (
                self._model(input_ids=sequence, use_cache=False).logits[0, : length // 2].float()
                for sequence in (tokens, changed)
            )
        if float((before - after).abs().max()) > _ROUNDING * float(before.abs().max()):
            raise CheckpointError(
                f"model: {checkpoint} looks ahead: another word at the end of a text changes what it expects at the "
                "beginning, so that it reads words that it should predict. Name a model that reads forwards, such as a "
                "GPT-2 or a Llama."
            )

    @property
    def cutter(self) -> str:
        """SHA-256 of what cuts a text, by which ids of tokens are compared."""
        return self.tokenizer

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return int(self._tokenizer.get_vocab_size())

    @property
    def vocabulary_size(self) -> int:
        """How many tokens the model gives a probability to."""
        return int(self._model.config.get_text_config().vocab_size)

    def unknown_tokens(self, texts: Sequence[Text]) -> list[NDArray[np.bool_]]:
        """As in `TextReader`: the tokenizer's own token for what it has no other for."""
        skipped = 0 if self._begin is None else 1
        return [cut.ids[skipped:] == self._unknown for cut in self._cut([text.text for text in texts])]

    def each(
        self, texts: Sequence[Text], *, detail: Detail = NO_DETAIL, progress: Progress | None = None
    ) -> Iterator[tuple[int, TextReading]]:
        """As in `TextReader`. Without a begin-of-text token the first token of a text is not read, and is NaN."""
        done = 0
        rng = torch.Generator().manual_seed(detail.seed)
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            for number, reading in self._block(texts[start : start + TEXTS_AT_ONCE], detail, rng):
                yield start + number, reading
                done += 1
                report(progress, done, len(texts), "texts read")

    def _block(self, texts: Sequence[Text], detail: Detail, rng: torch.Generator) -> Iterator[tuple[int, TextReading]]:
        cuts = self._cut([text.text for text in texts])
        pieces = [
            _Piece(number, window)
            for number, cut in enumerate(cuts)
            for window in windows_of(len(cut.ids), self.longest)
        ]
        waiting = np.bincount([piece.text for piece in pieces], minlength=len(cuts))
        known = [np.full(len(cut.ids), np.nan) for cut in cuts]
        beginnings = self._word_beginnings() if detail.boundary else None
        expected = [Expected(len(cut.ids), beginnings) if detail.is_wanted else None for cut in cuts]
        for number in np.flatnonzero(waiting == 0).tolist():  # Of one token, which nothing stands before; or of none.
            yield number, self._reading(cuts[number], texts[number].text, known[number], expected[number])
        pieces.sort(key=lambda piece: -piece.length)
        first = 0
        while first < len(pieces):
            count = max(1, self._budget // pieces[first].length)
            batch = pieces[first : first + count]
            first += count
            self._read(batch, cuts, known, expected, detail, rng)
            for piece in batch:
                waiting[piece.text] -= 1
                if not waiting[piece.text]:
                    number = piece.text
                    yield number, self._reading(cuts[number], texts[number].text, known[number], expected[number])

    def _cut(self, texts: Sequence[str]) -> list[_Cut]:
        cuts: list[_Cut] = []
        for start in range(0, len(texts), _TOKENISED_AT_ONCE):
            part = texts[start : start + _TOKENISED_AT_ONCE]
            for text, encoding in zip(
                part, self._tokenizer.encode_batch(list(part), add_special_tokens=False), strict=True
            ):
                if encoding.ids and max(encoding.ids) >= self._known:
                    raise PredictorError(
                        f"model: its tokenizer made token {max(encoding.ids)} of a text, and the model knows "
                        f"{self._known}: tokenizer.json is of another version; take the one that came with the weights."
                    )
                places = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
                starts, ends = without_gaps(places[:, 0], places[:, 1], len(text))
                begin = [] if self._begin is None else [self._begin]
                cuts.append(_Cut(np.array([*begin, *encoding.ids], dtype=np.int64), starts, ends))
        return cuts

    def _read(
        self,
        batch: Sequence[_Piece],
        cuts: Sequence[_Cut],
        known: Sequence[NDArray[np.float64]],
        expected: Sequence[Expected | None],
        detail: Detail,
        rng: torch.Generator,
    ) -> None:
        """One pass through the model: write what each place of the batch that counts was given."""
        width = batch[0].length
        ids = np.empty((len(batch), width), dtype=np.int64)
        for row, piece in enumerate(batch):
            part = cuts[piece.text].ids[piece.window.start : piece.window.stop]
            ids[row, : len(part)] = part
            ids[row, len(part) :] = part[-1]  # Any token: no place before it sees it.
        lengths = [piece.window.stop - piece.window.first for piece in batch]
        # The place before a token is where the model says what it expects.
        places = np.concatenate(
            [
                row * width + np.arange(piece.window.first - piece.window.start - 1, piece.length - 1)
                for row, piece in enumerate(batch)
            ]
        )
        inputs = torch.from_numpy(ids).to(self.device)
        wanted = torch.from_numpy(places).to(self.device)
        with torch.inference_mode():
            states = self._head.states(inputs).flatten(0, 1)[wanted]
            tokens = inputs.flatten()[wanted + 1]
            values = self._head.log_probabilities(states, tokens).double().cpu().numpy()
            ends = np.cumsum(lengths)
            for piece, end, length in zip(batch, ends.tolist(), lengths, strict=True):
                inside = slice(end - length, end)
                # Rounding puts some a hair above 0.
                known[piece.text][piece.window.first : piece.window.stop] = np.minimum(values[inside], 0.0)
                if (noted := expected[piece.text]) is not None:
                    noted.note(piece.window.first, self._head.distribution(states[inside]), detail, rng, self._string)

    def _word_beginnings(self) -> torch.Tensor | None:
        """The tokens that begin a word or end a text; None where no token carries the space before it."""
        if self._beginnings is None:
            size = int(self._model.config.get_text_config().vocab_size)
            beginnings = [
                place for token, place in self._tokenizer.get_vocab().items() if token[:1] in _SPACES and place < size
            ]
            ends = [token for token in self._ends if 0 <= token < size]
            self._beginnings = torch.tensor(sorted({*beginnings, *ends}) if beginnings else [], dtype=torch.long)
        return self._beginnings.to(self.device) if len(self._beginnings) else None

    def _string(self, token: int) -> str:
        return str(self._tokenizer.decode([token], skip_special_tokens=False))

    def _reading(self, cut: _Cut, text: str, known: NDArray[np.float64], expected: Expected | None) -> TextReading:
        skipped = 0 if self._begin is None else 1
        values = known[skipped:]
        if not np.isfinite(values[1 if self._begin is None else 0 :]).all():
            raise PredictorError(
                f"model: gave no finite log-probability somewhere in the text that begins {text[:40]!r}; "
                "its weights may be damaged."
            )
        return TextReading(
            make_tokens(cut.starts, cut.ends, values),
            self.tokenizer,
            distributions=None if expected is None else expected.from_place(skipped),
        )


class _Head:
    """The step from a model's last states to the next token's log-probabilities.

    Where the model's logits are its head applied to its last states, the head is applied here, to the places that count
    alone. A model that does more (scales or bends its logits, say) is asked for its logits as they are.
    """

    def __init__(
        self, model: Any, device: torch.device, weight: torch.Tensor | None, bias: torch.Tensor | None
    ) -> None:
        self._model = model
        self._weight, self._bias = weight, bias
        numbers = _LOGITS_ON_CPU if device.type == "cpu" else _LOGITS_ON_GPU
        self._rows = max(_MIN_PLACES, numbers // int(model.config.get_text_config().vocab_size))
        self._block: torch.Tensor | None = None

    @classmethod
    def of(cls, model: Any, device: torch.device) -> _Head:
        """The way that gives this model's own logits: tried out on a few tokens."""
        plain = cls(model, device, None, None)
        layer = model.get_output_embeddings()
        if type(layer) is not torch.nn.Linear or not hasattr(model, "base_model"):
            return plain
        apart = cls(model, device, layer.weight, layer.bias)
        tried = torch.arange(min(8, layer.weight.shape[0]), device=device)[None]
        with torch.inference_mode():
            wanted = plain.states(tried)
            try:
                states = apart.states(tried)
                logits = torch.nn.functional.linear(states, layer.weight, layer.bias)
            except (AttributeError, RuntimeError, TypeError):
                return plain
            return apart if wanted.shape == logits.shape and torch.equal(wanted, logits) else plain

    def states(self, inputs: torch.Tensor) -> torch.Tensor:
        """What `log_probabilities` needs of each place (rows, width, k): its last state, or its logits."""
        if self._weight is None:
            logits: torch.Tensor = self._model(input_ids=inputs, use_cache=False).logits.float()
            return logits
        states: torch.Tensor = self._model.base_model(input_ids=inputs, use_cache=False).last_hidden_state
        return states

    def log_probabilities(self, states: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Of one token (n,) at each of n places (n, k)."""
        parts = []
        for first in range(0, len(states), self._rows):
            part = states[first : first + self._rows]
            logits = self._logits(part)
            chosen = logits.gather(1, tokens[first : first + self._rows, None])[:, 0]
            highest = logits.amax(dim=1, keepdim=True)
            total = logits.sub_(highest).exp_().sum(dim=1).log_().add_(highest[:, 0])
            parts.append(chosen - total)
        return torch.cat(parts)

    def distribution(self, states: torch.Tensor) -> torch.Tensor:
        """Log-probabilities of all tokens at n places (n, vocabulary)."""
        return self._logits(states).log_softmax(dim=-1)

    def _logits(self, states: torch.Tensor) -> torch.Tensor:
        """Logits of n places (n, vocabulary), in memory that the next call uses again."""
        if self._weight is None:
            return states.clone()
        if self._block is None or len(self._block) < len(states):
            self._block = states.new_empty((max(len(states), self._rows), self._weight.shape[0]))
        block = self._block[: len(states)]
        torch.mm(states, self._weight.T, out=block)
        return block if self._bias is None else block.add_(self._bias)


class Expected:
    """What the model expected at each place of one sequence."""

    def __init__(self, length: int, beginnings: torch.Tensor | None = None) -> None:
        self._entropy = np.full(length, np.nan)
        self._beginnings = beginnings
        self._boundary = None if beginnings is None else np.full(length, np.nan)
        self._top: list[list[tuple[str, float]]] = [[] for _ in range(length)]
        self._samples: list[list[str]] = [[] for _ in range(length)]
        self._top_ids: list[list[int]] = [[] for _ in range(length)]
        self._drawn: list[list[tuple[int, float]]] = [[] for _ in range(length)]
        self._mass = np.full(length, np.nan)

    def note(
        self, first: int, log_probabilities: torch.Tensor, detail: Detail, rng: torch.Generator, string: Any
    ) -> None:
        """Take down n places from `first` on, given their log-probabilities (n, vocabulary)."""
        probabilities = log_probabilities.exp()
        entropy = -(probabilities * log_probabilities.clamp(min=-1e30)).sum(dim=-1)
        self._entropy[first : first + len(entropy)] = entropy.double().cpu().numpy()
        if self._boundary is not None and self._beginnings is not None:
            share = log_probabilities[:, self._beginnings].logsumexp(dim=-1)
            self._boundary[first : first + len(entropy)] = np.minimum(share.double().cpu().numpy(), 0.0)
        allowed = None if detail.among is None else torch.from_numpy(detail.among).to(log_probabilities.device)
        if allowed is not None:
            inside = log_probabilities[:, allowed]
            self._mass[first : first + len(entropy)] = inside.logsumexp(dim=-1).double().cpu().numpy()
            probabilities = inside.exp()
            log_probabilities = torch.full_like(log_probabilities, -math.inf).index_copy_(1, allowed, inside)
        if detail.top:
            values, tokens = log_probabilities.topk(min(detail.top, log_probabilities.shape[-1]), dim=-1)
            for place, (row, token_row) in enumerate(zip(values.tolist(), tokens.tolist(), strict=True), start=first):
                self._top[place] = [(string(token), value) for token, value in zip(token_row, row, strict=True)]
                self._top_ids[place] = token_row
        if detail.samples:
            drawn = torch.multinomial(probabilities.cpu(), detail.samples, replacement=True, generator=rng)
            drawn = drawn if allowed is None else allowed.cpu()[drawn]
            drawn_values = log_probabilities.cpu().gather(1, drawn).double().tolist()
            for place, (token_row, row) in enumerate(zip(drawn.tolist(), drawn_values, strict=True), start=first):
                self._samples[place] = [string(token) for token in token_row]
                self._drawn[place] = list(zip(token_row, row, strict=True))

    def from_place(self, first: int) -> Distributions:
        boundary = None if self._boundary is None else self._boundary[first:]
        return Distributions(
            self._entropy[first:],
            self._top[first:],
            self._samples[first:],
            boundary,
            top_ids=self._top_ids[first:],
            drawn=self._drawn[first:],
            mass=self._mass[first:],
        )


def _gguf_file(checkpoint: str, folder: Path) -> str | None:
    """The one GGUF file of a folder that has no other weights."""
    files = sorted(path.name for path in folder.glob("*.gguf"))
    if not files or any(folder.glob("*.safetensors")):
        return None
    if len(files) > 1:
        raise CheckpointError(f"model: {checkpoint} holds {len(files)} GGUF files; leave one of them in the folder.")
    return files[0]


def _loaded(checkpoint: str, folder: Path, gguf: str | None) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from predictors.networks.causal_network import check_causal, without_bars

    options: dict[str, Any] = {}
    if gguf is None:
        check_causal(checkpoint, read_config(checkpoint, folder))
    else:
        options = {"gguf_file": gguf, **_unpacked()}
    try:
        with without_bars(), _quiet_bars(gguf):
            tokenizer = AutoTokenizer.from_pretrained(
                folder, trust_remote_code=False, local_files_only=True, **({"gguf_file": gguf} if gguf else {})
            )
            model, loading = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=torch.float32,
                trust_remote_code=False,
                local_files_only=True,
                use_safetensors=True,
                output_loading_info=True,
                **options,
            )
    except Exception as exc:  # transformers, safetensors and gguf raise a dozen kinds for damaged or unknown models
        # Newer versions of transformers read most kinds of GGUF by themselves.
        if gguf is not None and find_spec("gguf") is None and "gguf" in str(exc).lower():
            raise CheckpointError(
                f"model: {checkpoint} is a GGUF file, which needs the package gguf: pip install 'hunch[gguf]'."
            ) from exc
        raise CheckpointError(
            f"model: {checkpoint} cannot be used as a causal language model ({type(exc).__name__}: "
            f"{' '.join(str(exc).split())[:300]}). Give a folder with its files, and with its tokenizer."
        ) from exc
    if loading["missing_keys"]:
        missing = ", ".join(sorted(loading["missing_keys"])[:3])
        raise CheckpointError(f"model: {checkpoint} lacks weights of a causal model ({missing}); name another.")
    if not getattr(tokenizer, "is_fast", False):
        raise CheckpointError(
            f"model: the tokenizer of {checkpoint} does not say which characters a token covers; save it as "
            "tokenizer.json (a fast tokenizer)."
        )
    return tokenizer, model


@contextmanager
def _quiet_bars(gguf: str | None) -> Iterator[None]:
    """transformers draws a bar of its own while it unpacks a GGUF file, whatever its settings say."""
    if gguf is None:
        yield
        return
    with redirect_stderr(io.StringIO()):
        yield


def _unpacked() -> dict[str, Any]:
    """What lets transformers unpack the weights of a GGUF file, so that they are computed with in float32 everywhere.
    Versions that always do so have no such setting."""
    try:
        from transformers import GgufConfig
    except ImportError:
        return {}
    return {"quantization_config": GgufConfig(dequantize=True)}


def _begin_of_text(tokenizer: Any, *, known: int) -> int | None:
    """The token that this model puts before every text; None where it has none.

    A tokenizer may name one by default that is beyond the `known` tokens of the model: then it is not the model's own.
    """
    if tokenizer.bos_token_id is not None and tokenizer.bos_token_id < known:
        return int(tokenizer.bos_token_id)
    with_it = tokenizer.backend_tokenizer.encode("a", add_special_tokens=True)
    return int(with_it.ids[0]) if with_it.special_tokens_mask[:1] == [1] else None


def surprisals(reading: TextReading) -> NDArray[np.float64]:
    """Surprisal of each token in bits (n,); NaN where it was not read, infinite where it had probability 0."""
    surprisals: NDArray[np.float64] = -reading.tokens["logprob"] / math.log(2)
    return surprisals
