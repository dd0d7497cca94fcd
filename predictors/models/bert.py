"""The BERT predictor: cross-encoders fine-tuned on rows of texts, an ensemble's probabilities averaged (section 4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted
from tokenizers import Tokenizer

from predictors.calibration import Calibrator
from predictors.errors import PredictorError
from predictors.features import Features, TrainingData, two_rows
from predictors.majority import are_averages
from predictors.models.base import Ensemble, SettingsEstimator, both_classes, write_json
from predictors.networks.checkpoints import read_checkpoint
from predictors.networks.encoder import build_encoder, compute_dtype, device_of, rebuild_encoder
from predictors.networks.finetuning import Network, predict, train
from predictors.networks.heads import Head, HeadKind, new_head
from predictors.networks.text import Inputs, RowTokenizer
from predictors.pairs import Pair, Progress
from predictors.settings import BertSettings
from predictors.splits import pair_groups

WEIGHTS_FILE, CONFIG_FILE, TOKENIZER_FILE, STATE_FILE = (
    "model.safetensors",
    "config.json",
    "tokenizer.json",
    "bert.json",
)
KEPT_BACK = "kept_back"

# Fewer rows kept back say too little, and fewer labels of people where a teacher's stand next to them.
_MIN_KEPT_BACK, _MIN_OF_PEOPLE = 40, 20
# Two numbers are learnt from them: more rows would be missing in the training and would not make these more exact.
_MAX_KEPT_BACK = 1000


class KeptBack(NamedTuple):
    """What one network, which did not learn from them, says of n rows: probabilities, labels, weights, (n,) each."""

    probabilities: NDArray[np.float64]
    labels: NDArray[np.float64]
    weights: NDArray[np.float64]


class BertMember(SettingsEstimator, settings=BertSettings, fixed={"members": 1}):
    """One network of the ensemble: a pretrained encoder with a head, trained on all rows from its own seed.

    Of a pair it reads the outcome in words and both questions. Of features it reads the first text as the first
    sequence and all others, with separators between, as the second; numbers go to the head, standardised, where their
    weights start at those of a logistic regression on them alone. What should change how a text is read belongs into
    a text, in words. The same seed, data, machine and number of threads give the same weights, bit for bit.
    """

    results = ("loss", "n_steps", "n_examples")

    def fit(
        self, rows: Sequence[Any], labels: Any, sample_weight: Any = None, progress: Progress | None = None
    ) -> Self:
        """Fine-tune on n rows with n labels (0, 1 or fractions) and n weights.

        `progress(done, total, text)` counts optimiser steps.

        Raises:
            PredictorError: unusable data or settings. CheckpointError: no checkpoint. Stopped: progress said so.
        """
        everything = self.training_data(rows, labels, sample_weight)
        settings: BertSettings = self.settings()
        started = perf_counter()
        kept_back = _kept_back(everything, settings.calibration_share, self.random_state)
        data = _taken(everything, ~kept_back)
        device = device_of(settings.device)
        dtype = compute_dtype(settings.bfloat16, device)
        checkpoint = read_checkpoint(settings.checkpoint)
        encoder = build_encoder(checkpoint, dtype, device, settings.frozen_layers)
        inputs = _inputs_of(data, settings.head)
        generator = np.random.Generator(np.random.SFC64(self.random_state))
        network = Network(
            tokenizer=RowTokenizer(
                checkpoint.tokenizer, min(settings.max_length, encoder.max_positions), settings.marks
            ),
            inputs=inputs,
            encoder=encoder,
            head=new_head(
                settings.head,
                encoder.hidden_size,
                len(inputs.numbers),
                checkpoint.weights or {},
                generator,
                device,
                numbers_alone=None if inputs.marked else _learnt_from_numbers(inputs, data),
            ),
            dtype=dtype,
            device=device,
        )
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(int(generator.integers(2**63)))
            run = train(network, settings, data, generator, progress)
        self.network_ = network
        self.kept_back_ = _said_of(network, _taken(everything, kept_back), self.token_budget)
        self.classes_ = np.array([0, 1])
        self.loss_ = run.loss
        self.n_steps_ = run.steps
        self.n_examples_ = len(data.rows)
        self.seconds_ = perf_counter() - started
        return self

    def predict_proba(self, rows: Sequence[Any], progress: Progress | None = None) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2): of label 0 and of label 1. `progress` counts rows.

        Raises:
            PredictorError: rows without the texts or numbers of the training, or features where those were pairs.
        """
        check_is_fitted(self)
        return both_classes(_prediction([self], self.checked_rows(rows), progress))

    def save_files(self, folder: Path) -> None:
        """Write configuration, tokenizer and weights into `folder`: all that `load_files` needs."""
        state = self.saved_state()
        network = self.network_
        state["max_length"] = network.tokenizer.max_length
        if not network.inputs.marked:
            state["inputs"] = asdict(network.inputs)
        weights = {f"encoder.{name}": tensor.contiguous() for name, tensor in network.encoder.state().items()}
        weights |= {f"head.{name}": tensor for name, tensor in network.head.state().items()}
        if len(self.kept_back_.labels):
            weights[KEPT_BACK] = torch.from_numpy(np.stack(self.kept_back_))
        write_json(folder / CONFIG_FILE, network.encoder.config)
        write_json(folder / STATE_FILE, state)
        network.tokenizer.tokenizer.save(str(folder / TOKENIZER_FILE))
        save_file(weights, folder / WEIGHTS_FILE)

    @classmethod
    def load_files(cls, folder: Path) -> Self:
        """Read back what `save_files` wrote; needs neither the hub nor the checkpoint."""
        state = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
        config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        member = cls.restored(state)
        settings: BertSettings = member.settings()
        device = device_of(settings.device)
        dtype = compute_dtype(settings.bfloat16, device)
        weights = load_file(folder / WEIGHTS_FILE)
        kept_back = weights.pop(KEPT_BACK, torch.empty((3, 0), dtype=torch.float64))
        member.kept_back_ = KeptBack(*kept_back.numpy())
        body = {name.removeprefix("encoder."): t for name, t in weights.items() if name.startswith("encoder.")}
        head = {name.removeprefix("head."): t for name, t in weights.items() if name.startswith("head.")}
        member.network_ = Network(
            tokenizer=RowTokenizer(
                Tokenizer.from_file(str(folder / TOKENIZER_FILE)), state["max_length"], settings.marks
            ),
            inputs=Inputs.from_json(state["inputs"]) if "inputs" in state else _inputs_of_pairs(settings.head),
            encoder=rebuild_encoder(folder, config, body, dtype, device, settings.frozen_layers),
            head=Head(settings.head, head, device),
            dtype=dtype,
            device=device,
        )
        return member


