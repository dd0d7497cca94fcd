"""Question embeddings for the pair scorer: by the predictor's own fine-tuned networks, else by a fixed encoder.

Imports torch, so `predictors.pair_scorer` imports this module on first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from predictors import artifacts
from predictors.embeddings import embed
from predictors.models.bert import BertMember, BertPredictor
from predictors.networks.finetuning import Network, share_frozen_layers
from predictors.networks.heads import mean_of
from predictors.networks.text import FIRST, OTHERS
from predictors.pair_scorer_fit import QuestionEmbeddings
from predictors.pairs import Pair, Progress, report

Layout = tuple[list[Pair], int]
"""A question a row, alone in its pair, and the segment that it stands in."""


def embed_questions(
    folders: Sequence[Path | str], texts: Sequence[str], progress: Progress | None = None
) -> QuestionEmbeddings:
    """Embeddings of N questions as the saved predictor in `folders` sees them.

    A predictor that reads pairs by a network is given each question three times, laid out as in a pair whose other
    text is empty: as evidence after an incorrect and after a correct answer, and as target. Its hidden states are
    averaged over the question's own tokens; several networks' embeddings stand side by side. Every other predictor is
    given the bundled encoder's sentence embeddings, the same for all three.

    Raises:
        CheckpointError: a folder is missing or altered, or the bundled weights are. Stopped: `progress` returned False.
    """
    layouts = [
        ([Pair(text, "", "", "", 0) for text in texts], FIRST),
        ([Pair(text, "", "", "", 1) for text in texts], FIRST),
        ([Pair("", text, "", "", 0) for text in texts], OTHERS),
    ]
    estimators: list[Any] = [artifacts.load(folder) for folder in folders]
    members = [member for estimator in estimators for member in getattr(estimator, "members_", [estimator])]
    if all(isinstance(member, BertMember) for member in members):
        embeddings = _by_networks(members, layouts, progress)
    elif all(hasattr(estimator, "reader_") for estimator in estimators):
        embeddings = _by_readers([estimator.reader_ for estimator in estimators], layouts, progress)
    else:
        embeddings = [embed(texts, progress=progress)] * len(layouts)
    wrong, right, target = embeddings
    return QuestionEmbeddings(np.stack([wrong, right]), target)


def _by_networks(
    members: Sequence[BertMember], layouts: Sequence[Layout], progress: Progress | None
) -> list[NDArray[np.float32]]:
    """What fine-tuned networks make of each layout's n questions, (n, networks * hidden) each."""
    networks = _networks(members)
    n = len(layouts[0][0])
    embeddings = [
        [np.empty((n, network.encoder.hidden_size), dtype=np.float32) for network in networks] for _ in layouts
    ]
    total, done = n * len(layouts), 0
    shared = share_frozen_layers(networks)
    with torch.inference_mode():
        for kind, (pairs, segment) in enumerate(layouts):
            for rows, batch in networks[0].batches(networks[0].tokenizer.tokenise(pairs), members[0].token_budget):
                below = networks[0].encoder.below(batch) if shared else None
                for own, network in zip(embeddings[kind], networks, strict=True):
                    own[rows] = mean_of(network.encoder.encode(batch, None, below), batch, segment).cpu().numpy()
                done += len(rows)
                report(progress, done, total, f"embedded {done} of {total} readings of questions")
    return [np.hstack(own) for own in embeddings]


def _by_readers(
    readers: Sequence[Any], layouts: Sequence[Layout], progress: Progress | None
) -> list[NDArray[np.float32]]:
    """What the hybrid's frozen networks make of each layout's n questions, all the depths they read side by side."""
    embeddings = []
    for pairs, segment in layouts:
        side = (FIRST, OTHERS).index(segment)
        states = [reader.read(pairs, None, progress)[:, :, side] for reader in readers]
        embeddings.append(np.hstack([state.reshape(len(pairs), -1) for state in states]))
    return embeddings


def _networks(members: Sequence[BertMember]) -> list[Network]:
    """The networks of an ensemble's members.

    Networks whose layers are all frozen, and the same, read alike: the first stands for all.
    """
    BertPredictor.from_members(members)
    networks = [member.network_ for member in members]
    frozen = networks[0].encoder.frozen_layers
    if frozen and frozen == networks[0].encoder.config["num_hidden_layers"] and share_frozen_layers(networks):
        return networks[:1]
    return networks
