"""How fast texts are read by a causal model, side by side with a plain loop over transformers on the same texts.

The plain loop is what most scripts do: one text at a time, its tokens through the model, log-softmax over the
vocabulary, the column of each next token. Loading the model does not count on either side, cutting into tokens does.
Rounds alternate in one process; medians are reported, of wall and of processor seconds. The numbers of both sides are
compared token by token.

    python benchmarks/reading_speed.py [--texts 200] [--words 12] [--rounds 5] [--model FOLDER] [--device auto]

Without --model a causal model with random weights is made (4 layers of 256, a vocabulary of 30,522 with the bundled
tokenizer): its speed does not depend on what the weights are. The texts are words of questions in a row
(`../shared/data/questions.csv`, or random words), of log-normal lengths. The last line is JSON.
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
from predictors.readings import Text
from predictors.training import limit_threads

LONGEST = 512


def mixed_texts(count: int, median_words: float) -> list[Text]:
    """Texts of log-normal lengths: with a median of 12 words, two thirds have 5 to 27 and one in fifty more than 60."""
    rng = np.random.default_rng(0)
    words = " ".join(question_texts(longest=None)).split()
    lengths = np.clip(rng.lognormal(np.log(median_words), 0.8, count), 3, 300).astype(int)
    starts = rng.integers(len(words) - 300, size=count)
    return [
        Text(str(place), " ".join(words[start : start + length]))
        for place, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True))
    ]


def random_model(folder: Path) -> Path:
    import shutil

    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from predictors.networks.checkpoints import locate

    shutil.copy(locate("bundled:minilm-l6") / "tokenizer.json", folder / "tokenizer.json")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=30522,
        hidden_size=256,
        intermediate_size=1024,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=LONGEST,
        initializer_range=0.1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def plain_loop(reader: Any, texts: list[Text]) -> list[np.ndarray]:
    """One text at a time, as most scripts do. The same model and begin-of-text token as the reader has."""
    import torch

    tokenizer, model = reader._tokenizer, reader._model
    found = []
    for one in texts:
        begin = [] if reader._begin is None else [reader._begin]
        ids = [*begin, *tokenizer.encode(one.text, add_special_tokens=False).ids][: reader.longest]
        inputs = torch.tensor([ids], device=reader.device)
        with torch.no_grad():
            logits = model(inputs).logits
            scores = torch.log_softmax(logits[0, :-1].float(), dim=-1)
            given = scores.gather(1, inputs[0, 1:, None])[:, 0]
        found.append(given.double().cpu().numpy())
    return found


def ours(reader: Any, texts: list[Text]) -> list[np.ndarray]:
    found = dict(reader.each(texts))
    skipped = 0 if reader._begin is not None else 1
    return [found[number].tokens["logprob"][skipped:] for number in range(len(texts))]


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    wall, processor = perf_counter(), process_time()
    found = work()
    return perf_counter() - wall, process_time() - processor, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--words", type=float, default=12, help="the median length of a text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--model", default="")
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    limit_threads(given.threads)
    from predictors.readings.causal import CausalReader

    texts = mixed_texts(given.texts, given.words)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = given.model or str(random_model(Path(folder)))
        reader = CausalReader(checkpoint, device=given.device, longest=LONGEST)
        sides = {"plain": lambda: plain_loop(reader, texts), "ours": lambda: ours(reader, texts)}
        for work in sides.values():
            work()  # The first pass of each side allocates.
        rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        last: dict[str, list[np.ndarray]] = {}
        for _round in range(given.rounds):
            for name, work in sides.items():
                wall, processor, last[name] = timed(work)
                rounds[name].append((wall, processor))
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
        **{
            f"{name}_{kind}_s": round(median(one[place] for one in rounds[name]), 3)
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
        f"of a log-probability {largest:.1e})"
    )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