class BertPredictor(Ensemble, settings=BertSettings):
    """The ensemble of table 1: `members` networks from seeds of their own, their probabilities averaged.

    Where rows were kept back, the average is recalibrated by what the networks said of them.
    """

    member_class = BertMember

    @classmethod
    def check_members(cls, members: Sequence[BertMember]) -> None:
        """
        Raises:
            PredictorError: they read texts by different tokenizers, or were trained on different rows.
        """
        if len({member.network_.tokenizer.fingerprint for member in members}) > 1:
            raise PredictorError("members: they read texts by different tokenizers; join those of one training.")
        if len({member.network_.inputs for member in members}) > 1:
            raise PredictorError("members: they read different texts or numbers; join those of one training.")

    def predict_proba(self, rows: Sequence[Any], progress: Progress | None = None) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2), averaged over the members. `progress` counts rows."""
        check_is_fitted(self)
        return both_classes(_prediction(self.members_, self.checked_rows(rows), progress))


def _inputs_of(data: TrainingData, head: HeadKind) -> Inputs:
    if isinstance(data.rows[0], Features):
        return Inputs.learn(data.rows, data.weights)
    return _inputs_of_pairs(head)


def _inputs_of_pairs(head: HeadKind) -> Inputs:
    """Both questions, and the outcome in words; the head that compares texts is given it as -4 or 4 as well.

    With Adam's equal steps, its one weight must count for more than each of the hundreds that carry the texts, or it is
    learnt long after them.
    """
    return Inputs() if head == "paper" else Inputs(numbers=("previous_correct",), centre=(0.5,), scale=(0.125,))


def _learnt_from_numbers(inputs: Inputs, data: TrainingData) -> NDArray[np.float32]:
    """Intercept and weights, float32 (1 + k,), of a slightly penalised logistic regression on the k numbers alone."""
    rows, classes, weights = two_rows(data.labels, data.weights)
    if not inputs.numbers:
        return np.zeros(1, dtype=np.float32)
    model = LogisticRegression().fit(inputs.numbers_of(data.rows)[rows].astype(np.float64), classes, weights)
    return np.concatenate([model.intercept_, model.coef_[0]]).astype(np.float32)


def _prediction(members: Sequence[BertMember], rows: list[Any], progress: Progress | None) -> NDArray[np.float64]:
    """Mean probability of label 1, (n,), recalibrated. Rows are tokenised once for all members."""
    if not rows:
        return np.empty(0)
    networks = [member.network_ for member in members]
    mean = predict(networks, networks[0].tokenise(rows), members[0].token_budget, progress).mean(axis=0)
    calibrator = _calibrator([member.kept_back_ for member in members])
    return mean if calibrator is None else calibrator.predict(mean)


def _kept_back(data: TrainingData, share: float, seed: int) -> NDArray[np.bool_]:
    """Which rows a network does not learn from, (n,): a share of the groups of rows about one pair, or of the rows.
    Where people's labels stand next to a teacher's fractions, it is a share of those that have one."""
    rows = data.rows
    nothing = np.zeros(len(rows), dtype=bool)
    if not share:
        return nothing
    groups = pair_groups(rows) if isinstance(rows[0], Pair) else np.arange(len(rows))
    of_people = _of_people(data.labels)
    beside_teacher = share * of_people.sum() >= _MIN_OF_PEOPLE and not of_people.all()
    judging = np.unique(groups[of_people]) if beside_teacher else np.unique(groups)
    count = min(round(share * len(judging)), _MAX_KEPT_BACK)
    held_out = np.isin(groups, np.random.default_rng([1, seed]).permutation(judging)[:count])
    learnt = data.labels[~held_out]
    # Of both classes something must be left to learn from.
    least = _MIN_OF_PEOPLE if beside_teacher else _MIN_KEPT_BACK
    if held_out.sum() < least or not (learnt > 0).any() or not (learnt < 1).any():
        return nothing
    return held_out


def _taken(data: TrainingData, rows: NDArray[np.bool_]) -> TrainingData:
    weights = data.weights[rows]
    return TrainingData(
        [data.rows[row] for row in np.flatnonzero(rows)],
        data.labels[rows],
        weights if rows.all() or not rows.any() else weights / weights.mean(),
    )


def _said_of(network: Network, data: TrainingData, token_budget: int | None) -> KeptBack:
    if not data.rows:
        return KeptBack(np.empty(0), np.empty(0), np.empty(0))
    said = predict([network], network.tokenise(data.rows), token_budget, None)[0]
    return KeptBack(said, data.labels, data.weights)


def _calibrator(kept_back: Sequence[KeptBack]) -> Calibrator | None:
    """The recalibration that all networks' rows ask for; None where none were kept back.

    Labels of people, 0 or 1, decide where there are enough of them next to the fractions of a teacher, which may be
    squeezed together.
    """
    said, labels, weights = (np.concatenate(column) for column in zip(*kept_back, strict=True))
    people = _of_people(labels)
    if np.count_nonzero(people) >= _MIN_OF_PEOPLE:
        said, labels, weights = said[people], labels[people], weights[people]
    return Calibrator().fit(said, labels, weights) if len(labels) else None


def _of_people(labels: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which labels are people's, (n,): 0 or 1; all of them where the fractions are shares of few answers too."""
    whole = (labels == 0) | (labels == 1)
    return np.ones(len(labels), dtype=bool) if are_averages(labels[~whole]) else whole
