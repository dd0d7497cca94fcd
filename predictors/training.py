"""What a machine-learning worker calls, with plain data and folders: train one member, score rows with saved members.

Light at import: torch and scikit-learn come with the first call, so that thread counts can be set before.
"""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from predictors import artifacts, registry
from predictors.errors import PredictorError
from predictors.features import Row
from predictors.hardness import Given
from predictors.pairs import Progress, report

DEFAULT_BLOCK = 8192
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
# Enough for two ensembles of five: one being evaluated while the one before it still scores.
_CACHED_PREDICTORS = 10

_cache: OrderedDict[str, registry.Estimator] = OrderedDict()


class TrainedMember(TypedDict):
    """What `train_member` reports: the folder's digest, seconds of work, the last training loss in nats, the rows
    used (weight above 0), and optimiser steps (for a logistic regression: its solver's)."""

    digest: str
    seconds: float
    loss: float
    n_examples: int
    steps: int


def limit_threads(count: int) -> None:
    """Let numerical libraries use `count` threads in this process.

    Call it before torch is imported, as most of them read their limit once. torch is set too where it is there already.

    Raises:
        PredictorError: `count` is below 1.
    """
    if count < 1:
        raise PredictorError(f"threads: {count} is not 1 or more.")
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = str(count)
    # By default OpenMP's threads spin while they wait; next to other busy processes that was seen to cost ten times
    # the work itself, while sleeping costs a few percent of it on an idle machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)


def processors() -> int:
    """The number of processors that this process may use, or OMP_NUM_THREADS if it is set."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def members_of(name: str, params: dict[str, Any] | None = None) -> int:
    """How many members the predictor `name` has with these settings: each may be trained as a step of its own."""
    return int(getattr(registry.settings_of(name, params or {}), "members", 1))


def columns_of(name: str, params: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """The columns next to its rows that the predictor `name` reads with these settings (`predictors.hardness`)."""
    return tuple(getattr(registry.settings_of(name, dict(params or {})), "columns", ()))


def train_member(
    name: str,
    params: dict[str, Any],
    seed: int,
    member: int,
    rows: Sequence[Row],
    labels: Sequence[float],
    sample_weight: Sequence[float] | None,
    folder: Path | str,
    progress: Progress | None = None,
    columns: Given | None = None,
) -> TrainedMember:
    """Train member number `member` (from 0) of a predictor and save it into `folder`, which must be missing or empty.

    The n rows (`Pair` or `Features`, one kind), labels and weights are as in the estimators' `fit`. Members of one
    ensemble share `seed`. columns: by name, (n,), for settings that name columns (`predictors.hardness`).

    Raises:
        PredictorError: unknown predictor, setting or member, unusable data, or features for a predictor that
            reads pairs alone. CheckpointError: no checkpoint.
        Stopped: `progress` returned False; nothing was saved.
    """
    count = members_of(name, params)
    if not 0 <= member < count:
        raise PredictorError(f"member: {member} is not one of the {count} members of {name}, counted from 0.")
    started = perf_counter()
    estimator: Any = registry.create(name, params, seed)
    if hasattr(estimator, "member"):
        estimator = estimator.member(member)
    beside = {"columns": columns} if getattr(estimator, "columns", ()) else {}
    estimator.fit(rows, labels, sample_weight, progress, **beside)
    digest = artifacts.save(estimator, folder)
    return TrainedMember(
        digest=digest,
        seconds=perf_counter() - started,
        loss=float(estimator.loss_),
        n_examples=int(estimator.n_examples_),
        steps=int(getattr(estimator, "n_steps_", 0) or estimator.n_iter_),
    )


def score(
    folders: Sequence[Path | str],
    rows: Iterable[Row],
    progress: Progress | None = None,
    block: int = DEFAULT_BLOCK,
    columns: Given | None = None,
) -> NDArray[np.float32]:
    """Probability of label 1 of every row, float32 (n,), averaged over the saved members in `folders`.

    `rows` may be a generator: `block` of them are held at a time, sorted by length inside the block. They are of the
    kind, and have the names, that the members were trained on. Loaded members are kept for the next call in this
    process. `progress` counts rows; its total is 0 where `rows` has no length. columns: what predictors read next to
    the rows, (n,) each, where their settings name any.

    Raises:
        PredictorError: no folders, block below 1, or rows that the members cannot read.
        CheckpointError: a folder is missing, altered or unfinished.
        Stopped: `progress` returned False.
    """
    if not folders:
        raise PredictorError("folders: there are none; scoring needs at least one saved member.")
    if block < 1:
        raise PredictorError(f"block: {block} is not 1 or more.")
    ensemble = _ensemble([_cached(Path(folder)) for folder in folders])
    total = len(rows) if isinstance(rows, Sized) else 0
    scores = np.empty(total or block, dtype=np.float32)
    done = 0
    for part in _blocks(rows, block):
        if done + len(part) > len(scores):
            scores = np.concatenate([scores, np.empty(max(len(scores), block), dtype=np.float32)])
        beside = {name: np.asarray(column)[done : done + len(part)] for name, column in (columns or {}).items()}
        scores[done : done + len(part)] = _scored(ensemble, part, progress, done, total, beside)
        done += len(part)
        report(progress, done, total, f"scored {done} rows")
    return scores[:done]


def forget_predictors() -> None:
    """Drop the predictors kept in memory by `score`."""
    _cache.clear()


def _scored(
    ensemble: Sequence[registry.Estimator],
    part: list[Row],
    progress: Progress | None,
    before: int,
    total: int,
    beside: Given,
) -> NDArray[np.float64]:
    """Mean probability of label 1 over the estimators. Progress inside a block is reported as a share of its rows."""
    calls = len(ensemble)

    probabilities = []
    for index, estimator in enumerate(ensemble):

        def inside(done: int, of: int, text: str, index: int = index) -> None:
            share = (index + done / max(of, 1)) / calls
            report(progress, before + int(share * len(part)), total, text)

        predictor: Any = estimator
        arguments = {"columns": beside} if getattr(estimator, "columns", ()) else {}
        probabilities.append(predictor.predict_proba(part, inside, **arguments)[:, 1])
    return np.mean(np.stack(probabilities), axis=0)


def _ensemble(estimators: list[registry.Estimator]) -> list[registry.Estimator]:
    """Members of a BERT become one ensemble, which tokenises once for all; others stay as they are."""
    if len(estimators) > 1 and all(registry.kind_of(estimator) == "bert_member" for estimator in estimators):
        from predictors.models.bert import BertPredictor

        return [BertPredictor.from_members(estimators)]
    return estimators


def _cached(folder: Path) -> registry.Estimator:
    digest = artifacts.folder_digest(folder)
    if digest not in _cache:
        _cache[digest] = artifacts.load(folder)
        if len(_cache) > _CACHED_PREDICTORS:
            _cache.popitem(last=False)
    _cache.move_to_end(digest)
    return _cache[digest]


def _blocks(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    iterator = iter(rows)
    while part := list(islice(iterator, size)):
        yield part
