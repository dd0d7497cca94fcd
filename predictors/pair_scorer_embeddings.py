"""Question embeddings for the pair scorer: by the predictor's own fine-tuned networks, else by a fixed encoder.

Imports torch, so `predictors.pair_scorer` imports this module on first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from predictors import artifacts
from predictors.embeddings import embed
from predictors.estimators.bert import BertMember
from predictors.estimators.encoder import Batch
from predictors.estimators.finetuning import Network
from predictors.estimators.text import EVIDENCE, TARGET, TokenPair
from predictors.pair_scorer_fit import QuestionEmbeddings
from predictors.pairs import Pair, Progress, report


def embed_questions(
    folders: Sequence[Path | str], texts: Sequence[str], progress: Progress | None = None
) -> QuestionEmbeddings:
    """Embeddings of N questions as the saved predictor in `folders` sees them.

    A predictor of fine-tuned networks reads each question three times, laid out as in a pair whose other text is
    empty: as evidence after an incorrect and after a correct answer, and as target. Its last hidden states are averaged
    over the question's own tokens; several networks' embeddings stand side by side. Every other predictor is given the
    bundled encoder's sentence embeddings, the same for all three.

    Raises:
        CheckpointError: a folder is missing or altered, or the bundled weights are. Stopped: `progress` returned False.
    """
    networks = _networks(folders)
    if not networks:
        rows = embed(texts, progress=progress)
        return QuestionEmbeddings(np.stack([rows, rows]), rows)
    layouts = [
        ([Pair(text, "", "", "", 0) for text in texts], EVIDENCE),
        ([Pair(text, "", "", "", 1) for text in texts], EVIDENCE),
        ([Pair("", text, "", "", 0) for text in texts], TARGET),
    ]
    found: list[list[NDArray[np.float32]]] = [[], [], []]
    total, done = len(texts) * len(layouts) * len(networks), 0
    for network, budget in networks:
        for kind, (pairs, segment) in enumerate(layouts):
            rows = np.empty((len(texts), network.encoder.hidden_size), dtype=np.float32)
            for part, means in _means(network, network.tokenizer.tokenise(pairs), segment, budget):
                rows[part] = means
                done += len(part)
                report(progress, done, total, f"embedded {done} of {total} questions")
            found[kind].append(rows)
    wrong, right, target = (np.hstack(rows) for rows in found)
    return QuestionEmbeddings(np.stack([wrong, right]), target)


def _networks(folders: Sequence[Path | str]) -> list[tuple[Network, int]]:
    """The fine-tuned networks inside the saved predictors, each with its token budget; none if one has no network."""
    networks: list[tuple[Network, int]] = []
    for folder in folders:
        estimator: Any = artifacts.load(folder)
        members = getattr(estimator, "members_", [estimator])
        if not all(isinstance(member, BertMember) for member in members):
            return []
        networks += [(member.network_, member.network_.tokens_at_once(member.settings())) for member in members]
    return networks


def _means(
    network: Network, pairs: Sequence[TokenPair], segment: int, budget: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """Row numbers and mean hidden states (rows, hidden) of a segment's tokens, `budget` tokens at a time."""
    lengths = np.array([network.tokenizer.length(pair) for pair in pairs], dtype=np.int64)
    order = np.argsort(-lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    first = 0
    with torch.inference_mode():
        while first < len(order):
            before = ends[first] - lengths[order[first]]
            last = max(first + 1, int(np.searchsorted(ends, before + budget, side="right")))
            rows = order[first:last]
            batch = network.batch([pairs[row] for row in rows])
            yield rows, _mean_of(network.encoder.encode(batch, None), batch, segment).cpu().numpy()
            first = last


def _mean_of(hidden: torch.Tensor, batch: Batch, segment: int) -> torch.Tensor:
    """Mean hidden state of each row's tokens of one text, (rows, hidden); zeros where the text is empty."""
    tokens = torch.nonzero(batch.segments == segment)[:, 0]
    row = batch.pair_of_token[tokens]
    sums = hidden.new_zeros(len(batch.starts), hidden.shape[1]).index_add_(0, row, hidden[tokens])
    counts = torch.bincount(row, minlength=len(batch.starts))
    return sums / counts[:, None].clamp(min=1)
