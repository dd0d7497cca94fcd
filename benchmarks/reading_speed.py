"""How fast texts are read by a causal model, side by side with a plain loop over transformers on the same texts.

The plain loop is what most scripts do: one text at a time, its tokens through the model, log-softmax over the
vocabulary, the column of each next token. Loading the model does not count on either side, cutting into tokens does.
Rounds alternate in one process; medians are reported, of wall and of processor seconds. The numbers of both sides are
compared token by token.

    python benchmarks/reading_speed.py [--texts 200] [--words 12] [--rounds 5] [--model FOLDER] [--device auto]
    python benchmarks/reading_speed.py --device cuda --layers 12 --width 768

Without --model a causal model with random weights is made (4 layers of 256, a vocabulary of 30,522): its speed does not
depend on what the weights are. The texts are words of questions in a row (`../shared/data/questions.csv`), of
log-normal lengths. Where there are no questions or no bundled tokenizer, words and tokenizer are made here, so that
numpy, torch and transformers are enough. On a GPU the same texts are read on the processor too, and all numbers
compared. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks.predictor_speed import question_texts
from predictors.errors import CheckpointError
from predictors.readings import Text
from predictors.training import limit_threads

LONGEST, VOCABULARY = 512, 30522


def words_in_a_row() -> list[str]:
    """The words of questions; without these, made-up words, of which a few are frequent and most are rare."""
    try:
        return " ".join(question_texts(longest=None)).split()
    except CheckpointError:
        rng = np.random.default_rng(1)
        letters = np.array(list("etaoinshrdlucmfwypvbgk"))
        made = ["".join(rng.choice(letters, size)) for size in rng.integers(1, 11, 12_000)]
        place = np.minimum(rng.zipf(1.2, 60_000), len(made)) - 1
        return [made[number] for number in place.tolist()]


def mixed_texts(count: int, median_words: float, words: list[str]) -> list[Text]:
    """Texts of log-normal lengths: with a median of 12 words, two thirds have 5 to 27 and one in fifty more than 60."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(np.log(median_words), 0.8, count), 3, 300).astype(int)
    starts = rng.integers(len(words) - 300, size=count)
    return [
        Text(str(place), " ".join(words[start : start + length]))
        for place, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True))
    ]


def save_tokenizer(folder: Path, words: list[str]) -> None:
    """The bundled tokenizer; without it one that is learnt from the words."""
    import shutil

    from predictors.networks.checkpoints import locate

    try:
        shutil.copy(locate("bundled:minilm-l6") / "tokenizer.json", folder / "tokenizer.json")
    except CheckpointError:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        made.train_from_iterator(
            [" ".join(words)],
            trainers.BpeTrainer(
                vocab_size=VOCABULARY,
                special_tokens=["<s>"],
                initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                show_progress=False,
            ),
        )
        made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
        made.save(str(folder / "tokenizer.json"))


def random_model(folder: Path, words: list[str], *, layers: int, width: int) -> Path:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    save_tokenizer(folder, words)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        num_key_value_heads=width // 64,
        max_position_embeddings=LONGEST,
        initializer_range=1.6 / width**0.5,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def plain_loop(reader: Any, texts: list[Text]) -> list[np.ndarray]:
    """One text at a time, as most scripts do. The same model and begin-of-text token as the reader has."""
    import torch

    tokenizer, model = reader._tokenizer, reader._model
    log_probabilities = []
    for text in texts:
        begin = [] if reader._begin is None else [reader._begin]
        ids = [*begin, *tokenizer.encode(text.text, add_special_tokens=False).ids][: reader.longest]
        inputs = torch.tensor([ids], device=reader.device)
        with torch.no_grad():
            logits = model(inputs).logits
            scores = torch.log_softmax(logits[0, :-1].float(), dim=-1)
            chosen = scores.gather(1, inputs[0, 1:, None])[:, 0]
        log_probabilities.append(chosen.double().cpu().numpy())
    return log_probabilities


def ours(reader: Any, texts: list[Text]) -> list[np.ndarray]:
    readings = dict(reader.each(texts))
    skipped = 0 if reader._begin is not None else 1
    return [readings[number].tokens["logprob"][skipped:] for number in range(len(texts))]


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    wall, processor = perf_counter(), process_time()
    result = work()
    return perf_counter() - wall, process_time() - processor, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--words", type=float, default=12, help="the median length of a text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--model", default="")
    parser.add_argument("--layers", type=int, default=4, help="of the model that is made")
    parser.add_argument("--width", type=int, default=256, help="of its states, a multiple of 64")
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    limit_threads(arguments.threads)
    from predictors.readings.causal import CausalReader

    words = words_in_a_row()
    texts = mixed_texts(arguments.texts, arguments.words, words)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = arguments.model or str(
            random_model(Path(folder), words, layers=arguments.layers, width=arguments.width)
        )
        reader = CausalReader(checkpoint, device=arguments.device, longest=LONGEST)
        sides = {"plain": lambda: plain_loop(reader, texts), "ours": lambda: ours(reader, texts)}
        for work in sides.values():
            work()  # The first pass of each side allocates.
        rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        last: dict[str, list[np.ndarray]] = {}
        for _round in range(arguments.rounds):
            for name, work in sides.items():
                wall, processor, last[name] = timed(work)
                rounds[name].append((wall, processor))
        on_cpu = None
        if reader.device.type != "cpu":
            there = ours(CausalReader(checkpoint, device="cpu", longest=LONGEST), texts)
            on_cpu = max(
                float(np.abs(values - two).max(initial=0.0)) for values, two in zip(last["ours"], there, strict=True)
            )
    largest = max(
        float(np.abs(mine[: len(theirs)] - theirs).max(initial=0.0))
        for mine, theirs in zip(last["ours"], last["plain"], strict=True)
    )
    tokens = sum(map(len, last["plain"]))
    result = {
        "texts": len(texts),
        "tokens": tokens,
        "device": str(reader.device),
        "largest_difference": largest,
        **({} if on_cpu is None else {"largest_difference_from_the_processor": on_cpu}),
        **{
            f"{name}_{kind}_s": round(median(times[place] for times in rounds[name]), 3)
            for name in sides
            for place, kind in enumerate(("wall", "cpu"))
        },
    }
    for place, kind in enumerate(("wall", "cpu")):
        ratios = [plain[place] / mine[place] for plain, mine in zip(rounds["plain"], rounds["ours"], strict=True)]
        result[f"times_faster_{kind}"] = round(median(ratios), 2)
    print(
        f"{tokens} tokens of {len(texts)} texts on {reader.device}: plain loop {result['plain_wall_s']} s, "
        f"batches by length {result['ours_wall_s']} s ({result['times_faster_wall']} times as fast; largest difference "
        f"of a log-probability {largest:.1e}{'' if on_cpu is None else f', from the processor {on_cpu:.1e}'})"
    )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
